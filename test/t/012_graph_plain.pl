# Graphs of whole values under concurrent work, crashes and replay: values in
# the node (bit), on shared value pages (sparsevec) and over several pages.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $primary = new_node('primary', init => { allows_streaming => 1 },
	conf => "wal_consistency_checking = 'generic'\nautovacuum = off\n");

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# how a row's value comes from its number
my %tables = (
	inline => { op => '<~>', opclass => 'bit_hamming_ops', column => 'bit(64)', rows => 1500,
		value => 'binary_quantize(qt_vector(%1$s, 64)::vector)::bit(64)' },
	shared => { op => '<->', opclass => 'sparsevec_l2_ops', column => 'sparsevec(24)', rows => 1500,
		value => 'qt_vector(%1$s, 24)::vector::sparsevec' },
	chained => { op => '<+>', opclass => 'sparsevec_l1_ops', column => 'sparsevec(2600)', rows => 200,
		value => '(array_fill(qt_uniform(%1$s, 1)::real, ARRAY[2200])::vector || qt_vector(%1$s, '
		  . '400)::vector)::sparsevec' });

sub value { my ($t, $i) = @_; return sprintf($tables{$t}{value}, $i); }

sub insert
{
	my ($node, $t, $first, $last) = @_;
	$node->safe_psql('postgres',
		"INSERT INTO $t SELECT i, " . value($t, 'i') . " FROM generate_series(" . int($first) . ", " . int($last)
		  . ") i");
}

sub sound
{
	my ($node, $what, $rows_known) = @_;

	foreach my $t (sort keys %tables)
	{
		check_ok($node, "${t}_idx",
			$rows_known ? sql_value($node, "SELECT count(*) FROM $t") : undef, "$what, $t");
		recall_ok(0.95, "$what, $t", node => $node, table => $t, index => "${t}_idx",
			op => $tables{$t}{op}, queries => "${t}_q", ef => 80);
	}
}

foreach my $t (sort keys %tables)
{
	$primary->safe_psql('postgres', "CREATE TABLE $t (id int, v $tables{$t}{column});"
		  . "CREATE TABLE ${t}_q AS SELECT i AS id, " . value($t, '-i') . " AS v FROM generate_series(1, 20) i");
	insert($primary, $t, 1, $tables{$t}{rows});
	$primary->safe_psql('postgres', "CREATE INDEX ${t}_idx ON $t USING hnsw (v $tables{$t}{opclass})");
}
sound($primary, 'built', 1);

# inserts, deletes and scans from several sessions, with VACUUM between
my $script = q{
\set i random(1, 1000000)
\set j random(1, 4000)
};
$script .= "INSERT INTO $_ VALUES (:i, " . value($_, ':i') . "), (:i, " . value($_, '1 + :i % 7') . ");\n"
  . "DELETE FROM $_ WHERE id % 997 = :j % 997 AND ctid < '(10000,1)'::tid;\n"
  . "SELECT count(*) FROM (SELECT id FROM $_ ORDER BY v $tables{$_}{op} (SELECT v FROM ${_}_q WHERE id = 1 + :i % 20) "
  . "LIMIT 10) x;\n"
  foreach sort keys %tables;
$primary->safe_psql('postgres', 'CREATE SEQUENCE rounds');
$script .= "SELECT nextval('rounds');\n";

foreach my $round (1 .. 4)
{
	my $bg = background_pgbench($primary, $script, clients => 3);
	my $goal = sql_value($primary, 'SELECT last_value FROM rounds') + 25;

	foreach (1 .. 200)
	{
		$primary->safe_psql('postgres', "VACUUM $_") foreach sort keys %tables;
		last if sql_value($primary, "SELECT last_value > $goal FROM rounds") eq 't';
	}
	if ($round % 2 == 0)
	{
		$primary->stop('immediate');
		stop_background($bg);
		$primary->start;
		sound($primary, "crash, round $round");
	}
	else
	{
		my $said = stop_background($bg);
		unlike($said, qr/ERROR/, "no errors, round $round");
		sound($primary, "concurrent work, round $round");
	}
	$primary->safe_psql('postgres', "VACUUM $_") foreach sort keys %tables;
	sound($primary, "then VACUUM, round $round", 1);
}

# the standby has replayed it all, consistency checks included
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
sound($standby, 'standby', 1);

# emptied and filled again, space is used again
foreach my $t (sort keys %tables)
{
	$primary->safe_psql('postgres', "TRUNCATE $t");
	insert($primary, $t, 1, $tables{$t}{rows});
	my $bytes = index_bytes($primary, "${t}_idx");

	foreach my $round (1 .. 2)
	{
		$primary->safe_psql('postgres', "DELETE FROM $t; VACUUM $t");
		check_ok($primary, "${t}_idx", 0, "emptied, $t");
		insert($primary, $t, 1, $tables{$t}{rows});
	}
	cmp_ok(index_bytes($primary, "${t}_idx"), '<=', $bytes * 1.1, "space is used again, $t");
}
sound($primary, 'emptied and filled', 1);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
sound($standby, 'standby again', 1);

clean_log_ok($primary);
clean_log_ok($standby);
$standby->stop;
$primary->stop;
done_testing();
