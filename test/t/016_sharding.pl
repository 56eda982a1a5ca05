# A partitioned table over postgres_fdw: the searches of docs/sharding.md. Two
# shards with three partitions, one of them under other names, and a fourth
# partition on the coordinator.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use QuiverTest;

my $dims = 16;
my $rows = 3000;
my $main = new_node('main');
my @shards = map { new_node("shard$_") } 1 .. 2;
my $user = $main->safe_psql('postgres', 'SELECT quote_literal(current_user)');

sub sql { return $main->safe_psql('postgres', $_[0]); }

# The coordinator's answer to a statement, or its error.
sub answer
{
	my ($rc, $out, $err) = $main->psql('postgres', $_[0]);
	return $rc == 0 ? $out : $err;
}

sub on_shards
{
	my ($statement) = @_;
	$_->safe_psql('postgres', $statement) foreach @shards;
	return;
}

# quiver_sharded_search, for a FROM clause.
sub search
{
	my ($query, $k, $more, $table, $column) = @_;
	$more //= '';
	$table //= 'docs';
	$column //= 'v';
	return "quiver_sharded_search('$table', '$column', $query, $k, '{id}' $more) AS s(id int, d float8)";
}

# How many of the queries, answered by $found (a FROM item that gives d and refers
# to q.v), differ from the nearest rows of the table that has them all.
sub differing
{
	my ($found, $k, $op, $where, $table) = @_;
	$where = $where ? "WHERE $where" : '';
	$table //= 'everything';
	return sql(
		"SELECT count(*) FROM queries q WHERE ARRAY(SELECT s.d FROM $found ORDER BY s.d)
			IS DISTINCT FROM ARRAY(SELECT v $op q.v AS d FROM $table $where ORDER BY d LIMIT $k)");
}

# What the recipe says, on the shards and on the coordinator.
$shards[0]->safe_psql('postgres', "CREATE TABLE docs_0 (id int, category int, v vector($dims));");
$shards[0]->safe_psql('postgres', "CREATE TABLE docs_1 (id int, category int, v vector($dims));");
$shards[1]->safe_psql('postgres',
	qq{CREATE TABLE "Docs '2'" (category int, "The Vector" vector($dims), id int);});

sql('CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink;');
foreach my $i (1 .. 2)
{
	my ($host, $port) = ($shards[ $i - 1 ]->host, $shards[ $i - 1 ]->port);
	sql("CREATE SERVER shard$i FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '500',
				options '-c work_mem=5MB -c application_name=a\\ b --hnsw.ef-search=7');
		CREATE USER MAPPING FOR CURRENT_USER SERVER shard$i OPTIONS (user $user);");
}
sql("CREATE TABLE docs (id int, category int, v vector($dims)) PARTITION BY HASH (id);
	CREATE FOREIGN TABLE docs_0 PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER 0) SERVER shard1;
	CREATE FOREIGN TABLE docs_1 PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER 1) SERVER shard1;
	CREATE FOREIGN TABLE docs_2 PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER 2) SERVER shard2
		OPTIONS (table_name 'Docs ''2''');
	ALTER FOREIGN TABLE docs_2 ALTER v OPTIONS (column_name 'The Vector');
	CREATE TABLE docs_3 PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER 3);");
