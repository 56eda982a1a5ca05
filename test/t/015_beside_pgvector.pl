# Extension quiver in a database whose extension vector is a stock pgvector: both
# libraries in one process, loaded in either order.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

need_pgvector();

my $root = new_installation();
my $control = slurp_file(installed_file($root, 'vector.control'));
my $library = slurp_file(installed_file($root, 'library vector'));

install_quiver($root, 'ONLY_QUIVER=1');
is(slurp_file(installed_file($root, 'vector.control')), $control, "pgvector's control file is as it was");
is(slurp_file(installed_file($root, 'library vector')), $library, "pgvector's library is as it was");
is(join(' ', glob(installed_file($root, 'vector--*0.8.100*'))), '', 'no scripts of ours for vector');

my $node = new_stock_node('both', $root);
fill_database($node, 'home');
my $catalog = catalog($node, 'home');
my $expected = contents($node, 'home');
$node->safe_psql('home', 'CREATE EXTENSION quiver');
is($node->safe_psql('home', "SELECT DISTINCT probin FROM pg_proc WHERE proname IN ('vector_in', 'hnswhandler') UNION "
		  . "SELECT amname FROM pg_am WHERE amname ~ 'quiver_graph'"),
	"\$libdir/vector\nquiver_graph", 'vector is a stock pgvector');

# Everything by our access methods, on pgvector's types.
my @ours = (operator_classes('quiver_graph', '_q'), operator_classes('quiver_ivf', '_qi'));
$node->safe_psql('home', join '', map { index_definition($_) } @ours);
foreach (@ours)
{
	finds_nearest_ok($node, 'home', $_, "$_->{name}");
	next if $_->{am} ne 'quiver_graph';
	is($node->safe_psql('home', "SELECT quiver_check('$_->{name}') > 240"), 't', "quiver_check of $_->{name}");
}
finds_nearest_ok($node, 'home', $_, "$_->{name}") foreach operator_classes('hnsw', ''),
	operator_classes('ivfflat', '_lists');
$node->safe_psql('home', 'INSERT INTO items SELECT id + 5000, v, h, s, b FROM items WHERE id < 60; '
	  . 'DELETE FROM items WHERE id % 2 = 1 AND id BETWEEN 100 AND 199; VACUUM items');
foreach (@ours)
{
	finds_nearest_ok($node, 'home', $_, "$_->{name}, after INSERT and VACUUM");
	next if $_->{am} ne 'quiver_graph';
	is($node->safe_psql('home', "SELECT quiver_check('$_->{name}') BETWEEN 250 AND 290"), 't',
		"quiver_check of $_->{name}, after INSERT and VACUUM");
}
$node->safe_psql('home', 'DELETE FROM items WHERE id > 5000; INSERT INTO items '
	  . 'SELECT i, c::vector, c::halfvec, ((c::vector - c::vector) || c::vector)::sparsevec, binary_quantize(c::vector)'
	  . ' FROM generate_series(101, 199, 2) i, coordinates(i, 12) c');

# What shows how indexes do.
is($node->safe_psql('home', 'SELECT engine, count(*) > 3, bool_and(bytes > 0), bool_and(valid) FROM quiver_indexes '
		  . 'GROUP BY 1 ORDER BY 1'),
	"pgvector|t|t|t\nquiver|t|t|t", 'quiver_indexes has indexes of both');
is($node->safe_psql('home', "SELECT DISTINCT engine, access_method, ef_search, probes > 0 FROM quiver_indexes "
		  . "WHERE access_method ~ 'hnsw|graph' ORDER BY 1"),
	"pgvector|hnsw|40|\nquiver|quiver_graph|40|", 'and how both are set');
is($node->safe_psql('home', "SELECT recall > 0.8, searches FROM quiver_recall('items_vector_cosine_q', 5, 20)"), 't|20',
	'quiver_recall');
is($node->safe_psql('home', "SELECT dimensions, rows > 200 FROM quiver_estimate('items', 'v', 'quiver_ivf')"), '12|t',
	'quiver_estimate');
# pgvector's index as it is used: with few candidates it finds less
is($node->safe_psql('home', "SELECT recall > 0.9, recall_by_rank > 0.9, searches, index_ms > 0, exact_ms > 0 "
		  . "FROM quiver_recall('items_vector_cosine', 5, 20)"),
	't|t|20|t|t', "quiver_recall of pgvector's hnsw");
is($node->safe_psql('home', "SET ivfflat.probes = 1; "
		  . "SELECT recall FROM quiver_recall('items_vector_cosine_lists', 5, 20) \\gset one_\n"
		  . "SET ivfflat.probes = 100; SELECT :one_recall < recall, recall "
		  . "FROM quiver_recall('items_vector_cosine_lists', 5, 20)"),
	't|1', "and of pgvector's ivfflat, as it is set");
is($node->safe_psql('home', 'SELECT i.engine, count(*) > 3, min(r.searches) FROM quiver_indexes i, '
		  . "quiver_recall(i.index_oid, 5, 10) r WHERE i.table_name = 'items' GROUP BY 1 ORDER BY 1"),
	"pgvector|t|10\nquiver|t|10", 'of all indexes of a table');
