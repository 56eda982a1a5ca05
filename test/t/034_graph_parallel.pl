# Builds of graphs with workers: the same index for any number of them, errors in
# workers, canceled, beside writers; and no row that a search cannot reach, after
# builds, growth and vacuum.

use strict;
use warnings FATAL => 'all';
use Digest::MD5 qw(md5_hex);
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('graph_parallel', conf => "max_worker_processes = 16\nmax_parallel_workers = 8\n");

my ($dims, $rows) = (32, 8000);

# The temporary files of builds, and folders of them.
sub temporary_files
{
	return sql_value($node, q{SELECT count(*) FROM pg_ls_dir('base/pgsql_tmp', true, false)});
}

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims);
# equal rows share a node; more of them than a node holds
$node->safe_psql('postgres',
	"INSERT INTO t SELECT 100000 + i, 0, qt_vector(i % 20, $dims) FROM generate_series(1, 600) i;"
	  . 'ALTER TABLE t SET (parallel_workers = 2); ANALYZE t');
$rows += 600;
my %common = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx', ef => 60);

# Build with so many workers allowed; what the server said.
sub build
{
	my ($workers, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET max_parallel_maintenance_workers = $workers; SET client_min_messages = debug1; $sql");

	is($rc, 0, "$sql: with $workers workers") or diag($err);
	return $err;
}

# All pages but the metapage, which has a random number, without LSN and checksum.
# Values apart from their nodes have random stamps: there, what is counted.
sub digest
{
	my ($index) = @_;

	return join(' ', index_facts($node, $index, 'nodes', 'mean_degree', 'entry_points', 'bytes')) if $index =~ /apart/;
	my $path = $node->data_dir . '/'
	  . sql_value($node, "CHECKPOINT; SELECT pg_relation_filepath('$index')");
	my $bytes = slurp_file($path);
	my $pages = '';

	$pages .= substr($bytes, $_ * 8192 + 10, 8192 - 10) foreach 1 .. length($bytes) / 8192 - 1;
	return md5_hex($pages) . ' ' . length($bytes);
}

sub reached_ok
{
	my ($index, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('$index')");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($rc, 0, "$name: sound") or diag($err);
	unlike($err, qr/cannot reach/, "$name: all nodes can be reached");
	return;
}

# The same index whoever takes part: coded; plain with values in nodes, and apart.
$node->safe_psql('postgres', q{
CREATE TABLE bits WITH (parallel_workers = 2) AS SELECT id, binary_quantize(v)::bit(32) AS v FROM t;
CREATE TABLE sparse WITH (parallel_workers = 2) AS SELECT id, v::sparsevec(32) AS v FROM t;
});
foreach my $of ('t (v vector_l2_ops)', 't (v vector_ip_ops)', 'bits (v bit_hamming_ops)', 'sparse (v sparsevec_l2_ops)')
{
	my ($table, $column) = split(/ /, $of, 2);
	my $index = $table eq 'sparse' ? 'apart_idx' : 'any_idx';
	my @digests;

	foreach my $workers (0, 1, 2)
	{
		my $log = build($workers, "DROP INDEX IF EXISTS $index; "
			  . "CREATE INDEX $index ON $table USING quiver_graph $column");

		if ($workers == 0)
		{
			unlike($log, qr/using \d+ parallel workers/, 'no worker, as asked');
		}
		else
		{
			like($log, qr/building index "$index" using $workers parallel workers/, "$workers workers build");
		}
		check_ok($node, $index, $rows, "$of, $workers workers");
		reached_ok($index, "$of, $workers workers");
		push @digests, digest($index);
	}
	is($digests[1], $digests[0], "$of: the same index with a worker as without");
	is($digests[2], $digests[0], "$of: and with two");

	# the same index, too, when the graph is in temporary files: a part of it, or all
	foreach my $few ([0, '1MB'], [2, '1MB'], [0, '3MB'], [2, '3MB'])
	{
		my ($workers, $memory) = @$few;
		my $log = build($workers, "DROP INDEX $index; SET maintenance_work_mem = '$memory'; "
			  . "CREATE INDEX $index ON $table USING quiver_graph $column");

		like($log, qr/NOTICE:  quiver_graph graph no longer fits into maintenance_work_mem after \d+ tuples/,
			"$memory is too little");
		is(digest($index), $digests[0], "$of: the same index with $memory and $workers workers");
	}
	$node->safe_psql('postgres', "DROP INDEX $index");
}

my $definition = 'USING hnsw (v vector_l2_ops)';
like(build(2, "CREATE INDEX t_idx ON t $definition"), qr/using 2 parallel workers/, 'hnsw has workers');
recall_ok(0.95, 'with workers', %common);
$node->stop('immediate');
$node->start;
recall_ok(0.95, 'after a crash', %common);
check_ok($node, 't_idx', $rows, 'after a crash');

# no worker to be had; a table of the same transaction, a partial index, none at all
unlike(build(2, 'SET max_parallel_workers = 0; REINDEX INDEX t_idx'), qr/using [12] parallel workers/,
	'none are left to launch');
check_ok($node, 't_idx', $rows, 'no worker to be had');
like(build(2, "BEGIN; CREATE TABLE own WITH (parallel_workers = 2) AS SELECT * FROM t; "
		  . "CREATE INDEX own_idx ON own $definition; COMMIT"),
	qr/building index "own_idx" using 2/, 'a table of the same transaction');
check_ok($node, 'own_idx', $rows, 'a table of the same transaction');
build(2, "DROP INDEX own_idx; CREATE INDEX own_idx ON own $definition WHERE category < 10");
check_ok($node, 'own_idx', sql_value($node, 'SELECT count(*) FROM own WHERE category < 10'), 'a partial index');
build(2, "TRUNCATE own; REINDEX INDEX own_idx");
check_ok($node, 'own_idx', 0, 'no rows');
build(2, "INSERT INTO own SELECT 1, 1, NULL FROM generate_series(1, 5000); REINDEX INDEX own_idx");
check_ok($node, 'own_idx', 0, 'no values');

is(temporary_files(), 0, 'no temporary files are left');

# A function that is slow, and fails in workers: an error in one ends the build.
$node->safe_psql('postgres', q{
CREATE FUNCTION slow(v vector, fails boolean) RETURNS vector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	PERFORM pg_sleep(0.001);
	IF fails AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid()
			AND backend_type = 'parallel worker') THEN
		RAISE EXCEPTION 'no vectors here' USING ERRCODE = '22000';
	END IF;
	RETURN v;
END $$;
CREATE TABLE few WITH (parallel_workers = 2) AS SELECT * FROM t LIMIT 1500;
});
my $slow = 'CREATE INDEX slow_idx ON few USING quiver_graph ((slow(v, false)::vector(32)) vector_l2_ops)';
(my $failing = $slow) =~ s/false/true/;
fails_like($node, $failing, '22000', 'no vectors here', 'an error in a worker');

# canceled: in the leader, and by the end of a worker
fails_like($node, "SET statement_timeout = '1s'; $slow", '57014', 'canceling statement due to statement timeout',
	'canceled while rows are loaded');
$node->safe_psql('postgres', 'CREATE TABLE many WITH (parallel_workers = 2) AS SELECT t.* '
	  . 'FROM t, generate_series(1, 3)');
$node->safe_psql('postgres', 'UPDATE many SET v = qt_vector(id + (random() * 1000000)::int, 32)');
my $session = new_session($node);
$session->{in} .= "\\set VERBOSITY verbose\nSET client_min_messages = error;\n"
  . "SET maintenance_work_mem = '1MB';\n"
  . "CREATE INDEX many_idx ON many USING quiver_graph (v vector_l2_ops) "
  . "WITH (ef_construction = 1000);\n\\echo end-of-build\n";
$session->{handle}->pump_nb;
wait_until_true($node,
	q{SELECT tuples_done > 100 AND tuples_done <= tuples_total FROM pg_stat_progress_create_index
		WHERE phase = 'building index: connecting nodes'},
	'progress is shown, of the nodes that are connected');
is(sql_value($node,
		q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' }
		  . q{AND query LIKE 'CREATE INDEX many_idx%'}),
	2, 'two workers are there, and show the query');
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1});
$session->{handle}->pump until $session->{out} =~ /end-of-build/;
like($session->{out}, qr/ERROR:  57P01/, 'a worker that is terminated ends the build');
end_session($session);
is(temporary_files(), 0, 'no temporary files are left by it');
is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname IN ('slow_idx', 'many_idx')"), 0,
	'nothing is left of it');
