# Shared parts of the tests about moving between pgvector and Quiver:
# installations of a server with either or both, a database that has something of
# everything, and what must be equal afterwards.
package QuiverMoving;

use strict;
use warnings FATAL => 'all';

use Cwd ();
use Exporter 'import';
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  no_pgvector
  need_pgvector
  copy_installation
  new_installation
  install_quiver
  installed_file
  new_stock_node
  fill_database
  contents
  catalog
  operator_classes
  index_definition
  indexes_of
  same_lines_ok
  finds_nearest_ok
);

my $top = Cwd::getcwd();
my %dir;

# Where a server has its files: by its configuration, and in the copy that runs.
foreach my $what (qw(bindir pkglibdir sharedir))
{
	my $config = $ENV{PG_CONFIG} || 'pg_config';

	chomp($dir{$what} = `$config --$what`);
	chomp($dir{"our $what"} = `pg_config --$what`);
}

# Why there is no stock pgvector for this server; nothing if there is one.
sub no_pgvector
{
	return 'no stock pgvector: PGVECTOR_PREFIX does not name an installation (see tools/stock_pgvector)'
	  if !$ENV{PGVECTOR_PREFIX};
	my $control = "$ENV{PGVECTOR_PREFIX}$dir{sharedir}/extension/vector.control";
	return -f $control ? '' : "no stock pgvector: there is no $control";
}

# Skip the file when there is none.
sub need_pgvector
{
	plan skip_all => no_pgvector() if no_pgvector();
	return;
}

# A copy of the server, Quiver included, whose files a test may change; its root.
sub copy_installation
{
	my $root = PostgreSQL::Test::Utils::tempdir();

	foreach my $what (qw(bindir pkglibdir sharedir))
	{
		my $to = "$root$dir{$what}";
		next if -d $to;
		system_or_bail('mkdir', '-p', dirname($to));
		system_or_bail('cp', '-rL', $dir{"our $what"}, $to);
	}
	return $root;
}

# A copy of the server with a stock pgvector and without Quiver; its root.
sub new_installation
{
	my $root = copy_installation();
	my $extension = "$root$dir{sharedir}/extension";
	system_or_bail('rm', '-rf', glob("$extension/pgvector-backup-*"));
	unlink glob("$extension/vector*"), glob("$extension/quiver*"),
	  "$root$dir{pkglibdir}/quiver.so", "$root$dir{pkglibdir}/vector.so";
	system_or_bail('sh', '-c',
		qq{cp "$ENV{PGVECTOR_PREFIX}$dir{sharedir}"/extension/vector* "$extension/" && }
		  . qq{cp "$ENV{PGVECTOR_PREFIX}$dir{pkglibdir}/vector.so" "$root$dir{pkglibdir}/"}
	);
	return $root;
}

# make install over it; returns what make said, dies when it fails.
sub install_quiver
{
	my ($root, @how) = @_;
	local %ENV = %ENV;

	delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES)};
	my ($out, $err) = run_command([ 'make', '-s', '-C', $top, 'install',
			'PG_CONFIG=' . ($ENV{PG_CONFIG} || 'pg_config'), "DESTDIR=$root", @how ]);
	die "make install @how failed:\n$out\n$err" if $? != 0;
	return "$out\n$err";
}

# A file of an installation: control or script by name, or "library NAME".
sub installed_file
{
	my ($root, $name) = @_;

	return "$root$dir{pkglibdir}/$1.so" if $name =~ /^library (.*)/;
	return "$root$dir{sharedir}/extension/$name";
}

