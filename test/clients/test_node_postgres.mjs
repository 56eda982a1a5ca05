// node-postgres with the package pgvector: text format, every type and operator.
// Rows and true distances come from dataset.py (QUIVER_DATASET names its output);
// the other variables are those of conftest.py.

import assert from "node:assert/strict";
import { closeSync, fstatSync, openSync, readSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";

// Packages are not beside this file: NODE_PATH says where, which import ignores.
const require = createRequire(import.meta.url);
const pg = require("pg");
const pgvector = require("pgvector/pg");
const { SparseVector } = require("pgvector");

const data = JSON.parse(readFileSync(process.env.QUIVER_DATASET, "utf8"));
const { k, cases, queries, rows, categories } = data;
const types = Object.keys(rows);
const ivfflat = process.env.QUIVER_ACCESS_METHODS.split(" ").includes("ivfflat");

let client;

function param(type, value) {
  if (type === "sparsevec") return new SparseVector(value);
  return type === "bit" ? value : pgvector.toSql(value);
}

before(async () => {
  client = new pg.Client(); // by PGHOST and the others
  await client.connect();
  await client.query("CREATE EXTENSION IF NOT EXISTS vector");
  await pgvector.registerTypes(client);
  await client.query(`CREATE TABLE items (id int PRIMARY KEY, category int NOT NULL,
    vector_ vector(${data.dims}), halfvec_ halfvec(${data.dims}),
    sparsevec_ sparsevec(${data.sparseDims}), bit_ bit(${data.bits}))`);
  for (const [i, category] of categories.entries()) {
    const values = types.map((type) => param(type, rows[type][i]));
    await client.query({
      name: "insert",
      text: "INSERT INTO items VALUES ($1, $2, $3, $4, $5, $6)",
      values: [i + 1, category, ...values],
    });
  }
  for (const c of cases) {
    await client.query(`CREATE INDEX ${c.index} ON items
      USING hnsw (${c.column} ${c.opclass}) WITH (m = 16, ef_construction = 64)`);
  }
  await client.query("ANALYZE items");
  await client.query(`SET hnsw.ef_search = ${data.efSearch}`);
  await client.query("SET hnsw.iterative_scan = strict_order");
});

after(() => client.end());

async function search(c, where = "") {
  const text = `SELECT id, ${c.column} ${c.operator} $1 AS distance FROM items ${where}
    ORDER BY ${c.column} ${c.operator} $1 LIMIT $2`;
  const found = [];
  for (const query of queries[c.type]) {
    found.push((await client.query(text, [param(c.type, query), k])).rows);
  }
  return found;
}

function check(c, found, passes = () => true, order = 1e-5) {
  let hits = 0;
  found.forEach((answer, q) => {
    const truth = c.distances[q];
    assert.equal(new Set(answer.map((row) => row.id)).size, k);
    const passing = truth.filter((_, i) => passes(i)).sort((a, b) => a - b);
    answer.forEach(({ id, distance }, rank) => {
      assert.ok(passes(id - 1));
      assert.ok(Math.abs(distance - truth[id - 1]) <= 1e-4 * (1 + Math.abs(distance)));
      assert.ok(rank === 0 || distance >= answer[rank - 1].distance - order);
      if (truth[id - 1] <= passing[k - 1] + 1e-4) hits++;
    });
  });
  const recall = hits / (k * found.length);
  assert.ok(recall >= data.recall, `recall ${recall}`);
}

// The part of the server's log that call() caused.
async function logged(call) {
  const log = openSync(process.env.QUIVER_LOG, "r");
  try {
    const start = fstatSync(log).size;
    const result = await call();
    const text = Buffer.alloc(fstatSync(log).size - start);
    readSync(log, text, 0, text.length, start);
    return [result, text.toString()];
  } finally {
    closeSync(log);
  }
}

// How many plans of this database's statements read the index in its order.
function scans(log, index) {
  let count = 0;
  let entry = null;
  for (const line of [...log.split("\n"), ""]) {
    if (entry !== null && line.startsWith("\t")) {
      entry.push(line.slice(1));
      continue;
    }
    if (entry?.length) {
      const visit = (node) => {
        if (/^(Index|Custom) Scan$/.test(node["Node Type"]) && node["Index Name"] === index && node["Order By"]) count++;
        (node.Plans ?? []).forEach(visit);
      };
      visit(JSON.parse(entry.join("\n")).Plan);
    }
    entry = line.includes(` ${process.env.PGDATABASE} LOG:  duration:`) && line.endsWith(" plan:") ? [] : null;
  }
  return count;
}

for (const c of cases) {
  test(`search ${c.type} ${c.metric}`, async () => {
    const [found, log] = await logged(() => search(c));
    assert.equal(scans(log, c.index), found.length);
    check(c, found);
  });
  test(`filter ${c.type} ${c.metric}`, async () => {
    const [found, log] = await logged(() => search(c, "WHERE category = 3"));
    assert.equal(scans(log, c.index), found.length);
    check(c, found, (i) => categories[i] === 3);
  });
}

test("values", async () => {
  const { rows: got } = await client.query("SELECT * FROM items ORDER BY id");
  assert.equal(got.length, categories.length);
  got.forEach((row, i) => {
    assert.deepEqual(row.vector_.map(Math.fround), rows.vector[i].map(Math.fround));
    // Halves are printed with as few digits as tell them apart.
    row.halfvec_.forEach((x, d) => assert.ok(Math.abs(x - rows.halfvec[i][d]) <= 1e-3 * Math.abs(x) + 1e-7));
    assert.deepEqual(row.sparsevec_.toArray().map(Math.fround), rows.sparsevec[i].map(Math.fround));
    assert.equal(row.bit_, rows.bit[i]);
  });
});

test("plan", async () => {
  const { rows: plan } = await client.query("EXPLAIN SELECT id FROM items ORDER BY vector_ <-> $1 LIMIT 5", [
    pgvector.toSql(queries.vector[0]),
  ]);
  assert.match(plan.map((row) => row["QUERY PLAN"]).join("\n"), /Index Scan using items_vector_l2 on items/);
});

test("null and errors", async () => {
  const { rows: got } = await client.query("SELECT $1::vector AS v", [null]);
  assert.equal(got[0].v, null);
  await assert.rejects(client.query("INSERT INTO items VALUES (0, 0, $1)", [pgvector.toSql([1, 2])]), {
    code: "22000",
    message: `expected ${data.dims} dimensions, not 2`,
  });
});

for (const c of cases.filter((c) => c.ivfflat)) {
  test(`ivfflat ${c.type} ${c.metric}`, { skip: ivfflat ? false : "no access method ivfflat" }, async () => {
    await client.query(`DROP INDEX ${c.index}`);
    await client.query(`CREATE INDEX ${c.index}_ivfflat ON items
      USING ivfflat (${c.column} ${c.opclass}) WITH (lists = ${data.lists})`);
    await client.query(`SET ivfflat.probes = ${data.lists}`);
    const [found, log] = await logged(() => search(c));
    assert.equal(scans(log, `${c.index}_ivfflat`), found.length);
    check(c, found, undefined, data.ivfflatOrder);
  });
}
