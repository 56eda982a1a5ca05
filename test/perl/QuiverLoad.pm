# A table with an index of every kind, sessions that change it all the time, and what must
# be equal between two servers that have it: for the tests of standbys, backups, upgrades.
package QuiverLoad;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

our @EXPORT = qw(
  @LOAD_INDEXES
  create_load
  start_load
  more_load
  wait_for_load
  stop_load
  pause_load
  resume_load
  load_rows
  load_answers
  same_load_ok
  sound_load_ok
);

# Every access method, both forms of graphs (values in nodes and on pages of their own) and
# of posting lists. Column and operator of each are its own, so a query has one index. Some
# are made before there are rows, which splits their lists.
our @LOAD_INDEXES = (
	{ name => 'hnsw_coded', on => 'hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 16)', order => 'v <->' },
	{ name => 'hnsw_plain', on => 'hnsw (v vector_l1_ops) WITH (m = 4, ef_construction = 16)', order => 'v <+>' },
	{ name => 'graph_coded', on => 'quiver_graph (h halfvec_cosine_ops) WITH (m = 4, ef_construction = 16)',
		order => 'h <=>' },
	{ name => 'graph_values', on => 'quiver_graph (s sparsevec_l2_ops) WITH (m = 4, ef_construction = 16)',
		order => 's <->' },
	{ name => 'flat_coded', on => 'ivfflat (v vector_cosine_ops) WITH (lists = 12)', order => 'v <=>' },
	{ name => 'flat_bits', on => 'ivfflat (b bit_hamming_ops) WITH (lists = 12)', order => 'b <~>' },
	{ name => 'lists_coded', on => 'quiver_ivf (v vector_ip_ops)', order => 'v <#>', grown => 1 },
	{ name => 'lists_short', on => 'quiver_ivf (h halfvec_l2_ops) WITH (bits = 4)', order => 'h <->', grown => 1 },
	{ name => 'lists_bits', on => 'quiver_ivf (c bit_hamming_ops)', order => 'c <~>', grown => 1 },
);

my ($dims, $bits) = (16, 64);

# Writers share it for each step, a pause has it alone.
my $lock = 5151;

# Everything that a scan finds: lists are read to the last one, graphs as far as edges lead.
my $whole = 'SET quiver.topk_scan = off; SET hnsw.iterative_scan = relaxed_order; '
	  . 'SET ivfflat.iterative_scan = relaxed_order;'
  . ' SET quiver.iterative_scan = relaxed_order; SET enable_seqscan = off; SET enable_sort = off; '
  . 'SET enable_bitmapscan = off;';

sub new_rows
{
	return "INSERT INTO load SELECT r.* FROM (SELECT nextval('load_ids') AS i "
		  . "FROM generate_series(1, $_[0])) n, load_row(n.i) r;\n";
}

# Table load with so many rows; half of them come after all indexes are made. Rows are
# load_row() of numbers from a sequence, queries in load_queries those of negative ones.
sub create_load
{
	my ($node, $rows) = @_;
	my $fill = new_rows(int($rows / 2));
	my $make = sub { return join '', map { "CREATE INDEX $_->{name} ON load USING $_->{on};\n" } @_ };

	$node->safe_psql('postgres', qq{
SET client_min_messages = warning;
CREATE SEQUENCE load_ids;
CREATE TABLE load_goal AS SELECT 0::bigint AS id;
CREATE TABLE load (id bigint PRIMARY KEY, v vector($dims), h halfvec($dims), s sparsevec($dims),
	b bit($bits), c bit($bits))
	WITH (autovacuum_enabled = false);
-- Every seventh row has one of seven vectors: nodes of several rows. Sparse vectors differ in size.
CREATE FUNCTION load_row(i bigint) RETURNS load LANGUAGE sql STABLE AS
	\$\$ SELECT i, x::vector, x::halfvec,
			(SELECT array_agg(greatest(e, 0) ORDER BY n) FROM unnest(x) WITH ORDINALITY y (e, n))::vector::sparsevec,
			binary_quantize(y::vector)::bit($bits), ~binary_quantize(y::vector)::bit($bits)
		FROM qt_vector(CASE WHEN i % 7 = 0 THEN i % 49 ELSE i END, $dims) x, qt_vector(i, $bits) y \$\$;
CREATE TABLE load_queries AS SELECT r.* FROM generate_series(1, 12) i, load_row(-i) r;
} . $make->(grep { $_->{grown} } @LOAD_INDEXES) . $fill . $make->(grep { !$_->{grown} } @LOAD_INDEXES) . $fill);
	return;
}

