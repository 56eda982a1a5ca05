# Damaged posting lists give right answers or errors that name index and block. No
# statement crashes, hangs or asks for much memory.

use strict;
use warnings FATAL => 'all';
use QuiverDamage;
use QuiverTest;
use Test::More;

my $node = new_node('ivf_damage', no_checksums => 1, conf => "fsync = off\n");
my ($dims, $rows) = (16, 1200);

is(sql_value($node, 'SHOW data_checksums'), 'off', 'no checksum sees it first');
make_rows($node, table => 'coded', dims => $dims, first => 1, last => $rows);
$node->safe_psql('postgres', "CREATE TABLE plain AS SELECT id, category, binary_quantize(v)::bit($dims) "
	  . "AS v FROM coded;"
	  . "CREATE TABLE inserted AS SELECT id + 10000 AS id, category, v FROM coded WHERE id <= 300 UNION ALL "
	  . "SELECT 20000, 0, v FROM coded, generate_series(1, 200) WHERE id = 7");

# One table for each case, so that the server starts anew only once. All indexes of
# a form have the same pages.
my %form = (
	coded => {
		create => 'USING quiver_ivf (v) WITH (lists = 12)', op => '<->',
		query => "qt_vector(-1, $dims)::vector", value => 'v'
	},
	plain => {
		create => 'USING ivfflat (v bit_hamming_ops) WITH (lists = 12)', op => '<~>',
		query => "binary_quantize(qt_vector(-1, $dims)::vector)::bit($dims)",
		value => "binary_quantize(v)::bit($dims)"
	});
my @cases;

sub make_indexes
{
	my ($form, $n) = @_;
	my $sql = '';

	foreach my $i (map { "${form}_$_" } 1 .. $n)
	{
		$sql .= "CREATE TABLE $i AS TABLE $form; CREATE INDEX ${i}_idx ON $i $form{$form}->{create};";
	}
	return $sql;
}
my %count = (coded => 0, plain => 0);

# Pages by kind of one index, which says where things are: src/ivf/page/README.md.
$node->safe_psql('postgres', make_indexes('coded', 1) . make_indexes('plain', 1) . 'CHECKPOINT');
my $page = 8192;
my $data = 32;
foreach my $form (values %form)
{
	my $name = $form == $form{coded} ? 'coded' : 'plain';
	my $image = read_image($node->data_dir . '/' . sql_value($node, "SELECT pg_relation_filepath('${name}_1_idx')"));
	my $blocks = length($image) / $page;

	$form->{image} = $image;
	push @{ $form->{ { 1 => 'meta', 2 => 'mean', 6 => 'directory', 7 => 'list', 8 => 'records', 11 => 'rows',
				12 => 'row_directory' }->{ kind_at(\$image, $_) } } }, $_
	  foreach 0 .. $blocks - 1;
	is(number_at(\$image, $data), 0x51764976, "$name: the metapage is where we think");
	is(number_at(\$image, $data + 76), 12, "$name: its number of lists is where we think");
	is($form->{directory}[0], number_at(\$image, $data + 68), "$name: the directory is where we think");
	cmp_ok(scalar @{ $form->{list} }, '>=', 12, "$name: there are pages of lists");
	$form->{entry_size} = number_at(\$image, $data + 36);
}
ok(!$form{plain}->{records}, 'plain: no pages of records');

sub damage
{
	my ($form, $what, $change, %a) = @_;

	push @cases, { form => $form, what => "$form, $what", change => $change, number => ++$count{$form}, at_least => 1,
		%a };
}

sub all_pages
{
	my ($image, $pages, $at, $bytes) = @_;

	put($image, $_ * $page + $data + $at, ref $bytes ? $bytes->($_) : $bytes) foreach @$pages;
}

