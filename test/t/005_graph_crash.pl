# The server dies during inserts, VACUUM and CREATE INDEX: after recovery the
# index is sound and finds what is there.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('crash', conf => "checkpoint_timeout = 30s\nfull_page_writes = on\n");
my ($dims, $rows) = (16, 4000);

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims);
$node->safe_psql('postgres',
	'CREATE SEQUENCE ids START 1000000; CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops)');
my %common = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx', ef => 60);
my $script = qq{
\\set i random(1, 10000)
INSERT INTO t VALUES (nextval('ids'), 1, qt_vector(:i + 3000000, $dims)::vector),
	(0, 1, qt_vector(:i % 5, $dims)::vector);
};

my $crashes = 0;

# What must hold after each crash; the table is used further.
sub sound
{
	my ($what) = @_;

	my @recoveries = slurp_file($node->logfile) =~ /database system was not properly shut down/g;

	is(scalar(@recoveries), ++$crashes, "$what: there was a crash");
	check_ok($node, 't_idx', undef, $what);
	recall_ok(0.95, $what, %common);
	# a crash leaves few dead rows, for which VACUUM would not look into the index
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), "$what, then VACUUM");
	recall_ok(0.95, "$what, then VACUUM", %common);
	$node->safe_psql('postgres', "INSERT INTO t SELECT i, 0, qt_vector(i + 5000000, $dims)::vector "
		  . "FROM generate_series(1, 200) i");
	check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), "$what, then inserts");
}

# Wait until a session is where we want it; a crash elsewhere proves nothing.
sub wait_progress
{
	my ($view, $phase) = @_;
	my $until = time + 120;
	while (time < $until)
	{
		return 1 if sql_value($node, "SELECT count(*) FROM $view WHERE phase ~ '$phase'") > 0;
	}
	return 0;
}

foreach my $round (1 .. 3)
{
	my $bg = background_pgbench($node, $script, clients => 4);
	my $goal = sql_value($node, 'SELECT last_value FROM ids') + 300 + 150 * $round;

	wait_until_true($node, "SELECT last_value > $goal FROM ids", "inserts, round $round");
	$node->safe_psql('postgres', 'CHECKPOINT') if $round == 2;
	$node->stop('immediate');
	stop_background($bg);
	$node->start;
	sound("crash during inserts, round $round");
}

# with the postmaster itself killed
{
	my $bg = background_pgbench($node, $script, clients => 4);
	my $goal = sql_value($node, 'SELECT last_value FROM ids') + 300;

	wait_until_true($node, "SELECT last_value > $goal FROM ids", 'inserts before kill -9');
	$node->kill9;
	stop_background($bg);
	# its children end by themselves, which takes a moment
	my $up = 0;
	foreach (1 .. 50)
	{
		last if $up = $node->start(fail_ok => 1);
		$node->{_pid} = undef;
		select(undef, undef, undef, 0.1);
	}
	ok($up, 'start after kill -9');
	sound('kill -9 during inserts');
}

# VACUUM, slowed down so that it is met in the middle
foreach my $delay (0.1, 0.7, 1.5)
{
	$node->safe_psql('postgres', 'DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE id % 3 = 1)');
	my $vacuum = IPC::Run::start(
		[
			'psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			'-c', 'SET vacuum_cost_delay = 10', '-c', 'SET vacuum_cost_limit = 1', '-c', 'VACUUM t'
		],
		'<', \undef, '>&', \my $output);

	ok(wait_progress('pg_stat_progress_vacuum', 'vacuuming indexes'), "VACUUM is at the index, crash $delay");
	select(undef, undef, undef, $delay);
	is(sql_value($node, "SELECT count(*) FROM pg_stat_progress_vacuum"), 1, "and still at work, crash $delay");
	$node->stop('immediate');
	eval { $vacuum->finish };
	$node->start;
	sound("crash during VACUUM, $delay");
	my $last = sql_value($node, 'SELECT count(*) FROM t');
	make_rows($node, table => 't', dims => $dims, first => $last * 10, last => $last * 10 + $rows / 3, create => 0);
}

