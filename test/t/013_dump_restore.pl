# A database goes from pgvector to Quiver and back by dump and restore: text and
# custom format, and its tables by binary COPY.

use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

need_pgvector();

my $stock = new_stock_node('stock', new_installation());
my $ours = new_node('ours');
my @indexes = (operator_classes('hnsw', ''), operator_classes('ivfflat', '_lists'));
my $path = PostgreSQL::Test::Utils::tempdir();

# Dump a database of one server, restore it as another of the other server.
sub move
{
	my ($from, $db, $to, $new, $format) = @_;
	my $file = "$path/$new";

	$from->command_ok([ 'pg_dump', '-d', $from->connstr($db), '-F', $format, '-f', $file ], "$new: dump");
	$to->safe_psql('postgres', "CREATE DATABASE $new");
	$to->command_ok(
		$format eq 'p'
		? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $to->connstr($new), '-f', $file ]
		: [ 'pg_restore', '--exit-on-error', '-d', $to->connstr($new), $file ],
		"$new: restore");
	return;
}

fill_database($stock, 'home');
my $expected = contents($stock, 'home');
my $using_hnsw = qr/USING hnsw \(s public\.sparsevec_l1_ops\) WITH \(m='12', ef_construction='60'\)/;
like($expected,
	qr/^index\|CREATE INDEX items_sparsevec_l1 ON public\.items $using_hnsw\|t\|/m,
	'the database has indexes');

# in
move($stock, 'home', $ours, 'in_text', 'p');
move($stock, 'home', $ours, 'in_custom', 'c');
same_lines_ok(contents($ours, $_), $expected, "$_: all is there") foreach qw(in_text in_custom);
finds_nearest_ok($ours, 'in_custom', $_, "in: $_->{name}") foreach @indexes;
$ours->safe_psql('in_custom', 'CREATE EXTENSION quiver');
foreach my $index (indexes_of($ours, 'in_custom', 'hnsw'))
{
	is($ours->safe_psql('in_custom', "SELECT quiver_check('$index') > 0"), 't', "in: quiver_check of $index");
}

# out
$ours->safe_psql('in_custom', 'DROP EXTENSION quiver');
move($ours, 'in_custom', $stock, 'out_text', 'p');
move($ours, 'in_text', $stock, 'out_custom', 'c');
same_lines_ok(contents($stock, $_), $expected, "$_: all is there") foreach qw(out_text out_custom);
finds_nearest_ok($stock, 'out_text', $_, "out: $_->{name}") foreach @indexes;

# binary COPY: the same bytes, and each reads the other's
my %columns = (items => 'id, v, h, s, b', extremes => 'v, h, s, b', units => 'u');
foreach my $table (sort keys %columns)
{
	my @files = map { "$path/$table.$_" } qw(stock ours in out);
	my $copy = sub { return "COPY (SELECT $columns{$table} FROM $_[0] ORDER BY 1) TO '$_[1]' (FORMAT binary);" };
	my $read = "CREATE TABLE copied (LIKE $table); COPY copied ($columns{$table}) FROM '%s' (FORMAT binary);";

	$stock->safe_psql('home', $copy->($table, $files[0]));
	$ours->safe_psql('in_text', $copy->($table, $files[1]));
	is(slurp_file($files[1]), slurp_file($files[0]), "binary COPY of $table: the same bytes");
	$ours->safe_psql('in_text', sprintf($read, $files[0]) . $copy->('copied', $files[2]) . 'DROP TABLE copied');
	is(slurp_file($files[2]), slurp_file($files[0]), "binary COPY of $table: in");
	$stock->safe_psql('home', sprintf($read, $files[1]) . $copy->('copied', $files[3]) . 'DROP TABLE copied');
	is(slurp_file($files[3]), slurp_file($files[0]), "binary COPY of $table: out");
}

# what pgvector has not: only these statements fail
$ours->safe_psql('in_text', 'CREATE INDEX items_hash ON items USING hash (v);'
	  . 'CREATE TABLE parts (v vector(3)) PARTITION BY HASH (v); CREATE SCHEMA wide;'
	  . 'CREATE TABLE wide.t (v vector(3072), h halfvec(5000));'
	  . 'CREATE INDEX ON wide.t USING hnsw (v vector_cosine_ops);'
	  . 'CREATE INDEX ON wide.t USING ivfflat (h halfvec_l2_ops)');
$ours->command_ok([ 'pg_dump', '-d', $ours->connstr('in_text'), '-f', "$path/hash" ], 'hash: dump');
$stock->safe_psql('postgres', 'CREATE DATABASE hash');
my ($out, $err) = ('', '');
IPC::Run::run([ $stock->installed_command('psql'), '-Xq', '-d', $stock->connstr('hash'), '-f', "$path/hash" ], '>',
	\$out, '2>', \$err);
my @errors = $err =~ /ERROR:  (.*)/g;
is_deeply([ sort grep { !/relation "public\.parts" does not exist/ } @errors ],
	[
		'column cannot have more than 2000 dimensions for hnsw index',
		'column cannot have more than 4000 dimensions for ivfflat index',
		('data type public.vector has no default operator class for access method "hash"') x 2
	],
	'hash: hash indexes, tables partitioned by hash and indexes of many dimensions do not restore');
