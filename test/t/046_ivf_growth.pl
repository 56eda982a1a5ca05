# Lists that were split again and again, of an index made before its rows: they are coded
# as finely as those of a build, whatever the first list was like, since a split reads
# from the table what codes tell no more; and what a split may find there.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_growth');
my ($dims, $rows) = (64, 6000);

# 40 clusters, 50 times as far from each other as rows are within one
$node->safe_psql('postgres', qq{
CREATE FUNCTION point(i int) RETURNS float4[] LANGUAGE sql IMMUTABLE AS \$\$
	SELECT array_agg((100 * qt_uniform(i % 40 * 1000 + j, 7) + 2 * qt_uniform(i * 1000 + j, 8))::float4 ORDER BY j)
	FROM generate_series(1, $dims) j \$\$;
CREATE TABLE source AS SELECT i AS id, point(i)::vector($dims) AS v FROM generate_series(1, $rows) i;
CREATE TABLE queries AS SELECT id, v FROM source WHERE id <= 40});

# Recall after growing from nothing, in statements of 50 and of 3,000 rows.
sub grown
{
	my (%a) = @_;

	$node->safe_psql('postgres', "CREATE TABLE grown (id int, v vector($dims)); $a{storage}"
		  . "CREATE INDEX grown_idx ON grown USING quiver_ivf ($a{column}) WITH (bits = $a{bits});"
		  . join('',
			map { "INSERT INTO grown SELECT * FROM source WHERE id > $_ * 50 AND id <= ($_ + 1) * 50;" } 0 .. 59)
		  . "INSERT INTO grown SELECT * FROM source WHERE id > 3000;");
	recall_ok(0.95, "$a{what}, $a{bits} bits", node => $node, table => 'grown', index => 'grown_idx',
		queries => $a{queries} // 'queries', op => '<->', column => $a{recall_column} // 'v');
	check_ok($node, 'grown_idx', $rows, "$a{what}, $a{bits} bits");
	my ($lists) = index_facts($node, 'grown_idx', 'lists');
	cmp_ok($lists, '>', 20, "$a{what}, $a{bits} bits: $lists lists");
	$node->safe_psql('postgres', 'DROP TABLE grown');
	return;
}

$node->safe_psql('postgres', "CREATE TABLE half_queries AS SELECT id, v::halfvec($dims) AS v FROM queries");
grown(what => 'a column', column => 'v', bits => $_, storage => '') foreach (8, 4, 2);
grown(what => 'an expression', column => "(v::halfvec($dims)) halfvec_l2_ops", bits => 4, storage => '',
	queries => 'half_queries', recall_column => "v::halfvec($dims)");

# Expressions whose functions others than superusers write: rows of others are not shown to
# them, since the one who inserts chooses the search_path. Functions in SQL are inlined.
$node->safe_psql('postgres', qq{
CREATE ROLE owner; CREATE ROLE guest; CREATE SCHEMA app AUTHORIZATION owner; GRANT USAGE ON SCHEMA app TO guest;
CREATE SCHEMA spy AUTHORIZATION guest;
SET ROLE owner;
CREATE FUNCTION app.procedural(doc text) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS \$\$
	BEGIN RETURN point(length(btrim(doc)))::vector($dims); END \$\$;
CREATE FUNCTION app.inlined(doc text) RETURNS vector LANGUAGE sql IMMUTABLE AS
	\$\$ SELECT public.array_to_vector(array_fill(length(btrim(doc))::float4, ARRAY[$dims]), $dims, false) \$\$;
SET ROLE guest;
CREATE FUNCTION spy.btrim(doc text) RETURNS text LANGUAGE sql IMMUTABLE AS
	\$\$ SELECT CASE WHEN doc LIKE 'x%' THEN (doc::int)::text ELSE doc END \$\$});
foreach my $function (qw(procedural inlined))
{
	$node->safe_psql('postgres', qq{SET ROLE owner; CREATE TABLE app.docs (doc text);
		CREATE INDEX docs_idx ON app.docs USING quiver_ivf
			((app.$function(doc)::vector($dims)) vector_l2_ops) WITH (bits = 2);
		INSERT INTO app.docs SELECT repeat('x', i) FROM generate_series(1, 120) i;
		GRANT INSERT ON app.docs TO guest});
	my ($rc, $out, $err) = $node->psql('postgres', q{SET ROLE guest; SET search_path = spy, public, pg_catalog;
		INSERT INTO app.docs SELECT repeat('y', 1000 + i) FROM generate_series(1, 60) i});
	is("$rc $err", '0 ', "$function: an INSERT shows its own rows only");
	cmp_ok((index_facts($node, 'app.docs_idx', 'lists'))[0], '>', 1, "$function: ... and split the list");
	check_ok($node, 'app.docs_idx', 180, "$function: an expression of users");
	$node->safe_psql('postgres', 'DROP TABLE app.docs');
}

# Out-of-line values; rows that are deleted and whose values are gone; rows of others that have
# not committed, that did not, and that did since: a split takes them by their codes.
my $wide = 640;
$node->safe_psql('postgres', qq{
CREATE TABLE wide AS SELECT id,
	(SELECT array_agg(x) FROM generate_series(1, 10), unnest(v::real[]) x)::vector($wide) AS v
	FROM source WHERE id <= 3000;
CREATE TABLE gone (id int, v vector($wide));
ALTER TABLE gone ALTER v SET STORAGE EXTERNAL;
CREATE INDEX gone_idx ON gone USING quiver_ivf (v) WITH (bits = 2)});
my $toast = sql_value($node, "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'gone'");
my $other = new_session($node);
my $here = 0;
foreach my $round (0 .. 9)
{
	my $from = $round * 300;

	$node->safe_psql('postgres', "INSERT INTO gone SELECT * FROM wide WHERE id > $from AND id <= $from + 100;"
		  . "DELETE FROM gone WHERE id > $from AND id <= $from + 40");
	session_sql($other, 'BEGIN');
	session_sql($other, "INSERT INTO gone SELECT * FROM wide WHERE id > $from + 100 AND id <= $from + 200");
	session_sql($other, $round % 2 ? 'COMMIT' : 'ROLLBACK') if $round % 4 < 2;
	$node->safe_psql('postgres', "VACUUM $toast");
	$node->safe_psql('postgres', "INSERT INTO gone SELECT * FROM wide WHERE id > $from + 200 AND id <= $from + 300");
	session_sql($other, $round % 2 ? 'COMMIT' : 'ROLLBACK') if $round % 4 >= 2;
	$here += 60 + 100 + ($round % 2 ? 100 : 0);
}
end_session($other);
cmp_ok(sql_value($node, "SELECT pg_relation_size('$toast')"), '>', $here * $wide * 4, 'values are out of line');
is(sql_value($node, 'SELECT count(*) FROM gone'), $here, 'rows of the table');
check_ok($node, 'gone_idx', undef, 'rows gone or not committed');
my ($lists) = index_facts($node, 'gone_idx', 'lists');
cmp_ok($lists, '>', 8, "lists were split: $lists");
every_row_ok($here, 'rows gone or not committed', node => $node, table => 'gone', op => '<->', query => 1,
	queries => 'wide', set => 'SET quiver.iterative_scan = relaxed_order;');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) gone');
check_ok($node, 'gone_idx', $here, 'vacuumed');
$node->safe_psql('postgres', 'CREATE TABLE wide_queries AS SELECT * FROM wide WHERE id <= 40');
recall_ok(0.95, 'rows gone or not committed', node => $node, table => 'gone', index => 'gone_idx',
	queries => 'wide_queries', op => '<->');

clean_log_ok($node);
$node->stop;
done_testing();
