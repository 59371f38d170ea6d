// Checks of the description of the API: /docs.
const assert = require('node:assert');
const { address, adminKey, open, shoot, wantNothingWrong } = require('./browser.js');

module.exports = {
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
    await route.locator('.live-responses-table').getByText('session-').first().waitFor();
    await wantNothingWrong(page);
  },
};
