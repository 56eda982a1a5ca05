# Kinds of tables and indexes on posting lists, what rewrites them, and what happens
# around a scan.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_tables', conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
my ($dims, $rows) = (16, 3000);
my $index_only = 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;';
my $relaxed = 'SET quiver.iterative_scan = relaxed_order; SET ivfflat.iterative_scan = relaxed_order;';

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_rows($node, table => 'more', dims => $dims, first => 10001, last => 11000);
make_queries($node, table => 'queries', dims => $dims);
$node->safe_psql('postgres', "CREATE TABLE short AS SELECT id, subvector(v, 1, 8)::vector(8) AS v FROM queries;"
	  . "CREATE TABLE halves AS SELECT id, v::halfvec($dims) AS v FROM queries;"
	  . 'ALTER SYSTEM SET client_min_messages = warning; SELECT pg_reload_conf()');
my %common = (node => $node, op => '<->', queries => 'queries');

# Recall, every row by a scan, and quiver_check.
sub good
{
	my ($at_least, $what, $table, %a) = @_;
	my $count = sql_value($node, "SELECT count(*) FROM $table" . ($a{where} ? " WHERE $a{where}" : ''));

	recall_ok($at_least, $what, %common, table => $table, index => "${table}_idx", %a) if $at_least;
	every_row_ok($count, $what, %common, table => $table, query => 3, set => $relaxed, %a) if !$a{column};
	check_ok($node, $a{index} // "${table}_idx", $count, $what);
}

# Built in the transaction that created the table, with wal_level minimal: nothing is
# logged, all is synced; then a crash.
is(sql_value($node, 'SHOW wal_level'), 'minimal', 'wal_level is minimal');
foreach my $am (qw(quiver_ivf ivfflat))
{
	$node->safe_psql('postgres', "BEGIN; CREATE TABLE m_$am (LIKE t); "
		  . "CREATE INDEX m_${am}_idx ON m_$am USING $am (v vector_l2_ops);"
		  . "INSERT INTO m_$am TABLE t; COMMIT; BEGIN; CREATE TABLE n_$am AS TABLE t; "
		  . "CREATE INDEX n_${am}_idx ON n_$am USING $am (v vector_l2_ops);"
		  . "INSERT INTO n_$am TABLE more; COMMIT; BEGIN; TRUNCATE n_$am; INSERT INTO n_$am TABLE t; COMMIT;"
		  . "BEGIN; CREATE TABLE s_$am (LIKE t); CREATE INDEX s_${am}_idx ON s_$am USING $am (v vector_l2_ops); "
		  . "SAVEPOINT a; INSERT INTO s_$am TABLE more; ROLLBACK TO a; INSERT INTO s_$am TABLE t; COMMIT");
}
make_rows($node, table => 'u', dims => $dims, first => 1, last => $rows, kind => 'UNLOGGED');
$node->safe_psql('postgres', 'CREATE INDEX u_idx ON u USING quiver_ivf (v); '
	  . 'CREATE UNLOGGED TABLE ub (id int, v bit(16));'
	  . 'CREATE INDEX ub_idx ON ub USING ivfflat (v bit_hamming_ops) WITH (lists = 5); '
	  . 'INSERT INTO ub SELECT id, binary_quantize(v)::bit(16) FROM t;'
	  . 'CREATE TABLE centroids AS SELECT v FROM t LIMIT 8; CREATE UNLOGGED TABLE uc (LIKE u); '
	  . "CREATE INDEX uc_idx ON uc USING quiver_ivf (v) WITH (centroids = 'public.centroids'); INSERT INTO uc TABLE t");
good(0.93, 'unlogged', 'u');
is(sql_value($node, "SELECT lists FROM quiver_index_info('uc_idx')"), 8, 'unlogged, with centroids');
$node->stop('immediate');
$node->start;
foreach my $am (qw(quiver_ivf ivfflat))
{
	# of rows rolled back, pointers stay until then
	$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) s_$am");
	foreach my $table (qw(m n s))
	{
		good($am eq 'quiver_ivf' ? 0.93 : undef, "$am, wal_level minimal, after a crash, $table", "${table}_$am");
		is(sql_value($node, "SELECT count(*) FROM ${table}_$am"), $rows,
			"$am, wal_level minimal, $table: and these are all");
	}
	$node->safe_psql('postgres', "INSERT INTO m_$am TABLE more; DELETE FROM m_$am WHERE id % 2 = 0; "
		  . "VACUUM (INDEX_CLEANUP ON) m_$am");
	good(undef, "$am, wal_level minimal, used further", "m_$am");
}

