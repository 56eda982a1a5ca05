# Scans by sketches, which are made of indexes too large for memory: their recall and order, what
# they read, what inserts, splits and VACUUM leave them, and damaged pages of sketches.

use strict;
use warnings FATAL => 'all';
use QuiverDamage;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_sketches', no_checksums => 1, conf => "fsync = off\nshared_buffers = 64MB\n");
my ($dims, $rows) = (272, 4000);
my $all = 'SET quiver.iterative_scan = relaxed_order;';
my $page = 8192;
my ($sketches, $records) = (10, 8);
my $sketched = 'SET quiver.sketches = on;';

# The table is in memory after it, the index is not.
sub cool
{
	$node->restart;
	$node->safe_psql('postgres', 'SELECT count(v) FROM t');
}

# Blocks by kind of an index whose pages have been written.
sub blocks_by_kind
{
	my ($index) = @_;
	my $image = read_image($node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('$index')"));
	my %blocks;

	push @{ $blocks{ kind_at(\$image, $_) } }, $_ foreach 0 .. length($image) / $page - 1;
	return \%blocks;
}

$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');
make_rows($node, table => 'source', dims => $dims, first => 1, last => $rows * 2);
make_queries($node, table => 'queries', dims => $dims, n => 60);

foreach my $m (grep { $_->{type} eq 'vector' && $_->{name} ne 'l1' } @METRICS)
{
	my %common = (node => $node, op => $m->{op}, queries => 'queries', table => 't', index => 't_idx');

	$node->safe_psql('postgres', "CREATE TABLE t AS SELECT * FROM source WHERE id <= $rows; "
		  . "CREATE INDEX t_idx ON t USING quiver_ivf (v $m->{opclass}); CHECKPOINT");
	check_ok($node, 't_idx', $rows, "$m->{name}, built");
	cool();
	# the target is 0.95; these are 600 neighbors
	recall_ok(0.93, "$m->{name}, by sketches", %common, set => "$sketched SET quiver.topk_way = index;");

	cool();
	my $in_memory = sql_value($node, qq{
$sketched SET enable_seqscan = off; SET enable_sort = off; SET quiver.topk_way = index;
CREATE TEMP TABLE before AS SELECT relblocknumber FROM pg_buffercache WHERE false;
CREATE TEMP TABLE found AS SELECT id FROM t ORDER BY v $m->{op} (SELECT v FROM queries WHERE id = 1) LIMIT 10;
INSERT INTO before SELECT relblocknumber FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t_idx');
INSERT INTO found SELECT r.id FROM queries q,
	LATERAL (SELECT id FROM t ORDER BY v $m->{op} q.v LIMIT 10) r WHERE q.id > 1;
SELECT string_agg(relblocknumber::text, ' ') FROM (
	SELECT relblocknumber FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t_idx')
	EXCEPT SELECT relblocknumber FROM before) x});
	my $blocks = blocks_by_kind('t_idx');
	my %new = map { $_ => 1 } split ' ', (split /\n/, $in_memory)[-1];
	cmp_ok(scalar(grep { $new{$_} } @{ $blocks->{$sketches} }), '>', 0, "$m->{name}: scans read sketches");
	is(scalar(grep { $new{$_} } @{ $blocks->{$records} }), 0, "$m->{name}: and no records");

	# order, and every row
	my $strict = scan_of(%common, query => 2, limit => 500, set => $sketched);
	is("$strict->{count} $strict->{distinct} $strict->{inversions}", '500 500 0',
		"$m->{name}: 500 rows in strict order");
	my $more = scan_of(%common, query => 2, limit => 150,
		set => "$sketched SET quiver.iterative_scan = off; SET quiver.probes = 60;");
	is("$more->{count} $more->{distinct} $more->{inversions}", '150 150 0',
		"$m->{name}: more rows than are found together, in order");
	my $relaxed = scan_of(%common, query => 2, set => "$sketched $all");
	is("$relaxed->{count} $relaxed->{distinct}", "$rows $rows", "$m->{name}: every row once");

	# lists are filled, split, emptied and written anew
	$node->safe_psql('postgres', "INSERT INTO t SELECT * FROM source WHERE id > $rows; DELETE FROM t WHERE id % 3 = 0; "
		  . "VACUUM (INDEX_CLEANUP ON) t; CHECKPOINT");
	check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), "$m->{name}, changed");
	recall_ok(0.9, "$m->{name}, changed, by sketches", %common, set => $sketched);
	is(join(' ', index_facts($node, 't_idx', 'lost_pages')), 0, "$m->{name}, changed: no page is lost");
	$node->safe_psql('postgres', 'DROP TABLE t');
}

# an index on nothing, and narrow vectors or few bits, which have none
$node->safe_psql('postgres', "CREATE TABLE t (LIKE source); CREATE INDEX t_idx ON t USING quiver_ivf (v); "
	  . "INSERT INTO t SELECT * FROM source WHERE id <= 3000; CHECKPOINT");
check_ok($node, 't_idx', 3000, 'grown from nothing');
recall_ok(0.92, 'grown from nothing, by sketches', node => $node, op => '<->', queries => 'queries', table => 't',
	index => 't_idx', set => $sketched);
$node->safe_psql('postgres', "CREATE INDEX four ON t USING quiver_ivf (v) WITH (bits = 4); "
	  . "CREATE INDEX narrow ON t USING quiver_ivf ((subvector(v, 1, 240)::vector(240))); CHECKPOINT");
