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
done_testing();
