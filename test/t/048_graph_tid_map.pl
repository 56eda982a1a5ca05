# What a session keeps of a sweep, where the rows of a graph are, is of no harm when rows
# come and go: the same rows as by an exact scan, and a new sweep when it does not do.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('tid_map');
my ($dims, $rows, $clusters, $queries) = (16, 6000, 24, 12);

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
make_queries($node, table => 'queries', dims => $dims, n => $queries, clusters => $clusters);
$node->safe_psql('postgres', "ALTER TABLE t ADD place int; UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters); VACUUM FULL t;"
	  . 'CREATE INDEX ON t (place); CREATE INDEX t_v ON t USING quiver_graph (v vector_l2_ops); ANALYZE t');

# the two places that are farthest from each query: a graph comes to them late
my $reference = new_session($node, 'postgres');
session_sql($reference, 'SET enable_indexscan = off');
my @far = map {
	session_sql($reference, "SELECT string_agg(place::text, ', ') FROM "
		  . "(SELECT place FROM t GROUP BY place ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = $_)) DESC LIMIT 2) p")
} 1 .. $queries;

sub answer
{
	my ($session, $q) = @_;

	return session_sql($session, "SELECT string_agg(d::text, ' ') FROM (SELECT v <-> (SELECT v FROM queries WHERE id = $q) AS d FROM t "
		  . "WHERE place IN ($far[$q - 1]) ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT 10) x");
}

# How many of the queries are answered as by an exact scan, and the nodes that each reads.
sub compare
{
	my ($session, $name) = @_;
	my ($same, $swept, @nodes) = (0, 0);

	foreach my $q (1 .. $queries)
	{
		$same += answer($session, $q) eq answer($reference, $q);
		my $plan = session_sql($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t "
			  . "WHERE place IN ($far[$q - 1]) ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT 10");
		$swept += $plan =~ /Strategies: .*sweep/;
		push @nodes, $plan =~ /Nodes Read: (\d+)/ ? $1 : 0;
	}
	is($same, $queries, "$name: the rows of an exact scan");
	is($swept, $queries, "$name: by sweeps");
	return @nodes;
}

sub count_of
{
	return $node->safe_psql('postgres', "SELECT count(*) FROM t $_[0]");
}

my $settings = 'SET enable_seqscan = off; SET enable_sort = off';
my $session = new_session($node, 'postgres');
session_sql($session, $settings);
my $first = session_sql($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t "
	  . "WHERE place IN ($far[0]) ORDER BY v <-> (SELECT v FROM queries WHERE id = 1) LIMIT 10");
$first =~ /Nodes Read: (\d+)/;
cmp_ok($1, '>=', $rows, "the first sweep of a session reads every node ($1)");

my @nodes = compare($session, 'no change');
is(scalar(grep { $_ >= 0.3 * $rows } @nodes), 0, "no change: members' nodes only are read (@nodes)");

# a few rows that the map does not know, one of them the nearest
$node->safe_psql('postgres', "INSERT INTO t (id, v, place) SELECT $rows + q.id, q.v, p.place FROM queries q, (SELECT DISTINCT place FROM t) p "
	  . "WHERE q.id <= 3");
@nodes = compare($session, 'rows inserted');
is(scalar(grep { $_ >= 0.3 * $rows } @nodes), 0, "rows inserted: members' nodes only are read");

# rows that change places: their old nodes have others, or none
$node->safe_psql('postgres', "DELETE FROM t WHERE id % 20 = 0");
$node->safe_psql('postgres', "VACUUM t");
my $freed = count_of('');
$node->safe_psql('postgres', "INSERT INTO t (id, v, place) SELECT 100000 + o.id, n.v, o.place FROM t o JOIN t n ON n.id = $rows + 1 - o.id WHERE o.id % 25 = 1");
cmp_ok(count_of("WHERE id > 100000 AND ctid < '(20,0)'"), '>', 0, 'heap TIDs are used again');
compare($session, 'heap TIDs used again');

# so many new ones that another sweep is due
$node->safe_psql('postgres', "INSERT INTO t (id, v, place) SELECT 200000 + id, v, (place + 7) % $clusters FROM t WHERE id < 4000");
@nodes = compare($session, 'many rows inserted');
cmp_ok($nodes[-1], '<', 0.3 * count_of(''), "many rows inserted: a new sweep has learned where they are (@nodes)");

# many rows of one node: its further slots
$node->safe_psql('postgres', "UPDATE t SET v = (SELECT v FROM t WHERE id = 7) WHERE id % 9 = 0");
compare($session, 'many equal rows');
compare($session, 'many equal rows, again');

