// Opens the pages in Chromium and uses them as people do: node check.js ADDRESS ADMIN_KEY CHROMIUM [SCREENSHOT_FOLDER].
// It prints one line of JSON for each check: {"name", "error", "note"}. error is missing if the check passed; note is
// what the check measured.
const assert = require('node:assert');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

const [address, adminKey, executablePath, screenshots] = process.argv.slice(2);
const installed = createRequire(process.env.GLASSHOUSE_CLIENT_PAGES + '/');
const { chromium } = installed('playwright-core');
const axe = fs.readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8');

// The network flags keep Chromium from calling its maker's hosts.
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const schemes = ['light', 'dark'];
const lists = ['/', '/play', '/play?panel=schema', '/debug', '/statements', '/statements?view=all', '/writes', '/sandboxes', '/connections',
  '/artifacts', '/keys', '/system', '/audit'];

async function call(method, route, body, key = adminKey) {
  const response = await fetch(address + route, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${route}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const run = (sandbox, code) => call('POST', `/sandbox/${sandbox}/execute`, { code });

const failing = `def share(rows, name):
    total = sum(rows.values())
    return rows[name] / total

values = {"a": 0, "b": 0}
share(values, "a")
`;
// owned is what hostile outputs try to set in the page.
const hostile = `attack = "parent.owned=1;top.owned=1;window.owned=1;document.title='owned';alert(1)"
class HTML:
    def _repr_html_(self):
        return f'<p id="shown">shown</p><script>{attack}</script><img src=x onerror="{attack}"><svg onload="{attack}"></svg>' \\
            f'<iframe srcdoc="<script>{attack}</script>"></iframe><a id="leave" target="_top" href="/docs">leave</a>' \\
            '<meta http-equiv="refresh" content="0;url=/docs">'
class SVG:
    def _repr_svg_(self):
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" onload="{attack}"><script>{attack}</script>' \\
            '<circle cx="25" cy="25" r="20"/></svg>'
display(HTML()); display(SVG())
import pathlib
folder = pathlib.Path("/session/artifacts")
folder.mkdir(exist_ok=True)
(folder / "<img src=x onerror=alert(1)>.txt").write_text("x")
print(f"<script>{attack}</script><img src=x onerror=\\"{attack}\\">")
debug(f"<img src=x onerror=\\"{attack}\\">")
await db_query('SELECT title AS "<img src=x onerror=alert(1)>" FROM documents LIMIT 3')
`;

async function seed() {
  const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
  const { sandbox_id: capturing } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
  const ids = {
    sandbox,
    plain: (await run(sandbox, 'print("hello")\n{"answer": 42}')).execution_id,
    failed: (await run(sandbox, failing)).execution_id,
    refused: (await run(sandbox, 'await db_query("DELETE FROM documents")')).execution_id,
    hostile: (await run(sandbox, hostile)).execution_id,
    many: (await run(sandbox, 'for n in range(70):\n    await db_query("SELECT :n AS n", {"n": n})')).execution_id,
    recorded: '',
    erased: (await run(sandbox, '"to be erased"')).execution_id,
  };
  await run(capturing, 'await db_query("DELETE FROM raw_data WHERE id = :id", {"id": 9})');
  const response = await fetch(`${address}/sandbox/${sandbox}/debug`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${adminKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: 'total = 0\nfor n in range(3):\n    total += n\ntotal' }),
  });
  const steps = await response.text();
  assert(response.ok, steps);
  const { executions } = await call('GET', '/executions?kind=debug');
  ids.recorded = executions[0].execution_id;
  return ids;
}

let browser;

// open returns a page that reports what must not happen in it: errors, dialogs, violations of the policy.
async function open(key, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.on('pageerror', (error) => page.wrong.push(String(error)));
  page.on('dialog', (dialog) => { page.wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    // A sandboxed frame reports what it does not do; a missing key is an answer of 401.
    if (message.type() === 'error' && !/Blocked script execution in|is sandboxed|status of 40[1349]/.test(message.text())) {
      page.wrong.push(message.text());
    }
  });
  page.setDefaultTimeout(60_000); // Plotly takes long on a busy machine
  if (key) {
    await page.goto(address + '/ui/');
    await signIn(page, key);
  }
  return page;
}

