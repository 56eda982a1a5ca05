# What shows how indexes do holds where there are several sessions, little memory, locks,
# damage and a standby: statistics of the server or of a session, quiver_indexes,
# quiver_prewarm() and quiver_recall(). Settings of roles and index options.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my ($dims, $rows) = (64, 4000);
my $search = 'SET enable_seqscan = off; '
	  . 'SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> qt_vector(-1, 64)::vector LIMIT 5) x';

sub searches
{
	my ($node, $index, $db) = @_;
	return sql_value($node, "SELECT scope || ' ' || searches FROM quiver_stat_indexes WHERE indexrelname = '$index'",
		$db);
}

# ---- statistics: not preloaded ----

my $node = new_node('seeing', no_checksums => 1, init => { allows_streaming => 1 },
	conf => "fsync = off\nshared_buffers = 4MB\nquiver.ef_search = 40\n");
my $server_wide = $node->pg_version >= 17;

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
$node->safe_psql('postgres', 'CREATE INDEX t_lists ON t USING quiver_ivf (v vector_l2_ops); ANALYZE t');
my $session = new_session($node);
my $other = new_session($node);
session_sql($session, $search) for 1 .. 3;
my $mine = "SELECT scope || ' ' || searches FROM quiver_stat_indexes WHERE indexrelname = 't_lists'";
is(session_sql($session, $mine), $server_wide ? 'server 3' : 'session 3', 'a session sees what it has searched');
is(session_sql($other, $mine), $server_wide ? 'server 3' : 'session 0',
	$server_wide ? 'and so does another one' : 'and another one does not, without the library preloaded');

# ---- what other sessions have ----

session_sql($session, 'CREATE TEMP TABLE own (v vector(3)); '
	  . 'CREATE INDEX own_idx ON own USING quiver_graph (v vector_l2_ops)');
is(sql_value($node, "SELECT bytes > 0, ef_search IS NULL, cached IS NULL FROM quiver_indexes "
		  . "WHERE index_name = 'own_idx'"),
	't|t|t', "the view has another session's temporary index");
my $oid = sql_value($node, "SELECT index_oid FROM quiver_indexes WHERE index_name = 'own_idx'");
fails_like($node, "SELECT quiver_prewarm($oid)", '0A000', qr/cannot access temporary indexes of other sessions/,
	'which cannot be read');
fails_like($node, "SELECT quiver_recall($oid)", '0A000', qr/cannot access temporary indexes of other sessions/,
	'nor searched');
session_sql($session, 'BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; REINDEX INDEX t_lists');
is(sql_value($node, "SET lock_timeout = '100s'; "
		  . "SELECT bytes IS NULL, probes IS NULL FROM quiver_indexes WHERE index_name = 't_lists'"),
	't|t', 'and does not wait for one that is locked');
$node->safe_psql('postgres', 'CREATE ROLE nobody');
foreach my $call (q{quiver_recall('t_lists')}, q{quiver_estimate('t', 'v')}, q{quiver_estimate('t_lists')},
	q{quiver_prewarm('t_lists')}, q{quiver_prewarm('t')})
{
	fails_like($node, "SET ROLE nobody; SET lock_timeout = '1s'; SELECT $call",
		'42(?:501|809)', qr/permission denied for table t|"t" is not an index/,
		"$call waits for nothing without rights");
}
session_sql($session, 'ROLLBACK');
is(sql_value($node, "SELECT bytes > 0, probes > 0 FROM quiver_indexes WHERE index_name = 't_lists'"), 't|t',
	'until it no longer is');

# ---- roles and options ----

$node->safe_psql('postgres', "CREATE ROLE other LOGIN; GRANT SELECT ON t TO other; "
	  . "ALTER ROLE other SET quiver.recall = .8");
