# DELETE, UPDATE and VACUUM: recall stays, space is reused, an index that was
# emptied is usable.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('vacuum');
my ($dims, $rows) = (16, 1800);

make_queries($node, table => 'queries', dims => $dims);

foreach my $m (grep { $_->{type} eq 'vector' } @METRICS)
{
	my $what = $m->{name};
	my %common = (node => $node, op => $m->{op}, queries => 'queries', table => 't', index => 't_idx');

	make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
	$node->safe_psql('postgres', "CREATE INDEX t_idx ON t USING hnsw (v $m->{opclass})");
	my $built = index_bytes($node, 't_idx');

	# dead rows that are not vacuumed yet do not show
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 0');
	recall_ok(0.95, "$what, a third deleted", %common, ef => 60);
	check_ok($node, 't_idx', $rows, "$what, a third deleted");

	$node->safe_psql('postgres', 'VACUUM t');
	is(sql_value($node, "SELECT row_count, deleted_nodes FROM quiver_index_info('t_idx')"),
		sprintf('%d|0', $rows * 2 / 3), "$what: VACUUM leaves no deleted nodes");
	cmp_ok(sql_value($node, "SELECT free_slots FROM quiver_index_info('t_idx')"),
		'>=', $rows / 3, "$what: VACUUM frees their slots");
	recall_ok(0.95, "$what, a third vacuumed", %common, ef => 40);
	check_ok($node, 't_idx', $rows * 2 / 3, "$what, a third vacuumed");

	# the freed slots are used
	make_rows($node, table => 't', dims => $dims, first => $rows + 1, last => $rows * 4 / 3, create => 0);
	recall_ok(0.95, "$what, a third inserted again", %common, ef => 40);
	check_ok($node, 't_idx', $rows, "$what, a third inserted again");
	cmp_ok(index_bytes($node, 't_idx'), '<=', $built * 1.05, "$what: the index did not grow");

	# many rounds of replacing everything, by UPDATEs of the indexed column
	foreach my $round (1 .. 3)
	{
		$node->safe_psql('postgres', "UPDATE t SET v = qt_vector(id + $round * 1000000, $dims)::vector; VACUUM t");
	}
	recall_ok(0.95, "$what, replaced three times", %common, ef => 40);
	check_ok($node, 't_idx', $rows, "$what, replaced three times");
	cmp_ok(index_bytes($node, 't_idx'), '<=', $built * 2.5, "$what: the index did not grow with every round");

	# one cluster goes altogether
	$node->safe_psql('postgres',
		"DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY v $m->{op} (SELECT v FROM queries "
		  . "WHERE id = 1) LIMIT " . $rows / 6 . ");"
		  . 'VACUUM t');
	recall_ok(0.95, "$what, the neighborhood of a query deleted", %common, ef => 40);
	check_ok($node, 't_idx', $rows * 5 / 6, "$what, the neighborhood of a query deleted");

	# empty, and filled again
	$node->safe_psql('postgres', 'DELETE FROM t; VACUUM t');
	is( sql_value($node, "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM t "
			  . "ORDER BY v $m->{op} (SELECT v FROM queries WHERE id = 1) LIMIT 5) x"),
		0, "$what: nothing left");
	check_ok($node, 't_idx', 0, "$what, emptied");
	make_rows($node, table => 't', dims => $dims, first => 1, last => 1, create => 0);
	is( sql_value($node, "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM t "
			  . "ORDER BY v $m->{op} (SELECT v FROM queries WHERE id = 1) LIMIT 5) x"),
		1, "$what: the one new row is found");
	check_ok($node, 't_idx', 1, "$what, one row again");
	make_rows($node, table => 't', dims => $dims, first => 2, last => $rows / 2, create => 0);
	recall_ok(0.95, "$what, filled again", %common, ef => 60);
	check_ok($node, 't_idx', $rows / 2, "$what, filled again");
	cmp_ok(index_bytes($node, 't_idx'), '<=', $built * 2.5, "$what: filled again without growing");

	# all but one row deleted
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id <> 77; VACUUM t; VACUUM t');
	is( sql_value($node, "SET enable_seqscan = off; "
			  . "SELECT id FROM t ORDER BY v $m->{op} (SELECT v FROM queries WHERE id = 1) LIMIT 5"),
		77, "$what: the last row is found");
	check_ok($node, 't_idx', 1, "$what, the last row");
	$node->safe_psql('postgres', 'DROP TABLE t');
}

