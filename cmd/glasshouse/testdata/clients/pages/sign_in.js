// The checks of signing in with an identity provider, that of signintest at GLASSHOUSE_PROVIDER.
const assert = require('node:assert');
const { address, heading, open, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const provider = process.env.GLASSHOUSE_PROVIDER;
const button = (page) => page.getByRole('link', { name: `Sign in with ${new URL(provider).host}` });

async function atProvider(page, user) {
  await button(page).click();
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
  assert.strictEqual(new URL(page.url()).origin, provider);
  if (user) {
    await page.getByLabel('User').fill(user);
    await page.getByRole('button', { name: 'Continue' }).click();
  } else {
    await page.getByRole('button', { name: 'Refuse' }).click();
  }
}

module.exports = {
  async 'a person signs in, and out'() {
    const page = await open();
    await page.goto(`${address}/ui/play?panel=schema`);
    await button(page).waitFor();
    await wantAccessible(page);
    await shoot(page, 'sign-in-provider');
    await atProvider(page, 'anna');
    await page.locator('.shell').waitFor();
    assert.strictEqual(page.url(), `${address}/ui/play?panel=schema`, 'the page that was wanted');
    assert.strictEqual(await page.evaluate(() => document.cookie), '', 'scripts cannot read the cookie');
    const kept = await page.context().cookies(address);
    assert.deepStrictEqual(kept.map(({ name, sameSite, httpOnly }) => ({ name, sameSite, httpOnly })),
      [{ name: 'glasshouse_key', sameSite: 'Strict', httpOnly: true }]);
    await page.goto(`${address}/ui/keys`); // a developer's own keys
    await heading(page, 'Keys');
    await page.getByText('sign-in to the pages').first().waitFor();
    const secret = decodeURIComponent(kept[0].value);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await button(page).waitFor();
    const response = await fetch(`${address}/me`, { headers: { Authorization: `Bearer ${secret}` } });
    assert.strictEqual(response.status, 401, 'the key of the sign-in is revoked');
    await wantNothingWrong(page);
  },

  async 'a revoked person is told, and can sign in again'() {
    const page = await open();
    await page.goto(`${address}/ui/`);
    await atProvider(page, 'anna');
    await page.locator('.shell').waitFor();
    const me = await page.evaluate(async () => (await fetch('/me')).json());
    const answer = await fetch(`${address}/keys/${me.key_id}`, {
      method: 'DELETE', headers: { Authorization: `Bearer ${process.argv[3]}` },
    });
    assert.strictEqual(answer.status, 200);
    await page.getByText('You were signed out.').waitFor();
    await atProvider(page, 'anna');
    await page.locator('.shell').waitFor();
    await wantNothingWrong(page);
  },

  async 'a refusal is explained'() {
    const page = await open();
    for (const user of ['guest', undefined]) {
      await page.goto(`${address}/ui/`);
      await atProvider(page, user);
      await page.getByText('have no role here').waitFor();
      await page.waitForURL(`${address}/ui/`); // a reload is another attempt
      await wantAccessible(page);
      await shoot(page, 'sign-in-refused');
    }
    await page.goto(`${address}/login/oidc/callback?code=1&state=2`);
    await page.getByText('began in another browser').waitFor();
    await wantNothingWrong(page);
  },

  async 'a key still signs in'() {
    const page = await open();
    await page.goto(`${address}/ui/`);
    await button(page).waitFor();
    await page.getByLabel('API key').fill(process.argv[3]);
    await page.keyboard.press('Enter');
    await page.locator('.shell').waitFor();
    await wantNothingWrong(page);
  },
};
