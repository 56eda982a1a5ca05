# Builds: beyond maintenance_work_mem, canceled, on a full disk, and while
# others insert.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('build');
my ($dims, $rows) = (32, 6000);

# The temporary files of builds, and folders of them.
sub temporary_files
{
	return sql_value($node, q{SELECT count(*) FROM pg_ls_dir('base/pgsql_tmp', true, false)});
}

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims);
my %common = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx', ef => 60);

# Beyond maintenance_work_mem: at once (1 MB), and in the middle.  The recall is that of a build
# with memory enough.
my $definition = 'CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops) WITH (m = 48, ef_construction = 96)';
$node->safe_psql('postgres', "SET maintenance_work_mem = '256MB'; $definition");
my $full = recall(%common);
foreach my $memory ('1MB', '5MB')
{
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET maintenance_work_mem = '$memory'; DROP INDEX t_idx; $definition");

	is($rc, 0, "build with $memory");
	like($err, qr/NOTICE:  hnsw graph no longer fits into maintenance_work_mem after \d+ tuples/,
		"build with $memory says so");
	is(recall(%common), $full, "build with $memory: recall $full, as with memory enough");
	check_ok($node, 't_idx', $rows, "build with $memory");
}

# what was built without WAL is there after a crash
$node->stop('immediate');
$node->start;
recall_ok(0.95, 'build and crash', %common);
check_ok($node, 't_idx', $rows, 'build and crash');

my ($rc, $out, $err) = $node->psql('postgres', "SET maintenance_work_mem = '256MB'; REINDEX INDEX t_idx");
unlike($err, qr/no longer fits/, 'no notice with memory enough');

# temporary files count for temp_file_limit; none stays
fails_like($node, "SET maintenance_work_mem = '1MB'; SET temp_file_limit = '2MB'; REINDEX INDEX t_idx",
	'53400', 'temporary file size exceeds "?temp_file_limit', 'a build is limited by temp_file_limit');
is(temporary_files(), 0, 'no temporary file is left');
check_ok($node, 't_idx', $rows, 'the index of before is used');

# and they are where temp_tablespaces says
my $space = PostgreSQL::Test::Utils::tempdir;
$node->append_conf('postgresql.conf', 'log_temp_files = 0');
$node->reload;
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$space'");
my $before = -s $node->logfile;
$node->safe_psql('postgres', "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0;
	SET temp_tablespaces = space; REINDEX INDEX t_idx");
my @files = slurp_file($node->logfile, $before) =~ /temporary file: path "([^"]*)"/g;
ok(@files > 0, 'a build has temporary files');
is(scalar(grep { !m{^pg_tblspc/} } @files), 0, 'all of them are in temp_tablespaces');

# canceled; the table stays usable.  A build of so many different rows takes seconds, and ends by
# itself within none of the timeouts on a fast machine either.
my $many = $rows * 12;
make_rows($node, table => 'many', dims => $dims, first => 1, last => $many);
fails_like($node, "SET statement_timeout = 120; CREATE INDEX many_idx ON many USING hnsw (v vector_l2_ops)",
	'57014', 'canceling statement due to statement timeout', 'a build is canceled by statement_timeout');
fails_like($node, "SET maintenance_work_mem = '1MB'; SET statement_timeout = 300; "
	  . 'CREATE INDEX many_idx ON many USING hnsw (v vector_l2_ops)',
	'57014', 'canceling statement due to statement timeout', 'and so is one with temporary files');
is(temporary_files(), 0, 'none of them is left');
is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 'many_idx'"), 0, 'nothing is left of it');

# CONCURRENTLY: an invalid index is left, which nobody uses and inserts keep up
fails_like($node, "SET statement_timeout = 120; "
	  . "CREATE INDEX CONCURRENTLY many_idx ON many USING hnsw (v vector_l2_ops)",
	'57014', 'canceling statement', 'a concurrent build is canceled');
