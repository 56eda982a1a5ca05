# Codes on row pages stay true whatever becomes of rows, heap TIDs and lists: the rows of an exact scan, and
# the same in an old session and in a fresh one.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use QuiverTopk;
use Test::More;

my $node = new_node('topk_changes');
my ($rows, $clusters, $queries) = (6000, 24, 8);

# with finer codes in the lists, and with sketches
foreach my $case ([ 'quiver_graph', 16 ], [ 'quiver_ivf', 16 ], [ 'quiver_ivf', 256 ])
{
	my ($am, $dims) = @$case;

	make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
	make_queries($node, table => 'queries', dims => $dims, n => $queries, clusters => $clusters);
	$node->safe_psql('postgres', 'ALTER TABLE t SET (autovacuum_enabled = off);'
		  . 'ALTER TABLE t ADD place int, ADD mark int;'
		  . "UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters); VACUUM FULL t;"
		  . "CREATE INDEX ON t (place); CREATE INDEX t_v ON t USING $am (v vector_l2_ops); ANALYZE t");

	my $exact = exact_session($node);
	my $old = topk_session($node);
	my $order = 'FROM t GROUP BY place ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = %s)) %s';
	my $places = sub {
		my $chosen = sprintf("SELECT place $order", @_);

		return 'place IN (' . session_sql($exact, "SELECT string_agg(place::text, ', ') FROM ($chosen) p") . ')';
	};
	my @asked = map {
		my $q = $_;
		map { { q => $q, where => $places->($q, $_) } } ('DESC LIMIT 2', 'LIMIT 1')
	} 1 .. $queries;

	my $compare = sub {
		my ($what, @more) = @_;
		my $fresh = topk_session($node);

		foreach my $way (qw(auto row_pages other_indexes))
		{
			session_sql($_, "SET quiver.topk_way = $way") foreach $old, $fresh;
			delete $_->{expected} foreach @asked;
			topk_recall_ok($old, $exact, "$am, $dims, $what, $way", 0.95, @asked);
			same_answers_ok($old, $fresh, "$am, $dims, $what, $way: a fresh session's rows", @asked);
		}
		# all rows of some places: none is missing
		session_sql($old, 'SET quiver.iterative_scan = relaxed_order');
		topk_ok($old, $exact, "$am, $dims, $what: all rows of two places", %{ $asked[0] }, k => 10000, relaxed => 1);
		session_sql($old, 'RESET quiver.iterative_scan');
		end_session($fresh);
	};
	my $change = sub { $node->safe_psql('postgres', $_[0]) };

	$compare->('no change');
	$change->("INSERT INTO t (id, v, place) SELECT $rows + q.id, q.v, p.place
		FROM queries q, (SELECT DISTINCT place FROM t) p WHERE q.id <= 3");
	$compare->('rows inserted');
	$change->('DELETE FROM t WHERE id % 20 = 0');
	$compare->('rows deleted');
	$change->('VACUUM t');
	$compare->('vacuum');
	$change->("INSERT INTO t (id, v, place) SELECT 100000 + o.id, n.v, o.place
		FROM t o JOIN t n ON n.id = $rows + 1 - o.id WHERE o.id % 25 = 1");
	cmp_ok(sql_value($node, "SELECT count(*) FROM t WHERE id > 100000 AND ctid < '(20,0)'"),
		'>', 0, "$am, $dims: heap TIDs are used again");
	$compare->('heap TIDs used again');
	$change->("INSERT INTO t (id, v, place) SELECT 200000 + id, v, (place + 7) % $clusters FROM t WHERE id < 4000");
	$change->('UPDATE t SET v = (SELECT v FROM t WHERE id = 7 LIMIT 1) WHERE id % 9 = 0;'
		  . 'UPDATE t SET mark = 1 WHERE id % 5 = 0');
	$compare->('many rows inserted, many equal rows');
	$change->('BEGIN; UPDATE t SET place = 0, v = NULL; ROLLBACK');
	$compare->('all rows changed and rolled back');
	$change->('UPDATE t SET v = NULL WHERE id % 2 = 0');
	$change->('VACUUM t');
	$compare->('no values');
	check_ok($node, 't_v');
	$change->('TRUNCATE t');
	$compare->('no rows');
	end_session($_) foreach $old, $exact;
	$change->('DROP TABLE t, queries');
}

# Pages of the table that are found without the server's part of a fetch are pruned all the same, by short
# searches too.
$node->safe_psql('postgres', $_) foreach
	'CREATE TABLE pruned (id int, v vector(8), mark int) WITH (fillfactor = 40, autovacuum_enabled = false)',
	'INSERT INTO pruned SELECT i, (SELECT array_agg(hashint4(i * 8 + j) % 1000) FROM generate_series(1, 8) j)::vector, 0
		FROM generate_series(1, 2000) i',
	'CREATE INDEX pruned_v ON pruned USING quiver_graph (v vector_l2_ops)',
	'CREATE TABLE asked AS SELECT * FROM pruned', 'ANALYZE pruned';
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
