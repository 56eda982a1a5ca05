# Logical replication of a table with all four types, in text and in binary: the initial copy,
# then changes, also without a primary key; the subscriber's indexes have its rows and find them.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverLoad;
use QuiverTest;
use Test::More;

my $publisher = new_node('publisher', init => { allows_streaming => 'logical' },
	conf => "fsync = off\nlogical_decoding_work_mem = 64kB\n");
my $subscriber = new_node('subscriber', init => { allows_streaming => 'logical' }, conf => "fsync = off\n");

# Rows without an index on the publisher's side, all indexes on the subscriber's.
create_load($publisher, 600);
$publisher->safe_psql('postgres', 'DROP INDEX ' . join(', ', map { $_->{name} } @LOAD_INDEXES));
create_load($subscriber, 0);

# the same rows once more, known by all their columns: a table with no index, and on the
# subscriber with vector indexes only
foreach ($publisher, $subscriber)
{
	$_->safe_psql('postgres', 'CREATE TABLE whole AS TABLE load; ALTER TABLE whole REPLICA IDENTITY FULL');
	$_->safe_psql('postgres', 'CREATE TABLE wide (id int PRIMARY KEY, v vector(3000), note text)');
}
$subscriber->safe_psql('postgres', 'CREATE INDEX whole_graph ON whole USING hnsw (v vector_l2_ops); '
	  . 'CREATE INDEX whole_lists ON whole USING quiver_ivf (h halfvec_l2_ops);'
	  . 'CREATE INDEX wide_idx ON wide USING hnsw (v vector_l1_ops)');
$publisher->safe_psql('postgres',
	q{INSERT INTO wide SELECT i, qt_vector(i, 3000)::vector, 'new' FROM generate_series(1, 40) i});
is(sql_value($publisher, "SELECT pg_relation_size(reltoastrelid) > 0 FROM pg_class WHERE relname = 'wide'"), 't',
	'values are out of line');

my $whole =
	q{SET enable_indexscan = off; }
	  . q{SELECT count(*) || ' ' || md5(string_agg(w::text, E'\n' ORDER BY w::text)) FROM whole w};
my $wide = q{SELECT count(*) || ' ' || md5(string_agg(w::text, E'\n' ORDER BY id)) FROM wide w};
my $connection = $publisher->connstr . ' dbname=postgres';
$publisher->safe_psql('postgres', 'CREATE PUBLICATION all_of_it FOR TABLE load, whole, wide');

# What the publisher has is there, and found.
sub replicated_ok
{
	my ($what, $subscription) = @_;

	$publisher->wait_for_catchup($subscription);
	is(load_rows($subscriber), load_rows($publisher), "$what: the same rows");
	is(sql_value($subscriber, $whole), sql_value($publisher, $whole), "$what: the same rows without a key");
	is(sql_value($subscriber, $wide), sql_value($publisher, $wide), "$what: the same values out of line");
	$subscriber->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) $_") foreach qw(load whole wide);
	sound_load_ok($subscriber, $what, vacuumed => 1);
	check_ok($subscriber, $_, sql_value($publisher, 'SELECT count(*) FROM whole'), $what)
		foreach qw(whole_graph whole_lists);
	check_ok($subscriber, 'wide_idx', 40, $what);
}

foreach my $binary (qw(false true))
{
	my $subscription = "by_binary_$binary";
	my $what = $binary eq 'true' ? 'binary' : 'text';
	my $first = $binary eq 'true' ? 2000000 : 1000000;

	$subscriber->safe_psql('postgres', "TRUNCATE load, whole, wide; "
		  . "CREATE SUBSCRIPTION $subscription CONNECTION '$connection' PUBLICATION all_of_it "
		  . "WITH (binary = $binary, streaming = on)");
	$subscriber->wait_for_subscription_sync($publisher, $subscription);
	replicated_ok("$what: copied", $subscription);

	# small transactions, by sessions that vacuum, too
	my $load = start_load($publisher);
	wait_for_load($publisher, 200, "$what: there are writers");
	stop_load($load, "$what: no writer had an error");
	wait_until_true($publisher, "SELECT count(*) = 0 FROM pg_stat_activity "
		  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", "$what: all have ended");
	replicated_ok("$what: small transactions", $subscription);

	# Large ones, that are streamed before their end: one is rolled back, one in parts. Nulls, and
	# values out of line: those that do not change are not sent.
	$publisher->safe_psql('postgres', qq{
BEGIN; DELETE FROM load;
INSERT INTO load SELECT r.* FROM generate_series($first + 1, $first + 1000) i, load_row(i) r; ROLLBACK;
BEGIN;
INSERT INTO load SELECT r.* FROM generate_series($first + 1, $first + 400) i, load_row(i) r;
SAVEPOINT a;
INSERT INTO load SELECT r.* FROM generate_series($first + 1001, $first + 1400) i, load_row(i) r;
ROLLBACK TO a;
UPDATE load SET v = NULL, s = NULL WHERE id % 50 = 0;
UPDATE load SET h = (SELECT h FROM load_row(load.id + 7)) WHERE id % 5 = 0;
DELETE FROM load WHERE id % 11 = 0;
COMMIT;
UPDATE load SET v = (SELECT v FROM load_row(load.id)), s = (SELECT s FROM load_row(load.id)) WHERE v IS NULL;
INSERT INTO whole SELECT r.* FROM generate_series($first + 1, $first + 100) i, load_row(i) r;
INSERT INTO whole (id) VALUES (-1);
UPDATE whole SET h = (SELECT h FROM load_row(whole.id + 3)) WHERE id BETWEEN $first + 1 AND $first + 50;
UPDATE whole SET id = -2 WHERE v IS NULL;
DELETE FROM whole WHERE id % 10 = 3 OR v IS NULL;
UPDATE wide SET note = 'of $first' WHERE id % 2 = 0;
UPDATE wide SET v = qt_vector(id + $first, 3000)::vector WHERE id % 5 = 0;
});
	replicated_ok("$what: large transactions", $subscription);
	is(sql_value($publisher, "SELECT stream_txns > 0 FROM pg_stat_replication_slots WHERE slot_name = '$subscription'"),
		't', "$what: they were streamed");
	$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION $subscription");
}

unlike(slurp_file($subscriber->logfile), qr/ERROR:/, 'the subscriber had no error');
clean_log_ok($_) foreach $publisher, $subscriber;
$_->stop foreach $subscriber, $publisher;
done_testing();
