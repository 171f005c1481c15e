// The panel: questions that wait, runs, and what the sandbox does, as trees,
// which keyboards and screen readers know.
import * as vscode from 'vscode';
import type { Facet, FacetReport, FacetState, Question } from '../protocol';
import type { Questions } from '../questions';
import { canWiden, denied, going, type Run, type Runs } from '../runs';
import type { Server } from '../server/server';
import { cut, label, visible } from '../text';
import { ending, facets, facetStates, refusal, standing, step } from '../words';

/** One row. What belongs to it is there when it is opened. */
interface Row {
  item: vscode.TreeItem;
  rows?: Row[];
  run?: Run;
  question?: Question;
}

/** What a command of the panel is about. */
export type Picked = Pick<Row, 'run' | 'question'>;

export class Panel implements vscode.Disposable {
  private readonly questionsTree = new Tree('confine.questions', () => this.questions.waiting.map(questionRow));
  private readonly runsTree = new Tree('confine.runs', () => this.runs.all.map((run) => runRow(run, this.questions.of(run.id) !== undefined)));
  private readonly sandboxTree = new Tree('confine.sandbox', () => sandboxRows(this.server));

  constructor(private readonly server: Server, private readonly runs: Runs, private readonly questions: Questions) {}

  updateQuestions(): void {
    const value = this.questions.waiting.length;
    this.questionsTree.view.badge = value > 0 ? { value, tooltip: value === 1 ? 'A question waits for you' : `${value} questions wait for you` } : undefined;
    this.questionsTree.update();
    this.runsTree.update();
  }

  updateRuns(): void {
    this.runsTree.update();
  }

  updateSandbox(): void {
    this.sandboxTree.update();
  }

  /** reveal opens the panel at a run, with what is known of it. */
  async reveal(run: Run): Promise<void> {
    await this.runsTree.view.reveal(runRow(run, false), { select: true, focus: true, expand: true });
  }

  dispose(): void {
    for (const tree of [this.questionsTree, this.runsTree, this.sandboxTree]) tree.dispose();
  }
}

class Tree implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Row>;

  constructor(id: string, private readonly rows: () => Row[]) {
    this.view = vscode.window.createTreeView(id, { treeDataProvider: this });
  }

  update(): void {
    this.changed.fire();
  }

  getTreeItem(row: Row): vscode.TreeItem {
    return row.item;
  }

  // Only rows at the top are ever revealed.
  getParent(): undefined {
    return undefined;
  }

  getChildren(row?: Row): Row[] {
    return row ? (row.rows ?? []) : this.rows();
  }

  dispose(): void {
    this.view.dispose();
    this.changed.dispose();
  }
}

// row makes a row. Its texts may be anybody's; VS Code interprets none of them.
function row(text: string, options: { icon?: string; colour?: string; description?: string; tooltip?: string; id?: string; rows?: Row[]; open?: boolean } = {}): Row {
  const { icon, colour, description, tooltip, id, rows, open } = options;
  const state = !rows?.length ? vscode.TreeItemCollapsibleState.None : open ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
  const item = new vscode.TreeItem(label(text), state);
  if (icon !== undefined) item.iconPath = new vscode.ThemeIcon(icon, colour === undefined ? undefined : new vscode.ThemeColor(colour));
  if (description !== undefined) item.description = label(description);
  item.tooltip = tooltip ?? visible(text);
  if (id !== undefined) item.id = id;
  item.accessibilityInformation = { label: [text, description].filter(Boolean).map((t) => visible(t!)).join(', ') };
  return { item, ...(rows ? { rows } : {}) };
}

// Longer labels would push out what stands beside them.
const labelLength = 26;

function questionRow(question: Question): Row {
  const made = row(cut(question.command, labelLength), { icon: 'bell-dot', colour: 'notificationsWarningIcon.foreground', description: question.wanted.mode ?? 'more', id: question.id, tooltip: question.title });
  made.item.contextValue = 'question';
  made.item.command = { command: 'confine.showQuestion', title: 'Show the Question', arguments: [{ question }] };
  return { ...made, question };
}

