# Many rows with the same vector: every one is indexed, found and vacuumed.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('duplicates');

# All of them by iterative search: how many distinct rows, in order of distance.
sub all_rows
{
	my ($table, $query, $limit) = @_;
	return sql_value(
		$node, qq{
SET enable_seqscan = off; SET hnsw.iterative_scan = strict_order;
SET hnsw.max_scan_tuples = 1000000; SET hnsw.scan_mem_multiplier = 100;
SELECT count(*), count(DISTINCT id), bool_and(d >= before)
	FROM (SELECT id, d, lag(d, 1, 0) OVER () AS before
		FROM (SELECT id, v <-> '$query' AS d FROM $table ORDER BY v <-> '$query' LIMIT $limit) x) y});
}

foreach my $built (1, 0)
{
	my $how = $built ? 'built' : 'inserted';
	my $index = 'CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops);';
	my $equal = "INSERT INTO t SELECT i, '[1,2,3]' FROM generate_series(1, 3000) i;";
	my $ten = "INSERT INTO t SELECT i, ARRAY[i % 10, 1, 0]::vector FROM generate_series(1, 10000) i;";

	# all rows equal
	$node->safe_psql('postgres',
		'CREATE TABLE t (id int, v vector(3));' . ($built ? $equal . $index : $index . $equal));
	check_ok($node, 't_idx', 3000, "all equal, $how");
	is(sql_value($node, "SELECT nodes FROM quiver_index_info('t_idx')"), 1, "all equal, $how: one node");
	is(all_rows('t', '[1,1,1]', 5000), '3000|3000|t', "all equal, $how: every row is returned");
	# a search that is not iterative returns them, too: they are one candidate
	is(sql_value($node, "SET enable_seqscan = off; "
			  . "SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> '[1,2,3]' LIMIT 200) x"),
		200, "all equal, $how: LIMIT beyond ef_search");
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 <> 0; VACUUM t');
	check_ok($node, 't_idx', 1000, "all equal, $how, two thirds vacuumed");
	is(all_rows('t', '[1,1,1]', 5000), '1000|1000|t', "all equal, $how, two thirds vacuumed: the rest is returned");
	$node->safe_psql('postgres', "INSERT INTO t SELECT i, '[1,2,3]' FROM generate_series(3001, 5000) i");
	check_ok($node, 't_idx', 3000, "all equal, $how, inserted again");
	is(all_rows('t', '[1,1,1]', 5000), '3000|3000|t', "all equal, $how, inserted again: every row is returned");
	$node->safe_psql('postgres', 'DELETE FROM t; VACUUM t');
	check_ok($node, 't_idx', 0, "all equal, $how, emptied");
	$node->safe_psql('postgres', 'DROP TABLE t');

	# ten distinct values
	$node->safe_psql('postgres',
		'CREATE TABLE t (id int, v vector(3));' . ($built ? $ten . $index : $index . $ten));
	check_ok($node, 't_idx', 10000, "ten values, $how");
	is(sql_value($node, "SELECT nodes FROM quiver_index_info('t_idx')"), 10, "ten values, $how: ten nodes");
	is(all_rows('t', '[4.2,1,0]', 20000), '10000|10000|t', "ten values, $how: every row is returned");
	is( sql_value($node, "SET enable_seqscan = off; SELECT count(*), min(v::text), max(v::text) FROM (SELECT v FROM t "
			  . "ORDER BY v <-> '[7.1,1,0]' LIMIT 1000) x"),
		'1000|[7,1,0]|[7,1,0]', "ten values, $how: the nearest value's rows come first");
	$node->safe_psql('postgres', "DELETE FROM t WHERE id % 10 = 7 OR id > 5000; VACUUM t");
	check_ok($node, 't_idx', 4500, "ten values, $how, one and half of the others vacuumed");
	is(all_rows('t', '[4.2,1,0]', 20000), '4500|4500|t', "ten values, $how, vacuumed: the rest is returned");
	cmp_ok(index_bytes($node, 't_idx'), '<', 1000000, "ten values, $how: rows are 6 bytes each");
	$node->safe_psql('postgres', 'DROP TABLE t');
}