my $target = "SELECT recall_target, probes FROM quiver_indexes WHERE index_name = 't_lists'";
sub as_other { return $node->safe_psql('postgres', $_[0], extra_params => [ '-U', 'other' ]); }
like(as_other($target), qr/^0\.8\|/, "a role's setting");
$node->safe_psql('postgres', 'ALTER INDEX t_lists SET (recall = .9)');
like(as_other($target), qr/^0\.9\|/, "goes after the index's option");
like(as_other("SET quiver.recall = .85; $target"), qr/^0\.85\|/, 'which goes after what the session sets');
$ENV{PGOPTIONS} = '-c quiver.recall=.7';
like(as_other($target), qr/^0\.7\|/, "or its connection's options");
delete $ENV{PGOPTIONS};
$node->safe_psql('postgres', 'SELECT quiver_version(); ALTER SYSTEM SET quiver.probes = 2; SELECT pg_reload_conf()');
wait_until_true($node, "SELECT current_setting('quiver.probes') = '2'");
like(sql_value($node, $target), qr/^0\.9\|/, "the index's recall goes before the server's probes");
like(sql_value($node, "SET quiver.recall = .85; $target"), qr/^0\.85\|/, "and so does the session's");
$node->safe_psql('postgres', 'ALTER INDEX t_lists RESET (recall)');
is(sql_value($node, $target), '|2', 'without the option it has them');
$node->safe_psql('postgres', 'SELECT quiver_version(); ALTER SYSTEM RESET quiver.probes; SELECT pg_reload_conf()');

# ---- an index larger than shared buffers ----

$node->safe_psql('postgres', 'CREATE INDEX t_graph ON t USING quiver_graph (v vector_l2_ops) '
	  . 'WITH (m = 48, ef_construction = 96)');
my $buffers = sql_value($node, "SELECT setting FROM pg_settings WHERE name = 'shared_buffers'");
cmp_ok(index_bytes($node, 't_graph') / 8192, '>', $buffers, 'a graph is larger than shared buffers');
is(sql_value($node, "SELECT quiver_prewarm('t_graph')"), $buffers, 'as many pages as these hold are read');
is(sql_value($node, "SELECT cached > 0.3 AND cached < 1, advice ~ 'shared_buffers' FROM quiver_indexes "
		  . "WHERE index_name = 't_graph'"),
	't|t', 'and are there, and the view says what would help');
$node->safe_psql('postgres', "CREATE TABLE many AS SELECT id, v FROM t UNION ALL SELECT id, v FROM t; "
	  . "CREATE INDEX many_lists ON many USING quiver_ivf (v vector_l2_ops)");
my $first = sql_value($node, "SELECT quiver_prewarm('many_lists')");
cmp_ok($first, '<=', $buffers, 'of lists no more than fits');
cmp_ok($first * 8192, '<=', index_bytes($node, 'many_lists'), 'and no page twice');
# rows are scored by pages of codes and sketches: these come first
like(sql_value($node, "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) "
		  . "SELECT quiver_prewarm('many_lists')"),
	qr/shared/, 'it reads by way of shared buffers');
recall_function_ok($node, 't_graph');
recall_function_ok($node, 'many_lists');

sub recall_function_ok
{
	my ($on, $index) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($recall, $low, $high, $searches) = split /\|/,
	  sql_value($on, "SELECT recall, recall_low, recall_high, searches FROM quiver_recall('$index', 10, 50)");
	ok($recall >= $low && $high >= $recall && $searches == 50 && $recall > 0.7,
		"$index: recall $low - $recall - $high");
	return;
}

# ---- a standby ----

