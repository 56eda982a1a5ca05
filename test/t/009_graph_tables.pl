# Kinds of tables and indexes, and what happens around a scan: expressions,
# partial, unlogged, temporary, partitioned; cursors, HOT, NULLs.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('tables');
my ($dims, $rows) = (16, 3000);
my $index_only = 'SET enable_seqscan = off; SET enable_sort = off;';

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims);
$node->safe_psql('postgres', "CREATE TABLE short AS SELECT id, subvector(v, 1, 8)::vector(8) AS v FROM queries");
my %common = (node => $node, op => '<->', queries => 'queries', ef => 60);

# expression
$node->safe_psql('postgres', 'CREATE TABLE x AS TABLE t; '
	  . 'CREATE INDEX x_idx ON x USING hnsw ((subvector(v, 1, 8)::vector(8)) vector_l2_ops);'
	  . "INSERT INTO x SELECT i, 0, qt_vector(i, $dims)::vector FROM generate_series(5001, 6000) i; "
	  . "DELETE FROM x WHERE id % 10 = 0; VACUUM x");
recall_ok(0.95, 'expression index', %common, table => 'x', index => 'x_idx', queries => 'short',
	column => 'subvector(v, 1, 8)::vector(8)');
check_ok($node, 'x_idx', 3600, 'expression index');

# another type by expression
$node->safe_psql('postgres', "CREATE INDEX x_half ON x USING hnsw ((v::halfvec($dims)) halfvec_l2_ops);"
	  . "CREATE TABLE halves AS SELECT id, v::halfvec($dims) AS v FROM queries");
recall_ok(0.95, 'halfvec expression index', %common, table => 'x', index => 'x_half', queries => 'halves',
	column => "(v::halfvec($dims))");
check_ok($node, 'x_half', 3600, 'halfvec expression index');

# partial
$node->safe_psql('postgres', 'CREATE TABLE p AS TABLE t; '
	  . 'CREATE INDEX p_idx ON p USING hnsw (v vector_l2_ops) WHERE category < 300;'
	  . "INSERT INTO p SELECT i, i % 1000, qt_vector(i, $dims)::vector FROM generate_series(5001, 6000) i");
recall_ok(0.95, 'partial index', %common, table => 'p', index => 'p_idx', where => 'category < 300');
check_ok($node, 'p_idx', 1200, 'partial index');

# unlogged: empty after a crash, and usable
make_rows($node, table => 'u', dims => $dims, first => 1, last => $rows, kind => 'UNLOGGED');
$node->safe_psql('postgres', 'CREATE INDEX u_idx ON u USING quiver_graph (v); ');
recall_ok(0.95, 'unlogged', %common, table => 'u', index => 'u_idx');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$node->start;
is(sql_value($node, "$index_only SELECT count(*) FROM (SELECT id FROM u ORDER BY v <-> (SELECT v FROM queries "
		  . "LIMIT 1) LIMIT 5) x"),
	0, 'unlogged, after a crash: empty');
check_ok($node, 'u_idx', 0, 'unlogged, after a crash');
make_rows($node, table => 'u', dims => $dims, first => 1, last => $rows, create => 0);
recall_ok(0.95, 'unlogged, filled again', %common, table => 'u', index => 'u_idx');
$node->safe_psql('postgres', 'ALTER TABLE u SET LOGGED');
check_ok($node, 'u_idx', $rows, 'unlogged made logged');

# temporary
is( sql_value($node, "CREATE TEMPORARY TABLE temp AS TABLE t; "
		  . "CREATE INDEX temp_idx ON temp USING hnsw (v vector_l2_ops);"
		  . 'INSERT INTO temp SELECT id + 10001, category, v FROM temp WHERE id <= 500; '
		  . 'DELETE FROM temp WHERE id % 7 = 0; VACUUM temp;'
		  . "$index_only SELECT quiver_check('temp_idx') = (SELECT count(*) FROM temp),"
		  . "(SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM temp ORDER BY v <-> qt_vector(3, $dims)::vector "
		  . "LIMIT 2) x)"),
	't|{3,10004}', 'temporary table');

# partitioned
$node->safe_psql('postgres', "CREATE TABLE parts (id int, category int, v vector($dims)) PARTITION BY HASH (id);"
	  . join('', map { "CREATE TABLE parts_$_ PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER $_);" } 0 .. 2)
	  . 'INSERT INTO parts TABLE t; CREATE INDEX parts_idx ON parts USING hnsw (v vector_l2_ops); ANALYZE parts');
