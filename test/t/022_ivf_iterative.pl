# Filters on posting lists: k rows, and the nearest ones, however few pass.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_iterative');
my ($dims, $rows, $clusters) = (16, 10000, 50);

# category is id % 1000, whatever the vector; place goes with it
make_rows($node, table => 't', dims => $dims, first => 1, last => $rows, clusters => $clusters);
make_queries($node, table => 'queries', dims => $dims, n => 20, clusters => $clusters);
$node->safe_psql('postgres', "ALTER TABLE t ADD place int; UPDATE t SET place = floor(qt_uniform(id, 1) * $clusters); "
	  . "VACUUM FULL t;"
	  . 'CREATE TABLE f AS TABLE t; CREATE INDEX t_idx ON t USING quiver_ivf (v);'
	  . 'CREATE INDEX f_idx ON f USING ivfflat (v vector_l2_ops) WITH (lists = 100); ANALYZE');
my %t = (node => $node, op => '<->', queries => 'queries', table => 't', index => 't_idx');
my %f = (node => $node, op => '<->', queries => 'queries', table => 'f', index => 'f_idx');
my $relaxed = 'SET quiver.iterative_scan = relaxed_order; SET ivfflat.iterative_scan = relaxed_order;';

# Recall in strict order, relaxed, and of ivfflat: strict order leaves out what is
# found too late, and ivfflat stops when the limit is full.
foreach my $case (
	[ '10 %', 'category < 100', 0.95, 0.95, 0.95 ],
	[ '1 %', 'category < 10', 0.95, 0.95, 0.6 ],
	[ '0.1 %', 'category < 1', 0.95, 0.99, 0.99 ],
	[ 'one cluster', 'place = 7', 0.95, 0.95, 0.45 ],
	[ 'some clusters', 'place % 10 = 3', 0.95, 0.95, 0.7 ])
{
	my ($name, $where, $strict, $late, $flat) = @$case;

	recall_ok($strict, "quiver_ivf, $name", %t, where => $where) if $strict;
	recall_ok($late, "quiver_ivf, relaxed, $name", %t, where => $where, set => $relaxed);
	recall_ok($flat, "ivfflat, relaxed, $name", %f, where => $where, set => $relaxed . 'SET ivfflat.probes = 10;');
	foreach my $query (1 .. 3)
	{
		my $r = scan_of(%t, where => $where, query => $query, limit => 10, set => '');
		cmp_ok($r->{count}, '>=', $strict ? 10 : 8, "quiver_ivf, $name: rows of query $query");
		is(join(' ', @$r{qw(distinct inversions)}), "$r->{count} 0", "quiver_ivf, $name: in order, query $query");
	}
}

# every row, each once
foreach my $probes (1, 7, 100)
{
	every_row_ok($rows, "ivfflat, relaxed, probes $probes", %f, query => 2,
		set => "SET ivfflat.probes = $probes; $relaxed");
	every_row_ok($rows, "quiver_ivf, relaxed, probes $probes", %t, query => 2,
		set => "SET quiver.probes = $probes; $relaxed");
}
every_row_ok($rows, 'ivfflat, all lists at once', %f, query => 2, set => 'SET ivfflat.probes = 100;');
every_row_ok($rows, 'quiver_ivf, less work_mem', %t, query => 2, set => "SET work_mem = '1MB'; $relaxed");

# max_probes ends a scan, off ends it with the first lists
my $last = 0;
foreach my $most (1, 4, 16, 64)
{
	my $r = scan_of(%f, query => 3, set => "SET ivfflat.max_probes = $most; $relaxed");
	cmp_ok($r->{count}, '>', $last, "ivfflat.max_probes $most: $r->{count} rows");
	is($r->{count}, $r->{distinct}, "ivfflat.max_probes $most: each once");
	$last = $r->{count};
}
cmp_ok($last, '<', $rows, 'ivfflat.max_probes 64: not all');
my $one_list = scan_of(%f, query => 3, set => "SET ivfflat.max_probes = 1; $relaxed")->{count};
my $strict = scan_of(%f, query => 3, set => '')->{count};
cmp_ok($strict, '<=', $one_list, "ivfflat off: one list ($strict, $one_list)");
cmp_ok($strict, '>=', 0.97 * $one_list, 'ivfflat off: nearly all of its rows in order');
cmp_ok(scan_of(%t, query => 3, where => 'category < 1', limit => 10,
		set => 'SET quiver.iterative_scan = off;')->{count},
	'<', 10, 'quiver_ivf off: as many as the first lists have');

