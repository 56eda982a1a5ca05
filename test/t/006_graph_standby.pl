# A streaming standby answers as its primary does, after builds, inserts and
# VACUUM, and after promotion.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $primary = new_node('primary', init => { allows_streaming => 1 },
	conf => "wal_consistency_checking = 'generic'\n");
my ($dims, $rows) = (16, 3000);

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

make_queries($primary, table => 'queries', dims => $dims);

sub same_answers
{
	my ($what, $index, $table, $op) = @_;
	my $query = "SELECT q.id, r.id, r.d FROM queries q, LATERAL "
	  . "(SELECT id, v $op q.v AS d FROM $table ORDER BY v $op q.v LIMIT 10) r ORDER BY 1, 3, 2";

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	like(sql_value($standby, "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query"),
		qr/Index Scan using $index/, "$what: the standby uses the index");
	my $answer = sql_value($primary, "SET enable_seqscan = off; $query");
	cmp_ok(length($answer), '>', 1000, "$what: there is an answer");
	is(sql_value($standby, "SET enable_seqscan = off; $query"), $answer, "$what: the standby's answer is the same");
	is(sql_value($standby, "SELECT quiver_check('$index')"),
		sql_value($primary, "SELECT quiver_check('$index')"), "$what: quiver_check on both");
}

make_rows($primary, table => 't', dims => $dims, first => 1, last => $rows);
$primary->safe_psql('postgres', 'CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops)');
same_answers('built', 't_idx', 't', '<->');

make_rows($primary, table => 't', dims => $dims, first => $rows + 1, last => $rows * 1.5, create => 0);
same_answers('inserted', 't_idx', 't', '<->');

$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 0; VACUUM t');
same_answers('vacuumed', 't_idx', 't', '<->');

make_rows($primary, table => 't', dims => $dims, first => $rows * 2, last => $rows * 3, create => 0);
same_answers('inserted again', 't_idx', 't', '<->');

# an index that starts empty, and one that is emptied
$primary->safe_psql('postgres',
	'CREATE TABLE e (LIKE t); CREATE INDEX e_idx ON e USING quiver_graph (v vector_cosine_ops); INSERT INTO e TABLE t');
same_answers('inserted into an empty index', 'e_idx', 'e', '<=>');
$primary->safe_psql('postgres', 'DELETE FROM e; VACUUM e; INSERT INTO e SELECT * FROM t WHERE id % 2 = 0');
same_answers('emptied and filled', 'e_idx', 'e', '<=>');

# many rows of one vector: chains of heap TIDs
$primary->safe_psql('postgres', "INSERT INTO e SELECT i, 0, qt_vector(1, $dims)::vector "
	  . "FROM generate_series(1, 2000) i;"
	  . 'DELETE FROM e WHERE id < 1500 AND category = 0; VACUUM e');
same_answers('duplicates', 'e_idx', 'e', '<=>');

# promoted, it goes on
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
make_rows($standby, table => 't', dims => $dims, first => 100001, last => 101000, create => 0);
$standby->safe_psql('postgres', 'DELETE FROM t WHERE id % 5 = 0; VACUUM t');
recall_ok(0.95, 'promoted', node => $standby, table => 't', index => 't_idx', op => '<->',
	queries => 'queries', ef => 60);
check_ok($standby, 't_idx', sql_value($standby, 'SELECT count(*) FROM t'), 'promoted');

clean_log_ok($primary);
clean_log_ok($standby);
$standby->stop;
$primary->stop;
done_testing();
