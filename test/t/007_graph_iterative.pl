# Iterative scans: k rows under a filter; of plain index scans strict and relaxed order, and
# limits.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('iterative');
my ($dims, $rows) = (16, 10000);

# category is id % 1000
make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims, n => 20);
$node->safe_psql('postgres', 'CREATE TABLE h AS TABLE t;'
	  . 'CREATE INDEX t_idx ON t USING quiver_graph (v);'
	  . 'CREATE INDEX h_idx ON h USING hnsw (v vector_l2_ops); ANALYZE');

my %t = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx');
my %h = (node => $node, op => '<->', queries => 'queries', table => 'h', index => 'h_idx');

# 10 %, 1 %; the default of quiver_graph is strict order
recall_ok(0.95, 'quiver_graph, filter of 10 %', %t, where => 'category < 100');
recall_ok(0.95, 'quiver_graph, filter of 1 %', %t, where => 'category < 10');
recall_ok(0.95, "hnsw, not iterative, filter of $_ categories", %h, where => "category < $_") foreach 100, 10;
foreach my $order (qw(strict_order relaxed_order))
{
	my $set = "SET hnsw.iterative_scan = $order;";

	foreach my $topk (qw(on off))
	{
		recall_ok(0.95, "hnsw, $order, topk_scan $topk, filter of $_ categories", %h, where => "category < $_",
			set => "$set SET quiver.topk_scan = $topk;") foreach 100, 10;
	}
}

my $plain = 'SET enable_seqscan = off; SET enable_sort = off; SET quiver.topk_scan = off;';

# The rows as the index returns them: how many, in which order, each once?
sub rows_of
{
	my ($table, $where, $limit, $set) = @_;
	my @d = split /\n/, sql_value($node, "$plain $set SELECT id || ' ' || (v <-> (SELECT v FROM queries WHERE id = 3)) "
		  . "FROM $table WHERE $where ORDER BY v <-> (SELECT v FROM queries WHERE id = 3) LIMIT $limit");
	my ($inversions, $last, %seen) = (0, -1);

	foreach (@d)
	{
		my ($id, $d) = split / /;
		$inversions++ if $d < $last;
		$last = $d;
		$seen{$id}++;
	}
	return { count => scalar(@d), inversions => $inversions, distinct => scalar(keys %seen) };
}

my $off = rows_of('h', 'category < 10', 10, 'SET hnsw.iterative_scan = off;');
cmp_ok($off->{count}, '<', 10, 'hnsw does not iterate by default');
$off = rows_of('t', 'category < 10', 10, 'SET quiver.iterative_scan = off;');
cmp_ok($off->{count}, '<', 10, 'quiver_graph does not when told so');

my $more = 'SET hnsw.max_scan_tuples = 1000000; SET quiver.max_scan_tuples = 1000000;';
foreach my $case (
	[ 't', '' ],
	[ 't', 'SET quiver.iterative_scan = relaxed_order;' ],
	[ 'h', 'SET hnsw.iterative_scan = strict_order;' ],
	[ 'h', 'SET hnsw.iterative_scan = relaxed_order;' ])
{
	my ($table, $set) = @$case;
	my $name = "$table, " . ($set || 'default');
	my $r = rows_of($table, 'true', 1000, $more . $set);

	is($r->{distinct}, $r->{count}, "$name: no row twice");
	is($r->{inversions}, 0, "$name: ascending") unless $set =~ /relaxed/;
	# strict order drops rows that come too late
	cmp_ok($r->{count}, '>=', 1000, "$name: LIMIT rows far beyond ef_search");
	$r = rows_of($table, 'true', $rows + 10, $more . $set);
	cmp_ok($r->{count}, '>=', $rows * ($set =~ /relaxed/ ? 1 : 0.97), "$name: (nearly) the whole table ($r->{count})");
	is($r->{distinct}, $r->{count}, "$name: no row twice in the whole table");
	is($r->{inversions}, 0, "$name: ascending over the whole table") unless $set =~ /relaxed/;
}

# max_scan_tuples
my $relaxed = 'SET hnsw.iterative_scan = relaxed_order; SET hnsw.ef_search = 40;';
my $few = rows_of('h', 'true', $rows, $relaxed . 'SET hnsw.max_scan_tuples = 100;');
cmp_ok($few->{count}, '>=', 100, 'max_scan_tuples 100: so many rows at least');
cmp_ok($few->{count}, '<=', 250, "max_scan_tuples 100: the search stops soon after ($few->{count})");
my $many = rows_of('h', 'true', $rows, $relaxed . 'SET hnsw.max_scan_tuples = 2000;');
cmp_ok($many->{count}, '>=', 2000, 'max_scan_tuples 2000: more rows');
cmp_ok($many->{count}, '<=', 2400, "max_scan_tuples 2000: and not many more ($many->{count})");

# memory: a small work_mem ends the search early, a multiplier lets it go on
my $tight = rows_of('h', 'true', $rows, $more . $relaxed . "SET work_mem = '64kB';");
cmp_ok($tight->{count}, '<', $rows / 2, "work_mem ends the search ($tight->{count})");
my $wide = rows_of('h', 'true', $rows, $more . $relaxed . "SET work_mem = '64kB'; SET hnsw.scan_mem_multiplier = 100;");
cmp_ok($wide->{count}, '>', $tight->{count}, "scan_mem_multiplier lets it go on ($wide->{count})");

# inner product and cosine as well
foreach my $m (grep { $_->{type} eq 'vector' && $_->{name} ne 'l2' } @METRICS)
{
	$node->safe_psql('postgres', "DROP INDEX t_idx; CREATE INDEX t_idx ON t USING quiver_graph (v $m->{opclass})");
	recall_ok(0.90, "quiver_graph, $m->{name}, filter of 1 %", %t, op => $m->{op}, where => 'category < 10');
}

check_ok($node, 't_idx', $rows);
check_ok($node, 'h_idx', $rows);
clean_log_ok($node);
$node->stop;
done_testing();
