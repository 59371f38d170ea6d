// Starts `glasshouse dap` for debug sessions of the type "glasshouse".
const vscode = require('vscode');
const { adapterCommand } = require('./adapter.js');

// F5 without a launch.json runs the file in the editor.
const currentFile = {
  resolveDebugConfiguration(folder, config) {
    if (!config.type && !config.request && !config.name) {
      return { type: 'glasshouse', request: 'launch', name: 'Glasshouse: current file', program: '${file}' };
    }
    return config;
  },
};

const adapters = {
  createDebugAdapterDescriptor() {
    const { command, args } = adapterCommand(vscode.workspace.getConfiguration('glasshouse'));
    return new vscode.DebugAdapterExecutable(command, args);
  },
};

function activate(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('glasshouse', currentFile),
    vscode.debug.registerDebugAdapterDescriptorFactory('glasshouse', adapters),
  );
}

module.exports = { activate };
