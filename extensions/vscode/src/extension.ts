import * as vscode from 'vscode';
import { Server } from './server/server';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Confine', { log: true });
  const status = vscode.window.createStatusBarItem('confine.status', vscode.StatusBarAlignment.Left, 10);
  const started = new Server(context.extensionPath, log, {
    'confine/requestApproval': () => Promise.resolve({ outcome: { outcome: 'cancelled' } }),
    'confine/approvalWithdrawn': () => undefined,
    'confine/output': (o) => log.info(JSON.stringify(o)),
    'confine/exit': (r) => log.info(r.modelText),
    'confine/capabilitiesChanged': () => undefined,
  });
  server = started;
  const show = () => {
    status.text = `$(shield) ${started.capabilities?.mode ?? started.state}`;
    status.show();
  };
  show();
  const run = async () => {
    const command = await vscode.window.showInputBox({ title: 'Run a command in the sandbox', ignoreFocusOut: true });
    if (command) await started.request('runCommand', { command });
  };
  context.subscriptions.push(log, status, started.onDidChange(show),
    vscode.commands.registerCommand('confine.run', run),
    vscode.commands.registerCommand('confine.openPanel', () => vscode.commands.executeCommand('workbench.view.extension.confine')),
    vscode.commands.registerCommand('confine.openLog', () => log.show()),
    vscode.commands.registerCommand('confine.restart', () => started.restart()));
  void started.restart();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
