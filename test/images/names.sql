-- From :name, the image's, the names of its relations: table, index, rows to insert,
-- queries and the view of their answers.
\set t :name
\set i :name _idx
\set s :name _source
\set q :name _queries
\set a :name _answers
