// Checks of the list over the million executions that TestPagesWithAMillionExecutions puts into history. Execution n, from
// 0, is n seconds older than the newest and has the code "number = n".
const assert = require('node:assert');
const { address, adminKey, median, open, signIn, wantNothingWrong } = require('./browser.js');

const limit = 30_000; // milliseconds; a bound for a busy machine, no goal
const samples = 5;

// timed returns the milliseconds that an action takes, and fails after the limit.
async function timed(action) {
  const begun = performance.now();
  await action();
  const took = Math.round(performance.now() - begun);
  assert(took < limit, `it took ${took} ms, want less than ${limit}`);
  return took;
}
// drawn returns the milliseconds from an event of an action until the browser has painted a row with a code, or another text: to
// the end of the frame that begins with it on the page. It looks at every frame.
async function drawn(page, event, text, action) {
  await page.evaluate(([name, wanted]) => {
    const isThere = () => [...document.querySelectorAll('.sizer .row .code code, .empty strong')].some((each) => each.textContent === wanted);
    const { port1, port2 } = new MessageChannel();
    window.drawn = new Promise((resolve) => {
      document.addEventListener(name, ({ timeStamp }) => {
        port1.onmessage = () => resolve(performance.now() - timeStamp); // tasks come after the frame
        const look = () => (isThere() ? port2.postMessage('') : requestAnimationFrame(look));
        requestAnimationFrame(look);
      }, { once: true, capture: true });
    });
  }, [event, text]);
  await action();
  const time = Math.round(await page.evaluate(() => window.drawn));
  assert(time < limit, `it took ${time} ms, want less than ${limit}`);
  return time;
}
const row = (page, n) => page.locator('.sizer .row', { has: page.getByText(`number = ${n}`, { exact: true }) });
// shown returns a column of the rows that are drawn, in the order of the screen. It reads all in one call: evaluateAll
// has two, and rows that are taken away between them have no place on the screen.
const shown = (page, column) => page.evaluate((name) => [...document.querySelectorAll('.sizer .row')]
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  .map((each) => each.querySelector(`.${name}`).textContent.trim()), column);
// stuck throws an error that says what the page shows instead.
async function stuck(page, thrown) {
  const box = await page.locator('.executions').evaluate((list) => {
    const { scrollTop, scrollHeight } = list.querySelector('.scroll');
    return `at ${scrollTop} of ${scrollHeight} pixels: ${list.innerText.slice(0, 600)}`;
  });
  throw new Error(`${thrown.message}\n${box}`);
}
const codes = async (page) => (await shown(page, 'code')).map((code) => code.replace(/KeyError$/, '')); // the error follows
async function filtered(query) {
  const page = await open();
  await page.goto(`${address}/ui/executions${query}`);
  await signIn(page, adminKey);
  await page.locator('.sizer .row .code').first().waitFor();
  return page;
}

