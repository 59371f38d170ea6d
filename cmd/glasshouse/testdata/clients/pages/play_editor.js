// Checks of the playground's editor: completion, checks while one types, and the code that it begins with.
const assert = require('node:assert');
const { call, shoot, wantNothingWrong } = require('./browser.js');
const { content, codeOf, sandboxOf, newest, openPlayground, openDebugger, write, runCode, ended } = require('./playground.js');

module.exports = {
  async 'playground: completion is offered and inserted'() {
    const page = await openPlayground();
    await content(page).click();
    await page.keyboard.type('import math\nmath.s');
    const selected = page.locator('.cm-tooltip-autocomplete [aria-selected] .cm-completionLabel');
    const first = await selected.textContent();
    // CodeMirror takes no key in the first moments of the list; the arrow moves nothing else in the last line.
    let chosen = first;
    for (let n = 0; n < 200 && chosen === first; n++) {
      await page.keyboard.press('ArrowDown');
      chosen = await selected.textContent();
    }
    await page.keyboard.press('Tab');
    await page.locator('.cm-tooltip-autocomplete').waitFor({ state: 'detached' });
    assert.match(chosen, /^s\w+$/);
    assert.strictEqual(await codeOf(page), `import math\nmath.${chosen}`);
    // A character beyond the first 65 536 counts once.
    await write(page, '"😀😀"; import math; math.flo');
    await page.keyboard.type('o');
    await page.locator('.cm-tooltip-autocomplete').getByText('floor').click();
    await page.locator('.cm-tooltip-autocomplete').waitFor({ state: 'detached' });
    assert.strictEqual(await codeOf(page), '"😀😀"; import math; math.floor');
    // Tab indents; Escape and then Tab leaves.
    await write(page, 'x');
    await page.keyboard.press('Home');
    await page.keyboard.press('Tab');
    assert.strictEqual(await codeOf(page), '    x');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    await page.waitForFunction(() => !document.activeElement.matches('.code-editor'));
    assert.strictEqual(sandboxOf(page), null, 'completion needs no session');
    await wantNothingWrong(page);
  },

  async 'playground: names of the database are completed in SQL'() {
    const page = await openPlayground();
    const list = page.locator('.cm-tooltip-autocomplete');
    const labels = () => list.locator('.cm-completionLabel').allTextContents();
    const offered = (label) => list.locator('.cm-completionLabel').getByText(label, { exact: true }).waitFor();
    const choose = async (label) => { // a list that is about to be replaced takes no click
      await page.locator('.cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled)').getByText(label, { exact: true }).click();
      await list.waitFor({ state: 'detached' });
    };
    // start writes code with | where the cursor is, and types a text there.
    const start = async (code, text) => {
      await write(page, '');
      await page.keyboard.press('Escape'); // no list of before
      await list.waitFor({ state: 'detached' });
      await write(page, code.replace('|', ''));
      for (let n = code.length - code.indexOf('|') - 1; n > 0; n--) await page.keyboard.press('ArrowLeft');
      await page.keyboard.type(text);
    };
    await start('rows = await db_query("SELECT * FROM|")', ' ');
    await offered('customers');
    assert(!(await labels()).some((label) => label === 'email'), 'tables only after FROM');
    assert.strictEqual(sandboxOf(page), null, 'names of tables need no session');
    await page.keyboard.type('orde');
    await offered('order_items');
    await choose('order_items');
    assert.strictEqual(await codeOf(page), 'rows = await db_query("SELECT * FROM order_items")');
    // An alias of a FROM that comes later, in a string of several lines.
    await start('frame = await db_frame("""\nSELECT |\nFROM users u JOIN orders AS o ON o.id = u.id""")', 'u.');
    await offered('email');
    assert.deepStrictEqual((await labels()).filter((label) => ['total', 'customer_id', 'users'].includes(label)), []);
    await list.locator('li', { hasText: 'email' }).getByText('text, masked').waitFor();
    await shoot(page, 'play-sql-completion');
    await page.keyboard.type('em');
    await choose('email');
    assert.match(await codeOf(page), /^SELECT u\.email$/m);
    await start("await db_query('SELECT count(*) FROM orders WHERE |')", 'to');
    await page.keyboard.type('t'); // "to" is a word of SQL
    await offered('total');
    // Nothing in values, parameters and other strings.
    for (const [code, text] of [['await db_query("SELECT name FROM users WHERE name = \'|\'")', 'na'],
      ['await db_query("SELECT name FROM users WHERE id = :|")', 'id'], ['print("SELECT |  FROM users")', 'na']]) {
      await start(code, text);
      await page.waitForTimeout(400); // longer than the delay of a completion
      assert.strictEqual(await list.count(), 0, code);
    }
    await start('await db_query(f"SELECT {|} FROM users")', 'pri'); // the braces of an f-string have Python
    await offered('print');
    await wantNothingWrong(page);
  },

  async 'playground: errors are marked while one types'() {
    const page = await openPlayground();
    const created = [];
    page.on('request', (request) => /\/sandbox\/create$/.test(request.url()) && created.push(request.url()));
    const wantMarked = async () => {
      await write(page, '');
      await page.keyboard.type('value = = 2');
      await page.locator('.cm-lintRange-error').waitFor();
      await page.locator('.cm-lint-marker-error').hover();
      await page.locator('.cm-tooltip-lint').getByText('invalid syntax').waitFor();
      await write(page, 'import os');
      await page.locator('.cm-lintRange-error', { hasText: 'import os' }).waitFor();
      await write(page, 'value = 2');
      await page.locator('.cm-lintRange-error').waitFor({ state: 'detached' });
    };
    await wantMarked();
    await page.reload(); // code that the tab kept is checked too
    await content(page).waitFor();
    await write(page, 'import os');
    await page.locator('.cm-lintRange-error').waitFor();
    await page.reload();
    await page.locator('.cm-lintRange-error', { hasText: 'import os' }).waitFor();
    assert.strictEqual(sandboxOf(page), null);
    assert.deepStrictEqual(created, [], 'typing begins no session');
    await ended(await runCode(page, 'def compile(text): return text'));
    await wantMarked();
    // In the session the name is the person's own.
    await write(page, 'compile("1")\nimport os');
    await page.locator('.cm-lintRange-error', { hasText: 'import os' }).waitFor();
    assert.strictEqual(await page.locator('.cm-lintRange-error', { hasText: 'compile' }).count(), 0);
    await page.getByRole('button', { name: 'New session' }).click();
    await page.locator('.cm-lintRange-error', { hasText: 'compile' }).waitFor();
    assert.strictEqual(created.length, 1);
    await wantNothingWrong(page);
  },

  async 'playground: text over a selection, in brackets, and undone'() {
    for (const path of ['/play', '/debug']) {
      const page = path === '/play' ? await openPlayground() : await openDebugger();
      await write(page, 'import math\ntwo = 2');
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.insertText('x = 3'); // over two lines, which Chromium would do with style attributes
      assert.strictEqual(await codeOf(page), 'x = 3', path);
      await page.keyboard.press('ControlOrMeta+z');
      assert.strictEqual(await codeOf(page), 'import math\ntwo = 2', path);
      if (path === '/play') {
        await page.keyboard.press('ControlOrMeta+a');
        await page.keyboard.type('(');
        assert.strictEqual(await codeOf(page), '(import math\ntwo = 2)');
      }
      await wantNothingWrong(page);
    }
  },

  async 'playground: the code and context of another execution'(ids) {
    const made = await call('POST', `/sandbox/${ids.sandbox}/execute`, { code: 'limit * 2', context: { limit: 21 } });
    const page = await openPlayground(`?execution=${made.execution_id}`);
    await page.getByText(/The editor has the code of execution/).waitFor();
    assert.strictEqual(await codeOf(page), 'limit * 2');
    assert.deepStrictEqual(JSON.parse(await page.getByLabel('Context, a JSON object').inputValue()), { limit: 21 });
    await page.getByRole('button', { name: /^Run Ctrl/ }).click();
    await newest(page).getByRole('group', { name: 'Result' }).getByText('42').waitFor();
    await content(page).click();
    await page.keyboard.press('ControlOrMeta+End');
    await page.keyboard.type(' + 1');
    await page.reload();
    await content(page).waitFor();
    assert.strictEqual(await codeOf(page), 'limit * 2 + 1', 'a reload keeps what one has changed');
    await page.getByLabel('Context, a JSON object').fill('{"limit": ');
    await page.getByRole('button', { name: /^Run Ctrl/ }).click();
    await page.getByText('The context is not a JSON object').waitFor();
    await page.getByRole('button', { name: 'Run: List the best customers' }).click(); // takes the context away
    await page.waitForFunction(() => document.querySelectorAll('.run').length === 2);
    await ended(newest(page));
    await wantNothingWrong(page);
  },
};