# whole pages: noise, zeros, noise below the headers
foreach my $name (qw(coded plain))
{
	my $f = $form{$name};

	foreach my $kind (grep { $f->{$_} } qw(meta mean directory list records rows row_directory))
	{
		my @pages = @{ $f->{$kind} };

		damage($name, "$kind, noise", sub { put($_[0], $_ * $page, noise($page, 42)) foreach @pages }, at_least => 3);
		damage($name, "$kind, zeros", sub { put($_[0], $_ * $page, "\0" x $page) foreach @pages }, at_least => 3);
		damage($name, "$kind, noise below the headers",
			sub { all_pages($_[0], \@pages, 0, sub { noise($page - $data, $_[0]) }) },
			at_least => $kind eq 'mean' ? 0 : 1);
		damage($name, "$kind, ones below the headers",
			sub { all_pages($_[0], \@pages, 0, "\xff" x ($page - $data)) }, at_least => 1);
	}
	# behind what says whose the page is: nobody can tell all of it
	damage($name, 'list, noise in the rows',
		sub { all_pages($_[0], $f->{list}, 200, sub { noise($page - $data - 200, $_[0]) }) });
	damage($name, 'list, every count 0', sub { all_pages($_[0], $f->{list}, 12, pack('v', 0)) });
	damage($name, 'list, every count 65535', sub { all_pages($_[0], $f->{list}, 12, pack('v', 65535)) }, at_least => 3);
	damage($name, 'list, all have raw codes', sub { all_pages($_[0], $f->{list}, 14, pack('v', 0x8000)) },
		at_least => $name eq 'plain' ? 1 : 0);	# any bits are a code
	damage($name, 'list, every number 0x7fffffff', sub { all_pages($_[0], $f->{list}, 8, pack('V', 0x7fffffff)) },
		at_least => 3);
	damage($name, 'list, every page follows itself',
		sub { put($_[0], $_ * $page + $data - 4, pack('V', $_)) foreach @{ $f->{list} } }, at_least => 3);
	damage($name, 'list, next page far away',
		sub { put($_[0], $_ * $page + $data - 4, pack('V', 0x7ffffff0)) foreach @{ $f->{list} } }, at_least => 3);
	damage($name, 'directory follows itself',
		sub { put($_[0], $_ * $page + $data - 4, pack('V', $_)) foreach @{ $f->{directory} } });
	damage($name, 'pages of lists rotated',
		sub {
			my @p = @{ $f->{list} };
			put($_[0], $p[$_] * $page, substr($f->{image}, $p[ ($_ + 1) % @p ] * $page, $page)) foreach 0 .. $#p;
		},
		at_least => 3);
	damage($name, 'metapage in a list\'s place',
		sub { put($_[0], $f->{list}[0] * $page, substr($f->{image}, 0, $page)) });
	damage($name, 'list in the directory\'s place',
		sub { put($_[0], $f->{directory}[0] * $page, substr($f->{image}, $f->{list}[0] * $page, $page)) },
		at_least => 3);
	damage($name, 'half of the file', sub { ${ $_[0] } = substr(${ $_[0] }, 0,
				int(length(${ $_[0] }) / $page / 2) * $page) });
	damage($name, 'no file to speak of', sub { ${ $_[0] } = '' });

	# entries of the directory: head, tail, scale, length
	foreach my $field ([ 'head', 0 ], [ 'tail', 4 ], [ 'generation', 8 ], [ 'group', 12 ], [ 'rows', 16 ],
		[ 'scale', 20 ], [ 'norm2', 24 ])
	{
		my ($what, $at) = @$field;
		foreach my $bytes (pack('V', 0x7fc00000), pack('V', 0xfffffffe))
		{
			damage($name, "${what} of lists " . unpack('H*', $bytes),
				sub { all_pages($_[0], [ $f->{directory}[0] ], 16 + $_ * $f->{entry_size} + $at,
						$bytes) foreach 0 .. 11 },
				at_least => $what =~ /generation|head/ ? 1 : 0);
		}
	}
	# fields of the metapage
	foreach my $field (
		[ 'magic', 0, 4 ], [ 'dims', 8, 4 ], [ 'D', 12, 4 ], [ 'form', 16, 1 ], [ 'metric', 18, 1 ], [ 'bits', 19, 2 ],
		[ 'B', 22, 2 ],
		[ 'blocks and records on a page', 24, 4 ], [ 'entries', 28, 2 ], [ 'sizes', 32, 12 ], [ 'seed', 48, 8 ],
		[ 'mean', 64, 4 ],
		[ 'directory', 68, 4 ], [ 'last page of the directory', 72, 4 ], [ 'lists', 76, 4 ], [ 'groups', 80, 4 ],
		[ 'rows', 88, 8 ], [ 'probes', 100, 20 ])
	{
		my ($what, $at, $size) = @$field;
		next if $name eq 'plain' && $what =~ /^(D|bits|B|blocks|mean|seed)/;
		damage($name, "metapage's $what", sub { put($_[0], $data + $at, "\xff" x $size) },
			at_least => $what =~ /seed|last page/ ? 0 : 1);
	}
}

