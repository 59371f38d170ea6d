// The checks of why: beside the result of an execution, and beside the variables of a recording.
const assert = require('node:assert');
const { address, adminKey, call, open, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

// The average is wrong: durations that are missing count as 0.
const average = `# The mean duration is too small.
rows = db_query("SELECT action, duration_ms FROM user_activities ORDER BY id LIMIT 400")
def seconds(row):
    return (row["duration_ms"] or 0) / 1000
total = 0.0
for row in rows:
    total += seconds(row)
average = total / len(rows)
print(f"average: {average:.3f} s")
average
`;
const table = `orders = db_frame("SELECT c.city, o.total::float8 AS total FROM orders o JOIN customers c ON c.id = o.customer_id")
t = orders.groupby("city")["total"].agg(["count", "mean"]).round(2)
t
`;
const failing = `def share(rows, name):
    total = sum(rows.values())
    return rows[name] / total

share({"a": 0, "b": 0}, "a")
`;

const quick = (code, record) => call('POST', '/sandbox/agent/quick-execute', { code, record });
const evident = (page) => page.locator('.why-part.evident');
const cause = /^Check first.*row\["duration_ms"\] or 0.*\d+ of 400 values were missing \(None or NaN\) and became 0/;

// wantOneScrollArea fails if the document scrolls, too: the menu would leave the window.
async function wantOneScrollArea(page) {
  const [height, window] = await page.evaluate(() => [document.documentElement.scrollHeight, innerHeight]);
  assert.strictEqual(height, window, 'the height of the document');
}

module.exports = {
  // One click, and nothing has to be scrolled: the cause is beside the result and the code, whose line is marked.
  async 'why stands beside the result'() {
    const { execution_id: id } = await quick(average, true);
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      await page.goto(`${address}/ui/executions/${id}`);
      await page.getByRole('button', { name: 'Why this result?' }).click();
      await evident(page).filter({ hasText: cause }).waitFor();
      await page.getByText('What these lines did').waitFor();
      await page.locator('.cm-called', { hasText: 'duration_ms"] or 0' }).waitFor();
      await settled(page);
      const why = await page.locator('.why-panel').boundingBox();
      const result = await page.getByRole('heading', { name: 'Result', exact: true }).boundingBox();
      assert(why.x > result.x + result.width && Math.abs(why.y - result.y) < 60, JSON.stringify({ why, result }));
      assert((await evident(page).boundingBox()).y < 700, 'the cause is in the first picture');
      await wantOneScrollArea(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-why-result`);
      await page.reload(); // the question is in the address
      await evident(page).filter({ hasText: cause }).waitFor();
      await evident(page).getByRole('link', { name: 'line 4' }).click();
      await page.locator('.cm-current', { hasText: 'for row in rows' }).waitFor(); // line 4 has run
      await page.getByText(/^Why the result is 1\.\d+/).waitFor();
      await evident(page).filter({ hasText: cause }).waitFor();
      await wantNothingWrong(page);
    }
    const phone = await open(adminKey, { viewport: { width: 390, height: 844 } });
    await phone.goto(`${address}/ui/executions/${id}`);
    await phone.getByRole('button', { name: 'Why this result?' }).click();
    await evident(phone).filter({ hasText: cause }).waitFor();
    await phone.getByText('What these lines did').waitFor(); // comes last
    await settled(phone);
    const seen = await evident(phone).boundingBox();
    assert(seen.y > 60 && seen.y + seen.height < 844, `${JSON.stringify(seen)}: what to check first is in sight`);
    const top = async (name) => (await phone.getByRole('heading', { name, exact: true }).boundingBox()).y;
    const why = (await evident(phone).boundingBox()).y;
    assert(await top('Result') < why && why < (await phone.getByRole('heading', { name: /^Code/ }).boundingBox()).y);
    const width = await phone.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= 390, `got a page of ${width} pixels, want at most 390`);
    await wantOneScrollArea(phone);
    await shoot(phone, 'phone-why-result');
    await wantNothingWrong(phone);
  },

  // A line leads to where its value is there, with the same question, which stays while the reader moves on.
  async 'a line of the answer is shown after it has run'() {
    const { execution_id: id } = await quick(average, true);
    const page = await open(adminKey);
    const chain = (text) => page.locator('.chain li', { hasText: text });
    const value = (name) => page.locator('.variables li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) }).locator('.value');
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'Why this result?' }).click();
    await chain('average = total / len(rows)').getByRole('link', { name: 'line 8' }).click();
    await page.locator('.cm-current', { hasText: 'print(' }).waitFor();
    await value('average').filter({ hasText: /^1\.\d+$/ }).waitFor();
    const heading = page.getByText(/^Why the result is 1\.\d+/);
    await heading.waitFor();
    await settled(page);
    await wantAccessible(page);
    await shoot(page, 'steps-after-line');
    await page.keyboard.press('ArrowLeft');
    await page.locator('.cm-current', { hasText: 'average = total' }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('.cm-current', { hasText: 'print(' }).waitFor();
    await heading.waitFor();
    await page.locator('.did').getByRole('button', { name: 'line 7' }).click(); // of which only the line is known
    await page.locator('.cm-current', { hasText: 'for row in rows' }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('.cm-current', { hasText: 'average = total' }).waitFor();
    // The same in the steps. A line that calls a function has run when the function has ended.
    await chain('total += seconds(row)').getByRole('button', { name: 'line 7' }).click();
    await page.locator('.cm-current', { hasText: 'for row in rows' }).waitFor();
    await heading.waitFor();
    await page.getByText('Asked at the end of the run').waitFor();
    await page.reload();
    await heading.waitFor();
    await page.locator('.cm-current', { hasText: 'for row in rows' }).waitFor();
    // Another variable is another question, at the step that is shown.
    await value('total').click();
    await page.getByText(/^Why total is/).waitFor();
    await page.getByText('Asked at').waitFor({ state: 'detached' });
    await wantNothingWrong(page);
  },

  async 'the code beside an answer keeps its lines whole'() {
    const { execution_id: id } = await quick(average, true);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    const height = (text) => page.locator('.cm-line', { hasText: text }).evaluate((e) => e.getBoundingClientRect().height);
    await page.getByRole('button', { name: 'Why this result?' }).click();
    await page.locator('.cm-called', { hasText: 'duration_ms"] or 0' }).waitFor();
    await settled(page);
    assert.strictEqual(await height('rows = db_query'), await height('total = 0.0'), 'the height of a long line');
    const scroller = page.locator('.cm-scroller').first();
    const [inside, outside] = await scroller.evaluate((e) => [e.scrollWidth, e.clientWidth]);
    assert(inside > outside, `${inside} > ${outside}: the code scrolls sideways`);
    await page.getByLabel('Code', { exact: true }).focus(); // the keys scroll it
    await wantAccessible(page);
    await wantNothingWrong(page);
  },

  async 'why a cell of the result has its value'() {
    const { execution_id: id } = await quick(table, true);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    const grid = page.getByRole('grid');
    await grid.locator('[data-row="2"] [data-column="2"]').click(); // behind the label of the row
    await page.getByRole('button', { name: 'Why this cell?' }).click();
    await page.getByText('Why t.iloc[2, 1] is').waitFor();
    const origin = page.getByRole('list', { name: 'Origin of the cell' });
    await origin.getByText(/^mean of \d+ rows in the group/).waitFor();
    await origin.getByText(/of 5,000 rows/).first().waitFor();
    await settled(page);
    await wantAccessible(page);
    await shoot(page, 'why-cell');
    // In another order, a cell is still that of its row in the table.
    await grid.locator('[data-heading="2"]').click();
    await settled(page);
    const cell = grid.locator('[data-row="0"] [data-column="2"]');
    const least = Number((await cell.innerText()).replaceAll(',', ''));
    await cell.click();
    await page.getByRole('button', { name: 'Why this cell?' }).click();
    const title = page.getByText(/^Why t\.iloc\[\d, 1\] is/);
    await page.waitForFunction((least) => [...document.querySelectorAll('*')].some((e) => {
      const found = /^Why t\.iloc\[\d, 1\] is ([\d.]+)/.exec(e.textContent);
      return found && Math.abs(Number(found[1]) - least) < 0.01;
    }), least);
    await title.waitFor();
    await wantNothingWrong(page);
  },

  // The answer below a table is scrolled to.
  async 'the answer is in sight once it is asked for'() {
    const { execution_id: id } = await quick(table, true);
    for (const viewport of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const page = await open(adminKey, { viewport });
      await page.goto(`${address}/ui/executions/${id}`);
      await page.getByRole('grid').waitFor();
      await page.getByRole('button', { name: 'Why this result?' }).click();
      await page.getByText('Why the result has this value').waitFor();
      await page.waitForFunction(() => document.querySelector('.why-panel').getBoundingClientRect().top < innerHeight / 2);
      await wantOneScrollArea(page);
      await wantNothingWrong(page);
    }
  },

  // A run that only prints is asked for what it printed.
  async 'why of a variable that was printed'() {
    const { execution_id: id } = await quick('total = 0\nfor n in range(3):\n    total += n / 7\nprint("total", round(total, 2))', true);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'Why is total this?' }).click();
    await page.getByText(/^Why total is 0\.42/).waitFor();
    await wantNothingWrong(page);
  },

  async 'why of a run that was not recorded runs it again'() {
    const { execution_id: id } = await quick(average, false);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByText(/^runs the code again, about [\d.]+ m?s$/).waitFor();
    await page.getByRole('button', { name: 'Why this result?', exact: true }).click();
    await evident(page).filter({ hasText: cause }).waitFor();
    await page.getByRole('link', { name: /^Step through: [\d,]+ steps$/ }).waitFor();
    const replay = new URL(page.url()).searchParams.get('recording');
    const { replay: compared } = await call('GET', `/executions/${replay}`);
    assert.deepStrictEqual([compared.of, compared.grade], [id, 'identical']);
    // The link, and the question asked again, run nothing.
    await settled(page);
    const replays = async () => (await call('GET', `/executions?kind=replay&replay_of=${id}`)).executions.length;
    const made = await replays();
    await page.reload();
    await evident(page).filter({ hasText: cause }).waitFor();
    await settled(page);
    await page.goto(`${address}/ui/executions/${id}`);
    const steps = page.getByRole('link', { name: /^Step through: [\d,]+ steps$/ });
    await steps.waitFor();
    assert.doesNotMatch(await page.locator('main').innerText(), /runs (the code )?again/);
    await page.getByRole('button', { name: /^Why this result/ }).click();
    await evident(page).filter({ hasText: cause }).waitFor();
    await settled(page);
    assert.strictEqual(new URL(page.url()).searchParams.get('recording'), replay);
    assert.strictEqual(await replays(), made);
    await steps.click(); // those of the same recording
    await page.locator('.cm-current').waitFor();
    assert.strictEqual(new URL(page.url()).pathname, `/ui/executions/${replay}/steps`);
    assert.strictEqual(await replays(), made);
    // The list hides what only looked at the work, and says so.
    await page.goto(`${address}/ui/executions`);
    const hidden = page.locator('.left-out');
    await hidden.waitFor();
    assert.match(await hidden.innerText(), /^\d+ replays? (or look|and looks) hidden Show$/);
    assert.strictEqual(await page.locator(`a[href="/ui/executions/${replay}"]`).count(), 0);
    await hidden.getByRole('button', { name: 'Show' }).click();
    await page.locator(`a[href="/ui/executions/${replay}"]`).waitFor();
    await wantNothingWrong(page);
  },

  async 'why of a failure asks for what its line names'() {
    const { execution_id: id } = await quick(failing, true);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}`);
    await page.getByRole('button', { name: 'Why is total 0?' }).click();
    await page.getByText('Why total is 0').waitFor();
    await page.locator('.chain li', { hasText: 'total = sum(rows.values())' }).waitFor();
    await settled(page);
    await wantAccessible(page);
    await page.getByRole('link', { name: /^Time travel/ }).click();
    await page.locator('.cm-current', { hasText: 'return rows[name] / total' }).waitFor(); // it opens at the failure
    await page.getByRole('button', { name: 'failure' }).waitFor();
    await wantNothingWrong(page);
  },

  // The values are behind the lines that set them, and a click on a name says why.
  async 'the steps show values behind the code, and why of a name in it'() {
    const { execution_id: id } = await quick(average, true);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}/steps`);
    await page.locator('.cm-line', { hasText: 'average = total / len(rows)' }).locator('.cm-value', { hasText: /^average = 1\.\d+$/ }).waitFor();
    assert.strictEqual(await page.locator('.cm-line', { hasText: 'total = 0.0' }).locator('.cm-value').count(), 0, 'another line set it later');
    await page.locator('.cm-line', { hasText: 'average = total' }).locator('.cm-name', { hasText: 'average' }).click();
    await evident(page).filter({ hasText: cause }).waitFor();
    const [variables, why] = [await page.locator('.variables').first().boundingBox(), await page.locator('.why-panel').boundingBox()];
    assert(why.x < variables.x + variables.width && why.y < 640, JSON.stringify({ variables, why }));
    // The marks lead to what happened.
    await page.getByRole('button', { name: '1 query' }).click();
    await page.locator('.cm-current', { hasText: 'rows = db_query' }).waitFor();
    await page.getByRole('button', { name: '1 print' }).click();
    await page.locator('.cm-current', { hasText: 'print(' }).waitFor();
    // A name that has no value here is shown where its line ran last.
    await page.locator('.cm-line', { hasText: 'def seconds' }).locator('.cm-value').waitFor({ state: 'detached' });
    await page.locator('.cm-line', { hasText: 'or 0) / 1000' }).locator('.cm-name', { hasText: 'row' }).first().click();
    await page.getByText(/^Why row/).waitFor();
    // The keys work after a click on the number of a line.
    await page.keyboard.press('End');
    await page.locator('.cm-lineNumbers .cm-gutterElement', { hasText: /^7$/ }).click();
    await page.getByText('400 runs').waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.locator('.cm-current', { hasText: /^average$/ }).waitFor();
    await settled(page);
    await wantAccessible(page);
    await shoot(page, 'steps-why');
    await wantNothingWrong(page);
  },

  async 'on a phone the variables come before the history, and the marks fold'() {
    const { execution_id: id } = await quick(average, true);
    const page = await open(adminKey, { viewport: { width: 390, height: 844 } });
    await page.goto(`${address}/ui/executions/${id}/steps?name=average`);
    await page.getByText('History of average').first().waitFor();
    const top = async (locator) => (await locator.first().boundingBox()).y;
    assert(await top(page.locator('.variables')) < await top(page.getByText('History of average')));
    const slider = await page.locator('.scrubber').boundingBox();
    assert(slider.height < 120, `the slider is ${slider.height} pixels high`);
    assert.strictEqual(await page.getByLabel('Runs of line').isVisible(), false);
    await page.getByRole('button', { name: 'Marks' }).click();
    await page.getByRole('button', { name: '1 query' }).click();
    await page.locator('.cm-current', { hasText: 'rows = db_query' }).waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= 390, `got a page of ${width} pixels, want at most 390`);
    await wantAccessible(page);
    await shoot(page, 'phone-steps-why');
    await wantNothingWrong(page);
  },
};
