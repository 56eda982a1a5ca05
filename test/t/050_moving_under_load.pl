# A table moves from pgvector's index to Quiver's beside it, and back, while clients search and
# write: no statement fails, and none waits for a lock on a relation.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverMoving;
use QuiverTest;
use Test::More;

need_pgvector();

my $root = new_installation();
install_quiver($root, 'ONLY_QUIVER=1');
# waits of 10 ms and more are in the log
my $node = new_stock_node('load', $root, conf => "log_lock_waits = on\ndeadlock_timeout = 10ms\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION vector;
	CREATE TABLE items (id bigserial PRIMARY KEY, embedding vector(32));
	INSERT INTO items (embedding) SELECT (SELECT array_agg((hashint8extended(i * 100 + j, 7) & 1023) / 1024.0)
		FROM generate_series(1, 32) j)::vector FROM generate_series(1, 5000) i;
	CREATE INDEX items_pgvector ON items USING hnsw (embedding vector_cosine_ops);
	ANALYZE items;
});

my $load = background_pgbench($node, q{
\set id random(1, 5000)
SELECT id FROM items ORDER BY embedding <=> (SELECT embedding FROM items WHERE id = :id) LIMIT 5;
INSERT INTO items (embedding) SELECT embedding FROM items WHERE id = :id;
UPDATE items SET embedding = embedding WHERE id = :id;
DELETE FROM items WHERE id = (SELECT max(id) FROM items WHERE id > 5000) AND :id % 2 = 0;
}, clients => 3);

my $last = 0;

# The clients are at work: two hundred rows more than the last time.
sub goes_on
{
	my ($what) = @_;

	ok($node->poll_query_until('postgres', "SELECT last_value > $last + 200 FROM items_id_seq"),
		"$what: the load goes on");
	$last = $node->safe_psql('postgres', 'SELECT last_value FROM items_id_seq');
	return;
}

# A statement that cannot run in a transaction with others, as a user would send it.
sub step
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	is($rc, 0, $sql) or diag($err);
	goes_on($sql);
	return $out;
}

sub plan_of
{
	return $node->safe_psql('postgres', 'SET enable_seqscan = off; EXPLAIN (COSTS OFF) '
		  . 'SELECT id FROM items ORDER BY embedding <=> (SELECT embedding FROM items WHERE id = 1) LIMIT 5');
}

$last = $node->safe_psql('postgres', 'SELECT last_value FROM items_id_seq');
goes_on('before');
like(plan_of(), qr/Index Scan using items_pgvector/, "pgvector's index is in use");
step('CREATE EXTENSION quiver');
step('CREATE INDEX CONCURRENTLY items_quiver ON items USING quiver_graph (embedding vector_cosine_ops)');
is(step("SELECT i.engine, r.recall > 0.7, r.searches FROM quiver_indexes i, quiver_recall(i.index_oid, 10, 20) r "
	  . "WHERE i.table_name = 'items' ORDER BY 1"),
	"pgvector|t|20\nquiver|t|20", 'recall of both');
step('DROP INDEX CONCURRENTLY items_pgvector');
like(plan_of(), qr/Quiver Top-K Scan.*using items_quiver/s, "Quiver's index is in use");
step('ALTER INDEX items_quiver RENAME TO items_embedding_idx');

# and back
step('CREATE INDEX CONCURRENTLY items_pgvector ON items USING hnsw (embedding vector_cosine_ops)');
step('DROP INDEX CONCURRENTLY items_embedding_idx');
like(plan_of(), qr/Index Scan using items_pgvector/, "pgvector's index is in use again");
step('DROP EXTENSION quiver');

my $said = stop_background($load);
unlike($said, qr/ERROR|FATAL|abort/, 'no statement of the clients failed');
my $log = slurp_file($node->logfile);
unlike($log, qr/still waiting for \w+ on relation/, 'nobody waited for a lock on a relation');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SELECT count(*) FROM items WHERE embedding IS NULL'), 0,
	'all rows are there');

clean_log_ok($node);
$node->stop;
done_testing();