is(sql_value($node, q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}), 0,
	'nor of the workers');

# Inserts, updates and deletes go on while indexes are built concurrently.
my $bg = background_pgbench($node, q{
\set id random(1, 8000)
INSERT INTO t SELECT :id + 200000, 1, qt_vector(:id + 200000, 32);
UPDATE t SET category = category + 1, v = qt_vector(:id + 5, 32) WHERE id = :id;
DELETE FROM t WHERE id = :id + 200000 + 7;
}, clients => 2);
$node->safe_psql('postgres', 'DROP INDEX t_idx');
foreach my $sql ("CREATE INDEX CONCURRENTLY t_idx ON t $definition", 'REINDEX INDEX CONCURRENTLY t_idx',
	'REINDEX INDEX t_idx')
{
	# a SET beside it would make them a transaction
	local $ENV{PGOPTIONS} = '-c max_parallel_maintenance_workers=2 -c client_min_messages=debug1';
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	is($rc, 0, "$sql while others write") or diag($err);
	like($err, qr/building index "t_idx\w*" using 2 parallel workers/, '... with workers');
}
writes_ok($node, $bg, 'count(*) > 0 FROM t WHERE id > 200000', 'concurrent writes');
check_ok($node, 't_idx', undef, 'after concurrent writes');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 0; VACUUM t');
check_ok($node, 't_idx', sql_value($node, 'SELECT count(*) FROM t'), 'after vacuum');
reached_ok('t_idx', 'after vacuum');
recall_ok(0.93, 'after vacuum', %common);

clean_log_ok($node);
done_testing();
