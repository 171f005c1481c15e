'use strict';
// Another extension in the same editor, as a test needs one: it connects to the
// socket that PROBE_SOCKET names and does what it is told, one JSON per line.
const vscode = require('vscode');
const net = require('node:net');

const confine = () => vscode.extensions.all.find((e) => e.packageJSON.name === 'confine');

const does = {
  execute: ({ command, args }) => vscode.commands.executeCommand(command, ...args),
  commands: () => vscode.commands.getCommands(true),
  tools: () => vscode.lm.tools.map(({ name, description, inputSchema, tags }) => ({ name, description, inputSchema, tags })),
  async invoke({ name, input, key }) {
    const source = new vscode.CancellationTokenSource();
    waiting.set(key, source);
    const result = await vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined }, source.token).then((r) => r, (error) => { throw error; });
    return result.content.map((part) => part.value);
  },
  cancel: ({ key }) => waiting.get(key).cancel(),
  extension: () => { const e = confine(); return e && { id: e.id, active: e.isActive, path: e.extensionPath, exports: e.exports === undefined ? null : Object.keys(e.exports ?? {}) }; },
  setting: ({ name }) => { const [section, ...rest] = name.split('.'); const c = vscode.workspace.getConfiguration(section); return { value: c.get(rest.join('.')), inspect: c.inspect(rest.join('.')) }; },
  set: ({ name, value, target }) => vscode.workspace.getConfiguration().update(name, value, vscode.ConfigurationTarget[target]),
  trusted: () => vscode.workspace.isTrusted,
  async open({ file }) { await vscode.window.showTextDocument(vscode.Uri.file(file)); },
  async select({ from, to }) {
    const at = ([line, column]) => new vscode.Position(line, column);
    vscode.window.activeTextEditor.selection = new vscode.Selection(at(from), at(to));
  },
  terminals: () => vscode.window.terminals.map((t) => t.name),
  tabs: () => vscode.window.tabGroups.all.flatMap((g) => g.tabs.map((t) => t.label)),
  text: async ({ uri }) => (await vscode.workspace.openTextDocument(vscode.Uri.parse(uri))).getText(),
  clipboard: () => vscode.env.clipboard.readText(),
};
const waiting = new Map();

exports.activate = (context) => {
  if (!process.env.PROBE_SOCKET) return;
  const socket = net.connect(process.env.PROBE_SOCKET);
  const say = (message) => socket.write(JSON.stringify(message) + '\n');
  say({ folder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '' });
  let text = '';
  socket.setEncoding('utf8').on('data', (data) => {
    const lines = (text + data).split('\n');
    text = lines.pop();
    for (const { id, what, params } of lines.map((line) => JSON.parse(line))) {
      Promise.resolve().then(() => does[what](params)).then(
        (result) => say({ id, result: result === undefined ? null : plain(result) }),
        (error) => say({ id, error: String(error?.message ?? error) }));
    }
  }).on('error', () => {});
  context.subscriptions.push({ dispose: () => socket.destroy() });
};

// plain gives what of a value can be told.
function plain(value) {
  try { return JSON.parse(JSON.stringify(value) ?? 'null'); } catch { return String(value); }
}
