// Search the packages in words: node search.mjs 'play chess' [section]
// The server is the one that the PG* variables name.
import pg from 'pg';

const NEAREST = `
SELECT name, summary, embedding <=> embed($1) AS distance FROM package
WHERE embed($1) IS NOT NULL ORDER BY distance LIMIT 5`;
const FILTERED = `
SELECT name, summary, embedding <=> embed($1) AS distance FROM package
WHERE embed($1) IS NOT NULL AND section = $2 ORDER BY distance LIMIT 5`;
const HYBRID = 'SELECT name, summary, score FROM hybrid($1, 5)';

async function show(client, title, text, values) {
  const began = performance.now();
  const { rows } = await client.query({ text, values, rowMode: 'array' });
  console.log(`${title} (${(performance.now() - began).toFixed(1)} ms)`);
  for (const [name, summary, number] of rows) {
    console.log(`  ${number.toFixed(3)}  ${name}: ${summary}`);
  }
}

const [query, section = 'games'] = process.argv.slice(2);
if (!query) {
  console.error("usage: node search.mjs 'play chess' [section]");
  process.exit(2);
}
const client = new pg.Client();
await client.connect();
try {
  await client.query('SET search_path = packages, public');
  await show(client, 'nearest', NEAREST, [query]);
  await show(client, `nearest in section ${section}`, FILTERED, [query, section]);
  await show(client, 'hybrid', HYBRID, [query]);
} finally {
  await client.end();
}