make_rows($main, table => 'everything', dims => $dims, first => 1, last => $rows);
# rows at the same distance, and one without a vector, on every partition
sql("INSERT INTO everything SELECT $rows + i, 1, qt_vector(1, $dims)::vector FROM generate_series(1, 40) i;
	INSERT INTO everything SELECT 2 * $rows + i, 1, NULL FROM generate_series(1, 40) i;
	INSERT INTO docs SELECT * FROM everything;");
make_queries($main, table => 'queries', dims => $dims, n => 12);
is(sql('SELECT count(DISTINCT tableoid) FROM docs'), 4, 'all partitions have rows');

# Settings of the servers.
my $top = 'SELECT id FROM docs ORDER BY v <-> (SELECT v FROM queries WHERE id = 1) LIMIT 10';
unlike(sql("EXPLAIN (VERBOSE) $top"), qr/Remote SQL: .*ORDER BY/, 'a server as created gets no ORDER BY');
is( sql(q{SELECT quiver_shard_settings('shard1', '{"hnsw.ef_search": 50, "work_mem": "6 MB"}')}),
	'-c application_name=a\\ b -c hnsw.ef_search=50 -c hnsw.iterative_scan=strict_order '
	  . '-c ivfflat.iterative_scan=relaxed_order -c work_mem=6\\ MB',
	'settings are merged into those of the server');
is(sql(q{SELECT quiver_shard_settings('shard1')}),
	sql(q{SELECT quiver_shard_settings('shard1', '{}')}), 'nothing to change');
is( sql(q{SELECT quiver_shard_settings('shard1', '{"work_mem": null, "test.word": "c '' \\\\ d"}')}),
	q{-c application_name=a\\ b -c hnsw.ef_search=50 -c hnsw.iterative_scan=strict_order }
	  . q{-c ivfflat.iterative_scan=relaxed_order -c test.word=c\\ '\\ \\\\\\ d},
	'null removes a setting');
sql(q{SELECT quiver_shard_settings('shard2', '{"hnsw.ef_search": 50}')});
like(
	sql("SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'shard1'"),
	qr/extensions=vector,async_capable=true/, 'other options of the server');
like(sql("EXPLAIN (VERBOSE) $top"), qr/Merge Append.*Remote SQL: [^\n]*ORDER BY/s,
	'the shards sort');
sql(q{CREATE SCHEMA shard1;
	IMPORT FOREIGN SCHEMA pg_catalog LIMIT TO (pg_settings) FROM SERVER shard1 INTO shard1;});
is( sql("DO \$\$BEGIN PERFORM FROM docs ORDER BY v <-> (SELECT v FROM queries LIMIT 1) LIMIT 1; END\$\$;
	SELECT string_agg(setting, ' ' ORDER BY name) FROM shard1.pg_settings
		WHERE name IN ('hnsw.ef_search', 'hnsw.iterative_scan', 'work_mem')"),
	'50 strict_order 4096',
	'the settings are those of the session on the shard');
foreach (
	[ q{'nowhere'}, '42704', 'server "nowhere" does not exist' ],
	[ q{'shard1', '{"hnsw.ef_search": 0}'}, '22023', '0 is outside the valid range' ],
	[ q{'shard1', '{"hnsw.ef_serch": 1}'}, '42602', 'invalid configuration parameter name' ],
	[ q{'shard1', '{"a=b -c c": 1}'}, '22023', 'invalid setting of a shard' ],
	[ q{'shard1', '{"work_mem": [1]}'}, '22023', 'invalid setting of a shard' ],
	[ q{'shard1', '[1]'}, '22023', 'settings of a shard must be' ])
{
	my ($arguments, $state, $message) = @$_;
	fails_like($main, "SELECT quiver_shard_settings($arguments);", $state, $message, "settings: $message");
}

# Exact searches: no index on the shards.
is( sql('SELECT count(*) FROM '
		  . search('(SELECT v FROM queries WHERE id = 1)', 5,
			q{, filter => $f$current_setting('test.word') = 'c '' \ d'$f$}, 'docs_0')),
	5, 'a value with everything that needs quoting');
foreach my $op ('<->', '<#>', '<=>', '<+>')
{
	is(differing(search('q.v', 10, ", '$op'"), 10, $op), 0, "exact by $op");
}
is( differing(search('q.v', 10, ", filter => 'category % 7 = 3'"), 10, '<->', 'category % 7 = 3'),
	0, 'exact with a filter');
is( differing(search('q.v', 10, ", filter => 'docs.id = 17 -- the one'"), 10, '<->', 'id = 17'),
	0, 'fewer rows than k');
is(differing(search('q.v', 10, ", filter => 'false'"), 10, '<->', 'false'), 0, 'no row');
is(differing(search('q.v', 0), 0, '<->'), 0, 'k = 0');
is(differing(search('q.v', 4000), 4000, '<->', 'v IS NOT NULL'), 0, 'all rows that have a vector');
is(sql('SELECT count(*) FROM ' . search('NULL::vector', 10)), 0, 'nothing is near null');
is( sql("SELECT sum(d) FROM queries q, " . search("qt_vector(1, $dims)::vector::text", 30) . ' WHERE q.id = 1'),
	0, 'a query as text; ties on all partitions');
is( sql('SELECT count(*) FROM ' . search("'[" . join(',', (1) x $dims) . "]'", 10)),
	10, 'a query as a literal');
is( sql("SELECT string_agg(id || ':' || category, ' ' ORDER BY id) FROM quiver_sharded_search('docs', 'v',
		qt_vector(17, $dims)::vector, 1, '{category,id}') AS s(category int, id int, d float8)"),
	'17:17', 'columns as asked for');
is( sql('SELECT count(*) FROM queries q, ' . search('q.v', 10, '', 'everything')),
	120, 'a table that is not partitioned');
is( sql('SELECT count(*) FROM queries q, ' . search('q.v', 10, '', 'docs_2')),
	120, 'a foreign table of its own');

foreach my $type ('halfvec', 'sparsevec', 'bit')
{
	my $op = $type eq 'bit' ? '<~>' : '<->';
	my $value =
	  $type eq 'bit' ? "binary_quantize(v)::bit($dims)" : $type eq 'sparsevec' ? "v::$type($dims)" : "v::$type";
	$shards[0]->safe_psql('postgres', "CREATE TABLE ${type}_part (id int, v $type($dims));");
	sql("CREATE TABLE ${type}_all AS SELECT id, $value AS v FROM everything WHERE v IS NOT NULL;
		CREATE FOREIGN TABLE ${type}_part (id int, v $type($dims)) SERVER shard1 OPTIONS (batch_size '100');
		INSERT INTO ${type}_part SELECT * FROM ${type}_all;
		CREATE TABLE ${type}_queries AS SELECT id, $value AS v FROM queries;");
	is( sql("SELECT count(*) FROM ${type}_queries q WHERE ARRAY(SELECT s.d FROM "
			  . search('q.v', 10, ", '$op'", "${type}_part")
			  . ") IS DISTINCT FROM ARRAY(SELECT v $op q.v AS d FROM ${type}_all ORDER BY d LIMIT 10)"),
		0, "exact for $type");
}

# By index.
$shards[0]->safe_psql('postgres',
	'CREATE INDEX docs_0_v ON docs_0 USING hnsw (v vector_l2_ops);
	CREATE INDEX docs_1_v ON docs_1 USING quiver_graph (v vector_l2_ops);');
$shards[1]->safe_psql('postgres', qq{CREATE INDEX docs_2_v ON "Docs '2'" USING hnsw ("The Vector" vector_l2_ops)});
sql('CREATE INDEX docs_3_v ON docs_3 USING hnsw (v vector_l2_ops)');
foreach ($main, @shards)
{
	$_->append_conf('postgresql.conf', 'enable_seqscan = off');
	$_->reload;
	$_->safe_psql('postgres', 'VACUUM ANALYZE');
}

sub index_scans
{
	return join ' ', map {
		$_->safe_psql('postgres',
			"SELECT sum(idx_scan) > 0 FROM pg_stat_user_indexes WHERE indexrelname LIKE 'docs%'")
	} $main, @shards;
}

sub recall_of
{
	my ($found, $k) = @_;
	return sql(
		"SELECT avg((SELECT count(*) FROM (SELECT s.d FROM $found) s WHERE s.d <= e.d)) / $k
			FROM queries q, LATERAL (SELECT max(x.d) AS d FROM
				(SELECT v <-> q.v AS d FROM everything ORDER BY d LIMIT $k) x) e");
}

isnt(index_scans(), 't t t', 'no index scan yet');
cmp_ok(recall_of(search('q.v', 10), 10), '>=', 0.97, 'recall by index');
foreach ($main, @shards)
{
	$_->poll_query_until('postgres',
		"SELECT sum(idx_scan) > 0 FROM pg_stat_user_indexes WHERE indexrelname LIKE 'docs%'");
}
is(index_scans(), 't t t', 'by index on every server');
is( sql('SELECT count(*) FROM '
		  . search("qt_vector(-5, $dims)::vector", 300, q{, filter => 'current_setting(''hnsw.ef_search'')::int = 300
				AND current_setting(''quiver.ef_search'')::int = 0'})),
	300,
	'ef_search follows k where it decides');
# on the shards and here: 20 is raised, 400 is enough
foreach my $set ([ 20, 300 ], [ 299, 300 ], [ 300, 300 ], [ 400, 400 ])
{
	my ($ef, $used) = @$set;

	$_->safe_psql('postgres', "ALTER ROLE CURRENT_USER SET quiver.ef_search = $ef") foreach ($main, @shards);
	is( sql('SELECT count(*) FROM '
			  . search("qt_vector(-5, $dims)::vector", 300,
				qq{, filter => 'current_setting(''quiver.ef_search'')::int = $used'})),
		300,
		"quiver.ef_search of $ef follows k");
	$_->safe_psql('postgres', 'ALTER ROLE CURRENT_USER RESET quiver.ef_search') foreach ($main, @shards);
}
cmp_ok(
	recall_of('(SELECT v <-> q.v AS d FROM docs ORDER BY v <-> q.v LIMIT 10) s', 10),
	'>=', 0.97, 'recall of a plain query on the partitioned table');

# More rows than ef_search; and where no scan goes on, or one gives up.
my $few = q{, settings => '{"hnsw.ef_search": 5, "quiver.ef_search": 5%s}'};
cmp_ok(recall_of(search('q.v', 300, sprintf($few, '')), 300), '>=', 0.9, 'k above ef_search');
foreach (
	', "hnsw.iterative_scan": "off", "quiver.iterative_scan": "off"',
	', "hnsw.max_scan_tuples": 1, "quiver.max_scan_tuples": 1')
{
	is( sql('SELECT min(n) FROM (SELECT count(*) AS n FROM queries q, '
			  . search('q.v', 300, sprintf($few, $_)) . ' GROUP BY q.id) n'),
		300, "no row is missing with $_");
	cmp_ok(recall_of(search('q.v', 300, sprintf($few, $_)), 300), '>=', 0.9, "they are the nearest with $_");
}
is( differing(search('q.v', 10, q{, filter => 'category = 5'}), 10, '<->', 'category = 5'),
	0, 'exact where a filter leaves fewer than k rows on a shard');

# A partition with posting lists.
$shards[1]->safe_psql('postgres',
	qq{DROP INDEX docs_2_v; }
	  . qq{CREATE INDEX docs_2_v ON "Docs '2'" USING ivfflat ("The Vector" vector_l2_ops) WITH (lists = 20)});
cmp_ok(recall_of(search('q.v', 10, q{, settings => '{"ivfflat.probes": 20}'}), 10), '>=', 0.97,
	'ivfflat.probes reaches a shard');
is( sql('SELECT min(n) FROM (SELECT count(*) AS n FROM queries q, '
		  . search('q.v', 300, q{, settings => '{"ivfflat.probes": 1}'}) . ' GROUP BY q.id) n'),
	300, 'more rows than the lists that are probed have');
$shards[1]->safe_psql('postgres',
	qq{DROP INDEX docs_2_v; CREATE INDEX docs_2_v ON "Docs '2'" USING hnsw ("The Vector" vector_l2_ops)});

# Settings of a search reach all partitions, and stay there; those of the servers
# are followed by a session that has searched before.
is( sql('SELECT count(*) FROM '
		  . search("qt_vector(3, $dims)::vector", 20,
			q{, filter => 'current_setting(''hnsw.ef_search'')::int = 77', settings => '{"hnsw.ef_search": 77}'})
		  . "; SELECT current_setting('hnsw.ef_search')"),
	"20\n40", 'settings of one search');
my $session = new_session($main);
my $with = 'SELECT count(*) FROM '
  . search("qt_vector(3, $dims)::vector", 20, q{, filter => 'current_setting(''hnsw.ef_search'')::int = 123'});
is(session_sql($session, $with), 0, 'before the setting of a server');
sql(q{SELECT quiver_shard_settings('shard2', '{"hnsw.ef_search": 123}')});
is(session_sql($session, $with), 20, 'after it');
is(session_sql($session, "SELECT count(*) FROM unnest(dblink_get_connections())"),
	2, 'one connection a server');

# Prepared statements.
sql(q{SELECT quiver_shard_settings('shard} . $_ . q{', '{"hnsw.ef_search": 200}')}) foreach 1 .. 2;
my $prepare = 'SET hnsw.ef_search = 200; SET quiver.ef_search = 200; SET plan_cache_mode = force_generic_plan;'
  . 'PREPARE search(vector, int) AS SELECT d FROM ' . search('$1', '$2') . ';'
  . 'PREPARE plain(vector) AS SELECT v <-> $1 FROM docs ORDER BY v <-> $1 LIMIT 60;'
  . "PREPARE exact(vector) AS SELECT v <-> \$1 FROM everything ORDER BY v <-> \$1 LIMIT 60;";
my $vector = "qt_vector(-77, $dims)::vector";
my $exact = sql("$prepare EXECUTE exact($vector)");
is(scalar(split /\n/, $exact), 60, 'rows of the exact search');
is(sql("$prepare EXECUTE search($vector, 60)"), $exact, 'a prepared sharded search');
is(sql("$prepare EXECUTE plain($vector)"), $exact, 'a prepared plain query');
like(
	sql("$prepare EXPLAIN (VERBOSE) EXECUTE plain($vector)"),
	qr/Merge Append.*Remote SQL: [^\n]*ORDER BY[^\n]*\$1/s,
	'with the parameter sent');

# What is sent: no vector but the query's.
$shards[1]->append_conf('postgresql.conf', 'log_statement = all');
$shards[1]->reload;
my $offset = -s $shards[1]->logfile;
sql('SELECT FROM queries q, ' . search('q.v', 5) . ' WHERE q.id = 1');
like(
	PostgreSQL::Test::Utils::slurp_file($shards[1]->logfile, $offset),
	qr/SELECT docs.id AS c1, docs.v OPERATOR\(public.<->\) '[^']*'::public.vector AS d FROM/,
	'the shard returns the column and the distance');

# All shards are at work at the same time: one finishes while another waits.
foreach my $i (0, 1)
{
	my $lock = new_session($shards[$i]);
	my $table = $i ? q{"Docs '2'"} : 'docs_0';
	my $query = "qt_vector(1000 + $i, $dims)::vector";
	my $text = sql("SELECT $query");

	session_sql($lock, "BEGIN; LOCK TABLE $table");
	$session->{out} = '';
	$session->{in} .= 'SELECT count(*) FROM ' . search($query, 15) . ";\n\\echo end-of-answer\n";
	$session->{handle}->pump_nb;
	wait_until_true($shards[$i],
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 'one shard waits');
	wait_until_true($shards[ 1 - $i ],
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%$text%'
			AND pid <> pg_backend_pid()",
		'the other has done its part');
	if ($i)
	{
		sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
			WHERE query LIKE '%quiver_sharded_search%' AND pid <> pg_backend_pid()});
		$session->{handle}->pump until $session->{out} =~ /end-of-answer\n/;
		like($session->{out}, qr/canceling statement due to user request/, 'or is canceled, while it waits');
		like(session_sql($session, "SET statement_timeout = '500ms'; SELECT count(*) FROM " . search($query, 15)),
			qr/canceling statement due to statement timeout/, 'or by statement_timeout');
		session_sql($session, 'RESET statement_timeout');
		session_sql($lock, 'COMMIT');
		wait_until_true($shards[1],
			q{SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}, 'no shard waits');
		end_session($lock);
		next;
	}
	session_sql($lock, 'COMMIT');
	$session->{handle}->pump until $session->{out} =~ /end-of-answer\n/;
	like($session->{out}, qr/^15\n/, 'then the search ends');
	end_session($lock);
}

# Errors.
foreach (
	[ q{'nothing', 'v', '[1]', 1, '{id}'}, '42P01', 'relation "nothing" does not exist' ],
	[ q{'docs', 'w', '[1]', 1, '{id}'}, '42703', 'column "w" of relation "docs" does not exist' ],
	[ q{'docs', 'v', '[1]', 1, '{x}'}, '42703', 'column "x" of relation "docs" does not exist' ],
	[ q{'docs', 'v', '[1]', 1, '{}'}, '22023', 'no columns to return' ],
	[ q{'docs', 'id', '1', 1, '{id}'}, '42883', 'type integer has no distance operator "<->"' ],
	[ q{'docs', 'v', '[1]', 1, '{id}', '<~>'}, '42883', 'type public.vector has no distance operator "<~>"' ],
	[ q{'docs', 'v', 'x', 1, '{id}'}, '22P02', 'invalid input syntax for type vector' ],
	[ q{'docs', 'v', '[1]', 1, '{id}'}, '22000', "different vector dimensions $dims and 1" ],
	[ q{'docs', 'v', '[1]', -1, '{id}'}, '22023', 'k must not be negative or null' ],
	[ q{'docs', 'v', '[1]', 1, '{id}', filter => 'true) OR (x'}, '42703', 'column "x" does not exist' ],
	[ q{'docs', 'v', '[1]', 1, '{id}', settings => '{"hnsw.ef_search": 0}'}, '22023', '0 is outside' ])
{
	my ($arguments, $state, $message) = @$_;
	fails_like($main,
		"SELECT FROM quiver_sharded_search($arguments) AS s(id int, d float8);",
		$state, $message, "search: $message");
}
sql(q{CREATE ROLE reader; GRANT CREATE ON SCHEMA public TO reader;});
fails_like($main, 'SET ROLE reader; SELECT FROM ' . search("$vector", 1) . ';',
	'42501', 'permission denied for table docs', 'no privilege on the table');
fails_like($main, q{SET ROLE reader; SELECT quiver_shard_settings('shard1', '{"hnsw.ef_search": 9}');},
	'42501', 'must be owner of foreign server shard1', 'no owner of the server');
sql('GRANT SELECT ON docs TO reader;');
like(answer('SET ROLE reader; SELECT FROM ' . search("$vector", 1)),
	qr/user mapping not found|permission denied for foreign server/, 'no privilege on the server');
# A name that needs quotes; and settings that were missing are so again for the second search.
sql(q{CREATE ROLE "Reader.One"; CREATE TABLE alone (id int, v vector(1)); INSERT INTO alone VALUES (7, '[1]');
	GRANT SELECT ON alone TO "Reader.One";});
is( sql(q{SET ROLE "Reader.One"; } . q{SELECT id FROM quiver_sharded_search('alone', 'v', '[1]', 1, '{id}')
	AS s(id int, d float8);} x 2),
	"7\n7", 'a role whose name needs quotes');
sql('ALTER TABLE docs ENABLE ROW LEVEL SECURITY;');
fails_like($main, 'SET ROLE reader; SELECT FROM ' . search("$vector", 1) . ';',
	'0A000', 'cannot search the shards of "docs"', 'row-level security');
sql(q{ALTER TABLE docs DISABLE ROW LEVEL SECURITY;
	CREATE TABLE parted (id int, v vector(1)) PARTITION BY LIST (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
	ALTER TABLE parted_1 ENABLE ROW LEVEL SECURITY;
	GRANT SELECT ON parted, parted_1 TO reader;});
fails_like($main, "SET ROLE reader; SELECT FROM quiver_sharded_search('parted', 'v', '[1]', 1, '{id}')"
	  . ' AS s(id int, d float8);',
	'0A000', 'cannot search the shards of "parted", a partition of which has', 'nor of a partition');

# Failed searches leave nothing behind in the session.
my $ten = 'SELECT count(*), sum(d) FROM ' . search($vector, 10);
my $same = sql($ten);
is(session_sql($session, $ten), $same, 'a session with kept connections');
like(session_sql($session, 'SELECT FROM ' . search($vector, 10, q{, filter => 'id / (id - id) = 1'})),
	qr/division by zero/, 'a filter that fails');
is(session_sql($session, $ten), $same, 'the same session again');
$shards[0]->safe_psql('postgres', 'ALTER TABLE docs_1 RENAME TO gone');
like(session_sql($session, 'SELECT FROM ' . search($vector, 10)),
	qr/relation "public.docs_1" does not exist/, 'a table that a shard has lost');
$shards[0]->safe_psql('postgres', 'ALTER TABLE gone RENAME TO docs_1');
is(session_sql($session, $ten), $same, 'it is back');
$shards[1]->restart;
is(session_sql($session, $ten), $same, 'a shard was started again');
$shards[1]->stop;
like(session_sql($session, 'SELECT FROM ' . search($vector, 10)),
	qr/could not establish connection.*shard2/s, 'a shard that is down is no empty shard');
is( session_sql($session,
		'SELECT count(*) FROM '
		  . search($vector, 10, q{, filter => 'id = ' || (SELECT min(id) FROM everything WHERE id IN
			(SELECT id FROM docs_0))})),
	1, 'a filter on the partition key asks only the shards that it needs');
$shards[1]->start;
is(session_sql($session, $ten), $same, 'and back');
end_session($session);

# Extensions in schemas that are in no search path, and objects that would catch
# an unqualified name.
foreach my $node ($main, @shards)
{
	$node->safe_psql('postgres', 'CREATE DATABASE odd');
	$node->safe_psql(
		'odd', q{CREATE SCHEMA "the types"; CREATE SCHEMA "the rest";
		CREATE EXTENSION vector SCHEMA "the types"; CREATE EXTENSION quiver SCHEMA "the rest";
		CREATE FUNCTION public.count() RETURNS bigint LANGUAGE sql AS 'SELECT 1/0::bigint';
		CREATE TABLE docs_0 (id int, v "the types".vector(2));
		INSERT INTO docs_0 VALUES (} . $node->port . q{, '[1,2]')});
}
$main->safe_psql(
	'odd', q{CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink SCHEMA "the rest";
	CREATE SERVER "s '1'" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '}
	  . $shards[0]->host . q{', port '} . $shards[0]->port . qq{', dbname 'odd');
	CREATE USER MAPPING FOR PUBLIC SERVER "s '1'" OPTIONS (user $user);}
	  . q{CREATE FOREIGN TABLE docs (id int, v "the types".vector(2)) SERVER "s '1'"
		OPTIONS (table_name 'docs_0')});
is( $main->safe_psql(
		'odd', q{SET search_path = public, pg_catalog;
		SELECT "the rest".quiver_shard_settings('s ''1''') IS NOT NULL;
		SELECT id, d FROM "the rest".quiver_sharded_search('docs', 'v', '[1,3]', 3, '{id}') AS s(id int, d float8)}),
	"t\n" . $shards[0]->port . '|1', 'extensions in schemas of their own');

clean_log_ok($_) foreach $main, @shards;
done_testing();