# A running server of that installation.
sub new_stock_node
{
	my ($name, $root, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => dirname("$root$dir{bindir}"));

	$node->init;
	$node->append_conf('postgresql.conf', "autovacuum = off\njit = off\nfsync = off\n" . ($options{conf} // ''));
	$node->start;
	return $node;
}

# The indexes of table items, one for each operator class: name, access method,
# column, operator class, operator.
my %metrics = (
	l2 => '<->', ip => '<#>', cosine => '<=>', l1 => '<+>', hamming => '<~>', jaccard => '<%>');
my %columns = (vector => 'v', halfvec => 'h', sparsevec => 's', bit => 'b');

sub operator_classes
{
	my ($am, $suffix) = @_;
	my @list;

	foreach my $type (qw(vector halfvec sparsevec bit))
	{
		next if $am =~ /ivf/ && $type eq 'sparsevec';
		foreach my $metric ($type eq 'bit' ? qw(hamming jaccard) : qw(l2 ip cosine l1))
		{
			next if $am =~ /ivf/ && $metric =~ /l1|jaccard/;
			push @list,
			  { name => "items_${type}_$metric$suffix", am => $am, column => $columns{$type},
				opclass => "${type}_${metric}_ops", op => $metrics{$metric} };
		}
	}
	return @list;
}

sub index_definition
{
	my ($index, $with) = @_;

	return "CREATE INDEX $index->{name} ON items USING $index->{am} ($index->{column} $index->{opclass})"
	  . ($with ? " WITH ($with)" : '') . ";\n";
}

# Tables with everything, and all operator classes; into a new database.
sub fill_database
{
	my ($node, $db) = @_;
	my $sql = PostgreSQL::Test::Utils::slurp_file("$top/test/perl/moving.sql");

	$sql .= index_definition($_, 'm = 12, ef_construction = 60') foreach operator_classes('hnsw', '');
	$sql .= index_definition($_, 'lists = 5') foreach operator_classes('ivfflat', '_lists');
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, $sql);
	return;
}

# Columns, indexes, views and data of a database but for those of extensions, as sorted lines.
sub contents
{
	my ($node, $db) = @_;

	return join "\n", sort split /\n/, $node->safe_psql($db, q{
SET search_path = '';
SELECT 'column', attrelid::regclass, attname, format_type(atttypid, atttypmod), atttypmod, attstorage, attnotnull,
	pg_get_expr(adbin, adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm') AND attnum > 0
	AND NOT EXISTS (SELECT FROM pg_depend d
		WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 2, attnum;
SELECT 'index', pg_get_indexdef(indexrelid), indisvalid, indisclustered
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE relnamespace = 'public'::regnamespace ORDER BY 2;
SELECT 'view', oid::regclass, pg_get_viewdef(oid) FROM pg_class c
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')
	AND NOT EXISTS (SELECT FROM pg_depend d
		WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 2;
SELECT 'items', * FROM public.items ORDER BY id;
SELECT 'extremes', md5(v::text), md5(h::text), md5(s::text), md5(b::text) FROM public.extremes ORDER BY 2;
SELECT 'wide', id, md5(v::text), many, h, half FROM public.wide ORDER BY id;
SELECT 'units', * FROM public.units ORDER BY u;
SELECT 'counts', * FROM public.counts ORDER BY v;
SELECT 'center', * FROM public.center;
SELECT 'near', id, round(distance::numeric, 3) FROM public.near;
SELECT 'function',
	round(public.distance_to(i, public.array_to_vector(ARRAY[1,2,3,4,5,6,7,8,9,10,11,12], 12, true))::numeric, 3)
FROM public.items i WHERE id < 5 ORDER BY id;
});
}

# Every object of an extension (vector unless another is named) with all that its
# catalog rows say, in words: what pg_proc, pg_type and so on hold, but for OIDs.
sub catalog
{
	my ($node, $db, $extension) = @_;
	my $sql = PostgreSQL::Test::Utils::slurp_file("$top/test/perl/catalog.sql");

	$sql =~ s/e\.extname = '\Kvector'/$extension'/ || die 'catalog.sql names no extension' if $extension;
	return $node->safe_psql($db, $sql);
}

# Two texts of many lines are equal; shows only the lines that are not.
sub same_lines_ok
{
	my ($got, $expected, $name) = @_;
	my (%got, %expected);

	$got{$_}++ foreach split /\n/, $got;
	$expected{$_}++ foreach split /\n/, $expected;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(1, $name) if $got eq $expected;
	fail($name);
	diag("got      $_") foreach grep { ($expected{$_} // 0) != $got{$_} } sort keys %got;
	diag("expected $_") foreach grep { ($got{$_} // 0) != $expected{$_} } sort keys %expected;
	return;
}

# Names of the indexes of an access method.
sub indexes_of
{
	my ($node, $db, $am) = @_;

	return split /\n/, $node->safe_psql($db,
		"SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
		  . "WHERE amname = '$am' AND relkind = 'i' ORDER BY 1");
}

# An index of table items finds what a sequential scan finds: distances of the
# nearest rows to three queries.
sub finds_nearest_ok
{
	my ($node, $db, $index, $name) = @_;
	my $select = "SELECT q.id, r.d FROM (SELECT id, $index->{column} AS q FROM items "
		  . "WHERE id IN (3, 77, 200)) q, LATERAL "
	  . "(SELECT $index->{column} $index->{op} q.q AS d FROM items ORDER BY $index->{column} $index->{op} q.q "
	  . "LIMIT 10) r ORDER BY 1, 2";
	my $only = "BEGIN; SELECT \$\$DROP INDEX \$\$ || string_agg(indexrelid::regclass::text, ', ') FROM pg_index"
	  . " WHERE indrelid = 'items'::regclass AND indexrelid <> '$index->{name}'::regclass AND NOT "
	  . "indisprimary \\gexec\n";
	my $settings = 'SET enable_seqscan = off; SET enable_sort = off; SET hnsw.ef_search = 500; '
		  . 'SET quiver.ef_search = 500;'
	  . ' SET ivfflat.probes = 5; SET quiver.probes = 1000;';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $exact = $node->safe_psql($db, "SET enable_indexscan = off; $select");
	my ($rc, $out, $err) = $node->psql($db, "$only $settings EXPLAIN (COSTS OFF) $select;\n\\echo rows\n$select");
	return fail("$name: $err") if $rc != 0;
	my ($plan, $found) = split /^rows\n/m, $out;
	return fail("$name: unexpected plan\n$plan") if $plan !~ /Index Scan using $index->{name} /;
	return is($found, $exact, $name);
}

1;
