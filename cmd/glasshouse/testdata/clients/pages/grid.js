// Checks of the grid that shows every table.
const assert = require('node:assert');
const fs = require('node:fs');
const { address, adminKey, call, open, run, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const typed = `import pandas as pd, decimal
n = 10_000
df = pd.DataFrame({"order_id": range(1_000_000, 1_000_000 + n), "amount": [decimal.Decimal(i * 1_234_567) / 100 for i in range(n)],
    "ratio": [float("nan") if i == 2 else i / 4 for i in range(n)],
    "note": [None if i == 1 else "" if i == 2 else f"<b>note {i}</b>" + " text" * (i % 400) for i in range(n)],
    "doc": [{"id": i, "tags": ["x"] * (i % 100)} for i in range(n)]}, dtype=object).astype({"order_id": int, "ratio": float})
for c in range(115):
    df[f"extra_{c}"] = c
df`;

const large = (rows, columns) => `import numpy as np, pandas as pd
pd.DataFrame({f"column_{c}": np.arange(${rows}) * (c + 1) for c in range(${columns})})`;

const session = async () => (await call('POST', '/sandbox/create', { max_memory_mb: 1024 })).sandbox_id;

// show runs code and opens the page of the execution. It returns the grid of its last value.
async function show(page, sandbox, code) {
  const { execution_id: id } = await run(sandbox, code);
  await page.goto(`${address}/ui/executions/${id}`);
  const panel = page.locator('.panel', { hasText: /Last value|Result/ }).filter({ has: page.getByRole('grid') });
  await panel.getByRole('gridcell').first().waitFor();
  return panel;
}

const cell = (panel, row, column) => panel.locator(`[data-row="${row}"] [data-column="${column}"]`);

async function goTo(page, panel, row) {
  await panel.getByLabel('Go to row').fill(String(row));
  await page.keyboard.press('Enter');
}

// scroll scrolls the grid in both directions, and returns the CPU time of the longest task of the page's main thread.
async function scroll(page) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ['devtools.timeline', 'toplevel', 'disabled-by-default-devtools.timeline'] });
  await page.evaluate(async () => {
    const box = document.querySelector('.grid-box');
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const most = box.scrollHeight - box.clientHeight;
    for (let n = 0; n < 200; n++) {
      box.scrollTop = n < 80 ? n * 57 : most * (n - 80) / 120;
      if (n % 3 === 0) box.scrollLeft = (box.scrollWidth - box.clientWidth) * n / 200;
      await frame();
    }
  });
  const { traceEvents: events } = JSON.parse((await browser.stopTracing()).toString());
  const main = events.filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map((e) => `${e.pid}/${e.tid}`);
  const times = events.filter((e) => /RunTask$/.test(e.name) && e.tdur && main.includes(`${e.pid}/${e.tid}`)).map((e) => e.tdur / 1000);
  assert(times.length > 100, `got ${times.length} tasks in the trace`);
  return Math.round(Math.max(...times));
}

