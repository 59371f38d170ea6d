// Chromium, and what the checks of the pages do in it. Arguments: ADDRESS ADMIN_KEY CHROMIUM [SCREENSHOT_FOLDER].
const assert = require('node:assert');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

const [address, adminKey, executablePath, screenshots] = process.argv.slice(2);
const installed = createRequire(process.env.GLASSHOUSE_CLIENT_PAGES + '/');
const { chromium } = installed('playwright-core');
const axe = fs.readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8');

// The network flags keep Chromium from calling its maker's hosts.
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const schemes = ['light', 'dark'];

async function call(method, route, body, key = adminKey) {
  const response = await fetch(address + route, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${route}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const run = (sandbox, code) => call('POST', `/sandbox/${sandbox}/execute`, { code });

let browser;

async function launch() {
  browser = await chromium.launch({ executablePath, args: flags });
}

const close = () => browser.close();

// closePages ends what a check has opened. It keeps a picture of the last page of a check that failed.
async function closePages(failed) {
  const pages = browser.contexts().flatMap((context) => context.pages());
  if (failed && pages.length) await shoot(pages.at(-1), `failed-${failed.replace(/\W+/g, '-')}`);
  for (const context of browser.contexts()) await context.close();
}

// cookies has the cookie of the pages for each key, which one sign-in gives.
const cookies = new Map();

async function cookieOf(key) {
  const response = await fetch(`${address}/login`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }),
  });
  const [, name, value] = /^([^=]+)=([^;]*)/.exec(response.headers.get('set-cookie') ?? '') ?? [];
  assert(name, `POST /login: ${response.status} ${await response.text()}`);
  return { name, value, url: address, httpOnly: true, sameSite: 'Strict' };
}

// open returns a page that reports what must not happen in it: errors, dialogs, violations of the policy.
// With a key it shows the executions; signsIn is for a check that signs out, which ends the sign-in that checks share.
async function open(key, { signsIn = false, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.on('pageerror', (error) => page.wrong.push(String(error)));
  page.on('dialog', (dialog) => { page.wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    // A sandboxed frame reports what it does not do; a missing key is an answer of 401, and a table that is gone one of 410.
    if (message.type() === 'error' && !/Blocked script execution in|is sandboxed|status of 4(0[1349]|10)/.test(message.text())) {
      page.wrong.push(message.text());
    }
  });
  page.setDefaultTimeout(60_000); // Plotly takes long on a busy machine
  if (key) {
    if (!signsIn && !cookies.has(key)) cookies.set(key, await cookieOf(key));
    await context.addCookies([signsIn ? await cookieOf(key) : cookies.get(key)]);
    await page.goto(address + '/ui/executions');
    await page.locator('.shell').waitFor();
  }
  return page;
}

async function signIn(page, key) {
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await page.locator('.shell').waitFor();
}

const heading = (page, name) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

// settled waits until nothing is loading.
const settled = (page) => page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.spinner') &&
  !document.querySelector('.executions[aria-busy=true]'));

async function wantAccessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`);
  assert.deepStrictEqual(found, [], `${page.url()}: axe-core found violations`);
}

async function wantNothingWrong(page) {
  assert.deepStrictEqual(page.wrong, [], page.url());
}

// median and p95 return two of the sorted numbers: the middle one, and the one that 95 % do not exceed.
const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const median = (numbers) => sorted(numbers)[numbers.length >> 1];
const p95 = (numbers) => sorted(numbers)[Math.ceil(numbers.length * 0.95) - 1];

async function shoot(page, name) {
  if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}

module.exports = {
  address, adminKey, call, close, closePages, heading, launch, median, open, p95, run, schemes, settled, shoot, signIn,
  wantAccessible, wantNothingWrong,
};
