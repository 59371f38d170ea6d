// Checks of signing in and out, and of keys that are revoked meanwhile.
const assert = require('node:assert');
const { address, adminKey, call, heading, open, settled, shoot, signIn, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'sign in'(ids) {
    const page = await open();
    await page.goto(`${address}/login?token=used`);
    await page.getByText('This link was used or has expired. Run `glasshouse login-link`').waitFor();
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

  async 'a revoked key leads to the sign-in page and back'() {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/keys`);
    const name = `for the pages, ${Date.now()}`; // another run may have left one
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('User', { exact: true }).fill('visitor');
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
    await visitor.goto(`${address}/ui/executions`);
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

  async 'a limit of requests lets the page wait, and stay'() {
    const { key } = await call('POST', '/keys', { name: `limited, ${Date.now()}`, user_id: 'visitor', role: 'developer',
      limits: { requests_per_minute: 30 } });
    const page = await open(key);
    await page.goto(`${address}/ui/sandboxes`);
    await heading(page, 'Sandboxes');
    await settled(page);
    const headers = { Authorization: `Bearer ${key}` };
    while ((await fetch(`${address}/me`, { headers })).ok); // until nothing is left
    await page.getByRole('link', { name: 'Statements' }).click();
    await page.getByRole('status').filter({ hasText: 'The page tries again by itself.' }).waitFor();
    await heading(page, 'Statements'); // the page is there meanwhile
    await wantAccessible(page);
    await shoot(page, 'waiting');
    await settled(page);
    await page.getByText('The page tries again by itself.').waitFor({ state: 'detached' });
    assert.strictEqual(await page.getByRole('alert').count(), 0);
    while ((await fetch(`${address}/me`, { headers })).ok);
    await page.reload();
    await heading(page, 'Statements');
    page.wrong = page.wrong.filter((text) => !/status of 429/.test(text));
    await wantNothingWrong(page);
  },

  async 'two tabs share a session'() {
    const one = await open(adminKey, { signsIn: true });
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
};
