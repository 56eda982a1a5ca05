# Few, many and odd numbers of dimensions; wrong ones; options out of range.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('dimensions', conf => "maintenance_work_mem = '256MB'\n");

foreach my $case ([ 1, 400 ], [ 2, 400 ], [ 3, 400 ], [ 15, 400 ], [ 17, 400 ], [ 255, 300 ], [ 2000, 150 ],
	[ 2001, 150 ], [ 4000, 100 ])
{
	my ($dims, $rows) = @$case;

	make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
	make_queries($node, table => 'queries', dims => $dims, n => 8);
	foreach my $m (grep { $_->{type} eq 'vector' } @METRICS)
	{
		# one coordinate has two directions only
		next if $dims == 1 && $m->{name} ne 'l2';
		$node->safe_psql('postgres', "CREATE INDEX t_idx ON t USING hnsw (v $m->{opclass})");
		make_rows($node, table => 't', dims => $dims, first => 1001, last => 1050, create => 0);
		recall_ok(0.95, "$dims dimensions, $m->{name}", node => $node, table => 't', index => 't_idx',
			op => $m->{op}, queries => 'queries', ef => 100);
		$node->safe_psql('postgres', 'DELETE FROM t WHERE id > 1000; VACUUM t');
		check_ok($node, 't_idx', $rows, "$dims dimensions, $m->{name}");
		is(sql_value($node, "SELECT dimensions FROM quiver_index_info('t_idx')"), $dims, "$dims dimensions: info");
		$node->safe_psql('postgres', 'DROP INDEX t_idx');
	}
	$node->safe_psql('postgres', 'DROP TABLE t, queries');
}

# the most; with the most neighbors, too
$node->safe_psql('postgres', 'CREATE TABLE t (id int, v vector(16000));'
	  . "INSERT INTO t SELECT i, (SELECT array_agg(sin(i * 7919.0 + j * 0.37 * (1 + i % 4)) ORDER BY j) "
	  . "FROM generate_series(1, 16000) j)::vector FROM generate_series(1, 60) i;"
	  . 'CREATE TABLE queries AS SELECT id, v FROM t WHERE id <= 5');
foreach my $options ('m = 16', 'm = 2, ef_construction = 4', 'm = 100, ef_construction = 200')
{
	foreach my $am (qw(hnsw quiver_graph))
	{
		my $of = "$am, 16000 dimensions, $options";

		$node->safe_psql('postgres', "CREATE INDEX t_idx ON t USING $am (v vector_l2_ops) WITH ($options);"
			  . 'INSERT INTO t SELECT id + 100, v FROM t WHERE id <= 5;'
			  . "INSERT INTO t SELECT 200, ARRAY(SELECT cos(j) FROM generate_series(1, 16000) j)::vector");
		recall_ok(0.95, $of, node => $node, table => 't', index => 't_idx', op => '<->', queries => 'queries',
			ef => 100);
		check_ok($node, 't_idx', 66, $of);
		$node->safe_psql('postgres', 'DELETE FROM t WHERE id > 100; VACUUM t');
		check_ok($node, 't_idx', 60, "$of, vacuumed");
		$node->safe_psql('postgres', 'DROP INDEX t_idx');
	}
}

fails_like($node, 'CREATE TABLE x (v vector(16001))', '22023', 'dimensions for type vector cannot exceed 16000',
	'16001 dimensions');
fails_like($node, 'CREATE TABLE x (v vector(0))', '22023', 'dimensions for type vector must be at least 1',
	'no dimensions');
fails_like($node, "SELECT ARRAY(SELECT 1 FROM generate_series(1, 16001))::vector", '54000',
	'vector cannot have more than 16000 dimensions', 'a value of 16001 dimensions');

clean_log_ok($node);
$node->stop;
done_testing();
