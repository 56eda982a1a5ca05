# No row that no path leads to: graphs that grow from nothing on uneven data, without any
# VACUUM; after rows were removed and others came; beside writers; after crashes and
# VACUUMs that were canceled. What quiver_check() says of anchors shows that it stays so
# whatever is inserted next. And of the rows that are lost, as earlier versions might lose
# them, quiver_check() tells, and VACUUM finds them.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverDamage;
use QuiverTest;
use Test::More;

my $node = new_node('main', no_checksums => 1);

# all edges count, and then anchors alone; whoever wants a scan of all rows gets them
sub anchored_ok
{
	my ($table, $name, $rows) = @_;
	my ($rc, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = debug1; SELECT quiver_check('${table}_idx')");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($rc, 0, "$name: sound") or diag($err);
	is($out, $rows, "$name: heap TIDs") if defined $rows;
	unlike($err, qr/cannot reach/, "$name: all nodes can be reached");
	like($err, qr/no anchors lead to 0 of \d+ nodes/, "$name: by anchors alone");
	return;
}

# Data that are hard on a graph, each row from its number.
$node->safe_psql('postgres', q{
-- a direction by chance, of a length between .2 and 5
CREATE FUNCTION norms(i int, dims int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT array_agg((qt_uniform(i * 1000::bigint + j, 1) + qt_uniform(i * 1000::bigint + j, 2) - 1)
		* (.2 + 4.8 * qt_uniform(i, 3)) ORDER BY j)::vector FROM generate_series(1, dims) j $$;
-- few or many numbers, small or large, most at the first places
CREATE FUNCTION sparse(i int) RETURNS sparsevec LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT ('{' || string_agg(at || ':' || x, ',' ORDER BY at) || '}/200')::sparsevec
		FROM (SELECT 1 + floor(200 * qt_uniform(i * 1000::bigint + j, 1) ^ 3)::int AS at,
				max(.1 + 1 / (.02 + qt_uniform(i * 1000::bigint + j, 2)))::real AS x
			FROM generate_series(1, 1 + floor(3 / (.05 + qt_uniform(i, 3)))::int) j GROUP BY 1) y $$;
-- one small cluster of 100 rows after another
CREATE FUNCTION clusters(i int, dims int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT array_agg(10 * qt_uniform(i / 100 * 1000::bigint + j, 1)
			+ .1 * qt_uniform(i * 1000::bigint + j, 2) ORDER BY j)::vector
		FROM generate_series(1, dims) j $$;
-- points in a line, each beside the one before
CREATE FUNCTION line(i int, dims int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT array_agg(sin(i * j / 700.0) ORDER BY j)::vector FROM generate_series(1, dims) j $$;
-- seven values again and again, and others that are nearly the same
CREATE FUNCTION equals(i int, dims int) RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT array_agg(CASE WHEN i % 3 = 0 THEN i % 7 ELSE 1e-4 * qt_uniform(i, 1) END
			+ (j = i % dims)::int ORDER BY j)::vector
		FROM generate_series(0, dims - 1) j $$;
});
my @cases = (
	[ 'norms', 'vector(16)', 'norms(%s, 16)', 'vector_l2_ops', '<->', 800 ],
	[ 'norms_ip', 'vector(16)', 'norms(%s, 16)', 'vector_ip_ops', '<#>', 800 ],
	[ 'norms_l1', 'halfvec(12)', 'norms(%s, 12)', 'halfvec_l1_ops', '<+>', 700 ],
	[ 'few', 'vector(4)', 'norms(%s, 4)', 'vector_l2_ops', '<->', 800 ],
	[ 'sparse_l2', 'sparsevec(200)', 'sparse(%s)', 'sparsevec_l2_ops', '<->', 700 ],
	[ 'sparse_ip', 'sparsevec(200)', 'sparse(%s)', 'sparsevec_ip_ops', '<#>', 700 ],
	[ 'sparse_cosine', 'sparsevec(200)', 'sparse(%s)', 'sparsevec_cosine_ops', '<=>', 700 ],
	[ 'clusters', 'vector(16)', 'clusters(%s, 16)', 'vector_l2_ops', '<->', 1500 ],
	[ 'line', 'vector(12)', 'line(%s, 12)', 'vector_l2_ops', '<->', 1000 ],
	[ 'equal', 'vector(12)', 'equals(%s, 12)', 'vector_l2_ops', '<->', 800 ],
	[ 'bits', 'bit(16)', 'binary_quantize(norms(%s, 16))::bit(16)', 'bit_hamming_ops', '<~>', 800 ],
	# few places: as few anchors as may be
	[ 'narrow', 'vector(16)', 'norms(%s, 16)', 'vector_l1_ops', '<+>', 800, 'm = 2, ef_construction = 4' ]);

foreach my $case (@cases)
{
	my ($t, $type, $value, $opclass, $op, $n, $options) = @$case;
	my $insert = sub {
		my ($numbers, $where) = @_;

		$node->safe_psql('postgres', "INSERT INTO $t SELECT i, " . sprintf($value, 'i')
			  . " FROM generate_series($numbers) i WHERE $where");
	};
	my %scan = (node => $node, table => $t, queries => $t, query => 1, op => $op,
		set => 'SET quiver.iterative_scan = relaxed_order; SET quiver.max_scan_tuples = 1000000;');

	$node->safe_psql('postgres', "CREATE TABLE $t (id int, v $type);"
		  . "CREATE INDEX ${t}_idx ON $t USING quiver_graph (v $opclass)" . ($options ? " WITH ($options)" : ''));
	$insert->("1, $n", 'true');
	anchored_ok($t, "$t, grown", $n);
	every_row_ok($n, "$t, grown", %scan);

	# more inserts than there were rows, in slots that VACUUM has freed and in others
	foreach my $round (0, 1)
	{
		$node->safe_psql('postgres', "DELETE FROM $t WHERE id % 3 = $round AND id > 1; VACUUM $t");
		my $left = sql_value($node, "SELECT count(*) FROM $t");

		anchored_ok($t, "$t, vacuumed $round", $left);
		every_row_ok($left, "$t, vacuumed $round", %scan);
		$insert->("2, $n", "i % 3 = $round");
		anchored_ok($t, "$t, filled $round", $n);
	}
	$insert->(sprintf('%d, %d', $n + 1, 2 * $n), 'true');
	anchored_ok($t, "$t, twice as many", 2 * $n);
	every_row_ok(2 * $n, "$t, twice as many", %scan);

	# inserts into what was built
	$node->safe_psql('postgres', "DELETE FROM $t WHERE id > $n; VACUUM $t; REINDEX INDEX ${t}_idx");
	anchored_ok($t, "$t, built", $n);
	$insert->(sprintf('%d, %d', $n + 1, 2 * $n), 'true');
	anchored_ok($t, "$t, built, twice as many", 2 * $n);
	$node->safe_psql('postgres', "DELETE FROM $t WHERE id < $n AND id > 1; VACUUM $t");
	anchored_ok($t, "$t, built and vacuumed", $n + 2);
	every_row_ok($n + 2, "$t, built and vacuumed", %scan);
	$node->safe_psql('postgres', "DROP TABLE $t");
}

# Several write at once, VACUUM is at work beside them or canceled, and the server crashes.
my %tables = (
	dense => [ 'vector(16)', 'vector_ip_ops', 'norms(%s, 16)' ],
	apart => [ 'sparsevec(200)', 'sparsevec_ip_ops', 'sparse(%s)' ]);
my $script = "\\set i random(1, 1000000)\n";
foreach my $t (sort keys %tables)
{
	my ($type, $opclass, $value) = @{ $tables{$t} };

	$node->safe_psql('postgres', "CREATE TABLE $t (id int, v $type); "
		  . "CREATE INDEX ${t}_idx ON $t USING quiver_graph (v $opclass)");
	$script .= "INSERT INTO $t VALUES (:i, " . sprintf($value, ':i') . '), (:i, ' . sprintf($value, ':i + 1') . ");\n"
	  . "DELETE FROM $t WHERE id % 7 = :i % 7 AND random() < .02;\n";
}
$node->safe_psql('postgres', 'CREATE SEQUENCE rounds');
$script .= "SELECT nextval('rounds');\n";
foreach my $round (1 .. 2)
{
	my $bg = background_pgbench($node, $script, clients => 4);
	my $goal = sql_value($node, 'SELECT last_value FROM rounds') + 150;

	foreach my $try (1 .. 500)
	{
		foreach my $t (sort keys %tables)
		{
			# what it was at when it was canceled differs
			my $timeout = $try % 3 ? (1, 3, 10, 30)[ $try % 4 ] : 0;

			$node->psql('postgres', "SET statement_timeout = $timeout; VACUUM $t");
		}
		last if sql_value($node, "SELECT last_value > $goal FROM rounds") eq 't';
	}
	if ($round % 2)
	{
		my $said = stop_background($bg);
		unlike($said, qr/ERROR/, "no errors, round $round");
	}
	else
	{
		$node->stop('immediate');
		stop_background($bg);
		$node->start;
	}
	# a row that did not commit, or that a VACUUM canceled has not removed yet, is nobody's:
	# a crash between a node and its anchor leaves one of each client that nothing leads to
	foreach my $t (sort keys %tables)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('${t}_idx')");

		is($rc, 0, "$t, round $round: sound") or diag($err);
		my $lost = $err =~ /cannot reach (\d+) of/ ? $1 : 0;
		cmp_ok($lost, '<=', $round % 2 ? 0 : 4, "$t, round $round: all nodes can be reached");
		$node->safe_psql('postgres', "VACUUM $t");
		anchored_ok($t, "$t, round $round, vacuumed", sql_value($node, "SELECT count(*) FROM $t"));
	}
}

# A VACUUM that is canceled when it has unlinked most nodes, those of rows that were rolled
# back: the next one gives new anchors all the same. (Few rows are gone then, or it would look
# at all nodes at its end.)
$node->safe_psql('postgres', q{
CREATE TABLE undone AS SELECT i AS id, norms(i, 16)::vector(16) AS v FROM generate_series(1, 1500) i;
CREATE INDEX undone_idx ON undone USING quiver_graph (v vector_l1_ops) WITH (ef_construction = 500);
VACUUM undone;
});
$node->safe_psql('postgres', "BEGIN; INSERT INTO undone "
	  . "SELECT -id, v + (SELECT array_agg(.01 * qt_uniform(id * 1000::bigint + j, $_) - .005"
	  . ' ORDER BY j)::vector FROM generate_series(1, 16) j) FROM undone; ROLLBACK') foreach 1 .. 4;
my $deleted = 0;
for (my $timeout = 200; !$deleted && $timeout < 10000; $timeout *= 2)
{
	$node->psql('postgres', "SET statement_timeout = $timeout; VACUUM (INDEX_CLEANUP ON) undone");
	$deleted = sql_value($node, "SELECT deleted_nodes FROM quiver_index_info('undone_idx')");
}
cmp_ok($deleted, '>', 0, 'a VACUUM was canceled');
$node->safe_psql('postgres', 'DELETE FROM undone WHERE id <= 60; VACUUM undone');
anchored_ok('undone', 'after a VACUUM that was canceled', 1440);

# Grown from nothing with few neighbors: rows are found by their own values. (A search may miss one
# that it could come to: one of 6,000, in one graph of twenty.)
$node->safe_psql('postgres', q{
CREATE TABLE grown (id int, v vector(48));
CREATE INDEX grown_idx ON grown USING quiver_graph (v vector_l2_ops) WITH (m = 4, ef_construction = 16);
INSERT INTO grown SELECT i, qt_vector(i, 48, 50) FROM generate_series(1, 6000) i;
});
check_ok($node, 'grown_idx', 6000, 'grown');
cmp_ok(sql_value($node, 'SET enable_seqscan = off; SET quiver.ef_search = 200; '
		  . 'SELECT count(*) FROM grown g WHERE g.id <> (SELECT id FROM grown ORDER BY v <-> g.v LIMIT 1)'),
	'<=', 6, 'rows are found by their own values');

# By inner product the few long ones of these are the neighbors of all; nobody can be the anchor of so
# many. Those that hang on them are, and entry points stay as few as ever, 2 sqrt(n) = 126.
$node->safe_psql('postgres', q{
CREATE TABLE hub (id int, v vector(16));
CREATE INDEX hub_idx ON hub USING quiver_graph (v vector_ip_ops);
INSERT INTO hub SELECT i, array_to_vector(ARRAY(SELECT random() * n FROM generate_series(1, 16)), 16, false)
  FROM (SELECT i, exp(2 * sqrt(-2 * ln(1 - random())) * cos(6.28 * random())) AS n FROM generate_series(1, 4000) i) x});
anchored_ok('hub', 'a few long vectors', 4000);
cmp_ok((index_facts($node, 'hub_idx', 'entry_points'))[0], '<', 400, 'a few long vectors: entry points');
$node->safe_psql('postgres', 'REINDEX INDEX hub_idx');
anchored_ok('hub', 'a few long vectors, built', 4000);
cmp_ok((index_facts($node, 'hub_idx', 'entry_points'))[0], '<', 400, 'a few long vectors, built: entry points');

# Nodes without any edges (src/graph/page/README.md: 56 bytes of a slot, then the neighbors'
# numbers): those that are no entry points are lost.
$node->safe_psql('postgres', q{
CREATE TABLE lost (id int, v bit(64));
CREATE INDEX lost_idx ON lost USING quiver_graph (v bit_hamming_ops);
INSERT INTO lost SELECT i, binary_quantize(norms(i, 64))::bit(64) FROM generate_series(1, 400) i;
CHECKPOINT});
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('lost_idx')");
my ($per_page, $degree) = index_facts($node, 'lost_idx', 'nodes_per_page', 'max_degree');
$node->stop;
my $image = read_image($file);
my $node_size = number_at(\$image, 32 + 32);
foreach my $block (grep { kind_at(\$image, $_) == 4 } 1 .. length($image) / 8192 - 1)
{
	put(\$image, $block * 8192 + 32 + $_ * $node_size + 56, "\xff" x (4 * $degree)) foreach 0 .. $per_page - 1;
}
write_image($file, $image);
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', "SELECT quiver_check('lost_idx')");
is("$rc $out", '0 400', 'without edges: sound');
like($err, qr/NOTICE:  a search cannot reach 3\d\d of 400 nodes of index "lost_idx"/,
	'rows that no search comes to are told of');
$node->safe_psql('postgres', 'DELETE FROM lost WHERE id = 1; VACUUM lost');
anchored_ok('lost', 'VACUUM finds them', 399);
every_row_ok(399, 'VACUUM finds them', node => $node, table => 'lost', queries => 'lost', query => 2, op => '<~>',
	set => 'SET quiver.iterative_scan = relaxed_order;');

# An edge to block 0, which is no page of nodes: VACUUM sees it, and searches for nothing.
$node->safe_psql('postgres', q{
CREATE TABLE zeros (id int, v vector(16));
CREATE INDEX zeros_idx ON zeros USING quiver_graph (v vector_l2_ops);
INSERT INTO zeros SELECT i, norms(i, 16) FROM generate_series(1, 1200) i;
CHECKPOINT});
$file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('zeros_idx')");
$node->stop;
$image = read_image($file);
foreach my $block (grep { kind_at(\$image, $_) == 4 } 1 .. length($image) / 8192 - 1)
{
	put(\$image, $block * 8192 + 32 + 56, "\0" x 4);
}
write_image($file, $image);
$node->start;
is(sql_value($node, 'VACUUM zeros; SELECT 1'), 1, 'VACUUM of an index with edges to block 0');
fails_like($node, "SELECT quiver_check('zeros_idx')", 'XX002', qr/index "zeros_idx" is damaged at block /,
	'quiver_check tells of them');

clean_log_ok($node);
$node->stop;
done_testing();
