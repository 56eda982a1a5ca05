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
  assert.equal(await page.locator('main a').count(), 3, 'examples on the empty page');
  await page.keyboard.type('play chess against the computer');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#both li');
  for (const way of ['vectors', 'words', 'both']) {
    const rows = page.locator(`#${way} li`);
    assert.ok((await rows.count()) <= 5, `rows of ${way}`);
    assert.match(await page.locator(`#${way} h2`).innerText(), /\d+\.\d ms$/);
    assert.ok(!(await page.locator(`#${way} pre`).isVisible()), `the plan of ${way} is folded`);
    assert.match(await page.locator(`#${way} pre`).textContent(), /Limit[\s\S]*Execution Time: [\d.]+ ms/);
  }
  assert.equal(await page.locator('#vectors li').count(), 5);
  assert.match(await page.locator('#vectors').innerText(), /chess/i);
  assert.match(await page.locator('#vectors li i').first().innerText(), /^distance \d\.\d{3}$/);
  await page.click('#vectors summary');
  assert.ok(await page.locator('#vectors pre').isVisible(), 'the plan unfolds');
  if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });

  await page.selectOption('select', 'games');
  await page.click('button');
  await page.waitForFunction(() => !document.querySelector('#both'));
  assert.equal(await page.locator('#vectors li').count(), 5);
  assert.match(await page.locator('#state').innerText(), /only vectors/);
  assert.match(await page.locator('#vectors pre').textContent(), /section = /);

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

  // an example is a link
  await page.goto(address);
  await page.click('main a');
  await page.waitForSelector('#both li');
  assert.match(await page.locator('#vectors').innerText(), /chess/i);

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
