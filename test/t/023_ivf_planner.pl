# The planner takes posting lists where that pays, without enable_seqscan = off, and
# only there.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_planner', conf => "fsync = off\n");
my $dims = 32;
my %query = (
	vector => "qt_vector(-1, $dims)::vector", halfvec => "qt_vector(-1, $dims)::halfvec",
	bit => "binary_quantize(qt_vector(-1, $dims)::vector)::bit($dims)");

make_rows($node, table => 'base', dims => $dims, first => 1, last => 10000);
$node->safe_psql('postgres', "CREATE TABLE t_vector AS TABLE base; "
	  . "CREATE TABLE t_halfvec AS SELECT id, category, v::halfvec($dims) FROM base;"
	  . "CREATE TABLE t_bit AS SELECT id, category, binary_quantize(v)::bit($dims) AS v FROM base;"
	  . 'CREATE TABLE tiny AS SELECT * FROM base WHERE id <= 40');
foreach my $type (keys %query)
{
	$node->safe_psql('postgres', "CREATE INDEX t_${type}_id ON t_$type (id); "
		  . "CREATE INDEX t_${type}_category ON t_$type (category)");
}

# No plan has that index.
sub not_by_index
{
	my ($sql, $index, $name) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $sql");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return unlike($plan, qr/\Q$index\E/, $name);
}

my @cases = (map {
		my $m = $_;
		($m->{name} eq 'l1' ? () : ([ 'quiver_ivf', @$m{qw(type op opclass)}, '' ],
				[ 'ivfflat', @$m{qw(type op opclass)}, 'WITH (lists = 100)' ]))
	} grep { $_->{name} ne 'cosine' || $_->{type} eq 'vector' } @METRICS);
push @cases, [ 'ivfflat', 'bit', '<~>', 'bit_hamming_ops', 'WITH (lists = 100)' ];

foreach my $case (@cases)
{
	my ($am, $type, $op, $opclass, $with) = @$case;
	my $name = "$am, $opclass";
	my $t = "t_$type";
	my $order = "ORDER BY v $op $query{$type}";

	$node->safe_psql('postgres', "CREATE INDEX t_idx ON $t USING $am (v $opclass) $with; ANALYZE $t");
	uses_index_ok($node, "SELECT id FROM $t $order LIMIT 10", 't_idx', "$name: 10 of 10000 rows");
	uses_index_ok($node, "SELECT id FROM $t $order LIMIT 1", 't_idx', "$name: 1 of 10000 rows");
	uses_index_ok($node, "SELECT id FROM $t WHERE category < 500 $order LIMIT 5", 't_idx',
		"$name: under a wide filter");
	not_by_index("SELECT id FROM $t WHERE id BETWEEN 5 AND 30 $order LIMIT 5", 't_idx',
		"$name: few rows of a range are sorted");
	not_by_index("SELECT id FROM $t WHERE category = 7 $order LIMIT 5", 't_idx',
		"$name: few rows of a category are sorted");
	not_by_index("SELECT id FROM $t WHERE id = 7 $order LIMIT 5", 't_idx', "$name: one row is not looked for");
	like(sql_value($node, "EXPLAIN (COSTS OFF) SELECT id FROM $t WHERE category = 7 $order LIMIT 5"),
		qr/Sort.*t_${type}_category/s, "$name: but by the other index");
	# distances of bit cost next to nothing, and so does reading all lists
	not_by_index("SELECT id FROM $t $order", 't_idx', "$name: not for all rows") if $type ne 'bit';
	not_by_index("SELECT id FROM $t $order DESC LIMIT 10", 't_idx', "$name: not for descending order");
	not_by_index("SELECT count(*) FROM $t", 't_idx', "$name: not without ORDER BY");
	not_by_index("SELECT id FROM $t ORDER BY v $_ $query{$type} LIMIT 10", 't_idx', "$name: not for $_")
	  foreach (grep { $_ ne $op } $type eq 'bit' ? ('<%>') : ('<->', '<#>', '<=>', '<+>'));
	$node->safe_psql('postgres', 'DROP INDEX t_idx');
}

