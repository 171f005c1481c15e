// The commands: one function each.
import os from 'node:os';
import * as vscode from 'vscode';
import { likelyFolder, localFolders, pickFolder, severalFolders } from './folders';
import type { ChosenMode } from './mode';
import { report } from './report';
import type { Runner, Wider } from './runner';
import { canWiden, denied, going, type Run, type Runs } from './runs';
import type { Questions } from './questions';
import type { Server } from './server/server';
import { label, message, visible } from './text';
import type { Panel, Picked } from './ui/panel';
import type { QuestionPage } from './ui/question';
import type { Terminals } from './ui/terminal';
import type { Unwaited } from './unwaited';
import { ending, modes, step } from './words';

/** All that a command may need. */
export interface Parts {
  context: vscode.ExtensionContext;
  log: vscode.LogOutputChannel;
  server: Server;
  runs: Runs;
  questions: Questions;
  runner: Runner;
  page: QuestionPage;
  panel: Panel;
  terminals: Terminals;
  mode: ChosenMode;
  unwaited: Unwaited;
}

type Command = (parts: Parts, picked?: Picked) => PromiseLike<void> | void;

/** The commands by their names in package.json, without the prefix "confine.". */
export const commands: Record<string, Command> = {
  run: async (parts) => {
    const command = await vscode.window.showInputBox({ title: 'Run a command in the sandbox', prompt: circumstances(parts), placeHolder: 'for example: npm test', ignoreFocusOut: true });
    if (command?.trim()) await start(parts, command);
  },
  runSelection: async (parts) => {
    const editor = vscode.window.activeTextEditor;
    const text = editor?.selections.map((s) => (s.isEmpty ? editor.document.lineAt(s.active.line).text : editor.document.getText(s))).join('\n');
    if (text?.trim()) await start(parts, text);
    else await tell('There is no text to run: select some in an editor.');
  },
  runAgain: async (parts, picked) => {
    if (picked?.run) await start(parts, picked.run.command, picked.run.cwd);
  },
  escalate: async (parts, picked) => {
    const run = picked?.run ?? parts.runs.lastWidenable;
    if (run && canWiden(run)) await askForMore(parts, run);
    else await tell('No run was refused something that could be asked for.');
  },
  kill: async (parts, picked) => {
    const run = picked?.run ?? (await pickRun(parts.runs.all.filter(going), 'End which run?'));
    if (run) await parts.runner.kill(run);
  },
  showOutput: (parts, picked) => {
    if (picked?.run) parts.terminals.show(picked.run, true);
  },
  copyCommand: async (_, picked) => {
    if (picked?.run) await vscode.env.clipboard.writeText(picked.run.command);
  },
  showQuestion: async (parts, picked) => {
    const id = picked?.question?.id ?? parts.questions.shown?.id;
    if (id === undefined) return tell('No question waits.');
    parts.questions.show(id);
    parts.page.reveal();
  },
  refuseQuestion: (parts, picked) => {
    if (picked?.question) parts.questions.refuse(picked.question.id);
  },
  approvals: async (parts) => {
    const { approvals } = await parts.server.request('confine/approvals/list', {});
    if (approvals.length === 0) return tell('Nothing is allowed or refused in advance: no answer of yours still counts, and there are no rules.');
    const items = approvals.map((a) => ({ label: `${decisions[a.decision]} ${label(a.command, 60)}`, description: a.revocable ? '' : label(a.origin ?? ''), detail: label(a.text, 200), approval: a }));
    const picked = await vscode.window.showQuickPick(items, { title: 'What holds for later commands', placeHolder: 'Pick an answer of yours to end it; rules are changed where they stand' });
    if (picked?.approval.revocable) await parts.server.request('confine/approvals/revoke', { id: picked.approval.id });
  },
  status: async (parts) => {
    if (parts.questions.shown) return commands['showQuestion']!(parts);
    if (parts.server.state === 'missing' || parts.server.state === 'failed') return tellProblem(parts);
    await menu(parts);
  },
  mode: (parts) => menu(parts),
  doctor: async () => {
    const document = await vscode.workspace.openTextDocument(doctorUri);
    await vscode.window.showTextDocument(document, { preview: true });
  },
  copyDiagnostics: async (parts) => {
    await vscode.env.clipboard.writeText(describe(parts));
    await tell('The diagnostics are in the clipboard. They name files and folders of yours: read them before you share them.');
  },
  openPanel: () => vscode.commands.executeCommand('workbench.view.extension.confine'),
  openLog: ({ log }) => log.show(),
  openSettings: () => vscode.commands.executeCommand('workbench.action.openSettings', '@ext:confine-dev.confine'),
  restart: async (parts) => {
    if (await mayRestart(parts)) await parts.server.restart();
  },
};

