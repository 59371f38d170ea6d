// The checks of a service with several databases: the default one, sales with the table orders, and down, which does not
// answer.
const assert = require('node:assert');
const { address, adminKey, call, open, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const chooser = (page) => page.getByLabel('Database', { exact: true });
const content = (page) => page.locator('main .cm-content').first();
const codeOf = (page) => content(page).evaluate((element) =>
  [...element.querySelectorAll('.cm-line')].map((line) => line.innerText.replace(/\n$/, '')).join('\n'));

async function openSchema(options, query = '') {
  const page = await open(adminKey, options);
  await page.goto(`${address}/ui/play?panel=schema${query}`);
  await content(page).waitFor();
  await chooser(page).waitFor();
  await settled(page);
  return page;
}

const tables = (page) => page.locator('.entries summary .name').allTextContents();

module.exports = {
  async 'databases: the schema browser shows the chosen one'() {
    for (const colorScheme of schemes) {
      const page = await openSchema({ colorScheme });
      assert.deepStrictEqual(await chooser(page).locator('option').allTextContents(), ['knowledge (default)', 'sales', 'down']);
      assert((await tables(page)).includes('customers'), 'the tables of the default database');
      await chooser(page).selectOption('sales');
      await page.locator('.entries summary', { hasText: 'customers' }).waitFor({ state: 'detached' });
      await page.locator('.entries summary', { hasText: 'orders' }).click();
      assert.deepStrictEqual(await tables(page), ['orders']);
      await page.locator('.columns-list li', { hasText: 'email' }).getByText('masked').waitFor();
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-databases-schema`);
      await page.reload();
      await page.locator('.entries summary', { hasText: 'orders' }).waitFor();
      assert.strictEqual(await chooser(page).inputValue(), 'sales', 'after a reload');
      await chooser(page).selectOption('knowledge');
      await page.locator('.entries summary', { hasText: 'customers' }).waitFor();
      assert.strictEqual(new URL(page.url()).searchParams.get('database'), null);
      await wantNothingWrong(page);
    }
  },

  async 'databases: a query of the chosen one is inserted and run'() {
    const page = await openSchema({}, '&database=sales');
    await page.locator('.entries summary', { hasText: 'orders' }).click();
    await page.getByRole('button', { name: 'Insert a query of orders' }).click();
    assert.strictEqual((await codeOf(page)).trim(),
      'rows = await db_query("SELECT id, email FROM orders LIMIT 10", database="sales")\nrows');
    await content(page).click();
    await page.keyboard.press('ControlOrMeta+Enter');
    const shown = page.locator('.run').first();
    await shown.locator('> header').getByText('completed', { exact: true }).waitFor();
    await shown.getByRole('grid', { name: 'Result' }).getByText('***').first().waitFor();
    await page.locator('.entries summary', { hasText: 'orders' }).waitFor(); // the session has the same tables
    await shown.getByRole('group', { name: 'Statements' }).getByText('Details').click();
    await shown.getByRole('group', { name: 'Statements' }).getByText('sales', { exact: true }).waitFor();
    await page.goto(`${address}/ui/statements?view=all&database=sales`);
    await page.getByRole('cell', { name: 'sales' }).first().waitFor();
    await page.goto(`${address}/ui/statements?view=all&database=knowledge`);
    await page.getByText('No statements match these filters.').waitFor();
    await wantNothingWrong(page);
  },

  async 'databases: names of the one that a call names are completed'() {
    const page = await openSchema({});
    await content(page).click();
    await page.keyboard.insertText('rows = await db_query("SELECT  FROM orders", database="sales")');
    for (let n = ' FROM orders", database="sales")'.length; n > 0; n--) await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('em');
    const list = page.locator('.cm-tooltip-autocomplete');
    await list.locator('li', { hasText: 'email' }).getByText('text, masked').waitFor();
    assert.deepStrictEqual(await list.locator('.cm-completionLabel').allTextContents().then((all) =>
      all.filter((label) => label === 'customer_id')), [], 'no column of the default database');
    await wantNothingWrong(page);
  },

  async 'databases: one that does not answer is named'() {
    for (const options of [{}, { viewport: { width: 375, height: 740 } }]) {
      const page = await openSchema(options);
      await chooser(page).selectOption('down');
      await page.getByRole('alert').getByText(/database "down" does not answer/).waitFor();
      await page.getByRole('button', { name: 'Try again' }).waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(width <= page.viewportSize().width, `the page is ${width} pixels wide`);
      await wantAccessible(page);
      await shoot(page, `databases-down-${page.viewportSize().width}`);
      await page.goto(`${address}/ui/system`);
      const row = page.getByRole('row', { name: /^down/ });
      await row.waitFor();
      await shoot(page, `databases-system-${page.viewportSize().width}`);
      page.wrong = page.wrong.filter((text) => !/status of 503/.test(text)); // the answer of the schema
      await wantNothingWrong(page);
    }
  },

  async 'databases: a key shows those that it may use'() {
    const made = await call('POST', '/keys', { name: 'sales only', user_id: 'sally', role: 'developer', databases: ['sales'] });
    const page = await open(made.key);
    await page.goto(`${address}/ui/play?panel=schema`);
    await page.locator('.entries summary', { hasText: 'orders' }).waitFor();
    assert.strictEqual(await chooser(page).count(), 0, 'there is nothing to choose');
    await wantNothingWrong(page);
  },
};
