# Damaged pages of posting lists raise errors that name index and block, and
# neither take the server down nor stop a process for good.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $node = new_node('ivf_damage', no_checksums => 1);
my ($dims, $rows) = (16, 1000);

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
$node->safe_psql('postgres', 'CREATE INDEX t_idx ON t USING quiver_ivf (v vector_l2_ops)');
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('t_idx')");
my $search = "SET enable_seqscan = off; SET quiver.recall = 1; SELECT count(*) FROM
	(SELECT id FROM t ORDER BY v <-> qt_vector(1, $dims)::vector LIMIT $rows) x";
my $insert = "INSERT INTO t SELECT i, 0, qt_vector(i, $dims)::vector FROM generate_series(20001, 20020) i";

$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop;

open my $in, '<:raw', $file or die "could not read $file: $!";
my $good = do { local $/; <$in> };
close $in;

# Where things are (src/ivf/page/README.md): 32 bytes of headers, then the data.
my $data = 32;
my $record_size = unpack('V', substr($good, $data + 32, 4));
my $records_per_page = unpack('v', substr($good, $data + 26, 2));
my @codes = grep { unpack('C', substr($good, $_ * 8192 + 26, 1)) == 7 } 0 .. length($good) / 8192 - 1;
my @records = grep { unpack('C', substr($good, $_ * 8192 + 26, 1)) == 8 } 0 .. length($good) / 8192 - 1;
cmp_ok(scalar(@codes), '>', 1, 'there are pages of codes');
cmp_ok(scalar(@records), '>', 1, 'there are pages of records');

# Run a statement on a damaged file: output and errors.
sub run_on
{
	my ($image, $sql) = @_;

	open my $out, '>:raw', $file or die "could not write $file: $!";
	print $out $image;
	close $out;
	$node->start;
	my $timed_out = 0;
	my ($rc, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nSET statement_timeout = '30s';\n$sql",
		timeout => 60, timed_out => \$timed_out);
	return ($timed_out, $stdout, $stderr);
}

sub stop
{
	my ($what) = @_;

	clean_log_ok($node, "$what: no server process crashed");
	$node->stop;
}

my $damaged = qr/ERROR:  XX002: index "t_idx" is damaged at block \d+/;

# pages of codes that name themselves for their records: not to be locked twice
{
	my $image = $good;

	substr($image, $_ * 8192 + $data + 24, 4) = pack('V', $_) foreach @codes;
	my ($timed_out, $stdout, $stderr) = run_on($image, $insert);
	ok(!$timed_out, 'records on the page itself, insert: ends');
	like($stderr, $damaged, 'records on the page itself, insert: noticed');
	BAIL_OUT('a process is stuck') if $timed_out;
	stop('records on the page itself');
}

# pages of records far beyond the end, when scans read ahead
{
	my $image = $good;

	substr($image, $_ * 8192 + $data + 24, 4) = pack('V', 0x7ffffff0) foreach @codes;
	my (undef, $stdout, $stderr) = run_on($image, $search);
	like($stderr, $damaged, 'records far beyond the end, search: noticed');
	stop('records far beyond the end');
}

# pages of a list whose positions no number can be
{
	my $image = $good;
	my $slots = 32 * unpack('v', substr($good, $data + 24, 2));

	substr($image, $_ * 8192 + $data + 8, 4) = pack('V', int(2**32 / $slots)) foreach @codes;
	my (undef, $stdout, $stderr) = run_on($image, $insert);
	like($stderr, $damaged, 'number of the page, insert: noticed');
	stop('number of the page');
}

# heap TIDs to the block that means "add one"
{
	my $image = $good;

	foreach my $block (@records)
	{
		foreach (0 .. $records_per_page - 1)
		{
			my $at = $block * 8192 + $data + 16 + $_ * $record_size + 12;

			substr($image, $at, 4) = "\xff" x 4 if substr($image, $at + 4, 2) ne "\0\0";
		}
	}
	my ($timed_out, $stdout, $stderr) =
	  run_on($image, "SELECT pg_relation_size('t') AS size \\gset\n$search;\nSELECT pg_relation_size('t') = :size");
	is($stdout, "0\nt", 'heap TIDs to no block, search: no row, and the table as it was');
	is($stderr, '', 'heap TIDs to no block, search: no error');
	stop('heap TIDs to no block');
}

# heap TIDs beyond the table's end
{
	my $image = $good;

	foreach my $block (@records)
	{
		foreach (0 .. $records_per_page - 1)
		{
			my $at = $block * 8192 + $data + 16 + $_ * $record_size + 12;

			substr($image, $at, 4) = pack('vv', 15, 16960) if substr($image, $at + 4, 2) ne "\0\0";
		}
	}
	foreach my $topk (qw(on off))
	{
		my (undef, undef, $stderr) = run_on($image, "SET quiver.topk_scan = $topk;\n$search");
		my $beyond = qr/It leads to row \(1000000,\d+\) of table "t", which has \d+ blocks\./;
		like($stderr,
			qr/ERROR:  XX002: index "t_idx" is damaged\nDETAIL:  $beyond/,
			"heap TIDs beyond the table's end, top-k scan $topk: noticed");
		stop("heap TIDs beyond the end of the table");
	}
}

done_testing();
