# The planner takes the index where it pays, without enable_seqscan = off, and
# only there.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('planner');
my $dims = 32;
my $query = "SELECT id FROM t ORDER BY v %s qt_vector(-1, $dims)::vector %s";

make_rows($node, table => 't', dims => $dims, first => 1, last => 10000);
make_rows($node, table => 'tiny', dims => $dims, first => 1, last => 40);

foreach my $am (qw(hnsw quiver_graph))
{
	foreach my $m (grep { $_->{type} eq 'vector' } @METRICS)
	{
		$node->safe_psql('postgres',
			"CREATE INDEX t_idx ON t USING $am (v $m->{opclass}); "
			  . "CREATE INDEX tiny_idx ON tiny USING $am (v $m->{opclass}); ANALYZE");
		uses_index_ok($node, sprintf($query, $m->{op}, 'LIMIT 10'), 't_idx', "$am $m->{name}: 10 of 10000 rows");
		uses_index_ok($node, sprintf($query, $m->{op}, 'LIMIT 1'), 't_idx', "$am $m->{name}: 1 of 10000 rows");
		uses_index_ok($node, "SELECT id FROM t WHERE category < 500 "
			  . "ORDER BY v $m->{op} qt_vector(-1, $dims)::vector LIMIT 5",
			't_idx', "$am $m->{name}: under a wide filter");
		foreach my $other (grep { $_ ne $m->{op} } ('<->', '<#>', '<=>', '<+>'))
		{
			unlike(sql_value($node, 'EXPLAIN ' . sprintf($query, $other, 'LIMIT 10')),
				qr/Index Scan/, "$am $m->{name}: not for $other");
		}
		unlike(sql_value($node, 'EXPLAIN ' . sprintf($query, $m->{op}, '')),
			qr/Index Scan/, "$am $m->{name}: not for all rows");
		unlike(sql_value($node, "EXPLAIN SELECT id FROM tiny "
				  . "ORDER BY v $m->{op} qt_vector(-1, $dims)::vector LIMIT 10"),
			qr/Index Scan/, "$am $m->{name}: not for 40 rows");
		unlike(sql_value($node, 'EXPLAIN ' . sprintf($query, $m->{op}, 'DESC LIMIT 10')),
			qr/Index Scan/, "$am $m->{name}: not for descending order");
		unlike(sql_value($node, "SET enable_seqscan = off; EXPLAIN SELECT count(*) FROM t"),
			qr/t_idx/, "$am $m->{name}: not without ORDER BY");
		$node->safe_psql('postgres', 'DROP INDEX t_idx, tiny_idx');
	}
}

# a btree on the filter wins when the filter is narrow
$node->safe_psql('postgres', 'CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops); '
	  . 'CREATE INDEX t_id ON t (id); ANALYZE t');
unlike(sql_value($node, "EXPLAIN SELECT id FROM t WHERE id BETWEEN 5 AND 9 "
		  . "ORDER BY v <-> qt_vector(-1, $dims)::vector LIMIT 5"),
	qr/t_idx/, 'a narrow filter has its own index');

# prepared, generic plan; lateral join; and a parameter of another kind
foreach my $mode (qw(force_generic_plan force_custom_plan))
{
	like(sql_value($node, "SET plan_cache_mode = $mode; "
			  . "PREPARE p(vector) AS SELECT id FROM t ORDER BY v <-> \$1 LIMIT 10;"
			  . "EXPLAIN EXECUTE p(qt_vector(-1, $dims)::vector)"), qr/Index Scan using t_idx/, "prepared, $mode");
}
uses_index_ok($node, 'SELECT * FROM tiny q, LATERAL (SELECT id FROM t ORDER BY t.v <-> q.v LIMIT 3) r', 't_idx',
	'lateral');
uses_index_ok($node, 'SELECT id FROM t ORDER BY v <-> (SELECT v FROM tiny WHERE id = 7) LIMIT 3', 't_idx',
	'sub-select');

# an index that was empty when it was made
$node->safe_psql('postgres', 'CREATE TABLE grown (LIKE t); '
	  . 'CREATE INDEX grown_idx ON grown USING hnsw (v vector_l2_ops);'
	  . 'INSERT INTO grown SELECT * FROM t LIMIT 5000; ANALYZE grown');
uses_index_ok($node, "SELECT id FROM grown ORDER BY v <-> qt_vector(-1, $dims)::vector LIMIT 10", 'grown_idx',
	'grown by inserts');

# a larger ef_search costs more
my @cost;
foreach my $ef (10, 100, 1000)
{
	my ($cost) = sql_value($node, "SET enable_seqscan = off; SET hnsw.ef_search = $ef; EXPLAIN "
		  . sprintf($query, '<->', 'LIMIT 10')) =~ /Custom Scan \(Quiver Top-K Scan\) on t  \(cost=([0-9]+\.[0-9]+)\./;
	push @cost, $cost;
}
cmp_ok($cost[0], '<', $cost[1], 'ef_search 100 costs more than 10');
cmp_ok($cost[1], '<', $cost[2], 'ef_search 1000 costs more than 100');

clean_log_ok($node);
$node->stop;
done_testing();
