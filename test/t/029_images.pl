# Indexes that earlier code built answer as they did then, and live on: test/images/README.md.

use strict;
use warnings FATAL => 'all';
use File::Basename;
use File::Spec;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use QuiverDamage;
use QuiverTest;
use Test::More;

my $images = File::Spec->rel2abs(dirname(__FILE__) . '/../images');
my @names = map { basename($_, '.gz') } sort glob("$images/*.gz");

plan skip_all => 'images are of pages of little-endian machines' if pack('S', 1) ne pack('v', 1);

my $node = new_node('images', no_checksums => 1);

# Facts by what they are of: "check", "info|bytes", "answer|1".
my $fact = qr/^((?:(?:info|answer)\|)?\w+)\|(.*)$/;

# After some settings, the facts of an image are those stored, answers those of a plain scan; that
# there are others, too, since there is more to know of an index, is no matter.
sub facts_ok
{
	my ($name, $settings, $when) = @_;
	my ($rc, $out, $err) =
	  $node->psql('postgres',
		"\\set name $name\nLOAD 'quiver';\nSET quiver.topk_scan = off;\n$settings\n\\i $images/facts.sql");
	my %facts = map { /$fact/ } split /\n/, $out;
	my %stored = map { /$fact/ } split /\n/, read_image("$images/$name.facts");

	return fail("$name, $when: $err") if $rc != 0;
	delete $stored{code};
	cmp_ok(scalar(grep { /^answer/ } keys %stored), '>=', 12, "$name: there are stored answers");
	return is_deeply({ map { $_ => $facts{$_} } keys %stored }, \%stored, "$name, $when: all is as stored");
}

$node->safe_psql('postgres', "\\i $images/functions.sql");
cmp_ok(scalar(@names), '>=', 10, 'there are images');

# Of an image of posting lists: the metapage's version, and how many pages have raw codes.
sub raw_pages
{
	my ($image) = @_;
	my $raw = 0;

	return if number_at($image, 32) != 0x51764976;
	foreach my $block (1 .. length($$image) / 8192 - 1)
	{
		$raw++ if kind_at($image, $block) == 7 && unpack('v', substr($$image, $block * 8192 + 32 + 14, 2)) & 0x8000;
	}
	return (number_at($image, 36), $raw);
}

# Images with row pages, which can be searched; and those of earlier versions, which could have them.
my %with_rows = map { $_ => 1 } qw(graph_rows ivf_rows graph_included ivf_included);
my %could_have = map { $_ => 1 }
  qw(graph_l2 graph_ip graph_anchors ivf_sketches ivf_version_1 ivf_raw ivf_grown ivfflat);
my $by_rows = 'SET quiver.topk_scan = on; SET quiver.topk_way = row_pages;';
my $index_only = 'SET enable_seqscan = off; SET enable_sort = off;';

# the same tables, rows at the same places
my (%file, %before, %graphs);
foreach my $name (@names)
{
	$node->safe_psql('postgres', "\\set name $name\n\\i $images/names.sql\n\\i $images/$name.sql");
	$file{$name} = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('${name}_idx')");
}

# the images instead of their indexes
$node->stop;
foreach my $name (@names)
{
	my $image;

	gunzip("$images/$name.gz" => \$image) or die "$name: $GunzipError";
	die "$name is no image" if length($image) == 0 || length($image) % 8192 != 0;
	die "$name has more segments" if -e "$file{$name}.1";
	unlink "$file{$name}_fsm";
	isnt(read_image($file{$name}), $image, "$name: our own index is another");
	write_image($file{$name}, $image);
	$before{$name} = [ raw_pages(\$image) ];
	$graphs{ number_at(\$image, 36) } = 1 if number_at(\$image, 32) == 0x51764772;
}
$node->start;
is(join(' ', sort keys %graphs), '1 2 3', 'images of all versions of graphs');

my $advice = q{SELECT advice FROM quiver_indexes WHERE index_name = '%s_idx'};
my $reindex = 'REINDEX: an earlier version made it, without the row pages that conditions are answered by';

