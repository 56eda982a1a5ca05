-- What tools/memcheck runs under Valgrind, in a single-user server: every path of
-- posting lists on few rows. A backslash continues a statement on the next line.
create extension vector;
create extension quiver;
create table t (id int, e vector(24), h halfvec(24), b bit(24), c int);
create function val(i int) returns vector language sql immutable as \
	'select array_agg(sin(i*j+j*j*0.3))::vector from generate_series(1,24) j';
insert into t select i, val(i), val(i)::halfvec, binary_quantize(val(i))::bit(24), i%10 from generate_series(1,300) i;
set client_min_messages = error;
create index t_l2 on t using quiver_ivf (e) with (lists = 140);
create index t_ip on t using quiver_ivf (h halfvec_ip_ops) with (bits = 4);
create index t_cos on t using ivfflat (e vector_cosine_ops) with (lists = 10);
create index t_bit on t using ivfflat (b bit_hamming_ops) with (lists = 10);
create table g (id int, e vector(24), b bit(24));
create index g_l2 on g using quiver_ivf (e) with (bits = 2);
create index g_bit on g using ivfflat (b bit_hamming_ops) with (lists = 20);
insert into g select id, e, b from t;
insert into g select 1, (select e from t where id=7), (select b from t where id=7) from generate_series(1,150);
insert into t select i, val(i), val(i)::halfvec, binary_quantize(val(i))::bit(24), i%10 from generate_series(301,340) i;
set enable_seqscan=off;
set enable_sort=off;
select id from t order by e <-> (select e from t where id=5 limit 1) limit 5;
select id from t order by h <#> (select h from t where id=5 limit 1) limit 5;
select id from t order by e <=> (select e from t where id=5 limit 1) limit 5;
select id from t order by b <~> (select b from t where id=5 limit 1) limit 5;
select id from g order by e <-> (select e from t where id=5 limit 1) limit 5;
select id from g order by e <-> (select null::vector) limit 5;
set quiver.iterative_scan = relaxed_order;
set ivfflat.iterative_scan = relaxed_order;
select count(*) from (select id from t where c=3 order by e <=> (select e from t where id=5 limit 1)) x;
select count(*) from (select id from g order by e <-> (select e from t where id=5 limit 1)) x;
select count(*) from (select id from g order by b <~> (select b from t where id=5 limit 1)) x;
delete from t where id % 3 = 0;
delete from g where id = 1 or id % 2 = 0;
vacuum (index_cleanup on) t;
vacuum (index_cleanup on) g;
select quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos'), quiver_check('t_bit'), \
	quiver_check('g_l2'), quiver_check('g_bit');
insert into g select id + 1000, e, b from t where id < 200;
select quiver_index_info('g_l2'), quiver_index_info('g_bit'), quiver_check('g_l2'), quiver_check('g_bit');
reindex index g_l2;
select 'all statements ran' as end_mark;
