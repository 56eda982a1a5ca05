# The extensions in a folder of their own, outside the server's: as an image that Kubernetes
# mounts has them (packaging/cloudnativepg.md). Since 18 two settings say where they are.

use strict;
use warnings FATAL => 'all';
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

my ($version) = `pg_config --version` =~ /PostgreSQL (\d+)/;
plan skip_all => 'a server has extensions in other folders since 18' if $version < 18;

# A server without the extensions, and a folder that has nothing else.
my $root = copy_installation();
my $mounted = PostgreSQL::Test::Utils::tempdir();
my $extension = dirname(installed_file($root, 'quiver.control'));
my $library = installed_file($root, 'library quiver');
system_or_bail('mkdir', '-p', "$mounted/lib", "$mounted/share/extension");
system_or_bail('mv', $library, "$mounted/lib/");
system_or_bail('sh', '-c', qq{mv "$extension"/quiver* "$extension"/vector* "$mounted/share/extension/"});

my $node = new_stock_node('mounted', $root, conf => "extension_control_path = '$mounted/share:\$system'\n"
	  . "dynamic_library_path = '$mounted/lib:\$libdir'\nsession_preload_libraries = 'quiver'\n");
$node->safe_psql('postgres', q{
CREATE EXTENSION quiver CASCADE;
CREATE TABLE items (id int, v vector(3));
INSERT INTO items SELECT i, ARRAY[sin(i), cos(i), i % 7]::vector FROM generate_series(1, 500) i;
CREATE INDEX items_graph ON items USING quiver_graph (v vector_l2_ops);
CREATE INDEX items_hnsw ON items USING hnsw (v vector_l2_ops);
});
is($node->safe_psql('postgres', 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 77) LIMIT 1'),
	77, 'a search');
check_ok($node, $_, 500, $_) foreach qw(items_graph items_hnsw);
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE probin <> '$libdir/quiver' AND probin ~ 'quiver'}),
	0, 'the catalog names no folder: the database may move to a server that has the library elsewhere');
clean_log_ok($node);

done_testing();