foreach my $name (@names)
{
	my $plan = sql_value($node, "$index_only EXPLAIN (COSTS OFF) SELECT * FROM ${name}_answers");
	like($plan, qr/Index Scan using ${name}_idx on/, "$name: answers come from the index");

	facts_ok($name, '', 'out of memory');
	facts_ok($name, '', 'in memory');
	facts_ok($name, 'SET quiver.simd_level = scalar;', 'without vector instructions');
	is(sql_value($node, sprintf($advice, $name)), $could_have{$name} ? $reindex : '', "$name: what to do");
	$plan = sql_value($node, "$index_only $by_rows EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM ${name}_answers");
	is($plan =~ /Strategies: row pages$/m ? 1 : 0,
		$with_rows{$name} // 0, "$name: row pages are read where there are some");
	facts_ok($name, $by_rows, 'by row pages') if $with_rows{$name};
}

# they take rows, give them up, and find what there is
sub changed_ok
{
	my ($name, $when, $settings) = @_;
	my $answers = "SELECT a.query || ' ' || i.id FROM ${name}_answers a, unnest(a.ids) WITH ORDINALITY AS i(id, n)";
	my @exact = split /\n/, sql_value($node, "SET enable_indexscan = off; $answers");
	my %found;

	$found{$_}++ foreach split /\n/, sql_value($node, "$index_only SET ivfflat.probes = 4; $settings $answers");
	my $hits = grep { ($found{$_} // 0) > 0 && $found{$_}-- } @exact;

	check_ok($node, "${name}_idx", sql_value($node, "SELECT count(*) FROM $name"), "$name, $when");
	cmp_ok($hits, '>=', 0.95 * @exact, "$name, $when: $hits of " . @exact . ' nearest rows');
}

foreach my $name (@names)
{
	my ($stored) = read_image("$images/$name.facts") =~ /^check\|(\d+)$/m;

	$node->safe_psql('postgres', qq{
INSERT INTO $name SELECT * FROM ${name}_source WHERE id BETWEEN 301 AND 400;
INSERT INTO $name SELECT t.* FROM (SELECT * FROM $name WHERE id = 17 LIMIT 1) t, generate_series(1, 8)});
	check_ok($node, "${name}_idx", $stored + 108, "$name, rows came");
	$node->safe_psql('postgres', "DELETE FROM $name WHERE id % 3 = 0; VACUUM (INDEX_CLEANUP ON) $name");
	changed_ok($name, 'changed', '');
}
# the commit of a last change writes out what VACUUM logged
$node->safe_psql('postgres', 'CREATE TABLE last ()');
$node->stop('immediate');
$node->start;
changed_ok($_, 'after a crash', '') foreach @names;
changed_ok($_, 'after a crash, by row pages', $by_rows) foreach sort keys %with_rows;
clean_log_ok($node);

# Rows were added to all.  Code that made the old ones may read them again: their codes are as it knows them.
$node->stop;
my (%versions, $measured);
foreach my $name (grep { @{ $before{$_} } } @names)
{
	my $image = read_image($file{$name});
	my ($was, $raw_then) = @{ $before{$name} };
	my ($version, $raw) = raw_pages(\$image);

	$versions{$version} = 1;
	is($version, $was, "$name: its version is $was, as it was");
	cmp_ok($raw_then, '>', 0, "$name: raw codes were read") if $version >= 3;
	cmp_ok($raw, $version >= 3 ? '>' : '==', 0, "$name: raw codes where version $version has them");
	# probes for few rows, and how many lists there were when those for many rows were measured
	next if number_at(\$image, 32 + 100) == 0;
	cmp_ok(number_at(\$image, 32 + 216), '>', 0, "$name: VACUUM has measured for many rows");
	$measured++;
}
cmp_ok($measured, '>', 0, "$measured images have lists that were measured");
is(join(' ', sort keys %versions), '1 2 3 4', 'images of all versions of posting lists');

# REINDEX does what the advice says
$node->start;
foreach my $name (sort keys %could_have)
{
	$node->safe_psql('postgres', "REINDEX INDEX ${name}_idx");
	is(sql_value($node, sprintf($advice, $name)), '', "$name: nothing to do after REINDEX");
	like(sql_value($node, "$index_only $by_rows EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM ${name}_answers"),
		qr/Strategies: row pages$/m, "$name: and there are row pages");
}
$node->stop;

done_testing();
