# VACUUM measures an index again when half of its rows came or went, or a tenth of those of lists, also if there
# are as many as before, and no more often.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('turnover');
my ($dims, $rows) = (32, 12000);

# Rows of 100 clusters. Those from the 70th on are longer, and have another mean.
$node->safe_psql('postgres', qq{
CREATE FUNCTION point(i int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	\$\$ SELECT array_agg((CASE WHEN i % 100 >= 70 THEN 3 ELSE 0 END
		+ 4 * (qt_uniform(i % 100 * 1000 + j, 7) + qt_uniform(i % 100 * 1000 + j, 8) - 1)
		+ 1.5 * (qt_uniform(i::bigint * 1000 + j, 9) + qt_uniform(i::bigint * 1000 + j, 10) - 1))::float4
		ORDER BY j) FROM generate_series(1, $dims) j \$\$;
CREATE TABLE source AS SELECT i AS id, point(i) AS v FROM generate_series(1, $rows) i;
CREATE TABLE queries AS SELECT i AS id, point(i)::vector($dims) AS v
	FROM generate_series($rows + 20, $rows + 99) i});

# Runs VACUUM, and returns whether it has measured the index.
sub calibrates
{
	my ($rc, $out, $err) = $node->psql('postgres', 'SET client_min_messages = debug1; VACUUM (INDEX_CLEANUP on) t');
	die $err if $rc != 0;
	return $err =~ /so (pools|probes) are of/ ? 1 : 0;
}

# Each case: VACUUMs that measure when two rows in seven went; parts in which all rows are replaced, one at a time,
# and the VACUUMs that measure then.
foreach my $case (
	[ 'quiver_graph', 0, 10, '0 0 1 0 0 1 0 0 1 0' ],
	[ 'quiver_ivf', 1, 30, join(' ', ('0 1') x 15) ])
{
	my ($am, $when_gone, $parts, $when_replaced) = @$case;
	my %common = (node => $node, table => 't', index => 't_idx', queries => 'queries', op => '<#>',
		set => 'RESET hnsw.ef_search; RESET quiver.ef_search;');

	# whole clusters go, and others come
	$node->safe_psql('postgres', qq{
CREATE TABLE t (id int, v vector($dims));
INSERT INTO t SELECT id, v FROM source WHERE id % 100 < 70;
CREATE INDEX t_idx ON t USING $am (v vector_ip_ops);
DELETE FROM t WHERE id % 100 < 20});
	is(calibrates(), $when_gone, "$am: when two rows in seven went");
	$node->safe_psql('postgres', 'INSERT INTO t SELECT id, v FROM source WHERE id % 100 >= 70');
	is(calibrates(), 1, "$am: when as many others came");
	recall_ok(0.94, "$am, other rows", %common);
	is(calibrates(), 0, "$am: not at once");

	my @calibrated;
	foreach my $part (0 .. $parts - 1)
	{
		$node->safe_psql('postgres', "UPDATE t SET v = point(id + 100000) WHERE id / 100 % $parts = $part");
		push @calibrated, calibrates();
	}
	is("@calibrated", $when_replaced, "$am: when rows were replaced");
	recall_ok(0.94, "$am, all rows replaced", %common);
	check_ok($node, 't_idx', $rows * 8 / 10, $am);
	$node->safe_psql('postgres', 'DROP TABLE t');
}

# Lists that only grow, by rows that need far more of them.  Nobody deletes, so VACUUM has the table's rows alone:
# it measures as soon where the index has few of these, and no more often.
sub grow
{
	my ($what, $column, $where, $others) = @_;

	$node->safe_psql('postgres', qq{
CREATE TABLE t (id int, v vector($dims));
INSERT INTO t SELECT id, v FROM source WHERE id % 100 < 90;
INSERT INTO t SELECT -i, $column FROM generate_series(1, $others) i;
CREATE INDEX t_idx ON t USING quiver_ivf (v) $where});
	is(calibrates(), 0, "$what: a build has measured");
	$node->safe_psql('postgres', qq{
INSERT INTO t SELECT $rows + i, far(i) FROM generate_series(1, 600) i;
INSERT INTO t SELECT -$others - i, $column FROM generate_series(1, $others / 14) i});
	is(calibrates(), 0, "$what: not with an eighteenth more rows");
	$node->safe_psql('postgres', qq{
INSERT INTO t SELECT $rows + i, far(i) FROM generate_series(601, 4500) i;
INSERT INTO t SELECT -2 * $others - i, $column FROM generate_series(1, $others / 3) i});
	like(sql_value($node, q{SELECT advice FROM quiver_indexes WHERE index_name = 't_idx'}),
		qr/^VACUUM: how many lists/, "$what: advice");
	is(calibrates(), 1, "$what: with four tenths more");
	is(sql_value($node, q{SELECT advice IS NULL FROM quiver_indexes WHERE index_name = 't_idx'}), 't', "$what: done");
	recall_ok(0.9, $what, node => $node, table => 't', index => 't_idx', queries => 'far_queries', op => '<->',
		where => 'id >= 0');
	is(calibrates(), 0, "$what: not at once");
	# VACUUM counts what it has estimated
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 100 = 5');
	is(calibrates(), 0, "$what: not when few went");
	$node->safe_psql('postgres', 'DROP TABLE t');
	return;
}

$node->safe_psql('postgres', qq{
CREATE FUNCTION far(i int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	\$\$ SELECT array_agg((6 + 3 * (qt_uniform(i::bigint * 1000 + j, 9) + qt_uniform(i::bigint * 1000 + j, 10) - 1))
		::float4 ORDER BY j) FROM generate_series(1, $dims) j \$\$;
CREATE TABLE far_queries AS SELECT i AS id, far(100000 + i)::vector($dims) AS v FROM generate_series(1, 80) i});
grow('all rows', 'NULL', '', 0);
grow('a partial index', '(SELECT v FROM source LIMIT 1)', 'WHERE id >= 0', 30000);
grow('few rows with a value', 'NULL', '', 30000);

# Lists that VACUUM has emptied are no probes.  Queries are near rows that are gone.  With 400 lists the one-bit codes
# of centroids choose among them.
foreach my $case ([ 100, 2, 0.82 ], [ 400, 5, 0.8 ])
{
	my ($lists, $probes, $least) = @$case;
	my $common = sub { (node => $node, table => 't', index => 't_idx', queries => $_[0], op => '<->') };

	$node->safe_psql('postgres', qq{
CREATE TABLE t (id int, v vector($dims));
INSERT INTO t SELECT id, v FROM source WHERE id % 100 < 70;
CREATE INDEX t_idx ON t USING ivfflat (v) WITH (lists = $lists);
DELETE FROM t WHERE id % 100 >= 10;
VACUUM (INDEX_CLEANUP on) t;
CREATE TABLE gone_queries AS SELECT id, v FROM queries WHERE id % 100 BETWEEN 20 AND 69});
	is((index_facts($node, 't_idx', 'median_list'))[0], 0, "$lists lists: most are empty");
	recall_ok($least, "$lists lists, of rows that are gone", $common->('gone_queries'),
		set => "SET ivfflat.probes = $probes;");
	$node->safe_psql('postgres', 'INSERT INTO t SELECT id, v FROM source WHERE id % 100 BETWEEN 20 AND 69');
	cmp_ok((index_facts($node, 't_idx', 'median_list'))[0], '>', 0, "$lists lists: inserts fill them");
	recall_ok(0.9, "$lists lists, filled again", $common->('gone_queries'), set => 'SET ivfflat.probes = 20;');
	check_ok($node, 't_idx', $rows * 6 / 10, "$lists lists");
	$node->safe_psql('postgres', 'DROP TABLE t, gone_queries');
}
clean_log_ok($node);
done_testing();
