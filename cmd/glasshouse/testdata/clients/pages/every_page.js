// Checks of all pages: both colour schemes, phones, the keyboard, and what a newcomer reads first.
const assert = require('node:assert');
const { address, adminKey, call, heading, open, run, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const lists = ['/', '/executions', '/executions?group=session', '/play', '/play?panel=schema', '/debug', '/statements', '/statements?view=all', '/writes', '/sandboxes', '/connections',
  '/artifacts', '/keys', '/system', '/audit'];

module.exports = {
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
    const page = await open(adminKey, { viewport: { width: 375, height: 740 } });
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

  async 'everything is reached with Tab'(ids) {
    const page = await open(adminKey);
    for (const name of [...lists.filter((each) => each !== '/'), `/sandboxes/${ids.sandbox}`, `/executions/${ids.failed}`, `/executions/${ids.recorded}/steps?step=5&name=total`]) {
      await page.goto(`${address}/ui${name}`);
      await settled(page);
      await page.evaluate(() => {
        window.reached = new Set();
        document.addEventListener('focusin', ({ target }) => window.reached.add(target));
        document.activeElement.blur();
      });
      // Until a round reaches nothing new: what loads late may take the focus away in the middle of one.
      for (let n = 0, old = 0, reached = 0; n < 600; n++) {
        await page.keyboard.press('Tab');
        const { count, isAround, isEditor } = await page.evaluate(() => ({
          count: window.reached.size,
          isAround: document.activeElement === document.body || document.activeElement.matches('.skip') && window.reached.size > 5,
          isEditor: document.activeElement.matches('.editor'),
        }));
        if (isEditor) await page.keyboard.press('Escape'); // then Tab leaves the code
        old = count > reached ? 0 : old + 1;
        reached = count;
        if (isAround && old > 5) break;
      }
      const missed = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
        .filter((each) => each.checkVisibility() && !each.disabled && !window.reached.has(each)).map((each) => each.outerHTML.slice(0, 200)));
      assert.deepStrictEqual(missed, [], `${name}: Tab does not reach these`);
    }
    await wantNothingWrong(page);
  },

  // Where newcomers hesitated: each page says what it is for, and what to do next.
  async 'each page says what it is for'(ids) {
    const page = await open(adminKey);
    const commented = (await run(ids.sandbox, '#!/usr/bin/env python\nimport math\n\n# The area of a circle.\nmath.pi')).execution_id;
    await page.goto(`${address}/ui/executions`);
    await page.locator('.sizer .row').first().getByText('The area of a circle.').waitFor(); // says more than the import
    for (const name of ['/', '/debug', '/statements', '/writes', '/sandboxes', '/connections', '/artifacts', '/keys', '/system', '/audit',
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
};
