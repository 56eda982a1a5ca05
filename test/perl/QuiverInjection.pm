# Backends held at injection points: after each record of WAL that a change of several pages
# takes (the tables "WAL" of the READMEs of src/graph, src/ivf, their rooms, and src/rows).  While a
# statement is held, others read, write, vacuum and check, and a standby that has replayed it so far is
# read; then it goes on, is canceled, or the postmaster is killed.  Whatever it was, the index is sound,
# has every row once, and nothing is left for good.
package QuiverInjection;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(injection_node every_line_ok);

# Seconds that a statement may take to come to its point.
my $patience = 60;

# Backends that the extension injection_points lets wait at a time.
my $most_waiting = 8;

# A scan of the whole index and one of the table, for one snapshot: the rows of the table,
# those that the index misses, that it has and the table has not, and that it gives twice.
my $look = q{
CREATE FUNCTION look(t text, op text, base text) RETURNS text LANGUAGE plpgsql
	SET enable_sort = off SET enable_bitmapscan = off SET quiver.topk_scan = off SET quiver.recall = 1
	SET quiver.iterative_scan = relaxed_order SET hnsw.iterative_scan = relaxed_order
	SET ivfflat.iterative_scan = relaxed_order AS $$
DECLARE
	ordered text := format('SELECT id FROM %s ORDER BY v %s (SELECT v FROM %s WHERE id = 7)', t, op, base);
	plan text;
	by_index int[];
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT json) ' || ordered INTO plan;
	IF plan !~ (t || '_idx') THEN
		RAISE EXCEPTION 'not by the index: %', plan;
	END IF;
	EXECUTE 'SELECT array_agg(id) FROM (' || ordered || ') x' INTO by_index;
	PERFORM set_config('enable_seqscan', 'on', true);
	EXECUTE format('SELECT format(''%%s rows, %%s missing, %%s wrong, %%s twice'', count(t.id),
			count(*) FILTER (WHERE i.id IS NULL), count(*) FILTER (WHERE t.id IS NULL), coalesce(sum(n - 1), 0))
		FROM %s t FULL JOIN (SELECT id, count(*) AS n FROM unnest($1) id GROUP BY id) i USING (id)', t)
		INTO answer USING by_index;
	RETURN answer;
END $$};

# A server that has injection points; else the test is skipped.
sub injection_node
{
	my ($name) = @_;

	plan skip_all => 'the server has no injection points (17 or later, configured with --enable-injection-points)'
	  if `pg_config --configure` !~ /--enable-injection-points/;
	my $node = new_node($name,
		init => { allows_streaming => 1 },
		conf => "fsync = off\nmax_connections = 40\nshared_buffers = 32MB\nmax_parallel_workers_per_gather = "
		  . "0\nmax_parallel_maintenance_workers = 0\n"
		  . "wal_consistency_checking = generic\nautovacuum = off\n");
	plan skip_all => 'the extension injection_points is not installed'
	  if sql_value($node, "SELECT count(*) FROM pg_available_extensions WHERE name = 'injection_points'") == 0;
	$node->safe_psql('postgres', "CREATE EXTENSION injection_points; $look");
	return $node;
}

