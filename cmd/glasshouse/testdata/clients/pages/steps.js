// The checks of time travel: /ui/executions/ID/steps.
const assert = require('node:assert');
const { address, adminKey, call, median, open, p95, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

// A loop of a million recorded steps takes about a second.
const long = (turns) => `total = 0
odd = 0
def add(a, b):
    return a + b
for n in range(${turns}):
    if n % 2:
        odd = odd + 1
    total = add(total, n)
total
`;
const stepsOf = (turns) => 5 + 4 * turns + Math.floor(turns / 2);

const tables = `import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
df = pd.DataFrame({"amt": np.arange(500) * 1.5, "<img src=x onerror=alert(1)>": ["<b>a</b>", None] * 250})
array = np.arange(6).reshape(3, 2)
wide = pd.DataFrame({f"column_{n}": range(3) for n in range(40)})
plt.plot([1, 2, 3])
plt.show()
done = True
`;

const figures = `import matplotlib.pyplot as plt
import pandas as pd
_ = plt.plot([1, 2, 3])
plt.show()
display(pd.DataFrame({"a": [1.5]}))
class Html:
    def _repr_html_(self): return "<b>bold</b><script>alert(1)</script>"
display(Html())
_ = plt.plot([3, 2, 1])
done = True
`;

const record = async (code, config = {}) => {
  const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', config);
  const execution = await call('POST', `/sandbox/${sandbox}/execute`, { code, record: true });
  assert.strictEqual(execution.status, 'completed', JSON.stringify(execution.error));
  return execution.execution_id;
};
const value = (page, name) => page.locator('.variables li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });
// scrub moves the slider as a pointer does. It returns, for each position, the milliseconds until the line of the step is in the
// page and laid out, until its values are, and until the end of the frame that has the values.
const scrub = (page, positions) => page.evaluate(async (wanted) => {
  const slider = document.querySelector('input[type=range]');
  const output = document.querySelector('.scrubber output');
  const state = document.querySelector('.state');
  const frame = () => new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve; // tasks come after the frame
    requestAnimationFrame(() => port2.postMessage(''));
  });
  // until resolves when a condition holds after a change of the page, with the time after the layout.
  const until = (holds) => new Promise((resolve) => {
    const look = () => {
      if (!holds()) return false;
      document.body.getBoundingClientRect();
      resolve(performance.now());
      return true;
    };
    if (look()) return;
    new MutationObserver((_, observer) => { if (look()) observer.disconnect(); })
      .observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  const times = [];
  for (const to of wanted) {
    const isThere = () => output.textContent.startsWith(`step ${Number(to).toLocaleString('en')} of`);
    const begun = performance.now();
    slider.value = to;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    const line = await until(isThere);
    const values = await until(() => isThere() && state.ariaBusy === 'false');
    await frame();
    times.push({ line: line - begun, values: values - begun, frame: performance.now() - begun });
  }
  return times;
}, positions);
// drag moves the mouse over the slider, from one part of its length to another, and returns the milliseconds between frames.
async function drag(page, from, to, moves) {
  const { x, y, width, height } = await page.getByRole('slider').boundingBox();
  const at = (part) => [x + width * part, y + height / 2];
  await page.mouse.move(...at(from));
  await page.mouse.down();
  const frames = page.evaluate(async () => {
    const times = [];
    let last = performance.now();
    window.dragging = true;
    while (window.dragging) {
      const now = await new Promise((resolve) => { requestAnimationFrame(resolve); });
      times.push(now - last);
      last = now;
    }
    return times.slice(1);
  });
  await page.mouse.move(...at(to), { steps: moves });
  await page.mouse.up();
  await page.evaluate(() => { window.dragging = false; });
  return frames;
}

module.exports = {
  async 'the steps of a recorded execution'(ids) {
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${ids.recorded}`);
    await page.getByRole('link', { name: '9 steps' }).click();
    // It opens at the end, with the value of the last line.
    await page.locator('.cm-current', { hasText: /^total/ }).waitFor();
    const result = page.locator('.variables li', { hasText: 'result of the run' });
    await result.locator('.value', { hasText: /^3$/ }).waitFor();
    await result.getByRole('button').click();
    await page.getByText('Why the result is 3').waitFor();
    await page.keyboard.press('Home');
    await page.locator('.cm-current', { hasText: 'total = 0' }).waitFor();
    const value = (name) => page.locator('.variables li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });
    for (const line of ['for n in range(3):', 'total += n', 'for n in range(3):', 'total += n', 'for n in range(3):']) {
      await page.keyboard.press('ArrowRight');
      await page.locator('.cm-current', { hasText: line }).waitFor();
    }
    await page.waitForURL(/step=6/);
    await value('total').getByText('changed').waitFor();
    assert.strictEqual(await value('total').locator('.value').textContent(), '1');
    await page.keyboard.press('ArrowLeft');
    await page.locator('.variables li .value', { hasText: /^0$/ }).waitFor();
    await page.waitForURL(/step=5/);
    await page.reload(); // the link is deep
    await page.locator('.cm-current', { hasText: 'total += n' }).waitFor();
    const condition = page.getByLabel('Step at which this holds');
    await condition.fill('totl == 3');
    await page.keyboard.press('Enter');
    await page.getByText('There is no variable totl. Did you mean total?').waitFor();
    await condition.fill('total == 3');
    await page.keyboard.press('Enter');
    await page.waitForURL(/step=8/);
    await condition.fill('total == 0'); // only before
    await page.keyboard.press('Enter');
    await page.getByText('It holds at no later step, but at step').waitFor();
    await page.getByRole('button', { name: 'Find previous' }).click();
    await page.waitForURL(/step=[2-5]\b/);
    await condition.fill('total == 3');
    await page.keyboard.press('Enter');
    await page.waitForURL(/step=8/);
    await value('total').getByRole('button').click();
    await page.getByText('History of total').waitFor();
    await page.getByText('Why total is 3').waitFor();
    await page.locator('.story li', { hasText: 'visible from step 8' }).getByRole('button', { name: 'step 7', exact: true }).waitFor();
    assert.doesNotMatch((await page.locator('.story, .chain').allTextContents()).join(' '), /condition|=\s*$/);
    await page.getByRole('button', { name: 'step 2', exact: true }).first().click();
    await page.waitForURL(/step=2/);
    await page.getByRole('slider').fill('9');
    await page.getByText('step 9 of 9').waitFor();
    // The reason of a value names what its line has read.
    await page.goto(`${address}/ui/executions/${ids.recorded}/steps?step=9&name=total`);
    const cause = page.locator('.chain li', { hasText: 'total += n' }).first();
    await cause.getByText('total = 3', { exact: true }).waitFor();
    await cause.getByText('total = 1', { exact: true }).waitFor();
    await cause.getByText('n = 2', { exact: true }).waitFor();
    await wantNothingWrong(page);
  },

  // Each step has a megabyte, so that a response has two or three of them.
  async 'the large steps of a deep recursion'() {
    const locals = Array.from({ length: 60 }, (_, n) => `    v${n} = "A" * 1000\n`).join('');
    const id = await record(`def f(n):\n${locals}    if n:\n        f(n - 1)\n    for k in range(0 if n else 4000):\n        pass\nf(60)\n`);
    const { total_steps: total } = await call('GET', `/executions/${id}/steps?limit=1`);
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}/steps?step=${Math.round(total / 2)}`);
    await value(page, 'k').waitFor();
    const k = Number(await value(page, 'k').locator('.value').textContent());
    await page.locator('h1').focus();
    for (let n = 1; n <= 6; n++) await page.keyboard.press('ArrowRight'); // a turn of the loop has two steps
    await value(page, 'k').locator('.value', { hasText: new RegExp(`^${k + 3}$`) }).waitFor();
    await wantNothingWrong(page);
  },

  async 'a million steps are scrubbed'() {
    const turns = 222_222;
    const total = stepsOf(turns);
    const id = await record(long(turns), { max_execution_time: 120 });
    const page = await open(adminKey);
    const opens = Date.now();
    await page.goto(`${address}/ui/executions/${id}/steps`, { waitUntil: 'commit' });
    await page.locator('.scrubber output', { hasText: `end, ${total.toLocaleString('en')} steps` }).waitFor();
    const opened = Date.now() - opens;
    await page.getByLabel('Runs of line').waitFor(); // the lines of all steps are loaded
    const note = { 'opened, ms': opened, 'all lines loaded, ms': Date.now() - opens };

    // The values at a turn of the loop are known: 4 steps of an even turn, 5 of an odd one, behind 3 lines.
    const turn = 100_000;
    const step = stepsOf(turn) - 1;
    await scrub(page, [step]);
    await page.locator('.cm-current', { hasText: 'for n in range' }).waitFor();
    assert.strictEqual(await value(page, 'odd').locator('.value').textContent(), String(turn / 2));
    assert.strictEqual(await value(page, 'total').locator('.value').textContent(), String(turn * (turn - 1) / 2));
    await page.waitForURL(new RegExp(`step=${step}$`));

    const jumps = await scrub(page, Array.from({ length: 50 }, (_, i) => 1 + (i * 7_919_777) % total));
    const moves = await scrub(page, Array.from({ length: 100 }, (_, i) => 300_000 + 500 * i));
    for (const [name, times] of Object.entries({ jumps, moves })) {
      for (const part of ['line', 'values', 'frame']) {
        const list = times.map((each) => each[part]);
        note[`${name}: ${part}, p50 and p95, ms`] = [median(list), p95(list)].map((n) => Math.round(n * 10) / 10);
      }
      // The bounds allow for a busy machine.
      const [line, values] = ['line', 'values'].map((part) => median(times.map((each) => each[part])));
      assert(line < 50 && values < 150, `${name}: ${JSON.stringify(note)}, want a line after 50 ms and values after 150`);
    }
    const frames = await drag(page, 0.1, 0.9, 200);
    note['drag: frames, p50, p95 and longest, ms'] = [frames.length, ...[median(frames), p95(frames), Math.max(...frames)].map((n) => Math.round(n * 10) / 10)];
    await page.locator('.state[aria-busy=false]').waitFor();

    await page.locator('.cm-lineNumbers .cm-gutterElement', { hasText: /^7$/ }).click();
    await page.waitForURL(/line=7/);
    await page.locator('.ticks .runs').waitFor({ state: 'attached' });
    await page.getByText('111,111 runs').waitFor();
    await page.getByRole('button', { name: 'First step' }).click();
    await page.getByRole('button', { name: 'Next run of the line' }).click();
    await page.getByText('run 1 of 111,111').waitFor();
    await page.locator('.cm-current', { hasText: 'odd = odd + 1' }).waitFor();
    await page.keyboard.press('n');
    await page.getByText('run 2 of 111,111').waitFor();
    await page.keyboard.press('p');
    await page.getByText('run 1 of 111,111').waitFor();
    await value(page, 'n').locator('.value', { hasText: /^1$/ }).waitFor();
    const shown = await page.locator('.scrubber output').textContent();
    await page.waitForURL(/step=10(&|$)/);
    await page.reload();
    await page.getByText('run 1 of 111,111').waitFor();
    assert.strictEqual(await page.locator('.scrubber output').textContent(), shown);
    await page.keyboard.press('h'); // the same line again takes the marks away
    await page.locator('.ticks').waitFor({ state: 'detached' });
    await shoot(page, 'steps-million');
    await wantNothingWrong(page);
    return note;
  },

  async 'a recording that was cut says so'() {
    const id = await record(long(300_000), { max_execution_time: 120 });
    const page = await open(adminKey);
    await page.goto(`${address}/ui/executions/${id}/steps?line=9`);
    const notice = page.locator('.notice', { hasText: 'were not recorded: the budget of steps is used' });
    await notice.waitFor();
    await page.locator('.ticks .cut').waitFor({ state: 'attached' });
    // The steps on both sides of the gap are neighbours.
    await page.goto(`${address}/ui/executions/${id}/steps?step=1000000`);
    await notice.waitFor();
    await page.locator('.state[aria-busy=false]').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.waitForURL((url) => Number(url.searchParams.get('step')) > 1_300_000);
    await page.locator('.state[aria-busy=false]').waitFor();
    await page.goto(`${address}/ui/executions/${id}/steps?step=1200000`);
    await notice.getByRole('button', { name: 'step 1,000,000' }).click();
    await page.locator('.state[aria-busy=false]').waitFor();
    await wantAccessible(page);
    await shoot(page, 'steps-cut');
    await wantNothingWrong(page);
  },

  // The step that shows an output has a mark on the axis, and the output is on the page from that step on.
  async 'figures of a recording at their step'() {
    const id = await record(figures);
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(adminKey, { colorScheme });
      const shown = page.locator('details.outputs .panel');
      const number = (wanted) => page.waitForFunction((n) => document.querySelectorAll('details.outputs .panel').length === n, wanted);
      await page.goto(`${address}/ui/executions/${id}/steps?step=2`);
      await page.getByText('Outputs up to this step').waitFor();
      await number(0);
      await page.getByRole('button', { name: '4 outputs' }).waitFor();
      assert.strictEqual((await page.locator('.ticks .mark-output').getAttribute('d')).match(/M/g).length, 4);
      const next = page.locator('details.outputs > p').getByRole('button');
      await next.filter({ hasText: /^step 4$/ }).click();
      await number(1); // the figure of the step of plt.show()
      await shown.locator('.picture img').evaluate((image) => image.decode());
      await next.filter({ hasText: /^step 5$/ }).click();
      await number(2);
      assert.deepStrictEqual(await shown.locator('header button').allTextContents(), ['step 5', 'step 4'], 'the newest is first');
      await shown.first().locator('.type', { hasText: 'float64' }).waitFor();
      await next.click();
      await number(3);
      await shown.first().locator('iframe.html').waitFor(); // HTML stays in its frame
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-steps-figures`);
      await page.keyboard.press('End');
      await number(4); // the figure that was open at the end
      await page.keyboard.press('Home');
      await number(0);
      await wantNothingWrong(page);
    }
  },

  // The wanted step is loaded, and the step before it is not, when the loading of another step ends.
  async 'values at the edge of what is loaded'() {
    const id = await record(long(200));
    const page = await open(adminKey);
    let release = Promise.resolve();
    await page.route('**/views?*', async (route) => {
      await release;
      await route.continue().catch(() => {}); // the page may have left
    });
    await page.goto(`${address}/ui/executions/${id}/steps?step=500`); // loads 492 to 515
    await page.getByLabel('Runs of line').waitFor();
    await page.locator('.state[aria-busy=false]').waitFor();
    let answer;
    release = new Promise((resolve) => { answer = resolve; });
    const slide = (to) => page.getByRole('slider', { name: 'Step' }).fill(String(to));
    await Promise.all([page.waitForRequest('**/views?from=504*'), slide(512)]);
    await slide(492);
    answer();
    await page.getByText(/^step 492 of/).waitFor();
    await page.locator('.state[aria-busy=false]').waitFor();
    await wantNothingWrong(page);
  },

  async 'tables and figures of a recording'() {
    const id = await record(tables);
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(adminKey, { colorScheme });
      await page.goto(`${address}/ui/executions/${id}/steps?step=9`);
      await value(page, 'df').getByRole('button').click();
      const table = page.getByRole('grid', { name: 'Rows of df' });
      await table.getByText('float64').waitFor();
      await page.getByText('500 rows; the first 133 were recorded').waitFor();
      await table.getByText('<img src=x onerror=alert(1)>').waitFor(); // as text
      assert.strictEqual(await table.locator('[data-row="2"]').textContent(), '323.0<b>a</b>');
      await page.getByLabel('Go to row').fill('51');
      await page.keyboard.press('Enter');
      await table.locator('[data-row="50"]').getByText('75.0').waitFor();
      await page.getByLabel('Go to row').fill('134');
      await page.keyboard.press('Enter');
      await page.getByText('Row 134 is not kept: the first 133 rows of 500 are kept.').waitFor();
      // The names of the columns stay over the numbers of the rows.
      assert.strictEqual(await table.getByRole('columnheader').nth(1).evaluate((element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
      }), true);
      await page.locator('.outputs .picture img').first().evaluate((image) => image.decode());
      await page.reload();
      await table.getByText('250 null').waitFor();
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-steps-table`);
      await value(page, 'array').getByRole('button').click();
      await page.getByRole('group', { name: 'Contents of array' }).getByText('[2, 3]').waitFor();
      await value(page, 'wide').getByRole('button').click();
      await page.getByText('16 columns of 40').waitFor(); // without the index
      // A value that does not fit ends with an ellipsis.
      const cut = await value(page, 'wide').locator('.value').evaluate((e) => [e.scrollHeight > e.clientHeight, getComputedStyle(e).webkitLineClamp]);
      assert.deepStrictEqual(cut, [true, '4']);
      await wantNothingWrong(page);
    }
    const phone = await open(adminKey, { viewport: { width: 375, height: 740 } });
    await phone.goto(`${address}/ui/executions/${id}/steps?step=9&name=df&line=6`);
    await phone.getByText('500 rows; the first').waitFor();
    const width = await phone.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= 375, `got a page of ${width} pixels, want at most 375`);
    await shoot(phone, 'phone-steps-table');
    await wantNothingWrong(phone);
  },
};
