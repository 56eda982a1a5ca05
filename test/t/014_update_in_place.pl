# A database of pgvector becomes one of Quiver by ALTER EXTENSION vector UPDATE, and
# one of pgvector again.

use strict;
use warnings FATAL => 'all';
use QuiverMoving;
use QuiverTest;
use Test::More;

need_pgvector();

# What pgvector made: a database with everything, and catalogs of all versions there
# are scripts of.
my $root = new_installation();
my $node = new_stock_node('moved', $root);
my $ours = new_node('ours');
my $fresh = catalog($ours, 'postgres');
my $library = installed_file($root, 'library vector');
my $version = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'");
my @versions = grep { /^0\.[5-8]\./ } split /\n/,
  $node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = 'vector'");

sub database
{
	return 'v' . ($_[0] =~ s/\./_/gr);
}

$ours->stop;
foreach (@versions)
{
	$node->safe_psql('postgres', 'CREATE DATABASE ' . database($_));
	$node->safe_psql(database($_), "CREATE EXTENSION vector VERSION '$_'");
}
# one with a default hash operator class of its own, which Quiver has, too
$node->safe_psql('postgres', 'CREATE DATABASE own_hash');
$node->safe_psql('own_hash', q{CREATE EXTENSION vector;
	CREATE FUNCTION hash_vector(vector) RETURNS int IMMUTABLE STRICT LANGUAGE sql RETURN hashtext($1::text);
	CREATE OPERATOR CLASS own_vector_hash DEFAULT FOR TYPE vector USING hash AS
		OPERATOR 1 =, FUNCTION 1 hash_vector(vector);});
my $stock_catalog = catalog($node, database($version));
fill_database($node, 'home');
my $expected = contents($node, 'home');
my @graphs = indexes_of($node, 'home', 'hnsw');

# Quiver takes the place of the control file and scripts.
my $said = install_quiver($root, 'REPLACE_PGVECTOR=1');
like($said, qr/moved the files of pgvector $version to /, 'make install says what it moved');
ok(-f $library, "pgvector's library stays");
$node->restart;
same_lines_ok(contents($node, 'home'), $expected, 'before the update pgvector goes on');
is($node->safe_psql('home', 'INSERT INTO items SELECT 2000, v, h, s, b FROM items WHERE id = 5; '
		  . 'DELETE FROM items WHERE id = 2000; SHOW hnsw.ef_search'),
	'40', 'before the update its library is at work');

# Catalogs.
foreach (@versions)
{
	$node->safe_psql(database($_), 'ALTER EXTENSION vector UPDATE');
	same_lines_ok(catalog($node, database($_)), $fresh, "from $_: the catalog is that of CREATE EXTENSION");
}
{
	my ($rc, $out, $err) = $node->psql('own_hash', 'ALTER EXTENSION vector UPDATE');
	like($err, qr/could not make operator class "vector_ops" be default for type vector/,
		'a default hash operator class stops the update');
	$node->safe_psql('own_hash', 'DROP OPERATOR CLASS own_vector_hash USING hash CASCADE; '
		  . 'ALTER EXTENSION vector UPDATE; CREATE TABLE wide (v vector(3072)); '
		  . 'CREATE INDEX wide_v ON wide USING hnsw (v vector_l2_ops)');
	# back with an index that pgvector cannot have
	$node->safe_psql('own_hash', "ALTER EXTENSION vector UPDATE TO '$version'");
	($rc, $out, $err) = $node->psql('own_hash', 'REINDEX TABLE wide');
	like($err, qr/column cannot have more than 2000 dimensions for hnsw index/,
		'back: pgvector refuses 3,072 dimensions');
}
# In a session that has pgvector's library loaded and its indexes open.
{
	my $session = new_session($node, 'home');
	my $search = 'SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 77) LIMIT 1';

	session_sql($session, 'SET enable_seqscan = off; SET enable_sort = off; SET hnsw.ef_search = 71');
	is(session_sql($session, $search), 77, 'the session searches with pgvector');
	is(session_sql($session, 'ALTER EXTENSION vector UPDATE'), '', 'the session updates');
	like(session_sql($session, $search),
		qr/ERROR:  index "items_\w+" was built by pgvector\nDETAIL:.*\nHINT:  Please REINDEX it\./,
		'the session sees the new access method');
	is(session_sql($session, 'SHOW hnsw.ef_search'), 71, 'the session has its settings');
	session_sql($session, 'REINDEX INDEX items_vector_l2; SET hnsw.ef_search = 72; '
		  . 'DROP INDEX items_partial, items_vector_l2_lists');
	is(session_sql($session, $search), 77, 'the session searches with Quiver');
	like(session_sql($session, 'SET hnsw.ef_search = 1001'), qr/1001 is outside the valid range/,
		'the session checks settings');
	end_session($session);
}
$node->safe_psql('home', 'CREATE INDEX items_partial ON items USING hnsw (v vector_l2_ops) WHERE id < 200;'
	  . 'CREATE INDEX items_vector_l2_lists ON items USING ivfflat (v vector_l2_ops) WITH (lists = 5)');