sub make_standby
{
	my ($node) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($node->name . '_standby');

	$node->backup('backup');
	$standby->init_from_backup($node, 'backup', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nwal_retrieve_retry_interval = 100ms\n");
	$standby->start;
	return $standby;
}

# A point by its full name.  Lines and tables may leave out the prefix of the engine.
sub full_name
{
	my ($run, $point) = @_;
	return $point =~ /^quiver-/ ? $point : "$run->{prefix}$point";
}

# The points that the tables "WAL" of the READMEs in some folders and their rooms name, and the
# points of the sources there.
sub points_of
{
	my ($run) = @_;
	my (%named, %there);

	foreach my $readme (map { glob "$_/README.md $_/*/README.md" } @{ $run->{folders} })
	{
		my ($wal) = slurp_file($readme) =~ /^## WAL\n(.*?)(?=^## |\z)/ms;
		my @cells = map { (split /\|/)[-1] } grep { /^\| / } split /\n/, $wal // '';

		$named{ full_name($run, $_) } = 1 foreach map { /`([a-z-]+)`/g } @cells;
	}
	foreach my $source (map { glob "$_/*.c $_/*/*.c" } @{ $run->{folders} })
	{
		$there{$_} = 1 foreach slurp_file($source) =~ /QvInjectionPoint\("([a-z-]+)"\)/g;
	}
	return (\%named, \%there);
}

# A statement of a line runs for each of its forms, in a table of its own: a case.  Statements
# name the table $t, and $b that of all its values.  Of these 11 to 30 are this file's, 31 to 100 the
# line's, and those from 101 on are in the table from the beginning.
sub for_case
{
	my ($sql, $case) = @_;
	return $sql =~ s/\$t\b|\$\{t\}/$case->{table}/gr =~ s/\$b\b/base_$case->{form}/gr;
}

# Send a statement without waiting for its answer.
sub send_sql
{
	my ($s, $sql) = @_;

	$s->{out} = '';
	$s->{in} .= "$sql;\n\\echo end-of-answer\n";
	$s->{handle}->pump_nb;
	return;
}

sub has_answered
{
	my ($s) = @_;

	$s->{handle}->pump_nb;
	return $s->{out} =~ /end-of-answer\n/;
}

sub answer
{
	my ($s) = @_;

	$s->{handle}->pump until $s->{out} =~ /end-of-answer\n/;
	return $s->{out} =~ s/\n?end-of-answer\n//r;
}

# What the control session answers to statements for a case.
sub control_is
{
	my ($run, $case, $sql, $expected, $name) = @_;
	my $answer = session_sql($run->{control}, for_case($sql, $case));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ref $expected ? like($answer, $expected, "$case->{name}: $name")
		  : is($answer, $expected, "$case->{name}: $name");
}

# Two rows a page, since VACUUM passes over one that a cursor is at.
sub make_table
{
	my ($run, $case) = @_;
	my ($line, $form) = ($case->{line}, $run->{forms}{ $case->{form} });
	my $rows = $line->{rows} // $form->{rows};

	control_is($run, $case, 'SET client_min_messages = warning; DROP TABLE IF EXISTS $t;'
		  . "CREATE TABLE \$t (id int, v $form->{type}, filler char(400) DEFAULT '') "
		  . "WITH (autovacuum_enabled = false, fillfactor = 10);"
		  . "INSERT INTO \$t (id, v) SELECT id, v FROM \$b WHERE id > 100 AND id <= 100 + $rows;"
		  . "CREATE INDEX \${t}_idx ON \$t USING $form->{using} " . ($line->{with} // '') . ';'
		  . ($line->{before} // '') . ';RESET client_min_messages', '', 'made');
	return;
}

# Every row once; up to so many may be missing.
sub look_ok
{
	my ($run, $case, $name, $session) = @_;
	my $answer = session_sql($session // $run->{control},
		for_case("BEGIN ISOLATION LEVEL REPEATABLE READ; "
			  . "SELECT look('\$t', '$run->{forms}{$case->{form}}{op}', '\$b'); COMMIT", $case));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($answer, qr/^\d+ rows, 0 missing, 0 wrong, 0 twice$/, "$case->{name}: $name, every row once");
}

# How many cases wait at a point.
sub waiting
{
	my ($run, $point, @cases) = @_;
	my $pids = join ',', map { $_->{pid} } @cases;

	return session_sql($run->{control}, "SELECT count(*) FROM pg_stat_activity "
		  . "WHERE wait_event = '$point' AND pid IN ($pids)");
}

# Until all wait at the point; false when one has ended instead.
sub all_wait
{
	my ($run, $point, @cases) = @_;
	my $until = time + $patience;

	while (waiting($run, $point, @cases) < @cases)
	{
		return 0 if time > $until || grep { has_answered($_->{session}) } @cases;
		sleep 0.005;
	}
	return 1;
}

# Wake those that wait at a point until "done" says so: a call wakes one, which one is not ours to
# say, and who is woken in vain does not wait for a moment.
sub wake_until
{
	my ($run, $point, $done) = @_;
	my $until = time + $patience;

	while (!$done->() && time < $until)
	{
		session_sql($run->{control}, "SELECT injection_points_wakeup('$point')");
		sleep 0.005;
	}
	return;
}

# Let a line's statement run for its cases until it is at the point.
sub hold
{
	my ($run, $line, @cases) = @_;
	my @points = map { full_name($run, $_) } grep { defined } $line->{via}, $line->{point};

	foreach my $case (@cases)
	{
		$case->{session} = new_session($run->{node});
		$case->{pid} = session_sql($case->{session}, 'SELECT pg_backend_pid()');
	}
	foreach my $i (0 .. $#points)
	{
		my $point = $points[$i];

		control_is($run, $cases[0], "SELECT injection_points_attach('$point', 'wait')", '', "$point attached");
		if ($i == 0)
		{
			send_sql($_->{session}, for_case($line->{held}, $_)) foreach @cases;
		}
		else
		{
			wake_until($run, $points[ $i - 1 ], sub { waiting($run, $point, @cases) == @cases
					  || grep { has_answered($_->{session}) } @cases });
		}
		if (!ok(all_wait($run, $point, @cases), "$cases[0]{name}: all are held at $point"))
		{
			diag("$_->{name}: $_->{session}{out}") foreach @cases;
		}
		control_is($run, $cases[0], "SELECT injection_points_detach('$point')", '', "$point detached");
		# what brings it from the first to the second
		if ($i < $#points)
		{
			control_is($run, $_, $line->{between}, '', 'meanwhile') foreach @cases;
		}
	}
	foreach my $case (@cases)
	{
		control_is($run, $case, $line->{proof}, 't', 'as it should be') if $line->{proof} && !$line->{locked};
		look_ok($run, $case, 'held') if !$line->{locked};
	}
	return;
}

# All that was logged until now is on disk: a commit sees to it.  Returns where that is.
sub flush_wal
{
	my ($run) = @_;
	my $lsn = session_sql($run->{control}, "SELECT pg_logical_emit_message(true, 'test', 'on disk')");

	like($lsn, qr{^[0-9A-F]+/[0-9A-F]+$}, 'on disk');
	return $lsn;
}

# What the standby has of cases that are held: a crash would leave the same.
sub standby_ok
{
	my ($run, @cases) = @_;
	my $lsn = flush_wal($run);
	my $s = new_session($run->{standby});
	my $until = time + $patience;

	sleep 0.005 while time < $until && session_sql($s, "SELECT pg_last_wal_replay_lsn() >= '$lsn'") ne 't';
	session_sql($s, 'SET quiver.sketches = on');
	foreach my $case (@cases)
	{
		unlike(session_sql($s, for_case('SELECT quiver_check(\'${t}_idx\')', $case)), qr/ERROR/,
			"$case->{name}: quiver_check on the standby");
		look_ok($run, $case, 'on the standby', $s);
	}
	end_session($s);
	return;
}

# A cursor opened before the statement, read while that is held and after, gives what its snapshot
# has, each row once.
sub fetch
{
	my ($s, $rows) = @_;
	return split /\n/, session_sql($s, "FETCH $rows FROM c");
}

sub open_cursor
{
	my ($run, $case) = @_;
	my $s = new_session($run->{node});

	session_sql($s, for_case('BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off; SET enable_sort = off; '
			  . 'SET quiver.topk_scan = off;'
			  . 'SET quiver.recall = 1; SET quiver.iterative_scan = relaxed_order; '
			  . 'SET hnsw.iterative_scan = relaxed_order;'
			  . 'SET ivfflat.iterative_scan = relaxed_order; SET quiver.sketches = on;'
			  . "DECLARE c CURSOR FOR SELECT id FROM \$t ORDER BY v $run->{forms}{$case->{form}}{op} (SELECT v "
			  . "FROM \$b WHERE id = 7)", $case));
	return { session => $s, case => $case, found => [ fetch($s, 5) ] };
}

sub cursor_ok
{
	my ($run, $cursor) = @_;
	my $s = $cursor->{session};
	my @found = (@{ $cursor->{found} }, fetch($s, 'ALL'));
	my @there = split /\n/, session_sql($s, for_case('SET enable_indexscan = off; SELECT id FROM $t', $cursor->{case}));
	my %left = map { $_ => 1 } @there;
	my @wrong = grep { !delete $left{$_} } @found;
	my $missing = keys %left;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', "$cursor->{case}{name}: a cursor gives no row twice, and none that its snapshot has not");
	is($missing, 0, "$cursor->{case}{name}: a cursor gives every row of its snapshot, all " . @there);
	# the server sees the end of a session later than we do, and VACUUM would keep rows for it
	session_sql($s, 'COMMIT');
	end_session($s);
	return;
}

# Sessions that begin while the statement is held, and may have to wait until it goes on.
sub begin_others
{
	my ($run, $case) = @_;
	my %sql = (
		insert => 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id BETWEEN 11 AND 20;'
		  # values that are there, and those of nodes that are being deleted
		  . 'INSERT INTO $t (id, v) SELECT 5000 + id, v FROM $b WHERE id BETWEEN 101 AND 108',
		check => 'SET client_min_messages = warning; DO $$BEGIN PERFORM quiver_check(\'${t}_idx\'); END$$');

	$sql{vacuum} = 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) $t' if $case->{line}{held} !~ /VACUUM/;
	return map {
		my $s = new_session($run->{node});
		send_sql($s, for_case($sql{$_}, $case));
		{ session => $s, name => "$case->{name}, $_" }
	} sort keys %sql;
}

# The index is sound, but that nodes of rows that did not commit may be lost until VACUUM.
sub nothing_found_ok
{
	my ($run, $case) = @_;
	my $answer = session_sql($run->{control}, for_case('SELECT quiver_check(\'${t}_idx\')', $case));
	my ($lost) = $answer =~ /NOTICE:  a search cannot reach (\d+) of/;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($answer, defined $lost ? qr/\n\d+$/ : qr/^\d+$/, "$case->{name}: quiver_check");
	cmp_ok($lost // 0, '<=', $run->{may_lose}, "$case->{name}: nodes that cannot be reached");
	look_ok($run, $case, 'after it');
	return;
}

# And when it was used and vacuumed, nothing is left of what it was about.
sub sound_ok
{
	my ($run, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	nothing_found_ok($run, $case);
	control_is($run, $case, 'INSERT INTO $t (id, v) SELECT id, v FROM $b WHERE id BETWEEN 21 AND 30; '
		  . 'DELETE FROM $t WHERE id = 25;'
		  . 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) $t', '', 'used and vacuumed');
	control_is($run, $case, 'SELECT quiver_check(\'${t}_idx\') - (SELECT count(*) FROM $t)', '0',
		'vacuumed, quiver_check');
	control_is($run, $case, 'SELECT deleted_nodes, lost_pages FROM quiver_index_info(\'${t}_idx\')', $run->{nothing},
		'vacuumed, nothing is left');
	look_ok($run, $case, 'vacuumed');
	return;
}

sub goes_on
{
	my ($run, $line, @cases) = @_;
	my @cursors = $line->{no_cursor} ? () : map { open_cursor($run, $_) } @cases;
	my @others;

	hold($run, $line, @cases);
	standby_ok($run, @cases);
	@others = map { begin_others($run, $_) } @cases;
	push @{ $_->{found} }, fetch($_->{session}, 5) foreach @cursors;
	wake_until($run, full_name($run, $line->{point}), sub { !grep { !has_answered($_->{session}) } @cases });
	is(answer($_->{session}), '', "$_->{name}: no error") foreach @cases, @others;
	cursor_ok($run, $_) foreach @cursors;
	end_session($_->{session}) foreach @cases, @others;
	return;
}

sub is_canceled
{
	my ($run, $line, @cases) = @_;

	hold($run, $line, @cases);
	foreach my $case (@cases)
	{
		control_is($run, $case, "SELECT pg_cancel_backend($case->{pid})", 't', 'a signal');
		like(answer($case->{session}), qr/ERROR:  canceling statement due to user request$/m,
			"$case->{name}: canceled");
		nothing_found_ok($run, $case);
		# with what the backend knew of the index
		is(session_sql($case->{session}, for_case($line->{held}, $case)), '', "$case->{name}: again");
	}
	end_session($_->{session}) foreach @cases;
	return;
}

# Where buffers are locked, nobody can be canceled: there it fails.
sub fails
{
	my ($run, $line, @cases) = @_;
	my $point = full_name($run, $line->{point});

	control_is($run, $cases[0], "SELECT injection_points_attach('$point', 'error')", '', "$point attached");
	control_is($run, $_, $line->{held}, qr/ERROR:  error triggered for injection point $point$/m, 'fails there')
		foreach @cases;
	control_is($run, $cases[0], "SELECT injection_points_detach('$point')", '', "$point detached");
	return;
}

# All cases of some lines are held when the postmaster is killed, and what they have logged is on disk.
sub are_killed
{
	my ($run, @cases) = @_;
	my $node = $run->{node};
	my $up = 0;

	flush_wal($run);
	$node->kill9;
	eval { $_->{handle}->finish } foreach $run->{control}, map { $_->{session} } @cases;
	# its children end by themselves, which takes a moment
	foreach (1 .. 100)
	{
		last if $up = $node->start(fail_ok => 1);
		$node->{_pid} = undef;
		sleep 0.1;
	}
	ok($up, "$cases[0]{name}: start");
	$run->{control} = new_session($node);
	return;
}

# The cases of a line, their tables made.
sub cases
{
	my ($run, $line, $end, $number) = @_;
	my $name = ($line->{name} // $line->{point}) . ", $end";
	my @cases = map { { line => $line, form => $_, table => "$_$number", name => "$name, $_" } } @{ $line->{forms} };

	make_table($run, $_) foreach @cases;
	return @cases;
}

# One line, ended in one way.
sub line_ok
{
	my ($run, $line, $name, $end) = @_;
	my @cases;

	# a session of the harness ends after three minutes
	$run->{control} = new_session($run->{node});
	@cases = cases($run, $line, $name, 0);
	$end->($run, $line, @cases);
	sound_ok($run, $_) foreach @cases;
	end_session($run->{control});
	return;
}

# Some lines, one after the other held, then killed together.
sub killed_ok
{
	my ($run, @lines) = @_;
	my (@all, @cases);

	$run->{control} = new_session($run->{node});
	# all tables first: VACUUM removes nothing that was deleted after a statement held began
	@cases = map { [ cases($run, $lines[$_], 'kill -9', $_) ] } 0 .. $#lines;
	foreach my $i (0 .. $#lines)
	{
		hold($run, $lines[$i], @{ $cases[$i] });
		standby_ok($run, @{ $cases[$i] }) if $lines[$i]{locked};
		push @all, @{ $cases[$i] };
	}
	are_killed($run, @all);
	sound_ok($run, $_) foreach @all;
	end_session($run->{control});
	return;
}

# Lines in groups of as many cases as can wait at injection points at a time.
sub groups
{
	my (@lines) = @_;
	my @groups = ([]);

	foreach my $line (@lines)
	{
		my $cases = 0;

		$cases += @{ $_->{forms} } foreach @{ $groups[-1] }, $line;
		push @groups, [] if $cases > $most_waiting;
		push @{ $groups[-1] }, $line;
	}
	return @groups;
}

# All lines of the READMEs' tables, and nothing that they do not name:
#   node, folders (with their rooms), prefix (of the points); nothing: deleted nodes and lost pages
#	  as psql shows them;
#   may_lose: nodes of rows that did not commit, which searches may not reach until VACUUM;
#   forms: name => { type, using, op, rows }; base_NAME has the values;
#   lines: [{ point, forms, held (the statement); name, rows (at the build), with (options of the index),
#	  before (statements), proof (true while it is held), locked (a buffer is, there), via (a point before
#	  it), between (statements that others make there), no_cursor (a pin on the table's page would keep
#	  VACUUM from it) }]
sub every_line_ok
{
	my (%run) = @_;
	my ($named, $there) = points_of(\%run);
	my %tested = map { full_name(\%run, $_->{point}) => 1 } @{ $run{lines} };

	is_deeply([ sort keys %$there ], [ sort keys %$named ], 'the points of the sources are those of the README');
	is_deeply([ sort keys %tested ], [ sort keys %$named ], 'each of them is tested');
	$run{standby} = make_standby($run{node});
	foreach my $line (@{ $run{lines} })
	{
		line_ok(\%run, $line, 'error', \&fails) if $line->{locked};
		line_ok(\%run, $line, 'goes on', \&goes_on) if !$line->{locked};
		line_ok(\%run, $line, 'canceled', \&is_canceled) if !$line->{locked};
	}
	killed_ok(\%run, @$_) foreach groups(@{ $run{lines} });
	clean_log_ok($_) foreach $run{node}, $run{standby};
	$_->stop foreach $run{standby}, $run{node};
	done_testing();
	return;
}

1;
