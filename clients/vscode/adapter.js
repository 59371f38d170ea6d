// Returns the command of the debug adapter for the extension's settings. It speaks the Debug Adapter Protocol on stdin
// and stdout, and reads the key from GLASSHOUSE_KEY or the data folder, so no configuration contains it.
function adapterCommand(settings) {
  const args = ['dap'];
  for (const [flag, name] of [['--url', 'url'], ['--data-dir', 'dataDir']]) {
    const value = settings.get(name);
    if (value) args.push(flag, value);
  }
  return { command: settings.get('executable') || 'glasshouse', args };
}

module.exports = { adapterCommand };
