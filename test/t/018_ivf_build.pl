# Builds of posting lists: with workers, canceled, with errors in workers, with
# little memory, and while others insert.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_build', conf => "max_worker_processes = 16\nmax_parallel_workers = 8\n");

my ($dims, $rows) = (32, 12000);

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims);
# else memory would allow no worker
$node->safe_psql('postgres', 'ALTER TABLE t SET (parallel_workers = 2); ANALYZE t');
my %common = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx');

# Build with so many workers allowed; what the server said.
sub build
{
	my ($workers, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET max_parallel_maintenance_workers = $workers; SET client_min_messages = debug1; $sql");

	is($rc, 0, "$sql: with $workers workers") or diag($err);
	return $err;
}

# What a build makes does not depend on how many took part.
my $definition = 'USING quiver_ivf (v vector_l2_ops) WITH (lists = 300)';
my @found;
foreach my $workers (0, 1, 2)
{
	my $log = build($workers, "DROP INDEX IF EXISTS t_idx; CREATE INDEX t_idx ON t $definition");

	if ($workers == 0)
	{
		unlike($log, qr/parallel workers/, 'no worker, as asked');
	}
	else
	{
		like($log, qr/clustering \d+ rows using $workers parallel workers/, "$workers workers cluster");
		like($log, qr/loading index "t_idx" using $workers parallel workers/, "$workers workers load rows");
	}
	recall_ok(0.93, "$workers workers", %common);
	check_ok($node, 't_idx', $rows, "$workers workers");
	# the order of rows within a list is not the same
	push @found, sql_value($node,
		"SELECT lists, smallest_list, median_list, largest_list, balance FROM quiver_index_info('t_idx')");
}
is($found[1], $found[0], 'the same lists with a worker as without');
is($found[2], $found[0], 'and with two');

# no worker to be had; and a table of the same transaction
unlike(build(2, 'SET max_parallel_workers = 0; REINDEX INDEX t_idx'), qr/using [12] parallel workers/,
	'none are left to launch');
check_ok($node, 't_idx', $rows, 'no worker to be had');
like(build(2, "BEGIN; CREATE TABLE own WITH (parallel_workers = 2) AS SELECT * FROM t; "
		  . "CREATE INDEX own_idx ON own $definition; COMMIT"),
	qr/loading index "own_idx" using 2/, 'a table of the same transaction');
check_ok($node, 'own_idx', $rows, 'a table of the same transaction');

# Few lists: one process clusters, workers load; ivfflat, other metrics and types
like(build(2, 'DROP INDEX t_idx; CREATE INDEX t_idx ON t USING ivfflat (v vector_cosine_ops) WITH (lists = 20)'),
	qr/loading index "t_idx" using 2 parallel workers/, 'ivfflat has workers');
recall_ok(0.93, 'ivfflat', %common, op => '<=>', set => 'SET ivfflat.probes = 10;');
build(2, 'DROP INDEX t_idx; CREATE INDEX t_idx ON t USING quiver_ivf (v vector_ip_ops)');
recall_ok(0.9, 'inner product', %common, op => '<#>');
$node->safe_psql('postgres', q{CREATE TABLE bits WITH (parallel_workers = 2) AS
	SELECT id, binary_quantize(v)::bit(32) AS v FROM t});
like(build(2, 'CREATE INDEX bits_idx ON bits USING quiver_ivf (v bit_hamming_ops)'),
	qr/loading index "bits_idx" using 2/, 'bit has workers');
check_ok($node, 'bits_idx', $rows, 'bit');

# 1 MB: says so where it matters, works, and survives a crash
foreach my $workers (0, 2)
{
	my $log = build($workers,
		"SET maintenance_work_mem = '1MB'; DROP INDEX t_idx; "
		  . "CREATE INDEX t_idx ON t USING quiver_ivf (v vector_l2_ops) WITH (lists = 800)");

	like($log, qr/NOTICE:  lists are made from few rows because of maintenance_work_mem/,
		"1MB and $workers workers: a notice");
	recall_ok(0.9, "1MB, $workers workers", %common);
	check_ok($node, 't_idx', $rows, "1MB, $workers workers");
}
fails_like($node,
	"SET maintenance_work_mem = '1MB'; CREATE INDEX ON t USING quiver_ivf (v vector_l2_ops) WITH (lists = 60000)",
	'54000', 'maintenance_work_mem is too small for 60000 lists', 'too many lists for the memory');
$node->stop('immediate');
$node->start;
recall_ok(0.9, 'after a crash', %common);
unlike(build(1, 'REINDEX INDEX t_idx'), qr/NOTICE:  lists are made/, 'no notice with memory enough');

# A function that is slow, so slow in workers that they are there for long after what is done
# to them, or fails in them: an error in one ends the build.
$node->safe_psql('postgres', q{
CREATE FUNCTION slow(v vector, fails boolean) RETURNS vector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND backend_type = 'parallel worker') THEN
		PERFORM pg_sleep(0.001);
	ELSIF fails THEN
		RAISE EXCEPTION 'no vectors here' USING ERRCODE = '22000';
	ELSE
		PERFORM pg_sleep(0.5);
	END IF;
	RETURN v;
END $$;
CREATE TABLE few WITH (parallel_workers = 2) AS SELECT * FROM t LIMIT 1500;
});
my $slow = 'CREATE INDEX slow_idx ON few USING quiver_ivf ((slow(v, false)::vector(32)) vector_l2_ops) '
	  . 'WITH (lists = 10)';