# Sessions that insert, update, delete, roll back and vacuum until they are stopped; they rest when
# the goal of wait_for_load() is reached, so that a slow machine does not write more than a fast one.
sub start_load
{
	my ($node) = @_;
	my $some = 'SELECT id FROM load WHERE id % 3 = :r % 3 ORDER BY hashint8extended(id, :r) LIMIT';
	my $write = qq{
\\set r random(1, 1000000)
SELECT last_value < id AS go FROM load_ids, load_goal \\gset
\\if :go
SELECT pg_advisory_lock_shared($lock);
} . new_rows(8) . qq{
UPDATE load l SET (v, h, s, b, c) = (SELECT r.v, r.h, r.s, r.b, r.c FROM load_row(l.id + :r) r)
	WHERE id IN (SELECT id FROM ($some 3) x FOR UPDATE SKIP LOCKED);
BEGIN;
} . new_rows(2) . qq{
ROLLBACK;
SELECT pg_advisory_unlock_shared($lock);
\\else
\\sleep 20 ms
\\endif
};
	my $vacuum = qq{
\\set r random(1, 1000000)
\\sleep 200 ms
SELECT pg_advisory_lock_shared($lock);
DELETE FROM load WHERE id IN (SELECT id FROM ($some 20) x FOR UPDATE SKIP LOCKED)
	AND (SELECT last_value < g.id FROM load_ids, load_goal g);
VACUUM (INDEX_CLEANUP ON) load;
SELECT pg_advisory_unlock_shared($lock);
};

	return [
		background_pgbench($node, $write, clients => 2, name => 'write'),
		background_pgbench($node, $vacuum, clients => 1, name => 'vacuum') ];
}

# Have the load go on until it has tried to insert so many rows more; the number of the last.
sub more_load
{
	my ($node, $more) = @_;

	return sql_value($node, "UPDATE load_goal SET id = greatest(id, (SELECT last_value "
		  . "FROM load_ids)) + $more RETURNING id");
}

# Have the load try to insert so many rows more; until it has, and VACUUM has come by.
sub wait_for_load
{
	my ($node, $more, $name) = @_;
	my $goal = more_load($node, $more);
	my $vacuums = sql_value($node, "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'load'");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_until_true($node, "SELECT last_value >= $goal AND vacuum_count > $vacuums "
		  . "FROM load_ids, pg_stat_user_tables WHERE relname = 'load'", $name);
}

# What the sessions said must have no error but for those of a server that went away.
sub stop_load
{
	my ($load, $name) = @_;
	my $said = join '', map { stop_background($_) } @$load;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return unlike($said, qr/ERROR|FATAL|PANIC/, $name);
}

# When it returns, nobody writes until resume_load() is called with what it returns.
sub pause_load
{
	my ($node) = @_;
	my $session = new_session($node);

	session_sql($session, "SELECT pg_advisory_lock($lock)");
	return $session;
}

sub resume_load
{
	my ($session) = @_;

	end_session($session);
	return;
}

# All rows, in short: count and checksum.
sub load_rows
{
	my ($node) = @_;

	return sql_value($node, q{SET enable_indexscan = off; SET enable_bitmapscan = off;
SELECT count(*) || ' ' || md5(string_agg(concat_ws(' ', id, v, h, s, b, c), E'\n' ORDER BY id)) FROM load});
}

# What an index answers, rows in its order: the nearest ones by each kind of plan, and the
# beginning of a scan without a limit.
sub load_answers
{
	my ($node, $index, $how) = @_;
	my $nearest = "(SELECT id, $index->{order} q.q AS d FROM load ORDER BY $index->{order} q.q LIMIT 20)";
	my $select = 'SELECT q.id, r.id, r.d FROM (SELECT id, ' . substr($index->{order}, 0, 1)
		  . " AS q FROM load_queries) q, LATERAL $nearest r";
	my $settings = 'SET enable_seqscan = off; SET enable_sort = off;';

	return sql_value($node, "$settings EXPLAIN (COSTS OFF) $select") if ($how // '') eq 'plan';
	return join "\n", map { sql_value($node, "$settings $_ $select") } 'SET quiver.topk_scan = on;',
	'SET quiver.topk_scan = off;', $whole;
}

# The two servers have the same rows, and give the same answers in the same order by every
# index, which they use.
sub same_load_ok
{
	my ($one, $other, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(load_rows($other), load_rows($one), "$name: the same rows");
	foreach my $index (@LOAD_INDEXES)
	{
		my $answers = load_answers($one, $index);

		like(load_answers($other, $index, 'plan'), qr/Index Scan using $index->{name} on load/,
			"$name: $index->{name} is used");
		cmp_ok(scalar(split /\n/, $answers), '>=', 3 * 12 * 15, "$name: $index->{name} has answers");
		is(load_answers($other, $index), $answers, "$name: $index->{name} gives the same answers");
	}
	return;
}

# quiver_check() is content with every index; and when the table was just vacuumed, each has
# exactly its rows, and a scan finds every one of them once.
sub sound_load_ok
{
	my ($node, $name, %a) = @_;
	my $rows = sql_value($node, 'SELECT count(*) FROM load');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $index (@LOAD_INDEXES)
	{
		my $asked = substr($index->{order}, 0, 1);

		check_ok($node, $index->{name}, $a{vacuumed} ? $rows : undef, $name);
		is(sql_value($node, "$whole SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM load "
				  . "ORDER BY $index->{order} (SELECT $asked FROM load_queries WHERE id = -3)) x"),
			"$rows|$rows", "$name: $index->{name} finds every row once") if $a{vacuumed};
	}
	return;
}

1;