SKIP:
{
	skip 'canceled before there was an index', 4
	  if sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 'many_idx'") eq '0';
	fails_like($node, "SELECT quiver_check('many_idx')", '55000', 'index "many_idx" is not valid', 'it is not valid');
	is($node->psql('postgres', "INSERT INTO many SELECT * FROM t LIMIT 10; VACUUM many"), 0,
		'inserting and vacuum go on');
	$node->safe_psql('postgres', 'REINDEX INDEX many_idx');
	check_ok($node, 'many_idx', $many + 10, 'REINDEX of it');
	$node->safe_psql('postgres', 'DROP INDEX many_idx; '
		  . 'DELETE FROM many WHERE ctid IN (SELECT ctid FROM many LIMIT 10)');
	pass('and dropped');
}

# a full disk
SKIP:
{
	# a server does not run as root, so somebody else must have mounted it:
	# mount -t tmpfs -o size=3m,mode=0777 tmpfs DIR
	my $small = $ENV{QUIVER_SMALL_DISK};

	skip 'QUIVER_SMALL_DISK names no file system of about 3 MB to fill', 4 if !$small || !-d $small;
	my $room = "$small/space";
	mkdir $room;
	chmod 0700, $room;
	$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$room'");
	fails_like($node, 'CREATE INDEX many_idx ON many USING hnsw (v vector_l2_ops) '
		  . 'WITH (m = 48, ef_construction = 96) TABLESPACE small',
		'53100', 'could not (extend|write)', 'a full disk ends a build');
	is(sql_value($node, "SELECT count(*) FROM pg_class WHERE relname = 'many_idx'"), 0, 'nothing is left of it');
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->safe_psql('postgres',
		'CREATE TABLE few AS TABLE t LIMIT 500; CREATE INDEX few_idx ON few USING hnsw (v vector_l2_ops) '
		  . 'WITH (m = 48, ef_construction = 96) TABLESPACE small');
	fails_like($node, 'INSERT INTO few SELECT id, category, v FROM many', '53100', 'could not (extend|write)',
		'a full disk ends an insert');
	check_ok($node, 'few_idx', undef, 'after a full disk');
	$node->safe_psql('postgres', 'DROP TABLE few; DROP TABLESPACE small');
	rmdir $room;
}

# CREATE and REINDEX INDEX CONCURRENTLY while others insert, update and delete
$node->safe_psql('postgres', 'CREATE SEQUENCE ids START 1000000');
my $bg = background_pgbench($node, qq{
\\set i random(1, $rows)
INSERT INTO t VALUES (nextval('ids'), 1, qt_vector(:i + 3000000, $dims)::vector);
UPDATE t SET v = qt_vector(:i + 4000000, $dims)::vector WHERE ctid
	= (SELECT ctid FROM t ORDER BY v <-> qt_vector(:i, $dims)::vector LIMIT 1);
DELETE FROM t WHERE ctid = (SELECT ctid FROM t ORDER BY v <-> qt_vector(:i + 4000000, $dims)::vector LIMIT 1);
});
wait_until_true($node, 'SELECT last_value > 1000020 FROM ids', 'others are at work');
foreach my $command ('REINDEX INDEX CONCURRENTLY t_idx',
	'CREATE INDEX CONCURRENTLY t_idx2 ON t USING quiver_graph (v vector_cosine_ops)',
	'VACUUM t', 'REINDEX INDEX CONCURRENTLY t_idx2')
{
	my $before = sql_value($node, 'SELECT last_value FROM ids');
	my ($rc, $out, $err) = $node->psql('postgres', $command);

	is($rc, 0, "$command ($err)");
	cmp_ok(sql_value($node, 'SELECT last_value FROM ids'), '>', $before, "others worked during $command");
}
my $said = stop_background($bg);
unlike($said, qr/ERROR/, 'nobody got an error');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
my $now = sql_value($node, 'SELECT count(*) FROM t');
check_ok($node, 't_idx', $now, 'after concurrent builds');
check_ok($node, 't_idx2', $now, 'after concurrent builds');
$node->safe_psql('postgres', 'DROP INDEX t_idx2');
recall_ok(0.95, 'after concurrent builds', %common);

clean_log_ok($node);
$node->stop;
done_testing();
