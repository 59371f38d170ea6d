// Checks of /ui/chat, for check.js. The model is an endpoint that replies as chatScripts in pages_clients_test.go says.
const assert = require('node:assert');
const { address, adminKey, call, open, schemes, settled, shoot, wantAccessible, wantNothingWrong } = require('./browser.js');

const host = process.env.GLASSHOUSE_MODEL_HOST;
const release = () => fetch(`http://${host}/release`, { method: 'POST' });

async function ask(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
  await page.locator('.question', { hasText: text }).last().waitFor();
}
const ended = (page) => page.getByRole('button', { name: 'Send' }).waitFor();

async function start(options = {}) {
  const page = await open(adminKey, options);
  await page.goto(`${address}/ui/chat`);
  await page.getByLabel('Message', { exact: true }).waitFor();
  return page;
}

module.exports = {
  async 'chat: text appears while the model writes, and a reload goes on'() {
    const page = await start();
    await page.getByText(`go to ${host} (model scripted)`).waitFor();
    await page.getByLabel('Message', { exact: true }).fill('two');
    await page.keyboard.press('Shift+Enter');
    assert.strictEqual(await page.getByLabel('Message', { exact: true }).inputValue(), 'two\n');
    await ask(page, 'stream');
    await page.getByText('The first part.').waitFor();
    await page.waitForURL(/\/ui\/chat\/./);
    assert.strictEqual(await page.getByText('The last part.').count(), 0, 'the model has not written the end yet');
    await page.reload();
    await page.getByText('The first part.').waitFor();
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    await release();
    await page.getByText('The first part. The last part.').waitFor();
    await ended(page);
    await page.locator('.conversations a[aria-current]', { hasText: 'stream' }).waitFor();
    await wantNothingWrong(page);
  },

  async 'chat: a run with a figure, and rows'() {
    for (const colorScheme of schemes) {
      const page = await start({ colorScheme });
      await ask(page, 'figure');
      await page.getByText('The end of the figure.').waitFor();
      await ended(page);
      const run = page.getByRole('region', { name: 'Python' });
      await run.getByText('drawn by code', { exact: true }).waitFor();
      const picture = run.locator('.picture img');
      await picture.waitFor();
      await picture.evaluate((image) => image.decode());
      await run.getByRole('link', { name: 'squares.csv' }).waitFor();
      await page.locator('.prose td', { hasText: '4' }).waitFor();
      await shoot(page, `${colorScheme}-chat-figure`);
      await ask(page, 'rows');
      await page.getByText('Those are the rows.').waitFor();
      await page.getByRole('columnheader', { name: '<img src=x onerror=alert(1)>' }).waitFor();
      await ended(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-chat-rows`);
      await page.goto(`${address}/ui/chat`);
      await settled(page);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-chat-new`);
      await page.goBack();
      await run.getByRole('link', { name: 'Record of this run' }).click();
      await page.waitForURL(/\/ui\/executions\//);
      await page.getByText('drawn by code').first().waitFor();
      await wantNothingWrong(page);
    }
  },

  async 'chat: a reload opens the conversation at its end, and it stays there'() {
    for (const viewport of [{ width: 1440, height: 700 }, { width: 375, height: 740 }]) {
      const page = await start({ viewport });
      for (let n = 0; n < 2; n++) {
        await ask(page, 'figure');
        await page.getByText('The end of the figure.').nth(n).waitFor();
        await ended(page);
      }
      await ask(page, 'rows');
      await page.getByText('Those are the rows.').waitFor();
      await ended(page);
      const toEnd = () => page.locator('.messages').evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
      // The outputs arrive one after the other, after the page has scrolled.
      const held = [];
      await page.route(/\/executions\/[^/]+\?wait/, (route) => { held.push(route); });
      await page.reload();
      await page.getByText('Those are the rows.').waitFor();
      const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      while (held.length < 2) await frames();
      for (const [n, route] of held.entries()) {
        await frames();
        await route.continue();
        await page.locator('.picture img').nth(n).waitFor();
        await page.locator('.picture img').nth(n).evaluate((image) => image.decode());
      }
      await settled(page);
      await frames();
      assert.strictEqual(await toEnd(), 0);
      // What takes room below the messages hides none of their end.
      await page.getByLabel('Message', { exact: true }).evaluate((field) => { field.style.height = '200px'; });
      await frames();
      assert.strictEqual(await toEnd(), 0);
      // Who has scrolled up stays there.
      await page.locator('.messages').hover();
      await page.mouse.wheel(0, -400);
      await page.waitForFunction(() => {
        const box = document.querySelector('.messages');
        return box.scrollHeight - box.scrollTop - box.clientHeight > 200;
      });
      const before = await page.locator('.messages').evaluate((box) => box.scrollTop);
      await page.getByLabel('Message', { exact: true }).evaluate((field) => { field.style.height = '100px'; });
      await frames();
      assert.strictEqual(await page.locator('.messages').evaluate((box) => box.scrollTop), before);
      await wantNothingWrong(page);
    }
  },

  async 'chat: several calls at once, and Markdown'() {
    const page = await start();
    await ask(page, 'parallel');
    await page.getByText('All are done.').waitFor();
    await ended(page);
    await page.getByRole('region', { name: 'Python, call 1' }).getByText('one', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Python, call 2' }).getByText('two', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'SQL, call 3' }).getByRole('gridcell', { name: '7' }).waitFor();
    await page.locator('.prose blockquote', { hasText: 'Two lines of a quote.' }).waitFor();
    await page.locator('.prose td.number', { hasText: '980' }).waitFor();
    await wantAccessible(page);
    await shoot(page, 'chat-parallel');
    await wantNothingWrong(page);
  },

  async 'chat: truncated output says so'() {
    const page = await start();
    await ask(page, 'verbose');
    await page.getByText('Truncated: the code prints more.').waitFor();
    await page.getByText('It was long.').waitFor();
    await ended(page);
    await page.getByRole('region', { name: 'Python' }).getByText(/^Truncated: .* of stdout is missing/).waitFor();
    await wantNothingWrong(page);
  },

  async 'chat: stop ends a run'() {
    const page = await start();
    await ask(page, 'loop');
    await page.getByText('the loop has begun', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You stopped this answer.').waitFor();
    await ended(page);
    await page.waitForFunction(() => document.activeElement.matches('textarea')); // the button is gone
    await page.getByText(/^Stopped after [\d.]+ m?s\.$/).waitFor();
    await page.getByRole('link', { name: 'Record of this run' }).click();
    await page.locator('.summary').getByText('cancelled').waitFor();
    await wantNothingWrong(page);
  },

  async 'chat: an error of the endpoint says what to do'() {
    const page = await start();
    await ask(page, 'overloaded');
    const note = page.getByRole('alert').filter({ hasText: 'after 17 s' });
    await note.waitFor();
    assert.match(await note.textContent(), /<img src=x onerror=alert\(1\)> too many/);
    await ended(page);
    await ask(page, 'once more');
    await page.getByText('You said: once more').waitFor();
    await ended(page);
    await wantAccessible(page);
    await shoot(page, 'chat-error');
    await wantNothingWrong(page);
  },

  async 'chat: hostile text runs nothing and requests nothing'() {
    const page = await start();
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await ask(page, 'hostile');
    await page.getByText('The end of the attack.').waitFor();
    await ended(page);
    await settled(page);
    const found = await page.evaluate(() => ({
      owned: window.owned, made: document.querySelectorAll('.messages :is(img, script, svg, iframe), .prose a').length,
    }));
    assert.deepStrictEqual(found, { owned: undefined, made: 0 });
    assert.deepStrictEqual(requests.filter((url) => /leak|javascript|:9\//.test(url)), []);
    await page.getByText('[link](javascript:window.owned=1)').waitFor();
    await page.locator('.prose').getByText('invoice_U+202Efdp.exe').waitFor();
    const run = page.getByRole('region', { name: 'Python' });
    await run.getByRole('group', { name: 'stdout' }).getByText('printed U+2066backwards').waitFor();
    const directions = await page.evaluate(() => document.querySelector('main').innerText.match(/[\u202a-\u202e\u2066-\u2069]/g));
    assert.strictEqual(directions, null);
    await shoot(page, 'chat-hostile');
    await wantNothingWrong(page);
  },

  async 'chat: a tool named __proto__ changes no object, and many backticks take no time'() {
    const page = await start();
    const names = () => page.evaluate(() => Object.getOwnPropertyNames(Object.prototype).join());
    const before = await names();
    await ask(page, 'odd');
    await page.locator('.answer strong', { hasText: 'end' }).waitFor({ timeout: 15_000 });
    await ended(page);
    await page.getByRole('heading', { name: '__proto__' }).waitFor();
    await page.getByRole('heading', { name: 'constructor' }).waitFor();
    assert.deepStrictEqual(await page.locator('.answer code').allTextContents(), ['code']);
    assert.strictEqual(await names(), before);
    await wantNothingWrong(page);
  },

  async 'chat: a file is uploaded and read, on a phone'() {
    const page = await start({ viewport: { width: 375, height: 740 } });
    const file = { name: 'numbers.txt', mimeType: 'text/plain', buffer: Buffer.from('4711') };
    await page.getByLabel('Files to upload').setInputFiles(file);
    await page.getByText('numbers.txt (4 B)').waitFor();
    await ask(page, 'files');
    await page.getByText('I have read it.').waitFor();
    await page.getByRole('region', { name: 'Python' }).getByText('4711', { exact: true }).waitFor();
    await ended(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= 375, `the page is ${width} pixels wide, want at most 375`);
    await wantAccessible(page);
    await shoot(page, 'phone-chat');
    await page.goto(`${address}/ui/chat`);
    await settled(page);
    await shoot(page, 'phone-chat-new');
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.locator('.conversations a', { hasText: 'files' }).first().click();
    await page.getByText('I have read it.').waitFor();
    await wantNothingWrong(page);
  },

  async 'chat: an upload that is too large, and one with a revoked key'() {
    const page = await start();
    const file = { name: 'numbers.txt', mimeType: 'text/plain', buffer: Buffer.from('4711') };
    const sent = [];
    const begun = [];
    page.on('request', (request) => request.method() === 'POST' && request.url() === `${address}/chat/conversations` && begun.push(request));
    await page.route(/\/sandbox\/[^/]+\/files$/, (route) => route.fulfill({ json: { files: [], bytes: 0, upload_max_bytes: 3 } }));
    await page.route(/\/sandbox\/[^/]+\/files\/./, (route) => {
      sent.push(route.request().method());
      return route.fulfill({ status: 401, json: { title: 'Unauthorized', detail: 'the key of the test is revoked' } });
    });
    await page.getByLabel('Files to upload').setInputFiles(file);
    await page.getByText(/numbers.txt has 4 B; the uploads of a session may have 3 B/).waitFor();
    assert.deepStrictEqual(sent, []);
    assert.strictEqual(begun.length, 1);
    await page.unroute(/\/sandbox\/[^/]+\/files$/);
    await page.getByLabel('Files to upload').setInputFiles(file);
    await page.getByLabel('API key').waitFor();
    await page.getByText('the key of the test is revoked').waitFor();
    assert.deepStrictEqual(sent, ['PUT']);
    assert.strictEqual(begun.length, 1, 'the next attempt uses the conversation of the first');
    await wantNothingWrong(page);
  },

  async 'chat: without a model the page says what to set'() {
    for (const colorScheme of schemes) {
      const page = await open(adminKey, { colorScheme });
      const unset = { configured: false, max_input_chars: 32000, max_rounds: 20, max_context_chars: 120000 };
      await page.route('**/chat', (route) => (route.request().url() === `${address}/chat`
        ? route.fulfill({ json: unset }) : route.continue()));
      await page.goto(`${address}/ui/chat`);
      await page.getByText('--model-name qwen3:8b').waitFor();
      await settled(page);
      assert.strictEqual(await page.getByLabel('Message', { exact: true }).count(), 0);
      assert.strictEqual(await page.getByRole('link', { name: 'New chat' }).count(), 0);
      await wantAccessible(page);
      await shoot(page, `${colorScheme}-chat-unset`);
      await wantNothingWrong(page);
    }
  },

  async 'chat: a message has a limit, and an admin erases a conversation'() {
    const page = await start();
    await page.getByLabel('Message', { exact: true }).fill('x'.repeat(32_001));
    await page.getByText('32,001 of 32,000 characters').waitFor();
    assert(await page.getByRole('button', { name: 'Send' }).isDisabled());
    await ask(page, 'to be erased');
    await page.getByText('You said: to be erased').waitFor();
    await ended(page);
    const id = page.url().split('/').at(-1);
    await page.getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('button', { name: 'Erase this conversation for ever' }).click();
    await page.waitForURL(`${address}/ui/chat`);
    const { entries } = await call('GET', `/audit?object=conversation/${id}`);
    assert.deepStrictEqual(entries.map((entry) => entry.action), ['erased']);
    await page.goto(`${address}/ui/chat/${id}`);
    await page.getByRole('alert').waitFor();
    await wantNothingWrong(page);
  },
};