# Types, columns, data are untouched; indexes ask for REINDEX.
same_lines_ok(contents($node, 'home'), $expected, 'after the update: all is there');
same_lines_ok(catalog($node, 'home'), $fresh, 'after the update: the catalog');
foreach my $index (operator_classes('hnsw', ''), operator_classes('ivfflat', '_lists'))
{
	next if $index->{name} =~ /items_vector_l2/;	# built anew
	my ($rc, $out, $err) = $node->psql('home',
		"BEGIN; SELECT \$\$DROP INDEX \$\$ || string_agg(indexrelid::regclass::text, ', ') FROM pg_index"
		  . " WHERE indrelid = 'items'::regclass AND indexrelid <> '$index->{name}'::regclass AND NOT "
		  . "indisprimary \\gexec\n"
		  . "SET enable_seqscan = off; SET enable_sort = off; SELECT id FROM items "
		  . "ORDER BY $index->{column} $index->{op} (SELECT $index->{column} FROM items WHERE id = 5) LIMIT 1");
	like($err, qr/ERROR:  index "$index->{name}" was built by pgvector\nDETAIL:.*\nHINT:  Please REINDEX it\./,
		"a search with $index->{name} asks for REINDEX");
}
foreach my $statement ('INSERT INTO items (id, h) SELECT 3000, h FROM items WHERE id = 1', 'VACUUM items')
{
	my ($rc, $out, $err) = $node->psql('home', $statement);
	like($err, qr/ERROR:  index "items_\w+" was built by pgvector\nDETAIL:.*\nHINT:  Please REINDEX it\./,
		"refused: $statement");
}
$node->safe_psql('home', 'REINDEX TABLE items; CREATE EXTENSION quiver');
is($node->safe_psql('home', "SELECT quiver_check('$_') > 0"), 't', "quiver_check of $_") foreach @graphs;
finds_nearest_ok($node, 'home', $_, "after REINDEX: $_->{name}")
  foreach operator_classes('hnsw', ''), operator_classes('ivfflat', '_lists');
is($node->safe_psql('home', 'INSERT INTO items SELECT 3000, v, h, s, b FROM items WHERE id = 1; '
		  . 'DELETE FROM items WHERE id = 3000; VACUUM items'),
	'', 'after REINDEX: INSERT, DELETE, VACUUM');
same_lines_ok(contents($node, 'home'), $expected, 'after REINDEX: all is there');

# A session may preload both libraries, pgvector's first.
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=vector,quiver';
	is($node->safe_psql('home', 'SHOW hnsw.ef_search'), 40, 'both libraries preloaded');
}

# And back.
{
	my $update = "ALTER EXTENSION vector UPDATE TO '$version'";
	my ($rc, $out, $err) = $node->psql('home', "SELECT '[1]'::vector; $update");

	like($err, qr/ERROR:  this session has used Quiver\n/, 'back: refused in a session that has used Quiver');
	rename $library, "$library.away" or die $!;
	($rc, $out, $err) = $node->psql('home', $update);
	like($err, qr/ERROR:  the library of pgvector is not installed\n/, 'back: refused without the library');
	rename "$library.away", $library or die $!;
	$node->safe_psql('home', 'CREATE INDEX items_hash ON items USING hash (v)');
	($rc, $out, $err) = $node->psql('home', $update);
	like($err, qr/cannot drop .* because other objects depend on it\nDETAIL:.*index items_hash depends/,
		'back: a hash index stops it');
	$node->safe_psql('home', 'DROP INDEX items_hash; CREATE VIEW hashed AS SELECT DISTINCT v FROM items');
	($rc, $out, $err) = $node->psql('home', $update);
	like($err,
		qr/policies group by vectors .*\nDETAIL:  They are: hashed\./, 'back: a view made under Quiver stops it');
	$node->safe_psql('home', 'DROP VIEW hashed');
	$node->safe_psql('home',
		'CREATE FUNCTION hashed() RETURNS SETOF vector BEGIN ATOMIC SELECT DISTINCT v FROM items; END');
	($rc, $out, $err) = $node->psql('home', $update);
	like($err, qr/They are: hashed\(\)\./, 'back: so does a function');
	$node->safe_psql('home', 'DROP FUNCTION hashed');
	$node->safe_psql('postgres', q{ALTER DATABASE home SET session_preload_libraries = 'quiver'});
	($rc, $out, $err) = $node->psql('home', $update);
	like($err, qr/this session has used Quiver\n.*\nHINT:  .* session_preload_libraries/,
		'back: refused in a session that preloads Quiver');
	{
		local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
		$node->safe_psql('home', $update);
	}
	$node->safe_psql('postgres', 'ALTER DATABASE home RESET session_preload_libraries');
	same_lines_ok(catalog($node, 'home'), $stock_catalog, "back: the catalog is that of pgvector $version");
}
my $folder = installed_file($root, '');
PostgreSQL::Test::Utils::system_or_bail('sh', '-c',
	"cd '$folder' && rm vector--*0.8.100*.sql && mv pgvector-backup-$version/* .");
$node->restart;
{
	my ($rc, $out, $err) = $node->psql('home', 'INSERT INTO items SELECT 3000, v, h, s, b FROM items WHERE id = 1');
	isnt($rc, 0, "back: pgvector refuses Quiver's pages");
}
$node->safe_psql('home', 'REINDEX TABLE items; ALTER EXTENSION vector UPDATE');
same_lines_ok(contents($node, 'home'), $expected, 'back: all is there');
finds_nearest_ok($node, 'home', $_, "back: $_->{name}") foreach operator_classes('hnsw', ''),
operator_classes('ivfflat', '_lists');
is($node->safe_psql('home', 'SELECT extversion FROM pg_extension WHERE extname = \'vector\''), $version,
	'back: version');

clean_log_ok($node);
$node->stop;
done_testing();