$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE unlogged AS SELECT * FROM t WHERE id < 10;
CREATE INDEX unlogged_graph ON unlogged USING quiver_graph (v vector_l2_ops)');
is(sql_value($node, "SELECT bytes > 0, dead_entries FROM quiver_indexes WHERE index_name = 'unlogged_graph'"), 't|0',
	'an unlogged index');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('seeing_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
recall_function_ok($standby, 't_lists');
cmp_ok(sql_value($standby, "SELECT quiver_prewarm('t_lists')"), '>', 0, 'a standby: warmed');
is(sql_value($standby, "SELECT valid, probes > 0, lost_pages FROM quiver_indexes WHERE index_name = 't_lists'"),
	't|t|0', 'a standby: the view');
is(sql_value($standby, "SELECT valid, bytes, advice FROM quiver_indexes WHERE index_name = 'unlogged_graph'"), 't||',
	'a standby: nothing of an unlogged index, and nothing to do');
is(sql_value($standby, "$search; $mine") =~ s/.*\n//r, $server_wide ? 'server 51' : 'session 1',
	'a standby: statistics of its own');
$standby->stop;

# ---- damage ----

my $path = sql_value($node, "SELECT pg_relation_filepath('t_lists')");
end_session($session);
end_session($other);
$node->stop;
my $file = $node->data_dir . "/$path";
open my $fh, '+<:raw', $file or die "could not open $file: $!";
seek $fh, 24, 0 or die $!;
print $fh "\0" x 200;
close $fh or die $!;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'quiver'\n");
$node->start;
like(sql_value($node, "SELECT advice, bytes > 0, probes IS NULL FROM quiver_indexes WHERE index_name = 't_lists'"),
	qr/^REINDEX: index "t_lists".*\|t\|t$/, 'a damaged index is shown, and what to do');
is(sql_value($node, "SELECT count(*) FROM quiver_indexes WHERE advice IS NULL AND index_name LIKE 'many%'"), 1,
	'beside others');
fails_like($node, "SELECT quiver_recall('t_lists')", 'XX002', qr/index "t_lists" is damaged/,
	'recall: the error of any search');
$node->safe_psql('postgres', 'REINDEX INDEX t_lists; DROP INDEX t_graph');
recall_function_ok($node, 't_lists');
my $gone = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('many_lists')");
rename $gone, "$gone.aside" or die $!;
like(sql_value($node, "SELECT advice FROM quiver_indexes WHERE index_name = 'many_lists'"),
	qr/^REINDEX: could not open file/, 'a missing file is shown');
rename "$gone.aside", $gone or die $!;
# what is not of the index is an error
chmod 0, $gone or die $!;
fails_like($node, 'SELECT advice FROM quiver_indexes', '42501', qr/could not open file/,
	'what is not of the index fails');
chmod 0600, $gone or die $!;

# ---- statistics: preloaded ----

is(searches($node, 'many_lists'), 'server 0', 'preloaded: statistics of the server, from its start on');
$node->safe_psql('postgres', $search) for 1 .. 2;
is(searches($node, 't_lists'), 'server 52', 'of all sessions');
$node->safe_psql('postgres', 'CREATE DATABASE second TEMPLATE postgres');
is(searches($node, 't_lists', 'second'), 'server 0', 'of one database');
$node->safe_psql('second', $search);
is(searches($node, 't_lists', 'second'), 'server 1', 'each by itself');
$node->safe_psql('second', 'SELECT quiver_stat_reset()');
is(searches($node, 't_lists', 'second'), 'server 0', 'reset there');
is(searches($node, 't_lists'), 'server 52', 'and there only');
my $since = "SELECT stats_reset FROM quiver_stat_indexes WHERE indexrelname = 't_lists'";
my $before = sql_value($node, $since);
$node->safe_psql('postgres', "SELECT quiver_stat_reset('t_lists')");
is(sql_value($node, "SELECT stats_reset > '$before' FROM quiver_stat_indexes WHERE indexrelname = 't_lists'"), 't',
	'since when is known');
is(sql_value($node, "SELECT stats_reset FROM quiver_stat_indexes WHERE indexrelname = 'many_lists'"), $before,
	'of each index');
# more indexes than there is room for: the ones searched last stay
$node->safe_psql('postgres', q{
CREATE TABLE small AS SELECT id, v FROM t WHERE id <= 3;
DO $$ BEGIN FOR i IN 1 .. 1500 LOOP
	CREATE INDEX small_idx ON small USING quiver_ivf (v vector_l2_ops);
	PERFORM set_config('enable_seqscan', 'off', true);
	EXECUTE 'SELECT count(*) FROM (SELECT id FROM small ORDER BY v <-> qt_vector(-1, 64)::vector LIMIT 1) x';
	DROP INDEX small_idx;
END LOOP; END $$});
$node->safe_psql('postgres', $search);
is(searches($node, 't_lists'), 'server 1', 'the server counts on');
cmp_ok(sql_value($node, 'SELECT count(*) FROM _quiver_stat()'), '<=', 1025, 'within the room that there is');
cmp_ok(sql_value($node, q{
SELECT count(*) FROM _quiver_stat()
WHERE stats_reset > (SELECT stats_reset FROM _quiver_stat() WHERE indexrelid = 0)}), '>', 0,
	'what takes a used place counts from then on');

# ---- a schema full of operators and functions that the views must not take ----

$node->safe_psql('postgres', 'CREATE ROLE plotter; CREATE DATABASE plotted OWNER plotter');
$node->safe_psql('plotted', q{
GRANT CREATE ON SCHEMA public TO plotter;
SET ROLE plotter;
-- for every pair of types that catalogs, settings and constants have
DO $do$
DECLARE
	r record;
	types text[] := '{int2,int4,int8,float4,float8,numeric,oid,"\"char\"",name,text,bool,regclass}';
BEGIN
	FOR r IN
		SELECT a, b, o.sign, o.result FROM unnest(types) a, unnest(types) b, (VALUES
			('=', 'bool'), ('<>', 'bool'), ('<', 'bool'), ('<=', 'bool'), ('>', 'bool'), ('>=', 'bool'), ('~', 'bool'),
			('*', 'float8'), ('/', 'float8'), ('+', 'float8'), ('-', 'float8'), ('||', 'text')) o (sign, result)
	LOOP
		EXECUTE format($$CREATE OR REPLACE FUNCTION public.plot_%s(%s, %s) RETURNS %1$s LANGUAGE plpgsql AS
			'BEGIN RAISE EXCEPTION ''taken''; END'$$, r.result, r.a, r.b);
		EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.plot_%s)',
			r.sign, r.a, r.b, r.result);
	END LOOP;
END $do$;
CREATE FUNCTION public.current_setting(name, bool DEFAULT true) RETURNS text LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'taken'; END $$;
CREATE FUNCTION public.substring(name, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$;
RESET ROLE;
CREATE EXTENSION vector;
CREATE EXTENSION quiver});
is(sql_value($node, q{
SELECT string_agg(DISTINCT pg_describe_object(d.refclassid, d.refobjid, 0), ', ')
FROM pg_rewrite w
	JOIN pg_depend m ON m.classid OPERATOR(pg_catalog.=) 'pg_class'::regclass::oid AND m.objid = w.ev_class
		AND m.deptype = 'e'
	JOIN pg_depend d ON d.classid OPERATOR(pg_catalog.=) 'pg_rewrite'::regclass::oid AND d.objid = w.oid
		AND d.refobjid <> w.ev_class
WHERE d.refobjid >= '16384'::oid AND NOT EXISTS (SELECT FROM pg_depend e
	WHERE e.classid = d.refclassid AND e.objid = d.refobjid AND e.deptype = 'e')}, 'plotted'), '',
	'views are of nothing but the server and the extensions');
