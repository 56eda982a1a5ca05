# The top-k scan wherever a query may have it: row security and leaky functions, views,
# inheritance and partitions, partial and expression indexes, workers, cursors, prepared
# statements, standbys, cancel, little memory, and pages that are damaged.

use strict;
use warnings FATAL => 'all';
use QuiverDamage;
use QuiverTest;
use QuiverTopk;
use Test::More;

my $node = new_node('topk_places', no_checksums => 1,
	conf => "fsync = off\nquiver.ef_search = 400\nwal_level = replica\nmax_wal_senders = 4\n");
my ($dims, $rows, $clusters) = (16, 6000, 30);
my $index_only = 'SET enable_seqscan = off; SET enable_sort = off;';
my $q = '(SELECT v FROM queries WHERE id = 3)';

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
make_queries($node, table => 'queries', dims => $dims, n => 10, clusters => $clusters);
$node->safe_psql('postgres', 'CREATE INDEX t_idx ON t USING quiver_graph (v); CREATE INDEX ON t (category);'
	  . 'GRANT SELECT ON t, queries TO PUBLIC; VACUUM ANALYZE t');

# A query's rows by the node, and those of an exact scan; the node is in its plan.
sub same_ok
{
	my ($sql, $name, %a) = @_;
	my $before = $a{before} // '';
	my ($plan) = sql_value($node, "$index_only $before EXPLAIN (COSTS OFF) $sql");
	my $found = sql_value($node, "$index_only $before $sql");
	my $exact = sql_value($node, "$before SET enable_indexscan = off; $sql");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($plan, qr/Quiver Top-K Scan/, "$name: the plan") unless $a{no_node};
	isnt($exact, '', "$name: there are rows");
	return is($found, $exact, $name);
}

