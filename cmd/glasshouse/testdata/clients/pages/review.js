// Checks of the pages for review: executions and their records, pending writes.
const assert = require('node:assert');

module.exports = ({ address, adminKey, call, open, settled, shoot, wantAccessible, wantNothingWrong }) => ({
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

  async 'an execution leads to the pages that run it again'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.failed}`);
    const target = async (name) => page.getByRole('link', { name, exact: true }).getAttribute('href');
    assert.strictEqual(await target('Run again'), `/ui/play?execution=${ids.failed}`);
    assert.strictEqual(await target('Debug'), `/ui/debug?execution=${ids.failed}`);
    const { key } = await call('POST', '/keys', { name: `agent, ${Date.now()}`, user_id: 'visitor', role: 'agent' });
    const agent = await open(key);
    const { execution_id: own } = await call('POST', '/sandbox/agent/quick-execute', { code: '1 + 1' }, key);
    await agent.goto(`${address}/ui/executions/${own}`);
    await agent.getByRole('link', { name: 'Run again' }).waitFor();
    assert.strictEqual(await agent.getByRole('link', { name: 'Debug' }).count(), 0, 'a key of an agent may not debug');
    await call('POST', '/database/query', { query: 'SELECT 1 AS one' });
    const { executions: [query] } = await call('GET', '/executions?kind=database-query&limit=1');
    await page.goto(`${address}/ui/executions/${query.execution_id}`);
    await page.getByText('SELECT 1 AS one').first().waitFor();
    await settled(page);
    assert.strictEqual(await page.getByRole('link', { name: 'Run again' }).count(), 0, 'SQL is no Python');
    await wantNothingWrong(page);
    await wantNothingWrong(agent);
  },
});