# CREATE INDEX: the transaction is gone, and its file is not in the way.  The
# expression makes every row take long.
$node->safe_psql('postgres', q{
CREATE FUNCTION slow(v vector) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN PERFORM pg_sleep(0.0005); RETURN v; END $$});
foreach my $case ([ 'sampling', '64MB' ], [ 'loading', '64MB' ], [ 'loading', '1MB' ])
{
	my ($phase, $memory) = @$case;
	my $build = IPC::Run::start(
		[
			'psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			'-c', "SET maintenance_work_mem = '$memory'", '-c',
			"CREATE INDEX t_idx2 ON t USING quiver_graph ((slow(v)::vector($dims)))"
		],
		'<', \undef, '>&', \my $output);

	ok(wait_progress('pg_stat_progress_create_index', $phase), "CREATE INDEX is at work, $phase");
	select(undef, undef, undef, 0.5) if $phase eq 'loading';
	is(sql_value($node, "SELECT count(*) FROM pg_stat_progress_create_index"), 1, "and still at work, $phase");
	$node->stop('immediate');
	eval { $build->finish };
	$node->start;
	$crashes++;
	is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 't_idx2'"), 0, "no index is left, $phase");
	check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), "crash during CREATE INDEX, $phase");
}
$node->safe_psql('postgres', 'CREATE INDEX t_idx2 ON t USING quiver_graph (v vector_ip_ops)');
check_ok($node, 't_idx2', sql_value($node, 'SELECT count(*) FROM t'), 'build after the crashes');
$node->safe_psql('postgres', 'DROP INDEX t_idx2');

# Right after a build, without a checkpoint.
$node->safe_psql('postgres', 'REINDEX INDEX t_idx');
$node->stop('immediate');
$node->start;
sound('crash after a build');

# A crash after VACUUM: inserts find the slots that it freed.
$node->safe_psql('postgres',
	"CREATE TABLE s (id int, v vector($dims)) WITH (autovacuum_enabled = false);"
	  . "INSERT INTO s SELECT i, qt_vector(i, $dims)::vector FROM generate_series(1, 3000) i;"
	  . 'CREATE INDEX s_idx ON s USING quiver_graph (v vector_l2_ops); CHECKPOINT; '
	  . 'DELETE FROM s WHERE id <= 2000; VACUUM s;'
	  # a commit, before which the WAL is on disk
	  . 'CREATE TABLE flushed ()');
my $before = sql_value($node, "SELECT pg_relation_size('s_idx')");
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', "INSERT INTO s SELECT i, qt_vector(i, $dims)::vector "
	  . "FROM generate_series(10001, 11900) i");
is(sql_value($node, "SELECT pg_relation_size('s_idx')"), $before, 'slots freed before a crash are used');
check_ok($node, 's_idx', 2900, 'slots freed before a crash used');

# What the free space map loses is found by the next VACUUM.
$node->safe_psql('postgres',
	"CREATE TABLE f (id int, v vector($dims)) WITH (autovacuum_enabled = false);"
	  . "INSERT INTO f SELECT i, qt_vector(i, $dims)::vector FROM generate_series(1, 3000) i;"
	  . 'CREATE INDEX f_idx ON f USING quiver_graph (v vector_l2_ops); DELETE FROM f WHERE id <= 2000; VACUUM f');
my $size = sql_value($node, "SELECT pg_relation_size('f_idx')");
my $map = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('f_idx')") . '_fsm';
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
ok(-e $map, 'there was a free space map');
unlink $map;
$node->start;
$node->safe_psql('postgres', "DELETE FROM f WHERE id = 2500");
$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) f");
$node->safe_psql('postgres', "INSERT INTO f SELECT i, qt_vector(i, $dims)::vector "
	  . "FROM generate_series(10001, 11900) i");
is(sql_value($node, "SELECT pg_relation_size('f_idx')"), $size, 'free slots are used again after a crash');
check_ok($node, 'f_idx', 2899, 'free slots used again');

# A damaged map that names the metapage, which an insert has locked when it looks there: slot 0 of
# the map's pages (a header of 24 bytes, 4 bytes, the nodes of a tree, 4,095 of them above the slots).
$node->safe_psql('postgres', "DELETE FROM f WHERE id BETWEEN 2600 AND 2700; VACUUM (INDEX_CLEANUP ON) f; CHECKPOINT");
$node->stop('immediate');
open my $file, '+<:raw', $map or die "cannot open $map: $!";
foreach my $page (0 .. (-s $map) / 8192 - 1)
{
	for (my $node_at = 4095; ; $node_at = ($node_at - 1) >> 1)
	{
		seek $file, $page * 8192 + 28 + $node_at, 0;
		print $file chr(255);
		last if $node_at == 0;
	}
}
close $file;
$node->start;
$node->safe_psql('postgres', "SET statement_timeout = '120s'; "
	  . "INSERT INTO f SELECT i, qt_vector(i, $dims)::vector FROM generate_series(20001, 20300) i");
my $rows_now = sql_value($node, 'SELECT count(*) FROM f');
check_ok($node, 'f_idx', $rows_now, 'a map that names the metapage');

clean_log_ok($node);
$node->stop;
done_testing();
