// The checks of the page of the debugger: /ui/debug.
const assert = require('node:assert');
const { address, adminKey, call, open, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const program = `def double(n):
    twice = n * 2
    print("<img src=x onerror=alert(1)>", n)
    return twice

data = {"list": [1, 2], "<b>key</b>": "<img src=x onerror=alert(1)>"}
total = 0
for i in range(4):
    total += double(i)
total`;

const tables = `import numpy as np
import pandas as pd
df = pd.DataFrame({"amt": np.arange(500) * 1.5, "<img src=x onerror=alert(1)>": ["<b>a</b>", None] * 250})
series = pd.Series([2.5, 3.5], name="s")
array = np.arange(6).reshape(3, 2)
df.iloc[0, 0] = -1
done = True
`;

const variable = (page, name) => page.locator('.tree li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) }).last();
const value = (page, name, wanted) => variable(page, name).locator('.value', { hasText: wanted }).waitFor();
const current = (page, text) => page.locator('.cm-current', { hasText: text }).waitFor();
const gutter = (page, line) => page.locator('.cm-lineNumbers .cm-gutterElement', { hasText: new RegExp(`^${line}$`) });
// prepare records the program and opens its code in the debugger.
const prepare = async (page, code = program) => {
  const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
  const { execution_id: id } = await call('POST', `/sandbox/${sandbox}/execute`, { code });
  await page.goto(`${address}/ui/debug?execution=${id}&sandbox=${sandbox}`);
  await page.locator('.cm-line', { hasText: code.split('\n')[0] }).first().waitFor();
};

// watchRefusals lists the refused commands of a page as "command: detail".
const watchRefusals = (page) => {
  page.refused = [];
  page.on('response', (response) => {
    if (response.status() !== 422) return;
    const command = new URL(response.url()).pathname.split('/').at(-1);
    // A page that is left takes the body with it. Only what it loads, and not what a user does, is answered so late.
    page.refused.push(response.json().then(({ detail }) => `${command}: ${detail}`, () => 'left'));
  });
  return page;
};
// wantRefused checks that exactly these commands were refused. A reference of the position before may be refused, too:
// the program may move on while the page loads variables.
const wantRefused = async (page, wanted = []) => {
  const refused = await Promise.all(page.refused);
  const others = refused.filter((text) => !/^left$|^(variables|scopes): .*reference \d+ does not exist/.test(text));
  assert.strictEqual(others.length, wanted.length, refused.join('\n'));
  others.forEach((text, index) => assert.match(text, wanted[index]));
  const reports = page.wrong.filter((text) => /status of 422/.test(text));
  assert(reports.length <= refused.length, page.wrong.join('\n'));
  page.wrong = page.wrong.filter((text) => !reports.includes(text));
  await wantNothingWrong(page);
};

module.exports = {
  async 'a start that fails leaves no sandbox'() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/debug`);
    await page.locator('.cm-content').click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText('#'.repeat(100_001)); // over max_code_size
    const created = page.waitForResponse((response) => response.url() === `${address}/sandbox/create`);
    const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('alert').getByText('max_code_size').waitFor();
    const { sandbox_id: sandbox } = await (await created).json();
    assert.strictEqual((await deleted).url(), `${address}/sandbox/${sandbox}`);
    assert.strictEqual(new URL(page.url()).searchParams.get('sandbox'), null);
    page.wrong = page.wrong.filter((text) => !/status of 413/.test(text));
    await wantNothingWrong(page);
  },

  async 'debug a program'() {
    const page = watchRefusals(await open(adminKey));
    await page.getByRole('link', { name: 'Debugger' }).click();
    await page.getByRole('heading', { level: 1, name: 'Debugger' }).waitFor();
    await prepare(page);
    await page.getByLabel('Stop at the first line').uncheck();
    await gutter(page, 2).click();
    await page.locator('.cm-breakpoint').last().waitFor();
    await page.keyboard.press('F5');
    await current(page, 'twice = n * 2');
    await page.waitForURL(/session=/);
    await value(page, 'n', /^0$/);
    await page.locator('.calls button', { hasText: '<module>' }).waitFor();

    await page.keyboard.press('F10');
    await current(page, 'print(');
    await value(page, 'twice', /^0$/);
    await page.keyboard.press('Alt+F10');
    await current(page, 'twice = n * 2');
    await page.getByText('at an earlier step').waitFor();
    await page.keyboard.press('F10');
    await page.getByText('stopped: step').waitFor();

    // A reload attaches to the same session, with its breakpoints and its output.
    await page.reload();
    await current(page, 'print(');
    await page.getByLabel('Line 2, if').waitFor();
    await page.locator('.cm-breakpoint').last().waitFor();

    await page.getByLabel('Evaluate in double').fill('twice + n + 40');
    await page.keyboard.press('Enter');
    await page.locator('.console .answer', { hasText: '40' }).waitFor();
    await page.getByLabel('Evaluate in double').fill('nowhere');
    await page.keyboard.press('Enter');
    await page.locator('.console .failure', { hasText: 'nowhere' }).waitFor();

    // What the program wrote is text, in the console and in the variables.
    await variable(page, 'data').locator('.row-button').first().click();
    await page.locator('.tree .tree .value', { hasText: '<img src=x onerror=alert(1)>' }).waitFor();
    await page.getByLabel('Line 2, if').fill('n == 3');
    await page.keyboard.press('Enter');
    await page.locator('.cm-breakpoint.conditional').waitFor();
    await page.locator('h1').focus();
    await page.keyboard.press('F5');
    await page.getByText('stopped: breakpoint').waitFor();
    await value(page, 'n', /^3$/);
    await page.locator('.console .stdout', { hasText: '<img src=x onerror=alert(1)> 2' }).waitFor();
    await page.locator('.tree .tree .value', { hasText: '<img src=x onerror=alert(1)>' }).waitFor(); // still open
    await page.locator('.calls button', { hasText: '<module>' }).click();
    await current(page, 'total += double(i)');
    await page.keyboard.press('Shift+F11');
    await page.getByText('stopped: step').waitFor();
    await current(page, 'for i in range(4)');
    await page.keyboard.press('Alt+F5'); // back to the breakpoint
    await current(page, 'twice = n * 2');
    await page.keyboard.press('F5');
    await page.getByText('stopped: step').waitFor();
    await page.keyboard.press('F5');
    await page.getByText('The program has ended: completed.').waitFor();
    await page.reload();
    await page.getByText('The program has ended: completed.').waitFor();
    await page.locator('.console .stdout', { hasText: '<img src=x onerror=alert(1)> 3' }).waitFor();
    await page.getByRole('button', { name: 'Step back' }).click();
    await page.getByRole('link', { name: 'its recording' }).click();
    await page.locator('.scrubber').waitFor();
    assert.strictEqual(await page.evaluate(() => document.querySelectorAll('main img[src=x]').length), 0);
    await wantRefused(page, [/^evaluate: .*nowhere/]);
  },

  async 'tables in the debugger'() {
    const page = watchRefusals(await open(adminKey));
    await prepare(page, tables);
    await page.getByLabel('Stop at the first line').uncheck();
    await gutter(page, 6).click();
    await page.locator('.cm-breakpoint').last().waitFor();
    await page.keyboard.press('F5');
    await value(page, 'array', '');
    await variable(page, 'df').getByRole('button').first().click();
    const rows = page.getByRole('grid', { name: 'Rows of df' });
    await rows.getByText('float64').waitFor();
    await rows.getByText('<img src=x onerror=alert(1)>').waitFor(); // as text
    await page.getByText(/^500 rows/).first().waitFor();
    assert.strictEqual(await rows.locator('[data-row="2"]').textContent(), '323.0<b>a</b>');
    await page.keyboard.press('F10'); // df changes
    await rows.locator('[data-row="0"]').getByText('-1.0').waitFor();
    await settled(page);
    await wantAccessible(page);
    await shoot(page, 'debug-table');
    await variable(page, 'series').getByRole('button').first().click();
    await page.getByRole('grid', { name: 'Rows of series' }).getByText('2.5').waitFor();
    await variable(page, 'array').getByRole('button').first().click();
    await page.getByRole('group', { name: 'Contents of array' }).getByText('[2, 3]').waitFor();
    await variable(page, 'array').getByRole('button').first().click();
    await page.getByRole('group', { name: 'Contents of array' }).waitFor({ state: 'detached' });
    await page.keyboard.press('F5');
    await page.getByText('The program has ended: completed.').waitFor();
    await wantRefused(page);
  },

  // The variables of a live program have all rows of a table.
  async 'far rows of a table in the debugger'() {
    const page = watchRefusals(await open(adminKey));
    await prepare(page, `import numpy as np
import pandas as pd
df = pd.DataFrame({"amt": np.arange(1_000_000) * 1.5, "name": ["row"] * 1_000_000})
done = True
`);
    await page.getByLabel('Stop at the first line').uncheck();
    await gutter(page, 4).click();
    await page.locator('.cm-breakpoint').last().waitFor();
    await page.keyboard.press('F5');
    await variable(page, 'df').getByRole('button').first().click();
    await value(page, '0', '0.0');
    const note = {};
    const goTo = async (what, row, action) => {
      const begun = performance.now();
      await action();
      await value(page, row, String(1.5 * row));
      note[`${what}, ms`] = Math.round(performance.now() - begun);
    };
    await page.getByLabel('Go to item').fill('20000');
    await goTo('row 20,000', 20_000, () => page.keyboard.press('Enter'));
    await page.getByText('20,000 to 20,049 of 1,000,000').waitFor();
    await goTo('last rows', 999_999, () => page.getByRole('button', { name: 'Last items' }).click());
    assert.strictEqual(await page.getByRole('button', { name: 'Next items' }).isDisabled(), true);
    await goTo('rows before', 999_900, () => page.getByRole('button', { name: 'Previous items' }).click());
    await page.getByText(/^1,000,000 rows; the first \d+ were recorded/).waitFor(); // the table beside them
    await wantAccessible(page);
    await page.keyboard.press('F5');
    await page.getByText('The program has ended: completed.').waitFor();
    await wantRefused(page);
    return note;
  },

  // A table that is evaluated is shown with all its rows, as long as the program is there.
  async 'an evaluated table is a grid'() {
    const page = watchRefusals(await open(adminKey));
    await prepare(page, tables);
    await page.getByLabel('Stop at the first line').uncheck();
    await gutter(page, 7).click();
    await page.locator('.cm-breakpoint').last().waitFor();
    await page.keyboard.press('F5');
    await value(page, 'array', '');
    const field = page.getByPlaceholder('len(rows)');
    await field.fill('df[df.amt > 9]');
    await page.keyboard.press('Enter');
    const grid = page.getByRole('grid', { name: 'Rows of df[df.amt > 9]' });
    await grid.getByRole('gridcell', { name: '10.5' }).waitFor();
    await page.getByText('493 rows, 3 columns').waitFor();
    await wantAccessible(page);
    await field.fill('len(df)');
    await page.keyboard.press('Enter');
    await grid.waitFor({ state: 'detached' });
    await page.keyboard.press('F5');
    await page.getByText('The program has ended: completed.').waitFor();
    await wantRefused(page);
  },

  async 'pause and stop a program'() {
    const page = watchRefusals(await open(adminKey));
    await page.goto(`${address}/ui/debug`);
    const editor = page.locator('.cm-content');
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('n = 0\nwhile True:\nn += 1'); // the editor indents
    await page.keyboard.press('F9');
    await page.getByLabel('Line 3, if').waitFor();
    await page.keyboard.press('F9');
    await page.getByLabel('Line 3, if').waitFor({ state: 'detached' });
    await page.getByLabel('Stop at the first line').uncheck();
    await page.reload(); // the draft is kept
    await page.locator('.cm-line', { hasText: '    n += 1' }).waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('stopped: entry').waitFor();
    await page.keyboard.press('F5');
    await page.getByText('running', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('stopped: pause').waitFor();
    await variable(page, 'n').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The program has ended: cancelled.').waitFor();
    await page.getByRole('button', { name: 'Edit the code' }).click();
    await page.getByRole('button', { name: 'Start' }).waitFor();
    await page.locator('.cm-line', { hasText: '    n += 1' }).waitFor();
    await page.goto(`${address}/ui/debug?session=nowhere`);
    await page.getByText('This debug session is over.').waitFor();
    await wantRefused(page);
  },

  async 'the debugger keeps what an editor set of a breakpoint'() {
    const page = watchRefusals(await open(adminKey));
    await prepare(page);
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('stopped: entry').waitFor();
    const session = `/debug/sessions/${new URL(page.url()).searchParams.get('session')}`;
    const set = { line: 2, hitCondition: '>=2', logMessage: 'n is {n}' };
    await call('POST', `${session}/setBreakpoints`, { breakpoints: [set] });
    await page.reload();
    const list = page.locator('.breakpoints');
    await list.getByText('Prints n is {n} and does not stop').waitFor();
    await list.getByText('Only at hits >=2').waitFor();
    const kept = async () => (await call('GET', session)).breakpoints.map(({ id, verified, ...rest }) => rest);
    await gutter(page, 4).click();
    await page.getByLabel('Line 4, if').waitFor();
    assert.deepStrictEqual(await kept(), [set, { line: 4 }]);
    await page.getByLabel('Line 2, if').fill('n < 3');
    const answered = page.waitForResponse((response) => response.url().includes('/setBreakpoints'));
    await page.keyboard.press('Enter');
    await answered;
    assert.deepStrictEqual(await kept(), [{ ...set, condition: 'n < 3' }, { line: 4 }]);
    await wantAccessible(page);
    await shoot(page, 'debug-log-point');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The program has ended').waitFor();
    await wantRefused(page);
  },

  async 'the draft of the debugger is of one user'() {
    const { key } = await call('POST', '/keys', { name: `debugger, ${Date.now()}`, user_id: 'visitor', role: 'developer' });
    const page = watchRefusals(await open(adminKey, { signsIn: true }));
    await page.goto(`${address}/ui/debug`);
    const editor = page.locator('.cm-content');
    const signInAs = async (who) => {
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').fill(who);
      await page.keyboard.press('Enter');
    };
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('secret = 4711');
    await signInAs(key);
    await editor.getByText('def double(n):').waitFor();
    assert.strictEqual(await page.getByText('4711').count(), 0);
    await signInAs(adminKey);
    await editor.getByText('secret = 4711').waitFor();
    await wantRefused(page);
  },

  async 'the debugger says that its editor cannot be loaded'() {
    const page = watchRefusals(await open(adminKey));
    await page.route(/\/assets\/debug_editor-/, (route) => route.abort());
    await page.goto(`${address}/ui/debug`);
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
    await page.getByText('def double(n):').waitFor(); // the code is shown all the same
    page.wrong = page.wrong.filter((text) => !text.includes('net::ERR_FAILED'));
    await wantRefused(page);
  },

  // The editor shows the code of an execution when it has it. Until then a breakpoint would be in other code.
  async 'no other code while that of an execution loads'() {
    const page = watchRefusals(await open(adminKey));
    let answer;
    const released = new Promise((resolve) => { answer = resolve; });
    await page.route(/\/executions\/[^/?]+$/, async (route) => {
      if (route.request().resourceType() === 'fetch') await released;
      await route.continue();
    });
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    const { execution_id: id } = await call('POST', `/sandbox/${sandbox}/execute`, { code: program });
    await page.goto(`${address}/ui/debug?execution=${id}&sandbox=${sandbox}`);
    await page.getByText('Loading the code').waitFor();
    assert.strictEqual(await page.getByText('def double(n):').count(), 0, 'lines of the example');
    assert(await page.getByRole('button', { name: 'Start' }).isDisabled());
    answer();
    await page.locator('.cm-line', { hasText: 'twice = n * 2' }).waitFor();
    await gutter(page, 2).click();
    await page.getByLabel('Line 2, if').waitFor();
    await wantRefused(page);
  },

  // The program moves on while the page loads the variables of the step before.
  async 'a move during the loading of variables'() {
    const page = watchRefusals(await open(adminKey));
    await prepare(page);
    await gutter(page, 2).click();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('stopped: entry').waitFor();
    await settled(page);
    let answer;
    let released = new Promise((resolve) => { answer = resolve; });
    await page.route('**/scopes?*', async (route) => {
      await released;
      await route.continue().catch(() => {}); // the page may have left
    });
    const asked = page.waitForRequest('**/scopes?*');
    await page.getByLabel('Evaluate in <module>').fill('1 + 1');
    await page.keyboard.press('Enter'); // loads the variables again
    await asked;
    const moved = page.waitForResponse('**/continue?*');
    await page.getByRole('button', { name: 'Continue', exact: true }).click();
    await moved;
    answer();
    await page.getByText('stopped: breakpoint').waitFor();
    await value(page, 'n', /^0$/);
    await current(page, 'twice = n * 2');
    assert.strictEqual(await page.getByRole('alert').count(), 0);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The program has ended').waitFor();
    await wantRefused(page);
  },

  async 'the debugger in both schemes and on a phone'() {
    for (const [name, options] of Object.entries({
      'light-debug': { colorScheme: 'light' }, 'dark-debug': { colorScheme: 'dark' }, 'phone-debug': { viewport: { width: 375, height: 740 } },
    })) {
      const page = watchRefusals(await open(adminKey, options));
      await prepare(page);
      await gutter(page, 2).click();
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${name}-start`);
      await page.getByRole('button', { name: 'Start' }).click();
      await page.getByText('stopped: entry').waitFor();
      await page.getByRole('button', { name: 'Continue', exact: true }).click();
      await page.getByText('stopped: breakpoint').waitFor();
      await page.getByRole('button', { name: 'Step over' }).click();
      await value(page, 'twice', /^0$/);
      await variable(page, 'data').locator('.row-button').first().click();
      await page.locator('.tree .tree .value').first().waitFor();
      await page.getByLabel('Evaluate in double').fill('n');
      await page.keyboard.press('Enter');
      await page.locator('.console .answer').waitFor();
      await settled(page);
      await wantAccessible(page);
      const width = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert(width[0] <= width[1], `got a page of ${width[0]} pixels in a window of ${width[1]}`);
      await shoot(page, name);
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByText('The program has ended').waitFor();
      await wantRefused(page);
    }
  },

  // The debugger of a failed run stops where it failed, and a click on a value there changes it.
  async 'debug: a failed run stops at its failure, and a click changes a value'() {
    const page = await open(adminKey);
    const { execution_id: id } = await call('POST', '/sandbox/agent/quick-execute', {
      code: 'rows = {"a": 0, "b": 0}\ntotal = sum(rows.values())\nshare = rows["a"] / total\nshare',
    });
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('link', { name: 'Debug', exact: true }).click();
    await page.getByText('The run failed in line 3: there is a breakpoint.').waitFor();
    await page.getByTitle('Breakpoint', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await current(page, 'share = rows["a"] / total');
    await page.getByRole('button', { name: 'Change total, 0' }).click();
    const field = page.getByLabel('New value of total');
    await field.fill('totl');
    await page.keyboard.press('Enter');
    await page.locator('.value-editor .field-error', { hasText: 'totl' }).waitFor();
    await wantAccessible(page);
    await field.fill('2 + 2');
    await page.keyboard.press('Enter');
    await value(page, 'total', /^4$/);
    await variable(page, 'total').getByText('changed by you').waitFor();
    await page.getByRole('button', { name: 'Change rows' }).click(); // one with parts
    await page.keyboard.press('Escape');
    await page.getByLabel('New value of rows').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Continue', exact: true }).click();
    await page.getByText('The program has ended: completed').waitFor();
    page.wrong = page.wrong.filter((text) => !/status of (400|422)/.test(text)); // the name that is none
    await wantNothingWrong(page);
  },
};