# unlogged: empty after the crash, and usable
good(undef, 'unlogged, after a crash', 'u');
is(sql_value($node, 'SELECT (SELECT count(*) FROM u) + (SELECT count(*) FROM ub)'), 0,
	'unlogged, after a crash: empty');
check_ok($node, 'ub_idx', 0, 'unlogged bits, after a crash');
make_rows($node, table => 'u', dims => $dims, first => 1, last => $rows, create => 0);
$node->safe_psql('postgres', 'INSERT INTO ub SELECT id, binary_quantize(v)::bit(16) FROM t');
good(0.93, 'unlogged, filled again', 'u');
check_ok($node, 'ub_idx', $rows, 'unlogged bits, filled again');
make_rows($node, table => 'uc', dims => $dims, first => 1, last => 8000, create => 0);
cmp_ok(sql_value($node, "SELECT lists FROM quiver_index_info('uc_idx')"), '>', 1,
	'unlogged, with centroids, filled again: lists are split');
check_ok($node, 'uc_idx', 8000, 'unlogged, with centroids, filled again');
$node->safe_psql('postgres', 'ALTER TABLE u SET LOGGED');
good(0.93, 'unlogged made logged', 'u');

# temporary, dropped and kept at commit
foreach my $am (qw(quiver_ivf ivfflat))
{
	is( sql_value($node, "CREATE TEMPORARY TABLE temp AS TABLE t; "
			  . "CREATE INDEX temp_idx ON temp USING $am (v vector_l2_ops);"
			  . 'INSERT INTO temp SELECT id + 10001, category, v FROM temp WHERE id <= 500; '
			  . 'DELETE FROM temp WHERE id % 7 = 0; VACUUM (INDEX_CLEANUP ON) temp;'
			  . "$index_only SELECT quiver_check('temp_idx') = (SELECT count(*) FROM temp),"
			  . "(SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM temp "
			  . "ORDER BY v <-> qt_vector(3, $dims)::vector LIMIT 2) x)"),
		't|{3,10004}', "$am: temporary table");
}
is(sql_value($node, 'CREATE TEMPORARY TABLE temp (LIKE t) ON COMMIT DELETE ROWS; '
		  . 'CREATE INDEX temp_idx ON temp USING quiver_ivf (v); BEGIN; INSERT INTO temp TABLE t;'
		  . "SELECT quiver_check('temp_idx'); COMMIT; SELECT quiver_check('temp_idx'); INSERT INTO temp TABLE t; "
		  . "SELECT quiver_check('temp_idx')"),
	"3000\n0\n0", 'temporary table, ON COMMIT DELETE ROWS');

# partitioned
$node->safe_psql('postgres', "CREATE TABLE parts (id int, category int, v vector($dims)) PARTITION BY HASH (id);"
	  . join('', map { "CREATE TABLE parts_$_ PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER $_);" } 0 .. 2)
	  . 'INSERT INTO parts TABLE t; CREATE INDEX parts_idx ON parts USING quiver_ivf (v); '
	  . 'INSERT INTO parts TABLE more; ANALYZE parts');
like(sql_value($node, "$index_only EXPLAIN SELECT id FROM parts ORDER BY v <-> (SELECT v FROM queries "
		  . "LIMIT 1) LIMIT 5"),
	qr/Merge Append.*Index Scan using parts_0_v_idx/s, 'partitioned: merged index scans');
recall_ok(0.93, 'partitioned', %common, table => 'parts', index => 'parts_0_v_idx', set => 'SET enable_sort = on;');
is(sql_value($node, "SELECT sum(quiver_check(i)) "
		  . "FROM unnest(ARRAY['parts_0_v_idx', 'parts_1_v_idx', 'parts_2_v_idx']::regclass[]) i"),
	$rows + 1000, 'partitioned: quiver_check of all');

# expression, another type by expression, partial
$node->safe_psql('postgres', 'CREATE TABLE x AS TABLE t; '
	  . 'CREATE INDEX x_idx ON x USING quiver_ivf ((subvector(v, 1, 8)::vector(8)) vector_l2_ops);'
	  . "CREATE INDEX x_half ON x USING quiver_ivf ((v::halfvec($dims)) halfvec_l2_ops); INSERT INTO x TABLE more; "
	  . "DELETE FROM x WHERE id % 10 = 0; VACUUM (INDEX_CLEANUP ON) x");
