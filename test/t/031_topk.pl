# The top-k scan: random conditions, limits and offsets against an exact scan, by every way, and the
# same answer in every session, whatever it asked before.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use QuiverTopk;
use Test::More;

my $node = new_node('topk');
my ($dims, $rows, $clusters, $queries) = (24, 8000, 40, 30);

# category is id % 1000, place the cluster; half of the rows have no other
make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
make_queries($node, table => 'queries', dims => $dims, n => $queries, clusters => $clusters);
$node->safe_psql('postgres', "ALTER TABLE t ADD place int, ADD other int;"
	  . "UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters), other = nullif(id % 2, 0) * id % 50; VACUUM FULL t;"
	  . 'CREATE INDEX ON t (category); CREATE INDEX ON t (place); CREATE INDEX ON t (other); ANALYZE');

# Conditions of every kind: random, by cluster, few rows, none, two indexes, no index, NULL.
sub random_condition
{
	my @one = (
		sub { 'category < ' . int(rand(1000)) }, sub { 'category = ' . int(rand(1000)) },
		sub { 'place = ' . int(rand($clusters)) },
		sub { 'place IN (' . join(', ', map { int(rand($clusters)) } 1 .. 4) . ')' },
		sub { 'other < ' . int(rand(60)) }, sub { 'other IS NULL' },
		sub { 'id % 7 = ' . int(rand(7)) }, sub { 'id < ' . int(rand($rows)) },
		sub { 'category = -1' }, sub { 'true' });
	my $pick = sub { $one[ rand @one ]->() };
	my $kind = rand();

	return $pick->() if $kind < 0.6;
	return $pick->() . ' AND ' . $pick->() if $kind < 0.85;
	return '(' . $pick->() . ' OR ' . $pick->() . ')';
}

srand(17);
my @cases = map {
	{
		where => random_condition(),
		q => 1 + int(rand($queries)),
		k => (1, 10, 10, 10, 35, 300)[ rand 6 ],
		offset => (0, 0, 0, 7)[ rand 4 ]
	}
} 1 .. 60;
my $exact = exact_session($node);

# the two places that are farthest from a query, and its own
sub places
{
	my ($q, $order) = @_;

	return 'place IN (' . session_sql($exact, "SELECT string_agg(place::text, ', ') FROM (SELECT place FROM t
		GROUP BY place ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = $q)) $order) p") . ')';
}
my @far = map { { where => places($_, 'DESC LIMIT 2'), q => $_ } } 1 .. 10;
my @near = map { { where => places($_, 'LIMIT 1'), q => $_ } } 1 .. 10;

