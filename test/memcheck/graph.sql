-- What tools/memcheck runs under Valgrind, in a single-user server: every path of the
-- graph index on few rows. A backslash continues a statement on the next line.
create extension vector;
create extension quiver;
create table t (id int, e vector(24), c int);
insert into t select i, (select array_agg(sin(i*j+j*j*0.3)) from generate_series(1,24) j)::vector, i%10 \
	from generate_series(1,200) i;
create index t_l2 on t using hnsw (e vector_l2_ops);
create index t_ip on t using hnsw (e vector_ip_ops);
create index t_cos on t using quiver_graph (e vector_cosine_ops);
create index t_l1 on t using hnsw (e vector_l1_ops);
insert into t select i, (select array_agg(sin(i*j+j*j*0.3)) from generate_series(1,24) j)::vector, i%10 \
	from generate_series(201,300) i;
insert into t select 1, (select e from t where id=7 limit 1), 3 from generate_series(1,100);
set enable_seqscan=off;
select id from t order by e <-> (select e from t where id=5 limit 1) limit 5;
select id from t order by e <#> (select e from t where id=5 limit 1) limit 5;
select id from t order by e <=> (select e from t where id=5 limit 1) limit 5;
select id from t order by e <+> (select e from t where id=5 limit 1) limit 5;
select count(*) from (select id from t where c=3 order by e <=> (select e from t where id=5 limit 1) limit 50) x;
delete from t where id % 3 = 0 or id = 1;
vacuum t;
select quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos'), quiver_check('t_l1');
insert into t select i, (select array_agg(sin(i*j+j*j*0.3)) from generate_series(1,24) j)::vector, i%10 \
	from generate_series(301,340) i;
select quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos'), quiver_check('t_l1');
select 'all statements ran' as end_mark;
