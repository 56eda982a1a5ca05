# A damaged index raises errors that name index and block, and never takes the
# server down.

use strict;
use warnings FATAL => 'all';
use QuiverDamage;
use QuiverTest;
use Test::More;

my $node = new_node('damage', no_checksums => 1);
my ($dims, $rows) = (16, 800);

make_rows($node, table => 't', dims => $dims, first => 1, last => $rows);
$node->safe_psql('postgres',
	"INSERT INTO t SELECT 100000 + i, 0, qt_vector(1, $dims)::vector FROM generate_series(1, 300) i;"
	  . 'CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops)');
my $file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('t_idx')");
my $blocks = sql_value($node, "SELECT pg_relation_size('t_idx') / 8192");
my $per_page = sql_value($node, "SELECT nodes_per_page FROM quiver_index_info('t_idx')");

is(sql_value($node, 'SHOW data_checksums'), 'off', 'no checksum sees it first');
$node->safe_psql('postgres', 'CHECKPOINT');

my $good = read_image($file);

# Where things are (src/graph/page/README.md): 32 bytes of headers, then the data of
# the page; a slot has its 56 bytes and then its neighbors' numbers.
my $data = 32;
my $node_size = unpack('V', substr($good, $data + 32, 4));
my ($mean, $head) = unpack('V2', substr($good, $data + 56, 8));
my $entry_count = unpack('V', substr($good, $data + 68, 4));
is(unpack('V', substr($good, $data, 4)), 0x51764772, 'the metapage is where we think');
is(unpack('V', substr($good, $data + 8, 4)), $dims, 'its dimensions are where we think');
is(unpack('C', substr($good, $mean * 8192 + 26, 1)), 2, 'the mean is where we think');
is(unpack('C', substr($good, $head * 8192 + 26, 1)), 3, 'the page of entry points is where we think');
my $first = $head + 1;
$first++ while unpack('C', substr($good, $first * 8192 + 26, 1)) != 4;
is(unpack('C', substr($good, $first * 8192 + $data, 1)), 1, 'the first node is where we think');
is(unpack('C', substr($good, $first * 8192 + $data + $node_size, 1)), 1, 'so is the second');

# One table for each case, so that the server starts anew only once. All indexes have the
# same pages.
my @cases;

# A case: what it is called, and what it makes of the image of an index.
#   at_least (statements that notice it, 1); state and message of their error
sub damage
{
	my ($what, $change, %a) = @_;

	push @cases, { what => $what, change => $change, table => 't_' . @cases, at_least => 1, %a };
}

# The same bytes at one place of every slot of the first page of nodes, so that the searches come by.
sub first_nodes
{
	my ($image, $at, $bytes) = @_;

	put($image, $first * 8192 + $data + $_ * $node_size + $at, $bytes) foreach (0 .. $per_page - 1);
}

# whole pages: noise, zeros
my %pages = (metapage => 0, mean => $mean, 'entry points' => $head, 'node page' => $first,
	'last node page' => $blocks - 1);
foreach my $page (sort keys %pages)
{
	foreach my $kind (qw(noise zeros))
	{
		damage("$page, $kind",
			sub { put($_[0], $pages{$page} * 8192, $kind eq 'noise' ? noise(8192, 42) : "\0" x 8192) },
			at_least => 3);
	}
}

# noise below intact headers
foreach my $page (sort keys %pages)
{
	damage("$page, noise below the headers",
		sub { put($_[0], $pages{$page} * 8192 + $data, noise(8192 - $data, 7)) },
		at_least => $page eq 'mean' ? 0 : 1);
}

# every node page
damage('all node pages, noise below the headers',
	sub {
		my ($image) = @_;
		put($image, $_ * 8192 + $data, noise(8192 - $data, $_)) foreach ($first .. $blocks - 1);
	});
damage('all node pages, zeros',
	sub {
		my ($image) = @_;
		put($image, $_ * 8192, "\0" x 8192) foreach ($first .. $blocks - 1);
	});

# pages whose hole ends before they do: the server takes them as they are, and generic WAL
# would zero up to there
damage('all node pages, with another hole',
	sub {
		my ($image) = @_;
		put($image, $_ * 8192 + 12, pack('v2', 24, 4096)) foreach ($first .. $blocks - 1);
	},
	at_least => 5);

# the file cut off
damage('half of the file', sub { ${ $_[0] } = substr(${ $_[0] }, 0, int($blocks / 2) * 8192) });
damage('no file to speak of', sub { ${ $_[0] } = '' });

# one number that leads astray
my %numbers = (
	'another kind of page' => 0,
	'a block far beyond the end' => 0x7ffffff0,
	'a block just beyond the end' => $blocks * $per_page,
	'a number that none can be' => 0xfffffff0);
