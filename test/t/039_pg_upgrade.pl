# pg_upgrade keeps indexes of every kind: the new server has their pages, and answers as the
# old one did; then rows come and go. tools/check_upgrade names the old installation.

use strict;
use warnings FATAL => 'all';
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use QuiverLoad;
use QuiverTest;
use Test::More;

my $old_bin = $ENV{QUIVER_OLD_BINDIR};

plan skip_all => 'needs an older server with Quiver: tools/check_upgrade OLD NEW' if !$old_bin;
die "there is no $old_bin/pg_ctl" if !-x "$old_bin/pg_ctl";

# Facts that stay: info, pages, rows, answers.
sub facts
{
	my ($node) = @_;
	my %facts = (rows => load_rows($node));

	foreach my $index (map { $_->{name} } @LOAD_INDEXES)
	{
		$facts{"check $index"} = sql_value($node, "SELECT quiver_check('$index')");
		$facts{"info $index"} = sql_value($node, "SELECT quiver_index_info('$index')");
		$facts{"options $index"} = sql_value($node,
			"SELECT reloptions, pg_get_indexdef(oid) FROM pg_class WHERE relname = '$index'");
	}
	$facts{"answers $_->{name}"} = load_answers($node, $_) foreach @LOAD_INDEXES;
	$facts{typmod} = sql_value($node, "SELECT string_agg(format_type(atttypid, atttypmod), ' ' ORDER BY attrelid, "
		  . "attnum) FROM pg_attribute WHERE attrelid IN ('load'::regclass, 'more'::regclass) AND attnum > 0");
	$facts{extensions} = sql_value($node, "SELECT string_agg(extname || ' ' || extversion, ' ' ORDER BY extname) "
		  . "FROM pg_extension");
	$facts{more} = sql_value($node, "SELECT string_agg(m::text, chr(10) ORDER BY id) FROM more m");
	$facts{view} = sql_value($node, 'SELECT string_agg(near::text, chr(10)) FROM near');
	return \%facts;
}

# the pages themselves
sub pages
{
	my ($node) = @_;
	my %path = map { split /\|/ } split /\n/,
	sql_value($node, "SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relname IN ('"
		  . join("', '", map { $_->{name} } @LOAD_INDEXES) . "')");

	$node->stop;
	return { map { $_ => slurp_file($node->data_dir . '/' . $path{$_}) } keys %path };
}

# neither of them with what the other may not have
my %options = (no_checksums => 1, conf => "fsync = off\n", init => { extra => [ '--locale=C', '--encoding=UTF8' ] });
my $old = new_node('old', %options, install_path => dirname($old_bin));
my $new = PostgreSQL::Test::Cluster->new('new');
my ($old_version, $new_version) = map { /(\d+[.\w]*)/ } `'$old_bin/postgres' --version`, `pg_config --version`;
my @extra = @{ $options{init}{extra} };
push @extra, '--no-data-checksums' if $new->pg_version >= 18;
$new->init(extra => \@extra);
$new->append_conf('postgresql.conf', "autovacuum = off\njit = off\nfsync = off\n");

# A minor release may write what one from before it cannot read, whatever is in the database.
my $dump = PostgreSQL::Test::Utils::tempdir() . '/plain';
$old->safe_psql('postgres', 'CREATE DATABASE plain');
$old->safe_psql('plain', 'CREATE TABLE plain (id int); ALTER TABLE plain ADD more int DEFAULT 1');
$new->start;
$new->safe_psql('postgres', 'CREATE DATABASE plain');
system_or_bail('pg_dump', '--schema-only', '-d', $old->connstr('plain'), '-f', $dump);
my ($rc, $out, $err) = $new->psql('plain', "\\i $dump");
plan skip_all => "PostgreSQL $new_version does not read what $old_version dumps of a table without Quiver: "
	  . ($err =~ /(ERROR: .*)/)[0]
  if $rc != 0;
$_->safe_psql('postgres', 'DROP DATABASE plain') foreach $old, $new;
$new->stop;

create_load($old, 600);
my $load = start_load($old);
wait_for_load($old, 200, 'writers are at work');
stop_load($load, 'no writer had an error');
wait_until_true($old, "SELECT count(*) = 0 FROM pg_stat_activity "
	  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", 'all have ended');
$old->safe_psql('postgres', q{
DELETE FROM load WHERE id % 4 = 0;
VACUUM (INDEX_CLEANUP ON) load;
DELETE FROM load WHERE id % 5 = 0;
CREATE VIEW near AS SELECT id, v <-> (SELECT v FROM load_queries WHERE id = -2) AS d FROM load ORDER BY 2 LIMIT 5;
CREATE TABLE more AS SELECT id, s FROM load;
ALTER TABLE more ADD near halfvec(2) DEFAULT '[1,2]' CHECK (near <-> '[1,2]' < 1), ADD loose vector;
CREATE TABLE parted (id int, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE INDEX parted_idx ON parted USING quiver_ivf (v) WITH (recall = 0.9);
CREATE AGGREGATE middle (vector) (sfunc = vector_accum, stype = float8[], finalfunc = vector_avg,
	combinefunc = vector_combine, initcond = '{0}');
INSERT INTO parted SELECT i, ARRAY[i, 1, 2] FROM generate_series(1, 50) i;
});
sound_load_ok($old, "PostgreSQL $old_version");
# pg_upgrade keeps statistics since 18 only, and what is searched first decides among equal rows
$old->safe_psql('postgres', 'ANALYZE');
my $before = facts($old);
my $old_pages = pages($old);

chdir PostgreSQL::Test::Utils::tempdir() or die "could not change directory: $!";
foreach my $step ([ '--check' ], [])
{
	$new->command_ok(
		[
			'pg_upgrade', '--no-sync', '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
			'--old-bindir', $old_bin, '--new-bindir', dirname((split /\n/, `which pg_upgrade`)[0]),
			'--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port, @$step
		],
		"pg_upgrade from $old_version to $new_version @$step");
}
$new->start;
$new->safe_psql('postgres', 'ANALYZE');

my $after = facts($new);
is($after->{$_}, $before->{$_}, "upgraded: $_") foreach sort keys %$before;
is(sql_value($new, q{SELECT middle(v) FROM parted}), '[25.5,1,2]', 'upgraded: an aggregate of the user');
check_ok($new, 'parted_1_v_idx', 50, 'upgraded: index of a partition');
my $new_pages = pages($new);
ok($new_pages->{$_} eq $old_pages->{$_}, "upgraded: the pages of $_ are the old ones") foreach sort keys %$old_pages;
$new->start;

sound_load_ok($new, 'upgraded');
$load = start_load($new);
wait_for_load($new, 200, 'upgraded: writers go on');
stop_load($load, 'upgraded: no writer had an error');
wait_until_true($new, "SELECT count(*) = 0 FROM pg_stat_activity "
	  . "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", 'upgraded: all have ended');
$new->safe_psql('postgres', 'DELETE FROM load WHERE id % 7 = 0; VACUUM (INDEX_CLEANUP ON) load');
sound_load_ok($new, 'upgraded, vacuumed', vacuumed => 1);
$new->safe_psql('postgres', 'REINDEX TABLE load');
sound_load_ok($new, 'upgraded, built anew', vacuumed => 1);

clean_log_ok($_) foreach $old, $new;
$new->stop;
done_testing();
