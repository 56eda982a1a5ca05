# Databases with a released version of extension quiver become those of the version
# installed by ALTER EXTENSION quiver UPDATE: the one of this checkout, and one to come,
# which is made here.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

# of the base script and of update scripts, the version that each leads to
my @released = slurp_file('sql/released') =~ /--([0-9.]+)\.sql$/mg;
ok(@released > 0, 'there are released versions: ' . join(', ', @released));
my ($default) = slurp_file('quiver.control') =~ /^default_version = '(.*)'/m;

sub database
{
	return 'v' . ($_[0] =~ s/\./_/gr);
}

# With both indexes of extension quiver in it.
sub create_released
{
	my ($node, $version) = @_;

	$node->safe_psql('postgres', 'CREATE DATABASE ' . database($version));
	$node->safe_psql(database($version), qq{
CREATE EXTENSION vector;
CREATE EXTENSION quiver VERSION '$version';
CREATE TABLE items (id int, v vector(4));
INSERT INTO items SELECT i, ARRAY[sin(i), cos(i), sin(2 * i), cos(3 * i)]::real[] FROM generate_series(1, 500) i;
CREATE INDEX items_graph ON items USING quiver_graph (v vector_l2_ops);
CREATE INDEX items_lists ON items USING quiver_ivf (v vector_l2_ops);
});
	return;
}

sub works_ok
{
	my ($node, $db, $name) = @_;

	foreach my $index (qw(items_graph items_lists))
	{
		my $other = $index eq 'items_graph' ? 'items_lists' : 'items_graph';
		is($node->safe_psql($db, "SELECT quiver_check('$index')"), 500, "$name: $index is sound");
		my ($plan, $found) = split /^found\n/m, $node->safe_psql($db, qq{
BEGIN;
DROP INDEX $other;
SET enable_seqscan = off;
EXPLAIN SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 77) LIMIT 1;
\\echo found
SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 77) LIMIT 1;
});
		like($plan, qr/Index Scan using $index /, "$name: $index is used");
		is($found, 77, "$name: $index finds the nearest row");
	}
	return;
}

# The version of this checkout.
my $ours = new_node('ours');
$ours->safe_psql('postgres', 'DROP EXTENSION quiver; CREATE EXTENSION quiver');
is($ours->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'quiver'}),
	$default, 'CREATE EXTENSION makes the default version');
my $fresh = catalog($ours, 'postgres', 'quiver');
like($fresh, qr/quiver_check/, 'the catalog knows the objects of quiver');
foreach my $version (@released)
{
	create_released($ours, $version);
	works_ok($ours, database($version), "$version, with this library");
	$ours->safe_psql(database($version), 'ALTER EXTENSION quiver UPDATE');
	same_lines_ok(catalog($ours, database($version), 'quiver'), $fresh,
		"from $version: the catalog is that of CREATE EXTENSION");
	works_ok($ours, database($version), "from $version");
}
clean_log_ok($ours);
$ours->stop;

# One to come, as a release makes it: one script more, from the version before. It adds,
# replaces and changes the type of a function.
my $root = copy_installation();
my $next = '999.0.0';
my $control = installed_file($root, 'quiver.control');
my $text = slurp_file($control);
ok($text =~ s/^default_version = .*/default_version = '$next'/m, 'the control file has a default version');
unlink $control or die $!;
append_to_file($control, $text);
append_to_file(installed_file($root, "quiver--$default--$next.sql"), <<'SQL');
\echo Use "ALTER EXTENSION quiver UPDATE" to load this file. \quit
CREATE FUNCTION quiver_next() RETURNS text AS 'MODULE_PATHNAME', 'quiver_version' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION quiver_next() IS 'something new';
CREATE OR REPLACE FUNCTION quiver_simd_level() RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL RESTRICTED;
DROP FUNCTION quiver_check(regclass);
CREATE FUNCTION quiver_check(index regclass, thorough bool DEFAULT true) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
SQL
my $node = new_stock_node('next', $root);
$node->safe_psql('postgres', 'CREATE EXTENSION vector; CREATE EXTENSION quiver');
$fresh = catalog($node, 'postgres', 'quiver');
like($fresh, qr/quiver_next/, 'a fresh database has the next version by base and update script');
foreach my $version (@released)
{
	my $db = database($version);

	create_released($node, $version);
	unlike(catalog($node, $db, 'quiver'), qr/quiver_next/, "$version is not yet the next version");
	$node->safe_psql($db, 'ALTER EXTENSION quiver UPDATE');
	is($node->safe_psql($db, q{SELECT extversion FROM pg_extension WHERE extname = 'quiver'}), $next,
		"from $version: updated");
	same_lines_ok(catalog($node, $db, 'quiver'), $fresh, "from $version: the catalog is that of CREATE EXTENSION");
	works_ok($node, $db, "from $version to the next");

	# a dump names no version, so it brings a database to the default one as well
	my $dump = "$root/dump.sql";
	$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr($db) ], "from $version: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE ${db}_restored");
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr("${db}_restored") ],
		"from $version: restored");
	same_lines_ok(catalog($node, "${db}_restored", 'quiver'), $fresh, "from $version, restored: the catalog");
	works_ok($node, "${db}_restored", "from $version, restored");
}
clean_log_ok($node);
$node->stop;
done_testing();
