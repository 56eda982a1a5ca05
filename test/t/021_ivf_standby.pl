# A streaming standby answers as its primary does, while lists are split and written
# anew; its scans give every row once during replay; promoted, it goes on.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $primary = new_node('ivf_primary', init => { allows_streaming => 1 },
	conf => "wal_consistency_checking = 'generic'\nfsync = off\n");
my ($dims, $rows) = (16, 3000);

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('ivf_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# a scan of the standby may keep VACUUM's records waiting, not the other way
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
make_queries($primary, table => 'queries', dims => $dims);
$primary->safe_psql('postgres', "CREATE TABLE bits AS SELECT id, binary_quantize(v)::bit($dims) AS v FROM queries");

my $relaxed = 'SET quiver.iterative_scan = relaxed_order; SET ivfflat.iterative_scan = relaxed_order;';
my %cases = (
	t => { op => '<->', queries => 'queries' },
	e => { op => '<=>', queries => 'queries' },
	b => { op => '<~>', queries => 'bits' });

sub same_answers
{
	my ($what, @tables) = @_;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	foreach my $table (@tables)
	{
		my ($op, $queries) = @{ $cases{$table} }{qw(op queries)};
		my $query = "SET enable_seqscan = off; SET enable_sort = off; SET ivfflat.probes = 10; "
			  . "%s SELECT q.id, r.id, r.d FROM $queries q, LATERAL "
		  . "(SELECT id, v $op q.v AS d FROM $table ORDER BY v $op q.v LIMIT 10) r";

		like(sql_value($standby, sprintf($query, 'EXPLAIN (COSTS OFF)')), qr/Index Scan using ${table}_idx/,
			"$what, $table: the standby uses the index");
		my $answer = sql_value($primary, sprintf($query, ''));
		cmp_ok(length($answer), '>', 1000, "$what, $table: there is an answer");
		is(sql_value($standby, sprintf($query, '')), $answer, "$what, $table: the standby's answer is the same");
		my $count = sql_value($primary, "SELECT count(*) FROM $table");
		check_ok($primary, "${table}_idx", $count, "$what, $table: primary");
		check_ok($standby, "${table}_idx", $count, "$what, $table: standby");
		every_row_ok($count, "$what, $table: standby", node => $standby, table => $table, op => $op,
			queries => $queries, query => 4, set => $relaxed);
	}
}

make_rows($primary, table => 't', dims => $dims, first => 1, last => $rows);
$primary->safe_psql('postgres', 'SET client_min_messages = warning; CREATE INDEX t_idx ON t USING quiver_ivf (v);'
	  . "CREATE TABLE e (LIKE t); CREATE INDEX e_idx ON e USING quiver_ivf (v vector_cosine_ops); "
	  . "INSERT INTO e TABLE t;"
	  . "CREATE TABLE b (id int, v bit($dims)); "
	  . "CREATE INDEX b_idx ON b USING ivfflat (v bit_hamming_ops) WITH (lists = 40);"
	  . 'INSERT INTO b SELECT id, binary_quantize(v)::bit(16) FROM t');
same_answers('built, and grown from nothing', qw(t e b));
cmp_ok((index_facts($standby, 'e_idx', 'lists'))[0], '>', 8, 'lists were split');

$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 2 = 0; DELETE FROM b WHERE id % 2 = 0; '
	  . 'VACUUM (INDEX_CLEANUP ON) t; VACUUM (INDEX_CLEANUP ON) b');
make_rows($primary, table => 't', dims => $dims, first => $rows + 1, last => $rows * 1.5, create => 0);
same_answers('vacuumed and inserted again', qw(t b));
$primary->safe_psql('postgres', 'DELETE FROM e; VACUUM e; INSERT INTO e SELECT * FROM t WHERE id % 3 = 0');
same_answers('emptied and filled', 'e');

# Scans on the standby during all of this. Those of the primary hold no lock there:
# only what is replayed moves lists.
$primary->safe_psql('postgres', q{
CREATE FUNCTION look() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_index int[];
	all_rows int[];
BEGIN
	SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL quiver.iterative_scan = relaxed_order;
	SELECT array_agg(id) INTO by_index FROM (SELECT id FROM t ORDER BY v <-> (SELECT v FROM queries WHERE id = 3)) x;
	SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off;
	SELECT array_agg(id) INTO all_rows FROM (SELECT id FROM t ORDER BY id) x;
	SELECT array_agg(i ORDER BY i) INTO by_index FROM unnest(by_index) i;
	RETURN CASE WHEN by_index = all_rows THEN 'same'
		ELSE format('%s of %s rows', cardinality(by_index), cardinality(all_rows)) END;
END $$;
CREATE SEQUENCE ids START 100000});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my ($lists, $version) = index_facts($primary, 't_idx', 'lists');
my @running = (
	background_pgbench($primary, "\\set r random(1, 4000)\nINSERT INTO t SELECT nextval('ids'), 0, "
		  . "qt_vector(:r + i % 10, $dims)::vector FROM generate_series(1, 50) i;\n", clients => 2, name => 'insert'),
	background_pgbench($primary, "DELETE FROM t WHERE ctid IN (SELECT ctid FROM t ORDER BY random() "
		  . "LIMIT 200);\nVACUUM (INDEX_CLEANUP ON) t;\n\\sleep 50 ms\n", clients => 1, name => 'vacuum'));
my %looks;
my $until = time + 7;
while (time < $until)
{
	$looks{ sql_value($standby, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT look(); COMMIT') }++;
}
unlike(stop_background($_), qr/ERROR|FATAL|aborted/, 'no client had an error') foreach @running;
is(join(' ', keys %looks), 'same', 'scans during replay: every row once');
cmp_ok($looks{same} // 0, '>', 5, 'scans during replay: ' . ($looks{same} // 0) . ' of them');
wait_until_true($primary, "SELECT count(*) = 0 FROM pg_stat_activity "
	  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", 'all have ended');
cmp_ok((index_facts($primary, 't_idx', 'lists'))[0], '>', $lists, 'lists were split meanwhile');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
same_answers('after all', 't');

# promoted, it goes on
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
make_rows($standby, table => 't', dims => $dims, first => 1000001, last => 1002000, create => 0);
# FREEZE waits for pages of the table that another process has pinned
$standby->safe_psql('postgres', 'DELETE FROM t WHERE id % 5 = 0; VACUUM (FREEZE, INDEX_CLEANUP ON) t');
recall_ok(0.93, 'promoted', node => $standby, table => 't', index => 't_idx', op => '<->', queries => 'queries');
check_ok($standby, 't_idx', sql_value($standby, 'SELECT count(*) FROM t'), 'promoted');
is((index_facts($standby, 't_idx', 'lost_pages'))[0], 0, 'promoted: no page is lost');

unlike(slurp_file($standby->logfile), qr/inconsistent page|ERROR:/, 'replay gives the same pages, and no scan failed');
clean_log_ok($primary);
clean_log_ok($standby);
$standby->stop;
$primary->stop;
done_testing();
