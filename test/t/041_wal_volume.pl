# What an insert writes to the WAL: of a page that is new, what is on it.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('volume', conf => "full_page_writes = off\nautovacuum = off\n");
my %dims = (hnsw => 16, quiver_graph => 4, ivfflat => 16);	# of 4: a graph of whole values

foreach my $am (sort keys %dims)
{
	my ($table, $index) = ("t_$am", "i_$am");
	my $with = $am eq 'ivfflat' ? 'WITH (lists = 3)' : '';
	my $prefix = $am eq 'quiver_graph' ? 'quiver' : $am;
	my $opclass = $am eq 'quiver_graph' ? '' : 'vector_l2_ops';

	make_rows($node, table => $table, dims => $dims{$am}, first => 1, last => 1000);
	$node->safe_psql('postgres', "CREATE INDEX $index ON $table USING $am (v $opclass) $with");

	my $blocks = sql_value($node, "SELECT pg_relation_size('$index') / 8192");
	my ($most, $more) = split /\|/, sql_value($node, "
		CREATE TABLE written_$am (bytes numeric);
		DO \$\$
		DECLARE before pg_lsn;
		BEGIN
			FOR i IN 1001 .. 1400 LOOP
				before := pg_current_wal_insert_lsn();
				INSERT INTO $table SELECT i, 0, qt_vector(i, $dims{$am})::vector;
				INSERT INTO written_$am SELECT pg_current_wal_insert_lsn() - before;
			END LOOP;
		END \$\$;
		SELECT max(bytes), pg_relation_size('$index') / 8192 - $blocks FROM written_$am");

	cmp_ok($more, '>', 2, "$am: inserts took new pages");
	cmp_ok($most, '<', 8192, "$am: none wrote an empty page");
	check_ok($node, $index, 1400, $am);

	$node->stop('immediate');
	$node->start;
	check_ok($node, $index, 1400, "$am, after a crash");
	every_row_ok(1400, "$am, after a crash", node => $node, table => $table, index => $index, op => '<->',
		queries => $table, query => 7, set => "SET $prefix.iterative_scan = relaxed_order;");
}

# A row in posting lists, splits included: twice what a row is there, and little more.  Of
# 784 dimensions, as those that M43 measured (docs/design/measurements).  And in a graph, where
# it changes its neighbors: a node is 2.7 kB.
my ($lists_dims, $built, $grown) = (784, 400, 2400);
make_rows($node, table => 'source', dims => $lists_dims, first => 1, last => $grown, clusters => 200);

# What rows of a table write that come one by one.
sub written
{
	my ($table) = @_;

	return sql_value($node, "
		DO \$\$
		DECLARE before pg_lsn := pg_current_wal_insert_lsn();
		BEGIN
			FOR i IN @{[ $built + 1 ]} .. $grown LOOP
				INSERT INTO $table SELECT * FROM source WHERE id = i;
			END LOOP;
			CREATE TABLE written_$table AS SELECT pg_current_wal_insert_lsn() - before AS bytes;
		END \$\$;
		SELECT bytes FROM written_$table") / ($grown - $built);
}

$node->safe_psql('postgres', "
	CREATE INDEX ON source (id);
	CREATE TABLE bare AS SELECT * FROM source WHERE id <= $built;
	CREATE TABLE listed AS TABLE bare;
	CREATE INDEX listed_idx ON listed USING quiver_ivf (v vector_l2_ops);
	CREATE TABLE linked AS TABLE bare;
	CREATE INDEX linked_idx ON linked USING quiver_graph (v vector_l2_ops)");
my ($lists) = index_facts($node, 'listed_idx', 'lists');
my $bare = written('bare');
my $bytes = written('listed') - $bare;
my $graph_bytes = written('linked') - $bare;
my ($more_lists) = index_facts($node, 'listed_idx', 'lists');

cmp_ok($more_lists, '>', $lists, "lists were split, $lists are $more_lists");
cmp_ok($bytes, '<', 2500, sprintf('a row of %d dimensions in posting lists writes %.0f bytes', $lists_dims, $bytes));
cmp_ok($bytes, '>', $lists_dims, 'and its code');
check_ok($node, 'listed_idx', $grown, 'posting lists');
cmp_ok($graph_bytes, '<', 4200, sprintf('a row of %d dimensions in a graph writes %.0f bytes', $lists_dims,
		$graph_bytes));
cmp_ok($graph_bytes, '>', 2 * $lists_dims, 'and its code, and those of its neighbors');
check_ok($node, 'linked_idx', $grown, 'graph');

$node->stop('immediate');
$node->start;
check_ok($node, 'listed_idx', $grown, 'posting lists, after a crash');
check_ok($node, 'linked_idx', $grown, 'graph, after a crash');

done_testing();
