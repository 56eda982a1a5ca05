# Graphs, held after each record of WAL that their README lists: what others find meanwhile, and
# what is left when the statement goes on, is canceled, or the postmaster is killed.

use strict;
use warnings FATAL => 'all';
use QuiverInjection;
use QuiverTest;
use Test::More;

my $node = injection_node('graph_injection');

# Codes; values in nodes; values of two pieces, on pages of their own.
my %forms = (
	coded => { type => 'vector(16)', using => 'hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 32)', op => '<->',
		rows => 120 },
	plain => { type => 'vector(16)', using => 'hnsw (v vector_l1_ops) WITH (m = 4, ef_construction = 32)', op => '<+>',
		rows => 120 },
	apart => { type => 'sparsevec(1500)', using => 'quiver_graph (v sparsevec_l2_ops) '
		  . 'WITH (m = 4, ef_construction = 32)', op => '<->', rows => 30 },
	# a page has 32 of its entry points
	wide => { type => 'vector(1024)', using => 'quiver_graph (v vector_l2_ops) WITH (m = 4, ef_construction = 32)',
		op => '<->', rows => 236 });

$node->safe_psql('postgres', q{
CREATE TABLE base_coded AS SELECT id, qt_vector(id, 16)::vector(16) AS v FROM generate_series(1, 1200) id;
CREATE TABLE base_plain AS TABLE base_coded;
CREATE TABLE base_wide AS SELECT id, (x || x)::vector(1024) AS v FROM (SELECT id, x || x AS x FROM
	(SELECT id, v || v || v || v || v || v || v || v || v || v || v || v || v || v || v || v AS x
		FROM base_plain WHERE id <= 1100) a) b;
CREATE TABLE base_apart AS SELECT id, qt_vector(id, 1500)::vector::sparsevec(1500) AS v
	FROM generate_series(1, 130) id});

my @inline = qw(coded plain);
my @all = qw(coded plain apart);
my $insert = 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id BETWEEN 31 AND ';
my $same = 'INSERT INTO $t (id, v) SELECT 1000 + i, v FROM $b, generate_series(1, %d) i WHERE id = 107';
my $vacuum = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) $t';
my $size = 'DROP TABLE IF EXISTS size_$t; CREATE TABLE size_$t AS SELECT pg_relation_size(\'${t}_idx\') AS bytes';
my $same_size = 'SELECT pg_relation_size(\'${t}_idx\') = bytes FROM size_$t';
# rows become entry points by chance
my $fill_entries = q{DO $$DECLARE next int := 337; BEGIN
WHILE (SELECT entry_points < 32 FROM quiver_index_info('${t}_idx')) LOOP
	INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id = next; next := next + 1;
END LOOP; END$$};
my $third = 'DELETE FROM $t WHERE id % 3 = 0';

every_line_ok(
	node => $node,
	folders => ['src/graph'],
	prefix => 'quiver-graph-',
	nothing => '0|',
	may_lose => 3,
	forms => \%forms,
	lines => [
		{ point => 'piece-stored', forms => ['apart'], held => $insert . 31 },
		{ point => 'value-page-added', name => 'value page full', forms => ['apart'], held => $insert . 35 },
		{ point => 'value-page-added', name => 'no value page', forms => ['apart'], rows => 0, held => $insert . 31 },
		{ point => 'another-page', forms => \@inline, held => $insert . 100 },
		{ point => 'another-page', name => 'freed page', forms => \@inline, before => "$third; $vacuum; $size",
			proof => $same_size, held => $insert . 100 },
		{ point => 'node-written', forms => \@all, held => $insert . 32 },
		{ point => 'edge-back', forms => \@all, held => $insert . 32 },
		{ point => 'entry-added', forms => \@all, rows => 0, held => $insert . 60 },
		{
			point => 'entry-added', name => 'page of entry points full', forms => ['wide'], before => $fill_entries,
			proof => "SELECT entry_points = 33 FROM quiver_index_info('\${t}_idx')",
			held => 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id > 600'
		},
		{ point => 'row-added', forms => \@all, held => sprintf($same, 1) },
		{ point => 'row-added', name => 'row added to a chain', forms => \@all, before => sprintf($same, 6),
			held => sprintf($same, 1) =~ s/1000/2000/r },
		{ point => 'tids-written', forms => \@all, before => sprintf($same, 3),
			held => sprintf($same, 1) =~ s/1000/2000/r },
		{ point => 'tids-linked', forms => \@all, before => sprintf($same, 3),
			held => sprintf($same, 1) =~ s/1000/2000/r },
		{
			point => 'tids-given-back', forms => \@all, before => sprintf($same, 3), via => 'tids-written',
			held => sprintf($same, 1) =~ s/1000/2000/r, between => sprintf($same, 1) =~ s/1000/3000/r
		},
		{ point => 'rows-dropped', forms => \@all, before => $third, held => $vacuum },
		{ point => 'node-deleted', forms => \@all, before => sprintf($same, 100)
			  . '; DELETE FROM $t WHERE id = 107 OR id > 1000', held => $vacuum },
		{ point => 'slot-unlinked', forms => \@all, before => sprintf($same, 100) . '; DELETE FROM $t WHERE id > 1050',
			held => $vacuum },
		{ point => 'edges-removed', forms => \@all, before => $third, held => $vacuum },
		{ point => 'anchor-moved', forms => \@all, before => $third, held => $vacuum },
		{ point => 'places-filled', forms => \@all, before => $third, held => $vacuum },
		{ point => 'entries-replaced', forms => \@all, before => $third, held => $vacuum },
		{ point => 'entry-dropped', forms => \@all, before => 'DELETE FROM $t WHERE id % 10 > 0', held => $vacuum },
		{ point => 'entries-emptied', forms => \@all, before => 'DELETE FROM $t', no_cursor => 1, held => $vacuum },
		{ point => 'piece-freed', forms => ['apart'], before => $third, held => $vacuum },
		{ point => 'value-page-listed', forms => ['apart'], before => $third, held => $vacuum },
		{ point => 'slot-freed', forms => \@all, before => $third, held => $vacuum },
		{ point => 'counts-written', forms => \@inline, before => $third, held => $vacuum },
		{ point => 'reached-written', forms => \@inline, before => $third, held => $vacuum },
		{ point => 'curve-written', forms => [ 'apart', 'wide' ],
			held => q{DO $$BEGIN PERFORM quiver_calibrate('${t}_idx', 'SELECT v FROM $b LIMIT 40'); END$$} },
		{ point => 'pools-written', forms => ['coded'], rows => 990,
			before => "$insert 90; DELETE FROM \$t WHERE id = 110", held => $vacuum }
	]);