foreach my $kind (sort keys %numbers)
{
	my $number = pack('V', $numbers{$kind});

	damage("a neighbor's number, $kind", sub { first_nodes($_[0], 56, $number) });
	damage("the number of more heap TIDs, $kind", sub { first_nodes($_[0], 4, $number) });
	damage("entries, $kind", sub { put($_[0], $head * 8192 + $data + 8, $number x 32) });
}

# single fields: state, count of heap TIDs, factors
foreach my $case (
	[ 'state', 0, pack('C', 77) ],
	[ 'count of heap TIDs', 1, pack('C', 200) ],
	[ 'norm', 8, pack('f<', 9**9**9) ],
	[ 'scale', 12, pack('f<', -9**9**9) ],
	[ 'residual', 16, pack('V', 0x7fc00000) ])
{
	my ($name, $at, $bytes) = @$case;

	damage("node's $name", sub { first_nodes($_[0], $at, $bytes) });
}

# fields of the metapage
foreach my $case (
	[ 'magic', 0, 4 ], [ 'dims', 8, 4 ], [ 'pdim', 12, 4 ], [ 'form', 16, 1 ], [ 'own_bits', 19, 1 ],
	[ 'm', 20, 2 ], [ 'ef_construction', 22, 2 ], [ 'slots', 24, 2 ], [ 'code_bits', 26, 2 ],
	[ 'entry_bits', 28, 2 ], [ 'nodes_per_page', 30, 2 ], [ 'node_size', 32, 4 ], [ 'mean_block', 56, 4 ],
	[ 'entry_head', 60, 4 ], [ 'entry_tail', 64, 4 ], [ 'entry_count', 68, 4 ])
{
	my ($name, $at, $size) = @$case;
	foreach my $byte ($name =~ /^(dims|route_|mean)/ ? ("\0", "\xff") : "\xff")
	{
		damage("metapage's $name, " . unpack('H*', $byte), sub { put($_[0], $data + $at, $byte x $size) });
	}
}

# what the index says that it has measured
foreach my $at (104, 108, 112, 116, 132, 200)
{
	foreach my $bytes (pack('f<', 9**9**9), pack('f<', -1e9), pack('f<', 1e30), pack('f<', 4.29e9),
		pack('V', 0x7fc00000))
	{
		damage("metapage's measure at $at, " . unpack('H*', $bytes), sub { put($_[0], $data + $at, $bytes) });
	}
}

# a chain of heap TIDs that bites its tail
damage('a chain of heap TIDs that does not end',
	sub {
		my ($image) = @_;
		my $found = 0;

		foreach my $block ($first .. $blocks - 1)
		{
			foreach my $slot (0 .. $per_page - 1)
			{
				my $at = $block * 8192 + $data + $slot * $node_size;

				next if unpack('C', substr($$image, $at, 1)) != 3;
				put($image, $at + 4, pack('V', $block * $per_page + $slot));
				$found++;
			}
		}
		cmp_ok($found, '>', 0, 'there is a chain of heap TIDs');
	});

# pgvector's own index
damage("pgvector's metapage", sub { put($_[0], 24, pack('V', 0xA953A953)) }, state => '55000', at_least => 5,
	message => qr/^index "t_\d+_idx" was built by pgvector$/);

# pages of values, of a plain graph: what a writer must not believe
my %values = (
	'lines, none' => [ 0, "\0\0" ],
	'lines, far too many' => [ 0, "\xff\xff" ],
	'start of the pieces, outside' => [ 2, pack('v', 0xfff8) ],
	'start of the pieces, in the lines' => [ 2, "\x08\0" ],
	'bytes, none' => [ 4, "\0\0" ],
	'bytes, too many' => [ 4, "\xf8\xff" ],
	'offset of a piece, outside' => [ 8, pack('v', 0xfff8) ],
	'size of a piece, outside' => [ 10, pack('v', 0xfff0) ],
	'size of a piece, none' => [ 10, "\0\0" ]);
my %nodes = ("value's size, none" => "\0\0\0\0", "value's size, too large" => "\xff\xff\xff\xff");
foreach my $what (sort keys %values, sort keys %nodes)
{
	damage("value pages' $what",
		sub {
			my ($image) = @_;
			my @pages = grep { kind_at($image, $_) == 5 } (0 .. length($$image) / 8192 - 1);

			cmp_ok(scalar(@pages), '>', 1, 'there are pages of values');
			if (my $damage = $values{$what})
			{
				put($image, $_ * 8192 + $data + $damage->[0], $damage->[1]) foreach (@pages);
				return;
			}
			my $size = number_at($image, $data + 32);

			# after 32 neighbors: block, stamp and size of the value
			foreach my $page (grep { kind_at($image, $_) == 4 } (0 .. length($$image) / 8192 - 1))
			{
				for (my $slot = $page * 8192 + $data; $slot + $size <= ($page + 1) * 8192; $slot += $size)
				{
					next if substr($$image, $slot, 1) ne "\1";
					is(kind_at($image, number_at($image, $slot + 56 + 32 * 4)), 5, 'the reference is where we think')
					  if $slot == $page * 8192 + $data;
					put($image, $slot + 56 + 32 * 4 + 8, $nodes{$what});
				}
			}
		},
		values => 1, at_least => $nodes{$what} ? 1 : 2);
}

