// Checks of the list of executions: /ui/.
const assert = require('node:assert');
const { address, adminKey, heading, open, run, settled, signIn, wantNothingWrong } = require('./browser.js');

const total = 1_000_000;

// serveNumbers answers the requests of the list with the executions 0 to 999 999, of which an execution n is there while has(n).
async function serveNumbers(page, { has }) {
  const begun = Date.parse('2026-01-01T00:00:00Z');
  await page.route('**/executions?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    const numbers = [];
    let n = Number(query.get('after') ?? 0);
    for (; n < total && numbers.length < Number(query.get('limit')); n++) if (has(n)) numbers.push(n);
    const executions = numbers.map((number) => ({
      execution_id: `e${number}`, sandbox_id: 's', user_id: 'u', kind: 'execute', status: 'completed',
      code: `number = ${number}`, code_bytes: 10, error: null, execution_time: 0.1, cpu_ms: 1, memory_usage: 1, queries: 0,
      rows_read: 0, connections: 0, artifacts: 0, created_at: new Date(begun - number * 1000).toISOString(),
      completed_at: new Date(begun).toISOString(),
    }));
    return route.fulfill({ json: { executions, next: n < total ? String(n) : undefined } });
  });
}

// goTo scrolls the list to a row, as far as it has rows, which load on the way.
const goTo = (page, row) => page.evaluate(async (wanted) => {
  const box = document.querySelector('.executions .scroll');
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  while (box.scrollTop < wanted * 34 && document.querySelector('.executions > .ending') === null) {
    box.scrollTop = box.scrollHeight;
    await frame();
  }
  box.scrollTop = wanted * 34;
  await frame();
  await frame(); // the rows of the place are drawn in the frame after the scrolling
  window.blanks = [];
}, row);

