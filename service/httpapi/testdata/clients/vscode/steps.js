// VS Code's own test client drives a debug session: node steps.js PORT TOKEN SANDBOX.
// It prints "ok" at the end, or fails with an error.
const assert = require('node:assert');
const { newClient, report } = require('../../../../../clients/vscode/test/client.js');

const code = 'def double(n):\n    twice = n * 2\n    return twice\ntotal = 0\nfor i in range(3):\n    total += double(i)\ndone = total';
const path = '/home/ada/double.py';

async function main(port, token, sandbox) {
  const client = newClient(process.env.GLASSHOUSE_CLIENT_VSCODE, 20_000);
  await client.start(port);
  const arrived = client.waitForEvent('initialized');
  const capabilities = (await client.initializeRequest()).body;
  assert(capabilities.supportsStepBack && capabilities.supportsRestartFrame);
  await client.attachRequest({ token, sandbox, code, path });
  await arrived;
  const source = { path };
  const set = await client.setBreakpointsRequest({ source, breakpoints: [{ line: 3, condition: 'n == 1' }] });
  assert.strictEqual(set.body.breakpoints[0].verified, true);

  const stopped = async (reason, line, act) => {
    const [, stack] = await Promise.all([act(), client.assertStoppedLocation(reason, { path, line })]);
    return stack.body.stackFrames[0].id;
  };
  const threadId = 1;
  let frame = await stopped('breakpoint', 3, () => client.configurationDoneRequest());
  const scopes = (await client.scopesRequest({ frameId: frame })).body.scopes;
  const variables = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body.variables;
  assert.deepStrictEqual(variables.map((v) => [v.name, v.value]), [['n', '1'], ['twice', '2']]);
  const hover = (await client.evaluateRequest({ expression: 'twice', frameId: frame, context: 'hover' })).body.result;
  assert.match(hover, /^2\nline 2: twice = n \* 2/);
  await stopped('step', 2, () => client.stepBackRequest({ threadId }));
  frame = await stopped('breakpoint', 3, () => client.nextRequest({ threadId }));
  await client.setVariableRequest({ variablesReference: (await client.scopesRequest({ frameId: frame })).body.scopes[0].variablesReference, name: 'twice', value: '20' });
  await stopped('restart', 2, () => client.restartFrameRequest({ frameId: frame }));
  const targets = (await client.gotoTargetsRequest({ source, line: 6 })).body.targets;
  await stopped('goto', 6, () => client.gotoRequest({ threadId, targetId: targets[0].id }));
  await stopped('breakpoint', 3, () => client.continueRequest({ threadId }));
  await Promise.all([client.continueRequest({ threadId }), client.waitForEvent('terminated')]);
  assert.strictEqual((await client.evaluateRequest({ expression: 'total' })).body.result, '24');
  await client.disconnectRequest({});
}

const [port, token, sandbox] = process.argv.slice(2);
report(main(Number(port), token, sandbox));
