# The top-k scan: random conditions, limits and offsets against an exact scan, and the
# same answer in every session, whatever it asked before.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('topk');
my ($dims, $rows, $clusters, $queries) = (24, 8000, 40, 30);

# category is id % 1000, place the cluster; half of the rows have no other
make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
make_queries($node, table => 'queries', dims => $dims, n => $queries, clusters => $clusters);
$node->safe_psql('postgres', "ALTER TABLE t ADD place int, ADD other int; UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters), other = nullif(id % 2, 0) * id % 50; VACUUM FULL t;"
	  . 'CREATE INDEX ON t (category); CREATE INDEX ON t (place); CREATE INDEX ON t (other); ANALYZE');

# so many that reading all lists costs more than the rows of two places
my ($many, $places) = (60000, 100);
make_rows($node, table => 'many', dims => $dims, first => 1, last => $many, clusters => $places);
$node->safe_psql('postgres', "ALTER TABLE many ADD place int; UPDATE many SET place = floor(qt_uniform(id, 1) * $places); VACUUM FULL many;"
	  . 'CREATE INDEX ON many (category); CREATE INDEX ON many (place); ANALYZE');

# The distances of query $q by either plan, ascending.
sub distances
{
	my ($session, $where, $q, $limit, $offset, $table) = @_;

	$table //= 't';
	return split /\n/, session_sql($session, "SELECT v <-> (SELECT v FROM queries WHERE id = $q) FROM $table WHERE $where "
		  . "ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT $limit OFFSET $offset");
}

# What EXPLAIN says of the 10 nearest rows of query $q, and how many of them are those of an
# exact scan.
sub plan_and_hits
{
	my ($session, $reference, $where, $q, $table) = @_;
	my %exact = map { $_ => 1 } distances($reference, $where, $q, 10, 0, $table);
	my $plan = session_sql($session, 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM ' . ($table // 't')
		  . " WHERE $where ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT 10");

	return ($plan, scalar grep { $exact{$_} } distances($session, $where, $q, 10, 0, $table));
}

# Conditions of every kind: random, by cluster, few rows, none, two indexes, no index, NULL.
sub random_condition
{
	my @one = (
		sub { 'category < ' . int(rand(1000)) }, sub { 'category = ' . int(rand(1000)) },
		sub { 'place = ' . int(rand($clusters)) }, sub { 'place IN (' . join(', ', map { int(rand($clusters)) } 1 .. 4) . ')' },
		sub { 'other < ' . int(rand(60)) }, sub { 'other IS NULL' }, sub { 'id % 7 = ' . int(rand(7)) }, sub { 'id < ' . int(rand($rows)) },
		sub { 'category = -1' }, sub { 'true' });
	my $pick = sub { $one[ rand @one ]->() };
	my $kind = rand();

	return $kind < 0.6 ? $pick->() : $kind < 0.85 ? $pick->() . ' AND ' . $pick->() : '(' . $pick->() . ' OR ' . $pick->() . ')';
}

srand(17);
my @cases = map { [ random_condition(), 1 + int(rand($queries)), (1, 10, 10, 10, 35, 300)[ rand 6 ], (0, 0, 0, 7)[ rand 4 ] ] } 1 .. 60;
my $exact = new_session($node, 'postgres');
session_sql($exact, 'SET enable_indexscan = off');
my @expected = map { [ distances($exact, @$_) ] } @cases;
end_session($exact);