// watchBlanks looks after each frame whether the part of the list that is on the screen has rows everywhere. blanks returns what
// it has seen since the last goTo.
const watchBlanks = (page) => page.evaluate(() => {
  window.blanks = [];
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const box = document.querySelector('.executions .scroll');
    const sizer = box?.querySelector('.sizer');
    if (!sizer || !box.clientHeight) return;
    const { top, bottom } = box.getBoundingClientRect();
    const end = Math.min(bottom, sizer.getBoundingClientRect().bottom);
    const places = [...box.querySelectorAll('.row')].map((row) => row.getBoundingClientRect()).filter((row) => row.bottom > top && row.top < end);
    const first = Math.min(...places.map((row) => row.top));
    const last = Math.max(...places.map((row) => row.bottom));
    if (end > top && (first > top || last < end)) window.blanks.push(`rows from ${first} to ${last}, want ${top} to ${end}`);
  };
  const look = () => {
    port2.postMessage('');
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
const blanks = (page) => page.evaluate(() => window.blanks.slice(0, 3));

// shownNumbers waits for the rows of the place to which the list is scrolled. It returns the numbers of those that are drawn, in
// the order of the screen.
const shownNumbers = async (page) => (await page.waitForFunction(() => {
  const box = document.querySelector('.executions .scroll');
  const at = (row) => Number(row.ariaRowIndex);
  const rows = [...box.querySelectorAll('.row')].sort((one, other) => at(one) - at(other));
  const numbers = rows.map((row) => Number(row.querySelector('code')?.textContent.replace('number = ', '')));
  const isThere = rows.some((row) => at(row) === Math.floor(box.scrollTop / 34) + 2);
  return isThere && numbers.every((number) => number >= 0) && numbers;
})).jsonValue();

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
    await page.getByLabel('Text in title, code, error or output').fill('nowhere to be found');
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
    await serveNumbers(page, { has: () => true });
    await page.goto(`${address}/ui/executions`);
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

  // Rows were erased, and pages of the list that were forgotten have others than before.
  async 'a list that became shorter'() {
    const page = await open();
    const there = { has: () => true };
    await serveNumbers(page, { has: (n) => there.has(n) });
    await page.goto(`${address}/ui/executions`);
    await signIn(page, adminKey);
    await page.getByText('number = 0', { exact: true }).waitFor();
    await watchBlanks(page);
    await goTo(page, 20_000);
    await page.getByText('number = 20010', { exact: true }).waitFor();
    there.has = (n) => n >= 15_000 || n % 3 > 0; // a third of the first rows is erased
    // Up to the top and down again: each row once, in order, and none of the erased ones once its page was loaded again.
    for (const row of [3000, 0, 1500, 6000, 9000, 3000, 0]) {
      await goTo(page, row);
      const numbers = await shownNumbers(page);
      assert.deepStrictEqual(await blanks(page), []);
      assert(numbers.length > 20, `row ${row}: got ${numbers}`);
      assert.deepStrictEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b), `row ${row}: each execution once, in order`);
    }
    assert.deepStrictEqual((await shownNumbers(page)).slice(0, 6), [1, 2, 4, 5, 7, 8]);
    // All but the newest are erased while one is far down: the list ends before the page that is loaded again.
    await goTo(page, 20_000);
    await page.getByText(/^number = 2\d{4}$/).first().waitFor();
    there.has = (n) => n < 30;
    await goTo(page, 14_000);
    await page.locator('.executions > .ending').waitFor();
    assert((await shownNumbers(page)).length > 20);
    assert.deepStrictEqual(await blanks(page), []);
    await wantNothingWrong(page);
  },

  // A filter is chosen, and the page is loaded again, while one is far down.
  async 'a shorter list after a filter'() {
    const page = await open();
    await serveNumbers(page, { has: () => true });
    await page.route('**/executions?status=killed*', (route) => route.fulfill({ json: { executions: [] } }));
    await page.route('**/executions?status=failed*', async (route) => {
      const answer = await fetch(new URL('/executions?limit=3', route.request().url()), { headers: { Authorization: `Bearer ${adminKey}` } });
      return route.fulfill({ json: { executions: (await answer.json()).executions } });
    });
    await page.goto(`${address}/ui/executions`);
    await signIn(page, adminKey);
    await page.getByText('number = 0', { exact: true }).waitFor();
    await watchBlanks(page);
    for (const [status, want] of [['failed', 3], ['killed', 0]]) {
      await goTo(page, 5000);
      await page.getByText('number = 5005', { exact: true }).waitFor();
      await page.getByLabel('Status').selectOption(status);
      await page.waitForFunction((number) => document.querySelectorAll('.sizer .row').length === number, want);
      if (!want) await page.getByText('No execution matches these filters.').waitFor();
      await page.getByRole('button', { name: 'Clear all' }).first().click();
      await page.getByText('number = 0', { exact: true }).waitFor();
      assert.deepStrictEqual(await blanks(page), []);
    }
    await goTo(page, 5000);
    await page.getByText('number = 5005', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('number = 0', { exact: true }).waitFor();
    await wantNothingWrong(page);
  },

  // What happens while another page is open is told when one comes back to a place further down.
  async 'the list knows what happened while another page was open'(ids) {
    const page = await open(adminKey);
    for (let n = 0; n < 40; n++) await run(ids.sandbox, `"before ${n}"`);
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.sizer .row').first().waitFor();
    await run(ids.sandbox, '"an event of the feed"');
    await page.locator('.sizer .row', { hasText: 'an event of the feed' }).getByText('completed').waitFor();
    await page.locator('.executions .scroll').hover();
    await page.mouse.wheel(0, 500);
    await page.waitForFunction(() => document.querySelector('.executions .scroll').scrollTop > 300);
    await page.locator('.sizer .row', { hasText: '"before 20"' }).click();
    await page.waitForURL(/executions\/./);
    await run(ids.sandbox, '"while another page was open"');
    await page.goBack();
    await page.getByRole('button', { name: /1 new execution/ }).click();
    await page.locator('.sizer .row', { hasText: 'while another page was open' }).waitFor();
    // A list that has had no event does not know what it missed.
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.executions .scroll').hover();
    await page.mouse.wheel(0, 500);
    await page.waitForFunction(() => document.querySelector('.executions .scroll').scrollTop > 300);
    await page.locator('.sizer .row', { hasText: '"before 20"' }).click();
    await page.waitForURL(/executions\/./);
    await run(ids.sandbox, '"before the first event"');
    await page.goBack();
    await page.getByRole('button', { name: 'Show what is new' }).click();
    await page.locator('.sizer .row', { hasText: 'before the first event' }).waitFor();
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