my %options = (ivfflat => 'WITH (lists = 60)');
foreach my $am (qw(quiver_graph quiver_ivf hnsw ivfflat))
{
	$node->safe_psql('postgres', 'SET client_min_messages = warning;'
		  . "CREATE INDEX t_idx ON t USING $am (v vector_l2_ops) " . ($options{$am} // ''));
	my $session = topk_session($node, 'SET ivfflat.probes = 8');
	foreach my $work_mem ('4MB', '64kB')
	{
		session_sql($session, "SET work_mem = '$work_mem'");
		topk_recall_ok($session, $exact, "$am, $work_mem", 0.95, @cases);
	}
	session_sql($session, 'RESET work_mem');
	foreach my $way ('index', 'row_pages', 'other_indexes', '"table"')
	{
		session_sql($session, "SET quiver.topk_way = $way");
		# ivfflat reads lists in fixed steps: many of them for far rows
		topk_recall_ok($session, $exact, "$am, $way, far rows", $way eq 'index' && $am eq 'ivfflat' ? 0.7 : 0.95, @far);
		topk_recall_ok($session, $exact, "$am, $way, near rows", 0.95, @near);
	}
	# more rows than are kept at a time: they are read again
	if ($am =~ /quiver/)
	{
		session_sql($session, 'SET quiver.topk_way = other_indexes');
		my $found = () = nearest($session, where => 'category >= 0', q => 3, k => $rows);
		cmp_ok($found, '>=', 0.95 * $rows, "$am: nearly all rows in strict order ($found)");
	}
	session_sql($session, 'RESET quiver.topk_way');

	# the same rows in a fresh session, and in one that has asked for other things
	foreach my $topk ('on', 'off')
	{
		session_sql($session, "SET quiver.topk_scan = $topk");
		my $fresh = topk_session($node, "SET quiver.topk_scan = $topk", 'SET ivfflat.probes = 8');
		same_answers_ok($session, $fresh, "$am, topk_scan $topk: a session's history changes no answer",
			(map { ({ q => $_ }, { q => $_, where => 'category < 50' }) } 1 .. $queries), @far, @near);
		end_session($fresh);
	}
	session_sql($session, 'SET quiver.topk_scan = on');
	fits_ok($session, "$am, $_", 10, 30, where => $_, q => 3)
	  foreach 'true', 'id % 5 = 1', 'category < 500', $far[2]{where};
	end_session($session);
	$node->safe_psql('postgres', 'DROP INDEX t_idx');
}

# Many equal rows: 500 of one value and 100 of others.  Pages show each once, by all types and metrics.
# Whole-number distances are equal by nature: bits of 8,000 different rows.
my %made = (h => 'halfvec(24)', s => 'sparsevec(24)', b => 'bit(24)');
my $values = join ', ', map { $_ eq 'b' ? 'b = binary_quantize(v)::bit(24)' : "$_ = v::$made{$_}" } sort keys %made;
my $columns = join ', ', map { "ADD $_ $made{$_}" } sort keys %made;
$node->safe_psql('postgres', qq{CREATE TABLE same AS SELECT id, id % 10 AS a,
	(SELECT v FROM t x WHERE x.id = CASE WHEN t.id <= 500 THEN 1 ELSE 2 + t.id % 20 END) AS v FROM t WHERE id <= 2500;
ALTER TABLE same $columns; UPDATE same SET $values;
ALTER TABLE queries $columns; UPDATE queries SET $values;
UPDATE queries SET (v, h, s, b) = (SELECT v, h, s, b FROM same WHERE same.id = 1) WHERE id = 2;
CREATE TABLE whole AS SELECT id, id % 10 AS a, binary_quantize(v)::bit(24) AS b FROM t;
CREATE INDEX ON same (a); CREATE INDEX ON whole (a); VACUUM FULL same; ANALYZE same, whole});

my @numbers = (
	[ 'v', 'vector_l2_ops', '<->' ], [ 'v', 'vector_ip_ops', '<#>' ], [ 'v', 'vector_cosine_ops', '<=>' ],
	[ 'h', 'halfvec_l2_ops', '<->' ], [ 'h', 'halfvec_ip_ops', '<#>' ], [ 'h', 'halfvec_cosine_ops', '<=>' ]);
my @sparse = ([ 's', 'sparsevec_l2_ops', '<->' ], [ 's', 'sparsevec_ip_ops', '<#>' ],
	[ 's', 'sparsevec_cosine_ops', '<=>' ], [ 's', 'sparsevec_l1_ops', '<+>' ]);
my @others = ([ 'v', 'vector_l1_ops', '<+>' ], [ 'h', 'halfvec_l1_ops', '<+>' ], [ 'b', 'bit_jaccard_ops', '<%>' ]);
my @bits = ([ 'b', 'bit_hamming_ops', '<~>' ]);
my @fits = (
	(map { [ 'quiver_graph', 'same', @$_ ] } @numbers, @sparse, @others, @bits),
	(map { [ 'quiver_ivf', 'same', @$_ ] } @numbers, @bits),
	(map { [ 'hnsw', 'same', @$_ ] } $numbers[0], $sparse[0], $others[0], @bits),
	(map { [ 'ivfflat', 'same', @$_ ] } $numbers[0], $numbers[4], @bits),
	(map { [ $_, 'whole', @{ $bits[0] } ] } qw(quiver_graph quiver_ivf hnsw ivfflat)),
	[ 'quiver_graph', 'whole', @{ $others[2] } ]);
foreach my $case (@fits)
{
	my ($am, $table, $column, $opclass, $op) = @$case;

	$node->safe_psql('postgres', 'SET client_min_messages = warning;'
		  . "CREATE INDEX same_idx ON $table USING $am ($column $opclass) "
		  . ($am eq 'ivfflat' ? 'WITH (lists = 10)' : ''));
	my $session = topk_session($node, 'SET ivfflat.probes = 10');
	my @same = (table => $table, column => $column, op => $op);
	fits_ok($session, "$am, $table, $opclass, q $$_[0], $$_[1]", 10, 30, @same, q => $$_[0], where => $$_[1])
	  foreach [ 2, 'true' ], [ 2, 'a < 4' ], [ 5, 'id % 3 = 1' ];
	like(topk_plan($session, @same, q => 2), qr/Quiver Top-K/, "$am, $table, $opclass: by the node");
	# the last of 500 equal rows
	fits_ok($session, "$am, $table, $opclass, all equal rows", 10, 60, @same, q => 2) if $opclass =~ /_l2_|hamming/;
	topk_ok($session, $exact, "$am, $opclass: all equal rows", @same, q => 2, where => 'a < 4', k => 600)
	  if $am =~ /quiver/ && $table eq 'same' && $opclass !~ /_l1_|jaccard|sparse/;
	end_session($session);
	$node->safe_psql('postgres', 'DROP INDEX same_idx');
}

# Vectors so long that their codes say nothing of the distance, all with the same bound, and more than
# there is memory for.
$node->safe_psql('postgres', 'CREATE INDEX long_idx ON t USING quiver_graph (v vector_ip_ops);'
	  . 'ALTER TABLE queries DROP h, DROP s, DROP b;'
	  . 'INSERT INTO queries VALUES (1000, array_fill(1e18::float4, ARRAY[24])::vector)');
my $long = topk_session($node, "SET work_mem = '64kB'");
topk_ok($long, $exact, "long vectors, $_", q => 1000, op => '<#>', k => 200, where => $_)
  foreach 'other < 25', 'id % 3 = 1';
end_session($long);

end_session($exact);
clean_log_ok($node);
$node->stop;
done_testing();
