# Included columns stay those of their rows, whatever becomes of rows and heap TIDs: answers are those of the
# table, on the primary and on its standby, after crashes, beside VACUUM and updates.

use strict;
use warnings FATAL => 'all';
use QuiverDamage;
use QuiverTest;
use Test::More;
use Time::HiRes qw(usleep);

my $rows = 2500;
my $primary = new_node('included', init => { allows_streaming => 1 },
	conf => "wal_consistency_checking = 'generic'\n");

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('included_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# a seed of its own for each step, so that a failure can be repeated
my $seed = 0;

sub number
{
	my ($below) = @_;

	$seed = ($seed * 1103515245 + 12345) % 2147483648;
	return int($seed / 65536) % $below;
}

my @conditions = (
	sub { 'tenant = ' . number(97) },
	sub { 'tenant IN (' . join(', ', map { number(97) } 1 .. 3) . ')' },
	sub { 'tenant BETWEEN ' . number(50) . ' AND ' . (40 + number(60)) },
	sub { 'price < ' . number(900) },
	sub { 'price IS NULL' },
	sub { number(2) ? 'live' : 'live IS NOT TRUE' },
	sub { "mark = md5('" . number(30) . "')::uuid" },
	sub { 'made >= date \'2026-01-01\' + ' . number(300) },
	sub { 'tenant + length(id::text) > ' . number(60) },
	sub { '100 / (tenant + 1) < ' . (1 + number(30)) });

# a graph finds all rows by an effort that is all of it
my $setup = 'SET quiver.recall = 1; SET quiver.ef_search = 10000; SET enable_seqscan = off; SET enable_sort = off;';
my $exact = 'SET quiver.topk_scan = off; SET enable_indexscan = off;';

# Asks for some conditions by each way.
sub same_ok
{
	my ($table, $what) = @_;
	my @queries = map {
		my $where = join(' AND ', map { $conditions[ number(scalar @conditions) ]->() } 1 .. 1 + number(2));
		my $limit = (1, 10, 40)[ number(3) ];

		my $from = number(100000);

		"SELECT id, tenant FROM $table WHERE $where ORDER BY v <-> qt_vector($from, 32)::vector, id LIMIT $limit"
	} 1 .. 8;
	my $asked = join(';', @queries);
	my $expected = sql_value($primary, "$exact $asked");

	foreach my $way (qw(auto index row_pages))
	{
		is(sql_value($primary, "$setup SET quiver.topk_way = $way; $asked"), $expected, "$table, $what, $way");
	}
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(sql_value($standby, "$setup $asked"), $expected, "$table, $what, standby");
	check_ok($primary, "${table}_v");
	return;
}

foreach my $am (qw(quiver_graph quiver_ivf))
{
	my $table = "of_$am";
	my $add = sub {
		my ($first, $last) = @_;

		return "INSERT INTO $table SELECT i, i % 97, i / 3.0, date '2026-01-01' + i % 300, i % 3 = 0, "
		  . "md5((i % 30)::text)::uuid, qt_vector(i, 32)::vector FROM generate_series($first, $last) i;";
	};
	my $change = sub { $primary->safe_psql('postgres', $_[0]) };

	$seed = 7;
	$change->("CREATE TABLE $table (id int, tenant int, price float8, made date, live bool, mark uuid, v vector(32))"
		  . ' WITH (autovacuum_enabled = off, fillfactor = 90);' . $add->(1, $rows));
	$change->("CREATE INDEX ${table}_v ON $table USING $am (v vector_l2_ops) INCLUDE (tenant, price, made, live, mark);"
		  . "VACUUM ANALYZE $table");
	same_ok($table, 'built');
	my $one = "SELECT id FROM $table WHERE tenant = 3 ORDER BY v <-> qt_vector(1, 32)::vector LIMIT 1";
	like(sql_value($primary, "EXPLAIN $one"),
		qr/Index Filter: \(tenant = 3\)/, "$table: the index tests the condition");
	$change->("UPDATE $table SET tenant = (tenant + 5) % 97, price = NULL WHERE id % 7 = 0;"
		  . "UPDATE $table SET live = NULL WHERE id % 11 = 0");
	same_ok($table, 'updated');
	$change->("DELETE FROM $table WHERE id % 5 = 0; VACUUM $table;" . $add->($rows + 1, $rows + 700));
	same_ok($table, 'heap TIDs used again');
	cmp_ok(sql_value($primary, "SELECT count(*) FROM $table WHERE id > $rows AND ctid < '(20,0)'"), '>', 0,
		"$table: heap TIDs are used again");
	$change->("BEGIN; UPDATE $table SET tenant = 1000; ROLLBACK");
	same_ok($table, 'rolled back');

	# what a crash leaves of rows that were being added, and of a VACUUM
	foreach my $work (
		"INSERT INTO $table SELECT (random() * 1e9)::int, tenant, price, made, NOT live, mark, v FROM $table LIMIT 40;",
		"UPDATE $table SET tenant = (random() * 96)::int, made = NULL WHERE id % 50 = (random() * 49)::int;",
		"DELETE FROM $table WHERE id % 60 = (random() * 59)::int; VACUUM $table;")
	{
		my $load = background_pgbench($primary, "$work\n");

		usleep(1_000_000);
		$primary->stop('immediate');
		stop_background($load);
		$primary->start;
		same_ok($table, 'crashed');
		$change->("VACUUM $table");
		same_ok($table, 'vacuumed after a crash');
	}

	# beside changes of others: a row that is returned meets its condition
	my $load = background_pgbench($primary,
		"UPDATE $table SET tenant = (tenant * 7 + 1) % 97 WHERE id % 60 = (random() * 59)::int;\n");
	for my $round (1 .. 6)
	{
		my $wrong = join(' UNION ALL ', map {
			my $tenant = number(97);
			"SELECT count(*) FROM (SELECT tenant FROM $table WHERE tenant = $tenant "
			  . "ORDER BY v <-> qt_vector($round, 32)::vector LIMIT 20) r WHERE tenant <> $tenant"
		} 1 .. 5);

		is(sql_value($primary, "$setup SELECT sum(count) FROM ($wrong) w"), 0, "$table: beside updates $round");
		$change->("VACUUM $table");
	}
	stop_background($load);
	wait_until_true($primary,
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'",
		"$table: the updates have ended");
	same_ok($table, 'after updates');
	$change->("REINDEX INDEX CONCURRENTLY ${table}_v");
	same_ok($table, 'built again');
}

# A build takes the newest version of a row, even if its transaction has an older snapshot.
foreach my $am (qw(quiver_graph quiver_ivf))
{
	my $session = new_session($primary, 'postgres');

	$primary->safe_psql('postgres', "CREATE TABLE old_$am (id int, tenant int, v vector(32)) WITH (fillfactor = 50);"
		  . "INSERT INTO old_$am SELECT i, 1, qt_vector(i, 32)::vector FROM generate_series(1, 200) i;"
		  . "VACUUM ANALYZE old_$am");
	session_sql($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	session_sql($session, "SELECT count(*) FROM old_$am");
	$primary->safe_psql('postgres', "UPDATE old_$am SET tenant = 2 WHERE id <= 50");
	session_sql($session, "CREATE INDEX old_${am}_v ON old_$am USING $am (v vector_l2_ops) INCLUDE (tenant)");
	session_sql($session, 'COMMIT');
	end_session($session);
	is(sql_value($primary, "$setup SELECT count(*) FROM (SELECT id FROM old_$am WHERE tenant = 2 "
		  . 'ORDER BY v <-> qt_vector(3, 32)::vector LIMIT 1000) r'), 50, "$am: a build with an old snapshot");
}

# A row that is not fetched is locked for serializable transactions, like one that is.
my ($reader, $writer) = map { new_session($primary, 'postgres') } 1 .. 2;
my $nearest = 'SELECT tenant FROM s ORDER BY v <-> qt_vector(3, 32)::vector LIMIT 1';

$primary->safe_psql('postgres', 'CREATE TABLE s (id int, tenant int, v vector(32)); CREATE TABLE k (n int);'
	  . 'INSERT INTO s SELECT i, i, qt_vector(i, 32)::vector FROM generate_series(1, 300) i;'
	  . 'CREATE INDEX s_v ON s USING quiver_graph (v vector_l2_ops) INCLUDE (tenant)');
$primary->safe_psql('postgres', 'VACUUM ANALYZE s');
like(sql_value($primary, "$setup EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $nearest"), qr/Heap Fetches: \d/,
	'an answer of included columns alone');
foreach my $session ($reader, $writer)
{
	session_sql($session, $_) foreach 'SET enable_seqscan = off', 'SET enable_sort = off',
		'BEGIN ISOLATION LEVEL SERIALIZABLE';
}
session_sql($reader, $nearest);
session_sql($reader, 'INSERT INTO k VALUES (1)');
session_sql($writer, 'SELECT count(*) FROM k');
session_sql($writer, 'DELETE FROM s WHERE id = 3');
my $end = session_sql($reader, 'COMMIT') . session_sql($writer, 'COMMIT');
like($end, qr/could not serialize access/, 'a row that was read and then removed is a conflict');
end_session($_) foreach $reader, $writer;

$standby->promote;
is(sql_value($standby, "SELECT quiver_check('of_quiver_ivf_v') = count(*) FROM of_quiver_ivf"), 't', 'promoted');
clean_log_ok($primary);
$standby->stop;
$primary->stop;

# Damaged columns: rows, or an error, and quiver_check() names them.
my $node = new_node('included_damage', no_checksums => 1, conf => "fsync = off\n");
my @kinds = ('tenant < 5', "mark > '80000000-0000-0000-0000-000000000000'", 'made IS NULL',
	'tenant + length(made::text) > 15');
my $scans = $setup;
foreach my $way (qw(auto index row_pages))
{
	$scans .= " SET quiver.topk_way = $way;";
	$scans .= " SELECT tenant FROM d WHERE $_ ORDER BY v <-> qt_vector(3, 32)::vector LIMIT 10;" foreach @kinds;
}

$node->safe_psql('postgres', "CREATE TABLE d (id int, tenant int, price numeric, made date, mark uuid, v vector(32));"
	  . "INSERT INTO d SELECT i, i % 20, i, CASE WHEN i % 7 > 0 THEN date '2026-01-01' + i % 90 END, "
	  . 'md5(i::text)::uuid, qt_vector(i, 32)::vector FROM generate_series(1, 2000) i;'
	  . 'CREATE INDEX d_v ON d USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant, made, mark)');
$node->safe_psql('postgres', 'VACUUM ANALYZE d');
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('d_v')");
my $entry = 12 + 32 / 8;
my $bytes = 1 + 4 + 4 + 16;
my $a_page = int((8192 - 24 - 16 - 8) / ($entry + $bytes));
my $found = 0;
$node->stop;
my $sound = read_image($file);
foreach my $seed (1 .. 5)
{
	my $image = $sound;

	srand($seed);
	# noise in the columns, if it is a row page
	foreach my $page (1 .. length($image) / 8192 - 1)
	{
		put(\$image, $page * 8192 + 48 + $a_page * $entry + int(rand($a_page * $bytes - 300)),
			noise(1 + int(rand(300)), $seed * 1000 + $page));
	}
	write_image($file, $image);
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', $scans);
	ok($rc == 0 || $err =~ /ERROR/, "damage $seed: rows or an error (" . ($err =~ /(ERROR.*)/ ? $1 : 'rows') . ')');
	($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('d_v')");
	$found++ if $err =~ /is damaged at block/;
	is(sql_value($node, 'SELECT 1'), 1, "damage $seed: the server lives");
	$node->stop('immediate');
}
is($found, 5, 'quiver_check() finds the damage');
write_image($file, $sound);
$node->start;
is(sql_value($node, "SELECT quiver_check('d_v')"), 2000, 'sound again');

# A VACUUM whose only snapshot is older than the index, for which it has waited, makes row pages.
my ($holder, $maker, $vacuum) = map { new_session($node) } 1 .. 3;
session_sql($maker, 'CREATE TABLE w (id int, tenant int, keep bool, v vector(32)) '
	  . 'WITH (autovacuum_enabled = off, fillfactor = 45); '
	  . 'INSERT INTO w SELECT i, 1, i % 4 = 0, qt_vector(i, 32)::vector FROM generate_series(1, 1000) i');
session_sql($maker, 'VACUUM ANALYZE w');
session_sql($holder, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM w');
session_sql($maker, 'BEGIN; LOCK TABLE w IN SHARE UPDATE EXCLUSIVE MODE');
session_sql($vacuum, "SET default_transaction_isolation = 'repeatable read'");
$vacuum->{in} .= "VACUUM w;\n";
$vacuum->{handle}->pump_nb;
wait_until_true($node, 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted', 'VACUUM waits');
foreach my $sql ('UPDATE w SET tenant = 2 WHERE id % 20 = 0',
	'CREATE INDEX w_v ON w USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant) WHERE keep',
	'INSERT INTO w SELECT i, 3, true, qt_vector(i, 32)::vector FROM generate_series(2001, 3300) i', 'COMMIT')
{
	is(session_sql($maker, $sql), '', $sql);
}
is(session_sql($vacuum, 'SELECT 1'), '1', 'VACUUM is done');
is(sql_value($node, "$setup SET quiver.topk_way = row_pages; SELECT count(*) FROM (SELECT FROM w "
		  . 'WHERE keep AND tenant = 2 ORDER BY v <-> qt_vector(3, 32)::vector LIMIT 3000) x'),
	50, 'included columns are those that searches see');
check_ok($node, 'w_v');

# rows that are being inserted when VACUUM makes the row pages get their columns
$node->safe_psql('postgres', q{CREATE TABLE x (id int, tenant int, v vector(32)) WITH (autovacuum_enabled = off);
CREATE INDEX x_v ON x USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant);
INSERT INTO x SELECT i, 0, qt_vector(i, 32)::vector FROM generate_series(1, 1000) i});
session_sql($maker,
	'BEGIN; INSERT INTO x SELECT i, i % 50, qt_vector(i, 32)::vector FROM generate_series(1001, 4000) i');
$node->safe_psql('postgres', 'VACUUM x');
session_sql($maker, 'COMMIT');
my ($fetched) = sql_value($node, "$setup SET quiver.topk_way = row_pages; EXPLAIN (ANALYZE, COSTS OFF) "
	  . 'SELECT id FROM x WHERE tenant = 7 ORDER BY v <-> qt_vector(3, 32)::vector LIMIT 10') =~ /Rows Fetched: (\d+)/;
cmp_ok($fetched, '<', 50, 'the index tests rows that were being inserted');
check_ok($node, 'x_v', 4000);
end_session($_) foreach ($holder, $maker, $vacuum);
clean_log_ok($node);
$node->stop;
done_testing();