good(0.93, 'expression', 'x', queries => 'short', column => 'subvector(v, 1, 8)::vector(8)');
good(0.93, 'halfvec expression', 'x', index => 'x_half', queries => 'halves', column => "(v::halfvec($dims))");
$node->safe_psql('postgres', 'CREATE TABLE p AS TABLE t; '
	  . 'CREATE INDEX p_idx ON p USING quiver_ivf (v) WHERE category < 300; INSERT INTO p TABLE more');
good(0.93, 'partial', 'p', where => 'category < 300');

# what rewrites tables and indexes
foreach my $am (qw(quiver_ivf ivfflat))
{
	$node->safe_psql('postgres', "CREATE TABLE r AS TABLE t; CREATE INDEX r_idx ON r USING $am (v vector_l2_ops); "
		  . "CREATE INDEX r_id ON r (id);"
		  . 'DELETE FROM r WHERE id % 3 = 0; INSERT INTO r TABLE more');
	foreach my $sql ('CLUSTER r USING r_id', 'VACUUM FULL r', 'REINDEX INDEX r_idx', 'REINDEX INDEX CONCURRENTLY r_idx',
		'ALTER TABLE r ALTER COLUMN id TYPE bigint', 'REINDEX TABLE CONCURRENTLY r')
	{
		$node->safe_psql('postgres', $sql);
		good($am eq 'quiver_ivf' ? 0.93 : undef, "$am, $sql", 'r');
	}
	$node->safe_psql('postgres', 'TRUNCATE r');
	good(undef, "$am, truncated", 'r');
	$node->safe_psql('postgres', 'INSERT INTO r TABLE t');
	good($am eq 'quiver_ivf' ? 0.93 : undef, "$am, filled after TRUNCATE", 'r');
	isnt($node->psql('postgres', 'CLUSTER r USING r_idx'), 0, "$am: no order to cluster by");
	$node->safe_psql('postgres', 'DROP TABLE r');
}

# CREATE INDEX CONCURRENTLY while others insert and delete
foreach my $am (qw(quiver_ivf ivfflat))
{
	$node->safe_psql('postgres', 'CREATE TABLE c AS TABLE t; CREATE SEQUENCE c_ids START 100000');
	my $bg = background_pgbench($node, "\\set r random(1, 3000)\nINSERT INTO c SELECT nextval('c_ids'), 0, v FROM t "
		  . "WHERE id BETWEEN :r AND :r + 4;\n"
		  . "DELETE FROM c WHERE id = :r;\nUPDATE c SET v = (SELECT v FROM t WHERE id = :r) "
		  . "WHERE id = :r + 1;\nUPDATE c SET category = 1 WHERE id = :r + 2;\n\\sleep 5 ms\n", clients => 2,
		name => "cic_$am");

	wait_until_true($node, "SELECT last_value > 100000 FROM c_ids", "$am: rows come");
	$node->safe_psql('postgres', "CREATE INDEX CONCURRENTLY c_idx ON c USING $am (v vector_l2_ops)");
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY c_idx');
	unlike(stop_background($bg), qr/ERROR|FATAL|aborted/, "$am: no client had an error");
	wait_until_true($node, "SELECT count(*) = 0 FROM pg_stat_activity "
		  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", "$am: all have ended");
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) c');
	good($am eq 'quiver_ivf' ? 0.93 : undef, "$am, CREATE INDEX CONCURRENTLY", 'c');
	$node->safe_psql('postgres', 'DROP TABLE c; DROP SEQUENCE c_ids');
}

# in one transaction: rolled back, savepoints, own rows seen
$node->safe_psql('postgres', 'CREATE TABLE r AS TABLE t; CREATE INDEX r_idx ON r USING quiver_ivf (v)');
own_rows_seen_ok($node, 'r', $dims);

# updates, HOT and not, and what VACUUM leaves of them
hot_updates_ok($node, table => 't', dims => $dims, rows => $rows, using => 'quiver_ivf (v)');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) h');
good(0.93, 'not HOT, vacuumed', 'h');

