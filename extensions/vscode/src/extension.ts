// Puts the parts together. The server decides, explains and formats; what is
// here shows, asks and obeys.
import * as vscode from 'vscode';
import { commands, describe, doctorUri, offerMore, type Parts, restartForSettings, tellProblem } from './commands';
import { modelFolder } from './folders';
import { ChosenMode } from './mode';
import type { Picked } from './ui/panel';
import { Panel } from './ui/panel';
import { Questions } from './questions';
import { Runner } from './runner';
import { going, type Run, Runs } from './runs';
import type { Handlers } from './server/client';
import { Server, type State } from './server/server';
import { ownSettings } from './settings';
import { QuestionPage } from './ui/question';
import { Status } from './ui/status';
import { Terminals } from './ui/terminal';
import { registerTool } from './ui/tool';
import { type Unwaited, unwaited as told } from './unwaited';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const parts = build(context);
  server = parts.server;
  for (const [name, command] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(`confine.${name}`, async (picked?: Picked) => {
      try {
        await command(parts, known(parts, picked));
      } catch (error) {
        parts.log.error(`${name}: ${String(error)}`);
        await tellFailed(parts);
      }
    }));
  }
  context.subscriptions.push(registerTool(parts.server, parts.runner, { cwd: modelFolder, mode: () => parts.mode.wanted }));
  parts.unwaited('starting the server', parts.server.restart());
}

// known is what a command is about, if it is still there. Anybody can call a command, with anything.
function known({ runs, questions }: Parts, picked: Picked | undefined): Picked {
  const run = runs.get(picked?.run?.id ?? '');
  const question = questions.waiting.find((q) => q.id === picked?.question?.id);
  return { ...(run ? { run } : {}), ...(question ? { question } : {}) };
}

/** VS Code waits for what runs to be ended. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}

function build(context: vscode.ExtensionContext): Parts {
  const log = vscode.window.createOutputChannel('Confine', { log: true });
  const unwaited = told(log);
  const offered = new WeakSet<Run>();
  const nothing = (): void => undefined;
  const setContext = (name: string, value: unknown) => unwaited('setting what menus show', vscode.commands.executeCommand('setContext', `confine.${name}`, value));
  const update = { questions: nothing, runs: nothing, server: nothing }; // set below, when there is something to update

  const questions = new Questions(() => update.questions());
  const runs = new Runs(() => update.runs());
  const started: Server = new Server(context.extensionPath, log, unwaited, handlers(questions, runs, unwaited));
  const runner = new Runner(started, runs, questions, (run) => run.origin === 'person' && terminals.show(run, true));
  const page = new QuestionPage(context.extensionUri, questions, unwaited, { words: (q) => runner.smaller(q), choose: (q) => runner.askForSmaller(q) });
  const terminals: Terminals = new Terminals(runner, unwaited);
  const mode: ChosenMode = new ChosenMode(() => started.capabilities, () => update.server());
  const panel = new Panel(started, runs, questions);
  const status = new Status(started, questions, () => mode.inForce);
  const parts: Parts = { context, log, server: started, runs, questions, runner, page, panel, terminals, mode, unwaited };
  const doctor = new vscode.EventEmitter<vscode.Uri>();

  update.questions = () => {
    page.update();
    panel.updateQuestions();
    status.update();
    setContext('waiting', questions.waiting.length > 0);
  };
  update.runs = () => {
    panel.updateRuns();
    setContext('going', runs.all.some(going));
    for (const run of runs.all) {
      if (going(run) || offered.has(run)) continue;
      offered.add(run);
      if (run.origin === 'person') unwaited('offering more', offerMore(parts, run));
    }
  };
  let state: State | undefined;
  update.server = () => {
    panel.updateSandbox();
    status.update();
    doctor.fire(doctorUri);
    if (state === started.state) return;
    state = started.state;
    setContext('state', state);
    if (state !== 'running') {
      questions.clear();
      runs.lost();
    }
    if (state === 'missing' || state === 'failed') unwaited('telling what is wrong', tellProblem(parts));
  };

  context.subscriptions.push(
    log, started, page, terminals, panel, status, doctor, started.onDidChange(update.server),
    vscode.workspace.registerTextDocumentContentProvider(doctorUri.scheme, { onDidChange: doctor.event, provideTextDocumentContent: () => describe(parts) }),
    onOwnSettings(started, () => unwaited('restarting for new settings', restartForSettings(parts))),
  );
  return parts;
}

// handlers are what the server may ask and tell.
function handlers(questions: Questions, runs: Runs, unwaited: Unwaited): Handlers {
  return {
    'confine/requestApproval': (question, token) => {
      token.onCancellationRequested(() => questions.withdraw(question));
      return questions.ask(question);
    },
    'confine/approvalWithdrawn': (p) => {
      if (p.reason === 'expired') unwaited('telling', vscode.window.showWarningMessage('Nobody answered a question of confine in time, so the command was not allowed.'));
      questions.withdraw(p);
    },
    'confine/output': (output) => runs.get(output.runId)?.output.add(output),
    'confine/exit': (result) => runs.ended(result.runId, result),
    'confine/capabilitiesChanged': () => undefined,
  };
}

// onOwnSettings calls changed when settings of the person's changed to others than the server has.
function onOwnSettings(server: Server, changed: () => void): vscode.Disposable {
  let last = ownSettings();
  return vscode.workspace.onDidChangeConfiguration(() => {
    const before = last;
    last = ownSettings();
    if (last !== before && last !== server.settings) changed();
  });
}

async function tellFailed(parts: Parts): Promise<void> {
  const log = 'Open the Log';
  if ((await vscode.window.showErrorMessage('confine could not do that. The log says why.', log)) === log) parts.log.show();
}
