# Lists that were split again and again, of an index made before its rows: they are coded
# as finely as those of a build, whatever the first list was like, since a split reads
# from the table what codes tell no more; and what a split may find there.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_growth');
my ($dims, $rows) = (64, 6000);

# 40 clusters, 50 times as far from each other as rows are within one
$node->safe_psql('postgres', qq{
CREATE FUNCTION point(i int) RETURNS float4[] LANGUAGE sql IMMUTABLE AS \$\$
	SELECT array_agg((100 * qt_uniform(i % 40 * 1000 + j, 7) + 2 * qt_uniform(i * 1000 + j, 8))::float4 ORDER BY j)
	FROM generate_series(1, $dims) j \$\$;
CREATE TABLE source AS SELECT i AS id, point(i)::vector($dims) AS v FROM generate_series(1, $rows) i;
CREATE TABLE queries AS SELECT id, v FROM source WHERE id <= 40});

# Recall after growing from nothing, in statements of 50 and of 3,000 rows.
sub grown
{
	my (%a) = @_;

	$node->safe_psql('postgres', "CREATE TABLE grown (id int, v vector($dims)); $a{storage}"
		  . "CREATE INDEX grown_idx ON grown USING quiver_ivf ($a{column}) WITH (bits = $a{bits});"
		  . join('', map { "INSERT INTO grown SELECT * FROM source WHERE id > $_ * 50 AND id <= ($_ + 1) * 50;" } 0 .. 59)
		  . "INSERT INTO grown SELECT * FROM source WHERE id > 3000;");
	recall_ok(0.95, "$a{what}, $a{bits} bits", node => $node, table => 'grown', index => 'grown_idx',
		queries => $a{queries} // 'queries', op => '<->', column => $a{recall_column} // 'v');
	check_ok($node, 'grown_idx', $rows, "$a{what}, $a{bits} bits");
	my ($lists) = index_facts($node, 'grown_idx', 'lists');
	cmp_ok($lists, '>', 20, "$a{what}, $a{bits} bits: $lists lists");
	$node->safe_psql('postgres', 'DROP TABLE grown');
	return;
}

$node->safe_psql('postgres', "CREATE TABLE half_queries AS SELECT id, v::halfvec($dims) AS v FROM queries");
grown(what => 'a column', column => 'v', bits => $_, storage => '') foreach (8, 4, 2);
grown(what => 'out-of-line values', column => 'v', bits => 4, storage => 'ALTER TABLE grown ALTER v SET STORAGE EXTERNAL; ALTER TABLE grown SET (toast_tuple_target = 128);');
grown(what => 'an expression', column => "(v::halfvec($dims)) halfvec_l2_ops", bits => 4, storage => '',
	queries => 'half_queries', recall_column => "v::halfvec($dims)");

# Rows that are deleted and whose out-of-line values are gone; rows of others that have not
# committed, that did not, and that did since: a split takes them by their codes.
$node->safe_psql('postgres', qq{
CREATE TABLE gone (id int, v vector($dims));
ALTER TABLE gone ALTER v SET STORAGE EXTERNAL;
ALTER TABLE gone SET (toast_tuple_target = 128);
CREATE INDEX gone_idx ON gone USING quiver_ivf (v) WITH (bits = 2)});
my $other = new_session($node);
my $here = 0;
foreach my $round (0 .. 9)
{
	my $from = $round * 300;

	$node->safe_psql('postgres', "INSERT INTO gone SELECT * FROM source WHERE id > $from AND id <= $from + 100;"
		  . "DELETE FROM gone WHERE id > $from AND id <= $from + 40");
	session_sql($other, 'BEGIN');
	session_sql($other, "INSERT INTO gone SELECT * FROM source WHERE id > $from + 100 AND id <= $from + 200");
	# nobody's snapshot is older than the rows deleted now but the other's
	session_sql($other, $round % 2 ? 'COMMIT' : 'ROLLBACK') if $round % 4 < 2;
	my $toast = sql_value($node, "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'gone'");
	$node->safe_psql('postgres', "VACUUM $toast");
	$node->safe_psql('postgres', "INSERT INTO gone SELECT * FROM source WHERE id > $from + 200 AND id <= $from + 300");
	session_sql($other, $round % 2 ? 'COMMIT' : 'ROLLBACK') if $round % 4 >= 2;
	$here += 60 + 100 + ($round % 2 ? 100 : 0);
}
end_session($other);
is(sql_value($node, 'SELECT count(*) FROM gone'), $here, 'rows of the table');
check_ok($node, 'gone_idx', undef, 'rows gone or not committed');
my ($lists) = index_facts($node, 'gone_idx', 'lists');
cmp_ok($lists, '>', 8, "lists were split: $lists");
every_row_ok($here, 'rows gone or not committed', node => $node, table => 'gone', op => '<->', query => 1,
	set => 'SET quiver.iterative_scan = relaxed_order;');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) gone');
check_ok($node, 'gone_idx', $here, 'vacuumed');
recall_ok(0.95, 'rows gone or not committed', node => $node, table => 'gone', index => 'gone_idx', queries => 'queries', op => '<->');

clean_log_ok($node);
$node->stop;
done_testing();