$stock->safe_psql('hash', 'DROP SCHEMA wide CASCADE');
same_lines_ok(contents($stock, 'hash'), $expected, 'hash: all else does');

# A default hash operator class of the database's own: Quiver has one. Its statement fails, and what
# uses it takes Quiver's.
$stock->safe_psql('postgres', 'CREATE DATABASE own_hash');
$stock->safe_psql('own_hash', q{CREATE EXTENSION vector;
	CREATE FUNCTION hash_vector(vector) RETURNS int IMMUTABLE STRICT LANGUAGE sql RETURN hashtext($1::text);
	CREATE OPERATOR CLASS own_vector_hash DEFAULT FOR TYPE vector USING hash AS
		OPERATOR 1 =, FUNCTION 1 hash_vector(vector);
	CREATE TABLE hashed (id int, v vector(3));
	INSERT INTO hashed SELECT i, ARRAY[i, 1, 1]::vector FROM generate_series(1, 100) i;
	CREATE INDEX hashed_v ON hashed USING hash (v);});
$stock->command_ok([ 'pg_dump', '-d', $stock->connstr('own_hash'), '-Fc', '-f', "$path/own_hash" ], 'own hash: dump');
$ours->safe_psql('postgres', 'CREATE DATABASE own_hash');
$ours->command_checks_all([ 'pg_restore', '-d', $ours->connstr('own_hash'), "$path/own_hash" ], 1, [],
	[qr/could not make operator class "own_vector_hash" be default for type public\.vector.*ignored on restore: 2/s],
	'own hash: its statement and that of its owner do not restore');
my $by_hash = "SELECT id FROM hashed WHERE v = '[7,1,1]'";
is($ours->safe_psql('own_hash', "SET enable_seqscan = off; $by_hash"), 7, 'own hash: all rows are there');
like($ours->safe_psql('own_hash', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $by_hash"), qr/ hashed_v\b/,
	'own hash: and the index');
$ours->safe_psql('postgres', 'CREATE DATABASE own_hash_2');
my $list = "$path/own_hash.list";
$ours->command_ok([ 'sh', '-c', "pg_restore -l $path/own_hash | grep -v ' OPERATOR \\(CLASS\\|FAMILY\\) ' >$list" ],
	'own hash: a list without it');
$ours->command_ok(
	[ 'pg_restore', '--exit-on-error', '-L', $list, '-d', $ours->connstr('own_hash_2'), "$path/own_hash" ],
	'own hash: by that list all restores');
is($ours->safe_psql('own_hash_2', "SET enable_seqscan = off; $by_hash"), 7, 'own hash: and answers');

# By logical replication, while rows are written.
$stock->append_conf('postgresql.conf', "wal_level = logical\nmax_wal_senders = 5\nmax_replication_slots = 5");
$stock->restart;
$_->safe_psql('postgres', 'CREATE DATABASE live') foreach $stock, $ours;
my $table = 'CREATE EXTENSION vector; CREATE TABLE live (id int PRIMARY KEY, v vector(3));';
my $rows = 'INSERT INTO live SELECT i, ARRAY[i, mod(i * i, 17), 1]::vector FROM generate_series(%d, %d) i';
$stock->safe_psql('live', "$table CREATE INDEX ON live USING hnsw (v vector_l2_ops); " . sprintf($rows, 1, 100)
	  . '; CREATE PUBLICATION moving FOR ALL TABLES');
$ours->safe_psql('live', $table);
$ours->safe_psql('live',
	sprintf 'CREATE SUBSCRIPTION moving CONNECTION $$%s$$ PUBLICATION moving', $stock->connstr('live'));
$stock->safe_psql('live', sprintf($rows, 101, 200) . '; DELETE FROM live WHERE id = 7');
ok($ours->poll_query_until('live', 'SELECT count(*) = 199 FROM live'), 'logical replication: the rows come');
$ours->safe_psql('live', 'CREATE INDEX CONCURRENTLY live_v ON live USING hnsw (v vector_l2_ops)');
$stock->safe_psql('live', 'UPDATE live SET v = \'[900,900,900]\' WHERE id = 150');
ok($ours->poll_query_until('live', "SELECT count(*) = 1 FROM live WHERE v = '[900,900,900]'"),
	'logical replication: and changes, into an index');
is($ours->safe_psql('live', "SET enable_seqscan = off; SELECT id FROM live ORDER BY v <-> '[901,900,900]' LIMIT 1"),
	150, 'logical replication: and are found');
$ours->safe_psql('live', 'DROP SUBSCRIPTION moving');

# pgvector's library by name: there is none, and the server says so
$ours->stop;
$ours->append_conf('postgresql.conf', "shared_preload_libraries = 'vector'");
is($ours->start(fail_ok => 1), 0, "a server without pgvector's library does not preload it");
like(slurp_file($ours->logfile), qr/FATAL:  could not access file "vector": No such file or directory/, 'and says why');
$ours->append_conf('postgresql.conf', "shared_preload_libraries = 'quiver'");
$ours->start;
is($ours->safe_psql('in_text', 'SHOW hnsw.ef_search'), 40, 'quiver is the name to preload');

clean_log_ok($_) foreach $stock, $ours;
$_->stop foreach $stock, $ours;
done_testing();
