// Terminals that show runs: one in which a person's command runs, or one that
// shows what another command prints.
import { randomInt } from 'node:crypto';
import * as vscode from 'vscode';
import { Printed } from '../ansi';
import { Input } from '../input';
import { Paced } from '../paced';
import type { TerminalSize } from '../protocol';
import type { Runner } from '../runner';
import { going, type Piece, type Reading, type Run } from '../runs';
import { label, visible } from '../text';
import type { Unwaited } from '../unwaited';
import { ending, refusal } from '../words';

// How long a terminal may take to say that it has drawn something, in milliseconds.
const patience = 5000;

export class Terminals implements vscode.Disposable {
  private readonly open = new Set<RunTerminal>();

  constructor(private readonly runner: Runner, private readonly unwaited: Unwaited) {}

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
    if (run.interactive && going(run) && columns && rows) this.unwaited('resizing a terminal', this.runner.resize(run, { columns, rows }));
    return run;
  }

  dispose(): void {
    for (const t of this.open) t.terminal?.dispose();
  }

  private add(name: string, start: (size: TerminalSize) => Run): vscode.Terminal {
    // Those of runs that ended make room; their output is in the list of runs.
    for (const t of this.open) if (t.run && !going(t.run)) t.terminal?.dispose();
    const pty = new RunTerminal(this.runner, this.unwaited, start, () => this.open.delete(pty));
    this.open.add(pty);
    pty.terminal = vscode.window.createTerminal({ name: `Confine: ${label(name, 30)}`, pty, iconPath: new vscode.ThemeIcon('shield'), isTransient: true });
    return pty.terminal;
  }
}

class RunTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  private readonly paced = new Paced((text) => this.write.fire(text), () => randomInt(2 ** 30, 2 ** 31));
  private streams: Partial<Record<Piece['stream'], Printed>> = {};
  private input: Input | undefined;
  private reading: Reading | undefined;
  private atLineStart = true;
  private waiting: NodeJS.Timeout | undefined; // for the terminal to have drawn something
  private missing = 0; // bytes of the output that are not shown

  readonly onDidWrite = this.write.event;
  run: Run | undefined;
  terminal: vscode.Terminal | undefined;

  constructor(private readonly runner: Runner, private readonly unwaited: Unwaited, private readonly start: (size: TerminalSize) => Run, private readonly closed: () => void) {}

  open(size: vscode.TerminalDimensions | undefined): void {
    const run = this.start(size ? { columns: size.columns, rows: size.rows } : {});
    this.run = run;
    if (run.interactive) this.input = new Input((data) => this.runner.write(run, data), () => new Promise((resolve) => setTimeout(resolve, 50)));
    else this.print(`\x1b[2m${visible(run.command)}\x1b[22m\r\n`);
    this.reading = run.output.read(() => this.pump());
    this.pump();
  }

  close(): void {
    clearTimeout(this.waiting);
    this.reading?.stop();
    this.reading = undefined;
    this.closed();
    // Closing the terminal of one's own command ends it, as in any terminal. What a
    // model runs goes on: its terminal was opened to look at it.
    if (this.run?.origin === 'person' && going(this.run)) this.unwaited('ending the command of a closed terminal', this.runner.kill(this.run));
  }

  handleInput(data: string): void {
    const typed = this.paced.typed(data);
    this.pump();
    if (typed && this.run && going(this.run) && this.input?.push(typed) === false) this.print('\x07');
  }

  setDimensions(size: vscode.TerminalDimensions): void {
    if (this.run?.interactive && going(this.run)) this.unwaited('resizing a terminal', this.runner.resize(this.run, { columns: size.columns, rows: size.rows }));
  }

  // pump shows what the terminal can take now, and at the end how the run ended.
  private pump(): void {
    const { run, reading } = this;
    if (!run || !reading) return;
    this.stopWaiting();
    while (this.paced.ready) {
      const piece = reading.take();
      if (piece) {
        this.piece(piece);
        continue;
      }
      if (!run.output.ended) return;
      reading.stop();
      this.reading = undefined;
      return this.end(run);
    }
    this.waiting ??= setTimeout(() => {
      this.paced.giveUp();
      this.pump();
    }, patience);
  }

  // stopWaiting ends the wait for the terminal once it has drawn enough.
  private stopWaiting(): void {
    if (!this.paced.ready) return;
    clearTimeout(this.waiting);
    this.waiting = undefined;
  }

  private piece({ stream, bytes, skipped }: Piece): void {
    if (skipped > 0) {
      this.missing += skipped;
      this.streams = {}; // what was begun before the gap does not go on behind it
      this.note(`${skipped} bytes are missing here`);
    }
    this.print((this.streams[stream] ??= new Printed(this.run?.interactive ?? false)).push(bytes));
  }

  private end(run: Run): void {
    this.note(ending(run));
    if (this.missing > 0) this.note(`${this.missing} bytes of its output are not shown here: it came faster than they can be drawn`);
    for (const { spillPath } of [run.result?.stdout, run.result?.stderr].filter((s) => s !== undefined)) if (spillPath) this.note(`all of it: ${spillPath}`);
    for (const line of run.failure?.why.split('\n') ?? []) this.note(line);
    for (const denial of run.result?.sandbox?.denials ?? []) if (!denial.incidental) this.note(`refused: ${refusal(denial)}`);
    if (run.result?.outputMissing) this.note(`part of the output did not come: ${run.result.outputMissing}`);
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
    this.paced.push(text);
  }
}
