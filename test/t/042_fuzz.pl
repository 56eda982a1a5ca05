# The inputs of test/fuzz/corpus, all that ever crashed among them: none crashes, hangs, or
# raises an error that nobody should meet.

use strict;
use warnings FATAL => 'all';
use Cwd qw(abs_path);
use File::Basename;
use QuiverTest;
use Test::More;

my $fuzz = abs_path(dirname(__FILE__) . '/../fuzz');
my $node = new_node('fuzz', no_checksums => 1, conf => "shared_buffers = 128MB\nfsync = off\n");

is(system('make', '-s', '-C', $fuzz, "PG_CONFIG=$ENV{PG_CONFIG}"), 0, 'the driver can be built');
my ($rc, $out, $err) = $node->psql('postgres',
	"\\set driver $fuzz/quiver_fuzz\n\\set ON_ERROR_STOP 1\n\\i $fuzz/setup.sql");
is($rc, 0, "there are indexes to mutate: $err");
cmp_ok(sql_value($node, 'SELECT count(DISTINCT type) FROM fuzz_kinds'), '>', 5, 'of several types');

foreach my $target (qw(types pages sql))
{
	my @inputs = glob("$fuzz/corpus/$target/*");

	cmp_ok(scalar(@inputs), '>', 5, "$target: there are inputs");
	($rc, $out, $err) = $node->psql('postgres', "CALL quiver_fuzz_replay('$target', '$fuzz/corpus/$target')",
		timeout => 300);
	is($rc, 0, "$target: no finding");
	my $all = scalar(@inputs);
	like($err, qr/NOTICE:  $all inputs of $target without a finding/, "$target: all have run");
}
is(sql_value($node, 'SELECT count(*) FROM fuzz_kinds WHERE quiver_check(name_idx) >= 0'),
	sql_value($node, 'SELECT count(*) FROM fuzz_kinds'), 'the pages were put back');
clean_log_ok($node);
done_testing();
