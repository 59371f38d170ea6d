// Checks of the list of executions: /ui/.
const assert = require('node:assert');
const { address, adminKey, heading, open, run, settled, signIn, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'filters are in the address'() {
    const page = await open(adminKey);
    await page.getByLabel('Status').selectOption('failed');
    await page.waitForURL(/status=failed/);
    await settled(page);
    const wantFailed = async () => {
      const statuses = await page.locator('.sizer .state').allTextContents();
      assert(statuses.length > 0 && statuses.every((s) => s === 'failed'), `got the statuses ${statuses}, want failed only`);
    };
    await wantFailed();
    await page.reload();
    await page.locator('.sizer .state').first().waitFor();
    await wantFailed();
    await page.getByLabel('Text in code or error').fill('nowhere to be found');
    await page.getByText('No execution matches these filters.').waitFor();
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.locator('.sizer .state').first().waitFor();
    assert.strictEqual(new URL(page.url()).search, '');
    await page.goBack();
    await page.waitForURL(/nowhere/);
    await wantNothingWrong(page);
  },

  // The list is asked for once. Rows stay until those of another filter are there, and they stay if that fails.
  async 'rows stay while a filter loads'() {
    const page = await open(adminKey);
    await page.locator('.sizer .row').first().waitFor();
    let asked = 0;
    let release = Promise.resolve();
    await page.route('**/executions?*', async (route) => {
      asked++;
      await release;
      await route.continue().catch(() => {}); // the page may have left
    });
    await page.reload();
    await page.locator('.sizer .row').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    assert.strictEqual(asked, 1, 'requests of the list');
    const row = page.locator('.sizer .row[data-index="0"]');
    const newest = await row.textContent();
    let answer;
    release = new Promise((resolve) => { answer = resolve; });
    await page.getByLabel('Status').selectOption('timeout');
    await page.locator('.executions[aria-busy=true]').waitFor();
    assert.strictEqual(await row.textContent(), newest, 'the rows of the former filter');
    answer();
    await page.getByText('No execution matches these filters.').waitFor();
    assert.strictEqual(asked, 2, 'requests of the list after a filter');
    await page.route('**/executions?*', (route) => route.abort());
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.getByRole('alert').waitFor();
    await page.unroute('**/executions?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.sizer .row').first().waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    page.wrong = page.wrong.filter((text) => !/ERR_FAILED/.test(text)); // of the request that was aborted
    await wantNothingWrong(page);
  },

  async 'keyboard'() {
    const page = await open(adminKey);
    await page.locator('.sizer .row').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor(); // the rows are drawn before the page listens to keys
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement.closest('[data-index="1"]'));
    const target = await page.evaluate(() => document.activeElement.href);
    await page.keyboard.press('Enter');
    await page.waitForURL(target);
    await settled(page);
    await page.keyboard.press('Escape');
    await heading(page, 'Executions');
    await page.keyboard.press('/');
    await page.waitForFunction(() => document.activeElement.matches('input[type=search]'));
    await wantNothingWrong(page);
  },

  async 'new executions appear'(ids) {
    const page = await open(adminKey);
    await page.getByText('Live', { exact: true }).waitFor();
    await run(ids.sandbox, '"appears by itself"');
    await page.locator('.sizer .row', { hasText: 'appears by itself' }).waitFor();
    await page.locator('.sizer .row', { hasText: 'appears by itself' }).getByText('completed').waitFor();
    await wantNothingWrong(page);
  },

  async 'a million executions'() {
    const page = await open();
    const total = 1_000_000;
    const begun = Date.parse('2026-01-01T00:00:00Z');
    await page.route('**/executions?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const after = Number(query.get('after') ?? 0);
      const length = Math.min(Number(query.get('limit')), total - after);
      const executions = Array.from({ length }, (_, i) => ({
        execution_id: `e${after + i}`, sandbox_id: 's', user_id: 'u', kind: 'execute', status: 'completed',
        code: `number = ${after + i}`, code_bytes: 10, error: null, execution_time: 0.1, cpu_ms: 1, memory_usage: 1, queries: 0,
        rows_read: 0, connections: 0, artifacts: 0, created_at: new Date(begun - (after + i) * 1000).toISOString(),
        completed_at: new Date(begun).toISOString(),
      }));
      const next = after + length < total ? String(after + length) : undefined;
      return route.fulfill({ json: { executions, next } });
    });
    await page.goto(`${address}/ui/`);
    await signIn(page, adminKey);
    await page.getByText('number = 0', { exact: true }).waitFor();
    // As many rows are loaded below the visible ones as are above, so that one gets far without waiting.
    const height = (rows) => page.waitForFunction((wanted) => document.querySelector('.sizer').clientHeight >= wanted * 34, rows);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 60 * 34; });
    await height(300);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 280 * 34; });
    await height(600);
    // Down to row 20 000, which is more than the pages that are kept.
    await page.evaluate(async () => {
      const box = document.querySelector('.executions .scroll');
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      while (box.scrollTop < 20_000 * 34) {
        box.scrollTop = box.scrollHeight;
        await frame();
      }
      box.scrollTop = 20_000 * 34;
    });
    await page.getByText('number = 20010', { exact: true }).waitFor();
    const rows = await page.locator('.sizer .row').count();
    assert(rows < 100, `got ${rows} rows in the document, want only those on the screen and a few more`);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 0; });
    await page.getByText('number = 0', { exact: true }).waitFor(); // loaded again
    await wantNothingWrong(page);
  },

  async 'what one reads does not move'(ids) {
    const page = await open(adminKey);
    for (let n = 0; n < 60; n++) await run(ids.sandbox, `"filler ${n}"`);
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.sizer .row').first().waitFor();
    await page.locator('.executions .scroll').hover();
    await page.mouse.wheel(0, 500);
    await page.waitForFunction(() => document.querySelector('.executions .scroll').scrollTop > 300);
    const place = () => page.locator('.sizer .row', { hasText: '"filler 40"' }).boundingBox();
    const before = await place();
    await run(ids.sandbox, '"comes while one reads"');
    await page.getByRole('button', { name: /1 new execution/ }).waitFor();
    assert.deepStrictEqual(await place(), before);
    await page.getByRole('button', { name: /1 new execution/ }).click();
    await page.locator('.sizer .row', { hasText: 'comes while one reads' }).waitFor();
    await wantNothingWrong(page);
  },

  async 'the list is loaded again after a gap in its events'(ids) {
    const page = await open(adminKey);
    await page.getByText('Live', { exact: true }).waitFor();
    let isCut = true;
    const feed = (url) => url.pathname === '/executions/events';
    await page.route(feed, (route) => isCut
      ? route.abort('connectionrefused')
      // The service no longer has the events after this one. It says so with the event "gap".
      : route.continue({ headers: { ...route.request().headers(), 'last-event-id': '1' } }));
    await page.reload();
    await page.getByText('Connecting…', { exact: true }).waitFor();
    await page.locator('.sizer .row').first().waitFor();
    const code = `"missed by the feed, ${Date.now()}"`;
    await run(ids.sandbox, code);
    const missed = page.locator('.sizer .row', { hasText: code });
    assert.strictEqual(await missed.count(), 0);
    isCut = false;
    await missed.waitFor();
    page.wrong = page.wrong.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'));
    await wantNothingWrong(page);
  },
};
