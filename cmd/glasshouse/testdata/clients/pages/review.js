// Checks of the pages for review: executions and their records, pending writes.
const assert = require('node:assert');
const http = require('node:http');

// leaving is a figure whose JSON names addresses in many places. HTML goes to other pages by itself.
const leaving = (elsewhere) => `
class Figure:
    def __init__(self, figure): self.figure = figure
    def to_json(self):
        import json
        return json.dumps(self.figure)
Figure.__module__ = "plotly.graph_objs"
attack = "parent.owned=1;top.owned=1;window.owned=1;alert(1)"
link = f'<a href="${elsewhere}/link" target="_top">away</a><a href="javascript:{attack}">script</a><img src="${elsewhere}/text" onerror="{attack}">'
display(Figure({
    "data": [
        {"type": "bar", "x": [link, "two"], "y": [1, 2], "text": [link, "b"], "hovertemplate": link, "customdata": [attack]},
        {"type": "image", "source": "${elsewhere}/image-trace"},
    ],
    "layout": {"title": {"text": "bars " + link}, "height": 300, "font": {"family": "x;src:url(${elsewhere}/font)"},
        "images": [{"source": "${elsewhere}/image", "xref": "paper", "yref": "paper", "x": 0, "y": 1, "sizex": 1, "sizey": 1}],
        "template": {"layout": {"images": [{"source": "${elsewhere}/template"}]}}},
    "config": {"plotlyServerURL": "${elsewhere}/server", "topojsonURL": "${elsewhere}/topojson/"},
}))
display(Figure({
    "data": [{"type": "scattergeo", "lat": [1], "lon": [1]}],
    "layout": {"height": 300, "title": {"text": "globe"}},
}))
display(Figure({
    "data": [{"type": "scattermap", "lat": [1], "lon": [1]}],
    "layout": {"height": 300, "title": {"text": "map"}, "map": {"style": "${elsewhere}/style.json", "layers": [
        {"sourcetype": "raster", "source": ["${elsewhere}/tiles/{z}/{x}/{y}"]}]}},
}))
class HTML:
    def _repr_html_(self):
        return '<p>moves</p><iframe src="/ui/plot.html"></iframe><meta http-equiv="refresh" content="0;url=/executions">'
display(HTML())
`;

const drawn = `import plotly.express as px
px.bar({"city": ["Bern", "Oslo"], "people": [3, 5]}, x="city", y="people", title="People by city")`;

const large = `import plotly.graph_objects as go
go.Figure(go.Scatter(y=[n % 977 + 0.125 for n in range(300_000)], name="many"), layout={"title": {"text": "Many points"}})`;

