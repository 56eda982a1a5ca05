// A person at the page: types, searches, filters, comes back by the address, holds a phone.
//   node test_web.mjs ADDRESS CHROMIUM [SCREENSHOT]
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const [address, executablePath, screenshot] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.route('**/favicon.ico', (route) => route.fulfill({ status: 204 }));

  await page.goto(address);
  assert.equal(await page.evaluate(() => document.activeElement.name), 'query');
  await page.keyboard.type('play chess against the computer');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#both li');
  for (const way of ['vectors', 'words', 'both']) {
    const rows = page.locator(`#${way} li`);
    assert.ok((await rows.count()) <= 5, `rows of ${way}`);
    assert.match(await page.locator(`#${way} h2`).innerText(), /\d+\.\d ms$/);
    assert.match(await page.locator(`#${way} pre`).innerText(), /Limit[\s\S]*Execution Time: [\d.]+ ms/);
  }
  assert.equal(await page.locator('#vectors li').count(), 5);
  assert.match(await page.locator('#vectors').innerText(), /chess/i);
  // the plan stands beside its rows
  const [left, right] = await Promise.all(
    ['div', 'pre'].map((name) => page.locator(`#vectors > ${name}`).boundingBox()));
  assert.ok(left.x + left.width <= right.x && right.y < left.y + left.height, 'the plan is beside the rows');
  if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });

  await page.selectOption('select', 'games');
  await page.click('button');
  await page.waitForFunction(() => !document.querySelector('#both'));
  assert.equal(await page.locator('#vectors li').count(), 5);
  assert.match(await page.locator('#vectors pre').innerText(), /section = /);

  // the address holds the search
  const kept = page.url();
  assert.match(kept, /query=play\+chess.*section=games/);
  await page.goto('about:blank');
  await page.goto(kept);
  await page.waitForSelector('#vectors li');
  assert.equal(await page.inputValue('select'), 'games');

  // markup in a query is text, and nothing found is said
  await page.selectOption('select', '');
  await page.fill('input', '<img src=x onerror=alert(1)>zzxqy');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /nothing found/.test(document.querySelector('#words')?.innerText ?? ''));
  assert.equal(await page.locator('main img').count(), 0);

  await page.setViewportSize({ width: 380, height: 800 });
  await page.fill('input', 'edit photos');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /photo/.test(document.querySelector('#both')?.innerText ?? ''));
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 380, `the page is ${width} wide on a phone`);
  if (screenshot) await page.screenshot({ path: screenshot.replace(/(\.\w+)$/, '-phone$1'), fullPage: true });
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
}
