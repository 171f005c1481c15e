// Terminals that show runs: one in which a person's command runs, or one that
// shows what another command prints.
import * as vscode from 'vscode';
import { Printed } from '../ansi';
import { Input } from '../input';
import type { TerminalSize } from '../protocol';
import type { Runner } from '../runner';
import { going, type Piece, type Run } from '../runs';
import { label, visible } from '../text';
import { ending, refusal } from '../words';

export class Terminals implements vscode.Disposable {
  private readonly open = new Set<RunTerminal>();

  constructor(private readonly runner: Runner) {}

  /** begin opens a terminal; the run is begun when its size is known. */
  begin(name: string, start: (size: TerminalSize) => Run): void {
    this.add(name, start).show(false);
  }

  /** show brings the terminal of a run to the front, or opens one. */
  show(run: Run, preserveFocus = false): void {
    const shown = [...this.open].find((t) => t.run === run);
    (shown?.terminal ?? this.add(run.command, (size) => this.follow(run, size))).show(preserveFocus);
  }

  // follow attaches to a run that was begun with another terminal's size.
  private follow(run: Run, { columns, rows }: TerminalSize): Run {
    if (run.interactive && going(run) && columns && rows) void this.runner.resize(run, { columns, rows }).catch(() => undefined);
    return run;
  }

  dispose(): void {
    for (const t of this.open) t.terminal?.dispose();
  }

  private add(name: string, start: (size: TerminalSize) => Run): vscode.Terminal {
    // Those of runs that ended make room; their output is in the list of runs.
    for (const t of this.open) if (t.run && !going(t.run)) t.terminal?.dispose();
    const pty = new RunTerminal(this.runner, start, () => this.open.delete(pty));
    this.open.add(pty);
    pty.terminal = vscode.window.createTerminal({ name: `Confine: ${label(name, 30)}`, pty, iconPath: new vscode.ThemeIcon('shield'), isTransient: true });
    return pty.terminal;
  }
}

class RunTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  private readonly named = new vscode.EventEmitter<string>();
  private readonly streams: Partial<Record<Piece['stream'], Printed>> = {};
  private input: Input | undefined;
  private unfollow: (() => void) | undefined;
  private atLineStart = true;

  readonly onDidWrite = this.write.event;
  readonly onDidChangeName = this.named.event;
  run: Run | undefined;
  terminal: vscode.Terminal | undefined;

  constructor(private readonly runner: Runner, private readonly start: (size: TerminalSize) => Run, private readonly closed: () => void) {}

  open(size: vscode.TerminalDimensions | undefined): void {
    const run = this.start(size ? { columns: size.columns, rows: size.rows } : {});
    this.run = run;
    if (run.interactive) this.input = new Input((data) => this.runner.write(run, data), () => new Promise((resolve) => setTimeout(resolve, 50)));
    else this.print(`\x1b[2m${visible(run.command)}\x1b[22m\r\n`);
    if (run.output.dropped > 0) this.note(`${run.output.dropped} bytes before this are not shown`);
    this.unfollow = run.output.follow((piece) => this.piece(piece), () => this.end(run));
  }

  close(): void {
    this.unfollow?.();
    this.closed();
    // Closing the terminal of one's own command ends it, as in any terminal.
    if (this.run?.interactive && going(this.run)) void this.runner.kill(this.run).catch(() => undefined);
  }

  handleInput(data: string): void {
    if (this.run && going(this.run) && this.input?.push(data) === false) this.print('\x07');
  }

  setDimensions(size: vscode.TerminalDimensions): void {
    if (this.run?.interactive && going(this.run)) void this.runner.resize(this.run, { columns: size.columns, rows: size.rows }).catch(() => undefined);
  }

  private piece({ stream, bytes, skipped }: Piece): void {
    if (skipped > 0) this.note(`${skipped} bytes are missing here`);
    this.print((this.streams[stream] ??= new Printed(this.run?.interactive ?? false)).push(bytes));
  }

  private end(run: Run): void {
    this.note(ending(run));
    for (const line of run.failure?.why.split('\n') ?? []) this.note(line);
    for (const denial of run.result?.sandbox?.denials ?? []) if (!denial.incidental) this.note(`refused: ${refusal(denial)}`);
    const answer = run.result?.approval;
    if (answer && run.result?.status === 'refused') this.note(answer.reason);
    if (run.result?.error) this.note(run.result.error.message);
  }

  // note prints a line of ours. A command can print one that looks the same; how
  // a run ended stands in the panel.
  private note(text: string): void {
    this.print(`\x1b[0m${this.atLineStart ? '' : '\r\n'}\x1b[2m[confine] ${visible(text)}\x1b[0m\r\n`);
  }

  private print(text: string): void {
    if (!text) return;
    this.atLineStart = text.endsWith('\n');
    this.write.fire(text);
  }
}
