// Checks of Plotly's figures, which are drawn in a frame without network.
const assert = require('node:assert');
const http = require('node:http');
const { address, adminKey, open, run, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

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

module.exports = {
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
};
