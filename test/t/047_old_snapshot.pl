# old_snapshot_threshold, which PostgreSQL has up to 16: VACUUM takes rows that an old snapshot still
# sees, and their entries from the index. A search by that snapshot says so; it does not leave
# them out.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('old_snapshot');

if (sql_value($node, "SELECT current_setting('server_version_num')::int") >= 170000)
{
	$node->stop;
	plan skip_all => 'this server has no old_snapshot_threshold';
}
# the least that is not only for tests: a minute
$node->append_conf('postgresql.conf', 'old_snapshot_threshold = 1');
$node->restart;
my (%tables, %sessions);
foreach my $am (qw(quiver_graph quiver_ivf hnsw ivfflat))
{
	$tables{"t_${am}_$_"} = [ $am, $_ ] foreach qw(on off);
}
my $query = 'SELECT count(*) FROM (SELECT id FROM %s ORDER BY v <-> qt_vector(7, 16)::vector LIMIT 5) x';
foreach my $t (sort keys %tables)
{
	my ($am, $topk) = @{ $tables{$t} };

	$node->safe_psql('postgres', "SET client_min_messages = warning; "
		  . "CREATE TABLE $t (id int, v vector(16)) WITH (autovacuum_enabled = false);"
		  . "INSERT INTO $t SELECT i, qt_vector(i, 16)::vector FROM generate_series(1, 2000) i;"
		  . "CREATE INDEX ON $t USING $am (v vector_l2_ops)");
	$sessions{$t} = new_session($node, 'postgres');
	session_sql($sessions{$t}, "SET quiver.topk_scan = $topk; SET enable_seqscan = off; SET enable_sort = off; "
		  . "BEGIN ISOLATION LEVEL REPEATABLE READ");
	is(session_sql($sessions{$t}, sprintf $query, $t), 5, "$am, topk_scan $topk: before");
}
# The server counts in whole minutes, and only while there are transactions.
my $gone = 0;
$node->safe_psql('postgres', join ';', map { "DELETE FROM $_ WHERE id < 1900" } sort keys %tables);
for (my $tick = 0; !$gone && $tick < 40; $tick++)
{
	sleep 5;
	$node->safe_psql('postgres', 'CREATE TABLE IF NOT EXISTS ticks (i int); INSERT INTO ticks VALUES (1)');
	$node->safe_psql('postgres', "VACUUM $_") foreach sort keys %tables;
	$gone = sql_value($node, 'SELECT ' . join ' AND ',
		map { "(SELECT row_count FROM quiver_index_info('${_}_v_idx')) = 101" } sort keys %tables) eq 't';
}
ok($gone, 'VACUUM has taken the rows');
foreach my $t (sort keys %tables)
{
	my ($am, $topk) = @{ $tables{$t} };

	like(session_sql($sessions{$t}, sprintf $query, $t), qr/snapshot too old/, "$am, topk_scan $topk: told");
	end_session($sessions{$t});
}

clean_log_ok($node);
$node->stop;
done_testing();