# Duplicates among others do not spoil the graph.
make_rows($node, table => 't', dims => 12, first => 1, last => 4000);
$node->safe_psql('postgres',
	"INSERT INTO t SELECT 10000 + i, 0, qt_vector(i % 40 + 1, 12)::vector FROM generate_series(1, 4000) i;"
	  . 'CREATE INDEX t_idx ON t USING hnsw (v vector_cosine_ops);'
	  . "INSERT INTO t SELECT 20000 + i, 0, qt_vector(i % 40 + 1, 12)::vector FROM generate_series(1, 2000) i;");
make_queries($node, table => 'queries', dims => 12);
recall_ok(0.95, 'half duplicates', node => $node, op => '<=>', table => 't', index => 't_idx',
	queries => 'queries', ef => 60);
check_ok($node, 't_idx', 10000, 'half duplicates');

# Several sessions insert the same vector at once.
$node->safe_psql('postgres', 'CREATE SEQUENCE ids START 100000');
my $bg = background_pgbench($node,
	"INSERT INTO t VALUES (nextval('ids'), 1, qt_vector(floor(random() * 3)::int + 1, 12)::vector);\n", clients => 4);
wait_until_true($node, 'SELECT last_value > 101000 FROM ids', 'four sessions inserted a thousand rows');
stop_background($bg);
my $rows = sql_value($node, 'SELECT count(*) FROM t');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
check_ok($node, 't_idx', $rows, 'concurrent duplicates');
is( sql_value($node, 'SET enable_seqscan = off; SET hnsw.iterative_scan = strict_order; '
		  . 'SET hnsw.max_scan_tuples = 1000000;'
		  . 'SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY v <=> qt_vector(1, 12)::vector LIMIT 400) x'),
	400, 'concurrent duplicates: LIMIT rows, each once');

# quiver_check() beside inserts, of new and of equal values: it lets them go on, and is not misled.
$node->safe_psql('postgres',
	'CREATE TABLE busy (id int, v vector(12)); CREATE TABLE busy_plain (id int, v sparsevec(12)); '
	  . 'CREATE SEQUENCE busy_ids;'
	  . 'CREATE INDEX busy_idx ON busy USING quiver_graph (v vector_l2_ops);'
	  . 'CREATE INDEX busy_plain_idx ON busy_plain USING quiver_graph (v sparsevec_l2_ops)');
my $busy = background_pgbench($node, q{
SELECT nextval('busy_ids') AS i \\gset
INSERT INTO busy VALUES (:i, qt_vector((:i % 3) * (:i % 400), 12)::vector);
INSERT INTO busy_plain VALUES (:i, qt_vector((:i % 3) * (:i % 400), 12)::vector::sparsevec);
}, clients => 4);
wait_until_true($node, 'SELECT last_value > 200 FROM busy_ids', 'inserts beside the checks');
my ($passed, $first) = (0, sql_value($node, 'SELECT last_value FROM busy_ids'));
foreach (1 .. 15)
{
	foreach my $index ('busy_idx', 'busy_plain_idx')
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('$index')");
		$passed++ if $rc == 0;
		diag($err) if $rc != 0;
	}
}
cmp_ok(sql_value($node, 'SELECT last_value FROM busy_ids'), '>', $first + 100, 'inserts went on');
is($passed, 30, 'every check passed');
stop_background($busy);
check_ok($node, 'busy_idx', sql_value($node, 'SELECT count(*) FROM busy'), 'at rest');
check_ok($node, 'busy_plain_idx', sql_value($node, 'SELECT count(*) FROM busy_plain'), 'at rest');

clean_log_ok($node);
$node->stop;
done_testing();