module.exports = ({ address, adminKey, call, run, open, settled, shoot, wantAccessible, wantNothingWrong }) => ({
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

  async 'figures of Plotly are drawn'(ids) {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(adminKey, { colorScheme });
      const requests = [];
      page.on('request', (request) => requests.push(new URL(request.url()).pathname));
      await page.goto(`${address}/ui/executions/${ids.plain}`);
      await settled(page);
      assert(!requests.some((path) => path.includes('plot')), `without a figure the library is not loaded: ${requests}`);
      const { execution_id: id } = await run(ids.sandbox, drawn);
      await page.goto(`${address}/ui/executions/${id}`);
      const frame = page.frameLocator('iframe.plot');
      await frame.getByText('People by city').waitFor();
      assert.strictEqual(await frame.locator('.bars path').count(), 2);
      const box = await page.locator('iframe.plot').boundingBox();
      assert(box.width > 300 && box.height === 450, JSON.stringify(box));
      assert.match(await page.locator('iframe.plot').getAttribute('title'), /^Figure: plotly figure .*People by city/);
      assert.strictEqual(await page.locator('iframe.plot').getAttribute('sandbox'), 'allow-scripts');
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `plotly-${colorScheme}`);
      await wantNothingWrong(page);
    }
    const page = await open(adminKey);
    const { execution_id: id, outputs } = await run(ids.sandbox, large);
    assert(JSON.stringify(outputs).includes('artifact_id'), 'the figure is too small to be stored as a file');
    await page.goto(`${address}/ui/executions/${id}`);
    await page.frameLocator('iframe.plot').getByText('Many points').waitFor();
    await wantNothingWrong(page);
  },

  async 'a figure of Plotly loads nothing and leaves its frame nowhere'(ids) {
    const asked = [];
    const other = http.createServer((request, response) => {
      asked.push(request.url);
      response.setHeader('Access-Control-Allow-Origin', '*');
      response.end('{}');
    });
    await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
    try {
      const elsewhere = `http://127.0.0.1:${other.address().port}`;
      const { execution_id: id, error } = await run(ids.sandbox, leaving(elsewhere));
      assert.strictEqual(error, null);
      const page = await open(adminKey);
      const requests = [];
      page.on('response', (response) => { // a request that the policy stops has none
        requests.push([response.url(), response.frame() === page.mainFrame()]);
      });
      await page.goto(`${address}/ui/executions/${id}`);
      const figures = page.locator('iframe.plot');
      await figures.nth(2).waitFor();
      const first = page.frameLocator('iframe.plot').first();
      await first.getByText(/^bars/).waitFor();
      for (const [index, title] of [[1, 'globe'], [2, 'map']]) {
        await figures.nth(index).scrollIntoViewIfNeeded();
        await page.frameLocator('iframe.plot').nth(index).getByText(new RegExp(`${title}|cannot draw`)).first().waitFor();
      }
      await page.locator('iframe.html').scrollIntoViewIfNeeded();
      await first.locator('a').first().evaluate((link) => link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })));
      // As a script in the frame could. It ends when the policy has stopped each request, or after a limit.
      const stopped = await first.locator('body').evaluate(async (body, url) => {
        const names = ['fetch', 'beacon', 'send', 'socket'];
        const found = new Set();
        const all = new Promise((resolve) => {
          setTimeout(resolve, 10_000);
          document.addEventListener('securitypolicyviolation', ({ blockedURI }) => {
            found.add(names.find((name) => blockedURI.endsWith(`/${name}`)) ?? blockedURI);
            if (names.every((name) => found.has(name))) resolve();
          });
        });
        await fetch(url + '/fetch').catch(() => {});
        new Image().src = url + '/beacon';
        navigator.sendBeacon?.(url + '/send');
        const link = Object.assign(document.createElement('a'), { href: url + '/popup', target: '_blank' });
        body.append(link);
        link.click();
        try { new WebSocket(url.replace('http', 'ws') + '/socket'); } catch { /* forbidden */ }
        await all;
        return [...found].sort();
      }, elsewhere);
      assert.deepStrictEqual(stopped, ['beacon', 'fetch', 'send', 'socket'], 'the policy stops each request');
      const state = await first.locator('body').evaluate(() => {
        const attempt = (f) => { try { return String(f()); } catch (thrown) { return thrown.name; } };
        return [attempt(() => document.cookie), attempt(() => localStorage.length), attempt(() => parent.document.title), origin];
      });
      assert.deepStrictEqual(state, ['SecurityError', 'SecurityError', 'SecurityError', 'null']);
      await fetch(`${elsewhere}/control`); // the server counts what arrives
      assert.deepStrictEqual(asked, ['/control'], 'frames ask nothing from elsewhere');
      const byFrames = requests.filter(([url, isPage]) => !isPage && !/^(about|blob|data):/.test(url)).map(([url]) => new URL(url).pathname);
      const allowed = byFrames.filter((path) => path === '/ui/plot.html' || /^\/ui\/assets\/(plot|frame)-/.test(path));
      assert.deepStrictEqual(byFrames, allowed, 'frames load their own script and style only');
      assert.strictEqual(new URL(page.url()).pathname, `/ui/executions/${id}`);
      assert.strictEqual(await page.evaluate(() => window.owned), undefined);
      assert(!page.wrong.some((text) => /dialog/.test(text)), page.wrong.join('\n'));
    } finally {
      other.close();
    }
  },

  async 'tables have types, and pages if they are long'(ids) {
    const page = await open(adminKey);
    const show = async (code) => {
      const { execution_id: id } = await run(ids.sandbox, code);
      await page.goto(`${address}/ui/executions/${id}`);
      await page.locator('.data table').first().waitFor();
    };
    const panel = page.locator('.panel', { hasText: 'Last value' });
    await show(`import pandas as pd
pd.DataFrame({"city": ["a"] * 12_345, "n": 1.5, "t": pd.Timestamp("2026-01-01"), **{f"c{i}": i for i in range(25)}}, index=pd.RangeIndex(12_345, name="id"))`);
    const headings = await panel.locator('th').evaluateAll((cells) => cells.map((cell) => [cell.firstChild.textContent, cell.querySelector('.type').textContent]));
    assert.strictEqual(headings.length, 21);
    assert.deepStrictEqual([headings[0], headings[2], headings[4]], [['id', 'integer'], ['n', 'float64'], ['c0', 'int64']]);
    assert.match(headings[3][1], /^datetime64/);
    assert.strictEqual(await panel.locator('.pager').textContent(), 'Rows 1–50 of 12,345; the first 60 are here; 8 more columnsPreviousNext');
    await wantAccessible(page);
    await shoot(page, 'table');
    await show('class T:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n        fields = [{"name": "n", "type": "integer"}]\n' +
      '        return {"application/vnd.dataresource+json": {"schema": {"fields": fields}, "data": [{"n": n} for n in range(120)]}, "text/plain": "t"}\nT()');
    const numbers = async () => (await panel.locator('td').allTextContents()).map(Number);
    const next = panel.getByRole('button', { name: 'Next' });
    const status = panel.locator('.pager').getByRole('status');
    assert.deepStrictEqual(await numbers(), Array.from({ length: 50 }, (_, n) => n));
    assert.strictEqual(await panel.getByRole('button', { name: 'Previous' }).isDisabled(), true);
    await next.click();
    await next.click();
    await status.getByText('Rows 101–120 of 120').waitFor();
    assert.deepStrictEqual(await numbers(), Array.from({ length: 20 }, (_, n) => 100 + n));
    assert.strictEqual(await next.isDisabled(), true);
    await panel.getByRole('button', { name: 'Previous' }).click();
    await status.getByText('Rows 51–100 of 120').waitFor();
    await wantAccessible(page);
    await shoot(page, 'table-pages');
    await wantNothingWrong(page);
  },

  async 'the list is loaded again after a gap in its events'(ids) {
    const page = await open(adminKey);
    await page.getByText('Live', { exact: true }).waitFor();
    let isCut = true;
    const feed = (url) => url.pathname === '/executions/events';
    await page.route(feed, (route) => isCut
      ? route.abort('connectionrefused')
      // The service no longer has the events after this one. It says so with the event "gap".
      : route.continue({ headers: { ...route.request().headers(), 'last-event-id': '1' } }));
    await page.reload();
    await page.getByText('Connecting…', { exact: true }).waitFor();
    await page.locator('.sizer .row').first().waitFor();
    const code = `"missed by the feed, ${Date.now()}"`;
    await run(ids.sandbox, code);
    const missed = page.locator('.sizer .row', { hasText: code });
    assert.strictEqual(await missed.count(), 0);
    isCut = false;
    await missed.waitFor();
    page.wrong = page.wrong.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'));
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

  async 'a key of an agent creates no keys'() {
    const { key } = await call('POST', '/keys', { name: `agent, ${Date.now()}`, user_id: 'visitor', role: 'agent' });
    const agent = await open(key);
    await agent.goto(`${address}/ui/keys`);
    await agent.getByText('An agent\'s key cannot create keys. Ask an admin.').waitFor();
    await settled(agent);
    assert.strictEqual(await agent.getByRole('form', { name: 'Create a key' }).count(), 0);
    await wantAccessible(agent);
    await agent.goto(`${address}/ui/writes`);
    await agent.getByRole('alert').first().waitFor();
    await settled(agent);
    assert.strictEqual(await agent.getByRole('alert').count(), 1, 'the refusal is shown once');
    assert.strictEqual(await agent.getByRole('button', { name: 'Try again' }).count(), 0);
    await wantNothingWrong(agent);
    for (const width of [1280, 375]) {
      const page = await open(undefined, { viewport: { width, height: 740 } });
      await page.goto(`${address}/ui/`);
      await page.getByLabel('API key').fill(adminKey);
      await page.keyboard.press('Enter');
      await page.locator('.shell').waitFor();
      await page.goto(`${address}/ui/keys`);
      await page.getByText('An agent runs code').waitFor();
      const revoke = page.getByRole('button', { name: 'Revoke', exact: true }).first();
      await revoke.waitFor();
      const box = await revoke.boundingBox();
      assert(box.x >= 0 && box.x + box.width <= width, `Revoke is at ${JSON.stringify(box)}, want it in ${width} pixels`);
      await shoot(page, `keys-${width}`);
      await wantNothingWrong(page);
    }
  },

  async 'the limits of a key are shown'() {
    const name = `limited, ${Date.now()}`;
    const blocked = Array.from({ length: 40 }, (_, n) => `module_${n}`);
    await call('POST', '/keys', { name, role: 'agent', user_id: 'visitor', databases: ['knowledge'], allowed_modules: ['json', 'math'],
      blocked_modules: blocked, limits: { requests_per_minute: 60, concurrent_executions: 1, cpu_seconds_per_day: 7200 } });
    for (const options of [{}, { viewport: { width: 375, height: 740 } }]) {
      const page = await open(adminKey, options);
      await page.goto(`${address}/ui/keys`);
      const row = page.getByRole('row', { name });
      await row.getByText('60 requests a minute, 1 execution at once, 2 h 0 min of CPU a day').waitFor();
      await row.getByText('Databases: knowledge').waitFor();
      await row.getByText('Imports only json, math').waitFor();
      await row.getByText('Does not import 40 modules').click();
      await row.getByText(blocked.join(', ')).waitFor();
      await wantAccessible(page);
      await shoot(page, `key-limits-${page.viewportSize().width}`);
      await wantNothingWrong(page);
    }
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
    assert.strictEqual(await page.locator('.filters select').nth(1).locator('option:checked').textContent(), 'Last 24 hours');
    const shapes = await page.locator('tbody tr').count();
    const [, shown] = /^(\d+) shapes?,/.exec(await page.locator('.below-filters').textContent());
    assert.strictEqual(Number(shown), shapes);
    const top = page.locator('tbody tr', { hasText: 'UPDATE raw_data SET id' });
    assert.strictEqual(await top.locator('.number').nth(5).textContent(), '0');
    await top.getByRole('link').click();
    await page.locator('.chip', { hasText: 'UPDATE raw_data SET id' }).waitFor();
    await wantNothingWrong(page);
  },
});
