// Checks of runs in the playground: what they show while they go on, and at their end.
const assert = require('node:assert');
const net = require('node:net');
const { address, adminKey, open, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');
const { content, codeOf, sandboxOf, newest, openPlayground, write, runCode, ended } = require('./playground.js');

module.exports = {
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
    await page.getByText('A session begins when you run code.').waitFor();
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

  async 'playground: a run has its execution and its steps'() {
    const page = await openPlayground();
    await write(page, 'total = 0\nfor n in range(3):\n    total += n\ntotal');
    await page.getByRole('button', { name: 'Run and record' }).click();
    await ended(newest(page));
    await newest(page).getByRole('link', { name: 'Its steps' }).click();
    await page.getByText('end, 9 steps').waitFor();
    await page.goBack();
    await newest(page).getByRole('link', { name: 'Open the execution' }).click();
    await page.getByRole('link', { name: '9 steps' }).waitFor();
    const id = new URL(page.url()).pathname.split('/').pop();
    await page.goto(`${address}/ui/executions`);
    await page.locator(`.sizer a[href$="${id}"]`).waitFor();
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
    for (const path of ['/ui/play?sandbox=' + sandboxOf(page), '/ui/', '/ui/artifacts', '/ui/statements?view=all&text=SELECT%201%20AS',
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
};
