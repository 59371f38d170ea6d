// Checks of the page of one execution: /ui/executions/ID.
const assert = require('node:assert');
const http = require('node:http');
const { address, adminKey, call, heading, open, run, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'a failed line has its variables'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.failed}`);
    const failure = page.locator('.cm-failure');
    await failure.getByText('ZeroDivisionError: division by zero').waitFor();
    assert.match(await page.locator('.cm-failed').textContent(), /return rows\[name\] \/ total/);
    assert.match(await failure.textContent(), /total0/);
    await page.reload(); // the link is deep
    await failure.waitFor();
    await wantNothingWrong(page);
  },

  async 'text is shown as a terminal shows it, and right-to-left strings keep their places'(ids) {
    const { execution_id: id } = await run(ids.sandbox, `print("\\x1b[31mred\\x1b[0m and \\x1b[1;38;5;208mbold\\x1b[0m")
for n in range(101):
    print(f"\\r{n} %", end="")
print("\\nabc\\b\\bX")
print("long" * 1000, "\\r\\x1b[Kshort")
{"\u0627\u0633\u0645": "\u0642\u064a\u0645\u0629", "plain": ["\u0627\u0633\u0645"]}`);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    const stdout = page.getByRole('group', { name: 'stdout', exact: true });
    assert.strictEqual(await stdout.textContent(), 'red and bold\n100 %\naXc\nshort\n');
    const key = await page.locator('bdi', { hasText: '\u0627\u0633\u0645' }).first().boundingBox();
    const value = await page.locator('bdi', { hasText: '\u0642\u064a\u0645\u0629' }).first().boundingBox();
    assert(key.x + key.width < value.x, `the key is at ${JSON.stringify(key)}, the value at ${JSON.stringify(value)}`);
    await wantNothingWrong(page);
  },

  async 'a statement that computed with masked columns says so'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.masked}`);
    await page.getByText('computed with "***" in place of one of the masked columns users.email').waitFor();
    await wantAccessible(page);
    await wantNothingWrong(page);
  },

  async 'an execution without a recording asks for none'(ids) {
    const page = await open(adminKey);
    const asked = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const failed = [];
    page.on('response', (response) => response.status() >= 400 && failed.push(response.url()));
    await page.goto(`${address}/ui/executions/${ids.plain}`);
    await page.getByText('hello').first().waitFor();
    await settled(page);
    assert.strictEqual(await page.getByRole('link', { name: /steps?$/ }).count(), 0);
    await page.goto(`${address}/ui/executions/${ids.recorded}`);
    await page.getByRole('link', { name: '9 steps' }).waitFor();
    await settled(page);
    assert(asked.includes(`/executions/${ids.plain}`), asked.join(' '));
    assert.deepStrictEqual(asked.filter((path) => path.endsWith('/steps')), [], 'the record says how many steps there are');
    assert.deepStrictEqual(failed, []);
    await wantNothingWrong(page);
  },

  async 'the time axis has the parts before the run'(ids) {
    const page = await open(adminKey);
    await page.route((url) => url.pathname === `/executions/${ids.plain}`, async (route) => {
      const record = await (await route.fetch()).json();
      assert(record.usage.start_ms > 0, JSON.stringify(record.usage));
      const end = Date.parse(record.created_at) + 100; // in whole milliseconds
      await route.fulfill({ json: {
        ...record, created_at: new Date(end - 100).toISOString(), completed_at: new Date(end).toISOString(),
        usage: { ...record.usage, queue_ms: 20, start_ms: 30, wall_ms: 40 },
      } });
    });
    await page.goto(`${address}/ui/executions/${ids.plain}`);
    const axis = page.getByRole('region', { name: 'Time axis' });
    await axis.getByText('Run').waitFor();
    const parts = await axis.locator('li').evaluateAll((items) => items.map((item) => {
      const track = item.querySelector('.track').getBoundingClientRect();
      const bar = item.querySelector('.bar').getBoundingClientRect();
      const percent = (x) => Math.round(((x - track.left) / track.width) * 100);
      return [item.querySelector('.label').textContent, percent(bar.left), percent(bar.right)];
    }));
    assert.deepStrictEqual(parts, [['Queue', 0, 20], ['Start', 20, 50], ['Run', 50, 90], ['End', 90, 100]]);
    await wantAccessible(page);
    await shoot(page, 'time-axis');
    await wantNothingWrong(page);
  },

  async 'the time axis has outputs where they were shown'(ids) {
    const page = await open(adminKey);
    const { execution_id: id } = await run(ids.sandbox, 'import time\ntime.sleep(0.2)\ndisplay("in the middle")\ntime.sleep(0.2)');
    await page.goto(`${address}/ui/executions/${id}`);
    const part = page.getByRole('region', { name: 'Time axis' }).locator('li.output');
    await part.getByText('in the middle').waitFor();
    const [shown, whole] = await page.evaluate(() => ['output', 'run'].map((kind) => {
      const { left, right } = document.querySelector(`.axis li.${kind} .bar`).getBoundingClientRect();
      return { left, right };
    }));
    const where = (shown.left - whole.left) / (whole.right - whole.left);
    assert(where > 0.2 && where < 0.8, `the output is at ${where} of the run`);
    assert.match(await part.locator('.note').textContent(), /^at .*ms, output$/);
    await wantNothingWrong(page);
  },

  async 'an execution leads to the pages that run it again'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.failed}`);
    const target = async (name) => page.getByRole('link', { name, exact: true }).getAttribute('href');
    assert.strictEqual(await target('Open in the playground'), `/ui/play?execution=${ids.failed}`);
    assert.strictEqual(await target('Debug'), `/ui/debug?execution=${ids.failed}`);
    const { key } = await call('POST', '/keys', { name: `agent, ${Date.now()}`, user_id: 'visitor', role: 'agent' });
    const agent = await open(key);
    const { execution_id: own } = await call('POST', '/sandbox/agent/quick-execute', { code: '1 + 1' }, key);
    await agent.goto(`${address}/ui/executions/${own}`);
    await agent.getByRole('link', { name: 'Open in the playground' }).waitFor();
    assert.strictEqual(await agent.getByRole('link', { name: 'Debug' }).count(), 0, 'a key of an agent may not debug');
    await call('POST', '/database/query', { query: 'SELECT 1 AS one' });
    const { executions: [query] } = await call('GET', '/executions?kind=database-query&limit=1');
    await page.goto(`${address}/ui/executions/${query.execution_id}`);
    await page.getByText('SELECT 1 AS one').first().waitFor();
    await settled(page);
    assert.strictEqual(await page.getByRole('link', { name: 'Open in the playground' }).count(), 0, 'SQL is no Python');
    await wantNothingWrong(page);
    await wantNothingWrong(agent);
  },

  async 'a run without a recording is stepped through'(ids) {
    const page = await open(adminKey);
    const code = 'rows = await db_query("SELECT clock_timestamp()::text AS at")\ntotal = 0\nfor n in range(3):\n    total += n\nprint(rows[0]["at"])';
    const { execution_id: id, stdout } = await call('POST', `/sandbox/${ids.sandbox}/execute`, { code });
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: /^Step through \(runs again, [\d.]+ m?s\)$/ }).click();
    await page.waitForURL(/\/ui\/executions\/[0-9a-f]+\/steps/);
    await page.locator('.cm-line', { hasText: 'total += n' }).first().waitFor();
    const replay = new URL(page.url()).pathname.split('/').at(-2);
    assert.notStrictEqual(replay, id);
    const record = await call('GET', `/executions/${replay}`);
    assert.deepStrictEqual([record.kind, record.replay.of, record.replay.grade, record.stdout], ['replay', id, 'identical', stdout]);
    await page.keyboard.press('End');
    await page.locator('.variables li', { has: page.locator('.name', { hasText: /^total$/ }) }).locator('.value', { hasText: /^3$/ }).waitFor();
    await page.goto(`${address}/ui/executions/${replay}`);
    await page.getByRole('heading', { name: /^Replay/ }).waitFor();
    await wantNothingWrong(page);
  },

  async 'a run that took too long says so'(ids) {
    const page = await open(adminKey);
    const { execution_id: id } = await call('POST', `/sandbox/${ids.sandbox}/execute`, { code: 'while True:\n    pass', timeout: 1 });
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('heading', { name: 'Timeout line' }).waitFor();
    await page.locator('.panel.danger .message', { hasText: 'took longer than its timeout of 1s' }).waitFor();
    await page.getByRole('list', { name: 'Calls, outermost first' }).getByText('<module>').waitFor();
    assert.strictEqual(await page.getByText('KeyboardInterrupt').count(), 0);
    await wantNothingWrong(page);
  },

  async 'a running execution'(ids) {
    const page = await open(adminKey);
    const code = 'import time\nfor n in range(600):\n    print("tick", n, flush=True)\n    time.sleep(0.1)';
    const running = fetch(`${address}/sandbox/${ids.sandbox}/execute`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${adminKey}`, 'Content-Type': 'application/json', Prefer: 'respond-async' },
      body: JSON.stringify({ code }),
    });
    const { execution_id: id } = await (await running).json();
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByText(/tick 3/).first().waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.summary').getByText('cancelled').waitFor();
    await wantNothingWrong(page);
  },

  async 'hostile outputs run nothing'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/artifacts`);
    const file = page.locator('tr', { hasText: '<img src=x onerror=alert(1)>.txt' }).first();
    await file.getByRole('cell', { name: 'admin', exact: true }).waitFor(); // its user
    await page.goto(`${address}/ui/executions/${ids.hostile}`);
    await page.frameLocator('iframe.html').getByText('shown').waitFor();
    await page.locator('.picture img').waitFor();
    await page.locator('.picture img').evaluate((image) => image.decode());
    await page.frameLocator('iframe.html').locator('#leave').click();
    for (const name of [`/executions/${ids.hostile}`, '/', '/artifacts', '/statements?view=all']) {
      if (name !== `/executions/${ids.hostile}`) await page.goto(`${address}/ui${name}`);
      await settled(page);
      const { owned, title, html } = await page.evaluate(() => ({
        owned: window.owned, title: document.title, html: document.querySelectorAll('main script, main img[src=x], main svg[onload]').length,
      }));
      assert.deepStrictEqual({ owned, html }, { owned: undefined, html: 0 }, name);
      assert.notStrictEqual(title, 'owned', name);
    }
    await wantNothingWrong(page);
  },

  // What connects without loading anything, so that no policy forbids it.
  async 'shown HTML connects to no host'(ids) {
    const connected = [];
    const listen = async (name) => {
      const server = http.createServer((request, response) => response.end(name));
      server.on('connection', () => connected.push(name));
      await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
      return server;
    };
    const [attacker, other] = [await listen('attacker'), await listen('other')];
    const host = `http://127.0.0.1:${attacker.address().port}`;
    const link = `<link rel="preconnect" href="${host}">`;
    const html = `<p id="shown">shown</p>${link}<link rel="preconnect" href="${host}" crossorigin><link rel="dns-prefetch" href="${host}">` +
      `<div><template shadowrootmode="open">${link}</template></div><svg><style>${link}</style></svg>` +
      `<form><math><mtext></form><form><mglyph><style></math>${link}</style>` +
      `<a id="press" href="${host}/pressed" ping="${host}/ping">press</a><svg><a xlink:href="${host}"><text y="20">press</text></a></svg>`;
    const { execution_id: id } = await run(ids.sandbox, `class HTML:\n    def _repr_html_(self): return ${JSON.stringify(html)}\nHTML()`);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    const frame = page.frameLocator('iframe.html');
    await frame.getByText('shown').waitFor();
    await frame.locator('#press').click();
    await page.goto(`http://127.0.0.1:${other.address().port}/`); // a browser connects in the order of the requests
    await page.getByText('other').waitFor();
    await page.context().close();
    assert(connected.includes('other') && !connected.includes('attacker'), `the browser has connected to ${connected}`);
    for (const server of [attacker, other]) server.close();
  },

  async 'an execution is erased in two steps'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.erased}`);
    await page.getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('button', { name: 'Erase this record for ever' }).click();
    await heading(page, 'Executions');
    await page.goto(`${address}/ui/executions/${ids.erased}`);
    await page.getByRole('alert').waitFor();
    await page.goto(`${address}/ui/audit?action=erased`);
    await page.getByTitle(`execution/${ids.erased}`).first().waitFor();
    await wantNothingWrong(page);
  },
};
