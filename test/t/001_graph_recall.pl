# Recall after a build, after inserts into an empty index and into a built one,
# for every metric, type and access method, and at every level of the kernels.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('recall');
my ($dims, $rows) = (24, 4000);
my %base;

foreach my $type (qw(vector halfvec))
{
	make_rows($node, table => "base_$type", type => $type, dims => $dims, first => 1, last => $rows);
	make_queries($node, table => "queries_$type", type => $type, dims => $dims);
}

foreach my $am (qw(hnsw quiver_graph))
{
	foreach my $m (@METRICS)
	{
		next unless grep { $_ eq $am } @{ $m->{am} // [qw(hnsw quiver_graph)] };
		my $what = "$am, $m->{type} $m->{name}";
		my %common = (node => $node, op => $m->{op}, queries => "queries_$m->{type}");

		# built at once
		$node->safe_psql('postgres',
			"CREATE TABLE b AS SELECT * FROM base_$m->{type};"
			  . "CREATE INDEX b_idx ON b USING $am (v $m->{opclass})");
		recall_ok(0.95, "$what, built, ef 40", %common, table => 'b', index => 'b_idx', ef => 40);
		recall_ok(0.99, "$what, built, ef 100", %common, table => 'b', index => 'b_idx', ef => 100);
		check_ok($node, 'b_idx', $rows, "$what, built");

		# and half as much again inserted
		make_rows($node, table => 'b', type => $m->{type}, dims => $dims,
			first => $rows + 1, last => $rows + $rows / 2, create => 0);
		recall_ok(0.95, "$what, built and inserted, ef 40", %common, table => 'b', index => 'b_idx', ef => 40);
		check_ok($node, 'b_idx', $rows * 1.5, "$what, built and inserted");

		# all inserted, by two commands of which the second finds a graph
		next if $m->{type} ne 'vector';
		$node->safe_psql('postgres',
			"CREATE TABLE e (LIKE b); CREATE INDEX e_idx ON e USING $am (v $m->{opclass});"
			  . "INSERT INTO e SELECT * FROM b WHERE id <= 100;"
			  . "INSERT INTO e SELECT * FROM b WHERE id > 100 AND id <= $rows");
		recall_ok(0.95, "$what, inserted, ef 40", %common, table => 'e', index => 'e_idx', ef => 40);
		recall_ok(0.99, "$what, inserted, ef 100", %common, table => 'e', index => 'e_idx', ef => 100);
		check_ok($node, 'e_idx', $rows, "$what, inserted");
	}
	continue
	{
		$node->safe_psql('postgres', 'DROP TABLE IF EXISTS b, e');
	}
}

# A row is found by its own vector, whatever the metric's idea of near is.
$node->safe_psql('postgres', 'CREATE INDEX base_idx ON base_vector USING hnsw (v vector_l2_ops)');
is( sql_value(
		$node, 'SET enable_seqscan = off; SELECT count(*) FROM base_vector a WHERE id % 20 = 0 AND id <> '
		  . '(SELECT id FROM base_vector b ORDER BY b.v <-> a.v, b.id LIMIT 1)'),
	0, 'every row is its own nearest neighbor');

# The same answers with every level of the kernels, whichever built the index.
my @levels = split /\n/, sql_value($node, 'SELECT unnest(quiver_simd_levels())');
ok((grep { $_ eq 'scalar' } @levels), 'there is a scalar level');
foreach my $built (@levels)
{
	$node->safe_psql('postgres',
		"SET quiver.simd_level = '$built'; REINDEX INDEX base_idx");
	check_ok($node, 'base_idx', $rows, "built by $built");
	foreach my $level (@levels)
	{
		is(sql_value($node, "SET quiver.simd_level = '$level'; SELECT quiver_simd_level()"),
			$level, "level $level is in use");
		recall_ok(0.95, "built by $built, searched by $level",
			node => $node, table => 'base_vector', index => 'base_idx', op => '<->',
			queries => 'queries_vector', set => "SET quiver.simd_level = '$level';");
	}
}
fails_like($node, "LOAD 'quiver'; SET quiver.simd_level = 'abacus'", '22023', 'invalid value for parameter',
	'an unknown level is refused');

# More candidates find no less.
my $last = 0;
foreach my $ef (10, 20, 40, 80, 200)
{
	my $recall = recall(node => $node, table => 'base_vector', index => 'base_idx', op => '<->',
		queries => 'queries_vector', ef => $ef);

	cmp_ok($recall, '>=', $last - 0.01, sprintf('ef_search %d: recall %.3f', $ef, $recall));
	$last = $recall;
}
cmp_ok($last, '>=', 0.995, 'ef_search 200 finds practically all');

# More rows than a cluster has: the index has measured how much deeper a search must go.  Of 100 searches
# up to 5 miss their whole cluster, which depends on the data.
$node->safe_psql('postgres', q{
	SELECT setseed(0.5);
	CREATE TABLE clusters AS
	WITH centers AS MATERIALIZED (
		SELECT c, ARRAY(SELECT sqrt(-2 * ln(1 - random())) * cos(6.2832 * random())
			FROM generate_series(1, 128) WHERE c > 0)::vector(128) AS v FROM generate_series(1, 600) c)
	SELECT i AS id, (v + ARRAY(SELECT sqrt(-2 * ln(1 - random())) * cos(6.2832 * random()) * 0.7
			FROM generate_series(1, 128) WHERE i > 0)::vector(128))::vector(128) AS v
	FROM generate_series(1, 12000) i JOIN centers ON c = 1 + i % 600;
	CREATE INDEX clusters_idx ON clusters USING quiver_graph (v vector_l2_ops);
});
foreach my $k (10, 20, 50, 100)
{
	my $recall = sql_value($node, "SELECT recall FROM quiver_recall('clusters_idx', k => $k, sample => 100)");

	cmp_ok($recall, '>=', 0.9, "clusters of 20 rows: the nearest $k");
}

clean_log_ok($node);
$node->stop;
done_testing();
