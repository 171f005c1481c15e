// The item in the status bar: the mode, what confines, and what waits.
import * as vscode from 'vscode';
import type { Mode } from '../protocol';
import type { Questions } from '../questions';
import type { Server } from '../server/server';
import { label } from '../text';
import { standing } from '../words';

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('confine.status', vscode.StatusBarAlignment.Left, 10);

  constructor(private readonly server: Server, private readonly questions: Questions, private readonly mode: () => Mode | undefined) {
    this.item.name = 'Confine';
    this.item.command = 'confine.status';
    this.update();
    this.item.show();
  }

  update(): void {
    const waiting = this.questions.waiting.length;
    const { text, tooltip, bad } = this.words();
    this.item.text = waiting > 0 ? `$(bell-dot) ${waiting} · ${text}` : text;
    this.item.tooltip = waiting > 0 ? `confine asks. ${tooltip}` : tooltip;
    const colour = bad ? 'statusBarItem.errorBackground' : waiting > 0 ? 'statusBarItem.warningBackground' : undefined;
    this.item.backgroundColor = colour === undefined ? undefined : new vscode.ThemeColor(colour);
    this.item.accessibilityInformation = { label: `Confine: ${waiting > 0 ? `${waiting} waiting. ` : ''}${tooltip}` };
  }

  dispose(): void {
    this.item.dispose();
  }

  private words(): { text: string; tooltip: string; bad?: boolean } {
    const { state, capabilities } = this.server;
    switch (state) {
      case 'stopped': return { text: '$(shield) confine: stopped', tooltip: 'The server is stopped.' };
      case 'starting': return { text: '$(loading~spin) confine', tooltip: 'The server starts.' };
      case 'waiting': return { text: '$(loading~spin) confine', tooltip: 'The server ended by itself and is started again.', bad: true };
      case 'missing': return { text: '$(error) confine: not found', tooltip: 'There is no confine program to start.', bad: true };
      case 'failed': return { text: '$(error) confine: failed', tooltip: 'The server does not run.', bad: true };
      case 'running': break;
    }
    if (!capabilities) return { text: '$(loading~spin) confine', tooltip: 'The server has not said yet what it enforces.' };
    if (capabilities.state === 'probing') return { text: '$(loading~spin) confine', tooltip: 'Trying what this machine can enforce.' };
    const tooltip = standing(capabilities);
    if (!capabilities.ok) return { text: '$(error) confine: refuses', tooltip, bad: true };
    const mode = this.mode() ?? capabilities.mode;
    const confined = mode === 'read-only' || mode === 'workspace-write';
    if (!confined || capabilities.provider === 'none') return { text: `$(unlock) ${mode}`, tooltip };
    return { text: `$(shield) ${mode} · ${label(capabilities.provider, 20)}`, tooltip: mode === capabilities.mode ? tooltip : `${tooltip} You narrowed it to ${mode}.` };
  }
}