# Row security: a function that tells what it sees is not shown rows that the policy hides,
# though its condition could be tested first, or be answered by an index.
$node->safe_psql('postgres', q{
CREATE ROLE reader;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t TO reader USING (category % 10 = 4);
CREATE FUNCTION leak(c int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS
	$$ BEGIN RAISE NOTICE 'seen %', c; RETURN true; END $$;
CREATE VIEW own_rows WITH (security_barrier) AS SELECT * FROM t WHERE category % 10 = 4;
});
foreach my $case ([ 'row security', 'SET ROLE reader;', 't' ], [ 'security barrier', '', 'own_rows' ])
{
	my ($name, $before, $table) = @$case;

	# the order of a query does not reach into a view of that kind
	same_ok("SELECT id FROM $table ORDER BY v <-> $q LIMIT 12", $name, before => $before, no_node => $table ne 't');
	my ($rc, $out, $err) = $node->psql('postgres', "$index_only $before
		SELECT id FROM $table WHERE leak(category) ORDER BY v <-> $q LIMIT 12");
	my @seen = $err =~ /seen (\d+)/g;
	cmp_ok(scalar(@seen), '>=', 12, "$name: the function is called");
	is(scalar(grep { $_ % 10 != 4 } @seen), 0, "$name: for no hidden row");
	# a radius of the user's own must not bound the search before the policy
	($rc, $out, $err) = $node->psql('postgres', "$index_only $before SELECT count(*) FROM
		(SELECT id FROM $table WHERE v <-> $q < 1000 AND leak(category) ORDER BY v <-> $q LIMIT 12) x");
	is($out, 12, "$name: with a radius");
}
$node->safe_psql('postgres', 'ALTER TABLE t DISABLE ROW LEVEL SECURITY');

# Inheritance, partitions of several levels, and one without an index.
$node->safe_psql('postgres', q{
CREATE TABLE parent (LIKE t); CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT * FROM t WHERE id % 2 = 0; INSERT INTO child SELECT * FROM t WHERE id % 2 = 1;
CREATE INDEX ON parent USING quiver_ivf (v); CREATE INDEX ON child USING quiver_graph (v);
CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (3000) PARTITION BY LIST (category);
CREATE TABLE p1a PARTITION OF p1 FOR VALUES IN (1, 2, 3); CREATE TABLE p1b PARTITION OF p1 DEFAULT;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (3000) TO (100000);
INSERT INTO p SELECT * FROM t; CREATE INDEX ON p USING quiver_graph (v); ANALYZE});
same_ok("SELECT id FROM parent ORDER BY v <-> $q LIMIT 20", 'inheritance', before => 'SET quiver.recall = 1;');
same_ok("SELECT id FROM p ORDER BY v <-> $q LIMIT 20", 'partitions');
same_ok("SELECT id FROM p WHERE category < 300 ORDER BY v <-> $q LIMIT 20 OFFSET 3", 'partitions with a condition');

# Indexes on a part of the rows and on an expression.
$node->safe_psql('postgres', 'CREATE TABLE e AS SELECT * FROM t;'
	  . 'CREATE INDEX e_part ON e USING hnsw (v vector_l2_ops) WHERE category < 500;'
	  . "CREATE INDEX e_expr ON e USING quiver_ivf ((v::halfvec($dims)) halfvec_cosine_ops);"
	  . 'CREATE INDEX ON e (category); ANALYZE e');
same_ok("SELECT id FROM e WHERE category < 500 ORDER BY v <-> $q LIMIT 20", 'a partial index');
same_ok("SELECT id FROM e WHERE category < 500 AND category % 3 = 1 ORDER BY v <-> $q LIMIT 20",
	'a partial index with a condition');
same_ok("SELECT id FROM e WHERE category < 20 ORDER BY v <-> $q LIMIT 20", 'a partial index and a bitmap');
same_ok("SELECT id FROM e WHERE category < 100 ORDER BY v::halfvec($dims) <=> $q\::halfvec($dims) LIMIT 20",
	'an index on an expression', before => 'SET quiver.recall = 1;');

# Joins, for each row of another table, and in a worker.
my $parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
same_ok("SELECT t.id, u.id FROM t JOIN t u ON u.id = t.id + 1 WHERE u.category % 5 = 0
	ORDER BY t.v <-> $q LIMIT 15", 'a join');
same_ok('SELECT x.id, l.id FROM queries x,
	LATERAL (SELECT id FROM t WHERE category < x.id * 40 ORDER BY v <-> x.v LIMIT 5) l
	ORDER BY 1, (SELECT v <-> x.v FROM t WHERE id = l.id), 2', 'for each row, with other bitmaps');
same_ok("SELECT id FROM t WHERE category < 300 ORDER BY v <-> $q LIMIT 20", 'a worker',
	before => "SET $parallel = on;");

# Prepared statements with a generic plan; cursors.
my $generic = "SET plan_cache_mode = force_generic_plan; PREPARE s (int, bigint, bigint, float8) AS
	SELECT id FROM t WHERE category < \$1 AND v <-> $q < \$4 ORDER BY v <-> $q LIMIT \$2 OFFSET \$3;";
foreach my $arguments ('300, 10, 0, 1000', '30, 20, 7, 1000', '3, 5, 0, 1000', '500, 30, 0, 2.5')
{
	my $found = sql_value($node, "$index_only $generic EXECUTE s($arguments)");
	my $exact = sql_value($node, "SET enable_indexscan = off; $generic EXECUTE s($arguments)");
	is($found, $exact, "a generic plan: $arguments");
}
is(sql_value($node, "$index_only $generic EXECUTE s($_)"), '', "nothing for $_")
  foreach '300, 0, 0, 10', '300, 10, 0, -1', '300, 10, 0, NULL', '300, 10, 9223372036854775807, 10',
  '-1, 9223372036854775807, 0, 10';
# all rows, but for some that strict order leaves out: those found too late
foreach my $arguments ("1000, 9223372036854775807, 0, 'NaN'", '1000, NULL, 0, 1e300')
{
	my $relaxed = "$index_only SET quiver.iterative_scan = relaxed_order; $generic";
	my $all = sql_value($node, "$relaxed EXECUTE s($arguments)") =~ tr/\n//;
	my $strict = sql_value($node, "$index_only $generic EXECUTE s($arguments)") =~ tr/\n//;
	is($all + 1, $rows, "all rows in relaxed order for $arguments");
	cmp_ok($strict + 1, '>=', 0.95 * $rows, "nearly all in strict order ($strict)");
}
same_ok("SELECT id FROM t ORDER BY v <-> $q LIMIT 5", 'a cursor that outlives its transaction', no_node => 1,
	before => "CREATE TEMP TABLE x AS SELECT 1; BEGIN;
		DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY v <-> $q LIMIT 5;
		FETCH 2 FROM c \\g /dev/null\n COMMIT; MOVE ABSOLUTE 0 IN c;");

# Little memory: the set of a bitmap that does not fit has blocks only.
my $session = topk_session($node, "SET work_mem = '64kB'");
my $exact_too = exact_session($node);
topk_recall_ok($session, $exact_too, 'little work_mem', 0.95, { where => 'category < 700', q => 3, k => 400 });
end_session($_) foreach $session, $exact_too;

# A condition that is cancelled, or fails, at any row leaves nothing behind.
$node->safe_psql('postgres', q{CREATE FUNCTION fails(i int) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN IF i % 50 = 0 THEN RAISE EXCEPTION 'no'; END IF; RETURN i % 100 = 7; END $$;
CREATE FUNCTION slow(i int) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_sleep(0.01); RETURN i < 0; END $$});
$session = topk_session($node);
like(session_sql($session, "SELECT id FROM t WHERE fails(category) ORDER BY v <-> $q LIMIT 50"),
	qr/ERROR:  no/, 'a condition fails');
like(session_sql($session, "SET statement_timeout = 300; SELECT id FROM t WHERE slow(id) ORDER BY v <-> $q LIMIT 5"),
	qr/canceling statement due to statement timeout/, 'a search is cancelled');
unlike(session_sql($session, "RESET statement_timeout;
	SELECT count(*) FROM (SELECT id FROM t WHERE category < 100 ORDER BY v <-> $q LIMIT 5) x"),
	qr/ERROR|WARNING/, 'and the session goes on');
end_session($session);

# On a standby.
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('topk_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
my $nearest = "$index_only SELECT id FROM t WHERE category < 300 ORDER BY v <-> $q LIMIT 20";
is(sql_value($standby, $nearest), sql_value($node, $nearest), 'a standby gives the same rows');
clean_log_ok($standby);
$standby->stop;

# Reading a table that is larger than shared buffers leaves there what others have in them.
my $small = new_node('topk_small', conf => "fsync = off\nshared_buffers = 4MB\nautovacuum = off\n");
$small->safe_psql('postgres', q{
CREATE TABLE hot AS SELECT i AS id, repeat('x', 100) AS w FROM generate_series(1, 6000) i;
CREATE TABLE big AS SELECT i AS id, ARRAY[sin(i), cos(i), i % 7]::vector(3) AS v, repeat('x', 700) AS w
	FROM generate_series(1, 40000) i;
CREATE INDEX ON big USING quiver_ivf (v) WITH (lists = 5); VACUUM ANALYZE});
my $buffers = sub {
	my ($session, $sql) = @_;
	my $plan = session_sql($session, "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");

	return ($plan, map { $plan =~ /Buffers: shared.*?$_=(\d+)/ ? $1 : 0 } qw(hit read));
};
my $reader = new_session($small, 'postgres');
session_sql($reader, 'SET enable_seqscan = on; SET enable_sort = off; SET max_parallel_workers_per_gather = 0;'
	  . "SET quiver.topk_way = 'table'");
# a ring does not keep to pages that are dirty
$small->safe_psql('postgres', 'CHECKPOINT');
$buffers->($reader, $_) foreach 'SELECT count(*) FROM big', ('SELECT count(*) FROM hot') x 2;
my ($plan, $hit, $read) = $buffers->($reader, "SELECT id FROM big WHERE id % 3 = 0 ORDER BY v <-> '[0,0,0]' LIMIT 10");
like($plan, qr/Strategies: table/, 'a search reads the table');
cmp_ok($hit + $read, '>', 4000, "of many pages ($hit + $read)");
($plan, $hit, $read) = $buffers->($reader, 'SELECT count(*) FROM hot');
cmp_ok($hit, '>=', 0.9 * ($hit + $read), "pages of another table are still there ($hit, $read read)");
end_session($reader);
clean_log_ok($small);
$small->stop;

# Damaged: heap TIDs that no table has come to nothing, or an error.
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('t_idx')");
$node->stop;
my $sound = read_image($file);
my $scans = "$index_only " . join '; ', map {
	"SELECT count(*) FROM queries q, LATERAL (SELECT id FROM t WHERE $_ ORDER BY v <-> q.v LIMIT 10) r"
} 'true', 'category < 500', 'category % 7 = 1';
foreach my $seed (1 .. 6)
{
	my $image = $sound;
	my $pages = length($image) / 8192;

	# noise of some length on every fourth page but the first
	srand($seed);
	put(\$image, $_ * 8192 + 32 + int(rand(7000)), noise(int(rand(1000)) + 1, $seed * 1000 + $_))
	  foreach grep { $_ > 0 && $_ % 4 == $seed % 4 } 0 .. $pages - 1;
	write_image($file, $image);
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', $scans);
	ok($rc == 0 || $err =~ /ERROR/, "damage $seed: rows or an error (" . ($err =~ /(ERROR.*)/ ? $1 : 'rows') . ')');
	is(sql_value($node, 'SELECT 1'), 1, "damage $seed: the server lives");
	$node->stop('immediate');
}
write_image($file, $sound);
$node->start;
is(sql_value($node, $nearest) =~ tr/\n//, 19, 'sound again');

clean_log_ok($node);
$node->stop;
done_testing();
