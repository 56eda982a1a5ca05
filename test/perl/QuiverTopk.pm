# Tests of the top-k scan as sentences: the nearest rows WHERE ..., as an exact scan finds them.
#
# A session, as new_session() makes it, is given to each; so that a test can say which session knows
# what.  The table t has a column v, and the table queries an id and a v.

package QuiverTopk;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use QuiverTest;
use Test::More;

our @EXPORT = qw(topk_session exact_session nearest nearest_sql topk_plan topk_ok topk_recall_ok
  fits_ok same_answers_ok);

# Sessions that take the index wherever they can, and never.
sub topk_session
{
	my ($node, @settings) = @_;
	my $session = new_session($node, 'postgres');

	session_sql($session, $_) foreach 'SET enable_seqscan = off', 'SET enable_sort = off', @settings;
	return $session;
}

sub exact_session
{
	my ($node) = @_;
	my $session = new_session($node, 'postgres');

	session_sql($session, 'SET enable_indexscan = off');
	return $session;
}

# What to ask: where, k (10), offset (0), q (1) a query's number, table (t), op (<->), column (v),
# select ("distance", or a list), relaxed (the order does not count).
sub nearest_sql
{
	my (%a) = @_;
	my ($table, $column, $op) = ($a{table} // 't', $a{column} // 'v', $a{op} // '<->');
	my $distance = "$column $op (SELECT $column FROM queries WHERE id = " . ($a{q} // 1) . ')';

	return 'SELECT ' . ($a{select} // $distance) . " FROM $table WHERE " . ($a{where} // 'true')
	  . " ORDER BY $distance LIMIT " . ($a{k} // 10) . ' OFFSET ' . ($a{offset} // 0);
}

# The distances, ascending, or what "select" says of each row.
sub nearest
{
	my ($session, %a) = @_;

	return split /\n/, session_sql($session, nearest_sql(%a));
}

sub topk_plan
{
	my ($session, %a) = @_;

	return session_sql($session,
		'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' . nearest_sql(%a, select => 'ctid'));
}

# How many of the distances are no farther than the farthest of the exact ones.
sub hits
{
	my ($found, $exact) = @_;
	my $last = @$exact ? $exact->[-1] : 0;

	return scalar grep { $_ <= $last + abs($last) * 1e-9 } @$found;
}

# As many rows as there are, in order, and the nearest; "exact" has the same arguments' answer.
sub topk_ok
{
	my ($session, $exact, $name, %a) = @_;
	my @expected = nearest($exact, %a);
	my @found = nearest($session, %a);
	@found = sort { $a <=> $b } @found if $a{relaxed};
	my @unordered = grep { $found[ $_ - 1 ] > $found[$_] } 1 .. $#found;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(@found . ' rows, ' . @unordered . ' out of order, ' . hits(\@found, \@expected) . ' right',
		@expected . ' rows, 0 out of order, ' . @expected . ' right', $name);
}

# Likewise for many questions, [{...}, ...]: all complete and in order, but for late rows, and "recall" of
# their rows right.
sub topk_recall_ok
{
	my ($session, $exact, $name, $recall, @asked) = @_;
	my ($hits, $total, @wrong) = (0, 0);

	foreach my $a (@asked)
	{
		my @found = nearest($session, %$a);
		my @expected = @{ $a->{expected} //= [ nearest($exact, %$a) ] };
		my $what = join ', ', map { "$_ $a->{$_}" } grep { $_ ne 'expected' } sort keys %$a;

		push @wrong, "$what: " . @found . ' rows, not ' . @expected if @found != @expected;
		# rows that are found late come last: one or two in a hundred
		my ($late) = grep { $found[ $_ - 1 ] > $found[$_] } 1 .. $#found;
		push @wrong, "$what: not in order" if defined $late && @found - $late > 1 + @found / 50;
		$hits += hits(\@found, \@expected);
		$total += @expected;
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join("\n", @wrong), '', "$name: as many rows as there are, in order");
	return cmp_ok($hits, '>=', $recall * $total, "$name: recall at least $recall ($hits of $total)");
}

# Pages of "page" rows are the answer for all of them, and show no row twice.
sub fits_ok
{
	my ($session, $name, $page, $pages, %a) = @_;
	my @all = nearest($session, %a, select => 'id', k => $page * $pages);
	my @paged = map { nearest($session, %a, select => 'id', k => $page, offset => $page * $_) } 0 .. $pages - 1;
	my %seen;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(scalar(grep { $seen{$_}++ } @paged), 0, "$name: no row twice");
	return is(join(' ', @paged), join(' ', @all), "$name: pages by LIMIT and OFFSET fit together");
}

# Two sessions give the same rows.
sub same_answers_ok
{
	my ($one, $other, $name, @asked) = @_;
	my $differ = grep {
		join(' ', nearest($one, %$_, select => 'id')) ne join(' ', nearest($other, %$_, select => 'id'))
	} @asked;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($differ, 0, $name);
}

1;
