// Checks of the pages for review: executions and their records, pending writes.
const assert = require('node:assert');

module.exports = ({ address, adminKey, open, settled, wantNothingWrong }) => ({
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
});
