// Offers confine to language models as a tool.
import * as vscode from 'vscode';
import { modelText, type Runner } from '../runner';
import type { Server } from '../server/server';
import { cut, visible } from '../text';
import { call, toolName } from '../tool';

/** What a run that a model wants needs to know of the window. */
export interface Surroundings {
  cwd: () => string | undefined; // for a call that names none
  mode: () => import('../protocol').Mode | undefined; // that the person chose
}

export function registerTool(server: Server, runner: Runner, surroundings: Surroundings): vscode.Disposable {
  return vscode.lm.registerTool<Record<string, unknown>>(toolName, {
    // No question here: what stays inside the sandbox needs none, and what does
    // not is asked by the server, which knows what a yes would open.
    prepareInvocation({ input }) {
      const command = typeof input['command'] === 'string' ? cut(visible(input['command']), 200) : '';
      const text = new vscode.MarkdownString('Running in the sandbox of confine');
      if (command) text.appendCodeblock(command, 'shellscript');
      return { invocationMessage: text };
    },
    async invoke({ input }, token) {
      const tool = server.capabilities?.tool;
      if (!tool) throw new Error('confine is not running, so the command did not run. The person can start it with "Confine: Restart the Server".');
      const { command, cwd, purpose, params } = call(tool, input);
      const mode = surroundings.mode();
      const { done } = runner.begin({ command, purpose, origin: 'model', cwd: cwd ?? surroundings.cwd() }, { ...params, ...(mode ? { mode } : {}) }, token);
      return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(modelText(await done))]);
    },
  });
}