my %options = (ivfflat => 'WITH (lists = 60)');
foreach my $am (qw(quiver_graph quiver_ivf hnsw ivfflat))
{
	$node->safe_psql('postgres', "SET client_min_messages = warning; CREATE INDEX t_idx ON t USING $am (v vector_l2_ops) " . ($options{$am} // ''));
	foreach my $work_mem ('4MB', '64kB')
	{
		my $session = new_session($node, 'postgres');
		my ($hits, $total, @wrong) = (0, 0);

		session_sql($session, "SET enable_seqscan = off; SET enable_sort = off; SET work_mem = '$work_mem'; SET ivfflat.probes = 8");
		foreach my $i (0 .. $#cases)
		{
			my @found = distances($session, @{ $cases[$i] });
			my @exact = @{ $expected[$i] };
			my $last = @exact ? $exact[-1] : 0;

			push @wrong, "@{$cases[$i]}: " . @found . ' rows, not ' . @exact if @found != @exact;
			push @wrong, "@{$cases[$i]}: not in order" if grep { $found[ $_ - 1 ] > $found[$_] } 1 .. $#found;
			$total += @exact;
			$hits += grep { $_ <= $last * (1 + 1e-9) } @found;
		}
		is(join("\n", @wrong), '', "$am, $work_mem: as many rows as there are, in order");
		cmp_ok($hits / $total, '>=', 0.95, sprintf('%s, %s: recall %.4f', $am, $work_mem, $hits / $total));
		end_session($session);
	}

	# members that are many, or more than there is memory for: every node is looked at
	if ($am eq 'quiver_graph' || $am eq 'hnsw')
	{
		my @case = ('other < 25', 3, 300, 0);
		my $session = new_session($node, 'postgres');
		my $reference = new_session($node, 'postgres');
		my @exact;

		session_sql($session, 'SET enable_seqscan = off; SET enable_sort = off');
		session_sql($reference, 'SET enable_indexscan = off');
		foreach my $case ([ '4MB', 300, 'sweep' ], [ '64kB', 200, 'sweep' ], [ '64kB', 600, 'exact' ])
		{
			my ($work_mem, $limit, $ways) = @$case;
			$case[2] = $limit;
			@exact = distances($reference, @case);
			session_sql($session, "SET work_mem = '$work_mem'");
			my $plan = session_sql($session, 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t '
				  . "WHERE $case[0] ORDER BY v <-> (SELECT v FROM queries WHERE id = $case[1]) LIMIT $case[2]");
			like($plan, qr/Strategies: $ways$/m, "$am, $work_mem, $limit rows: $ways");
			like($plan, qr/Members Found: \d/, "$am, $work_mem: members by their codes") if $ways eq 'sweep';
			is(join(' ', distances($session, @case)), join(' ', @exact), "$am, $work_mem, $limit rows: those of an exact scan");
		}
		end_session($session);
		end_session($reference);
	}

	# Graphs go as deep as the rows that they meet tell, whatever the planner expects: no deeper than
	# without a condition when all near rows pass, deep enough when one in ten does.
	if ($am eq 'quiver_graph' || $am eq 'hnsw')
	{
		my $session = new_session($node, 'postgres');
		my $reference = new_session($node, 'postgres');
		my (%nodes, %found);

		session_sql($session, 'SET enable_seqscan = off; SET enable_sort = off');
		session_sql($reference, 'SET enable_indexscan = off');
		foreach my $q (1 .. 20)
		{
			my $place = session_sql($reference, "SELECT place FROM t ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT 1");
			my %where = (none => 'true', near => "place + 0 = $place", random => '(id + 3) % 10 = 0');

			foreach my $name (keys %where)
			{
				my ($plan, $hits) = plan_and_hits($session, $reference, $where{$name}, $q);
				my ($read) = $plan =~ /Nodes Read: (\d+)/;

				$nodes{$name} += $read;
				$found{$name} += $hits;
			}
		}
		cmp_ok($nodes{near}, '<', 1.5 * $nodes{none}, "$am: no more nodes where all near rows pass ($nodes{near}, $nodes{none})");
		cmp_ok($nodes{random}, '>', 2 * $nodes{near}, "$am: more where one in ten does ($nodes{random})");
		cmp_ok($found{$_}, '>=', 190, "$am: $_: $found{$_} of 200 rows are those of an exact scan") foreach sort keys %found;
		end_session($session);
		end_session($reference);
	}

	# Lists are not read to the last for members that are far: these are read instead, or their
	# codes.
	if ($am eq 'quiver_ivf' || $am eq 'ivfflat')
	{
		my $session = new_session($node, 'postgres');
		my $reference = new_session($node, 'postgres');
		my (%lists, %strategies, %found);

		$node->safe_psql('postgres', "SET client_min_messages = warning; CREATE INDEX many_idx ON many USING $am (v vector_l2_ops) " . ($options{$am} // ''));
		session_sql($session, 'SET enable_seqscan = off; SET enable_sort = off; SET ivfflat.probes = 2');
		session_sql($reference, 'SET enable_indexscan = off');
		foreach my $q (1 .. 10)
		{
			my ($far, $near) = map {
				session_sql($reference, "SELECT string_agg(place::text, ', ') FROM "
					  . "(SELECT place FROM many GROUP BY place ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = $q)) $_) p")
			} ('DESC LIMIT 2', 'LIMIT 12');
			my %where = (far => "place IN ($far)", near => "place IN ($near)", random => 'category < 20');

			foreach my $name (keys %where)
			{
				my ($plan, $hits) = plan_and_hits($session, $reference, $where{$name}, $q, 'many');

				$plan =~ /Strategies: (.*)/ and $strategies{$name}{$1}++;
				$plan =~ /Lists Read: (\d+)/ and $lists{$name} += $1;
				$found{$name} += $hits;
			}
		}
		is(scalar(grep { !/(?:exact|sweep)$/ } keys %{ $strategies{far} }), 0, "$am: members that are far are measured all");
		is(scalar(grep { /exact|sweep/ } keys %{ $strategies{near} }), 0, "$am: near ones are found by fewer") if $am eq 'quiver_ivf';
		my $all = session_sql($session, "SELECT lists FROM quiver_index_state('many_idx'::regclass)");
		cmp_ok($lists{far} // 0, q{<}, 10 * 0.3 * $all, "$am: far: no more than a part of the lists is read before");
		is($found{far}, 100, "$am: far: the rows of an exact scan");
		cmp_ok($found{$_}, '>=', 95, "$am: $_: $found{$_} of 100 rows are those of an exact scan") foreach qw(near random);
		end_session($session);
		end_session($reference);
		$node->safe_psql('postgres', 'DROP INDEX many_idx');
	}

	# Clusters without an order: members that are far are few among the nearer rows and many
	# among the farther ones, so that those met first say little of where the nearest are.
	if ($am eq 'quiver_ivf')
	{
		my $session = new_session($node, 'postgres');
		my $reference = new_session($node, 'postgres');
		my $normal = 'sqrt(-2 * ln(1 - random())) * cos(6.283185307 * random())';

		$node->safe_psql('postgres', "SELECT setseed(0.5); CREATE TABLE centers AS SELECT k, array_agg($normal)::vector(64) AS c "
			  . "FROM generate_series(1, 150) k, generate_series(1, 64) GROUP BY k; CREATE TABLE spread AS SELECT id, k, (c + v)::vector(64) AS v FROM centers "
			  . "JOIN (SELECT id, id % 150 + 1 AS k, array_agg(0.35 * $normal)::vector(64) AS v FROM generate_series(1, 20000) id, generate_series(1, 64) GROUP BY id) r USING (k); "
			  . 'CREATE INDEX ON spread (k); CREATE INDEX ON spread USING quiver_ivf (v vector_l2_ops); ANALYZE spread');
		session_sql($session, 'SET enable_seqscan = off; SET enable_sort = off');
		session_sql($reference, 'SET enable_indexscan = off');
		# and with dead rows in all lists, which say nothing of how far the others are
		foreach my $what ('far members without an order', 'and with dead rows')
		{
			my $found = 0;

			foreach my $id (map { 1700 * $_ } 1 .. 10)
			{
				my $far = session_sql($reference, "SELECT string_agg(k::text, ', ') FROM (SELECT k FROM centers ORDER BY c <-> (SELECT v FROM spread WHERE id = $id) DESC LIMIT 15) x");
				my $sql = "SELECT id FROM spread WHERE k IN ($far) ORDER BY v <-> (SELECT v FROM spread WHERE id = $id) LIMIT 10";
				my %exact = map { $_ => 1 } split /\n/, session_sql($reference, $sql);
				$found += grep { $exact{$_} } split /\n/, session_sql($session, $sql);
			}
			cmp_ok($found, '>=', 95, "$am: $what: $found of 100 rows are those of an exact scan");
			$node->safe_psql('postgres', 'DELETE FROM spread WHERE id % 7 = 3 AND id % 1700 > 0');
			$node->safe_psql('postgres', 'VACUUM spread');
		}
		end_session($session);
		end_session($reference);
		$node->safe_psql('postgres', 'DROP TABLE centers, spread');
	}

	# the same rows in a fresh session, and in one that has asked for other things
	foreach my $topk ('on', 'off')
	{
		my $differ = 0;
		my $pages = 0;
		my $settings = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET quiver.topk_scan = $topk";
		my $old = new_session($node, 'postgres');

		session_sql($old, $settings);
		session_sql($old, "SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> (SELECT v FROM queries WHERE id = $_) LIMIT 1000) x") foreach 1 .. 5;
		foreach my $q (1 .. $queries)
		{
			foreach my $where ('true', 'category < 50')
			{
				my $fresh = new_session($node, 'postgres');
				session_sql($fresh, $settings);
				my $answer = join ' ', distances($fresh, $where, $q, 10, 0);

				$differ++ if $answer ne join ' ', distances($old, $where, $q, 10, 0);
				$pages++ if $topk eq 'on' && $answer ne join ' ', distances($old, $where, $q, 5, 0), distances($old, $where, $q, 5, 5);
				end_session($fresh);
			}
		}
		is($differ, 0, "$am, topk_scan $topk: a session's history changes no answer");
		is($pages, 0, "$am: pages by LIMIT and OFFSET fit together") if $topk eq 'on';
		end_session($old);
	}
	$node->safe_psql('postgres', 'DROP INDEX t_idx');
}

# rows of one value, more than their nodes' own slots have room for
$node->safe_psql('postgres', "CREATE TABLE same AS SELECT id, id % 10 AS a, (SELECT v FROM t x WHERE x.id = 1 + t.id % 60) AS v FROM t WHERE id <= 4000;"
	  . 'CREATE INDEX ON same (a); CREATE INDEX ON same USING quiver_graph (v vector_l2_ops); ANALYZE same');
my $same = new_session($node, 'postgres');
my $nearest = "SELECT v <-> (SELECT v FROM queries WHERE id = 3) AS d, id FROM same WHERE a < 4 ORDER BY d LIMIT 600";
my $summary = "SELECT count(DISTINCT id), string_agg(d::text, ' ' ORDER BY d) FROM ($nearest) x";
session_sql($same, 'SET enable_seqscan = off; SET enable_sort = off');
like(session_sql($same, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $nearest"), qr/Strategies: sweep$/m, 'a sweep of chains');
my $swept = session_sql($same, $summary);
session_sql($same, 'SET enable_indexscan = off');
is($swept, session_sql($same, $summary), 'a sweep of chains: all rows, none twice');
end_session($same);

# Vectors so long that their codes say nothing of the distance, all with the same bound, and more than
# there is memory for: they are left out by a sweep, but not lost.
$node->safe_psql('postgres', 'CREATE INDEX long_idx ON t USING quiver_graph (v vector_ip_ops)');
my $long = new_session($node, 'postgres');
my $lengths = 'SELECT v <#> array_fill(1e18::float4, ARRAY[24])::vector FROM t WHERE other < 25 ORDER BY v <#> array_fill(1e18::float4, ARRAY[24])::vector LIMIT 200';
session_sql($long, "SET enable_seqscan = off; SET enable_sort = off; SET work_mem = '64kB'");
like(session_sql($long, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $lengths"), qr/Strategies: .*sweep, exact$/m, 'long vectors: a sweep that has dropped some');
my $swept_long = session_sql($long, $lengths);
session_sql($long, 'SET enable_indexscan = off');
is($swept_long, session_sql($long, $lengths), 'long vectors: the rows of an exact scan');
end_session($long);

clean_log_ok($node);
$node->stop;
done_testing();