is(sql_value($node, 'SELECT count(*) FROM quiver_indexes, quiver_stat_indexes', 'plotted'), 0, 'and can be read');

clean_log_ok($node);
$node->stop;

# ---- statistics: no shared memory to be had ----

my $full = new_node('full', conf => "dynamic_shared_memory_type = mmap\nshared_buffers = 1MB\n");
make_rows($full, table => 't', dims => $dims, first => 1, last => 100);
$full->safe_psql('postgres', 'SET max_parallel_maintenance_workers = 0; '
	  . 'CREATE INDEX t_lists ON t USING quiver_ivf (v vector_l2_ops)');
my $segments = $full->data_dir . '/pg_dynshmem';
# what is there can be used
chmod 0500, $segments or die $!;
my ($rc, $out, $err) = $full->psql('postgres', "$search; $search; $mine");
is("$rc $out", "0 5\n5\nsession 2", 'searches do not fail for statistics, which are kept for the session');
is(scalar(() = $err =~ /WARNING:  statistics of searches are kept for this session alone/g), $server_wide ? 1 : 0,
	$server_wide ? 'which is said once' : 'as ever');
chmod 0700, $segments or die $!;
is(sql_value($full, "$search; $mine") =~ s/.*\n//r, $server_wide ? 'server 1' : 'session 1',
	'when there is room, as ever');

# ---- an index more than twice as large as shared buffers ----

make_rows($full, table => 'large', dims => $dims, first => 1, last => 4000);
$full->safe_psql('postgres', 'SET max_parallel_maintenance_workers = 0; '
	  . 'CREATE INDEX large_graph ON large USING quiver_graph (v vector_l2_ops) WITH (m = 32)');
# its blocks then share places among the hints, of which there are two for each buffer
cmp_ok(index_bytes($full, 'large_graph') / 8192, '>', 2 * 128, 'a graph is more than twice as large as shared buffers');
recall_function_ok($full, 'large_graph');
clean_log_ok($full);
$full->stop;
done_testing();
