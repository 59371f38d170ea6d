// Opens the pages in Chromium and uses them as people do: node check.js ADDRESS ADMIN_KEY CHROMIUM [SCREENSHOT_FOLDER].
// It prints one line of JSON for each check: {"name", "error", "note"}. error is missing if the check passed; note is
// what the check measured.
const assert = require('node:assert');
const { address, adminKey, call, close, closePages, launch, run } = require('./browser.js');

const failing = `def share(rows, name):
    total = sum(rows.values())
    return rows[name] / total

values = {"a": 0, "b": 0}
share(values, "a")
`;
// owned is what hostile outputs try to set in the page.
const hostile = `attack = "parent.owned=1;top.owned=1;window.owned=1;document.title='owned';alert(1)"
class HTML:
    def _repr_html_(self):
        return f'<p id="shown">shown</p><script>{attack}</script><img src=x onerror="{attack}"><svg onload="{attack}"></svg>' \\
            f'<iframe srcdoc="<script>{attack}</script>"></iframe><a id="leave" target="_top" href="/docs">leave</a>' \\
            '<meta http-equiv="refresh" content="0;url=/docs">'
class SVG:
    def _repr_svg_(self):
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" onload="{attack}"><script>{attack}</script>' \\
            '<circle cx="25" cy="25" r="20"/></svg>'
class Table:
    def _repr_mimebundle_(self, **_):
        return {"application/vnd.dataresource+json": {"schema": {"fields": [None, 1, {"name": None}]}, "data": [[1], {}]}}
display(HTML()); display(SVG()); display(Table())
import pathlib
folder = pathlib.Path("/session/artifacts")
folder.mkdir(exist_ok=True)
(folder / "<img src=x onerror=alert(1)>.txt").write_text("x")
print(f"<script>{attack}</script><img src=x onerror=\\"{attack}\\">")
debug(f"<img src=x onerror=\\"{attack}\\">")
await db_query('SELECT title AS "<img src=x onerror=alert(1)>" FROM documents LIMIT 3')
`;

async function seed() {
  const { sandbox_id: sandbox } = await call('POST', '/sandbox/create', {});
  const { sandbox_id: capturing } = await call('POST', '/sandbox/create', { write_policy: 'capture' });
  const ids = {
    sandbox,
    plain: (await run(sandbox, 'print("hello")\n{"answer": 42}')).execution_id,
    failed: (await run(sandbox, failing)).execution_id,
    refused: (await run(sandbox, 'await db_query("DELETE FROM documents")')).execution_id,
    masked: (await run(sandbox, 'await db_query("SELECT row_to_json(u) FROM users u")')).execution_id,
    hostile: (await run(sandbox, hostile)).execution_id,
    many: (await run(sandbox, 'for n in range(70):\n    await db_query("SELECT :n AS n", {"n": n})')).execution_id,
    recorded: '',
    erased: (await run(sandbox, '"to be erased"')).execution_id,
  };
  await run(capturing, 'await db_query("DELETE FROM raw_data WHERE id = :id", {"id": 9})');
  const response = await fetch(`${address}/sandbox/${sandbox}/debug`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${adminKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: 'total = 0\nfor n in range(3):\n    total += n\ntotal' }),
  });
  const steps = await response.text();
  assert(response.ok, steps);
  const { executions } = await call('GET', '/executions?kind=debug');
  ids.recorded = executions[0].execution_id;
  return ids;
}

// subjects are the files with checks, in two halves that take about the same time.
const halves = [
  ['session', 'every_page', 'home', 'executions', 'figures', 'statements', 'sandboxes', 'keys', 'debug', 'chat'],
  ['execution', 'grid', 'stages', 'docs', 'steps', 'why', 'compare', 'play_editor', 'play_runs', 'play_sessions'],
];
const subjects = halves.flat();

// GLASSHOUSE_PAGES_SUITE selects a file, GLASSHOUSE_PAGES_HALF one of the halves, 1 or 2, and GLASSHOUSE_PAGES_CHECK a part of a check's name. Files that are not in subjects
// need a service of their own: "million" a history with a million executions, "sign_in" an identity provider, and
// "databases" the databases sales and down.
async function main() {
  await launch();
  const one = process.env.GLASSHOUSE_PAGES_SUITE;
  const half = halves[process.env.GLASSHOUSE_PAGES_HALF - 1] ?? subjects;
  const checks = Object.assign({}, ...(one ? [one] : half).map((subject) => require(`./${subject}.js`)));
  const ids = !one || subjects.includes(one) ? await seed() : {};
  for (const [name, check] of Object.entries(checks)) {
    if (process.env.GLASSHOUSE_PAGES_CHECK && !name.includes(process.env.GLASSHOUSE_PAGES_CHECK)) continue;
    let error, note;
    try {
      note = await check(ids);
    } catch (thrown) {
      error = String(thrown.stack ?? thrown).slice(0, 8000);
    }
    await closePages(error && name);
    console.log(JSON.stringify({ name, error, note }));
  }
  await close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
