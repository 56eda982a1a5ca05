# Builds where /dev/shm is small, as in a container (64 MB): parallel builds work at any
# maintenance_work_mem, where those of a stock pgvector fail; and where a graph has no room at
# all, one process builds it.

use strict;
use warnings FATAL => 'all';
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

# Runs a shell command that sees an empty /dev/shm of this size: a mount of its own, in a
# namespace where the user is root, and below it one where the user is who it was.
sub confined
{
	my ($size, $command) = @_;
	my ($uid, $gid) = ($>, (split / /, $))[0]);

	return [ 'unshare', '--user', '--map-root-user', '--mount', 'sh', '-c',
		"mount -t tmpfs -o size=$size tmpfs /dev/shm && "
		  . "exec unshare --user --map-user=$uid --map-group=$gid sh -c '$command'" ];
}

my ($seen, $why) = run_command(confined('64m', 'df -k --output=size /dev/shm'));
plan skip_all => "no mount namespace: $why" if $seen !~ /65536/;

# A running server whose dynamic shared memory is there.
sub confined_node
{
	my ($name, $size, $root) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name,
		$root ? (install_path => dirname(dirname(installed_program($root)))) : ());
	my $program = $root ? installed_program($root) : 'pg_ctl';

	$node->init;
	$node->append_conf('postgresql.conf',
		"autovacuum = off\njit = off\nfsync = off\ndynamic_shared_memory_type = posix\n"
		  . "max_parallel_maintenance_workers = 2\nmin_parallel_table_scan_size = 0\n");
	my $command = confined($size, "\"$program\" -w -D \"" . $node->data_dir . '" -l "' . $node->logfile . '" start');
	run_log([ @$command, '>', '/dev/null' ]) or BAIL_OUT("a server with $size of /dev/shm does not start");
	$node->_update_pid(1);
	return $node;
}

sub installed_program
{
	my ($root) = @_;
	chomp(my $bin = `"@{[ $ENV{PG_CONFIG} || 'pg_config' ]}" --bindir`);
	return "$root$bin/pg_ctl";
}

sub make_items
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
CREATE TABLE items (id int, v vector(64));
INSERT INTO items SELECT i, (SELECT array_agg(sin(i * j)) FROM generate_series(1, 64) j)::vector
FROM generate_series(1, 6000) i});
	return;
}

# What a build says, with the workers that it had.
sub build
{
	my ($node, $am, $memory) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = debug1; SET maintenance_work_mem = '$memory'; DROP INDEX IF EXISTS items_v;"
		  . "CREATE INDEX items_v ON items USING $am (v vector_l2_ops)");
	return ($rc, $err);
}

my $node = confined_node('small', '64m');
$node->safe_psql('postgres', 'CREATE EXTENSION vector; CREATE EXTENSION quiver');
make_items($node);
foreach my $am (qw(hnsw quiver_graph ivfflat quiver_ivf))
{
	foreach my $memory (qw(16MB 100MB 1GB 100GB))
	{
		my ($rc, $said) = build($node, $am, $memory);
		is($rc, 0, "$am with $memory of maintenance_work_mem is built in 64 MB of /dev/shm");
		# with little memory there may be none to share
		like($said, qr/using [12] parallel workers/, "$am with $memory: by workers") if $memory ne '16MB';
		check_ok($node, 'items_v', 6000, "$am with $memory");
	}
}
clean_log_ok($node);
$node->stop;

# No room for the graph.
$node = confined_node('none', '2m');
$node->safe_psql('postgres', 'CREATE EXTENSION vector; CREATE EXTENSION quiver');
make_items($node);
foreach my $am (qw(hnsw quiver_graph ivfflat quiver_ivf))
{
	my ($rc, $said) = build($node, $am, '1GB');
	is($rc, 0, "$am is built in 2 MB of /dev/shm");
	check_ok($node, 'items_v', 6000, "$am in 2 MB");
}
clean_log_ok($node);
$node->stop;

# A stock pgvector asks for maintenance_work_mem at once, whatever the table has.
SKIP:
{
	skip no_pgvector(), 2 if no_pgvector();
	$node = confined_node('stock', '64m', new_installation());
	$node->safe_psql('postgres', 'CREATE EXTENSION vector');
	make_items($node);
	my ($rc, $said) = build($node, 'hnsw', '1GB');
	isnt($rc, 0, "pgvector's parallel build fails");
	like($said, qr/could not resize shared memory segment .* No space left on device/, "pgvector's error");
	$node->stop;
}

done_testing();
