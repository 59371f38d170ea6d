// Checks of the pages of statements and of pending writes.
const assert = require('node:assert');
const { address, adminKey, call, open, run, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'a write of a whole table is red, is counted, asks for the number and can be undone'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
    const mark = `whole ${Date.now()}`;
    await run(sandbox, `await db_query("UPDATE documents SET title = title || '!' /* ${mark} */")`);
    const [{ n }] = (await run(sandbox, 'await db_query("SELECT count(*) AS n FROM documents")')).result;
    const page = await open(adminKey);
    await page.goto(`${address}/ui/writes`);
    const write = page.locator('.write', { hasText: mark });
    await write.getByText('No WHERE: it changes every row of the table.').waitFor();
    assert(await write.evaluate((element) => element.matches('.danger')), 'the write is red');
    await write.getByRole('button', { name: 'Apply' }).click();
    const apply = write.getByRole('button', { name: `Apply to ${n} rows` });
    await apply.waitFor();
    assert(await apply.isDisabled(), 'two clicks apply no write of a whole table');
    await wantAccessible(page);
    await shoot(page, 'write-whole');
    await write.getByLabel(`Type ${n} to apply`).fill(String(n));
    await apply.click();
    await write.getByText(`It changed ${n} rows.`).waitFor();
    await page.getByRole('heading', { name: 'Decided' }).waitFor();
    await write.getByText('Undo script', { exact: true }).click();
    await write.getByText(`It restores ${n} rows`).waitFor();
    const script = await write.locator('pre[aria-label="Undo script"]').textContent();
    assert.match(script, /^BEGIN;\nUPDATE public.documents AS t SET "title" = o."title"/);
    await shoot(page, 'write-undo');
    await wantAccessible(page);
    await wantNothingWrong(page);
  },

  async 'a pending write is rejected in two steps'() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/writes?status=pending`);
    const write = page.locator('.write').first();
    await write.getByText('DELETE FROM raw_data WHERE id = :id').waitFor();
    await write.getByText('Sample of the rows', { exact: true }).click();
    await write.getByText('Rows as they are now').waitFor();
    await write.getByRole('gridcell').first().waitFor();
    const cells = await write.getByRole('gridcell').allTextContents();
    assert(cells.length === 2 && cells[0] === '9' && cells[1].startsWith('9;'), `got the cells ${cells}`);
    await shoot(page, 'write-sample');
    await write.getByRole('button', { name: 'Reject' }).click();
    const focus = (text) => page.waitForFunction((wanted) => document.activeElement.matches('button') &&
      document.activeElement.textContent === wanted, text);
    const asked = () => page.waitForFunction(() => document.activeElement.getAttribute('aria-label') === 'Reason (optional)');
    await asked();
    assert.strictEqual(await write.getByRole('button', { name: 'Apply', exact: true }).isDisabled(), true);
    await wantAccessible(page);
    await page.keyboard.press('Escape');
    await focus('Reject');
    await page.keyboard.press('Enter');
    await asked();
    const reason = 'the row <b>9</b> is still needed';
    await page.keyboard.type(reason);
    await shoot(page, 'write-reason');
    await page.keyboard.press('Tab');
    await focus('Reject: it never runs');
    await page.keyboard.press('Enter');
    const rejected = page.locator('.write', { hasText: reason }); // among the decided ones
    await rejected.getByText('rejected').waitFor();
    await page.goto(`${address}/ui/writes?status=rejected`);
    await page.locator('.write').first().getByText(reason).waitFor();
    await page.goto(`${address}/ui/audit?action=rejected`);
    await page.getByText(reason).first().waitFor();
    // The page of the run that sent it says what became of it.
    const { pending_writes: [{ execution_id: id }] } = await call('GET', '/pending-writes?status=rejected&limit=1');
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('group', { name: 'Statements' }).getByText('rejected by admin').waitFor();
    await wantNothingWrong(page);
  },

  async 'a write that comes while one reads the others appears below them, and is counted in the menu'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
    const mark = `news ${Date.now()}`;
    const capture = (id) => run(sandbox, `await db_query("DELETE FROM raw_data WHERE id = ${id} /* ${mark} */")`);
    await capture(1);
    const page = await open(adminKey);
    await page.clock.install(); // the pages look every few seconds
    const later = () => page.clock.fastForward(12_000);
    await page.goto(`${address}/ui/writes?status=pending`);
    const writes = page.locator('.write', { hasText: mark });
    await writes.first().getByText('WHERE id = 1').waitFor();
    await capture(2);
    await later();
    await writes.nth(1).getByText('WHERE id = 2').waitFor(); // behind the others: nothing moves below the pointer
    const { pending: waiting } = await call('GET', '/pending-writes/count');
    await page.locator('nav .badge', { hasText: String(waiting) }).waitFor();
    await wantAccessible(page);
    // Another admin decides.
    await page.goto(`${address}/ui/writes`);
    await writes.first().getByText('pending').waitFor();
    const { pending_writes: pending } = await call('GET', '/pending-writes?status=pending');
    for (const { id, query } of pending) if (query.includes(mark)) await call('POST', `/pending-writes/${id}/reject`, {});
    await later();
    await writes.first().getByText('rejected').waitFor();
    await writes.last().getByText('rejected').waitFor();
    // An empty list shows the first write itself.
    const user = `writer-${Date.now()}`;
    const { key } = await call('POST', '/keys', { name: user, user_id: user, role: 'agent' });
    await page.goto(`${address}/ui/writes?user=${user}`);
    await page.getByText('No writes match these filters.').waitFor();
    await call('POST', '/sandbox/agent/quick-execute', { config: { write_policy: 'capture' },
      code: `await db_query("DELETE FROM raw_data WHERE id = 3 /* ${mark} */")` }, key);
    await later();
    await writes.first().getByText('WHERE id = 3').waitFor();
    await wantNothingWrong(page);
  },

  async 'the sample of an UPDATE begins with what changes'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
    await run(sandbox, 'await db_query("UPDATE products SET price = 1 WHERE id = 7")');
    const page = await open(adminKey);
    await page.goto(`${address}/ui/writes?status=pending`);
    const write = page.locator('.write', { hasText: 'UPDATE products SET price = 1' }).first();
    await write.getByText('Sample of the rows', { exact: true }).click();
    await write.getByRole('columnheader').first().waitFor();
    assert.deepStrictEqual((await write.getByRole('columnheader').allTextContents()).slice(0, 4), ['Row', 'id', 'price', 'new price']);
    await write.getByText('Counted: 1 row.').waitFor();
    await write.getByText('Rows before and after: run it now and roll back', { exact: true }).click();
    await write.getByText('It changed 1 row, and was rolled back.').waitFor();
    await wantNothingWrong(page);
  },

  async 'statements are listed by a table that they read, also through a view'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const mark = `t${Date.now()}`;
    for (const from of ['customer_revenue', 'orders', 'users']) {
      await run(sandbox, `await db_query("SELECT count(*) AS ${mark}_${from} FROM ${from}")`);
    }
    const page = await open(adminKey);
    const want = (view) => page.waitForFunction(([text, isAll]) => {
      const rows = [...document.querySelectorAll('tbody tr')].map((row) => row.textContent).filter((row) => row.includes(text));
      return (isAll ? !location.search.includes('table=') : location.search.includes('table=orders')) &&
        ['customer_revenue', 'orders', 'users'].every((name) => rows.some((row) => row.includes(`${text}_${name}`)) === (isAll || name !== 'users'));
    }, [mark, view === 'any']);
    for (const view of ['?view=all', '']) {
      await page.goto(`${address}/ui/statements${view}`);
      await want('any');
      await page.getByRole('combobox', { name: 'Table' }).selectOption('orders');
      await want('orders');
      await page.reload();
      await want('orders');
      await page.locator('.chip', { hasText: 'orders' }).getByRole('button').click();
      await want('any');
    }
    await wantNothingWrong(page);
  },

  async 'on a phone a statement takes few lines, and no words are about keys'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    await run(sandbox, 'for n in range(5):\n    await db_query("SELECT 1 AS short")');
    const page = await open(adminKey, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await page.goto(`${address}/ui/statements?view=all&sandbox=${sandbox}`);
    await page.locator('tbody tr').nth(4).waitFor();
    const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.offsetHeight));
    assert(heights.every((height) => height < 120), `got rows of ${heights} pixels`);
    await wantAccessible(page);
    await shoot(page, 'statements-phone');
    for (const name of ['/statements', '/play', '/debug']) {
      await page.goto(`${address}/ui${name}`);
      await page.locator('h1').waitFor();
      assert.doesNotMatch(await page.locator('body').innerText(), /F9|Ctrl|Escape/, name);
    }
    await wantNothingWrong(page);
  },

  async 'statements are counted by shape, and captured ones change no rows'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
    const mark = `x${Date.now()}`;
    const { execution_id: id } = await run(sandbox, `await db_query("""
UPDATE raw_data SET id = id WHERE id = 9 AND '${mark}' = '${mark}'""")`);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    const row = page.getByRole('group', { name: 'Statements' }).locator('tbody tr');
    await row.getByText('captured').waitFor();
    assert.strictEqual(await row.locator('.number').first().textContent(), '–');
    assert.match(await row.locator('pre').first().textContent(), /^UPDATE/, 'without the empty line');
    await page.goto(`${address}/ui/statements`);
    await page.getByText(/^\d+ shapes?, [\d,]+ calls? since/).waitFor();
    assert.strictEqual(await page.getByRole('combobox', { name: 'Time' }).locator('option:checked').textContent(), 'Last 24 hours');
    const shapes = await page.locator('tbody tr').count();
    const [, shown] = /^(\d+) shapes?,/.exec(await page.locator('.below-filters').textContent());
    assert.strictEqual(Number(shown), shapes);
    const top = page.locator('tbody tr', { hasText: 'UPDATE raw_data SET id' });
    assert.strictEqual(await top.locator('.number').nth(5).textContent(), '0');
    await top.getByRole('link').click();
    await page.locator('.chip', { hasText: 'UPDATE raw_data SET id' }).waitFor();
    await wantNothingWrong(page);
  },
};
