# Physical copies of a server at work: pg_basebackup while sessions write, and recovery to a
# point between their writes. Rows are found by every index, and writing goes on.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverLoad;
use QuiverTest;
use Test::More;

my $source = new_node('source', init => { allows_streaming => 1, has_archiving => 1 },
	conf => "wal_consistency_checking = 'all'\nfsync = off\nmax_wal_size = 400MB\n");

create_load($source, 400);
my $load = start_load($source);

# The copy is of no moment: pages are of before, during and after the checkpoint.
wait_for_load($source, 50, 'writers are at work');
more_load($source, 150);
$source->backup('during');
wait_for_load($source, 50, 'and go on');

# A point that is remembered, between writes.
my $paused = pause_load($source);
my $rows = load_rows($source);
my %answers = map { $_->{name} => load_answers($source, $_) } @LOAD_INDEXES;
$source->safe_psql('postgres', "SELECT pg_create_restore_point('between')");
resume_load($paused);
wait_for_load($source, 100, 'writers go on after the point');
stop_load($load, 'no writer had an error');
wait_until_true($source, "SELECT count(*) = 0 FROM pg_stat_activity "
	  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", 'all have ended');
$source->safe_psql('postgres', 'DELETE FROM load WHERE id % 4 = 0; VACUUM (INDEX_CLEANUP ON) load');
isnt(load_rows($source), $rows, 'there are other rows now');
my $last = sql_value($source, 'SELECT pg_walfile_name(pg_switch_wal())');
wait_until_true($source, "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver", 'all is archived');

# Work on a copy: what it has is found, then come writers and VACUUM.
sub goes_on
{
	my ($node, $what) = @_;

	sound_load_ok($node, $what);
	my $writers = start_load($node);
	wait_for_load($node, 60, "$what: writers go on");
	stop_load($writers, "$what: no writer had an error");
	wait_until_true($node, "SELECT count(*) = 0 FROM pg_stat_activity "
		  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", "$what: all have ended");
	$node->safe_psql('postgres', 'DELETE FROM load WHERE id % 5 = 0; VACUUM (INDEX_CLEANUP ON) load');
	sound_load_ok($node, "$what, vacuumed", vacuumed => 1);
	is(join(' ', map { (index_facts($node, $_,
						'lost_pages'))[0] } qw(lists_coded lists_short lists_bits flat_coded flat_bits)), '0 0 0 0 0',
		"$what, vacuumed: no page is lost");
	unlike(slurp_file($node->logfile), qr/inconsistent page/, "$what: replay gives the same pages");
	clean_log_ok($node, "$what: no server process crashed");
	$node->stop;
}

# the copy alone, as it was when the backup ended
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($source, 'during');
# its segments are not those of the source, but have their names
$copy->append_conf('postgresql.conf', "archive_mode = off\n");
$copy->start;
goes_on($copy, 'backup');

# that copy, and what was archived, up to the point
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($source, 'during', has_restoring => 1, standby => 0);
$restored->append_conf('postgresql.conf',
	"recovery_target_name = 'between'\nrecovery_target_action = 'promote'\narchive_mode = off\n");
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
like(slurp_file($restored->logfile), qr/recovery stopping at restore point "between"/, 'recovery ends at the point');
is(load_rows($restored), $rows, 'restored: the rows of that point');
is(load_answers($restored, $_), $answers{ $_->{name} }, "restored: $_->{name} gives its answers of then")
	foreach @LOAD_INDEXES;
goes_on($restored, 'restored');

clean_log_ok($source);
$source->stop;
done_testing();
