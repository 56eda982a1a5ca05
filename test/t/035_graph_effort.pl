# How much a search of a graph looks at: quiver.recall as the index has measured it, on
# data with and without structure, built and grown.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('graph_effort');

sub ef_of
{
	my ($index, $recall) = @_;

	return sql_value($node, "SET quiver.recall = $recall; "
		  . "SELECT ef_search FROM quiver_indexes WHERE index_name = '$index'");
}

# clusters; and noise, of which each row is nearly as far as any other
make_rows($node, table => 'clusters', dims => 32, first => 1, last => 12000);
make_queries($node, table => 'clusters_q', dims => 32);
$node->safe_psql('postgres', q{
CREATE FUNCTION noise(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS
	$$ SELECT array_to_vector(ARRAY(SELECT qt_uniform(i * 100 + j, 1) FROM generate_series(1, 64) j), 64, false) $$;
CREATE TABLE noise (id int, category int, v vector(64)) WITH (autovacuum_enabled = false);
INSERT INTO noise SELECT i, i % 1000, noise(i) FROM generate_series(1, 6000) i;
CREATE TABLE noise_q AS SELECT i AS id, noise(-i)::vector(64) AS v FROM generate_series(1, 40) i;
CREATE TABLE grown (LIKE noise) WITH (autovacuum_enabled = false);
CREATE INDEX grown_idx ON grown USING quiver_graph (v vector_l2_ops);
INSERT INTO grown TABLE noise;
});
my %of;
foreach my $table ('clusters', 'noise')
{
	$node->safe_psql('postgres', "CREATE INDEX ${table}_idx ON $table USING quiver_graph (v vector_l2_ops)");
	$of{$table} = { node => $node, op => '<->', queries => "${table}_q", table => $table, index => "${table}_idx" };
	my @efs = map { ef_of("${table}_idx", $_) } 0.9, 0.95, 0.99;

	cmp_ok($efs[0], '<=', $efs[1], "$table: .95 takes no less than .9");
	cmp_ok($efs[1], '<=', $efs[2], "$table: .99 takes no less than .95");
	recall_ok($_ - 0.02, "$table: recall $_ is kept", %{ $of{$table} },
		set => "SET quiver.ef_search = 0; SET quiver.recall = $_;") foreach 0.9, 0.95, 0.99;
}
cmp_ok(ef_of('noise_idx', 0.95), '>', 3 * ef_of('clusters_idx', 0.95), 'noise takes more');
is(sql_value($node, 'SET quiver.ef_search = 33; SET quiver.recall = 0.99; '
		  . q{SELECT ef_search FROM quiver_indexes WHERE index_name = 'noise_idx'}),
	33, 'ef_search overrides');

# rows in a cone, and queries from another one, as questions are for a model of texts
$node->safe_psql('postgres', q{
CREATE FUNCTION even(k int, seed int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	$$ SELECT (qt_uniform(k, seed) - 0.5) * sqrt(12::float8) $$;
CREATE FUNCTION cone(i int, mine float8, other float8) RETURNS vector LANGUAGE sql IMMUTABLE AS
	$$ SELECT array_agg(mine * (x + 0.6 * even(i * 100 + j, 1) + 1.5 * even(j, 2))
			+ other * (3 * even(j, 3) + even(i * 100 + j, 4)) ORDER BY j)::vector
		FROM (SELECT j, sum(even(i * 100 + l, 5) * even(l * 100 + j, 6)) AS x
			FROM generate_series(1, 64) j, generate_series(1, 8) l GROUP BY j) y $$;
CREATE TABLE cone AS SELECT i AS id, cone(i, 1, 0)::vector(64) AS v FROM generate_series(1, 8000) i;
CREATE TABLE cone_q AS SELECT i AS id, cone(-i, 0.5, 1)::vector(64) AS v FROM generate_series(1, 40) i;
CREATE INDEX cone_idx ON cone USING quiver_graph (v vector_cosine_ops);
});
recall_ok(0.93, 'queries unlike the rows', node => $node, table => 'cone', index => 'cone_idx', op => '<=>',
	queries => 'cone_q', set => 'SET quiver.ef_search = 0;');

# grown: a rule of thumb, until VACUUM measures
is(ef_of('grown_idx', 0.95), 40, 'grown from nothing: as by default');
$node->safe_psql('postgres', 'VACUUM grown');
cmp_ok(ef_of('grown_idx', 0.95), '>', 1.2 * 40, 'VACUUM has measured');
recall_ok(0.93, 'grown, vacuumed: recall .95 is kept', %{ $of{noise} }, table => 'grown', index => 'grown_idx',
	set => 'SET quiver.ef_search = 0; SET quiver.recall = 0.95;');
my $before = ef_of('grown_idx', 0.95);
$node->safe_psql('postgres', 'DELETE FROM grown WHERE id > 2000; VACUUM grown');
cmp_ok(ef_of('grown_idx', 0.95), '<', $before, 'a third of the rows takes less');

# a build by one that is canceled in between leaves nothing half measured
fails_like($node, "SET statement_timeout = '150ms'; REINDEX INDEX noise_idx", '57014', 'canceling statement',
	'canceled');
recall_ok(0.93, 'after that', %{ $of{noise} }, set => 'SET quiver.ef_search = 0; SET quiver.recall = 0.95;');

clean_log_ok($node);
done_testing();