module.exports = {
  // A browser that has loaded nothing before, of a person who is signed in.
  async 'the newest of a million'() {
    const signedIn = await filtered('');
    const storageState = await signedIn.context().storageState();
    const times = [];
    const sizes = [];
    for (let n = 0; n < samples; n++) {
      const page = await open(undefined, { storageState });
      const network = await page.context().newCDPSession(page);
      await network.send('Network.enable');
      let bytes = 0;
      network.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
      await page.goto(`${address}/ui/executions`, { waitUntil: 'commit' });
      const shownAt = await page.waitForFunction(() => [...document.querySelectorAll('.sizer .row .code code')]
        .some((each) => each.textContent === 'number = 0') && performance.now(), undefined, { polling: 'raf' });
      times.push(Math.round(await shownAt.jsonValue())); // since the beginning of the navigation
      sizes.push(Math.round(bytes / 1024));
      assert.deepStrictEqual((await codes(page)).slice(0, 20), Array.from({ length: 20 }, (_, index) =>
        `number = ${index}${index === 9 ? ' # zebra' : ''}`));
      await wantNothingWrong(page);
      await page.context().close();
    }
    return { 'first rows, ms': median(times), 'loaded until then, KB': median(sizes), samples: times };
  },

  async 'far places of a million'() {
    const page = await filtered('');
    await row(page, 0).waitFor();
    const goTo = (n) => page.evaluate(async (wanted) => {
      const box = document.querySelector('.executions .scroll');
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      while (box.scrollHeight < (wanted + 100) * 34) {
        box.scrollTop = box.scrollHeight;
        await frame();
      }
      box.scrollTop = wanted * 34;
    }, n);
    const times = {};
    for (const n of [20_000, 30_000, 3_000, 15_000, 0]) { // back to pages that were forgotten
      times[`row ${n}, ms`] = await timed(async () => {
        await goTo(n);
        await row(page, n + 1).waitFor().catch((thrown) => stuck(page, thrown));
      });
      let numbers; // not a number: the row is on a page of the list that is not there yet
      await timed(async () => {
        const end = performance.now() + limit;
        do {
          numbers = (await codes(page)).map((code) => Number(/^number = (\d+)/.exec(code)?.[1]));
        } while (numbers.some(Number.isNaN) && performance.now() < end);
      }).catch((thrown) => stuck(page, thrown));
      assert.deepStrictEqual(numbers, numbers.map((_, index) => numbers[0] + index), 'rows follow each other without gaps');
      assert(numbers.length < 100, `got ${numbers.length} rows in the document`);
    }
    await wantNothingWrong(page);
    return times;
  },

  // Each filter is chosen several times, from the list of all. The server's part is from the request to its answer.
  async 'filters over a million'() {
    const page = await filtered('');
    const note = {};
    const none = 'No execution matches these filters.';
    // Each status has a letter of its own, which chooses it by the keyboard.
    const status = page.getByLabel('Status');
    const toStatus = () => status.focus();
    const byStatus = (name) => () => page.keyboard.press(name[0]);
    const user = page.getByLabel('User', { exact: true });
    const text = page.getByLabel('Text in title, code, error or output');
    const all = async () => {
      await page.goto(`${address}/ui/executions`);
      await row(page, 0).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
    };
    async function measure(name, { event, wanted, prepare = async () => {}, action, check = async () => {} }) {
      const whole = [];
      const server = [];
      for (let n = 0; n < samples; n++) {
        await all();
        await prepare();
        whole.push(await drawn(page, event, wanted, action));
        server.push(await page.evaluate(() => {
          const { requestStart, responseEnd } = performance.getEntriesByType('resource').findLast(({ name: url }) => url.includes('/executions?'));
          return responseEnd - requestStart;
        }));
        await check();
      }
      note[`${name}, ms`] = { whole: median(whole), server: Math.round(median(server)) };
    }

    await measure('rare status', { event: 'change', wanted: 'number = 50007', prepare: toStatus, action: byStatus('killed'), check: async () => {
      assert.deepStrictEqual(await codes(page), Array.from({ length: 20 }, (_, n) => `number = ${7 + 50_000 * n}`));
      assert.deepStrictEqual([...new Set(await shown(page, 'state'))], ['killed']);
    } });
    await measure('frequent status', { event: 'change', wanted: 'number = 143', prepare: toStatus, action: byStatus('failed') });
    // A text is taken after a pause in the typing, which is a part of the time, or at once with Enter.
    await measure('user', { event: 'input', wanted: 'number = 63', action: () => user.fill('user-13'), check: async () => {
      assert.deepStrictEqual((await codes(page)).slice(0, 10), Array.from({ length: 10 }, (_, n) => `number = ${13 + 50 * n}`));
      assert.deepStrictEqual([...new Set(await shown(page, 'user'))], ['user-13']);
    } });
    await measure('user with Enter', { event: 'keydown', wanted: 'number = 63', prepare: () => user.fill('user-13'), action: () => user.press('Enter') });
    await measure('user and status', { event: 'change', wanted: none, prepare: async () => { // all of this user failed
      await user.fill('user-13');
      await row(page, 63).waitFor();
      await status.focus();
    }, action: byStatus('completed') });
    await measure('rare text', { event: 'input', wanted: 'number = 750009 # zebra', action: () => text.fill('zebra'), check: async () => {
      assert.deepStrictEqual(await codes(page), [9, 250_009, 500_009, 750_009].map((n) => `number = ${n} # zebra`));
    } });
    await measure('rare text with Enter', { event: 'keydown', wanted: 'number = 750009 # zebra', prepare: () => text.fill('zebra'),
      action: () => text.press('Enter') });
    await measure('frequent text with Enter', { event: 'keydown', wanted: 'number = 143', prepare: () => text.fill('KeyError'),
      action: () => text.press('Enter'), check: async () => {
        assert.deepStrictEqual((await codes(page)).slice(0, 5), [3, 13, 23, 33, 43].map((n) => `number = ${n}`));
      } });
    await measure('text that is nowhere, with Enter', { event: 'keydown', wanted: none, prepare: () => text.fill('crocodile'),
      action: () => text.press('Enter') });

    // The texts that one types without a pause are one step back.
    await all();
    await text.fill('zebra');
    await text.press('Enter');
    await row(page, 0).waitFor({ state: 'detached' });
    await page.goBack();
    await row(page, 0).waitFor();
    assert.strictEqual(new URL(page.url()).search, '');
    await wantNothingWrong(page);
    return note;
  },
};