# Rows that an aborted transaction left are no rows, and VACUUM takes them out.
make_rows($node, table => 't', dims => $dims, first => 1, last => 500);
$node->safe_psql('postgres', 'CREATE INDEX t_idx ON t USING quiver_graph (v)');
$node->safe_psql('postgres',
	"BEGIN; INSERT INTO t SELECT i, 0, qt_vector(i, $dims)::vector FROM generate_series(501, 900) i; ROLLBACK");
check_ok($node, 't_idx', 900, 'after a rolled back insert');
recall_ok(0.95, 'after a rolled back insert', node => $node, op => '<->', table => 't', index => 't_idx',
	queries => 'queries', ef => 100);
$node->safe_psql('postgres', 'VACUUM t');
check_ok($node, 't_idx', 500, 'VACUUM after a rolled back insert');

# The index alone, and with workers.
$node->safe_psql('postgres', 'CREATE INDEX t_idx2 ON t USING hnsw (v vector_cosine_ops);'
	  . 'SET min_parallel_index_scan_size = 0; DELETE FROM t WHERE id % 2 = 0; VACUUM (PARALLEL 2) t');
check_ok($node, 't_idx', 250, 'VACUUM (PARALLEL)');
check_ok($node, 't_idx2', 250, 'VACUUM (PARALLEL)');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP OFF) t; VACUUM FULL t');
check_ok($node, 't_idx', 250, 'VACUUM FULL');

# The free space map cannot be made, as on a full disk: the table is rid of its dead rows all the same, so the
# line of a deleted row is taken again.
make_rows($node, table => 'f', dims => $dims, first => 1, last => 500);
$node->safe_psql('postgres', 'CREATE INDEX f_idx ON f USING quiver_graph (v)');
my $map = $node->data_dir . '/' . sql_value($node, q{SELECT pg_relation_filepath('f_idx')}) . '_fsm';
mkdir $map or die "$map: $!";
$node->safe_psql('postgres', 'DELETE FROM f WHERE id < 490');
my ($rc, undef, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP ON) f');
isnt($rc, 0, 'VACUUM fails, as the free space map cannot be made');
like($err, qr/_fsm"/, 'for that reason');
rmdir $map or die "$map: $!";
$node->safe_psql('postgres', "INSERT INTO f SELECT 501, 0, qt_vector(501, $dims)::vector");
is(sql_value($node, q{SELECT ctid < (SELECT ctid FROM f WHERE id = 490) FROM f WHERE id = 501}),
	't', 'the lines of dead rows are free');
$node->safe_psql('postgres', 'DELETE FROM f WHERE id = 490; VACUUM (INDEX_CLEANUP ON) f');
check_ok($node, 'f_idx', 11, 'the next VACUUM');

# Entry points are as many as the nodes want, however often these are replaced.
make_rows($node, table => 'e', dims => 64, first => 1, last => 100);
$node->safe_psql('postgres', 'ALTER TABLE e SET (autovacuum_enabled = off);'
	  . 'CREATE INDEX e_idx ON e USING quiver_graph (v);'
	  . join('', map { "UPDATE e SET v = qt_vector(id + $_ * 1000, 64)::vector; VACUUM (INDEX_CLEANUP ON) e;" }
		1 .. 100));
check_ok($node, 'e_idx', 100, 'replaced 100 times');
cmp_ok((index_facts($node, 'e_idx', 'entry_points'))[0], '<', 50, 'replaced 100 times: entry points');
# pages of 32 entry points get empty, and are used again
$node->safe_psql('postgres', 'CREATE TABLE w AS SELECT i AS id, qt_vector(i, 1024)::vector(1024) AS v '
	  . 'FROM generate_series(1, 1300) i; ALTER TABLE w SET (autovacuum_enabled = off);'
	  . 'CREATE INDEX w_idx ON w USING quiver_graph (v)');
cmp_ok((index_facts($node, 'w_idx', 'entry_points'))[0], '>', 64, 'three pages of entry points');
$node->safe_psql('postgres', 'DELETE FROM w WHERE id % 50 > 0; VACUUM (INDEX_CLEANUP ON) w');
check_ok($node, 'w_idx', 26, 'pages of entry points are empty');
cmp_ok((index_facts($node, 'w_idx', 'entry_points'))[0], '<=', 26, 'each node has one entry point at most');
$node->safe_psql('postgres', 'INSERT INTO w SELECT i, qt_vector(i, 1024)::vector FROM generate_series(2001, 3500) i');
check_ok($node, 'w_idx', 1526, 'they are used again');
cmp_ok((index_facts($node, 'w_idx', 'entry_points'))[0], '>', 50, 'there are more entry points again');

clean_log_ok($node);
$node->stop;
done_testing();