module.exports = {
  async 'a table has all rows and columns of the session, with their types'() {
    const sandbox = await session();
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      const panel = await show(page, sandbox, typed);
      await panel.getByText('10,000 rows, 120 columns').waitFor();
      assert.deepStrictEqual(await Promise.all([1, 2, 3].map((c) => cell(panel, 2, c).textContent())), ['24,691.34', 'NaN', 'empty']);
      assert.strictEqual(await cell(panel, 1, 3).textContent(), 'NULL');
      assert.strictEqual(await cell(panel, 1, 0).textContent(), '1,000,001');
      for (const c of [0, 1, 2]) assert.strictEqual(await cell(panel, 1, c).evaluate((e) => getComputedStyle(e).textAlign), 'right');
      await goTo(page, panel, 5000);
      await cell(panel, 4999, 0).getByText('1,004,999').waitFor();
      await goTo(page, panel, 10_001);
      await panel.getByText('There is no row 10,001: the table has 10,000 rows.').waitFor();
      await cell(panel, 4999, 0).waitFor(); // it stays where it is
      await panel.getByRole('grid').focus();
      await page.keyboard.press('Control+End');
      await cell(panel, 9999, 119).getByText('114').waitFor();
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-grid`);
      await wantNothingWrong(page);
    }
    const phone = await open(adminKey, { viewport: { width: 390, height: 844 } });
    await show(phone, sandbox, 'df');
    assert(await phone.evaluate(() => document.documentElement.scrollWidth) <= 390);
    await shoot(phone, 'phone-grid');
    await wantNothingWrong(phone);
  },

  async 'rows are sorted, filtered and counted where they are'() {
    const page = await open(adminKey);
    const panel = await show(page, await session(), typed);
    const heading = panel.getByRole('columnheader', { name: 'amount' });
    await heading.click();
    await heading.click();
    await cell(panel, 0, 1).getByText('123,444,354.33').waitFor();
    assert.strictEqual(await heading.getAttribute('aria-sort'), 'descending');
    await panel.getByRole('button', { name: 'Filter' }).click();
    await panel.getByLabel('Filter ratio').fill('>= 2400');
    await panel.getByText('400 of 10,000 rows').waitFor();
    await panel.getByLabel('Filter note').fill('note 9999');
    await panel.getByText('1 of 10,000 rows').waitFor();
    await goTo(page, panel, 2);
    await panel.getByText('There is no row 2 here: 1 row of 10,000 match').waitFor();
    await wantAccessible(page);
    await shoot(page, 'grid-filter');
    await panel.getByRole('button', { name: 'Clear filters' }).click();
    await panel.getByText('10,000 rows, 120 columns').waitFor();
    await panel.getByRole('columnheader', { name: 'ratio' }).hover();
    const stats = panel.locator('.grid-stats');
    await stats.getByText('median').waitFor();
    assert.match(await stats.textContent(), /values10,000NaN1distinct.*min0.*max2,499\.75/);
    await shoot(page, 'grid-stats');
    await page.mouse.move(0, 0);
    await stats.waitFor({ state: 'detached' });
    await wantNothingWrong(page);
  },

  async 'long texts and JSON open in place, also by keyboard'() {
    const page = await open(adminKey);
    const panel = await show(page, await session(), typed);
    await goTo(page, panel, 400);
    await cell(panel, 399, 3).dblclick();
    const opened = panel.getByRole('region', { name: 'Row 400, note' });
    await opened.getByText('2,010 characters').waitFor();
    assert.strictEqual(await opened.locator('pre').textContent(), `<b>note 399</b>${' text'.repeat(399)}`);
    await panel.getByRole('grid').focus();
    await page.keyboard.press('ArrowRight');
    await panel.getByRole('region', { name: 'Row 400, doc' }).getByText('"id": 399,').waitFor();
    await wantAccessible(page);
    await shoot(page, 'grid-opened');
    await page.keyboard.press('Escape');
    await panel.getByRole('region').waitFor({ state: 'detached' });
    await wantNothingWrong(page);
  },

  async 'cells are copied, and all rows are downloaded'() {
    const page = await open(adminKey, { permissions: ['clipboard-read', 'clipboard-write'] });
    const panel = await show(page, await session(), typed);
    await cell(panel, 1, 0).click();
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('ControlOrMeta+c');
    await panel.getByText('Copied 2 rows').waitFor();
    assert.strictEqual(await page.evaluate(() => navigator.clipboard.readText()), '1000001\t12345.67\n1000002\t24691.34');
    const [download] = await Promise.all([page.waitForEvent('download'), panel.getByRole('button', { name: 'Download CSV' }).click()]);
    const lines = fs.readFileSync(await download.path(), 'utf8').split('\r\n');
    assert.strictEqual(lines.length, 10_002);
    assert.match(lines[0], /^order_id,amount,ratio,note,doc,extra_0,/);
    assert.match(lines[2], /^1000001,12345\.67,0\.25,,"\{""id"":1,/); // NULL is nothing
    assert.match(lines[3], /^1000002,24691\.34,nan,"",/); // and the empty text is quoted
    assert(lines[400].includes(' text'.repeat(399)), 'long texts are whole');
    await wantNothingWrong(page);
  },

  async 'a table that the session has no longer says what is kept'() {
    const page = await open(adminKey);
    const sandbox = await session();
    const { execution_id: id } = await run(sandbox, large(10_000, 3));
    await run(sandbox, 'print("the next run")');
    await page.goto(`${address}/ui/executions/${id}`);
    const panel = page.locator('.panel', { hasText: 'Last value' });
    await panel.getByText(/^The first 60 rows of 10,000 are kept: the session no longer has this table/).waitFor();
    await goTo(page, panel, 5000);
    await panel.getByText('Row 5,000 is not kept: the first 60 rows of 10,000 are kept.').waitFor();
    await goTo(page, panel, 60);
    await cell(panel, 59, 0).getByText('59').waitFor();
    await wantAccessible(page);
    await shoot(page, 'grid-kept');
    await wantNothingWrong(page);
  },

  // Rows of a statement come from the log of the execution, after its session has ended.
  async 'the rows of a statement are kept'() {
    const page = await open(adminKey);
    const { execution_id: id } = await call('POST', '/sandbox/agent/quick-execute',
      { code: 'rows = db_query("SELECT n, n::numeric / 4 AS quarter FROM generate_series(1, 1000) n")\nlen(rows)' });
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'Show the rows of statement 1' }).click();
    const panel = page.locator('.statement-rows');
    await panel.getByText('1,000 rows, 2 columns').waitFor();
    await goTo(page, panel, 1000);
    await cell(panel, 999, 0).getByText('1,000').waitFor();
    await wantAccessible(page);
    await page.goto(`${address}/ui/statements?view=all&execution=${id}`);
    await page.getByRole('button', { name: '1,000', exact: true }).click();
    await page.getByRole('grid', { name: 'Rows of the statement' }).getByRole('gridcell', { name: '0.25' }).waitFor();
    await wantAccessible(page);
    await wantNothingWrong(page);
  },

  async 'the tables among the values of a failure have rows'() {
    const page = await open(adminKey);
    const { execution_id: id } = await run(await session(), 'import pandas as pd\ndf = pd.DataFrame({"n": range(500)})\ndf.missing');
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'df', exact: true }).click();
    const panel = page.locator('.panel.danger');
    await panel.getByText('500 rows, 1 column').waitFor();
    await goTo(page, panel, 500);
    await cell(panel, 499, 0).getByText('499').waitFor();
    await wantAccessible(page);
    await wantNothingWrong(page);
  },

  async 'large tables scroll smoothly'() {
    const page = await open(adminKey);
    const sandbox = await session();
    const note = {};
    for (const [rows, columns] of [[1_000_000, 10], [10_000, 200]]) {
      const panel = await show(page, sandbox, large(rows, columns));
      await panel.getByText(`${rows.toLocaleString('en')} rows, ${columns} columns`).waitFor();
      const longest = await scroll(page);
      note[`longest task of ${rows} x ${columns}, ms of CPU`] = longest;
      assert(longest <= 50, `${rows} x ${columns}: a task of the main thread took ${longest} ms`);
      await panel.getByRole('grid').focus();
      await page.keyboard.press('Control+End');
      await cell(panel, rows - 1, columns - 1).getByText(((rows - 1) * columns).toLocaleString('en')).waitFor();
    }
    await wantNothingWrong(page);
    return note;
  },

  // Rows of a database are a table also with a JSON column; a page has them all.
  async 'tables of a result, and outputs that name their columns'(ids) {
    const page = await open(adminKey);
    let panel = await show(page, ids.sandbox, 'rows = [{"id": n, "details": {"path": "/", "n": n} if n % 2 else None} for n in range(25_000)]\nrows');
    await goTo(page, panel, 20_000);
    await cell(panel, 19_999, 1).getByText('{"path":"/","n":19999}').waitFor();
    panel = await show(page, ids.sandbox, 'class T:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n' +
      '        fields = [{"name": "n", "type": "integer"}]\n' +
      '        return {"application/vnd.dataresource+json": {"schema": {"fields": fields}, "data": [{"n": n} for n in range(120)]}, "text/plain": "t"}\nT()');
    await panel.getByText('120 rows, 1 column').waitFor();
    assert.strictEqual(await panel.getByRole('columnheader').nth(1).textContent(), 'ninteger');
    await wantNothingWrong(page);
  },
};