foreach my $am (qw(quiver_ivf ivfflat))
{
	my $order = "ORDER BY v <-> $query{vector}";
	my $warn = 'SET client_min_messages = warning;';

	$node->safe_psql('postgres', "$warn CREATE INDEX t_idx ON t_vector USING $am (v vector_l2_ops); "
		  . "CREATE INDEX tiny_idx ON tiny USING $am (v vector_l2_ops); ANALYZE tiny");
	not_by_index("SELECT id FROM tiny $order LIMIT 10", 'tiny_idx', "$am: not for 40 rows");

	# prepared, lateral, a parameter of another kind
	foreach my $mode (qw(force_generic_plan force_custom_plan))
	{
		like(sql_value($node, "SET plan_cache_mode = $mode; "
				  . "PREPARE p(vector) AS SELECT id FROM t_vector ORDER BY v <-> \$1 LIMIT 10;"
				  . "EXPLAIN EXECUTE p($query{vector})"), qr/Index Scan using t_idx/, "$am: prepared, $mode");
	}
	uses_index_ok($node, 'SELECT * FROM tiny q, LATERAL (SELECT id FROM t_vector t ORDER BY t.v <-> q.v LIMIT 3) r',
		't_idx', "$am: lateral");
	uses_index_ok($node, 'SELECT id FROM t_vector ORDER BY v <-> (SELECT v FROM tiny WHERE id = 7) LIMIT 3', 't_idx',
		"$am: sub-select");
	$node->safe_psql('postgres', 'DROP INDEX t_idx, tiny_idx');

	# an index that was empty when it was made: without VACUUM, with and without ANALYZE
	$node->safe_psql('postgres', "$warn CREATE TABLE grown (LIKE base); "
		  . "CREATE INDEX grown_idx ON grown USING $am (v vector_l2_ops);"
		  . 'CREATE INDEX grown_category ON grown (category); INSERT INTO grown TABLE base');
	foreach my $analyze ('', 'ANALYZE grown', 'VACUUM grown')
	{
		$node->safe_psql('postgres', $analyze) if $analyze;
		my $name = "$am, grown by inserts, " . ($analyze || 'no ANALYZE');

		uses_index_ok($node, "SELECT id FROM grown $order LIMIT 10", 'grown_idx', $name);
		not_by_index("SELECT id FROM grown WHERE category = 7 $order LIMIT 5", 'grown_idx',
			"$name: few rows are sorted") if $analyze;
		my ($cost) = sql_value($node, "EXPLAIN SELECT id FROM grown $order "
			  . "LIMIT 10") =~ /Custom Scan \(Quiver Top-K Scan\) on grown  \(cost=([0-9]+\.[0-9]+)\./;
		my ($built) = sql_value($node, "BEGIN; REINDEX INDEX grown_idx; EXPLAIN SELECT id FROM grown $order LIMIT 10; "
			  . "ROLLBACK") =~ /Custom Scan \(Quiver Top-K Scan\) on grown  \(cost=([0-9]+\.[0-9]+)\./;
		cmp_ok($cost, '>', $built / 5, "$name: a search costs $cost, built anew $built");
		cmp_ok($cost, '<', $built * 5, "$name: and no more than that");
	}
	$node->safe_psql('postgres', 'DROP TABLE grown');
}

# more lists cost more
$node->safe_psql('postgres', 'CREATE INDEX t_idx ON t_vector USING quiver_ivf (v)');
foreach my $setting ([ 'quiver.probes', 1, 10, 90 ], [ 'quiver.recall', 0.5, 0.99, 1 ])
{
	my ($name, @values) = @$setting;
	my @cost;

	foreach (@values)
	{
		push @cost, sql_value($node, "SET enable_seqscan = off; SET $name = $_; "
			  . "EXPLAIN SELECT id FROM t_vector ORDER BY v <-> $query{vector} LIMIT 10") =~
		  /Custom Scan \(Quiver Top-K Scan\) on t_vector  \(cost=([0-9]+\.[0-9]+)\./;
	}
	cmp_ok($cost[0], '<', $cost[1], "$name $values[1] costs more than $values[0]");
	cmp_ok($cost[1], '<', $cost[2], "$name $values[2] costs more than $values[1]");
}

clean_log_ok($node);
$node->stop;
done_testing();
