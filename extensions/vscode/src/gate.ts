// When an answer counts. Pure.
import type { Option } from './protocol';

/** isYes says that an option may be one that allows: whatever is not known to refuse. */
export function isYes({ kind }: Pick<Option, 'kind'>): boolean {
  return kind !== 'reject_once' && kind !== 'reject_always';
}

/**
 * A Gate is closed for half a second after a question was drawn, so that nobody
 * answers what they have not read: a key that was meant for the editor, the
 * second click of a double click. A yes also needs the end of what would run to
 * have been in view.
 */
export class Gate {
  private drawnAt: number | undefined;
  private endSeen = false;

  constructor(private readonly now: () => number, readonly guardMs = 500) {}

  /** drawn begins anew: a question is on the screen, or is so again. */
  drawn(): void {
    this.drawnAt = this.now();
  }

  /** read says that the end of what would run was in view. */
  read(): void {
    this.endSeen = true;
  }

  /** Whether an answer counts that is no yes. */
  get refuse(): boolean {
    return this.drawnAt !== undefined && this.now() - this.drawnAt >= this.guardMs;
  }

  /** Whether a yes counts. */
  get allow(): boolean {
    return this.refuse && this.endSeen;
  }

  /** Whether only reading to the end is missing. */
  get unread(): boolean {
    return !this.endSeen;
  }
}

/**
 * deliberate is what ask gives, once that did not come too early to be meant. Each
 * time it does, ask is called again, as long as there is something to ask.
 */
export async function deliberate<T>(ask: () => PromiseLike<T>, waits: () => boolean, now: () => number): Promise<T | undefined> {
  while (waits()) {
    const gate = new Gate(now);
    gate.drawn();
    const given = await ask();
    if (gate.refuse) return given;
  }
  return undefined;
}
