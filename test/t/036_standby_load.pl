# A standby under load: whenever the writers pause, it has the primary's rows and gives its
# answers, row by row, by every access method and form; promoted in the middle of the writing,
# it goes on.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverLoad;
use QuiverTest;
use Test::More;

my $primary = new_node('load_primary', init => { allows_streaming => 1 },
	conf => "wal_consistency_checking = 'all'\nfsync = off\nmax_wal_size = 400MB\n");

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('load_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# scans of the standby keep VACUUM's records waiting, not the other way
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;

create_load($primary, 400);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
same_load_ok($primary, $standby, 'at rest');

# Readers of the standby: by every index, no row twice.
my $readers = background_pgbench($standby, join('', map {
	my $asked = substr($_->{order}, 0, 1);
	"\\set q random(1, 12)\nSELECT 1 / (count(*) = count(DISTINCT id))::int FROM (SELECT id FROM load "
		  . "ORDER BY $_->{order} (SELECT $asked FROM load_queries WHERE id = -:q) LIMIT 50) x;\n"
} @LOAD_INDEXES), clients => 1, name => 'read');

my $load = start_load($primary);
my ($lists) = index_facts($primary, 'lists_coded', 'lists');
foreach my $pause (1 .. 3)
{
	wait_for_load($primary, 120, "pause $pause: there were writers");
	my $paused = pause_load($primary);

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	same_load_ok($primary, $standby, "pause $pause");
	sound_load_ok($_, "pause $pause, " . $_->name) foreach $primary, $standby;
	resume_load($paused);
}
foreach my $more (1 .. 20)
{
	last if (index_facts($primary, 'lists_coded', 'lists'))[0] > $lists;
	wait_for_load($primary, 60, "writers until lists are split, $more");
}
cmp_ok((index_facts($primary, 'lists_coded', 'lists'))[0], '>', $lists, 'lists were split');

# The primary dies while they write.
wait_for_load($primary, 40, 'there are writers');
unlike(stop_background($readers), qr/ERROR|FATAL/, 'no reader of the standby had an error');
more_load($primary, 300);
$primary->stop('immediate');
stop_background($_) foreach @$load;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
sound_load_ok($standby, 'promoted');
$load = start_load($standby);
wait_for_load($standby, 100, 'promoted: writers go on');
stop_load($load, 'promoted: no writer had an error');
wait_until_true($standby, "SELECT count(*) = 0 FROM pg_stat_activity "
	  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", 'all have ended');
$standby->safe_psql('postgres', 'DELETE FROM load WHERE id % 5 = 0; VACUUM (INDEX_CLEANUP ON) load');
sound_load_ok($standby, 'promoted, vacuumed', vacuumed => 1);
is(join(' ', map { (index_facts($standby, $_,
					'lost_pages'))[0] } qw(lists_coded lists_short lists_bits flat_coded flat_bits)), '0 0 0 0 0',
	'promoted, vacuumed: no page is lost');

unlike(slurp_file($standby->logfile), qr/inconsistent page/, 'replay gives the same pages');
clean_log_ok($_) foreach $primary, $standby;
$standby->stop;
done_testing();