# a cursor held open while rows go, others come and lists move
$node->safe_psql('postgres', 'CREATE TABLE k AS TABLE t; CREATE INDEX k_idx ON k USING quiver_ivf (v)');
{
	my $session = new_session($node);
	my $ask = sub { return session_sql($session, $_[0]); };

	$ask->("$relaxed $index_only BEGIN; DECLARE cur CURSOR FOR SELECT id FROM k "
		  . "ORDER BY v <-> qt_vector(3, $dims)::vector");
	my @seen = split /\n/, $ask->('FETCH 5 FROM cur');
	is($seen[0], 3, 'cursor: first rows');
	$node->safe_psql('postgres', 'DELETE FROM k WHERE id % 2 = 0; VACUUM (INDEX_CLEANUP ON) k; '
		  . 'INSERT INTO k SELECT id + i * 10000, 0, v FROM t, generate_series(1, 3) i; VACUUM k');
	push @seen, split /\n/, $ask->('FETCH ALL FROM cur');
	my %seen = map { $_ => 1 } @seen;
	is(scalar(keys %seen) . ' ' . scalar(@seen), "$rows $rows", 'cursor: every row once, while lists are split');
	is(scalar(grep { $_ > $rows } @seen), 0, 'cursor: none that came later');
	$ask->('COMMIT');
	$ask->("PREPARE q AS SELECT count(*) FROM (SELECT id FROM k ORDER BY v <-> qt_vector(3, $dims)::vector LIMIT 7) x");
	is($ask->('EXECUTE q'), 7, 'prepared');
	$node->safe_psql('postgres', 'REINDEX INDEX k_idx');
	is($ask->('EXECUTE q'), 7, 'prepared, after REINDEX');
	$node->safe_psql('postgres', 'DELETE FROM k; VACUUM k');
	is($ask->('EXECUTE q'), 0, 'prepared, emptied');
	$node->safe_psql('postgres', 'INSERT INTO k TABLE t');
	is($ask->('EXECUTE q'), 7, 'prepared, filled again');
	end_session($session);
}
good(0.93, 'after the cursors', 'k');

# a full disk
SKIP:
{
	# a server does not run as root, so somebody else must have mounted it:
	# mount -t tmpfs -o size=3m,mode=0777 tmpfs DIR
	my $small = $ENV{QUIVER_SMALL_DISK};

	skip 'QUIVER_SMALL_DISK names no file system of about 3 MB to fill', 16 if !$small || !-d $small;
	my $room = "$small/space";
	mkdir $room;
	chmod 0700, $room;
	$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$room';"
		  . 'CREATE TABLE wide (id int, v vector(512));'
		  . 'INSERT INTO wide SELECT id + i * 10000, z || z FROM (SELECT id, y || y AS z FROM (SELECT id, x || x AS y '
		  . 'FROM (SELECT id, w || w AS x FROM (SELECT id, v || v AS w FROM t) a) b) c) d, generate_series(0, 2) i;'
		  . 'CREATE TABLE queries_wide AS SELECT * FROM wide WHERE id < 30');
	foreach my $am (qw(quiver_ivf ivfflat))
	{
		fails_like($node, "CREATE INDEX wide_idx ON wide USING $am (v vector_l2_ops) TABLESPACE small",
			'53100', 'could not (extend|write)', "$am: a full disk ends a build");
		is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 'wide_idx'"), 0,
			"$am: nothing is left of it");
		$node->safe_psql('postgres', 'CHECKPOINT');
		$node->safe_psql('postgres', "CREATE TABLE ballast TABLESPACE small AS SELECT repeat('x', 1500) "
			  . "FROM generate_series(1, 400); CREATE TABLE few AS TABLE wide LIMIT 1000; "
			  . "CREATE INDEX few_idx ON few USING $am (v vector_l2_ops) TABLESPACE small");
		fails_like($node, 'INSERT INTO few TABLE wide', '53100', 'could not (extend|write)',
			"$am: a full disk ends an insert");
		check_ok($node, 'few_idx', undef, "$am: after a full disk");
		every_row_ok(1000, "$am: after a full disk", %common, table => 'few', queries => 'queries_wide', query => 3,
			set => $relaxed);
		# lists are written anew before their old pages are free, so VACUUM needs some room
		$node->safe_psql('postgres', 'DROP TABLE ballast; CHECKPOINT');
		$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) few; '
			  . 'INSERT INTO few SELECT id + 100000, v FROM wide LIMIT 500');
		check_ok($node, 'few_idx', 1500, "$am: vacuumed, and used further");
		every_row_ok(1500, "$am: vacuumed, and used further", %common, table => 'few', queries => 'queries_wide',
			query => 3, set => $relaxed);
		is((index_facts($node, 'few_idx', 'lost_pages'))[0], 0, "$am: no page is lost");
		$node->safe_psql('postgres', 'DROP TABLE few; CHECKPOINT');
	}
	$node->safe_psql('postgres', 'DROP TABLESPACE small');
	rmdir $room;
}

clean_log_ok($node);
$node->stop;
done_testing();
