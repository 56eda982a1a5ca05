# VACUUM measures an index again when half of its rows came or went, also if there are as many as before, and
# no more often.

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

foreach my $am (qw(quiver_graph quiver_ivf))
{
	my %common = (node => $node, table => 't', index => 't_idx', queries => 'queries', op => '<#>',
		set => 'RESET hnsw.ef_search; RESET quiver.ef_search;');

	# whole clusters go, and others come
	$node->safe_psql('postgres', qq{
CREATE TABLE t (id int, v vector($dims));
INSERT INTO t SELECT id, v FROM source WHERE id % 100 < 70;
CREATE INDEX t_idx ON t USING $am (v vector_ip_ops);
DELETE FROM t WHERE id % 100 < 20});
	is(calibrates(), 0, "$am: not when two rows in seven went");
	# lists know their rows when VACUUM has removed some
	$node->safe_psql('postgres', q{
INSERT INTO t SELECT id, v FROM source WHERE id % 100 >= 70;
INSERT INTO t VALUES (-1, point(99));
DELETE FROM t WHERE id = -1});
	is(calibrates(), 1, "$am: when as many others came");
	recall_ok(0.94, "$am, other rows", %common);
	is(calibrates(), 0, "$am: not at once");

	# all rows are replaced, a tenth at a time
	my @calibrated;
	foreach my $tenth (0 .. 9)
	{
		$node->safe_psql('postgres', "UPDATE t SET v = point(id + 100000) WHERE id / 100 % 10 = $tenth");
		push @calibrated, calibrates();
	}
	is("@calibrated", '0 0 1 0 0 1 0 0 1 0', "$am: when half was replaced");
	recall_ok(0.94, "$am, all rows replaced", %common);
	check_ok($node, 't_idx', $rows * 8 / 10, $am);
	$node->safe_psql('postgres', 'DROP TABLE t');
}
clean_log_ok($node);
done_testing();
