// Packs the VS Code extension, unpacks it, and drives its debug adapter with VS Code's own test client:
// node check.js BINARY DATA_DIR EXTENSION_FOLDER. It prints "ok" at the end, or fails with an error.
const assert = require('node:assert');
const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const os = require('node:os');
const path = require('node:path');

const [binary, dataDir, source] = process.argv.slice(2);
const installed = createRequire(process.env.GLASSHOUSE_CLIENT_VSCODE_EXTENSION + '/');
const { newClient, report } = require('../../../../../clients/vscode/test/client.js');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'vsix'));

async function pack() {
  const file = path.join(work, 'glasshouse.vsix');
  const copy = path.join(work, 'source'); // vsce looks for the repository of the folder
  fs.cpSync(source, copy, { recursive: true });
  execFileSync('node', [installed.resolve('@vscode/vsce/vsce'), 'package', '--out', file, '--skip-license',
    '--no-dependencies', '--allow-missing-repository', '--no-rewrite-relative-links'], { cwd: copy, stdio: 'pipe' });
  execFileSync('python3', ['-m', 'zipfile', '-e', file, work]);
  const extension = path.join(work, 'extension');
  const manifest = JSON.parse(fs.readFileSync(path.join(extension, 'package.json')));
  const names = manifest.files.map((name) => (name === 'README.md' ? 'readme.md' : name));
  for (const name of names) assert(fs.existsSync(path.join(extension, name)), `${name} is not in the package`);
  assert.strictEqual(manifest.contributes.debuggers[0].type, 'glasshouse');
  return { extension, manifest };
}

async function debug({ extension, manifest }) {
  const settings = { executable: binary, dataDir };
  const { adapterCommand } = require(path.join(extension, 'adapter.js'));
  const { command, args } = adapterCommand({ get: (name) => settings[name] });
  const adapter = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const client = newClient(process.env.GLASSHOUSE_CLIENT_VSCODE_EXTENSION, 60_000);
  client.connect(adapter.stdout, adapter.stdin);

  const program = path.join(work, 'orders.py');
  fs.writeFileSync(program, "total = 0\nfor n in [3, 4]:\n    total += n\nprint('total is', total)\n");
  const configuration = { ...manifest.contributes.debuggers[0].initialConfigurations[0], program };
  let printed = '';
  client.on('output', (event) => { if (event.body.category === 'stdout') printed += event.body.output; });
  await client.hitBreakpoint(configuration, { path: program, line: 3 });
  const frame = (await client.stackTraceRequest({ threadId: 1 })).body.stackFrames[0];
  assert.strictEqual(frame.source.path, program);
  const stopped = (reason, line, act) => Promise.all([act(), client.assertStoppedLocation(reason, { path: program, line })]);
  await stopped('step', 2, () => client.nextRequest({ threadId: 1 }));
  await stopped('breakpoint', 3, () => client.stepBackRequest({ threadId: 1 }));
  await stopped('step', 2, () => client.nextRequest({ threadId: 1 })); // where the program is live
  await client.setBreakpointsRequest({ source: { path: program }, breakpoints: [] });
  await Promise.all([client.continueRequest({ threadId: 1 }), client.waitForEvent('terminated')]);
  assert.strictEqual(printed, 'total is 7\n');
  await client.disconnectRequest({});
  const code = await new Promise((resolve) => adapter.exitCode === null ? adapter.on('exit', resolve) : resolve(adapter.exitCode));
  assert.strictEqual(code, 0);
}

report(pack().then(debug).then(() => fs.rmSync(work, { recursive: true })));
