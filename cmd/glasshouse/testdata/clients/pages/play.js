// The checks of the playground. check.js runs them; tools are its functions.
const assert = require('node:assert');
const net = require('node:net');

module.exports = (tools) => {
  const { address, adminKey, call, run, open, settled, schemes, wantAccessible, wantNothingWrong, shoot } = tools;

  const content = (page) => page.locator('main .cm-content').first();
  const codeOf = (page) => content(page).evaluate((element) => [...element.querySelectorAll('.cm-line')].map((line) => line.innerText.replace(/\n$/, '')).join('\n'));
  const sandboxOf = (page) => new URL(page.url()).searchParams.get('sandbox');
  const newest = (page) => page.locator('.run').first();

  async function openPlayground(query = '', options = {}) {
    const page = await open(adminKey, options);
    await page.goto(`${address}/ui/play${query}`);
    await content(page).waitFor();
    await settled(page);
    return page;
  }

  async function openDebugger() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/debug`);
    await page.locator('.cm-content').waitFor();
    await settled(page);
    return page;
  }

  // write replaces the code, without what the editor adds to typed text.
  async function write(page, code) {
    await content(page).click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete'); // Chromium gives text that replaces a selection inline styles, and reports them
    await page.keyboard.insertText(code);
  }

  async function runCode(page, code) {
    const before = await page.locator('.run').count();
    await write(page, code);
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.waitForFunction((count) => document.querySelectorAll('.run').length > count, before);
    return newest(page);
  }

  const ended = (shown, status = 'completed') => shown.locator('> header').getByText(status, { exact: true }).waitFor();

  return {
    async 'playground: completion is offered and inserted'() {
      const page = await openPlayground();
      await content(page).click();
      await page.keyboard.type('import math\nmath.s');
      const selected = page.locator('.cm-tooltip-autocomplete [aria-selected] .cm-completionLabel');
      const first = await selected.textContent();
      assert(sandboxOf(page), 'the session is in the address');
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

    async 'playground: a syntax error is marked while one types'() {
      const page = await openPlayground();
      await ended(await runCode(page, 'value = 1'));
      await write(page, '');
      await page.keyboard.type('value = = 2');
      await page.locator('.cm-lintRange-error').waitFor();
      await page.locator('.cm-lint-marker-error').hover();
      await page.locator('.cm-tooltip-lint').getByText('invalid syntax').waitFor();
      await write(page, 'import os');
      await page.locator('.cm-lintRange-error', { hasText: 'import os' }).waitFor();
      await write(page, 'value = 2');
      await page.locator('.cm-lintRange-error').waitFor({ state: 'detached' });
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

    async 'playground: output streams, and a run is stopped'() {
      const page = await openPlayground();
      const code = 'import time\nfor n in range(600):\n    print("tick", n, flush=True)\n    print(f"{n} %", end="\\r")\n    time.sleep(0.1)';
      const shown = await runCode(page, code);
      await shown.getByText(/tick 3/).waitFor();
      await ended(shown, 'running');
      await shoot(page, 'play-streams');
      await page.keyboard.press('Escape'); // stops nothing
      await shown.getByText(/tick 6/).waitFor();
      await page.reload(); // the session continues, and so does the run
      await newest(page).getByText(/tick 9/).waitFor();
      assert.strictEqual(await codeOf(page), code, 'the code survives a reload');
      await page.getByRole('button', { name: 'Stop' }).click();
      await ended(newest(page), 'cancelled');
      await newest(page).getByText(/^Stopped by you after [\d.]+ m?s\.$/).waitFor();
      const interrupt = newest(page).getByRole('heading', { name: 'KeyboardInterrupt' });
      assert.strictEqual(await interrupt.isVisible(), false, 'the traceback is folded');
      assert.strictEqual(await page.locator('.code-editor .cm-failure').count(), 0, 'no failure at the line');
      await shoot(page, 'play-stopped');
      await newest(page).getByText('Where the code was').click();
      await interrupt.waitFor();
      await newest(page).getByRole('link', { name: 'Open the execution' }).click();
      await page.getByText(/^Stopped after [\d.]+ m?s\.$/).waitFor();
      await wantNothingWrong(page);
    },

    async 'playground: a new session, and the way back'() {
      const page = await openPlayground();
      const live = async () => (await call('GET', '/sandboxes?status=active&limit=1000')).sandboxes.map((each) => each.sandbox_id);
      // A session that was begun for a completion holds nothing, and ends at once.
      await content(page).click();
      await page.keyboard.type('import math\nmath.s');
      await page.locator('.cm-tooltip-autocomplete').waitFor();
      const empty = sandboxOf(page);
      const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE');
      await page.getByRole('button', { name: 'New session' }).click();
      assert((await deleted).url().endsWith(empty));
      assert.strictEqual(await page.getByText('is still there').count(), 0);
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
      await shoot(page, 'play-sessions');
      await wantAccessible(page);
      await entry(first).getByRole('link').click();
      await entry(first).getByText('is open here').waitFor();
      await page.locator('.run', { hasText: 'kept = 41' }).waitFor();
      await entry(second).getByRole('button', { name: 'End' }).click();
      await page.getByRole('button', { name: 'End it, with its variables' }).click();
      await entry(second).waitFor({ state: 'detached' });
      assert.deepStrictEqual((await live()).filter((id) => [first, second, empty].includes(id)), [first]);
      await entry(first).getByRole('button', { name: 'End' }).click();
      await page.getByRole('button', { name: 'End it, with its variables' }).click();
      await page.getByText('This session has ended.').waitFor();
      await entry(first).waitFor({ state: 'detached' });
      await wantNothingWrong(page);
    },

    async 'playground: statements are readable on small screens'() {
      const page = await openPlayground('', { viewport: { width: 1280, height: 800 } });
      const shown = await runCode(page, `rows = await db_query("""
    SELECT c.city, sum(o.total)::float8 AS revenue_of_the_customers_of_the_city, count(*) AS orders_of_the_customers_of_the_city
    FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.status <> :status AND c.city <> :city
    GROUP BY c.city ORDER BY revenue_of_the_customers_of_the_city DESC""", {"status": "cancelled", "city": "x" * 60})
await db_query("DELETE FROM orders")`);
      await ended(shown, 'failed');
      const table = shown.getByRole('group', { name: 'Statements' });
      const wide = () => table.evaluate((element) => [element.scrollWidth - element.clientWidth, document.documentElement.scrollWidth]);
      const details = table.getByText('Details').first();
      assert.strictEqual(await table.getByText('Fingerprint').first().isVisible(), false);
      await details.click();
      await table.getByRole('link', { name: /^[0-9a-f]+$/ }).waitFor();
      assert.deepStrictEqual(await wide(), [0, 1280]);
      await table.scrollIntoViewIfNeeded();
      await shoot(page, 'play-statements');
      await page.setViewportSize({ width: 375, height: 740 });
      assert.deepStrictEqual(await wide(), [0, 375]);
      await table.scrollIntoViewIfNeeded();
      await shoot(page, 'play-phone-statements');
      await wantAccessible(page);
      await table.getByRole('link', { name: /^[0-9a-f]+$/ }).click();
      await page.locator('td', { hasText: 'revenue_of_the_customers_of_the_city' }).first().waitFor();
      await wantNothingWrong(page);
    },

    async 'playground: outputs and statements appear during the run'() {
      const page = await openPlayground();
      const code = 'import time\nfor n in range(4):\n    display(f"shown {n}")\n    rows = await db_query("SELECT :n AS n", {"n": n})\n' +
        '    debug("note", data=n)\n    time.sleep(0.4)\ntime.sleep(60)';
      const shown = await runCode(page, code);
      for (const n of [0, 3]) await shown.locator('pre', { hasText: `shown ${n}` }).waitFor();
      await shown.getByRole('group', { name: 'Statements' }).getByText('{"n":3}').waitFor();
      await shown.locator('.logs li').nth(3).waitFor();
      await ended(shown, 'running');
      await page.getByRole('button', { name: 'Stop' }).click();
      await ended(shown, 'cancelled');
      await wantNothingWrong(page);
    },

    async 'playground: a lost connection is made again'() {
      // A proxy whose connections can be cut.
      const target = new URL(address);
      const sockets = new Set();
      const proxy = net.createServer((client) => {
        const server = net.connect(Number(target.port), target.hostname);
        for (const [from, to] of [[client, server], [server, client]]) {
          sockets.add(from);
          from.on('error', () => {}).on('close', () => { sockets.delete(from); to.destroy(); });
          from.pipe(to);
        }
      });
      await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      const page = await open();
      await page.goto(`http://127.0.0.1:${proxy.address().port}/ui/play`);
      await page.getByLabel('API key').fill(adminKey);
      await page.keyboard.press('Enter');
      await content(page).waitFor();
      const shown = await runCode(page, 'import time\nfor n in range(50):\n    print("line", n, flush=True)\n    time.sleep(0.1)\n"the end"');
      await shown.getByText(/line 3/).waitFor();
      for (const socket of sockets) socket.destroy();
      await shown.getByText(/line 20/).waitFor();
      await ended(shown, 'running');
      const got = await shown.getByRole('group', { name: 'stdout' }).textContent();
      const want = Array.from({ length: 50 }, (_, n) => `line ${n}\n`).join('');
      assert(want.startsWith(got), `got ${got}, want each line once`);
      await ended(shown);
      await shown.getByText('the end').first().waitFor();
      proxy.close();
      page.wrong = page.wrong.filter((text) => !/net::ERR_/.test(text));
      await wantNothingWrong(page);
    },

    async 'playground: carriage returns and 100 MB of output'() {
      const page = await openPlayground();
      const bar = await runCode(page, 'for n in range(101):\n    print(f"\\r{n:3} %", end="")\nprint("\\rdone ")');
      await ended(bar);
      assert.strictEqual(await bar.getByRole('group', { name: 'stdout' }).textContent(), 'done \n');
      const large = await runCode(page, 'for n in range(100):\n    print("y" * 79 + "\\n", end="" )\n    print(("x" * 99 + "\\n") * 10_000, end="")');
      await ended(large);
      await large.getByText(/The first [\d,]+ characters are not shown here/).waitFor();
      await large.getByText(/The end is missing: .* MB more were printed/).waitFor();
      const length = await large.getByRole('group', { name: 'stdout' }).evaluate((element) => element.textContent.length);
      assert(length <= 64_000, `got ${length} characters in the page, want at most 64 000`);
      await shoot(page, 'play-large');
      await wantNothingWrong(page);
    },

    async 'playground: a figure, a table, and a failed line'() {
      const page = await openPlayground();
      await page.getByRole('button', { name: 'Plot revenue by month', exact: true }).click();
      await newest(page).locator('.picture img').waitFor();
      await newest(page).locator('.picture img').evaluate((image) => image.decode());
      await ended(newest(page));
      await page.getByRole('button', { name: 'Run: List the best customers' }).click();
      await newest(page).getByRole('columnheader', { name: 'revenue' }).waitFor();
      await ended(newest(page));
      await page.getByRole('button', { name: 'Run: Misspell a column' }).click();
      await page.locator('.code-editor .cm-failure').getByText('did you mean status?').first().waitFor();
      assert.match(await page.locator('.code-editor .cm-failed').textContent(), /stauts/);
      await shoot(page, 'play-failed');
      await content(page).focus();
      await page.keyboard.type(' ');
      await page.locator('.code-editor .cm-failed').waitFor({ state: 'detached' });
      // The code of a run goes back into the editor.
      await page.locator('.run').last().getByRole('button', { name: 'Copy code into the editor' }).click();
      assert.match(await codeOf(page), /Revenue by month/);
      await wantNothingWrong(page);
    },

    async 'playground: every example ends as expected'() {
      const page = await openPlayground();
      const expected = {
        'Plot revenue by month': 'completed', 'List the best customers': 'completed', 'Work with a data frame': 'completed',
        'Watch the output arrive': 'completed', 'Misspell a column': 'failed', 'Try to reach the network': 'failed', 'Leave a file': 'completed',
      };
      for (const [title, status] of Object.entries(expected)) {
        await page.getByRole('button', { name: `Run: ${title}` }).click();
        await page.waitForFunction((count) => document.querySelectorAll('.run').length === count, Object.keys(expected).indexOf(title) + 1);
        await ended(newest(page), status);
      }
      await page.getByRole('link', { name: 'Files', exact: true }).click();
      await page.getByRole('list', { name: 'Artifacts' }).getByText('products.csv').waitFor();
      await page.getByRole('link', { name: 'Examples', exact: true }).click();
      const first = sandboxOf(page);
      await page.getByRole('button', { name: 'Run: Capture a write' }).click();
      await page.getByRole('button', { name: 'Start a session that captures writes' }).click();
      await page.getByText('A session begins when you run or complete code.').waitFor();
      await page.getByRole('button', { name: /^Run Ctrl/ }).click();
      await ended(newest(page));
      await newest(page).locator('.status', { hasText: 'captured' }).waitFor();
      assert.notStrictEqual(sandboxOf(page), first);
      await wantNothingWrong(page);
    },

    async 'playground: an example begins the session that it needs'() {
      const page = await openPlayground();
      await page.getByRole('button', { name: 'Run: Capture a write' }).click();
      await ended(newest(page));
      await newest(page).locator('.status', { hasText: 'captured' }).waitFor();
      await page.waitForURL(/sandbox=/);
      assert.strictEqual(await page.locator('.run').count(), 1);
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
      await newest(page).getByRole('cell', { name: 'Bergen' }).waitFor();
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

    async 'playground: a run has its execution and its steps'() {
      const page = await openPlayground();
      await write(page, 'total = 0\nfor n in range(3):\n    total += n\ntotal');
      await page.getByRole('button', { name: 'Run and record' }).click();
      await ended(newest(page));
      await newest(page).getByRole('link', { name: 'Its steps' }).click();
      await page.getByText('step 1 of 9').waitFor();
      await page.goBack();
      await newest(page).getByRole('link', { name: 'Open the execution' }).click();
      await page.getByRole('link', { name: '9 steps' }).waitFor();
      const id = new URL(page.url()).pathname.split('/').pop();
      await page.goto(`${address}/ui/`);
      await page.locator(`.sizer a[href$="${id}"]`).waitFor();
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
      await page.getByText('A session begins when you run or complete code.').waitFor();
      assert.strictEqual(sandboxOf(page), null);
      page.wrong = page.wrong.filter((text) => !/status of 410/.test(text));
      await wantNothingWrong(page);
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

    async 'playground: a refused run keeps the code'() {
      const page = await openPlayground();
      const answer = (status, title) => (route) => route.fulfill({
        status, contentType: 'application/problem+json', body: JSON.stringify({ status, title, detail: `the ${title} of the test` }),
      });
      await page.route('**/sandbox/create', answer(429, 'limit'));
      await write(page, '1 + 1');
      await page.keyboard.press('ControlOrMeta+Enter');
      await newest(page).getByText('the limit of the test').waitFor();
      await newest(page).getByText(/You have reached a limit/).waitFor();
      await page.unroute('**/sandbox/create');
      await page.route('**/execute', answer(503, 'queue'));
      await page.keyboard.press('ControlOrMeta+Enter');
      await newest(page).getByText('the queue of the test').waitFor();
      await newest(page).getByText(/The service is busy/).waitFor();
      await page.unroute('**/execute');
      assert.strictEqual(await codeOf(page), '1 + 1');
      await page.keyboard.press('ControlOrMeta+Enter');
      await ended(newest(page));
      page.wrong = page.wrong.filter((text) => !/status of (429|503)/.test(text));
      await wantNothingWrong(page);
    },

    async 'playground: hostile outputs run nothing'() {
      const page = await openPlayground('?panel=variables');
      const attack = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>';
      const shown = await runCode(page, `attack = ${JSON.stringify(attack)}
print(attack)
debug(attack)
class Shown:
    def _repr_html_(self): return attack
display(Shown())
rows = await db_query("SELECT 1 AS \\"<img src=x onerror=alert(1)>\\"")
rows`);
      await ended(shown);
      await shown.getByRole('group', { name: 'stdout' }).getByText('<script>').waitFor();
      await shown.getByRole('columnheader', { name: '<img src=x onerror=alert(1)>' }).waitFor();
      await page.getByRole('list', { name: 'Variables' }).locator('.name', { hasText: 'attack' }).waitFor();
      const failed = await runCode(page, `raise ValueError(attack)`);
      await ended(failed, 'failed');
      await page.locator('.code-editor .cm-failure').getByText('<script>').first().waitFor();
      const found = await page.evaluate(() => ({
        owned: window.owned, html: document.querySelectorAll('main script, main img[src=x]').length,
        inEditor: document.querySelector('.code-editor').shadowRoot.querySelectorAll('script, img[src=x]').length,
      }));
      assert.deepStrictEqual(found, { owned: undefined, html: 0, inEditor: 0 });
      await wantNothingWrong(page);
    },

    async 'playground: characters that change the direction of text are shown'() {
      const page = await openPlayground();
      const code = `turned = "a\u202eb\u2066c" # \u202a\u2068\nprint(turned)\ndebug(turned)
import pathlib; pathlib.Path("/session/artifacts/x\u202egnp.txt").write_text("x")
rows = await db_query('SELECT 1 AS "x\u202ey"')\nraise ValueError("message\u202e")`;
      const shown = await runCode(page, code);
      await ended(shown, 'failed');
      const stdout = shown.getByRole('group', { name: 'stdout' });
      assert.strictEqual(await stdout.textContent(), 'aU+202EbU+2066c\n');
      await shown.getByRole('link', { name: 'xU+202Egnp.txt' }).waitFor();
      await shown.getByText('messageU+202E').first().waitFor();
      await page.locator('.code-editor .cm-failure').getByText('message[U+202E]').first().waitFor();
      assert.strictEqual(await page.locator('.code-editor .cm-specialChar').count(), 7, 'in the editor');
      assert.strictEqual(await codeOf(page).then((text) => text.includes('\u202e')), false, 'in the editor they are pictures');
      await stdout.scrollIntoViewIfNeeded();
      await shoot(page, 'play-directions');
      for (const path of ['/ui/play?sandbox=' + sandboxOf(page), '/ui/', '/ui/artifacts', '/ui/statements?view=all',
        await shown.getByRole('link', { name: 'Open the execution' }).getAttribute('href')]) {
        await page.goto(address + path);
        await settled(page);
        await page.getByText(/U\+202E/).first().waitFor();
        const found = await page.evaluate(() => (document.title + document.querySelector('main').innerText).match(/[\u202a-\u202e\u2066-\u2069]/g));
        assert.strictEqual(found, null, path);
        await wantAccessible(page);
      }
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
};