like(sql_value($node, "$index_only EXPLAIN SELECT id FROM parts ORDER BY v <-> (SELECT v FROM queries "
		  . "LIMIT 1) LIMIT 5"),
	qr/Merge Append.*Index Scan using parts_0_v_idx/s, 'partitioned: merged index scans');
recall_ok(0.95, 'partitioned', %common, table => 'parts', index => 'parts_0_v_idx', set => 'SET enable_sort = on;');

# TRUNCATE, and a table rewritten
$node->safe_psql('postgres', "CREATE TABLE r AS TABLE t; CREATE INDEX r_idx ON r USING hnsw (v vector_l2_ops); "
	  . "TRUNCATE r;");
check_ok($node, 'r_idx', 0, 'truncated');
$node->safe_psql('postgres', "INSERT INTO r TABLE t; ALTER TABLE r ALTER COLUMN id TYPE bigint");
recall_ok(0.95, 'rewritten', %common, table => 'r', index => 'r_idx');
check_ok($node, 'r_idx', $rows, 'rewritten');

# in one transaction: rolled back, savepoints, own rows seen
own_rows_seen_ok($node, 'r', $dims);

# updates, HOT and not, and what VACUUM leaves of them
hot_updates_ok($node, table => 't', dims => $dims, rows => $rows, using => 'hnsw (v vector_l2_ops)');
isnt(sql_value($node, "$index_only SELECT id FROM h ORDER BY v <-> qt_vector(50, $dims)::vector LIMIT 1"), '50',
	'not HOT: not found at the old one');
$node->safe_psql('postgres', 'VACUUM h');
check_ok($node, 'h_idx', $rows, 'not HOT, vacuumed');

# NULLs are not indexed; a NULL query gives rows in any order
is( sql_value($node, "CREATE TABLE n (id int, v vector(3)); "
		  . "INSERT INTO n VALUES (1, '[1,2,3]'), (2, NULL), (3, '[1,1,1]');"
		  . 'CREATE INDEX n_idx ON n USING hnsw (v vector_l2_ops); INSERT INTO n VALUES (4, NULL), (5, \'[9,9,9]\');'
		  . "$index_only SELECT quiver_check('n_idx'), (SELECT array_agg(id) FROM (SELECT id FROM n "
		  . "ORDER BY v <-> '[3,3,3]' LIMIT 9) x),"
		  . '(SELECT count(*) FROM (SELECT id FROM n ORDER BY v <-> (SELECT NULL::vector) LIMIT 9) x)'),
	'3|{1,3,5}|3', 'NULLs are left out');

# zero vectors have no angle: left out of a cosine index, as in pgvector
is( sql_value($node, "CREATE TABLE z (id int, v vector(3)); "
		  . "INSERT INTO z VALUES (1, '[1,2,3]'), (2, '[0,0,0]'), (3, '[1,1,1]');"
		  . 'CREATE INDEX z_idx ON z USING hnsw (v vector_cosine_ops); '
		  . 'INSERT INTO z VALUES (4, \'[0,0,0]\'), (5, \'[3,2,1]\');'
		  . "$index_only SELECT quiver_check('z_idx'), (SELECT array_agg(id) FROM (SELECT id FROM z "
		  . "ORDER BY v <=> '[3,3,3.1]' LIMIT 9) x),"
		  . "(SELECT count(*) FROM (SELECT id FROM z ORDER BY v <=> '[0,0,0]' LIMIT 9) x)"),
	'3|{3,1,5}|3', 'zero vectors under cosine are left out');
is( sql_value($node, 'DROP INDEX z_idx; CREATE INDEX z_idx ON z USING hnsw (v vector_l2_ops);'
		  . "$index_only SELECT quiver_check('z_idx'), (SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM z "
		  . "ORDER BY v <-> '[0,0,0]' LIMIT 2) x)"),
	'5|{2,4}', 'zero vectors under L2 are not');

# huge and tiny values, of a graph that has codes
is( sql_value($node, "CREATE TABLE big (id int, v vector(9)); "
		  . "INSERT INTO big SELECT i, (ARRAY[3e38, i * 1e30, -3e38] || array_fill(0::numeric, ARRAY[6]))::vector "
		  . "FROM generate_series(1, 20) i;"
		  . "INSERT INTO big SELECT 100 + i, (ARRAY[i, 1, 2] || array_fill(0::numeric, ARRAY[6]))::vector "
		  . "FROM generate_series(1, 20) i;"
		  . "INSERT INTO big SELECT 200 + i, (ARRAY[i * 1e-40, 1e-42, 0] || array_fill(0::numeric, ARRAY[6]))::vector "
		  . "FROM generate_series(1, 20) i;"
		  . 'CREATE INDEX big_idx ON big USING hnsw (v vector_l2_ops);'
		  . "INSERT INTO big SELECT 300 + i, (ARRAY[-3e38, i * 1e30, 3e38] || array_fill(0::numeric, "
		  . "ARRAY[6]))::vector FROM generate_series(1, 20) i;"
		  . "$index_only SET statement_timeout = '30s'; SET hnsw.iterative_scan = relaxed_order;"
		  . "SELECT quiver_check('big_idx'), (SELECT count(DISTINCT id) FROM (SELECT id FROM big "
		  . "ORDER BY v <-> '[7,1,2,0,0,0,0,0,0]' LIMIT 100) x),"
		  . "(SELECT id FROM big ORDER BY v <-> '[7,1,2,0,0,0,0,0,0]' LIMIT 1)"),
	'80|80|107', 'huge and tiny values');

