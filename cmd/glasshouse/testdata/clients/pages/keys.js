// Checks of the page of keys.
const assert = require('node:assert');
const { address, adminKey, call, open, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
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
    await agent.goto(`${address}/ui/debug`);
    await agent.getByText('An agent\'s key cannot debug code.').waitFor();
    assert.strictEqual(await agent.getByRole('button', { name: 'Start' }).count(), 0);
    await wantAccessible(agent);
    await wantNothingWrong(agent);
    for (const width of [1280, 375]) {
      const page = await open(adminKey, { viewport: { width, height: 740 } });
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
      blocked_modules: blocked, limits: { requests_per_minute: 60, concurrent_executions: 1, cpu_seconds_per_day: 7200, weight: 3 } });
    for (const options of [{}, { viewport: { width: 375, height: 740 } }]) {
      const page = await open(adminKey, options);
      await page.goto(`${address}/ui/keys`);
      const row = page.getByRole('row', { name });
      await row.getByText('60 requests a minute, 1 execution at once, 2 h 0 min of CPU a day, weight 3').waitFor();
      await row.getByText('Databases: knowledge').waitFor();
      await row.getByText('Imports only json, math').waitFor();
      await row.getByText('Does not import 40 modules').click();
      await row.getByText(blocked.join(', ')).waitFor();
      await wantAccessible(page);
      await shoot(page, `key-limits-${page.viewportSize().width}`);
      await wantNothingWrong(page);
    }
  },

  async 'a key is made with limits of its own'() {
    const name = `with limits, ${Date.now()}`;
    const page = await open(adminKey);
    await page.goto(`${address}/ui/keys`);
    await page.getByLabel('Name').fill(name);
    await page.getByText('Limits of this key').click();
    await page.getByLabel('Requests a minute').fill('90');
    await page.getByLabel('Weight relative to other users').fill('101');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.locator('input:invalid').waitFor(); // at most 100
    await page.getByLabel('Weight relative to other users').fill('4');
    await wantAccessible(page);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.locator('code.secret').waitFor();
    await page.getByRole('row', { name }).getByText('90 requests a minute, weight 4').waitFor();
    await wantNothingWrong(page);
    const developer = await open((await call('POST', '/keys', { name, user_id: 'visitor', role: 'developer' })).key);
    await developer.goto(`${address}/ui/keys`);
    await developer.getByRole('button', { name: 'Create key' }).waitFor();
    assert.strictEqual(await developer.getByText('Limits of this key').count(), 0, 'only an admin sets limits');
    await wantNothingWrong(developer);
  },
};