async function signIn(page, key) {
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await page.locator('.shell').waitFor();
}

const heading = (page, name) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

// settled waits until nothing is loading.
const settled = (page) => page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.spinner') &&
  !document.querySelector('.executions[aria-busy=true]'));

async function wantAccessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`);
  assert.deepStrictEqual(found, [], `${page.url()}: axe-core found violations`);
}

async function wantNothingWrong(page) {
  assert.deepStrictEqual(page.wrong, [], page.url());
}

async function shoot(page, name) {
  if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}

const checks = {
  async 'sign in'(ids) {
    const page = await open();
    await page.goto(`${address}/login?token=used`);
    await page.getByText('This link was used').waitFor();
    await page.goto(`${address}/ui/executions/${ids.plain}`);
    await page.getByLabel('API key').fill('gh_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    assert.match(await page.getByRole('alert').textContent(), /key/);
    await wantAccessible(page);
    await shoot(page, 'sign-in');
    await signIn(page, adminKey);
    await page.getByText('hello').first().waitFor();
    assert.strictEqual(new URL(page.url()).pathname, `/ui/executions/${ids.plain}`, 'the page that was wanted');
    assert.strictEqual(await page.evaluate(() => document.cookie), '', 'scripts cannot read the cookie');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    await wantNothingWrong(page);
  },

  async 'every page, in both schemes'(ids) {
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      const pages = [...lists, ...[ids.plain, ids.failed, ids.refused, ids.hostile, ids.many].map((id) => `/executions/${id}`),
        `/executions/${ids.recorded}/steps?step=5&name=total`, `/executions/${ids.plain}/steps`, '/nowhere'];
      for (const name of pages) {
        await page.goto(`${address}/ui${name}`);
        await settled(page);
        await wantAccessible(page);
        await shoot(page, `${colorScheme}${name.replace(/[^a-z0-9]+/g, '-')}`);
      }
      await wantNothingWrong(page);
    }
  },

  async 'a phone'(ids) {
    const page = await open(undefined, { viewport: { width: 375, height: 740 } });
    await page.goto(`${address}/ui/`);
    await signIn(page, adminKey);
    for (const name of [...lists, `/executions/${ids.failed}`, `/executions/${ids.recorded}/steps?step=5&name=total`]) {
      await page.goto(`${address}/ui${name}`);
      await settled(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(width <= 375, `${name} is ${width} pixels wide, want at most 375`);
      const lists = await page.locator('.stacked').evaluateAll((all) => all.map((each) => each.scrollWidth - each.clientWidth));
      assert(lists.every((hidden) => hidden <= 0), `${name}: ${lists} pixels of the lists are beside the screen`);
      await shoot(page, `phone${name.replace(/[^a-z0-9]+/g, '-')}`);
    }
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Keys' }).click();
    await heading(page, 'Keys');
    await wantNothingWrong(page);
  },

  async 'filters are in the address'() {
    const page = await open(adminKey);
    await page.getByLabel('Status').selectOption('failed');
    await page.waitForURL(/status=failed/);
    await settled(page);
    const wantFailed = async () => {
      const statuses = await page.locator('.sizer .state').allTextContents();
      assert(statuses.length > 0 && statuses.every((s) => s === 'failed'), `got the statuses ${statuses}, want failed only`);
    };
    await wantFailed();
    await page.reload();
    await page.locator('.sizer .state').first().waitFor();
    await wantFailed();
    await page.getByLabel('Text in code or error').fill('nowhere to be found');
    await page.getByText('No execution matches these filters.').waitFor();
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.locator('.sizer .state').first().waitFor();
    assert.strictEqual(new URL(page.url()).search, '');
    await page.goBack();
    await page.waitForURL(/nowhere/);
    await wantNothingWrong(page);
  },

  // The list is asked for once. Rows stay until those of another filter are there, and they stay if that fails.
  async 'rows stay while a filter loads'() {
    const page = await open(adminKey);
    await page.locator('.sizer .row').first().waitFor();
    let asked = 0;
    let release = Promise.resolve();
    await page.route('**/executions?*', async (route) => {
      asked++;
      await release;
      await route.continue().catch(() => {}); // the page may have left
    });
    await page.reload();
    await page.locator('.sizer .row').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    assert.strictEqual(asked, 1, 'requests of the list');
    const row = page.locator('.sizer .row[data-index="0"]');
    const newest = await row.textContent();
    let answer;
    release = new Promise((resolve) => { answer = resolve; });
    await page.getByLabel('Status').selectOption('timeout');
    await page.locator('.executions[aria-busy=true]').waitFor();
    assert.strictEqual(await row.textContent(), newest, 'the rows of the former filter');
    answer();
    await page.getByText('No execution matches these filters.').waitFor();
    assert.strictEqual(asked, 2, 'requests of the list after a filter');
    await page.route('**/executions?*', (route) => route.abort());
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.getByRole('alert').waitFor();
    await page.unroute('**/executions?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.sizer .row').first().waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    page.wrong = page.wrong.filter((text) => !/ERR_FAILED/.test(text)); // of the request that was aborted
    await wantNothingWrong(page);
  },

  async 'keyboard'(ids) {
    const page = await open(adminKey);
    await page.locator('.sizer .row').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor(); // the rows are drawn before the page listens to keys
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement.closest('[data-index="1"]'));
    const target = await page.evaluate(() => document.activeElement.href);
    await page.keyboard.press('Enter');
    await page.waitForURL(target);
    await settled(page);
    await page.keyboard.press('Escape');
    await heading(page, 'Executions');
    await page.keyboard.press('/');
    await page.waitForFunction(() => document.activeElement.matches('input[type=search]'));
    await wantNothingWrong(page);
    void ids;
  },

  async 'everything is reached with Tab'(ids) {
    const page = await open(adminKey);
    for (const name of [...lists.filter((each) => each !== '/'), `/executions/${ids.failed}`, `/executions/${ids.recorded}/steps?step=5&name=total`]) {
      await page.goto(`${address}/ui${name}`);
      await settled(page);
      await page.evaluate(() => {
        window.reached = new Set();
        document.addEventListener('focusin', ({ target }) => window.reached.add(target));
        document.activeElement.blur();
      });
      for (let n = 0; n < 300; n++) {
        await page.keyboard.press('Tab');
        const { isAround, isEditor } = await page.evaluate(() => ({
          isAround: document.activeElement === document.body || document.activeElement.matches('.skip') && window.reached.size > 5,
          isEditor: document.activeElement.matches('.editor'),
        }));
        if (isEditor) await page.keyboard.press('Escape'); // then Tab leaves the code
        if (isAround) break;
      }
      const missed = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
        .filter((each) => each.checkVisibility() && !each.disabled && !window.reached.has(each)).map((each) => each.outerHTML.slice(0, 200)));
      assert.deepStrictEqual(missed, [], `${name}: Tab does not reach these`);
    }
    await wantNothingWrong(page);
  },

  async 'new executions appear'(ids) {
    const page = await open(adminKey);
    await page.getByText('Live', { exact: true }).waitFor();
    await run(ids.sandbox, '"appears by itself"');
    await page.locator('.sizer .row', { hasText: 'appears by itself' }).waitFor();
    await page.locator('.sizer .row', { hasText: 'appears by itself' }).getByText('completed').waitFor();
    await wantNothingWrong(page);
  },

  async 'a million executions'() {
    const page = await open();
    const total = 1_000_000;
    const begun = Date.parse('2026-01-01T00:00:00Z');
    await page.route('**/executions?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const after = Number(query.get('after') ?? 0);
      const length = Math.min(Number(query.get('limit')), total - after);
      const executions = Array.from({ length }, (_, i) => ({
        execution_id: `e${after + i}`, sandbox_id: 's', user_id: 'u', kind: 'execute', status: 'completed',
        code: `number = ${after + i}`, code_bytes: 10, error: null, execution_time: 0.1, cpu_ms: 1, memory_usage: 1, queries: 0,
        rows_read: 0, connections: 0, artifacts: 0, created_at: new Date(begun - (after + i) * 1000).toISOString(),
        completed_at: new Date(begun).toISOString(),
      }));
      const next = after + length < total ? String(after + length) : undefined;
      return route.fulfill({ json: { executions, next } });
    });
    await page.goto(`${address}/ui/`);
    await signIn(page, adminKey);
    await page.getByText('number = 0', { exact: true }).waitFor();
    // As many rows are loaded below the visible ones as are above, so that one gets far without waiting.
    const height = (rows) => page.waitForFunction((wanted) => document.querySelector('.sizer').clientHeight >= wanted * 34, rows);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 60 * 34; });
    await height(300);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 280 * 34; });
    await height(600);
    // Down to row 20 000, which is more than the pages that are kept.
    await page.evaluate(async () => {
      const box = document.querySelector('.executions .scroll');
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      while (box.scrollTop < 20_000 * 34) {
        box.scrollTop = box.scrollHeight;
        await frame();
      }
      box.scrollTop = 20_000 * 34;
    });
    await page.getByText('number = 20010', { exact: true }).waitFor();
    const rows = await page.locator('.sizer .row').count();
    assert(rows < 100, `got ${rows} rows in the document, want only those on the screen and a few more`);
    await page.evaluate(() => { document.querySelector('.executions .scroll').scrollTop = 0; });
    await page.getByText('number = 0', { exact: true }).waitFor(); // loaded again
    await wantNothingWrong(page);
  },

  async 'what one reads does not move'(ids) {
    const page = await open(adminKey);
    for (let n = 0; n < 60; n++) await run(ids.sandbox, `"filler ${n}"`);
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.sizer .row').first().waitFor();
    await page.locator('.executions .scroll').hover();
    await page.mouse.wheel(0, 500);
    await page.waitForFunction(() => document.querySelector('.executions .scroll').scrollTop > 300);
    const place = () => page.locator('.sizer .row', { hasText: '"filler 40"' }).boundingBox();
    const before = await place();
    await run(ids.sandbox, '"comes while one reads"');
    await page.getByRole('button', { name: /1 new execution/ }).waitFor();
    assert.deepStrictEqual(await place(), before);
    await page.getByRole('button', { name: /1 new execution/ }).click();
    await page.locator('.sizer .row', { hasText: 'comes while one reads' }).waitFor();
    await wantNothingWrong(page);
  },

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

  async 'the steps of a recorded execution'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.recorded}`);
    await page.getByRole('link', { name: '9 steps' }).click();
    await page.locator('.cm-current', { hasText: 'total = 0' }).waitFor();
    const value = (name) => page.locator('.variables li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });
    for (const line of ['for n in range(3):', 'total += n', 'for n in range(3):', 'total += n', 'for n in range(3):']) {
      await page.keyboard.press('ArrowRight');
      await page.locator('.cm-current', { hasText: line }).waitFor();
    }
    await page.waitForURL(/step=6/);
    await value('total').getByText('changed').waitFor();
    assert.strictEqual(await value('total').locator('.value').textContent(), '1');
    await page.keyboard.press('ArrowLeft');
    await page.locator('.variables li .value', { hasText: /^0$/ }).waitFor();
    await page.waitForURL(/step=5/);
    await page.reload(); // the link is deep
    await page.locator('.cm-current', { hasText: 'total += n' }).waitFor();
    await page.getByLabel('Next step at which this holds').fill('total == 3');
    await page.keyboard.press('Enter');
    await page.waitForURL(/step=8/);
    await value('total').getByRole('button').click();
    await page.getByText('History of total').waitFor();
    await page.getByText('Why total is 3').waitFor();
    await page.locator('.story li', { hasText: 'visible from step 8' }).getByRole('button', { name: 'step 7', exact: true }).waitFor();
    assert.doesNotMatch((await page.locator('.story').allTextContents()).join(' '), /condition|=\s*$/);
    await page.getByRole('button', { name: 'step 2', exact: true }).first().click();
    await page.waitForURL(/step=2/);
    await page.getByRole('slider').fill('9');
    await page.getByText('step 9 of 9').waitFor();
    // The reason of a value names what its line has read.
    await page.goto(`${address}/ui/executions/${ids.recorded}/steps?step=9&name=total`);
    const cause = page.locator('.story li', { hasText: 'total += n' }).first();
    await cause.getByText('total = 3', { exact: true }).waitFor();
    await cause.getByText('total = 1', { exact: true }).waitFor();
    await cause.getByText('n = 2', { exact: true }).waitFor();
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

  async 'a pending write is rejected in two steps'() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/writes?status=pending`);
    const write = page.locator('.write').first();
    await write.getByText('DELETE FROM raw_data WHERE id = :id').waitFor();
    await write.getByText('Sample of the rows', { exact: true }).click();
    await write.getByText('Rows as they are now').waitFor();
    const cells = await write.locator('td').allTextContents();
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
    await write.getByText('rejected').waitFor();
    await write.getByText(reason).waitFor();
    await page.goto(`${address}/ui/writes?status=rejected`);
    await page.locator('.write').first().getByText(reason).waitFor();
    await page.goto(`${address}/ui/audit?action=rejected`);
    await page.getByText(reason).first().waitFor();
    await wantNothingWrong(page);
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

  async 'a revoked key leads to the sign-in page and back'() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/keys`);
    const name = `for the pages, ${Date.now()}`; // another run may have left one
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('User').fill('visitor');
    await page.getByLabel('Role').selectOption('developer');
    await page.getByRole('button', { name: 'Create key' }).click();
    const secret = await page.locator('code.secret').textContent();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    assert.strictEqual(await page.locator('code.secret').count(), 0);

    const visitor = await open(secret);
    await visitor.goto(`${address}/ui/sandboxes`);
    await heading(visitor, 'Sandboxes');
    await settled(visitor);
    assert.strictEqual(await visitor.getByRole('link', { name: 'Audit' }).count(), 0, 'a page for admins only');
    await visitor.goto(`${address}/ui/`);
    await visitor.getByText('Live', { exact: true }).waitFor();

    const row = page.locator('tr', { hasText: name });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await row.getByRole('button', { name: 'Revoke it and the keys it made' }).click();
    await row.getByText('revoked').waitFor();
    await visitor.getByText('You were signed out.').waitFor(); // by the event stream, without a click
    await signIn(visitor, adminKey);
    await heading(visitor, 'Executions');
    await wantNothingWrong(page);
    await wantNothingWrong(visitor);
  },

  // Where newcomers hesitated: each page says what it is for, and what to do next.
  async 'each page says what it is for'(ids) {
    const page = await open(adminKey);
    const commented = (await run(ids.sandbox, '#!/usr/bin/env python\nimport math\n\n# The area of a circle.\nmath.pi')).execution_id;
    await page.goto(`${address}/ui/`);
    await page.locator('.sizer .row').first().getByText('# The area of a circle.').waitFor(); // says more than the import
    for (const name of ['/', '/statements', '/writes', '/sandboxes', '/connections', '/artifacts', '/keys', '/system', '/audit',
      `/executions/${ids.recorded}/steps`]) {
      await page.goto(`${address}/ui${name}`);
      const text = await page.locator('h1 ~ .intro, .head ~ .intro').first().textContent();
      assert.match(text, /^[A-Z].{30,}\.$/s, name);
    }
    await page.goto(`${address}/ui/executions/${ids.recorded}`);
    await page.getByRole('link', { name: 'Time travel: 9 steps' }).waitFor();
    await page.goto(`${address}/ui/executions/${commented}/steps`);
    await page.getByText('There is no recording of this execution.').waitFor();
    await page.getByText('Run and record').waitFor();
    await page.goto(`${address}/ui/system`);
    await page.locator('dt', { hasText: 'Kept' }).locator('xpath=following-sibling::dd[1]').getByText('everything').waitFor();
    await wantNothingWrong(page);
  },

  async 'a newcomer without executions finds the playground'() {
    const { key } = await call('POST', '/keys', { name: `newcomer, ${Date.now()}`, user_id: `newcomer-${Date.now()}`, role: 'developer' });
    const page = await open(key);
    await page.getByText('You have run nothing yet.').waitFor();
    await wantAccessible(page);
    await page.getByRole('main').getByRole('link', { name: 'the playground' }).last().click();
    await page.getByRole('button', { name: 'List the best customers', exact: true }).click();
    await page.locator('.run').getByText('completed', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Executions', exact: true }).click();
    await page.locator('.sizer .row').getByText('completed').waitFor();
    assert.strictEqual(await page.locator('.sizer .row').count(), 1);
    await wantNothingWrong(page);
  },

  async 'two tabs share a session'() {
    const one = await open(adminKey);
    const two = await one.context().newPage();
    await two.goto(`${address}/ui/statements`);
    await heading(two, 'Statements');
    await one.getByRole('button', { name: 'Sign out' }).click();
    await two.getByLabel('API key').waitFor();
    await signIn(two, adminKey);
    await heading(two, 'Statements');
    await one.getByRole('button', { name: 'Sign out' }).waitFor();
    await wantNothingWrong(one);
  },

  async 'the description of the API begins with what a newcomer needs'() {
    const page = await open(adminKey);
    await page.goto(address + '/docs');
    await page.locator('#operations-Keys-getMe').waitFor();
    const tags = await page.locator('.opblock-tag').evaluateAll((all) => all.map((each) => [each.dataset.tag, each.querySelector('small')?.innerText ?? '']));
    assert.deepStrictEqual(tags.slice(0, 4).map(([name]) => name), ['Executions', 'Sandboxes', 'Database', 'Files']);
    assert.deepStrictEqual(tags.slice(-4).map(([name]) => name), ['Review', 'Pending writes', 'Keys', 'Service']);
    for (const [name, text] of tags) assert.match(text, /^[A-Z].*\.$/, `the tag ${name} has no sentence`);
    const operations = await page.locator('.opblock').evaluateAll((all) => all.map((each) => each.id.split('-').at(-1)));
    assert.deepStrictEqual(operations.slice(0, 4), ['quickExecuteCode', 'executeCode', 'getExecution', 'listExecutions']);
    const inTag = async (tag) => page.locator(`.opblock[id^="operations-${tag}-"]`).evaluateAll((all) => all.map((each) => each.id.split('-').at(-1)));
    assert.strictEqual((await inTag('Sandboxes'))[0], 'createSandbox');
    assert.strictEqual((await inTag('Database'))[0], 'queryDatabase');
    assert.deepStrictEqual((await inTag('Executions')).slice(-2), ['eraseExecution', 'eraseUser']);
    await shoot(page, 'docs');
    await wantNothingWrong(page);
  },

  async 'a route can be tried in the description of the API'() {
    const page = await open(adminKey);
    await page.goto(address + '/docs');
    const route = page.locator('#operations-Keys-getMe');
    await route.locator('.opblock-summary-control').click();
    await route.getByRole('button', { name: 'Execute' }).click();
    await route.locator('.live-responses-table').getByText('first admin key').first().waitFor();
    await wantNothingWrong(page);
  },
};

