# The server dies while lists are split, compacted and built: after recovery the
# index is sound, nothing is lost or there twice, and VACUUM frees what was left.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_crash', conf => "full_page_writes = on\nmax_wal_size = 200MB\nrestart_after_crash = on\n");
my $dims = 16;
my $index = 'CREATE INDEX t_idx ON t USING quiver_ivf (v);';

make_rows($node, table => 'source', dims => $dims, first => 1, last => 8000);
make_queries($node, table => 'queries', dims => $dims);
$node->safe_psql('postgres', "CREATE SEQUENCE ids START 1000000; CREATE TABLE t (LIKE source); "
	  . "$index INSERT INTO t SELECT * FROM source WHERE id <= 500");
my %common = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx');
my $all = 'SET quiver.iterative_scan = relaxed_order;';
my $crashes = 0;

# Immediate stop, or SIGKILL of a backend, which takes the server down as a crash does.
sub crash
{
	my ($how, $pid) = @_;

	$crashes++;
	if ($how eq 'kill')
	{
		kill 'KILL', $pid;
		foreach (1 .. 600)
		{
			select(undef, undef, undef, 0.1);
			last if (() = slurp_file($node->logfile) =~ /not properly shut down/g) >= $crashes
			  && (eval { $node->psql('postgres', 'SELECT 1') } // 1) == 0;
		}
	}
	else
	{
		$node->stop('immediate');
		$node->start;
	}
}

# What must hold after each crash; the table is used further.
sub sound
{
	my ($what) = @_;
	my $log = slurp_file($node->logfile);
	my @recoveries = $log =~ /database system was not properly shut down/g;
	my $rows = sql_value($node, 'SELECT count(*) FROM t');

	is(scalar(@recoveries), $crashes, "$what: there was a crash");
	check_ok($node, 't_idx', undef, $what);
	every_row_ok($rows, $what, %common, query => 2, set => $all);
	recall_ok(0.93, $what, %common);
	# a crash leaves few dead rows or none, for which VACUUM would not look into the index
	$node->safe_psql('postgres', 'DELETE FROM t WHERE ctid = (SELECT ctid FROM t LIMIT 1)');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	check_ok($node, 't_idx', $rows - 1, "$what, vacuumed");
	is(join(' ', index_facts($node, 't_idx', 'lost_pages')), 0, "$what, vacuumed: no page is lost");
}

my $insert = qq{
INSERT INTO t SELECT nextval('ids'), i % 10, qt_vector(currval('ids') % 7919, $dims)::vector
	FROM generate_series(1, 60) i;
};

# while sessions insert and lists are split
foreach my $round (1 .. 3)
{
	my ($before) = index_facts($node, 't_idx', 'lists');
	my $bg = background_pgbench($node, $insert, clients => 3);

	wait_until_true($node, "SELECT lists > $before + 1 FROM quiver_index_info('t_idx')",
		"round $round: lists are split");
	my $pid = sql_value($node, "SELECT pid FROM pg_stat_activity WHERE query LIKE '%INSERT INTO t "
		  . "SELECT nextval%' AND pid <> pg_backend_pid() LIMIT 1");
	crash($round == 2 ? 'kill' : 'stop', $pid);
	stop_background($bg);
	sound("crash during inserts $round");
}

# while VACUUM writes lists anew, with a checkpoint some time before
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', "INSERT INTO t SELECT nextval('ids'), i % 10, v FROM source, generate_series(1, 1) i; "
		  . "CHECKPOINT; DELETE FROM t WHERE category % 3 = $round - 1 OR id > 1000000 AND id % 2 = 0");
	my $vacuum = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
			"SET vacuum_cost_limit = 1; SET vacuum_cost_delay = '1ms'; SET vacuum_cost_page_hit = 1",
			'-c', 'VACUUM (INDEX_CLEANUP ON) t'
		],
		'<', \undef, '>&', \my $output);

	wait_until_true($node, "SELECT count(*) > 0 FROM pg_stat_progress_vacuum WHERE phase = 'vacuuming indexes'",
		"round $round: VACUUM is in the index");
	select(undef, undef, undef, 0.1 * $round);
	my $pid = sql_value($node, 'SELECT pid FROM pg_stat_progress_vacuum LIMIT 1');
	ok($pid, "round $round: and still there");
	crash($round == 2 ? 'kill' : 'stop', $pid);
	eval { $vacuum->finish };
	sound("crash during VACUUM $round");
}

# during a build
{
	$node->safe_psql('postgres', q{CREATE FUNCTION slow(v vector) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM pg_sleep(0.001); RETURN v; END $$});
	my $build = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
			"CREATE INDEX t_idx2 ON t USING quiver_ivf ((slow(v)::vector($dims)))"
		],
		'<', \undef, '>&', \my $output);
	wait_until_true($node, 'SELECT count(*) > 0 FROM pg_stat_progress_create_index', 'CREATE INDEX is at work');
	select(undef, undef, undef, 1);
	is(sql_value($node, 'SELECT count(*) FROM pg_stat_progress_create_index'), 1, 'and still at work');
	crash('stop');
	eval { $build->finish };
	is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 't_idx2'"), 0, 'no index is left');
	sound('crash during CREATE INDEX');
}

