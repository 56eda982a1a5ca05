# What SECURITY.md says: who may create the extensions, what is out of a user's sight, and
# that nobody waits for a lock on what is not theirs.

use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Utils;
use QuiverTest;
use Test::More;

my $node = new_node('security', conf => "fsync = off\n");

# ---- who may create the extensions ----

sub as
{
	my ($role, $db, $sql) = @_;
	my ($rc, $out, $err) = $node->psql($db, $sql, extra_params => [ '-U', $role ]);

	return $rc == 0 ? $out : ($err =~ /(ERROR: .*)/)[0];
}

my $super = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', 'CREATE ROLE creator LOGIN; CREATE ROLE user_only LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE created OWNER creator');
$node->safe_psql('created', 'GRANT USAGE, CREATE ON SCHEMA public TO user_only');
like(as('user_only', 'created', 'CREATE EXTENSION vector'), qr/permission denied to create extension "vector"/,
	'who may not create in the database cannot');

# what stands in the way is an error, and no part of the extension, which a superuser owns
as('creator', 'created',
	q{CREATE FUNCTION vector_typmod_in(cstring[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'});
like(as('creator', 'created', 'CREATE EXTENSION vector'),
	qr/vector_typmod_in\(cstring\[\]\) is not a member of extension "vector"/,
	'a function that is there is not adopted');
as('creator', 'created', 'DROP FUNCTION vector_typmod_in(cstring[])');
is(as('creator', 'created', 'CREATE EXTENSION vector'), '', "a database's owner creates vector");
as('creator', 'created', q{CREATE FUNCTION quiver_version() RETURNS text LANGUAGE sql AS 'SELECT NULL'});
like(as('creator', 'created', 'CREATE EXTENSION quiver'), qr/"quiver_version" already exists/,
	'nor is one of the other extension');
as('creator', 'created', 'DROP FUNCTION quiver_version()');

# operators that a script could run as the superuser: none of the creator's is
is(as('creator', 'created', q{
CREATE TABLE ran (what text, who text);
CREATE FUNCTION caught(text, text) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ran VALUES ('text', current_user); RETURN true; END $$;
CREATE FUNCTION caught("char", text) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ran VALUES ('char', current_user); RETURN true; END $$;
CREATE FUNCTION caught(name, text) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ran VALUES ('name', current_user); RETURN true; END $$;
CREATE FUNCTION caught(anyelement, anyelement) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ran VALUES ('any', current_user); RETURN true; END $$;
CREATE FUNCTION caught(oid, regproc) RETURNS bool LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ran VALUES ('regproc', current_user); RETURN true; END $$;
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regproc, FUNCTION = caught);
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = caught);
CREATE OPERATOR = (LEFTARG = "char", RIGHTARG = text, FUNCTION = caught);
CREATE OPERATOR = (LEFTARG = name, RIGHTARG = text, FUNCTION = caught);
CREATE OPERATOR <> (LEFTARG = "char", RIGHTARG = text, FUNCTION = caught);
CREATE OPERATOR = (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = caught);
CREATE OPERATOR ~ (LEFTARG = text, RIGHTARG = text, FUNCTION = caught);
CREATE OPERATOR > (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = caught);
CREATE FUNCTION concat_ws(text, text) RETURNS text LANGUAGE sql AS
	$$ INSERT INTO ran VALUES ('concat_ws', current_user); SELECT '' $$;
CREATE FUNCTION replace(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
GRANT INSERT ON ran TO PUBLIC}), '', 'the creator sets traps');
is(as('creator', 'created', 'CREATE EXTENSION quiver'), '', "a database's owner creates quiver");
as('creator', 'created', 'CREATE TABLE mine (id int, v vector(3)); INSERT INTO mine SELECT i, ARRAY[i, i, i] '
	  . 'FROM generate_series(1, 500) i; CREATE INDEX mine_idx ON mine USING quiver_graph (v vector_l2_ops)');
is($node->safe_psql('created', "SELECT count(*) FROM quiver_indexes; SELECT count(*) FROM quiver_stat_indexes; "
		  . "SELECT quiver_check('mine_idx')"), "1\n1\n500",
	'a superuser looks at what is there');
is($node->safe_psql('created', 'SELECT pg_catalog.count(*) FROM ran'), '0', 'and no operator of the creator was run');

# the way back fails here, and takes with it what a trap writes to a table: a sequence stays
is(as('creator', 'created', q{
CREATE SEQUENCE runs;
CREATE FUNCTION counted(anyelement, anyelement) RETURNS bool LANGUAGE sql COST 0.0001 AS
	$$ SELECT pg_catalog.nextval('public.runs') IS NULL $$;
CREATE FUNCTION counted(oid, regtype) RETURNS bool LANGUAGE sql COST 0.0001 AS
	$$ SELECT pg_catalog.nextval('public.runs') IS NULL $$;
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regtype, FUNCTION = counted);
CREATE OPERATOR <= (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = counted);
SELECT $$1$$::oid OPERATOR(public.=) $$vector$$::regtype;
}), 'f', 'the creator sets traps on the way back');
like(as('creator', 'created', q{ALTER EXTENSION vector UPDATE TO '0.8.6'}), qr/^ERROR: /, 'there is no way back here');
is($node->safe_psql('created', 'SELECT last_value FROM runs'), '1', 'and no trap was run');
like(as('creator', 'created',
		q{CREATE OR REPLACE FUNCTION quiver_version() RETURNS text LANGUAGE sql AS 'SELECT NULL'}),
		qr/must be owner of function quiver_version/,
	'its functions cannot be replaced');
is($node->safe_psql('created', q{SELECT DISTINCT pg_get_userbyid(proowner), prosecdef FROM pg_proc p
	JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	WHERE e.extname OPERATOR(pg_catalog.~) '^(vector|quiver)$'}), "$super|f",
	'none of its functions runs with the rights of its owner');
is(as('creator', 'created', 'ALTER EXTENSION quiver UPDATE; DROP TABLE mine; DROP EXTENSION quiver; '
		  . 'DROP EXTENSION vector'), '', 'and its creator drops them');

# ---- strangers ----

$node->safe_psql('postgres', q{
CREATE TABLE docs (id int, tenant text, v vector(3), h halfvec(16), s sparsevec(100));
INSERT INTO docs SELECT i, CASE WHEN i % 2 = 0 THEN 'tenant' ELSE 'other' END, ARRAY[i, i, i],
	qt_vector(i, 16)::halfvec, CASE WHEN i % 2 = 0 THEN '{1:1}/100'::sparsevec END FROM generate_series(1, 1000) i;
CREATE INDEX docs_v ON docs USING quiver_graph (v vector_l2_ops);
CREATE INDEX docs_h ON docs USING quiver_ivf (h halfvec_l2_ops);
CREATE INDEX docs_s ON docs USING hnsw (s sparsevec_l2_ops);
CREATE ROLE tenant LOGIN;
ANALYZE docs});
foreach my $call (q{quiver_check('docs_v')}, q{quiver_index_info('docs_h')}, q{quiver_prewarm('docs_v')},
	q{quiver_recall('docs_v')},
	q{quiver_estimate('docs', 'v')}, q{quiver_estimate('docs_s')}, q{quiver_stat_reset()},
	q{quiver_stat_reset('docs_v')},
	q{quiver_sharded_search('docs', 'v', '[1,2,3]'::vector, 3, '{id}')})
{
	like(as('tenant', 'postgres', "SELECT $call"),
		qr/permission denied|must be owner|a column definition list is required/, "a stranger: $call");
}
is(as('tenant', 'postgres',
		q{SELECT index_name, bytes > 0, cached, lists, dead_entries, recall_target FROM quiver_indexes ORDER BY 1}),
	"docs_h|t||||\ndocs_s|t||||\ndocs_v|t||||", 'a stranger sees names and sizes, as in pg_class');
is(as('tenant', 'postgres', 'SELECT count(*) FROM _quiver_buffers() b JOIN pg_index i USING (indexrelid) '
		  . 'WHERE indrelid = \'docs\'::regclass'), '0',
	'and nothing of what is in memory');

# ---- row security ----

$node->safe_psql('postgres', q{
GRANT SELECT ON docs TO tenant;
GRANT CREATE ON SCHEMA public TO tenant;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON docs USING (tenant = current_user);
CREATE INDEX docs_id ON docs (id)});
as('tenant', 'postgres', q{CREATE FUNCTION seen(int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS
	$$ BEGIN RAISE NOTICE 'seen %', $1; RETURN true; END $$});
my %indexes = (docs_v => "v <-> '[1,1,1]'", docs_h => 'h <-> (SELECT qt_vector(1, 16)::halfvec)',
	docs_s => "s <-> '{1:2}/100'");
foreach my $index (sort keys %indexes)
{
	foreach my $topk (qw(on off))
	{
		foreach my $where ('seen(id)', 'seen(id) AND id < 600', "seen(id) AND $indexes{$index} < 5000")
		{
			my $select = "SELECT id FROM docs WHERE $where ORDER BY $indexes{$index} LIMIT 20";
			my $settings = "SET quiver.topk_scan = $topk; SET enable_seqscan = off; SET enable_sort = off; "
				  . "SET enable_bitmapscan = off;";
			my ($rc, $out, $err) = $node->psql('postgres', "$settings EXPLAIN (COSTS OFF) $select;\n$select",
				extra_params => [ '-U', 'tenant' ]);
			my @seen = $err =~ /seen (\d+)/g;

			like($out, qr/Index Scan using $index/, "row security, top-k $topk, $index, $where: by the index");
			cmp_ok(scalar(@seen), '>=', 20, "row security, top-k $topk, $index, $where: rows are seen");
			is(scalar(grep { $_ % 2 == 1 } @seen), 0, "row security, top-k $topk, $index, $where: hidden ones are not");
		}
	}
}
my $explain = "SET enable_seqscan = off; "
	  . "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM docs ORDER BY v <-> '[1,1,1]' LIMIT 3";
like(as($super, 'postgres', $explain), qr/^ +Bound: 5\.196/m, 'EXPLAIN: how near the next row is, here exactly');
like(as('tenant', 'postgres', $explain), qr/^ +Last Distance: 8\.66/m,
	'EXPLAIN under row security: the last row found');
unlike(as('tenant', 'postgres', $explain), qr/Bound/, 'EXPLAIN under row security: not how near a hidden one is');
$node->safe_psql('postgres', q{
CREATE TABLE asked (v vector(3));
INSERT INTO asked VALUES ('[1,1,1]');
CREATE VIEW near_ones AS SELECT d.s FROM asked CROSS JOIN LATERAL
	(SELECT s, id FROM docs ORDER BY v <-> asked.v LIMIT 3) d WHERE d.id % 2 = 0;
GRANT SELECT ON near_ones TO tenant});
$explain =~ s/SELECT.*/SELECT * FROM near_ones/;
like(as($super, 'postgres', $explain), qr/^ +Last Distance: .*\n +Bound: /m, 'EXPLAIN of a view of the user');
my $by_view = as('tenant', 'postgres', $explain);
like($by_view, qr/Rows Measured/, 'EXPLAIN of a view of another role');
unlike($by_view, qr/Distance: |Bound/, 'says not how near rows are');
$node->safe_psql('postgres', q{
CREATE TABLE parted (id int, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000);
INSERT INTO parted SELECT i, ARRAY[i, 1, 1]::vector FROM generate_series(0, 1999) i;
CREATE INDEX ON parted USING quiver_graph (v vector_l2_ops);
ANALYZE parted;
CREATE VIEW near_parted AS SELECT id FROM parted WHERE id % 2 = 0 ORDER BY v <-> '[1,1,1]' LIMIT 3;
GRANT SELECT ON near_parted TO tenant});
$explain =~ s/near_ones/near_parted/;
$by_view = as('tenant', 'postgres', "SET enable_sort = off; $explain");
like($by_view, qr/Rows Measured/, 'EXPLAIN of a view of partitions');
unlike($by_view, qr/Distance: |Bound/, 'says not how near their rows are');
like(as('tenant', 'postgres', "SELECT quiver_estimate('docs', 's')"),
	qr/cannot estimate an index of table "docs", which has row-level security/,
	'quiver_estimate: sizes and nulls of hidden rows are not told');
like(as('tenant', 'postgres', "SELECT quiver_estimate('docs_s')"),
	qr/cannot estimate an index of table "docs", which has row-level security/,
	'nor of an index');
like(as($super, 'postgres', "SELECT rows FROM quiver_estimate('docs', 's')"), qr/^500$/,
	'but to those whom policies do not concern');
is(as('tenant', 'postgres', "SELECT searches, recall = 1 FROM quiver_recall('docs_v', 3, 1000)"), '500|t',
	'quiver_recall: of the rows that one sees');

# ---- an index's expression, which finds a function by the search_path of who runs it ----

$node->safe_psql('postgres', q{
CREATE FUNCTION score(t text) RETURNS vector LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN RETURN ARRAY[length(t), 1, 1]::public.vector; END $$;
CREATE TABLE notes (tenant text, body text);
INSERT INTO notes SELECT CASE WHEN i % 2 = 0 THEN 'tenant' ELSE 'other' END,
	repeat(CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, i) FROM generate_series(1, 200) i;
CREATE INDEX notes_i ON notes USING quiver_graph ((score(body)::vector(3)) vector_l2_ops);
CREATE SCHEMA mine AUTHORIZATION tenant;
GRANT SELECT ON notes TO tenant});
as('tenant', 'postgres', q{CREATE FUNCTION mine.length(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN RAISE NOTICE 'seen %', t; RETURN pg_catalog.length(t); END $$});
my $path = 'SET search_path = mine, pg_catalog, public;';
like(as('tenant', 'postgres', "$path SELECT quiver_estimate('notes_i')"), qr/must be owner of index "notes_i"/,
	'quiver_estimate: nobody has the owner run it');
like(as($super, 'postgres', "SELECT rows FROM quiver_estimate('notes_i')"), qr/^200$/, 'but the owner');
$node->safe_psql('postgres', q{CREATE TABLE kinds (kind text, v vector(3));
	INSERT INTO kinds SELECT chr(96 + i % 3), ARRAY[i, 1, 1] FROM generate_series(1, 300) i;
	CREATE INDEX kinds_i ON kinds USING quiver_ivf (v vector_l2_ops) WHERE kind IN ('a', 'b');
	GRANT SELECT ON kinds TO tenant});
like(as('tenant', 'postgres', "SELECT rows FROM quiver_estimate('kinds_i')"), qr/^200$/,
	'nor is there such code in a condition with IN');
$node->safe_psql('postgres',
	'ALTER TABLE notes ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON notes USING (tenant = current_user)');
$node->safe_psql('postgres', q{
CREATE TABLE mixed (tenant text, body text);
INSERT INTO mixed TABLE notes;
CREATE INDEX mixed_i ON mixed USING quiver_graph ((score(body)::vector(3)) vector_l2_ops)
	WHERE tenant IN ('tenant', 'other');
CREATE VIEW barrier WITH (security_barrier) AS SELECT body FROM mixed
	WHERE tenant = current_user AND tenant IN ('tenant', 'other') ORDER BY score(body)::vector(3) <-> '[2.5,1,1]';
GRANT SELECT ON barrier TO tenant});
{
	my ($rc, $out, $err) = $node->psql('postgres', "$path SET quiver.topk_scan = off; SET enable_seqscan = off; "
		  . 'SET enable_sort = off; SELECT * FROM barrier LIMIT 3', extra_params => [ '-U', 'tenant' ]);

	is($out, join("\n", 'aa', 'aaaa', 'aaaaaa'), 'a security_barrier view: rows by an expression');
	like($err, qr/seen aa/, 'a security_barrier view: it is run');
	unlike($err, qr/seen b/, 'a security_barrier view: not for hidden rows');
}
foreach my $topk (qw(on off))
{
	my ($rc, $out, $err) = $node->psql('postgres', "$path SET quiver.topk_scan = $topk; SET enable_seqscan = off; "
		  . "SELECT body FROM notes ORDER BY score(body)::vector(3) <-> '[2.5,1,1]' LIMIT 3",
		extra_params => [ '-U', 'tenant' ]);

	is($out, join("\n", 'aa', 'aaaa', 'aaaaaa'), "row security, top-k $topk: rows by an expression");
	like($err, qr/seen aa/, "row security, top-k $topk: it is run");
	like(as('tenant', 'postgres', "SET quiver.topk_scan = $topk; SET enable_seqscan = off; EXPLAIN (COSTS OFF) "
			  . "SELECT body FROM notes ORDER BY public.score(body)::vector(3) <-> '[2.5,1,1]' LIMIT 3"),
		$topk eq 'on' ? qr/Top-K Scan/ : qr/Sort/, "row security, top-k $topk: the plan");
	unlike($err, qr/seen b/, "row security, top-k $topk: not for hidden rows");
}

# ---- locks ----

$node->safe_psql('postgres', q{
CREATE TABLE centers (v vector(3), other int);
INSERT INTO centers VALUES ('[1,2,3]'), ('[500,500,500]');
CREATE TABLE theirs (id int, v vector(3));
ALTER TABLE theirs OWNER TO tenant;
INSERT INTO theirs VALUES (1, '[1,2,3]')});
my $index = q{CREATE INDEX theirs_idx ON theirs USING quiver_ivf (v) WITH (centroids = 'public.centers')};
my $session = new_session($node);
session_sql($session, 'BEGIN; LOCK TABLE centers, docs IN ACCESS EXCLUSIVE MODE');
like(as('tenant', 'postgres', "SET lock_timeout = '20s'; $index"), qr/permission denied for table centers/,
	'centroids of a locked table: no wait without the right to read them');
like(as($super, 'postgres', "SET lock_timeout = '20s'; $index"), qr/permission denied for table centers/,
	'nor for a superuser, who builds it as its owner');
like(as('user_only', 'postgres', "SET lock_timeout = '20s'; SELECT $_"),
	qr/permission denied for table docs|must be owner of index docs_/, "$_ of a locked table: no wait")
  foreach q{quiver_check('docs_v')}, q{quiver_index_info('docs_v')}, q{quiver_recall('docs_h')},
	q{quiver_estimate('docs', 'v')}, q{quiver_prewarm('docs_h')};
like(as('tenant', 'postgres', "SET lock_timeout = '20s'; SELECT quiver_estimate('docs', 's')"), qr/row-level security/,
	'row security of a locked table: no wait');
session_sql($session, 'ROLLBACK');
end_session($session);
$node->safe_psql('postgres', 'GRANT SELECT (other) ON centers TO tenant');
like(as('tenant', 'postgres', $index), qr/permission denied for table centers/,
	'centroids: another column is not enough');
$node->safe_psql('postgres', 'GRANT SELECT (v) ON centers TO tenant');
is(as('tenant', 'postgres', $index), '', 'centroids: their column is');
check_ok($node, 'theirs_idx', 1);

# ---- memory ----

like(as('tenant', 'postgres', $_->[0]), qr/$_->[1]/, "a bound: $_->[0]") foreach
	[ "SELECT quiver_recall('docs_v', 1001)", 'k must be between 1 and 1000' ],
	[ "SELECT quiver_recall('docs_v', 10, 10001)", 'sample must be between 1 and 10000' ],
	[ 'SELECT array_fill(1, ARRAY[16001])::vector', 'vector cannot have more than 16000 dimensions' ],
	[ "SELECT ('{1:1}/1000000000'::sparsevec)::vector", 'vector cannot have more than 16000 dimensions' ],
	[ 'SELECT quiver_version(); SET hnsw.scan_mem_multiplier = 1001', 'outside the valid range' ],
	[ 'SELECT quiver_version(); SET quiver.scan_mem_multiplier = 1001', 'outside the valid range' ];

# a version of pgvector cannot be created
$node->safe_psql('postgres', 'CREATE DATABASE pinned');
my (undef, undef, $refused) = $node->psql('pinned', "CREATE EXTENSION vector VERSION '0.8.6'");
like($refused, qr/this version of extension vector is only a way back to pgvector/, 'VERSION names what is meant');

clean_log_ok($node);
$node->stop;
done_testing();