# inner products of vectors too long for the index, which keeps them shortened: the nearest are
# those of the table nevertheless
$node->safe_psql('postgres', q{
	CREATE TABLE long (id int, v vector(16));
	INSERT INTO long SELECT i,
		array_agg(((qt_uniform(i * 100 + j, 5) - 0.5) * 10::float8 ^ (i % 8 * 0.5 + 15))::float4 ORDER BY j)::vector
		FROM generate_series(1, 2000) i, generate_series(1, 16) j GROUP BY i;
	CREATE TABLE long_queries AS SELECT id, v FROM long WHERE id % 100 = 7;
	CREATE INDEX long_idx ON long USING quiver_graph (v vector_ip_ops);
});
recall_ok(0.9, 'inner products of very long vectors', %common, op => '<#>', table => 'long', queries => 'long_queries',
	index => 'long_idx', ef => 100);
check_ok($node, 'long_idx', 2000, 'very long vectors');

# a cursor held open while rows go and others come
is( sql_value($node, "CREATE TABLE c AS TABLE t; CREATE INDEX c_idx ON c USING hnsw (v vector_l2_ops)"), '',
	'table for cursors');
{
	my $session = new_session($node);
	my $ask = sub { return session_sql($session, $_[0]); };

	$ask->("SET hnsw.iterative_scan = strict_order; $index_only BEGIN; "
		  . "DECLARE cur CURSOR FOR SELECT id FROM c ORDER BY v <-> qt_vector(3, $dims)::vector");
	my $expected = sql_value($node, "$index_only SELECT id FROM c ORDER BY v <-> qt_vector(3, $dims)::vector LIMIT 5");
	is($ask->('FETCH 5 FROM cur'), $expected, 'cursor: first rows');
	$node->safe_psql('postgres', "DELETE FROM c WHERE id % 2 = 0; VACUUM c;"
		  . "INSERT INTO c SELECT i, 0, qt_vector(i, $dims)::vector FROM generate_series(20001, 22000) i; VACUUM c");
	my %seen = map { $_ => 1 } split /\n/, $ask->('FETCH 500 FROM cur');
	is(scalar(keys %seen), 500, 'cursor: more rows while others vacuum and insert');
	is(scalar(grep { $_ > 20000 } keys %seen), 0, 'cursor: none that came later');
	cmp_ok(scalar(grep { $_ % 2 == 0 } keys %seen), '>', 100, 'cursor: those deleted since as well');
	$ask->('COMMIT');

	# after its end, VACUUM can take the rows and others take their places
	$ask->("BEGIN; DECLARE cur CURSOR WITH HOLD FOR SELECT id FROM c ORDER BY v <-> qt_vector(3, $dims)::vector "
		  . "LIMIT 50; COMMIT");
	$node->safe_psql('postgres', 'VACUUM c');
	is(scalar(split /\n/, $ask->('FETCH ALL FROM cur')), 50, 'cursor WITH HOLD');

	# prepared, while the index is rebuilt
	$ask->("PREPARE q AS SELECT count(*) FROM (SELECT id FROM c ORDER BY v <-> qt_vector(3, $dims)::vector LIMIT 7) x");
	is($ask->('EXECUTE q'), 7, 'prepared');
	$node->safe_psql('postgres', 'REINDEX INDEX c_idx');
	is($ask->('EXECUTE q'), 7, 'prepared, after REINDEX');
	$node->safe_psql('postgres', 'DELETE FROM c; VACUUM c');
	is($ask->('EXECUTE q'), 0, 'prepared, emptied');
	$node->safe_psql('postgres', 'INSERT INTO c TABLE t');
	is($ask->('EXECUTE q'), 7, 'prepared, filled again');
	end_session($session);
}
check_ok($node, 'c_idx', $rows, 'after the cursors');

clean_log_ok($node);
$node->stop;
done_testing();
