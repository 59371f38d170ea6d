// Checks of the playground's sessions, and of the panels beside the editor.
const assert = require('node:assert');
const { address, call, run, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');
const { content, codeOf, sandboxOf, newest, openPlayground, write, runCode, ended } = require('./playground.js');

module.exports = {
  async 'playground: a new session, and the way back'() {
    const page = await openPlayground();
    const live = async () => (await call('GET', '/sandboxes?status=active&limit=1000')).sandboxes.map((each) => each.sandbox_id);
    // A session with variables stays, and one can go back to it.
    await ended(await runCode(page, 'kept = 41'));
    const first = sandboxOf(page);
    await page.getByRole('button', { name: 'New session' }).click();
    await page.getByText(`Session ${first.slice(0, 8)} is still there, with its variables.`).waitFor();
    await page.locator('.run').first().waitFor({ state: 'detached' });
    await wantAccessible(page);
    await shoot(page, 'play-former');
    await page.getByRole('link', { name: 'Go back to it' }).click();
    await newest(page).getByText('kept = 41').waitFor();
    const result = await runCode(page, 'kept + 1');
    await result.getByRole('group', { name: 'Result' }).getByText('42').waitFor();
    await page.getByRole('button', { name: 'New session' }).click();
    await ended(await runCode(page, '"of the second"'));
    const second = sandboxOf(page);
    // The list leads from one to the other, and ends one.
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    const entry = (id) => page.getByRole('list', { name: 'Your live sessions' }).getByRole('listitem').filter({ hasText: id.slice(0, 8) });
    await entry(second).getByText('is open here').waitFor();
    await entry(second).getByText(/^begun [-\d]+ [:\d]+, used [-\d]+ [:\d]+, UTC/).waitFor(); // a time has its zone
    assert.match(await newest(page).locator('> header time').textContent(), /^[:\d]{8} UTC/);
    await shoot(page, 'play-sessions');
    await wantAccessible(page);
    await entry(first).getByRole('link').click();
    await entry(first).getByText('is open here').waitFor();
    await page.locator('.run', { hasText: 'kept = 41' }).waitFor();
    await entry(second).getByRole('button', { name: 'End' }).click();
    await page.getByRole('button', { name: 'End it, with its variables' }).click();
    await entry(second).waitFor({ state: 'detached' });
    assert.deepStrictEqual((await live()).filter((id) => [first, second].includes(id)), [first]);
    await entry(first).getByRole('button', { name: 'End' }).click();
    await page.getByRole('button', { name: 'End it, with its variables' }).click();
    await page.getByText('This session has ended.').waitFor();
    await entry(first).waitFor({ state: 'detached' });
    await wantNothingWrong(page);
  },

  async 'playground: former runs of a long session'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const long = `text = "${'x'.repeat(300)}"\n"the end of run 1"`;
    for (const n of Array.from({ length: 22 }, (_, i) => i + 1)) await run(sandbox, n === 3 ? long : `"value ${n}"`);
    const page = await openPlayground(`?sandbox=${sandbox}`);
    await newest(page).getByRole('heading', { name: 'Run 22' }).waitFor();
    await newest(page).getByText('value 22').nth(1).waitFor();
    assert.strictEqual(await page.locator('.run').count(), 20);
    await page.getByText('Earlier runs are in').waitFor();
    const oldest = page.locator('.run').last(); // only its summary is loaded
    await oldest.getByRole('heading', { name: 'Run 3' }).waitFor();
    await oldest.getByRole('button', { name: 'Copy code into the editor' }).click();
    await oldest.getByText('the end of run 1').waitFor();
    assert.strictEqual(await codeOf(page), long, 'the whole code, not its beginning');
    // The navigation leads back to the session of the tab.
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('link', { name: 'Playground' }).click();
    await newest(page).getByRole('heading', { name: 'Run 22' }).waitFor();
    assert.strictEqual(sandboxOf(page), sandbox);
    // A session that only the tab remembers is forgotten when it has ended.
    await page.getByRole('link', { name: 'Keys' }).click();
    await call('DELETE', `/sandbox/${sandbox}`);
    await page.getByRole('link', { name: 'Playground' }).click();
    await page.getByText('A session begins when you run code.').waitFor();
    assert.strictEqual(sandboxOf(page), null);
    page.wrong = page.wrong.filter((text) => !/status of 410/.test(text));
    await wantNothingWrong(page);
  },

  async 'playground: a session that has ended'() {
    const page = await openPlayground();
    await ended(await runCode(page, 'kept = 1'));
    const sandbox = sandboxOf(page);
    await call('DELETE', `/sandbox/${sandbox}`); // from elsewhere
    await write(page, 'kept + 1');
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.getByRole('alert').getByText('This session has ended.').waitFor();
    assert.strictEqual(await codeOf(page), 'kept + 1');
    await shoot(page, 'play-ended');
    await page.reload();
    await page.getByText('This session has ended.').waitFor();
    await page.locator('.run', { hasText: 'kept = 1' }).waitFor();
    await page.getByRole('button', { name: 'Start a new session' }).click();
    await page.locator('.run').first().waitFor({ state: 'detached' });
    await page.keyboard.press('ControlOrMeta+Enter');
    await ended(newest(page), 'failed'); // the variable was of the former session
    assert.notStrictEqual(sandboxOf(page), sandbox);
    await page.getByRole('button', { name: 'End session' }).click();
    await page.getByRole('button', { name: 'End it, with its variables' }).click();
    await page.getByText('This session has ended.').waitFor();
    page.wrong = page.wrong.filter((text) => !/status of 410/.test(text));
    await wantNothingWrong(page);
  },

  async 'playground: a dropped file is read by code'() {
    const page = await openPlayground();
    const drop = async (name, size) => {
      const transfer = await page.evaluateHandle(([fileName, length]) => {
        const data = new DataTransfer();
        data.items.add(new File([length ? 'x'.repeat(length) : 'city,people\nOslo,7\nBergen,3\n'], fileName, { type: 'text/csv' }));
        return data;
      }, [name, size]);
      await content(page).dispatchEvent('drop', { dataTransfer: transfer });
    };
    await drop('cities.csv', 0);
    await page.getByRole('list', { name: 'Uploads', exact: true }).getByText('cities.csv').waitFor();
    assert.strictEqual(await codeOf(page), '', 'the editor inserts no text of a dropped file');
    await page.getByRole('button', { name: 'Insert code that reads cities.csv' }).click();
    assert.match(await codeOf(page), /read_csv\("\/data\/cities.csv"\)/);
    await page.keyboard.press('ControlOrMeta+Enter');
    await newest(page).getByRole('gridcell', { name: 'Bergen' }).waitFor();
    await drop('<img src=x onerror=alert(1)>.bin', 6 << 20);
    await page.getByText('<img src=x onerror=alert(1)>.bin is not uploaded').waitFor();
    await page.getByText(/\.bin has 6.00 MB; the uploads of a session may have 5.00 MB/).waitFor();
    await page.getByRole('button', { name: /^Dismiss/ }).click();
    await drop('large.bin', 5 << 20); // with the first one more than all may have
    await page.getByText('large.bin is not uploaded').waitFor();
    await page.getByText(/upload_max_bytes: all uploads/).waitFor();
    await shoot(page, 'play-files');
    await page.getByRole('button', { name: /^Dismiss/ }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByText('cities.csv', { exact: true }).waitFor({ state: 'detached' });
    page.wrong = page.wrong.filter((text) => !/status of 413/.test(text));
    await wantNothingWrong(page);
  },

  async 'playground: variables and the schema'() {
    const page = await openPlayground('?panel=variables');
    await ended(await runCode(page, 'population = {"Oslo": 7}\nimport pandas as pd\nframe = pd.DataFrame({"a": [1, 2, 3]})'));
    const variables = page.getByRole('list', { name: 'Variables' });
    await variables.locator('.name', { hasText: 'population' }).waitFor();
    await variables.getByText('DataFrame 3 × 1').waitFor();
    await variables.locator('summary', { hasText: 'population' }).click();
    await page.getByRole('group', { name: 'Value of population' }).getByText('Oslo').waitFor();
    await shoot(page, 'play-variables');
    await page.getByRole('link', { name: 'Schema', exact: true }).click();
    await page.getByLabel('Filter tables and columns').fill('ordered_at');
    await page.getByRole('button', { name: 'ordered_at' }).waitFor();
    assert.strictEqual(await page.locator('.play-side .entries > li').count(), 1);
    await write(page, '');
    await page.getByRole('button', { name: 'Insert a query of orders' }).click();
    assert.match(await codeOf(page), /^rows = await db_query\("SELECT id, customer_id, .* FROM orders LIMIT 10"\)\nrows$/);
    await shoot(page, 'play-schema');
    await page.keyboard.press('ControlOrMeta+Enter');
    await newest(page).getByRole('columnheader', { name: 'ordered_at' }).waitFor();
    await page.reload(); // the panel, the session, its runs and the code are there
    await page.getByLabel('Filter tables and columns').waitFor();
    await page.locator('.run').nth(1).waitFor();
    await page.getByRole('link', { name: 'Variables', exact: true }).click();
    await variables.locator('.name', { hasText: 'population' }).waitFor();
    assert.match(await codeOf(page), /FROM orders/);
    await wantNothingWrong(page);
  },

  async 'playground: accessible in both schemes and on a phone'() {
    for (const colorScheme of schemes) {
      const page = await openPlayground('', { colorScheme });
      await page.getByRole('button', { name: 'Plot revenue by month', exact: true }).click();
      await ended(newest(page));
      await page.getByRole('button', { name: 'Run: Misspell a column' }).click();
      await ended(newest(page), 'failed');
      await content(page).focus();
      await page.keyboard.press('ControlOrMeta+End');
      await page.keyboard.type('\nprint(row');
      await page.locator('.cm-tooltip-autocomplete').getByText('rows').first().waitFor();
      await shoot(page, `${colorScheme}-play-completion`);
      await page.keyboard.press('Escape');
      await page.keyboard.type(' = = 1');
      await page.locator('.cm-lintRange-error').first().waitFor();
      await shoot(page, `${colorScheme}-play-checked`);
      for (const panel of ['examples', 'variables', 'schema', 'files', 'functions']) {
        await page.goto(`${address}/ui/play?sandbox=${sandboxOf(page)}&panel=${panel}`);
        await newest(page).locator('.panel').first().waitFor();
        await settled(page);
        await wantAccessible(page);
        await shoot(page, `${colorScheme}-play-${panel}`);
      }
      await page.setViewportSize({ width: 375, height: 740 });
      for (const panel of ['examples', 'schema', 'files']) {
        await page.goto(`${address}/ui/play?sandbox=${sandboxOf(page)}&panel=${panel}`);
        await newest(page).locator('.panel').first().waitFor();
        await settled(page);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert(width <= 375, `the panel ${panel} is ${width} pixels wide, want at most 375`);
        await wantAccessible(page);
        await shoot(page, `${colorScheme}-play-phone-${panel}`);
      }
      await wantNothingWrong(page);
    }
  },
};
