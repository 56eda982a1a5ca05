# Posting lists, held after each record of WAL that their READMEs list: what others find meanwhile,
# and what is left when the statement goes on, is canceled or fails, or the postmaster is killed.

use strict;
use warnings FATAL => 'all';
use QuiverInjection;
use QuiverTest;
use Test::More;

my $node = injection_node('ivf_injection');

# Codes with records and sketches; the same with an included column; whole values.
my %forms = (
	coded => { type => 'vector(256)', using => 'quiver_ivf (v vector_l2_ops)', op => '<->', rows => 200 },
	included => { type => 'vector(256)', using => 'quiver_ivf (v vector_l2_ops) INCLUDE (id)', op => '<->',
		rows => 200 },
	plain => { type => 'bit(2048)', using => 'quiver_ivf (v bit_hamming_ops)', op => '<~>', rows => 200 });

$node->safe_psql('postgres', q{
CREATE TABLE base_coded AS SELECT id,
	(v || v || v || v || v || v || v || v || v || v || v || v || v || v || v || v)::vector(256) AS v
	FROM (SELECT id, qt_vector(id, 16)::vector(16) AS v FROM generate_series(1, 1400) id) x;
CREATE TABLE base_included AS SELECT * FROM base_coded;
CREATE TABLE base_plain AS SELECT id,
	(SELECT string_agg(('x' || md5(id || ' ' || k))::bit(128)::text, '') FROM generate_series(1, 16) k)::bit(2048) AS v
	FROM generate_series(1, 1400) id});

my @both = qw(coded plain);
my $insert = 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id BETWEEN 31 AND ';
my $many = 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id > 300';
my $same = 'INSERT INTO $t (id, v) SELECT 2000 + i, v FROM $b, generate_series(1, 400) i WHERE id = 107';
my $vacuum = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) $t';
my $third = 'DELETE FROM $t WHERE id % 3 = 0';
# an insert fails right after it has split a list: the old pages are left
my $leave = q{DO $$BEGIN PERFORM injection_points_attach('quiver-ivf-list-split', 'error');
BEGIN INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id > 300; EXCEPTION WHEN internal_error THEN NULL; END;
PERFORM injection_points_detach('quiver-ivf-list-split'); END$$};

# A compaction fails for lack of space, say: the table is rid of its dead rows all the same, and the next
# VACUUM frees what was written.
$node->safe_psql('postgres', q{
CREATE TABLE sparse AS SELECT * FROM base_coded;
CREATE INDEX sparse_idx ON sparse USING quiver_ivf (v vector_l2_ops) WITH (lists = 2);
DELETE FROM sparse WHERE id % 2 = 0;
SELECT injection_points_attach('quiver-ivf-page-written', 'error');});
fails_like($node, 'VACUUM (INDEX_CLEANUP ON) sparse', 'XX000', 'error triggered', 'VACUUM, as a compaction fails');
is($node->psql('postgres', 'VACUUM (INDEX_CLEANUP ON) sparse'), 0, 'the next VACUUM has no dead rows to remove');
$node->safe_psql('postgres', q{SELECT injection_points_detach('quiver-ivf-page-written')});
is(sql_value($node, q{SELECT dead_rows, lost_pages, free_pages > 0 FROM quiver_index_info('sparse_idx')}),
	'700|0|t', 'the dead rows of the index wait for a compaction');
$node->safe_psql('postgres', 'DELETE FROM sparse WHERE id = 1; VACUUM (INDEX_CLEANUP ON) sparse');
is(sql_value($node, q{SELECT dead_rows, lost_pages FROM quiver_index_info('sparse_idx')}), '0|0', 'and it comes');
check_ok($node, 'sparse_idx', 699, 'after it');

every_line_ok(
	node => $node,
	folders => [ 'src/ivf', 'src/rows' ],
	prefix => 'quiver-ivf-',
	nothing => '|0',
	may_lose => 0,
	forms => \%forms,
	lines => [
		{ point => 'row-added', forms => \@both, held => $insert . 32 },
		{ point => 'row-added', name => 'row-added, row pages begun meanwhile', forms => ['coded'], rows => 0,
			before => $many, held => $insert . 32 },
		{ point => 'page-added', forms => \@both, with => 'WITH (lists = 1)', locked => 1, held => $insert . 100 },
		{ point => 'tail-noted', forms => \@both, with => 'WITH (lists = 1)', held => $insert . 100 },
		{ point => 'first-page', forms => \@both, rows => 0, locked => 1, held => $insert . 31 },
		(map { { point => $_, name => "$_, split", forms => \@both, rows => 0,
					held => $many } } qw(move-begun page-claimed page-written list-split page-freed
					move-ended probes-written)),
		{ point => 'list-replaced', name => 'list-replaced, split refused', forms => \@both, rows => 0, held => $same },
		(map { { point => $_, name => "$_, VACUUM", forms => \@both, before => $third,
					held => $vacuum } } qw(rows-dead move-begun page-claimed page-written list-replaced
					page-freed move-ended counts-written)),
		{ point => 'some-dead', forms => \@both, before => $third, locked => 1, held => $vacuum },
		{ point => 'page-claimed', name => 'page-claimed, VACUUM, freed pages', forms => \@both,
			before => "$third; $vacuum; DELETE FROM \$t WHERE id % 3 = 1", held => $vacuum },
		{ point => 'extent-linked', forms => ['plain'], rows => 1000, with => 'WITH (lists = 1)', before => $third,
			held => $vacuum },
		(map { { point => "quiver-rows-$_", forms => ['coded'], rows => 0, before => $many,
					held => $vacuum } } qw(begun merged)),
		# row pages that were made of one row begin again
		(map { { point => "quiver-rows-$_", name => "quiver-rows-$_, again", forms => ['included'], rows => 0,
					before => "${insert}31; $vacuum; ALTER TABLE \$t SET (fillfactor = 100); $many",
					held => $vacuum } } qw(leaving hidden left begun merged)),
		{ point => 'quiver-rows-page-added', forms => ['coded'], rows => 0, before => "$many; $vacuum", locked => 1,
			held => 'INSERT INTO $t (id, v) SELECT 5000 + i, v FROM $b, generate_series(1, 3) i' },
		{ point => 'quiver-rows-cleared', forms => ['coded'], before => $third, held => $vacuum },
		{ point => 'curve-written', forms => \@both,
			held => q{DO $$BEGIN PERFORM quiver_calibrate('${t}_idx', 'SELECT v FROM $b LIMIT 40'); END$$} },
		{ point => 'left-page-freed', forms => \@both, rows => 0, before => $leave, held => $vacuum }
	]);