# rows that are in no node: not every search of them is a sweep of all nodes
$node->safe_psql('postgres', "UPDATE t SET v = NULL WHERE id % 2 = 0");
$node->safe_psql('postgres', 'VACUUM t');
compare($session, 'no values');
@nodes = compare($session, 'no values, again');
cmp_ok((sort { $a <=> $b } @nodes)[$queries / 2], '<', 0.5 * count_of('WHERE v IS NOT NULL'), "no values: members' nodes only are read (@nodes)");
end_session($session);

# Rows that are cheaper to read from the table than all nodes: after a while they have cost as
# much as to read these and keep a code of each, and then that is done.
$node->safe_psql('postgres', "CREATE TABLE s AS SELECT id, v, place FROM t WHERE id < 6000 AND v IS NOT NULL");
$node->safe_psql('postgres', "INSERT INTO s SELECT 10000 + id, v, place FROM s; CREATE INDEX ON s (place); CREATE INDEX s_v ON s USING quiver_graph (v vector_l2_ops); ANALYZE s");
$session = new_session($node, 'postgres');
session_sql($session, $settings);
my $where = session_sql($reference, "SELECT 'place = ' || place FROM s GROUP BY place HAVING count(*) BETWEEN 201 AND 260 "
	  . "ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = 1)) DESC LIMIT 1");
my $query = "FROM s WHERE $where ORDER BY v <-> (SELECT v FROM queries WHERE id = 1) LIMIT 10";
my $expected = session_sql($reference, "SELECT string_agg(d::text, ' ') FROM (SELECT v <-> (SELECT v FROM queries WHERE id = 1) AS d $query) x");

# The strategies of so many searches, each of which has to find the rows of an exact scan.
sub strategies
{
	my $different = 0;
	my @strategies = map {
		$different += session_sql($session, "SELECT string_agg(d::text, ' ') FROM (SELECT v <-> (SELECT v FROM queries WHERE id = 1) AS d $query) x") ne $expected;
		session_sql($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id $query") =~ /Strategies: (.*)/;
	} 1 .. $_[0];
	is($different, 0, "$_[1]: the rows of an exact scan");
	return join(' / ', @strategies);
}

like(strategies(40, 'few members'), qr{^[a-z, ]*exact / .*sweep$}, 'few members: from the table, until their nodes are known');
$node->safe_psql('postgres', 'UPDATE s SET place = place');
like(strategies(1, 'all rows have moved'), qr{exact}, 'all rows have moved: from the table again');
like(strategies(40, 'all rows have moved, again'), qr{sweep$}, 'all rows have moved: until their new nodes are known');
end_session($session);

# no memory for a map
my $small = new_session($node, 'postgres');
session_sql($small, "$settings; SET quiver.cache_mem = '64kB'");
compare($small, 'little memory');
@nodes = compare($small, 'little memory, again');
cmp_ok((sort { $a <=> $b } @nodes)[0], '>=', count_of('WHERE v IS NOT NULL') / 3, "little memory: all nodes are read (@nodes)");
end_session($small);
end_session($reference);

# Pages of the table that are found without the server's part of a fetch are pruned all the same, by short searches too.
$node->safe_psql('postgres', 'CREATE TABLE pruned (id int, v vector(8), mark int) WITH (fillfactor = 40, autovacuum_enabled = false)');
$node->safe_psql('postgres', "INSERT INTO pruned SELECT i, (SELECT array_agg(hashint4(i * 8 + j) % 1000) FROM generate_series(1, 8) j)::vector, 0 FROM generate_series(1, 2000) i");
$node->safe_psql('postgres', 'CREATE INDEX pruned_v ON pruned USING quiver_graph (v vector_l2_ops); CREATE TABLE asked AS SELECT * FROM pruned; ANALYZE pruned');
my $short = new_session($node, 'postgres');
session_sql($short, 'SET enable_seqscan = off; SET enable_sort = off');
my $searches = q{DO $$ BEGIN FOR i IN 1 .. 1500 LOOP
	PERFORM id FROM pruned ORDER BY v <-> (SELECT v FROM asked WHERE id = 1 + i % 2000) LIMIT 3; END LOOP; END $$};
session_sql($short, $searches);
$node->safe_psql('postgres', 'UPDATE pruned SET mark = mark + 1');
session_sql($short, $searches);
session_sql($short, 'SELECT pg_stat_force_next_flush()');
my $dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'pruned'";
$node->poll_query_until('postgres', "SELECT ($dead) <= 1800");
cmp_ok($node->safe_psql('postgres', $dead), '<=', 1800, 'short searches prune pages');
end_session($short);

done_testing();
