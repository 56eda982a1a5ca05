# Shared parts of the TAP tests: servers, data, recall, and what must hold at
# the end of every test.
package QuiverTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  @METRICS
  new_node
  sql_value
  make_rows
  make_queries
  recall
  recall_ok
  scan_of
  every_row_ok
  index_facts
  uses_index_ok
  check_ok
  own_rows_seen_ok
  hot_updates_ok
  fails_like
  index_bytes
  new_session
  session_sql
  end_session
  background_pgbench
  stop_background
  writes_ok
  wait_until_true
  clean_log_ok
);

# Metric x type.  A new type or metric is one line here, and every recall test
# that goes through this list covers it.
our @METRICS = (
	{ type => 'vector', name => 'l2', op => '<->', opclass => 'vector_l2_ops' },
	{ type => 'vector', name => 'ip', op => '<#>', opclass => 'vector_ip_ops' },
	{ type => 'vector', name => 'cosine', op => '<=>', opclass => 'vector_cosine_ops' },
	{ type => 'vector', name => 'l1', op => '<+>', opclass => 'vector_l1_ops' },
	{ type => 'halfvec', name => 'l2', op => '<->', opclass => 'halfvec_l2_ops' },
	{ type => 'halfvec', name => 'ip', op => '<#>', opclass => 'halfvec_ip_ops' },
	{ type => 'halfvec', name => 'cosine', op => '<=>', opclass => 'halfvec_cosine_ops' },
);