# Without searching on, and in strict order, no row comes after a farther one, or is left out
# for it, many windows on: what bounds and the errors of codes leave out of one window must not
# be nearer than its rows.
$node->safe_psql('postgres', 'CREATE TABLE flat AS SELECT id, v FROM t WHERE id <= 6000;'
	  . 'CREATE INDEX flat_idx ON flat USING quiver_ivf (v vector_cosine_ops) WITH (lists = 12);'
	  . 'CREATE TABLE coarse AS TABLE flat;'
	  . 'CREATE INDEX coarse_idx ON coarse USING quiver_ivf (v vector_l2_ops) WITH (lists = 12, bits = 2)');
foreach my $case ([ 'flat', '<=>', 8 ], [ 'coarse', '<->', 2 ])
{
	my ($table, $op, $bits) = @$case;

	foreach my $order ('off', 'strict_order')
	{
		foreach my $probes (1, 12)
		{
			my $found = 'SELECT sum(late) || md5(string_agg(farthest::text, chr(32) ORDER BY id))'
			  . ' FROM (SELECT id, v FROM t WHERE id % 33 = 0) q, LATERAL'
			  . ' (SELECT count(*) FILTER (WHERE d < before) AS late, max(d) AS farthest FROM'
			  . ' (SELECT d, lag(d) OVER () AS before FROM'
			  . " (SELECT v $op q.v AS d FROM FROM_TABLE ORDER BY v $op q.v LIMIT 400) x) y) z";
			my $lists = "(SELECT v FROM $table OFFSET 0) y";
			my $from_index = $node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_sort = off;'
				  . "SET quiver.topk_scan = off; SET quiver.iterative_scan = $order; SET quiver.probes = $probes;"
				  . $found =~ s/FROM_TABLE/$table/r);

			like($from_index, qr/^0[0-9a-f]{32}$/, "in order: $op, $bits bits, $order, probes $probes");
			next if $probes == 1;
			is($from_index, $node->safe_psql('postgres', $found =~ s/FROM_TABLE/$lists/r),
				"and all: $op, $bits bits, $order");
		}
	}
}

# Windows that end nearer than one before, when lists were added: still no row twice.
$node->safe_psql('postgres', q{
CREATE FUNCTION uniform(a bigint) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint8(a)::float8 + 2147483648) / 4294967296';
CREATE TABLE wide AS SELECT i AS id, (SELECT array_agg((sqrt(-2 * ln(greatest(1e-9, uniform(i::bigint * 100000 + j))))
		* cos(6.2831853 * uniform(i::bigint * 100000 + j + 50000)))::real)
		FROM generate_series(1, 128) j)::vector(128) AS v
	FROM generate_series(1, 12000) i;
CREATE INDEX wide_idx ON wide USING quiver_ivf (v vector_l2_ops)});
foreach my $probes (1, 3)
{
	foreach my $topk ('off', 'on')
	{
		is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_sort = off; SET work_mem = '64kB';"
				  . "SET quiver.topk_scan = $topk; SET quiver.iterative_scan = relaxed_order; "
				  . "SET quiver.probes = $probes;"
				  . 'SELECT sum((SELECT count(*) - count(DISTINCT id) FROM'
				  . ' (SELECT id FROM wide ORDER BY v <-> q.v LIMIT 5000) x)) FROM (SELECT v FROM wide '
				  . 'WHERE id % 2000 = 1) q'),
			0, "each row once: probes $probes, topk_scan $topk, little work_mem");
	}
}

# What a long scan remembers stays within work_mem; besides, it has buffers of a fixed size.
$node->safe_psql('postgres',
	'CREATE TABLE long AS SELECT i AS id, qt_vector(i, 16)::vector(16) AS v FROM generate_series(1, 40000) i;'
	  . 'CREATE INDEX long_idx ON long USING quiver_ivf (v vector_l2_ops)');
my ($count, $bytes) = split /\|/, (split /\n/, $node->safe_psql('postgres', q{
SET enable_seqscan = off; SET enable_sort = off; SET quiver.topk_scan = off;
SET quiver.iterative_scan = relaxed_order; SET work_mem = '64kB';
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM long ORDER BY v <-> qt_vector(1, 16)::vector;
CREATE FUNCTION drain(c refcursor) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint := 0;
	next int;
BEGIN
	LOOP
		FETCH c INTO next;
		EXIT WHEN NOT FOUND OR n = 38000;
		n := n + 1;
	END LOOP;
	RETURN n;
END $$;
SELECT drain('c'), (SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'quiver ivf scan');
}))[-1];
is($count, 38000, 'a long scan has gone far');
cmp_ok($bytes, '<', 1000 * 1024, 'and has taken little memory');

clean_log_ok($node);
$node->stop;
done_testing();
