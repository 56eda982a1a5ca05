# Sessions insert and delete, lists are split, VACUUM writes lists anew, and scans of
# all rows go on: each gives every row committed before its snapshot once, whether or not
# work_mem holds what it has returned.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_race', conf => "fsync = off\nlog_min_error_statement = error\n");
my $dims = 16;
my $seconds = 12;

$node->safe_psql('postgres',
	q{CREATE SEQUENCE ids; }
	  . q{CREATE TABLE mismatch (what text, expected bigint, found bigint, different bigint, }
	  . q{at timestamptz DEFAULT clock_timestamp());});
make_rows($node, table => 'base', dims => $dims, first => 1, last => 4000);

# A scan by the index and a sequential scan in one snapshot have the same rows.
$node->safe_psql('postgres', q{
CREATE FUNCTION look(t regclass, op text, q text, memory text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	by_index int[];
	all_rows int[];
	different int;
BEGIN
	PERFORM set_config('work_mem', memory, true);
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL quiver.iterative_scan = relaxed_order;
	SET LOCAL ivfflat.iterative_scan = relaxed_order;
	EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM %s ORDER BY v %s %s) x', t, op, q) INTO by_index;
	SET LOCAL enable_seqscan = on;
	EXECUTE format('SELECT array_agg(id) FROM %s WHERE v IS NOT NULL', t) INTO all_rows;
	SELECT count(*) INTO different FROM ((SELECT unnest(by_index) EXCEPT ALL SELECT unnest(all_rows))
		UNION ALL (SELECT unnest(all_rows) EXCEPT ALL SELECT unnest(by_index))) x;
	-- with little memory the order is strict from some row on: late rows are left out, and none comes twice
	IF memory = '64kB' AND cardinality(by_index) >= least(1000, cardinality(all_rows)) THEN
		SELECT count(*) INTO different FROM (SELECT unnest(by_index) EXCEPT ALL SELECT unnest(all_rows)) x;
		all_rows := by_index;
	END IF;
	INSERT INTO mismatch VALUES (t::text, cardinality(all_rows), cardinality(by_index), different);
END $$;});

my %tables = (
	coded => { op => '<->', index => 'USING quiver_ivf (v)', type => "vector($dims)", value => 'v',
		query => "(SELECT v FROM base WHERE id = %d)" },
	plain => {
		op => '<~>', index => 'USING ivfflat (v bit_hamming_ops) WITH (lists = 60)', type => "bit($dims)",
		value => "binary_quantize(v)::bit($dims)",
		query => "(SELECT binary_quantize(v)::bit($dims) FROM base WHERE id = %d)"
	});
my @running;
foreach my $t (sort keys %tables)
{
	my $f = $tables{$t};
	my $query = sprintf($f->{query}, 17);
	my $insert = "INSERT INTO $t SELECT nextval('ids'), $f->{value} FROM base WHERE id BETWEEN r AND r + 39";

	# from nothing, so that there is much to split; rows that are in no index, so that
	# 64 kB have no room for a bit for each
	$node->safe_psql('postgres', "CREATE TABLE $t (id int, v $f->{type}); SET client_min_messages = warning; "
		  . "CREATE INDEX ${t}_idx ON $t $f->{index};"
		  . "INSERT INTO $t SELECT 0 FROM generate_series(1, 160000)");
	$insert =~ s/\br\b/:r/g;
	push @running, background_pgbench($node, "\\set r random(1, 3960)\n$insert;\n", clients => 3, name => "insert_$t");
	# rolled back, too
	push @running, background_pgbench($node, "\\set r random(1, 3960)\nBEGIN;\n$insert;\nROLLBACK;\n\\sleep 20 ms\n",
		clients => 1, name => "rollback_$t");
	push @running, background_pgbench($node,
		"DELETE FROM $t WHERE id IN (SELECT id FROM $t WHERE v IS NOT NULL ORDER BY random() "
		  . "LIMIT 100);\n\\sleep 20 ms\n", clients => 1, name => "delete_$t");
	foreach my $memory ('4MB', '64kB')
	{
		push @running, background_pgbench($node,
			"BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT look('$t', '$f->{op}', \$\$$query\$\$, "
			  . "'$memory');\nCOMMIT;\n", clients => 1, name => "look_${t}_$memory");
	}
	push @running, background_pgbench($node, "VACUUM (INDEX_CLEANUP ON) $t;\n\\sleep 30 ms\n", clients => 1,
		name => "vacuum_$t");
	push @running, background_pgbench($node, "SELECT quiver_check('${t}_idx');\n\\sleep 50 ms\n", clients => 1,
		name => "check_$t");
	select(undef, undef, undef, $seconds / 2);
	foreach my $bg (splice @running)
	{
		unlike(stop_background($bg), qr/ERROR|FATAL|aborted/, "$t: no client had an error");
	}

	# what they had begun may go on for a while
	wait_until_true($node, "SELECT count(*) = 0 FROM pg_stat_activity "
		  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
		"$t: all have ended");
	is(sql_value($node, "SELECT count(*) FROM mismatch WHERE what = '$t' AND (different > 0 OR expected <> found)"), 0,
		"$t: every row once, whenever one looked")
	  or diag(sql_value($node, "SELECT * FROM mismatch WHERE what = '$t' AND (different > 0 OR expected <> found)"));
	cmp_ok(sql_value($node, "SELECT count(*) FROM mismatch WHERE what = '$t' AND expected > 100"), '>', 10,
		"$t: and one did: " . sql_value($node, "SELECT count(*) || ' times, at ' || max(expected) || ' rows at most' "
			  . "FROM mismatch WHERE what = '$t'"));
	if ($t eq 'coded')
	{
		cmp_ok((index_facts($node, "${t}_idx", 'lists'))[0], '>', 8, "$t: lists were split");
	}
	$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) $t");
	my $rows = sql_value($node, "SELECT count(*) FROM $t WHERE v IS NOT NULL");
	check_ok($node, "${t}_idx", $rows, "$t, after all");
	is((index_facts($node, "${t}_idx", 'lost_pages'))[0], 0, "$t, after all: no page is lost");
}
unlike(slurp_file($node->logfile), qr/ERROR:  (?!canceling)/, 'no error in the log');

# One long list that VACUUM writes anew while others wait to add to it: an insert that
# waited must not add to the pages that are freed.
$node->safe_psql('postgres',
	"CREATE TABLE one (id int, v vector($dims)) WITH (autovacuum_enabled = false); SET client_min_messages = warning;"
	  . "CREATE INDEX one_idx ON one USING ivfflat (v vector_l2_ops) WITH (lists = 1);"
	  . "INSERT INTO one SELECT i, b.v FROM base b, generate_series(1, 10) i");
@running = map { background_pgbench($node,
		"\\set r random(1, 3960)\nINSERT INTO one SELECT 100, v FROM base WHERE id = :r;\n", clients => 1,
		name => "one_$_") } (1 .. 6);
foreach (1 .. 8)
{
	$node->safe_psql('postgres', 'DELETE FROM one WHERE random() < 0.4');
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) one');
	$node->safe_psql('postgres', 'INSERT INTO one SELECT 1, b.v FROM base b, generate_series(1, 5) i');
}
writes_ok($node, $_, 'count(*) > 0 FROM one WHERE id = 100', 'inserts beside compactions') foreach (@running);
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) one');
check_ok($node, 'one_idx', sql_value($node, 'SELECT count(*) FROM one'), 'inserts that waited for a compaction');

clean_log_ok($node);
$node->stop;
done_testing();