# Data comes from a hash of the row and coordinate numbers, so it is the same
# on every version and machine.  A vector is a cluster's center plus noise.
my $functions = q{
CREATE FUNCTION qt_uniform(k bigint, seed bigint) RETURNS float8
	LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT (hashint8extended(k, seed) & 9007199254740991) / 9007199254740992.0::float8 $$;
CREATE FUNCTION qt_vector(i bigint, dims int, clusters int DEFAULT 50) RETURNS float4[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT array_agg((2 * qt_uniform(floor(qt_uniform(i, 1) * clusters)::bigint * 100000 + j, 2)
		+ qt_uniform(i * 100000 + j, 3) + qt_uniform(i * 100000 + j, 4) - 1.7)::float4 ORDER BY j)
		FROM generate_series(1, dims) j $$;
};

# Leaves the planner an index that has the order asked for.
my $index_only = 'SET enable_seqscan = off; SET enable_sort = off;';

# A running server with both extensions and the data functions.  Options: conf
# (lines), init (arguments of that), no_checksums, install_path (of another server).
sub new_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name,
		$options{install_path} ? (install_path => $options{install_path}) : ());

	my %init = %{ $options{init} // {} };

	# since 18 they are on unless switched off
	$init{extra} = [ @{ $init{extra} // [] }, '--no-data-checksums' ]
	  if $options{no_checksums} && $node->pg_version >= 18;
	$node->init(%init);
	$node->append_conf(
		'postgresql.conf', qq{
autovacuum = off
jit = off
max_wal_size = 1GB
log_statement = none
log_min_duration_statement = -1
});
	# a standby that lost its connection for a while finds what it needs
	$node->append_conf('postgresql.conf', 'wal_keep_size = 1GB') if $init{allows_streaming};
	$node->append_conf('postgresql.conf', $options{conf}) if $options{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION vector; CREATE EXTENSION quiver;');
	$node->safe_psql('postgres', $functions);
	return $node;
}

# One value, or the rows as psql prints them unaligned.
sub sql_value
{
	my ($node, $sql, $db) = @_;
	return $node->safe_psql($db // 'postgres', $sql);
}

# Table with rows first .. last of data; created when it is not there.
#   table, dims, first, last; type (vector), clusters, create (1), kind ('')
sub make_rows
{
	my ($node, %a) = @_;
	my $type = $a{type} // 'vector';
	my $clusters = $a{clusters} // 50;
	my $kind = $a{kind} // '';
	my $sql = '';

	$sql = "CREATE $kind TABLE $a{table} (id int, category int, v $type($a{dims}));"
	  if $a{create} // 1;
	$sql .= "INSERT INTO $a{table} SELECT i, i % 1000, qt_vector(i, $a{dims}, $clusters)::$type "
	  . "FROM generate_series(" . int($a{first}) . ", " . int($a{last}) . ") i;";
	$node->safe_psql('postgres', $sql);
	return;
}

# Queries of the same distribution, that are no rows.
sub make_queries
{
	my ($node, %a) = @_;
	my $type = $a{type} // 'vector';
	my $n = $a{n} // 30;
	my $clusters = $a{clusters} // 50;

	$node->safe_psql('postgres',
		"CREATE TABLE $a{table} AS SELECT i AS id, qt_vector(-i, $a{dims}, $clusters)::$type($a{dims}) AS v "
		  . "FROM generate_series(1, $n) i");
	return;
}

# The distances of an exact scan for each query, by what they depend on (see recall()).
my %exact_of;

# recall@k of an index against a sequential scan of the same table.  Ties count
# by distance.  Dies unless the plan uses the index.
#   node, table, index, queries, op; k (10), ef (40), where, column (v),
#   set (more settings), expect (rows returned for each query, default k)
sub recall
{
	my (%a) = @_;
	my $node = $a{node};
	my $k = $a{k} // 10;
	my $ef = $a{ef} // 40;
	my $column = $a{column} // 'v';
	my $where = $a{where} ? "WHERE $a{where}" : '';
	my $settings = "SET hnsw.ef_search = $ef; SET quiver.ef_search = $ef;" . ($a{set} // '');
	my $select = "SELECT q.id, r.d FROM $a{queries} q, LATERAL "
	  . "(SELECT $column $a{op} q.v AS d FROM $a{table} $where ORDER BY $column $a{op} q.v LIMIT $k) r";
	my $plan = $node->safe_psql('postgres', "$index_only $settings EXPLAIN (COSTS OFF) $select");

	die "the plan does not use $a{index}:\n$plan"
	  unless $plan =~ /Index Scan using \Q$a{index}\E on/;

	# An exact scan costs more than all the rest. The same values and queries have the same answer,
	# whatever was done to the index. (No operator class hashes bits.)
	my $value = $a{op} =~ /[~%]/ ? "($column)::text" : $column;
	my $values = $node->safe_psql('postgres',
		join ' UNION ALL ', map { "SELECT count(*), sum(hash_record_extended(ROW($_->[0]), 0)::numeric), "
			  . "min(pg_typeof($_->[1])::text) FROM $_->[2]" }
		  [ $value, $column, "$a{table} $where" ], [ 'id, ' . ($a{op} =~ /[~%]/ ? 'v::text' : 'v'), 'v', $a{queries} ]);
	my $exact = $exact_of{"$a{op} $k $values"} //= do {
		my %by_query;
		foreach (split /\n/, $node->safe_psql('postgres', "SET enable_indexscan = off; $select"))
		{
			my ($id, $d) = split /\|/;
			push @{ $by_query{$id} }, $d;
		}
		\%by_query;
	};
	my %found;

	foreach (split /\n/, $node->safe_psql('postgres', "$index_only $settings $select"))
	{
		my ($id, $d) = split /\|/;
		push @{ $found{$id} }, $d;
	}

	my ($hits, $total) = (0, 0);
	foreach my $id (keys %$exact)
	{
		my @distances = sort { $a <=> $b } @{ $exact->{$id} };
		my $last = $distances[-1];
		my $expected = $a{expect} // scalar(@distances);
		my $returned = scalar @{ $found{$id} // [] };

		die "query $id got $returned rows, not $expected" if $returned != $expected;
		$total += @distances;
		# the same distance, but for the order of additions
		$hits += grep { $_ <= $last + abs($last) * 1e-9 } @{ $found{$id} // [] };
	}
	die "no queries" if $total == 0;
	return $hits / $total;
}

sub recall_ok
{
	my ($at_least, $name, %a) = @_;
	my $recall = eval { recall(%a) };

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return fail("$name: $@") if !defined $recall;
	return cmp_ok($recall, '>=', $at_least, sprintf('%s: recall %.3f', $name, $recall));
}

# The rows of a plain scan of a table in the order of an index, after some settings:
# how many, distinct ones, and how many were nearer than the one before.
#   node, table, query (id in queries), op; limit, where, queries, set
sub scan_of
{
	my (%a) = @_;
	my $where = $a{where} ? "WHERE $a{where}" : '';
	my $limit = $a{limit} // 1000000;
	my $queries = $a{queries} // 'queries';
	my $settings = "$index_only SET enable_bitmapscan = off; SET quiver.topk_scan = off; $a{set};";
	my $select = qq{SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE d < before)
	FROM (SELECT id, d, lag(d) OVER () AS before
		FROM (SELECT id, v $a{op} (SELECT v FROM $queries WHERE id = $a{query}) AS d FROM $a{table} $where
			ORDER BY v $a{op} (SELECT v FROM $queries WHERE id = $a{query}) LIMIT $limit) x) y};
	my $plan = $a{node}->safe_psql('postgres', "$settings EXPLAIN (COSTS OFF) $select");
	my $answer = $a{node}->safe_psql('postgres', "$settings $select");
	my %r;

	die "not by an index:\n$plan" unless $plan =~ /Index Scan using/;
	@r{qw(count distinct inversions)} = split /\|/, $answer;
	return \%r;
}

# A scan without a limit gives every one of so many rows, and none twice.
sub every_row_ok
{
	my ($rows, $name, %a) = @_;
	my $r = scan_of(%a);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is("$r->{count} $r->{distinct}", "$rows $rows", "$name: every row once");
}

# Columns of quiver_index_info().
sub index_facts
{
	my ($node, $index, @columns) = @_;
	return split /\|/, $node->safe_psql('postgres',
		'SELECT ' . join(', ', @columns) . " FROM quiver_index_info('$index')");
}

# The plan of a query, without any setting, scans that index.
sub uses_index_ok
{
	my ($node, $sql, $index, $name) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $sql");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($plan, qr/Index Scan using \Q$index\E on/, $name);
}

# quiver_check() is content, finds that many heap TIDs, and no node of a graph that no
# search comes to.  When their number is not known, a crash may have left nodes of rows
# that did not commit, before anything led there: one of each client that wrote.
sub check_ok
{
	my ($node, $index, $rows, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('$index')");

	my $lost = $err =~ /cannot reach (\d+) of/ ? $1 : 0;

	$name //= 'quiver_check';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return fail("$name: $err") if $rc != 0 || $lost > (defined $rows ? 0 : 16);
	return defined $rows ? is($out, $rows, "$name: heap TIDs of $index") : pass($name);
}

# In one transaction: a row of its own is seen, one of a savepoint rolled back is
# not, and after ROLLBACK neither.  The table is of make_rows() and has an index
# for <->.
sub own_rows_seen_ok
{
	my ($node, $table, $dims) = @_;
	my $nearest = "FROM $table ORDER BY v <-> qt_vector(90001, $dims)::vector LIMIT 1;";

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is( sql_value($node, "BEGIN; INSERT INTO $table "
			  . "SELECT 90001, 0, qt_vector(90001, $dims)::vector; SAVEPOINT a;"
			  . "INSERT INTO $table SELECT 90002, 0, qt_vector(90001, $dims)::vector; ROLLBACK TO a;"
			  . "$index_only SELECT id $nearest ROLLBACK; SELECT id > 90000 $nearest"),
		"90001\nf", 'a transaction sees its own rows, and others do not');
}

# HOT updates make no index entries, others one each.  Leaves h, a copy of the
# table, with index h_idx: rows 1 .. 100 have moved, and VACUUM has not run.
#   table (of make_rows(), rows 1 .. rows), dims, rows, using (of CREATE INDEX, for <->)
sub hot_updates_ok
{
	my ($node, %a) = @_;
	my $nearest = sub { return "FROM h ORDER BY v <-> qt_vector($_[0], $a{dims})::vector LIMIT 1" };

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', "CREATE TABLE h WITH (fillfactor = 50) AS TABLE $a{table}; "
		  . "CREATE INDEX h_idx ON h USING $a{using};"
		  . 'UPDATE h SET category = -1 WHERE id <= 100');
	check_ok($node, 'h_idx', $a{rows}, 'HOT');
	is(sql_value($node, "$index_only SELECT id, category " . $nearest->(50)), '50|-1',
		'HOT: the index finds the new version');
	$node->safe_psql('postgres', "UPDATE h SET v = qt_vector(id + 70000, $a{dims})::vector WHERE id <= 100");
	check_ok($node, 'h_idx', $a{rows} + 100, 'not HOT');
	is(sql_value($node, "$index_only SELECT id " . $nearest->(70050)), '50', 'not HOT: found at its new place');
	return;
}

# A statement fails with that SQLSTATE and message; the connection survives.
sub fails_like
{
	my ($node, $sql, $state, $message, $name) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return fail("$name: did not fail") if $rc == 0;
	return like($err, qr/ERROR:  $state: $message/, $name);
}

sub index_bytes
{
	my ($node, $index) = @_;
	return $node->safe_psql('postgres', "SELECT pg_relation_size('$index')");
}

# A psql session that stays open.  (The module's own has changed its interface
# between minor versions.)
sub new_session
{
	my ($node, $db) = @_;
	my $s = { in => '', out => '' };

	$s->{handle} = IPC::Run::start(
		[ 'psql', '-XAtq', '-f', '-', '-h', $node->host, '-p', $node->port, '-d', $db // 'postgres' ],
		'<', \$s->{in}, '>&', \$s->{out}, IPC::Run::timeout(180));
	return $s;
}

# What a session answers to a statement, errors included.
sub session_sql
{
	my ($s, $sql) = @_;

	$s->{out} = '';
	$s->{in} .= "$sql;\n\\echo end-of-answer\n";
	$s->{handle}->pump until $s->{out} =~ /end-of-answer\n/;
	(my $answer = $s->{out}) =~ s/\n?end-of-answer\n//;
	return $answer;
}

sub end_session
{
	my ($s) = @_;

	$s->{in} .= "\\q\n";
	$s->{handle}->finish;
	return;
}

# pgbench with a script of our own, running until it is stopped or the server is.
sub background_pgbench
{
	my ($node, $script, %a) = @_;
	my $file = $node->basedir . '/pgbench_' . ($a{name} // 'script') . '.sql';
	my $output = '';

	open my $fh, '>', $file or die "could not write $file: $!";
	print $fh $script;
	close $fh;
	my $h = IPC::Run::start(
		[
			'pgbench', '--no-vacuum', '--client', $a{clients} // 2,
			'--time', $a{time} // 600, '--file', $file,
			'--host', $node->host, '--port', $node->port, 'postgres'
		],
		'<', \undef, '>&', \$output);
	return { handle => $h, output => \$output };
}

# Stop it (the server's end stops it, too); returns what it said.
sub stop_background
{
	my ($bg) = @_;
	$bg->{handle}->signal('INT');
	eval { $bg->{handle}->finish };
	return ${ $bg->{output} };
}

# Stop it: no statement failed, and it did what the query tells ('t').
sub writes_ok
{
	my ($node, $bg, $query, $name) = @_;
	my $said = stop_background($bg);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	unlike($said, qr/ERROR|FATAL|aborted/, "$name: no error");
	return is(sql_value($node, "SELECT $query"), 't', "$name: there were some");
}

sub wait_until_true
{
	my ($node, $sql, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', $sql), $name);
}

# No server process died of a signal or an assertion.
sub clean_log_ok
{
	my ($node, $name) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return unlike($log, qr/terminated by signal|PANIC|TRAP:|stack smashing/,
		$name // 'no server process crashed');
}

1;
