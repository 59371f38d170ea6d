// What the tests with VS Code's own test client share.
const { createRequire } = require('node:module');

// newClient returns a test client from the packages that are installed in a folder.
exports.newClient = (folder, timeout) => {
  const { DebugClient } = createRequire(folder + '/')('@vscode/debugadapter-testsupport');
  const client = new DebugClient('node', 'none', 'glasshouse');
  client.defaultTimeout = timeout;
  return client;
};

// report prints "ok" when a test has ended, or its error, and ends the process.
exports.report = (test) => test.then(() => {
  console.log('ok');
  process.exit(0);
}, (error) => {
  console.error(error.stderr?.toString() ?? '', error.stdout?.toString() ?? '', error);
  process.exit(1);
});
