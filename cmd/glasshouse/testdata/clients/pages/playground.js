// What the checks of the playground share.
const { address, adminKey, open, settled } = require('./browser.js');

const content = (page) => page.locator('main .cm-content').first();
const codeOf = (page) => content(page).evaluate((element) => [...element.querySelectorAll('.cm-line')].map((line) => line.innerText.replace(/\n$/, '')).join('\n'));
const sandboxOf = (page) => new URL(page.url()).searchParams.get('sandbox');
const newest = (page) => page.locator('.run').first();

async function openPlayground(query = '', options = {}) {
  const page = await open(adminKey, options);
  await page.goto(`${address}/ui/play${query}`);
  await content(page).waitFor();
  await settled(page);
  return page;
}

async function openDebugger() {
  const page = await open(adminKey);
  await page.goto(`${address}/ui/debug`);
  await page.locator('.cm-content').waitFor();
  await settled(page);
  return page;
}

// write replaces the code, without what the editor adds to typed text.
async function write(page, code) {
  await content(page).click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Delete'); // Chromium gives text that replaces a selection inline styles, and reports them
  await page.keyboard.insertText(code);
}

async function runCode(page, code) {
  const before = await page.locator('.run').count();
  await write(page, code);
  await page.keyboard.press('ControlOrMeta+Enter');
  await page.waitForFunction((count) => document.querySelectorAll('.run').length > count, before);
  return newest(page);
}

const ended = (shown, status = 'completed') => shown.locator('> header').getByText(status, { exact: true }).waitFor();

module.exports = { content, codeOf, sandboxOf, newest, openPlayground, openDebugger, write, runCode, ended };