is(join('', map { finds_exactly($_) } grep { $_->{am} eq 'hnsw' } operator_classes('hnsw', '')), '',
	'of all operator classes of pgvector');
fails_like_home("SELECT quiver_$_('items_vector_cosine')", qr/"items_vector_cosine" is an index of pgvector/)
	foreach qw(check prewarm index_info estimate);
fails_like_home("SELECT quiver_recall('items_pkey')", qr/"items_pkey" is not an index of Quiver/);

# What is wrong, if recall at many candidates is not about 1.
sub finds_exactly
{
	my ($opclass) = @_;
	my $recall = $node->safe_psql('home',
		"SET hnsw.ef_search = 400; SELECT recall FROM quiver_recall('$opclass->{name}', 5, 20)");
	return $recall >= 0.97 ? '' : "$opclass->{name}: $recall\n";
}

sub fails_like_home
{
	my ($sql, $message) = @_;
	my ($rc, $out, $err) = $node->psql('home', $sql);
	ok($rc != 0 && $err =~ $message, "$sql: an error");
	return;
}

# Both orders, with settings of both before and after.
my $search = 'SELECT id FROM items ORDER BY v <=> array_fill(5, ARRAY[12])::vector LIMIT 3';
my %load = (vector => "SELECT '[1,2]'::vector", quiver => 'SELECT quiver_version() <> \'\'');
foreach my $order ([qw(vector quiver)], [qw(quiver vector)])
{
	my $name = join ' before ', @$order;
	my $session = new_session($node, 'home');
	my $ask = sub { return session_sql($session, $_[0]) };

	$ask->('SET hnsw.ef_search = 55; SET quiver.ef_search = 66; SET ivfflat.probes = 3; SET enable_seqscan = off; '
		  . 'SET enable_sort = off');
	unlike($ask->($load{$_}), qr/ERROR/, "$name: $_ loads") foreach @$order;
	is($ask->('SHOW hnsw.ef_search') . $ask->('SHOW quiver.ef_search') . $ask->('SHOW ivfflat.probes'), '55663',
		"$name: settings");
	like($ask->('SET hnsw.ef_search = 1001'), qr/1001 is outside the valid range/, "$name: pgvector's range");
	like($ask->('SET hnsw.bogus = 1'), qr/invalid configuration parameter name "hnsw.bogus"/,
		"$name: pgvector's prefix");
	like($ask->('SET quiver.bogus = 1'), qr/invalid configuration parameter name "quiver.bogus"/, "$name: our prefix");
	# by a sequential scan: with these settings the planner takes ivfflat, which is approximate
	my $exact = $ask->("BEGIN; SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = on; "
		  . "SET LOCAL enable_sort = on; $search; ROLLBACK");
	foreach my $am (qw(hnsw quiver_graph ivfflat quiver_ivf))
	{
		# built in this process, and the only one that orders by this operator
		$ask->("BEGIN; DROP INDEX items_vector_cosine, items_vector_cosine_q, items_vector_cosine_qi, "
			  . "items_vector_cosine_lists; CREATE INDEX new ON items USING $am (v vector_cosine_ops)");
		like($ask->("EXPLAIN (COSTS OFF) $search"), qr/Index Scan using new/, "$name: plan with $am");
		is($ask->('SET LOCAL ivfflat.probes = 100; SET LOCAL quiver.probes = 1000; ' . $search), $exact,
			"$name: a search with $am");
		$ask->('ROLLBACK');
	}
	end_session($session);
}

# In a parallel worker, and preloaded.
my $parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
my $both = "SELECT count(*) FROM items a, LATERAL (SELECT id FROM items b ORDER BY b.v <=> a.v "
	  . "LIMIT 1) x, quiver_version() WHERE a.v <-> a.v = 0 AND a.v IS NOT NULL";
my $count = $node->safe_psql('home', $both);
cmp_ok($count, '>', 240, 'a query with both');
foreach my $first (sort keys %load)
{
	like($node->safe_psql('home', "SET quiver.ef_search = 33; SET hnsw.ef_search = 44; $load{$first}; "
			  . "SET $parallel = on; $both"),
		qr/\n$count\z/, "in a parallel worker, $first loaded first");
}
foreach my $preload ('session_preload_libraries', 'shared_preload_libraries')
{
	foreach my $libraries ('quiver, vector', 'vector, quiver', 'quiver')
	{
		$node->append_conf('postgresql.conf', "$preload = '$libraries'");
		$node->restart;
		is($node->safe_psql('home', "SET hnsw.ef_search = 44; SET $parallel = on; $both; SHOW hnsw.ef_search"),
			"$count\n44", "$preload = $libraries");
	}
	$node->append_conf('postgresql.conf', "$preload = ''");
}
$node->restart;

# Nothing of pgvector's has changed; and all of it moves to Quiver's server.
same_lines_ok(catalog($node, 'home'), $catalog, "pgvector's catalog is as it was");
$node->safe_psql('home', 'DROP INDEX ' . join ', ', map { $_->{name} } @ours);
same_lines_ok(contents($node, 'home'), $expected, 'the database is as it was');

clean_log_ok($node);
$node->stop;
done_testing();
