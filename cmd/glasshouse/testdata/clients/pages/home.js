// Checks of the first page, of titles, of the search over everything and of the list of keys.
const assert = require('node:assert');
const { address, adminKey, call, heading, open, run, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'the first page shows what runs, what failed and charts, in both schemes and on a phone'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const mark = `home ${Date.now()}`;
    await run(sandbox, `# ${mark} fails\n1 / 0`);
    for (const colorScheme of schemes) {
      for (const [name, viewport] of [['desktop', { width: 1440, height: 900 }], ['phone', { width: 390, height: 844 }]]) {
        const page = await open(adminKey, { colorScheme, viewport });
        await page.goto(`${address}/ui/`);
        await heading(page, 'Home');
        await page.getByText(`${mark} fails`).waitFor();
        await page.getByRole('img', { name: /\d+ runs?, \d+ failed/ }).waitFor();
        await settled(page);
        await shoot(page, `home-${colorScheme}-${name}`);
        await wantAccessible(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert(wide <= 0, `the page is ${wide} px wider than the screen`);
        await wantNothingWrong(page);
      }
    }
  },

  async 'what begins and fails appears on the first page by itself'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const page = await open(adminKey);
    await page.goto(`${address}/ui/`);
    await page.getByRole('heading', { name: 'Failed last' }).waitFor();
    const mark = `later ${Date.now()}`;
    await run(sandbox, `# ${mark}\n1 / 0`);
    await page.getByText(mark).waitFor();
    await page.getByRole('link', { name: '7 days' }).click();
    await page.waitForURL(/last=week/);
    await page.goto(`${address}/ui/?status=failed`); // a link of earlier versions
    await page.waitForURL(/ui\/executions\?status=failed/);
    await wantNothingWrong(page);
  },

  async 'a plain execution prints while one looks, and its facts say nothing false'() {
    const page = await open(adminKey);
    const mark = `live ${Date.now()}`;
    const ended = call('POST', '/sandbox/agent/quick-execute',
      { code: `# ${mark}\nimport time\nfor n in range(40):\n    print("line", n, flush=True)\n    time.sleep(0.25)` });
    await page.locator('.executions .row', { hasText: mark }).first().getByRole('link').click();
    await page.getByText('line 5', { exact: false }).waitFor();
    await page.getByText('known at the end').first().waitFor();
    assert.strictEqual(await page.getByText('Nothing is printed yet').count(), 0);
    assert.strictEqual(await page.getByText('no code ran').count(), 0);
    await shoot(page, 'live');
    const id = page.url().split('/').at(-1);
    await call('POST', `/executions/${id}/cancel`);
    await ended;
    await wantNothingWrong(page);
  },

  async 'Ctrl+K finds runs, sessions, statements, tables, keys and pages, and opens them'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const mark = `quince${Date.now()}`;
    const { execution_id: id } = await run(sandbox, `print("${mark}".upper()[:6] + "${mark}"[6:])\nawait db_query("SELECT 1 AS ${mark}")`);
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      await page.goto(`${address}/ui/system`);
      await heading(page, 'System');
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search everything' });
      await field.fill(mark);
      const option = (text) => page.locator('.palette').getByRole('option', { name: text });
      await option(`SELECT 1 AS ${mark}`).first().waitFor();
      await shoot(page, `palette-${colorScheme}`);
      await wantAccessible(page);
      await field.fill('users');
      await option(/users/).first().waitFor();
      await page.getByText('Tables').waitFor();
      await field.fill('Pending');
      await option('Pending writes').waitFor();
      await field.fill(mark);
        await page.getByText('Runs', { exact: true }).waitFor();
      await field.press('Enter');
      await page.waitForURL(new RegExp(id));
      await page.keyboard.press('Shift+?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      await shoot(page, `keys-${colorScheme}`);
      await wantAccessible(page);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await wantNothingWrong(page);
    }
  },

  async 'an execution is renamed, found by its output, and its row has the focus after Back'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const mark = `Osaka${Date.now()}`;
    const { execution_id: id } = await run(sandbox, `"${mark.slice(0, 3)}" + "${mark.slice(3)}"`);
    const page = await open(adminKey);
    await page.getByPlaceholder('Search titles, code and output').fill(mark.toLowerCase());
    const row = page.locator('.executions .sizer .row');
    await page.waitForURL(/text=/);
    await page.waitForFunction(() => document.querySelectorAll('.executions .sizer .row').length === 1);
    await row.getByRole('link').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(id));
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Title', { exact: true }).fill('The city of the order');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: /The city of the order/ }).waitFor();
    await wantAccessible(page);
    await shoot(page, 'renamed');
    await page.goBack();
    await row.getByText('The city of the order').waitFor();
    await page.reload();
    await row.getByText('The city of the order').waitFor();
    await row.getByRole('link').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(id));
    await page.goBack();
    await page.waitForFunction(() => document.activeElement?.closest('.executions .row'));
    await wantNothingWrong(page);
  },

  async 'the list has columns of choice, orders and sessions'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const mark = `session ${Date.now()}`;
    await run(sandbox, `# ${mark}\nimport time; time.sleep(0.6)`);
    await run(sandbox, 'len(await db_query("SELECT generate_series(1, 900)"))');
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions?sandbox=${sandbox}`);
    await settled(page);
    const first = () => page.locator('.executions .sizer .row[aria-rowindex="2"]');
    await page.getByRole('button', { name: 'Duration' }).click();
    await page.waitForURL(/order=duration/);
    await first().getByText(mark).waitFor();
    await page.getByRole('button', { name: 'Rows read' }).click();
    await first().getByText('generate_series').waitFor();
    await page.getByText('Columns', { exact: true }).click();
    await page.getByLabel('Session', { exact: true }).check();
    await page.getByRole('columnheader', { name: 'Session' }).waitFor();
    await shoot(page, 'columns');
    await wantAccessible(page);
    await page.getByLabel('User', { exact: true }).first().uncheck();
    await page.reload();
    await page.getByRole('columnheader', { name: 'Session' }).waitFor();
    assert.strictEqual(await page.getByRole('columnheader', { name: 'User' }).count(), 0);
    await page.getByRole('link', { name: 'By session' }).click();
    const session = page.locator('.session', { hasText: mark });
    await session.getByText('2 runs').waitFor();
    await session.locator('summary').click();
    await session.getByRole('link').nth(1).waitFor();
    await shoot(page, 'sessions');
    await wantAccessible(page);
    await wantNothingWrong(page);
  },
};
