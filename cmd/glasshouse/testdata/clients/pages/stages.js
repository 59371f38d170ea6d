// Checks of the rows after each line of a statement, on the page of its execution.
const assert = require('node:assert');
const { address, adminKey, call, open, run, schemes, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

// The report of docs/sql.md: an order counts once for each of its items.
const revenue = `SELECT c.city, SUM(o.total) AS revenue
FROM customers c
JOIN orders o ON o.customer_id = c.id
JOIN order_items i ON i.order_id = o.id
WHERE o.status = 'paid'
GROUP BY c.city
ORDER BY revenue DESC`;

async function execute(ids, sql) {
  return (await run(ids.sandbox, `await db_query(${JSON.stringify(sql)})`)).execution_id;
}

const ask = (page) => page.getByRole('button', { name: /^Rows after each line/ }).click();

// openStages opens the rows after each line of a statement.
async function openStages(ids, sql, options) {
  const page = await open(adminKey, options);
  await page.goto(`${address}/ui/executions/${await execute(ids, sql)}`);
  await ask(page);
  await page.locator('.stages :is(.lines-table, .notice)').first().waitFor();
  return page;
}

// lines returns the cells of each line.
const lines = (page) => page.locator('.lines-table > tbody > tr:not(.opened-step)').evaluateAll((rows) =>
  rows.map((row) => [...row.children].map((cell) => cell.innerText.trim().replace(/\s+/g, ' '))));

const withoutConsole = (page) => { page.wrong = page.wrong.filter((text) => !/status of 422/.test(text)); };

module.exports = {
  async 'a wrong report shows the join that repeats rows'(ids) {
    for (const colorScheme of schemes) {
      const page = await openStages(ids, revenue, { colorScheme });
      const shown = await lines(page);
      assert.strictEqual(shown.length, 7);
      assert.deepStrictEqual(shown[1].slice(2), ['300', '']);
      assert.match(shown[3].join(' '), /4 JOIN order_items i .*10,081 \+5,081 repeated/);
      assert.match(shown[4].join(' '), /4,302 −5,779 lost/);
      const findings = page.getByRole('region', { name: 'Findings' });
      await findings.getByRole('heading', { name: 'Check first' }).waitFor();
      await findings.getByText('SUM(o.total) counts rows of o several times').waitFor();
      await findings.getByRole('button', { name: 'line 4' }).click();
      const line = page.getByRole('button', { name: /^JOIN order_items i/ });
      assert.strictEqual(await line.getAttribute('aria-expanded'), 'true');
      assert(await line.evaluate((button) => button === document.activeElement), 'the line has the focus');
      await page.getByText('5,081 are repeated: a row has up to 3 partners.').waitFor();
      const keys = page.getByRole('group', { name: 'Keys that several rows of order_items i have' });
      assert.match((await keys.innerText()).replace(/\s+/g, ' '), /^order_id rows \d+ 3 /);
      await page.getByRole('group', { name: 'Rows after JOIN order_items' }).waitFor();
      await wantAccessible(page);
      await shoot(page, `stages-${colorScheme}`);
      await page.keyboard.press('Enter'); // closes it again
      await keys.waitFor({ state: 'detached' });
      await wantNothingWrong(page);
    }
  },

  async 'a missing row has the line that loses it'(ids) {
    const page = await openStages(ids, revenue);
    const form = page.getByRole('region', { name: 'Why is this row missing?' });
    await form.getByLabel('Column', { exact: true }).fill('orders.id');
    await form.getByLabel('Value', { exact: true }).fill('1');
    await page.keyboard.press('Enter');
    await form.getByText('A row with o.id = 1 is not in the result. Line 5 loses it: the condition is false there.').waitFor();
    await form.getByRole('button', { name: 'line 5' }).click();
    assert.strictEqual(await page.getByRole('button', { name: /^WHERE o.status/ }).getAttribute('aria-expanded'), 'true');
    await wantAccessible(page);
    await form.getByLabel('Column', { exact: true }).fill('orders.idd');
    await form.getByRole('button', { name: 'Find the line' }).click();
    await form.getByText(/no column orders.idd/).waitFor();
    withoutConsole(page);
    await wantNothingWrong(page);
  },

  async 'a cell of the rows has the rows that made it'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${await execute(ids, revenue)}`);
    await page.getByRole('button', { name: 'Show the rows of statement 1' }).click();
    const grid = page.getByRole('grid', { name: 'Rows of statement 1' });
    await grid.getByText('city', { exact: true }).click(); // sorts the rows: the cell is found by its place before
    await grid.locator('[data-row="0"] [data-column="0"]', { hasText: 'Berlin' }).waitFor();
    const cell = grid.locator('[data-row="0"] [data-column="1"]');
    const value = await cell.innerText();
    await cell.click();
    await page.getByRole('button', { name: 'Which rows made this cell?' }).click();
    const behind = page.getByRole('region', { name: /^Rows that made revenue of row/ });
    await behind.getByText('Checked: these rows alone give the value again.').waitFor();
    assert.match(await behind.innerText(), new RegExp(`revenue is ${value} where c.city IS NOT DISTINCT FROM 'Berlin'`));
    await behind.getByText(/^orders/).waitFor();
    await behind.getByRole('group', { name: 'Rows of orders', exact: true }).waitFor();
    await wantAccessible(page);
    await shoot(page, 'rows-behind');
    await wantNothingWrong(page);
  },

  async 'a masked column shows no value'(ids) {
    const sql = "SELECT u.id, u.email, a.action\nFROM users u\nJOIN user_activities a ON a.user_id = u.id\nLIMIT 5";
    const page = await openStages(ids, sql);
    await page.getByRole('button', { name: /^FROM users u/ }).click();
    const sample = page.getByRole('group', { name: 'Rows after users u' });
    await sample.waitFor();
    const emails = await sample.locator('tbody td:nth-child(3)').allInnerTexts();
    assert.deepStrictEqual([...new Set(emails)], ['***']);
    assert.doesNotMatch(await page.locator('body').innerText(), /@/);
    await wantNothingWrong(page);
  },

  async 'what is not counted is said in words'(ids) {
    for (const [sql, text] of [
      ['SELECT random() AS r FROM orders LIMIT 2', 'Not counted: the statement gives other rows each time that it runs'],
      ['SHOW server_version', 'Not counted: only a SELECT has rows after each line'],
    ]) {
      const page = await openStages(ids, sql);
      await page.getByText(text).waitFor();
      await wantAccessible(page);
      withoutConsole(page);
      await wantNothingWrong(page);
    }
    const page = await openStages(ids, "SELECT o.id\nFROM orders o\nWHERE o.status = 'PAID'\n  AND o.total > 5");
    await page.getByText('The statement returns no rows now. The first line that leaves none is line 3.').waitFor();
    await wantNothingWrong(page);
  },

  async 'a question is cancelled when the reader stops it or leaves'(ids) {
    const page = await open(adminKey);
    const isQuestion = (request) => request.url().endsWith('/queries/1/stages');
    await page.route('**/queries/1/stages', () => {}); // no answer
    await page.goto(`${address}/ui/executions/${await execute(ids, revenue)}`);
    // cancels presses a button that asks, and expects that end cancels the question.
    const cancels = async (begin, end) => {
      const asked = page.waitForRequest(isQuestion);
      await begin();
      const question = await asked;
      await page.getByText('Counting the rows after each line').waitFor();
      const gone = page.waitForEvent('requestfailed', (request) => request === question);
      await end();
      await gone;
    };
    await cancels(() => ask(page), () => page.getByRole('button', { name: 'Stop' }).click());
    await page.getByText('Stopped, and cancelled in the database.').waitFor();
    await cancels(
      () => page.getByRole('button', { name: 'Ask again' }).click(),
      () => page.getByRole('link', { name: 'Statements' }).click());
    page.wrong = page.wrong.filter((text) => !/ERR_ABORTED|ERR_FAILED/.test(text));
    await wantNothingWrong(page);
  },

  async 'lines are rows of two lines on a phone'(ids) {
    const page = await openStages(ids, revenue, { viewport: { width: 390, height: 844 } });
    assert.match((await lines(page))[3].join(' '), /JOIN order_items i .*10,081 \+5,081 repeated/);
    const [text, rows] = await page.locator('.lines-table tr', { hasText: 'order_items' }).locator('td').evaluateAll(
      (cells) => cells.slice(0, 2).map((cell) => cell.getBoundingClientRect().toJSON()));
    assert(rows.top >= text.bottom - 1, JSON.stringify([text, rows]));
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page does not scroll sideways');
    await wantAccessible(page);
    await shoot(page, 'stages-phone');
    await wantNothingWrong(page);
  },

  async 'the code of the table is loaded when somebody asks'(ids) {
    const page = await open(adminKey);
    const scripts = [];
    page.on('request', (request) => /\.js$/.test(request.url()) && scripts.push(request.url()));
    await page.goto(`${address}/ui/executions/${await execute(ids, revenue)}`);
    await page.getByText(/runs it again and counts, for at most \d+ s/).waitFor();
    assert(!scripts.some((name) => /\/parts-/.test(name)), scripts.join(' '));
    await ask(page);
    await page.locator('.lines-table').waitFor();
    assert(scripts.some((name) => /\/parts-/.test(name)), scripts.join(' '));
    assert.strictEqual((await call('GET', '/executions?kind=database-query&limit=1')).executions.length, 1, 'it is on record');
  },
};