ok(!blocks_by_kind($_)->{$sketches}, "$_: no sketches") foreach qw(four narrow);
$node->safe_psql('postgres', 'DROP INDEX four, narrow');

# lists that a scan does not go on from
$node->safe_psql('postgres', 'CREATE TABLE flat AS SELECT * FROM source; '
	  . 'CREATE INDEX flat_idx ON flat USING ivfflat (v vector_l2_ops) WITH (lists = 40); CHECKPOINT');
my $flat = scan_of(node => $node, op => '<->', table => 'flat', query => 2,
	set => "$sketched SET ivfflat.probes = 10;");
cmp_ok($flat->{count}, '>', 200, "ivfflat: $flat->{count} rows of ten lists");
is($flat->{inversions}, 0, 'ivfflat: in order');
recall_ok(0.85, 'ivfflat, by sketches', node => $node, op => '<->', queries => 'queries', table => 'flat',
	index => 'flat_idx', set => "$sketched SET ivfflat.probes = 10;");

# by size: an index that is larger than half of what is kept in memory; sketches leave
# more rows to be read
sub rows_fetched
{
	my ($plan) = sql_value($node, "SET enable_seqscan = off; SET enable_sort = off; SET quiver.topk_scan = on; $_[0] "
		  . 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t ORDER BY v <-> (SELECT v '
		  . 'FROM queries WHERE id = 3) LIMIT 10');
	my ($rows) = $plan =~ /Rows Fetched: (\d+)/ or die $plan;
	return $rows;
}

$node->append_conf('postgresql.conf', "shared_buffers = 1MB\n");
$node->restart;
my ($by_sketch, $by_record) = map { rows_fetched("SET quiver.sketches = $_;") } qw(on off);
cmp_ok($by_sketch, '>', $by_record, "$by_sketch rows fetched by sketches, $by_record by records");
is(rows_fetched("SET effective_cache_size = '8kB';"), $by_sketch, 'sketches of an index larger than the cache');
is(rows_fetched("SET effective_cache_size = '1GB';"), $by_record, 'none of a smaller one');

# Values out of line: a search that reads from disk asks for their pages in advance, whatever has
# become of the rows.
make_rows($node, table => 'wide', dims => 600, first => 1, last => 3000);
make_queries($node, table => 'wide_queries', dims => 600, n => 40);
$node->safe_psql('postgres', q{
ALTER TABLE wide ADD note int;
CREATE INDEX wide_idx ON wide USING quiver_ivf (v vector_l2_ops);
UPDATE wide SET note = 1 WHERE id % 5 = 0;
UPDATE wide SET note = 2 WHERE id % 10 = 0;
DELETE FROM wide WHERE id % 7 = 0;
ALTER TABLE wide ADD late int;
CHECKPOINT});
foreach my $concurrency (16, 0)
{
	$node->restart;
	recall_ok(0.9, "values out of line, $concurrency reads at a time", node => $node, op => '<->',
		queries => 'wide_queries', table => 'wide', index => 'wide_idx',
		set => "$sketched SET effective_io_concurrency = $concurrency;");
}
$node->safe_psql('postgres', 'VACUUM wide');
$node->restart;
recall_ok(0.9, 'values out of line, after VACUUM', node => $node, op => '<->', queries => 'wide_queries',
	table => 'wide', index => 'wide_idx', set => $sketched);

# damage
my $blocks = blocks_by_kind('t_idx');
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('t_idx')");
my $scans = "$sketched " . 'SET enable_seqscan = off; SET enable_sort = off; '
	  . 'SELECT count(*) FROM queries q, LATERAL (SELECT id FROM t ORDER BY v <-> q.v LIMIT 10) r';
my @damage = (
	[ 'factors that are no numbers', sub { put($_[0], $_ * $page + 48,
				pack('VV', 0x7fc00000, 0x7fc00000)) foreach @{ $blocks->{$sketches} } }, 1 ],
	[ 'sketches of another list', sub { put($_[0], $_ * $page + 32,
				pack('V', 60000)) foreach @{ $blocks->{$sketches} } }, 1 ],
	[ 'sketches of another page', sub { put($_[0], $_ * $page + 40, pack('V', 77)) foreach @{ $blocks->{$sketches} } },
		1 ],
	[ 'records in their place', sub { put($_[0], $_ * $page + 26,
				pack('C', $records)) foreach @{ $blocks->{$sketches} } }, 1 ],
	[ 'noise for pages', sub { put($_[0], $_ * $page, noise($page, $_)) foreach @{ $blocks->{$sketches} } }, 1 ]);
my $sound = do { $node->stop; read_image($file) };
foreach (@damage)
{
	my ($what, $change, $at_least) = @$_;
	my $image = $sound;

	$change->(\$image);
	write_image($file, $image);
	$node->start;
	my $seen = damage_noticed(
		node => $node, what => $what, index => 't_idx', message => qr/./,
		statements => [
			[ 'scans', $scans ],
			[ 'check', "SELECT quiver_check('t_idx')" ],
			[ 'insert', "BEGIN; INSERT INTO t SELECT * FROM source WHERE id BETWEEN 4000 AND 4100; ROLLBACK" ] ]);
	cmp_ok($seen, '>=', $at_least, "$what: noticed");
	$node->stop('immediate');
}
write_image($file, $sound);
$node->start;
clean_log_ok($node);

done_testing();
