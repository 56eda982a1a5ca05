# Damaging the files of indexes, and what statements may make of it: a right
# answer, or an error that names index and block. Servers must have no checksums,
# which would see it first.
package QuiverDamage;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Test::More;

our @EXPORT = qw(
  read_image
  write_image
  noise
  put
  number_at
  kind_at
  damage_noticed
);

sub read_image
{
	my ($file) = @_;

	open my $in, '<:raw', $file or die "could not read $file: $!";
	my $image = do { local $/; <$in> };
	close $in;
	return $image;
}

sub write_image
{
	my ($file, $image) = @_;

	open my $out, '>:raw', $file or die "could not write $file: $!";
	print $out $image;
	close $out or die "could not write $file: $!";
	return;
}

# Deterministic noise.
sub noise
{
	my ($bytes, $seed) = @_;
	my $out = '';

	while (length($out) < $bytes)
	{
		$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
		$out .= pack('C', ($seed >> 16) & 255);
	}
	return $out;
}

sub put
{
	my ($image, $at, $bytes) = @_;
	substr($$image, $at, length($bytes)) = $bytes;
	return;
}

# 32 bits
sub number_at
{
	my ($image, $at) = @_;
	return unpack('V', substr($$image, $at, 4));
}

# The kind of a page: src/storage/README.md.
sub kind_at
{
	my ($image, $block) = @_;
	return unpack('C', substr($$image, $block * 8192 + 26, 1));
}

# Run statements, [ name, SQL ], on a damaged index; each is right or fails with
# XX002, the index's name, a block and a hint. Returns how many failed.
#   node, what, index, statements; state and message of the error; answers (what a
#   statement that does not fail prints, by its name)
sub damage_noticed
{
	my (%a) = @_;
	my $seen = 0;
	my %statements = map { $_->[0] => 1 } @{ $a{statements} };

	exists $statements{$_} or die "no statement $_" foreach keys %{ $a{answers} // {} };
	foreach (@{ $a{statements} })
	{
		my ($name, $sql) = @$_;
		my $timed_out = 0;
		my ($rc, $out, $err) =
		  $a{node}->psql('postgres', "\\set VERBOSITY verbose\nSET statement_timeout = '30s';\n$sql",
			timeout => 45, timed_out => \$timed_out);

		$rc //= -1;
		if ($timed_out)
		{
			# the server may not even stop
			BAIL_OUT("$a{what}, $name: does not end");
		}
		elsif ($rc == 0)
		{
			my $answer = ($a{answers} // {})->{$name};

			if (defined $answer)
			{
				is($out, $answer, "$a{what}, $name: no damage met, and the answer is right");
			}
			else
			{
				pass("$a{what}, $name: no damage met");
			}
		}
		else
		{
			$seen++;
			my ($state, $message) = $err =~ /ERROR:  (\w+): (.*)/;
			my $ok = defined $state && $state eq ($a{state} // 'XX002')
			  && $message =~ ($a{message} // qr/^index "\Q$a{index}\E" is damaged at block \d+$/)
			  && $err =~ /HINT:  Please REINDEX it\./;

			ok($ok, "$a{what}, $name: " . ($ok ? $message : "rc $rc, $err"));
		}
	}
	return $seen;
}

1;
