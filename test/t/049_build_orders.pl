# Indexes made in every order: before ANALYZE and after it, by pg_restore with two jobs, by one
# process and by several, and before the rows came. They are the same, and those that grew are
# nearly so. A build that was planned for other rows than it finds says so.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my ($dims, $rows) = (64, 8000);
my $node = new_node('orders',
	conf => "min_parallel_table_scan_size = 0\nmaintenance_work_mem = 128MB\nmax_parallel_maintenance_workers = 3\n");
my %with = (
	quiver_ivf => '',
	quiver_graph => '',
	ivfflat => 'WITH (lists = 100)',
	hnsw => '');

make_rows($node, table => 'source', dims => $dims, first => 1, last => $rows);
make_queries($node, table => 'queries', dims => $dims, n => 50);
my $file = $node->basedir . '/rows';
$node->safe_psql('postgres', "COPY source TO '$file' WITH (FORMAT binary)");

sub make_table
{
	my ($name) = @_;
	return "CREATE TABLE $name (id int, category int, v vector($dims))";
}

# An index of each kind, and a partial one on an eighth of the rows, which lie together.
sub make_indexes
{
	my ($name) = @_;
	return join(';', map {
		"CREATE INDEX ${name}_$_ ON $name USING $_ (v vector_l2_ops) $with{$_};"
		  . "CREATE INDEX ${name}_${_}_part ON $name USING $_ (v vector_l2_ops) $with{$_} "
		  . 'WHERE id BETWEEN 3001 AND 4000'
	} sort keys %with);
}

# All that a plan decides of the indexes of a table.
sub facts
{
	my ($name, $db) = @_;
	return sql_value($node, "SELECT substr(c.relname, length('$name') + 1), i.row_count, i.lists, i.probes, "
		  . "i.balance, i.entry_points, i.mean_degree, i.bytes FROM pg_class c, quiver_index_info(c.oid) i "
		  . "WHERE c.relname LIKE '${name}\\_%' AND c.relkind = 'i' ORDER BY c.relname", $db);
}

$node->safe_psql('postgres', make_table('loaded') . "; COPY loaded FROM '$file' WITH (FORMAT binary)");
my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; " . make_indexes('loaded'));
my @messages = $err =~ /(\w+):  index "\w+" was planned for \d+ rows, and has \d+/g;
is(scalar(@messages), 8, 'every build says for how many rows it was planned');
is(scalar(grep { $_ ne 'DEBUG' } @messages), 0, 'none of them has to be a notice');
$node->safe_psql('postgres', "ANALYZE loaded");
my $loaded = facts('loaded');
my ($lists) = index_facts($node, 'loaded_quiver_ivf', 'lists');
my ($part) = index_facts($node, 'loaded_quiver_ivf_part', 'lists');
cmp_ok(abs($lists / sqrt($rows) - 1), '<', 0.05, "$lists lists");
cmp_ok(abs($part / sqrt(1000) - 1), '<', 0.05, "$part lists of the partial index");

$node->safe_psql('postgres',
	make_table('analyzed') . "; COPY analyzed FROM '$file' WITH (FORMAT binary); ANALYZE analyzed; "
	  . make_indexes('analyzed'));
is(facts('analyzed'), $loaded, 'the same after ANALYZE');

$node->safe_psql('postgres', make_table('alone') . "; COPY alone FROM '$file' WITH (FORMAT binary);"
	  . 'SET max_parallel_maintenance_workers = 0; ' . make_indexes('alone'));
is(facts('alone'), $loaded, 'the same by one process');

my $dump = $node->basedir . '/dump';
command_ok([ 'pg_dump', '-Fd', '-f', $dump, '-t', 'loaded', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->safe_psql('restored', 'CREATE EXTENSION quiver CASCADE');
command_ok([ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $node->connstr('restored'), $dump ], 'pg_restore -j 2');
is(facts('loaded', 'restored'), $loaded, 'the same by pg_restore -j 2');

# Indexes of the empty table grow, and VACUUM keeps them up.  A graph that is built from rows has
# smaller nodes, since these rows have few intrinsic dimensions.
my %larger = (quiver_ivf => 0.1, quiver_graph => 0.3);
foreach my $am (sort keys %larger)
{
	$node->safe_psql('postgres', make_table('grown')
		  . "; CREATE INDEX grown_$am ON grown USING $am (v vector_l2_ops);"
		  . "COPY grown FROM '$file' WITH (FORMAT binary)");
	$node->safe_psql('postgres', 'VACUUM ANALYZE grown');
	# the planner has one index to choose
	$node->safe_psql('postgres', "UPDATE pg_index SET indisvalid = (indexrelid = 'loaded_$am'::regclass) "
		  . "WHERE indrelid = 'loaded'::regclass");
	my ($grown, $built) = map {
		recall(node => $node, table => $_, index => "${_}_$am", queries => 'queries', op => '<->',
			set => 'RESET quiver.ef_search;')
	} qw(grown loaded);
	cmp_ok($grown, '>=', $built * 0.9, "$am: recall $grown, built $built");
	($grown, $built) = map { index_facts($node, "${_}_$am", 'bytes') } qw(grown loaded);
	cmp_ok(abs($grown / $built - 1), '<', $larger{$am}, "$am: $grown bytes, built $built");
	if ($am eq 'quiver_ivf')
	{
		my %read = map {
			$_ => sql_value($node, 'SET enable_seqscan = off; SET enable_sort = off; SET quiver.probes = 20;'
				  . "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT id FROM $_ "
				  . "ORDER BY v <-> (SELECT v FROM queries WHERE id = 1) LIMIT 10") =~ /Lists Read: (\d+)/
		} qw(grown loaded);

		is($read{grown}, 20, "$am, grown: searches read the lists that are asked for");
		is($read{loaded}, 20, "$am, built: searches read the lists that are asked for");
	}
	check_ok($node, "grown_$am", $rows, "$am, grown");
	$node->safe_psql('postgres', 'DROP TABLE grown');
}

# A build indexes dead rows that others still see, but does not plan for them.
$node->safe_psql('postgres', make_table('updated') . "; COPY updated FROM '$file' WITH (FORMAT binary)");
my $old = new_session($node);
session_sql($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM updated');
$node->safe_psql('postgres', 'CREATE INDEX ON updated (category); UPDATE updated SET category = category + 1');
foreach my $am (sort keys %with)
{
	($rc, $out, $err) =
	  $node->psql('postgres', "CREATE INDEX updated_$am ON updated USING $am (v vector_l2_ops) $with{$am}");
	like($err, qr/NOTICE:  index "updated_$am" was planned for [78]\d{3} rows, and has 16000/, "$am: a notice");
}
end_session($old);
clean_log_ok($node);
done_testing();
