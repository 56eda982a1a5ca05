# Forms of a distance: the answer of a scan that orders by one is that of the table read whole.
# Forms are nestings of functions at random, of which some turn in one way and others do not.
# QUIVER_FORMS in the environment says how many there are for each access method.

use strict;
use warnings FATAL => 'all';
use QuiverTest;
use Test::More;

my $forms = $ENV{QUIVER_FORMS} // 300;
my $rows = 300;
my %operators = (l2 => '<->', ip => '<#>', cosine => '<=>', l1 => '<+>', hamming => '<~>', jaccard => '<%>');
my %names = (
	l2 => 'l2_distance', ip => 'inner_product', cosine => 'cosine_distance', l1 => 'l1_distance',
	hamming => 'hamming_distance', jaccard => 'jaccard_distance');

my $node = new_node('forms');
$node->safe_psql('postgres', "CREATE TABLE plain (id int PRIMARY KEY, v vector(4) NOT NULL, tag int NOT NULL);
	INSERT INTO plain SELECT i, v::vector, i % 7 FROM (SELECT i, array_agg(qt_uniform(i, j) - (j > 2)::int * 0.5)
		v FROM generate_series(1, 4) j, generate_series(1, $rows) i GROUP BY i) x;
	-- the same rows in other types: a table has them as vectors
	CREATE TABLE source AS SELECT * FROM plain;
	CREATE FUNCTION bits(v vector) RETURNS bit(16) LANGUAGE sql IMMUTABLE AS \$\$
		SELECT string_agg((get_byte(decode(md5(v::text), 'hex'), i) & 1)::text, '')::bit(16)
			FROM generate_series(0, 15) i \$\$;
	CREATE TABLE nulls (id int PRIMARY KEY, v vector(4), tag int NOT NULL);
	INSERT INTO nulls SELECT id, CASE WHEN id % 50 = 0 THEN NULL ELSE v END, tag FROM plain;
	CREATE TABLE zeros (id int PRIMARY KEY, v vector(4) NOT NULL, tag int NOT NULL);
	INSERT INTO zeros SELECT id, CASE WHEN id % 50 = 0 THEN '[0,0,0,0]' ELSE v END, tag FROM plain;
	-- the key of each row, in order; or the error
	CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE result text;
	BEGIN
		EXECUTE format('SELECT string_agg(coalesce((CASE WHEN s = 0 THEN 0 ELSE s::float8 END)::text, ''NULL''), '' ''
			ORDER BY n) FROM (SELECT s, row_number() OVER () n FROM (%s) x) y', query) INTO result;
		RETURN coalesce(result, '');
	EXCEPTION WHEN OTHERS THEN RETURN 'error ' || SQLERRM;
	END \$\$;
	CREATE FUNCTION is_served(query text) RETURNS bool LANGUAGE plpgsql AS \$\$
	DECLARE plan json;
	BEGIN
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
		RETURN plan::text LIKE '%Quiver Top-K Scan%';
	EXCEPTION WHEN OTHERS THEN RETURN false;
	END \$\$;
	CREATE FUNCTION compare(query text, OUT served bool, OUT same bool, OUT report text) LANGUAGE plpgsql AS \$\$
	DECLARE found text; exact text;
	BEGIN
		served := is_served(query);
		found := answer(query);
		PERFORM set_config('enable_indexscan', 'off', true), set_config('quiver.topk_scan', 'off', true);
		exact := answer(query);
		PERFORM set_config('enable_indexscan', 'on', true), set_config('quiver.topk_scan', 'on', true);
		-- the index has no rows without a value and no zero vectors, which may come last; and the table read
		-- whole may meet a row with an error that is not wanted
		same := found = exact OR found = regexp_replace(exact, '( ?(NaN|NULL))+\$', '') OR
			(exact LIKE 'error %' AND found NOT LIKE 'error %');
		report := format('%s: %s, not %s', query, found, exact);
	END \$\$");

sub any_of { return $_[ int(rand(@_)) ] }
sub number { return any_of('0.5', '2', '1', '-1', '-0.5', '3', '10', '0.001', '100', '0') }

# An expression one function further.
sub wrap
{
	my ($x) = @_;
	my $c = number();

	return any_of(
		"($x + $c)", "($c + $x)", "($x - $c)", "($c - $x)", "(1 - $x)", "(2 - $x) / 2", "($x * $c)", "($c * $x)",
		"($x / $c)", "($c / $x)", "(1 / (1 + $x))", "(- $x)", "(+ $x)", "($x)::real", "($x)::numeric",
		"($x)::numeric(12,3)", "($x)::float8", "($x)::numeric - $c", "(($x) * 100)::int", "round($x)",
		"round(($x)::numeric, 2)", "round(($x)::numeric, 8)", "floor($x)", "ceil($x)", "ceiling($x)", "trunc($x)",
		"trunc(($x)::numeric, 3)", "exp($x)", "exp(- $x)", "ln($x)", "log($x)", "sqrt($x)", "power($x, 2)",
		"power($x, 0.5)", "power(2, $x)", "($x) ^ 3", "|/ ($x)", "abs($x)", "@ ($x)", "greatest($x, $c)",
		"least($x, $c)", "greatest($c, $x, 0.7)", "coalesce($x, $c)", "coalesce($c, $x)", "($x) * tag", "sin($x)",
		"nullif($x, $c)", "CASE WHEN ($x) > $c THEN 1 ELSE 2 END", "round($x) + tag");
}

# Give the tables a column of another type.
sub change_type
{
	my ($type) = @_;
	my $value = $type eq 'bit' ? 'bits(s.v)' : "s.v::${type}(4)";
	my $zero = $type eq 'bit' ? "repeat('0', 16)::bit(16)" : "'[0,0,0,0]'::vector(4)::${type}(4)";
	my $column = $type eq 'bit' ? 'bit(16)' : "${type}(4)";

	$node->safe_psql('postgres', "DROP TABLE plain, nulls, zeros;
		CREATE TABLE plain (id int PRIMARY KEY, v $column NOT NULL, tag int NOT NULL);
		CREATE TABLE nulls (id int PRIMARY KEY, v $column, tag int NOT NULL);
		CREATE TABLE zeros (id int PRIMARY KEY, v $column NOT NULL, tag int NOT NULL);
		INSERT INTO plain SELECT id, $value, tag FROM source s;
		INSERT INTO nulls SELECT id, CASE WHEN id % 50 = 0 THEN NULL ELSE v END, tag FROM plain;
		INSERT INTO zeros SELECT id, CASE WHEN id % 50 = 0 THEN $zero ELSE v END, tag FROM plain");
}

foreach my $case (
	[ 'quiver_graph', 'l2' ], [ 'quiver_graph', 'cosine' ], [ 'quiver_ivf', 'cosine' ], [ 'quiver_ivf', 'ip' ],
	[ 'hnsw', 'ip' ], [ 'hnsw', 'l1' ], [ 'ivfflat', 'cosine' ], [ 'quiver_graph', 'ip', 'halfvec' ],
	[ 'quiver_ivf', 'l2', 'halfvec' ], [ 'hnsw', 'cosine', 'halfvec' ], [ 'hnsw', 'l2', 'sparsevec' ],
	[ 'quiver_graph', 'cosine', 'sparsevec' ], [ 'hnsw', 'jaccard', 'bit' ], [ 'quiver_ivf', 'hamming', 'bit' ],
	[ 'ivfflat', 'hamming', 'bit' ])
{
	my ($am, $metric, $type) = (@$case, 'vector');
	my $lists = $am eq 'ivfflat' ? 'WITH (lists = 3)' : '';
	my @queries;

	change_type($type);
	srand(length("$am $metric $type") * 1000 + ord($metric));
	$node->safe_psql('postgres', join ' ',
		map { "DROP INDEX IF EXISTS ${_}_v; CREATE INDEX ${_}_v ON $_ USING $am (v ${type}_${metric}_ops) $lists;" }
		  qw(plain nulls zeros));
	$node->safe_psql('postgres', 'VACUUM ANALYZE');
	foreach (1 .. $forms)
	{
		my $value = sprintf "'[%.3f,%.3f,%.3f,%.3f]'::vector", map { rand() - ($_ > 1 ? 0.5 : 0) } 0 .. 3;
		$value = "($value)::${type}(4)" if $type =~ /halfvec|sparsevec/;
		$value = "B'" . join('', map { int(rand(2)) } 1 .. 16) . "'" if $type eq 'bit';
		my $form = any_of("(v $operators{$metric} $value)", "($value $operators{$metric} v)",
			"$names{$metric}(v, $value)");
		my $bound = any_of('', '', sprintf(' WHERE s %s %s', any_of('<', '<=', '>', '>='), number()));
		my $order = any_of('', 'ASC', 'DESC') . any_of('', '', ' NULLS FIRST', ' NULLS LAST') . any_of('', '', ', id');

		$form = wrap($form) foreach 1 .. any_of(1, 1, 2, 3, 4);
		push @queries, sprintf('SELECT s FROM (SELECT %s s, id FROM %s%s) y%s ORDER BY s %s LIMIT %d',
			$form,
			any_of(qw(plain plain nulls zeros)), any_of('', '', ' WHERE v IS NOT NULL', ' WHERE tag < 5'), $bound,
			$order,
			any_of(1, 5, 10, 20));
	}
	my ($out) = $node->safe_psql('postgres', join "\n",
		"SET quiver.ef_search = 1000; SET hnsw.ef_search = 1000; SET quiver.probes = 1000; SET ivfflat.probes = 3;",
		'SET enable_seqscan = off;',
		map { 'SELECT served, same, report FROM compare($q$' . $_ . '$q$);' } @queries);
	my @answers = split /\n/, $out;

	is(scalar @answers, $forms, "$am, $type, $metric: all forms are answered");
	cmp_ok(scalar(grep { /^t\|/ } @answers), '>=', $forms / 8, "$am, $type, $metric: many are served");
	my @wrong = grep { !/^[tf]\|t\|/ } @answers;
	is(scalar @wrong, 0, "$am, $type, $metric: all answers are those of the table");
	diag($_) foreach @wrong[ 0 .. ($#wrong < 4 ? $#wrong : 4) ];
}

done_testing();
