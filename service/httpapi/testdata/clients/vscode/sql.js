// VS Code's own test client steps into a statement: node sql.js PORT TOKEN SANDBOX.
// It prints "ok" at the end, or fails with an error.
const assert = require('node:assert');
const { newClient, report } = require('../../../../../clients/vscode/test/client.js');

const code = `rows = db_query("""
WITH paid AS (SELECT customer_id FROM orders WHERE status = 'paid')
SELECT c.city, count(*) AS n
FROM customers c
JOIN paid p ON p.customer_id = c.id
GROUP BY c.city""")
n = len(rows)`;
const path = '/home/ada/cities.py';
const threadId = 1;

async function main(port, token, sandbox) {
  const client = newClient(process.env.GLASSHOUSE_CLIENT_VSCODE, 20_000);
  await client.start(port);
  const arrived = client.waitForEvent('initialized');
  await client.initializeRequest();
  await client.attachRequest({ token, sandbox, code, path, stopOnEntry: true });
  await arrived;
  const top = async (act) => {
    await Promise.all([act(), client.waitForEvent('stopped')]);
    return (await client.stackTraceRequest({ threadId })).body.stackFrames;
  };
  const stage = async (frame) => {
    const scopes = (await client.scopesRequest({ frameId: frame.id })).body.scopes;
    assert.deepStrictEqual(scopes.map((s) => s.name), ['Stage', 'Sample', 'Parameters', 'Findings']);
    const { variables } = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body;
    return Object.fromEntries(variables.map((v) => [v.name, v.value]));
  };
  await top(() => client.configurationDoneRequest());

  let frames = await top(() => client.stepInRequest({ threadId }));
  assert.deepStrictEqual(frames.map((f) => f.name), ['SQL: query 1', '<module>']);
  assert.strictEqual(frames[1].source.path, path);
  const { source } = frames[0];
  const text = (await client.sourceRequest({ source, sourceReference: source.sourceReference })).body.content;
  assert.match(text.split('\n')[frames[0].line - 1], /^FROM customers c/);
  const customers = await stage(frames[0]);
  assert.match(customers.rows, /^[1-9]/);
  assert.strictEqual(customers.state, 'counted');

  frames = await top(() => client.nextRequest({ threadId }));
  const paid = (await stage(frames[0])).rows;
  frames = await top(() => client.stepInRequest({ threadId }));
  assert.strictEqual(frames[0].name, 'SQL: query 1, paid');
  const orders = await stage(frames[0]);
  assert(Number(orders.rows) > Number(paid));
  frames = await top(() => client.stepOutRequest({ threadId }));
  const join = await stage(frames[0]);
  assert.match(join.text, /JOIN paid/);
  assert(Number(join.multiplied) > 1 && join.rows === paid);

  const breakpoints = [{ line: 6, condition: 'rows > 1' }];
  const set = (await client.setBreakpointsRequest({ source, breakpoints })).body.breakpoints;
  assert.strictEqual(set[0].verified, true);
  frames = await top(() => client.continueRequest({ threadId }));
  assert.strictEqual((await stage(frames[0])).kind, 'group');
  frames = await top(() => client.stepBackRequest({ threadId }));
  assert.match((await stage(frames[0])).text, /JOIN paid/);
  frames = await top(() => client.stepOutRequest({ threadId }));
  assert.deepStrictEqual(frames.map((f) => [f.name, f.line]), [['<module>', 7]]);
  await Promise.all([client.continueRequest({ threadId }), client.waitForEvent('terminated')]);
  await client.disconnectRequest({});
}

const [port, token, sandbox] = process.argv.slice(2);
report(main(Number(port), token, sandbox));
