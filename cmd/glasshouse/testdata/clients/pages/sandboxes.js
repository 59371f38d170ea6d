// Checks of the list of sandboxes and of the page of one.
const assert = require('node:assert');
const { address, adminKey, call, open, run, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

module.exports = {
  async 'a sandbox has a page with its variables, files and executions, live'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', { max_rows: 777, write_policy: 'capture' });
    const mark = `box ${Date.now()}`;
    await run(sandbox, `# ${mark}
import pathlib
pathlib.Path("/session/artifacts/report.txt").write_text("done")
hostile = "<img src=x onerror=alert(1)>"
amount = 41`);
    await fetch(`${address}/sandbox/${sandbox}/files/numbers.csv`, { method: 'PUT', body: 'n\n1\n',
      headers: { Authorization: `Bearer ${adminKey}` } });
    const page = await open(adminKey);
    await page.goto(`${address}/ui/sandboxes`);
    await page.getByRole('link', { name: mark }).click();
    await page.waitForURL(`**/ui/sandboxes/${sandbox}`);
    const variable = (name) => page.getByRole('list', { name: 'Variables' }).locator('summary', { hasText: name });
    await variable('amount').getByText('41').waitFor();
    await variable('hostile').getByText('<img src=x onerror=alert(1)>').waitFor();
    await page.getByRole('list', { name: 'Artifacts' }).getByRole('link', { name: 'report.txt' }).waitFor();
    await page.getByText('at most 777 rows').waitFor();
    await page.getByText('wait until an admin applies them').waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'numbers.csv' }).click()]);
    assert.strictEqual(download.suggestedFilename(), 'numbers.csv');
    // What runs meanwhile appears by itself.
    await run(sandbox, '# the next one\namount += 1');
    await page.getByRole('link', { name: 'the next one' }).waitFor();
    await variable('amount').getByText('42').waitFor();
    const endless = run(sandbox, '# endless\nwhile True: pass');
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.strictEqual((await endless).status, 'cancelled');
    await page.getByText('nothing runs in it').waitFor();
    await variable('amount').getByText('42').waitFor();
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await page.waitForURL(new RegExp(`/ui/play\\?sandbox=${sandbox}`));
    await page.goBack();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete it, with its variables and files' }).click();
    await page.getByText('The variables went with the sandbox.').waitFor();
    await page.getByRole('list', { name: 'Artifacts' }).getByRole('link', { name: 'report.txt' }).waitFor(); // outlives it
    assert.strictEqual(await page.getByRole('button', { name: 'Delete' }).count(), 0);
    // The list has it only if one asks.
    await page.getByRole('link', { name: 'Sandboxes' }).first().click();
    await page.locator('h1', { hasText: 'Sandboxes' }).waitFor();
    await settled(page);
    assert.strictEqual(await page.getByRole('link', { name: mark }).count(), 0, 'a deleted sandbox is not in the list');
    await page.getByLabel('Status').selectOption('any');
    await page.locator('tr', { hasText: mark }).getByText('deleted').waitFor();
    await wantNothingWrong(page);
  },

  async 'the page of a sandbox, in both schemes and on a phone'() {
    const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
    await run(sandbox, 'import pathlib\npathlib.Path("/session/artifacts/a.txt").write_text("a")\nvalues = {"a": 1}');
    await run(sandbox, '1 / 0');
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      await page.goto(`${address}/ui/sandboxes/${sandbox}`);
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `sandbox-${colorScheme}`);
      await page.setViewportSize({ width: 375, height: 740 });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(width <= 375, `it is ${width} pixels wide, want at most 375`);
      await shoot(page, `sandbox-phone-${colorScheme}`);
      await wantNothingWrong(page);
    }
    const { key } = await call('POST', '/keys', { name: `visitor ${Date.now()}`, user_id: `visitor-${Date.now()}`, role: 'agent' });
    const page = await open(key);
    await page.goto(`${address}/ui/sandboxes/${sandbox}`);
    await page.getByText('there is no such sandbox, or it is not yours').waitFor();
  },
};