# Do all of it.
$node->safe_psql('postgres',
	'CREATE TABLE s AS SELECT i AS id, qt_vector(i, 24)::vector::sparsevec(24) AS v FROM generate_series(1, 500) i;'
	  . join('', map { my ($from, $ops) = $_->{values} ? qw(s sparsevec_l2_ops) : qw(t vector_l2_ops);
		"CREATE TABLE $_->{table} AS TABLE $from; CREATE INDEX $_->{table}_idx ON $_->{table} USING hnsw (v $ops);" }
		  @cases)
	  . 'CHECKPOINT');
my %file = map { split /\|/ } split /\n/, sql_value($node,
	"SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '^t_[0-9]+_idx\$'");
$node->stop;
foreach my $case (@cases)
{
	my $path = $node->data_dir . '/' . $file{"$case->{table}_idx"};
	my $image = read_image($path);

	is(length($image) / 8192, $blocks, "$case->{what}: the index is like the first") if !$case->{values};
	$case->{change}->(\$image);
	write_image($path, $image);
}
$node->start;
foreach my $case (@cases)
{
	my ($what, $t) = @$case{qw(what table)};
	my @statements = $case->{values} ? (
		[ 'insert', "INSERT INTO $t SELECT i, qt_vector(i, 24)::vector::sparsevec "
			  . "FROM generate_series(1001, 1060) i" ],
		[ 'query', "SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM $t "
			  . "ORDER BY v <-> qt_vector(1, 24)::vector::sparsevec LIMIT 50) x" ],
		[ 'check', "SELECT quiver_check('${t}_idx')" ],
		[ 'vacuum', "DELETE FROM $t WHERE id % 2 = 0; VACUUM $t" ]) : (
		[ 'query', "SET enable_seqscan = off; SELECT count(*) FROM (SELECT a.id FROM (SELECT * FROM $t "
			  . "WHERE id % 50 = 1) a, LATERAL (SELECT b.id FROM $t b ORDER BY b.v <-> a.v LIMIT 5) b) x" ],
		[ 'iterative query', 'SET enable_seqscan = off; SET hnsw.iterative_scan = relaxed_order; '
			  . 'SET hnsw.max_scan_tuples = 1000000;'
			  . "SELECT count(*) FROM (SELECT id FROM $t ORDER BY v <-> qt_vector(1, $dims)::vector LIMIT 5000) x" ],
		[ 'check', "SELECT quiver_check('${t}_idx')" ],
		[ 'info', "SELECT quiver_index_info('${t}_idx')" ],
		[ 'insert', "INSERT INTO $t SELECT i, 0, qt_vector(i, $dims)::vector "
			  . "FROM generate_series(200001, 200060) i" ],
		[ 'insert of a duplicate', "INSERT INTO $t SELECT i, 0, qt_vector(1, $dims)::vector "
			  . "FROM generate_series(1, 3) i" ],
		[ 'vacuum', "DELETE FROM $t WHERE id % 2 = 0; VACUUM $t" ],
		[ 'insert after vacuum', "INSERT INTO $t SELECT i, 0, qt_vector(i, $dims)::vector "
			  . "FROM generate_series(200101, 200160) i" ]);
	my $seen = damage_noticed(node => $node, what => $what, index => "${t}_idx", statements => \@statements,
		state => $case->{state}, message => $case->{message});

	cmp_ok($seen, '>=', $case->{at_least}, "$what: noticed by $seen statements");
	is($node->psql('postgres', "REINDEX INDEX ${t}_idx"), 0, "$what: REINDEX repairs it");
	check_ok($node, "${t}_idx", undef, "$what, repaired");
	clean_log_ok($node, "$what: no server process crashed");
}

# VACUUM measures an index by codes of which none has a distance
make_rows($node, table => 'large', dims => $dims, first => 1, last => 1100);
$node->safe_psql('postgres', 'CREATE INDEX large_idx ON large USING hnsw (v vector_l2_ops); '
	  . "INSERT INTO large SELECT i, 0, qt_vector(i, $dims)::vector FROM generate_series(1101, 2600) i");
$file = $node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('large_idx')");
$node->stop;
my $image = read_image($file);
put(\$image, number_at(\$image, $data + 56) * 8192 + $data, pack('f<', 9**9**9 / 9**9**9) x $dims);
write_image($file, $image);
$node->start;
$node->psql('postgres', 'DELETE FROM large WHERE id % 10 = 0; VACUUM large');
is(sql_value($node, 'SELECT 1'), 1, 'codes without distances: the server lives');
clean_log_ok($node, 'codes without distances: no server process crashed');

$node->stop;
done_testing();