/** restartForSettings lets new settings count, or says that they do not yet. */
export async function restartForSettings(parts: Parts): Promise<void> {
  if (await mayRestart(parts, 'The settings of confine changed and count after a restart.')) await parts.server.restart();
  else await tell('The settings of confine that you changed do not count yet. They do after "Confine: Restart the Server".');
}

async function mayRestart({ runs }: Parts, why = ''): Promise<boolean> {
  const busy = runs.all.filter(going).length;
  if (busy === 0) return true;
  const go = 'Restart';
  const text = `${why} Restarting ends what runs now: ${busy === 1 ? 'one command' : `${busy} commands`}.`.trim();
  return (await vscode.window.showWarningMessage(text, { modal: true }, go)) === go;
}

async function tell(text: string): Promise<void> {
  await vscode.window.showInformationMessage(text);
}

const decisions = { allow: '$(pass)', ask: '$(question)', deny: '$(circle-slash)' };

/** The document that the doctor shows. */
export const doctorUri = vscode.Uri.parse('confine:/doctor.txt');

/** describe is what the doctor shows and the diagnostics hold. */
export function describe({ context, server }: Pick<Parts, 'context' | 'server'>): string {
  const extension = [
    `Extension: ${(context.extension.packageJSON as { version: string }).version}`,
    `${vscode.env.appName} ${vscode.version}${vscode.env.remoteName === undefined ? '' : ` (remote: ${vscode.env.remoteName})`}, ${os.platform()} ${os.release()} ${os.arch()}`,
  ].join('\n');
  const { found } = server;
  return report({ extension, program: found ? `${found.path} (${found.source}, ${found.version})` : 'none', state: server.state, problem: server.problem }, server.capabilities);
}

// circumstances say where and how a command would run.
function circumstances({ mode }: Parts): string {
  const folder = severalFolders() ? likelyFolder() : localFolders()[0];
  return [...(folder === undefined ? [] : [`In ${visible(folder)}.`]), ...(mode.inForce ? [`Mode ${mode.inForce}: ${modes[mode.inForce]}.`] : [])].join(' ');
}

// start runs a command of the person's in a terminal of its own, for as long as it takes.
async function start(parts: Parts, command: string, folder?: string): Promise<void> {
  const { server, runner, terminals, mode, unwaited } = parts;
  if (server.state !== 'running') return tellProblem(parts);
  const cwd = folder ?? (severalFolders() ? (likelyFolder() ?? (await pickFolder())) : undefined);
  if (severalFolders() && cwd === undefined) return;
  const interactive = server.capabilities?.pty ?? false;
  terminals.begin(command, (size) => {
    const wanted = mode.wanted;
    const { run, done } = runner.begin({ command, origin: 'person', cwd, interactive }, { background: true, ...(interactive ? { pty: size } : {}), ...(wanted ? { mode: wanted } : {}) });
    unwaited('running a command', done);
    return run;
  });
}

/** offerMore tells the person that the sandbox refused something to a command of theirs. */
export async function offerMore(parts: Parts, run: Run): Promise<void> {
  if (!denied(run)) return;
  const more = 'Ask for More…';
  const show = 'Show What Was Refused';
  const picked = await vscode.window.showWarningMessage('The sandbox refused something that a command of yours wanted.', ...(canWiden(run) ? [more] : []), show);
  if (picked === more) await askForMore(parts, run);
  if (picked === show) await parts.panel.reveal(run);
}