function runRow(run: Run, asks: boolean): Row {
  const rows: Row[] = [];
  if (run.purpose) rows.push(row(run.purpose, { icon: 'comment', tooltip: `Whoever asked says: ${visible(run.purpose)}` }));
  if (run.failure) for (const line of run.failure.why.split('\n')) rows.push(row(line, { icon: 'error' }));
  const { result } = run;
  if (result?.error) rows.push(row(result.error.message, { icon: 'error' }));
  if (result?.approval) rows.push(row(result.approval.reason, { icon: result.status === 'refused' ? 'circle-slash' : 'pass', description: result.approval.outcome }));
  for (const denial of result?.sandbox?.denials ?? []) {
    if (!denial.incidental) rows.push(row(refusal(denial), { icon: 'circle-slash', colour: 'list.warningForeground', description: denial.evidence === 'stderr' ? 'as its message says' : 'refused' }));
  }
  if (canWiden(run)) rows.push(widenRow(run));
  if (result?.outputMissing) rows.push(row(result.outputMissing, { icon: 'warning', description: 'part of the output did not come' }));
  for (const path of result?.sandbox?.planted ?? []) rows.push(row(path, { icon: 'warning', colour: 'list.warningForeground', description: 'made or changed: programs outside run or believe this' }));
  if (result?.sandbox) {
    const { mode, provider, facets: reported } = result.sandbox;
    const parts = facetRows(reported);
    rows.push(row(provider ? `${mode}, confined by ${provider}` : mode, { icon: provider ? 'shield' : 'unlock', rows: parts, description: result.sandbox.enforcement ?? '' }));
  }
  if (run.cwd !== undefined) rows.push(row(run.cwd, { icon: 'folder' }));
  const [icon, colour] = runIcon(run, asks);
  const made = row(cut(visible(run.command), labelLength), {
    icon, colour, id: run.id, rows, description: asks ? 'waits for your answer' : `${ending(run)}${run.origin === 'model' ? ' · model' : ''}`, tooltip: visible(run.command), open: denied(run),
  });
  made.item.contextValue = ['run', going(run) ? 'going' : 'ended', canWiden(run) ? 'widenable' : ''].filter(Boolean).join('.');
  made.item.command = { command: 'confine.showOutput', title: 'Show the Output', arguments: [{ run }] };
  for (const child of rows) child.run ??= run;
  return { ...made, run };
}

function widenRow(run: Run): Row {
  const { additional, targets } = run.result!.escalation!;
  const made = row(additional ? `Ask for ${step(additional)}…` : `Ask for ${targets[0] ?? 'more'}…`, { icon: 'unlock', tooltip: 'Asks whether this command may run once more, with more' });
  made.item.command = { command: 'confine.escalate', title: 'Ask for More', arguments: [{ run }] };
  return made;
}

function runIcon(run: Run, asks: boolean): [string, string] {
  if (asks) return ['bell-dot', 'notificationsWarningIcon.foreground'];
  if (going(run)) return ['loading~spin', 'foreground'];
  if (run.failure?.ran === 'lost') return ['circle-slash', 'disabledForeground'];
  if (run.failure || run.result?.error) return ['error', 'testing.iconFailed'];
  if (run.result?.status === 'refused' || run.result?.status === 'cancelled') return ['circle-slash', 'disabledForeground'];
  if (denied(run)) return ['warning', 'list.warningForeground'];
  return run.result?.exitCode === 0 ? ['pass', 'testing.iconPassed'] : ['error', 'testing.iconFailed'];
}

function facetRows(reported: Partial<Record<Facet, FacetReport>> | undefined): Row[] {
  return (Object.keys(facets) as Facet[]).flatMap((facet) => {
    const report = reported?.[facet];
    if (!report) return [];
    const tooltip = report.reason === undefined ? facetStates[report.state] : visible(report.reason);
    const rows = report.reason === undefined ? [] : [row(report.reason, { tooltip })];
    return [row(facets[facet], { icon: facetIcons[report.state], description: facetStates[report.state], tooltip, rows })];
  });
}

const facetIcons: Record<FacetState, string> = { enforced: 'pass', partial: 'warning', open: 'circle-outline', unverified: 'question' };

function sandboxRows({ state, capabilities: c, found, problem }: Server): Row[] {
  if (state === 'missing' || state === 'failed') return []; // the view's welcome says what to do
  if (!c) return [row(problem || 'The server starts…', { icon: 'loading~spin' })];
  const rows = [row(standing(c), { icon: c.ok ? 'shield' : c.state === 'probing' ? 'loading~spin' : 'error' })];
  for (const text of [...c.problems, ...c.hints]) rows.push(row(text, { icon: 'info' }));
  for (const { severity, message } of c.settingsProblems) rows.push(row(message, { icon: severity }));
  const used = c.providers.find((p) => p.provider === c.provider);
  rows.push(...facetRows(used?.facets));
  if (c.roots.length > 0) rows.push(row('Workspace folders', { icon: 'root-folder', rows: c.roots.map((r) => row(r, { icon: 'folder' })) }));
  for (const { uri, reason } of c.refusedRoots) rows.push(row(uri, { icon: 'warning', description: reason, tooltip: visible(reason) }));
  const settings = c.settings.filter((s) => s.origin !== 'default');
  if (settings.length > 0) rows.push(row('Settings', { icon: 'settings-gear', rows: settings.map((s) => row(`${s.key} = ${JSON.stringify(s.value)}`, { description: s.origin })) }));
  if (!c.canAsk) rows.push(row('Nobody is asked: what is wider than configured is refused', { icon: 'bell-slash' }));
  rows.push(row(`confine ${c.version}`, { icon: 'versions', description: found?.source ?? '', tooltip: found?.path ?? '' }));
  return rows;
}