const tools = {
  address, adminKey, call, heading, open, run, schemes, settled, shoot, signIn, wantAccessible, wantNothingWrong,
};
for (const name of ['review', 'steps', 'debug', 'play', 'chat']) Object.assign(checks, require(`./${name}.js`)(tools));

// The suite "million" needs a history with a million executions, "sign_in" an identity provider, and "databases" the
// databases sales and down.
async function main() {
  browser = await chromium.launch({ executablePath, args: flags });
  const other = process.env.GLASSHOUSE_PAGES_SUITE;
  const suite = other ? require(`./${other}.js`)(tools) : checks;
  const ids = other ? {} : await seed();
  for (const [name, check] of Object.entries(suite)) {
    if (process.env.GLASSHOUSE_PAGES_CHECK && !name.includes(process.env.GLASSHOUSE_PAGES_CHECK)) continue;
    let error, note;
    try {
      note = await check(ids);
    } catch (thrown) {
      error = String(thrown.stack ?? thrown).slice(0, 8000);
      const pages = browser.contexts().flatMap((context) => context.pages());
      if (screenshots && pages.length) await pages.at(-1).screenshot({ path: path.join(screenshots, `failed-${name.replace(/\W+/g, '-')}.png`) });
    }
    for (const context of browser.contexts()) await context.close();
    console.log(JSON.stringify({ name, error, note }));
  }
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