async function askForMore(parts: Parts, run: Run): Promise<void> {
  const hint = run.result!.escalation!;
  const items: (vscode.QuickPickItem & { wider?: Wider })[] = [];
  if (hint.additional) items.push({ label: '$(key) Only what was refused', description: label(step(hint.additional), 200), detail: 'The command stays in the sandbox', wider: { additional: hint.additional } });
  for (const mode of hint.targets) items.push({ label: `$(unlock) ${mode}`, description: modes[mode], wider: { mode } });
  const picked = await vscode.window.showQuickPick(items, { title: `Run again, with more: ${label(run.command, 80)}`, placeHolder: 'You are asked once more, with the whole command, before it runs' });
  if (!picked?.wider) return;
  parts.unwaited('running a command again', parts.runner.escalate(run, picked.wider, 'The person at the editor wants it.').done);
}

async function pickRun(runs: Run[], title: string): Promise<Run | undefined> {
  if (runs.length === 0) await tell('Nothing runs.');
  if (runs.length < 2) return runs[0];
  return (await vscode.window.showQuickPick(runs.map((run) => ({ label: label(run.command), description: ending(run), run })), { title }))?.run;
}

async function menu(parts: Parts): Promise<void> {
  const { server, mode } = parts;
  const inForce = mode.inForce;
  const items: (vscode.QuickPickItem & { go?: () => unknown })[] = [
    { label: 'Mode of commands in this window', kind: vscode.QuickPickItemKind.Separator },
    ...mode.choices.map((m) => ({ label: `${m === inForce ? '$(circle-filled)' : '$(circle-outline)'} ${m}`, description: modes[m], go: () => mode.choose(m) })),
    { label: '$(settings-gear) Change what is configured…', description: label(origin(server)), go: () => commands['openSettings']!(parts) },
    { label: 'Confine', kind: vscode.QuickPickItemKind.Separator },
    { label: '$(play) Run a Command…', go: () => commands['run']!(parts) },
    { label: '$(law) Answers and Rules…', go: () => commands['approvals']!(parts) },
    { label: '$(list-tree) Open the Panel', go: () => commands['openPanel']!(parts) },
    { label: '$(pulse) Doctor', description: 'what this machine can enforce', go: () => commands['doctor']!(parts) },
    { label: '$(output) Open the Log', go: () => commands['openLog']!(parts) },
    { label: '$(debug-restart) Restart the Server', go: () => commands['restart']!(parts) },
  ];
  const picked = await vscode.window.showQuickPick(items, { title: 'Confine', placeHolder: 'A narrower mode needs no question; a wider one is asked for command by command' });
  await picked?.go?.();
}

function origin({ capabilities }: Server): string {
  const setting = capabilities?.settings.find((s) => s.key === 'sandbox_mode');
  return setting ? `${capabilities!.mode}, set by: ${setting.origin}` : '';
}

/** tellProblem says why there is no server, and what to do. */
export async function tellProblem(parts: Parts): Promise<void> {
  const { state, problem } = parts.server;
  const log = 'Open the Log';
  const settings = 'Open Settings';
  const again = 'Try Again';
  const restart = 'Restart';
  if (state === 'missing') {
    const picked = await vscode.window.showErrorMessage(`There is no confine to start, so commands are refused. ${message(problem)} Install it on PATH, or name it in the setting confine.serverPath.`, settings, again, log);
    if (picked === settings) await vscode.commands.executeCommand('workbench.action.openSettings', 'confine.serverPath');
    if (picked === again) await parts.server.restart();
    if (picked === log) parts.log.show();
    return;
  }
  const what = state === 'failed' ? `The server of confine does not run, so commands are refused. ${message(problem)}` : 'The server of confine is not running yet.';
  const picked = await vscode.window.showErrorMessage(what, restart, log);
  if (picked === restart) await parts.server.restart();
  if (picked === log) parts.log.show();
}
