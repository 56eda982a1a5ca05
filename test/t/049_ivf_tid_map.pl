# What a session keeps of the lists that it has read, which rows are where in them, changes no
# answer, whatever becomes of rows, heap TIDs and lists: the rows of a session that knows nothing;
# and, but where codes are kept of all rows, the counts of rows looked up.  But fewer lists are read.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_tid_map');

# with records, and with sketches, whose heap TIDs stay when their rows are dead
foreach my $case ([ 16, 20000, 10 ], [ 256, 8000, 6 ])
{
	my ($dims, $rows, $queries) = @$case;
	my $clusters = 24;

	make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
	make_queries($node, table => 'queries', dims => $dims, n => $queries, clusters => $clusters);
	$node->safe_psql('postgres', "ALTER TABLE t SET (autovacuum_enabled = off); ALTER TABLE t ADD place int; UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters); VACUUM FULL t;"
		  . 'CREATE INDEX ON t (place); CREATE INDEX t_v ON t USING quiver_ivf (v vector_l2_ops); ANALYZE t');

	my $settings = 'SET enable_seqscan = off; SET enable_sort = off';
	my $reference = new_session($node, 'postgres');
	session_sql($reference, 'SET enable_indexscan = off');

	# conditions: the places that are farthest from a query, those that are nearest, and any
	my @conditions;
	foreach my $q (1 .. $queries)
	{
		my $order = "FROM t GROUP BY place ORDER BY avg(v <-> (SELECT v FROM queries WHERE id = $q))";

		push @conditions,
		  [ $q, 'far', 'place IN (' . session_sql($reference, "SELECT string_agg(place::text, ', ') FROM (SELECT place $order DESC LIMIT 2) p") . ')' ],
		  [ $q, 'near', 'place IN (' . session_sql($reference, "SELECT string_agg(place::text, ', ') FROM (SELECT place $order LIMIT 1) p") . ')' ],
		  [ $q, 'some', "place = " . ($q * 7 % $clusters) ];
	}

	# The distances that a query finds, and what EXPLAIN counts: [answer, counts, lists].
	my $search = sub
	{
		my ($session, $condition) = @_;
		my ($q, undef, $where) = @$condition;
		my $value = "(SELECT v FROM queries WHERE id = $q)";
		my $plan = session_sql($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t WHERE $where ORDER BY v <-> $value LIMIT 10");
		my $answer = session_sql($session, "SELECT string_agg(d::text || ' ' || id, ', ') FROM (SELECT v <-> $value AS d, id FROM t WHERE $where ORDER BY v <-> $value LIMIT 10) x");

		return [ $answer, join(' ', $plan =~ /(?:Strategies|Codes Scored|Records Read|Rows Looked Up|Members Found|Rows Proposed|Rows Measured|Bound): .*/g),
			$plan =~ /Lists Read: (\d+)/ ? $1 : 0 ];
	};

	my $by_codes = 0;    # searches that read no list

	# Ask a session, and fresh ones, everything; returns the lists read by both for far rows.
	my $compare = sub
	{
		my ($session, $name, $more) = @_;
		my ($answers, $counts, $found, $wanted) = (0, 0, 0, 0);
		my %lists = (old => 0, fresh => 0);

		foreach my $condition (@conditions)
		{
			my $fresh = new_session($node, 'postgres');
			session_sql($fresh, $settings . ($more // ''));
			my $new = $search->($fresh, $condition);
			end_session($fresh);
			my $old = $search->($session, $condition);
			my %exact = map { $_ => 1 } split /, /, $search->($reference, $condition)->[0];

			$answers += $old->[0] ne $new->[0];
			# a sweep: by codes that are kept, where there are
			if ($old->[1] !~ /sweep/)
			{
				$counts += $old->[1] ne $new->[1];
				diag("$name: $condition->[1] rows of query $condition->[0]: $old->[1], fresh $new->[1]") if $old->[1] ne $new->[1];
			}
			elsif ($old->[2] == 0)
			{
				$by_codes++;
			}
			$wanted += keys %exact;
			$found += grep { $exact{$_} } split /, /, $old->[0];
			next if $condition->[1] ne 'far';
			$lists{old} += $old->[2];
			$lists{fresh} += $new->[2];
		}
		is($answers, 0, "$dims dimensions, $name: the rows that a session finds that knows nothing");
		is($counts, 0, "$name: and its counts");
		cmp_ok($found, '>=', 0.97 * $wanted, "$name: $found of $wanted rows are those of an exact scan");
		return \%lists;
	};

	my $count_of = sub
	{
		return $node->safe_psql('postgres', "SELECT count(*) FROM t $_[0]");
	};

	my $lists_of = sub
	{
		return $node->safe_psql('postgres', "SELECT lists FROM quiver_indexes WHERE index_name = 't_v'");
	};

	my $session = new_session($node, 'postgres');
	session_sql($session, $settings);
	$compare->($session, 'learning');
	my $lists = $compare->($session, 'no change');
	cmp_ok($lists->{old}, '<', 0.7 * $lists->{fresh}, "no change: lists without members are not read ($lists->{old}, $lists->{fresh})");

	# rows at the ends of lists, some of them in blocks that the map has no room for
	$node->safe_psql('postgres', "INSERT INTO t (id, v, place) SELECT $rows + id, v, (place + 5) % $clusters FROM t WHERE id <= 3000");
	$compare->($session, 'rows inserted');
	$lists = $compare->($session, 'rows inserted, again');
	cmp_ok($lists->{old}, '<', 0.8 * $lists->{fresh}, "rows inserted: what is new is learned ($lists->{old}, $lists->{fresh})");

	# heap TIDs that are in another list then, where nobody has looked
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 15 = 0');
	$node->safe_psql('postgres', 'VACUUM t');
	$node->safe_psql('postgres', "INSERT INTO t (id, v, place) SELECT 100000 + o.id, n.v, o.place FROM t o JOIN t n ON n.id = $rows + 1 - o.id WHERE o.id % 16 = 1");
	cmp_ok($count_of->("WHERE id > 100000 AND ctid < '(20,0)'"), '>', 0, 'heap TIDs are used again');
	$compare->($session, 'heap TIDs used again');
	$compare->($session, 'heap TIDs used again, again');

	# dead slots, and their heap TIDs in further ones
	$node->safe_psql('postgres', 'UPDATE t SET v = (SELECT v FROM queries WHERE id = 1 + t.id % 10) WHERE id % 11 = 0');
	$compare->($session, 'rows changed');
	$node->safe_psql('postgres', 'VACUUM t');
	$compare->($session, 'rows changed, vacuum');

	# many at one place: lists are split
	my $before = $lists_of->();
	$node->safe_psql('postgres', 'INSERT INTO t (id, v, place) SELECT 200000 + i, v, place FROM t, generate_series(1, 30) i WHERE place = 1');
	cmp_ok($lists_of->(), '>', $before, 'lists were split');
	$compare->($session, 'lists split');
	$compare->($session, 'lists split, again');

	# lists that are compacted: their rows move to other slots
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 1 OR place = 3');
	$compare->($session, 'rows deleted');
	$node->safe_psql('postgres', 'VACUUM t');
	$compare->($session, 'lists compacted');
	$node->safe_psql('postgres', 'UPDATE t SET v = NULL WHERE id % 5 = 0');
	$compare->($session, 'no values');
	$node->safe_psql('postgres', 'VACUUM t');
	$compare->($session, 'no values, vacuum');

	# two cursors, one of which learns what the other goes by
	my @far = grep { $_->[1] eq 'far' } @conditions;
	my $declare = sub
	{
		my ($reader, $c) = @_;
		my ($q, undef, $where) = @{ $far[$c] };

		session_sql($reader, "DECLARE c$c CURSOR FOR SELECT id FROM t WHERE $where AND id % 2 = 0 ORDER BY v <-> (SELECT v FROM queries WHERE id = $q) LIMIT 400");
	};
	my $cursors = new_session($node, 'postgres');
	session_sql($cursors, $settings);
	session_sql($cursors, 'BEGIN');
	$declare->($cursors, $_) foreach 0, 1;
	my %got;
	foreach my $fetch (1 .. 40)
	{
		$got{$_} .= session_sql($cursors, "FETCH 10 FROM c$_") . "\n" foreach 0, 1;
		$search->($cursors, $conditions[$fetch % @conditions]) if $fetch % 10 == 0;
	}
	session_sql($cursors, 'COMMIT');
	end_session($cursors);
	foreach my $c (0, 1)
	{
		my $alone = new_session($node, 'postgres');
		session_sql($alone, $settings);
		session_sql($alone, 'BEGIN');
		$declare->($alone, $c);
		is($got{$c}, join('', map { session_sql($alone, "FETCH 10 FROM c$c") . "\n" } 1 .. 40), "cursor $c: the rows of a session of its own");
		end_session($alone);
	}

	# no memory for a map, and then there is
	my $small = new_session($node, 'postgres');
	session_sql($small, "$settings; SET quiver.cache_mem = '64kB'");
	$compare->($small, 'little memory', "; SET quiver.cache_mem = '64kB'");
	$lists = $compare->($small, 'little memory, again', "; SET quiver.cache_mem = '64kB'");
	is($lists->{old}, $lists->{fresh}, "little memory: all lists are read ($lists->{old})");
	session_sql($small, 'RESET quiver.cache_mem');
	$compare->($small, 'more memory');
	$lists = $compare->($small, 'more memory, again');
	cmp_ok($lists->{old}, '<=', 0.9 * $lists->{fresh}, "more memory: lists without members are not read ($lists->{old}, $lists->{fresh})");
	cmp_ok($by_codes, '>', 0, "by codes no list is read ($by_codes searches)");
	end_session($small);
	end_session($session);
	end_session($reference);
	$node->safe_psql('postgres', 'DROP TABLE t, queries');
}

done_testing();