(my $failing = $slow) =~ s/false/true/;
fails_like($node, $failing, '22000', 'no vectors here', 'an error in a worker');

# canceled: in the leader, and by the end of a worker
fails_like($node, "SET statement_timeout = '1s'; $slow", '57014', 'canceling statement due to statement timeout',
	'canceled');
my $session = new_session($node);
$session->{in} .= "\\set VERBOSITY verbose\n$slow;\n\\echo end-of-build\n";
$session->{handle}->pump_nb;
wait_until_true($node,
	q{SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'parallel worker' }
	  . q{AND query LIKE 'CREATE INDEX slow_idx%'},
	'two workers are there, and show the query');
is( sql_value($node, q{SELECT p.phase FROM pg_stat_progress_create_index p JOIN pg_stat_activity a USING (pid)
	WHERE a.backend_type = 'client backend'}), 'building index: assigning tuples', 'progress is shown');
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'});
$session->{handle}->pump until $session->{out} =~ /end-of-build/;
like($session->{out}, qr/ERROR:  57P01/, 'a worker that is terminated ends the build');
end_session($session);
is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 'slow_idx'"), 0, 'nothing is left of it');
is(sql_value($node, q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}), 0,
	'nor of the workers');

# Inserts, updates and deletes go on while indexes are built concurrently.
my $bg = background_pgbench($node, q{
\set id random(1, 12000)
INSERT INTO t SELECT :id + 100000, 1, qt_vector(:id + 100000, 32);
UPDATE t SET category = category + 1, v = qt_vector(:id + 5, 32) WHERE id = :id;
DELETE FROM t WHERE id = :id + 100000 + 7;
}, clients => 2);
$node->safe_psql('postgres', 'DROP INDEX t_idx');
foreach my $sql ("CREATE INDEX CONCURRENTLY t_idx ON t $definition", 'REINDEX INDEX CONCURRENTLY t_idx',
	'REINDEX INDEX t_idx')
{
	# a SET beside it would make them a transaction
	my $sets = '-c max_parallel_maintenance_workers=2 -c client_min_messages=debug1';
	local $ENV{PGOPTIONS} = $sets;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	is($rc, 0, "$sql while others write") or diag($err);
	like($err, qr/loading index "t_idx\w*" using 2 parallel workers/, '... with workers');
}
writes_ok($node, $bg, 'count(*) > 0 FROM t WHERE id > 100000', 'concurrent writes');
check_ok($node, 't_idx', undef, 'after concurrent writes');
$node->safe_psql('postgres', 'VACUUM t');
check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), 'after vacuum');
recall_ok(0.93, 'after concurrent writes', %common);
is(sql_value($node, "SELECT indisvalid FROM pg_index WHERE indexrelid = 't_idx'::regclass"), 't', 'valid');

clean_log_ok($node);
done_testing();
