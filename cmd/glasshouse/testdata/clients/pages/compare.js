// The checks of two runs side by side: /ui/compare?a=ID&b=ID.
const assert = require('node:assert');
const { address, adminKey, call, open, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const revenue = (join) => `import pandas as pd
# Revenue of each city.
rows = db_frame("SELECT c.city, sum(o.total)::float8 AS revenue FROM customers c JOIN orders o ON o.customer_id = c.id${join} GROUP BY c.city ORDER BY c.city")
print("cities:", len(rows))
rows
`;
const quick = (code, title) => call('POST', '/sandbox/agent/quick-execute', { code, title });

module.exports = {
  async 'two runs are chosen in the list and stand side by side'() {
    const name = `revenue ${Date.now()}`;
    const { execution_id: right } = await quick(revenue(''), `${name} without lines`);
    const { execution_id: wrong } = await quick(revenue(' JOIN order_items i ON i.order_id = o.id'), `${name} with lines`);
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      await page.getByRole('button', { name: 'Compare', exact: true }).click();
      await page.getByText('Choose two runs to compare.').waitFor();
      await page.getByRole('checkbox', { name: `Compare ${name} with lines` }).check();
      await page.getByText(`Choose another run to compare with ${name} with lines.`).waitFor();
      await page.getByRole('checkbox', { name: `Compare ${name} without lines` }).check();
      await wantAccessible(page);
      await page.getByRole('link', { name: 'Compare the two runs' }).click();
      await page.waitForURL(`**/ui/compare?a=${right}&b=${wrong}`); // the older run is at the left
      await page.getByText('Different: the code, the result and outputs and the statements').waitFor();
      // The line of the code, each cell, the statement.
      const line = page.locator('.diff tr.changed');
      assert.match(await line.locator('.right').textContent(), /JOIN order_items/);
      assert.doesNotMatch(await line.locator('.left').textContent(), /JOIN order_items/);
      await page.getByText('6 of 12 cells differ').waitFor();
      const cell = page.getByRole('group', { name: 'Cells of Last value that differ' }).locator('tbody tr').first();
      assert.match(await cell.textContent(), /^Berlin row 1/);
      const number = async (side) => Number((await cell.locator(side).textContent()).replaceAll(',', ''));
      const [left, other] = [await number('.left'), await number('.right')];
      assert(other > left && left > 0, `${left} and ${other}`);
      await page.locator('.compared tr.differs .right-text', { hasText: 'JOIN order_items' }).waitFor();
      await page.getByText('stdout: the same 1 line').waitFor();
      await page.getByRole('rowheader', { name: 'Wall time' }).waitFor();
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-compare`);
      await page.getByRole('button', { name: 'Swap the sides' }).click();
      await page.waitForURL(`**/ui/compare?a=${wrong}&b=${right}`);
      await wantNothingWrong(page);
    }
    const phone = await open(adminKey, { viewport: { width: 390, height: 844 } });
    await phone.goto(`${address}/ui/compare?a=${wrong}&b=${right}`);
    await phone.getByText('6 of 12 cells differ').waitFor();
    const width = await phone.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= 390, `got a page of ${width} pixels, want at most 390`);
    // No part is cut off: the right is below the left, and each number has its name.
    for (const part of await phone.locator('.scroll-x:not(.cells)').all()) {
      const [inside, seen] = await part.evaluate((box) => [box.scrollWidth, box.clientWidth]);
      assert(inside <= seen, `${await part.getAttribute('aria-label')}: ${inside} pixels in ${seen}`);
    }
    const [left, right_] = [await phone.locator('.diff .changed .left').boundingBox(), await phone.locator('.diff .changed .right').boundingBox()];
    assert(right_.y >= left.y + left.height, JSON.stringify({ left, right_ }));
    const names = await phone.locator('.compared tbody td.number').evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content));
    assert.deepStrictEqual(names, ['"Rows, left"', '"Rows, right"', '"Time, left"', '"Time, right"']);
    const tops = await phone.locator('.compared tbody td').evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().y));
    assert(tops.every((top, n) => n === 0 || top > tops[n - 1]), `the cells are at ${tops}, want one below the other`);
    await shoot(phone, 'phone-compare');
    await wantNothingWrong(phone);
  },

  async 'a replay is compared with its original, and a run with one that is chosen'() {
    const { execution_id: id } = await quick('total = 6 * 7\ntotal', `original ${Date.now()}`);
    const { execution_id: replay } = await call('POST', `/executions/${id}/replay`, {});
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${replay}`);
    await page.getByRole('link', { name: 'Both side by side' }).click();
    await page.waitForURL(`**/ui/compare?a=${id}&b=${replay}`);
    await page.getByText('Nothing differs').waitFor();
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'Compare with…' }).click();
    await page.getByText('Choose another run to compare with original ').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    assert.strictEqual(await page.locator('.choose').count(), 0);
    await page.goto(`${address}/ui/compare`);
    await page.getByText('Two runs are needed.').waitFor();
    await wantNothingWrong(page);
  },
};