# fields of the metapage that belong to the other form, or to another operator class
damage('coded', 'size of values in a metapage of codes', sub { put($_[0], $data + 40, pack('V', 0xffffffff)) },
	at_least => 5);
damage('coded', 'space of another metric',
	sub { put($_[0], $data + 17, pack('C', 3 - unpack('C', substr(${ $_[0] }, $data + 17, 1)))) },
	at_least => 5);
damage('plain', 'coordinates of codes in a metapage of values', sub { put($_[0], $data + 12, pack('V', 16)) },
	at_least => 5);

# pages of records that the pages of lists name
foreach my $what (qw(itself metapage far another's none))
{
	damage('coded', "records: $what",
		sub {
			my @records = @{ $form{coded}->{records} };
			foreach my $i (@{ $form{coded}->{list} })
			{
				my $to = { itself => $i, metapage => 0, far => 0x7ffffff0, "another's" => pop @records,
					none => 0xffffffff }->{$what};
				put($_[0], $i * $page + $data + 24, pack('V', $to));
			}
		});
}
damage('coded', 'pages of records rotated',
	sub {
		my @p = @{ $form{coded}->{records} };
		put($_[0], $p[$_] * $page, substr($form{coded}->{image}, $p[ ($_ + 1) % @p ] * $page, $page)) foreach 0 .. $#p;
	},
	at_least => 3);

# a metapage of pgvector's
damage('coded', "pgvector's metapage", sub { put($_[0], 24, pack('V', 0x14FF1A7)) }, at_least => 5, state => '55000',
	message => qr/was built by pgvector$/);

# Do all of it.
$node->safe_psql('postgres', join('', map { "DROP TABLE ${_}_1;" } keys %form)
	  . join('', map { make_indexes($_, $count{$_}) } keys %form) . 'CHECKPOINT');
my %file = map { split /\|/ } split /\n/, sql_value($node,
	"SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '^(coded|plain)_[0-9]+_idx\$'");
$node->stop;
foreach my $case (@cases)
{
	my $file = $node->data_dir . '/' . $file{"$case->{form}_$case->{number}_idx"};
	my $image = read_image($file);

	$case->{change}->(\$image);
	write_image($file, $image);
}
$node->start;
foreach my $case (@cases)
{
	my $t = "$case->{form}_$case->{number}";
	my $f = $form{ $case->{form} };
	my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET quiver.iterative_scan = relaxed_order; '
		  . 'SET ivfflat.iterative_scan = relaxed_order;';
	my @statements = (
		[ 'query', "$by_index SELECT count(*) FROM (SELECT id FROM $t ORDER BY v $f->{op} $f->{query} LIMIT 5) x" ],
		[ 'scan of all', "$by_index SELECT count(*) <= $rows FROM (SELECT id FROM $t "
			  . "ORDER BY v $f->{op} $f->{query}) x" ],
		[ 'check', "SELECT quiver_check('${t}_idx')" ],
		[ 'info', "SELECT quiver_index_info('${t}_idx')" ],
		[ 'insert', "INSERT INTO $t SELECT id, category, $f->{value} FROM inserted" ],
		[ 'vacuum', "DELETE FROM $t WHERE id % 2 = 0; VACUUM (INDEX_CLEANUP ON) $t" ],
		[ 'insert after vacuum', "INSERT INTO $t SELECT id, category, $f->{value} FROM inserted" ]);
	# noise in the server's own header is the server's to refuse
	is($node->psql('postgres', "VACUUM $t"), $case->{what} =~ /meta, noise$/ ? 3 : 0,
		"$case->{what}: can the table be vacuumed");
	my $seen = damage_noticed(node => $node, what => $case->{what}, index => "${t}_idx", statements => \@statements,
		state => $case->{state}, message => $case->{message}, answers => { 'scan of all' => 't' });

	cmp_ok($seen, '>=', $case->{at_least}, "$case->{what}: noticed by $seen statements");
}
clean_log_ok($node);

# all are repaired
is(sql_value($node, 'REINDEX DATABASE postgres; SELECT bool_and(quiver_check(oid) > 0) FROM pg_class '
		  . "WHERE relname ~ '^(coded|plain)_[0-9]+_idx\$'"), 't', 'REINDEX repairs them');
unlike(slurp_log(), qr/invalid memory alloc|out of memory/, 'no allocation failed');
clean_log_ok($node);
$node->stop;
done_testing();

sub slurp_log { return PostgreSQL::Test::Utils::slurp_file($node->logfile); }
