// The runs of this window: what was asked for, what came out, and how each
// ended. Pure.
import type { Additional, Output, RunResult, Stream } from './protocol';

/** Who wanted a run. */
export type Origin = 'person' | 'model';

export interface Run {
  readonly id: string;
  readonly command: string;
  readonly purpose: string; // in a few words of whoever asked; may be empty
  readonly origin: Origin;
  readonly cwd: string | undefined;
  readonly interactive: boolean; // it has a terminal
  readonly from: string | undefined; // the run of which this is the wider second one
  readonly startedAt: number; // ms since the epoch
  readonly output: Tail;
  result: RunResult | undefined; // of a background run also while it goes on
  failure: Failure | undefined; // why there is no result
  instead: Step | undefined; // what the person wants asked for instead
}

/** Why a run has no result. */
export interface Failure {
  ran: 'no' | 'broke' | 'lost'; // it never began; the sandbox broke meanwhile; nobody knows, since the server ended
  why: string; // for people
}

/** Something more that can be asked for, for a run that has ended. */
export interface Step {
  from: Run;
  additional: Additional;
}

/** The parts of a run that whoever starts it chooses. */
export type Start = Pick<Run, 'command' | 'origin'> & Partial<Pick<Run, 'purpose' | 'cwd' | 'from' | 'interactive'>>;

/** The server takes everything that it runs with it. */
export const serverEnded: Failure = { ran: 'lost', why: 'The server of confine ended, and with it everything that it ran.' };

/** How many runs that have ended are remembered; the server keeps no more. */
const keptRuns = 128;

/** going says that a run has not ended, as far as known. */
export function going(run: Run): boolean {
  return run.failure === undefined && (run.result === undefined || run.result.status === 'running');
}

/** denied says that the sandbox refused something that made a difference. */
export function denied(run: Run): boolean {
  return run.result?.sandbox?.denied === true;
}

/** canWiden says that asking for more can help. */
export function canWiden(run: Run): boolean {
  return !going(run) && run.result?.escalation !== undefined;
}

export class Runs {
  private readonly byId = new Map<string, Run>();

  /** changed is called after each change; output is not one. */
  constructor(private readonly changed: () => void, private readonly now: () => number = Date.now) {}

  /** All runs, the newest first. */
  get all(): Run[] {
    return [...this.byId.values()].reverse();
  }

  get(id: string): Run | undefined {
    return this.byId.get(id);
  }

  /** begin adds a run under an id that the caller made. */
  begin(id: string, start: Start): Run {
    const run: Run = {
      id, command: start.command, purpose: start.purpose ?? '', origin: start.origin, cwd: start.cwd, interactive: start.interactive ?? false, from: start.from,
      startedAt: this.now(), output: new Tail(), result: undefined, failure: undefined, instead: undefined,
    };
    this.byId.set(id, run);
    const ended = [...this.byId.values()].filter((r) => !going(r));
    for (const old of ended.slice(0, Math.max(0, ended.length - keptRuns))) this.byId.delete(old.id);
    this.changed();
    return run;
  }

  /** ended notes a result, from the response or confine/exit, whichever comes. */
  ended(id: string, result: RunResult): void {
    const run = this.byId.get(id);
    // A background run's response can come after its end was told.
    if (!run || (result.status === 'running' && run.result && run.result.status !== 'running')) return;
    run.result = result;
    if (result.status !== 'running') run.output.end();
    this.changed();
  }

  /** failed notes why a run has no result. */
  failed(id: string, failure: Failure): void {
    const run = this.byId.get(id);
    if (!run || !going(run)) return;
    run.failure = failure;
    run.output.end();
    this.changed();
  }

  /** lost ends everything that goes on: the server ended, and with it what it ran. */
  lost(): void {
    for (const run of this.byId.values()) this.failed(run.id, serverEnded);
  }

  /** narrowerThan is a smaller step than the one that a run asks for, if the same command showed one. */
  narrowerThan(run: Run): Step | undefined {
    for (const earlier of this.all) {
      const additional = earlier.result?.escalation?.additional;
      const same = earlier.id === run.from || (earlier.command === run.command && earlier.cwd === run.cwd);
      if (earlier !== run && same && additional && !going(earlier)) return { from: earlier, additional };
    }
    return undefined;
  }

  /** lastWidenable is the newest run that may be run again with more. */
  get lastWidenable(): Run | undefined {
    return this.all.find(canWiden);
  }
}

/** How many bytes of a run's output are kept for a terminal that is opened later. */
const keptBytes = 512 * 1024;

// What holding a piece costs besides its bytes, so that many small ones are not kept without end.
const pieceBytes = 128;

export interface Piece {
  stream: Stream;
  bytes: Uint8Array;
  skipped: number; // bytes of output that are missing just before it
}

/** Tail is the end of a run's output, in the order in which it came. */
export class Tail {
  private pieces: (Piece & { start: number })[] = []; // start: bytes of output before it and what it skipped
  private first = 0; // number of the first of them among all that came
  private held = 0;
  private total = 0;
  private wake: (() => void) | undefined;

  ended = false;

  add(output: Output): void {
    const bytes = output.base64 !== undefined ? Buffer.from(output.base64, 'base64') : Buffer.from(output.data ?? '');
    const skipped = output.skipped ?? 0;
    this.pieces.push({ stream: output.stream, bytes, skipped, start: this.total });
    this.total += skipped + bytes.length;
    this.held += bytes.length + pieceBytes;
    while (this.held > keptBytes && this.pieces.length > 1) {
      this.held -= this.pieces.shift()!.bytes.length + pieceBytes;
      this.first++;
    }
    this.wake?.();
  }

  end(): void {
    this.ended = true;
    this.wake?.();
  }

  /** read begins with what is held. wake is called when there is more, or nothing more to come; one reads at a time. */
  read(wake: () => void): Reading {
    this.wake = wake;
    let next = 0; // number of the next piece
    let position = 0; // bytes of output before it
    return {
      take: () => {
        next = Math.max(next, this.first);
        const piece = this.pieces[next - this.first];
        if (!piece) return undefined;
        const skipped = piece.start - position + piece.skipped;
        next++;
        position = piece.start + piece.skipped + piece.bytes.length;
        return { stream: piece.stream, bytes: piece.bytes, skipped };
      },
      stop: () => {
        if (this.wake === wake) this.wake = undefined;
      },
    };
  }
}

/** Reading is one reader's way through a tail. What was dropped before it came there counts as skipped. */
export interface Reading {
  take: () => Piece | undefined; // the next piece, if it is there
  stop: () => void;
}
