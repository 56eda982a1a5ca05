# The Citus part of docs/sharding.md, where the installation has Citus.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use QuiverTest;

my $sharedir = `pg_config --sharedir`;
my $bindir = `pg_config --bindir`;
chomp($sharedir, $bindir);
# a copy of an installation has its files elsewhere, beside its programs
my $postgres = (grep { -x "$_/postgres" } split /:/, $ENV{PATH})[0] // $bindir;
(my $root = $postgres) =~ s/\Q$bindir\E$//;
plan skip_all => 'Citus is not installed'
  unless -f "$root$sharedir/extension/citus.control";

my $dims = 16;
my $conf = q{
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
wal_level = logical
};
my ($main, @workers) = map { new_node($_, conf => $conf) } qw(main worker1 worker2);
$_->safe_psql('postgres', 'CREATE EXTENSION citus') foreach $main, @workers;

sub sql { return $main->safe_psql('postgres', $_[0]); }

sql('SELECT citus_set_coordinator_host(' . join(', ', map { "'$_'" } $main->host, $main->port) . ')');
sql(sprintf "SELECT citus_add_node('%s', %d)", $_->host, $_->port) foreach @workers;
make_rows($main, table => 'everything', dims => $dims, first => 1, last => 4000);
make_queries($main, table => 'queries', dims => $dims, n => 12);
sql("SET citus.shard_count = 4; CREATE TABLE docs (id int, category int, v vector($dims));
	SELECT create_distributed_table('docs', 'id'); INSERT INTO docs SELECT * FROM everything;");

# Citus plans no lateral join with a local table: one statement a query, exact
# from the other table.
my @queries = split /\n/, sql('SELECT v FROM queries ORDER BY id');

sub recall_at
{
	my ($k, $set) = @_;
	my ($hits, $total) = (0, 0);
	foreach my $q (@queries)
	{
		my @exact =
		  split /\n/, sql("SELECT v <-> '$q' AS d FROM everything ORDER BY d LIMIT $k");
		my @found = split /\n/,
		  sql("BEGIN; SET LOCAL citus.propagate_set_commands = 'local'; $set
			PREPARE p(vector) AS SELECT v <-> \$1 AS d FROM docs ORDER BY v <-> \$1 LIMIT $k;
			EXECUTE p('$q'); COMMIT;");
		return "only " . @found . " rows" if @found != $k;
		$hits += grep { $_ <= $exact[-1] } @found;
		$total += $k;
	}
	return $hits / $total;
}

is(recall_at(10, ''), 1, 'exact without an index');
sql('CREATE INDEX docs_v ON docs USING hnsw (v vector_l2_ops)');
is( sql(q{SELECT count(*) FROM run_command_on_shards('docs',
		$$SELECT indexdef FROM pg_indexes WHERE tablename = '%s' AND indexdef LIKE '%% USING hnsw %%'$$)
		WHERE success AND result <> ''}),
	4, 'an index on every shard');
my $by_index = 'SET LOCAL enable_seqscan = off;';
my $plan = sql("BEGIN; SET LOCAL citus.propagate_set_commands = 'local'; $by_index
	EXPLAIN (VERBOSE, COSTS OFF) SELECT id, v <-> '$queries[0]' FROM docs ORDER BY v <-> '$queries[0]' LIMIT 10");
like($plan, qr/Query: SELECT id, \([^\n]* ORDER BY [^\n]* LIMIT /, 'the shards get ORDER BY and LIMIT');
like($plan, qr/Index Scan using docs_v_\d+ on/, 'and scan their indexes');
cmp_ok(recall_at(10, $by_index), '>=', 0.97, 'recall by index');
# The shards get LIMIT, so the top-k scan returns as many rows as that asks for. A plain index scan
# of hnsw stops at ef_search.
my $few = 'SET LOCAL hnsw.ef_search = 20; SET LOCAL hnsw.iterative_scan = off;';
cmp_ok(recall_at(500, "$by_index $few"), '>=', 0.9, 'LIMIT decides how many rows there are');
my $plain = "$by_index SET LOCAL quiver.topk_scan = off;";
like(recall_at(500, "$plain $few"), qr/^only \d+ rows$/, 'a plain scan of hnsw stops at ef_search');
cmp_ok(recall_at(500, "$plain SET LOCAL hnsw.iterative_scan = strict_order;"),
	'>=', 0.97, 'and goes on with iterative scans');
cmp_ok(recall_at(500, "$plain SET LOCAL hnsw.ef_search = 500;"), '>=', 0.97, 'or with a larger ef_search');

clean_log_ok($_) foreach $main, @workers;
done_testing();