# right after a build, without a checkpoint
$node->safe_psql('postgres', 'REINDEX INDEX t_idx');
crash('stop');
sound('crash after a build');

# Moves that end by an error: canceled, and killed. Their pages are VACUUM's, and
# later moves of the same lists do not hide them.
$node->safe_psql('postgres', "DROP INDEX t_idx; TRUNCATE t; $index");
foreach my $round (1 .. 6)
{
	foreach my $ms (15, 40, 90)
	{
		$node->psql('postgres', "SET statement_timeout = $ms; INSERT INTO t SELECT nextval('ids'), 1, v FROM source");
		check_ok($node, 't_idx', undef, "canceled insert $round, $ms ms");
	}
}
$node->safe_psql('postgres', 'INSERT INTO t TABLE source; VACUUM (INDEX_CLEANUP ON) t');
check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), 'canceled inserts, vacuumed');
is(join(' ', index_facts($node, 't_idx', 'lost_pages')), 0, 'canceled inserts, vacuumed: no page is lost');
foreach my $ms (5, 10, 20, 40)
{
	$node->safe_psql('postgres', 'DELETE FROM t WHERE ctid IN (SELECT ctid FROM t ORDER BY random() LIMIT 2000)');
	$node->psql('postgres', "SET statement_timeout = $ms; VACUUM (INDEX_CLEANUP ON) t");
	check_ok($node, 't_idx', undef, "canceled VACUUM, $ms ms");
	$node->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source WHERE id <= 2000');
}
my $rows = sql_value($node, 'VACUUM (INDEX_CLEANUP ON) t; SELECT count(*) FROM t');
check_ok($node, 't_idx', $rows, 'canceled VACUUMs, vacuumed');
is(join(' ', index_facts($node, 't_idx', 'lost_pages')), 0, 'canceled VACUUMs, vacuumed: no page is lost');
is(scan_of(%common, query => 2, set => $all)->{count}, $rows, 'canceled VACUUMs: every row');

# Nobody deletes rows: VACUUM frees what a canceled split has left all the same.
# Canceled inserts leave dead rows, more of them on a slow machine: rows without a
# vector keep their pages under the 2 % of the table at which VACUUM looks into the
# index for them.
$node->safe_psql('postgres',
	'CREATE TABLE wide AS SELECT i AS id, array_to_vector(ARRAY(SELECT random() + i * 0 '
	  . 'FROM generate_series(1, 900)), 900, false) AS v FROM generate_series(1, 16000) i;'
	  . 'CREATE INDEX ON wide (id);'
	  . 'CREATE TABLE grown (id int, v vector(900)) WITH (autovacuum_enabled = false);'
	  . 'INSERT INTO grown SELECT i FROM generate_series(1, 2000000) i;'
	  . 'CREATE INDEX grown_idx ON grown USING quiver_ivf (v vector_l2_ops)');
$node->safe_psql('postgres', 'INSERT INTO grown SELECT * FROM wide WHERE id <= 4000; VACUUM grown');
my $inserts = $node->basedir . '/inserts.sql';
append_to_file($inserts,
	join('', map { "INSERT INTO grown SELECT * FROM wide WHERE id > 60 * $_ AND id <= 60 * $_ + 60;\n" } 70 .. 250));
my $lost = 0;
foreach my $round (1 .. 300)
{
	my $output = '';
	my $inserter = IPC::Run::start(
		[ 'psql', '-Xq', '-f', $inserts, '-h', $node->host, '-p', $node->port,
			'dbname=postgres application_name=inserter' ],
		'<', \undef, '>&', \$output);

	# While a split writes, its pages are lost, or not yet found: that is the moment.  It may
	# be over before it is canceled, and there are more.
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity "
		  . "WHERE application_name = 'inserter'");
	$node->safe_psql('postgres', q{
		DO $$ BEGIN
			LOOP
				PERFORM pg_stat_clear_snapshot();
				PERFORM FROM pg_stat_activity WHERE application_name = 'inserter';
				EXIT WHEN NOT FOUND;
				PERFORM FROM quiver_index_info('grown_idx') WHERE lost_pages > 0;
				CONTINUE WHEN NOT FOUND;
				PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'inserter';
				PERFORM pg_sleep(0.05);
				PERFORM FROM quiver_index_info('grown_idx') WHERE lost_pages > 0;
				EXIT WHEN FOUND;
			END LOOP;
		END $$});
	$inserter->kill_kill;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity "
		  . "WHERE application_name = 'inserter'");
	last if ($lost = join(' ', index_facts($node, 'grown_idx', 'lost_pages'))) > 0;
}
cmp_ok($lost, '>', 0, "a canceled split has left $lost pages");
my $slots = join(' ', index_facts($node, 'grown_idx', 'row_count'));
$node->safe_psql('postgres', 'VACUUM grown');
is(join(' ', index_facts($node, 'grown_idx', 'row_count', 'lost_pages')), "$slots 0",
	'VACUUM without rows to remove has freed them');
check_ok($node, 'grown_idx', undef, 'canceled split, vacuumed');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP:|signal (6|11|7)\b/, 'no server process crashed by itself');
$node->stop;
done_testing();
