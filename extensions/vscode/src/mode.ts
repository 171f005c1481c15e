// The mode that the person chose for this window. Pure.
import type { Capabilities, Mode } from './protocol';

// From the narrowest. Both wide ones hold only where they are configured, and then nothing is chosen.
const order: readonly Mode[] = ['read-only', 'workspace-write', 'danger-full-access', 'external-sandbox'];

/** within are the modes that a run may have without a question, the narrowest first. */
export function within(configured: Mode, roots: readonly string[]): Mode[] {
  const confined: Mode[] = roots.length > 0 ? ['read-only', 'workspace-write'] : ['read-only'];
  switch (configured) {
    case 'read-only': return ['read-only'];
    case 'workspace-write': return confined;
    case 'danger-full-access': return [...confined, 'danger-full-access'];
    case 'external-sandbox': return [...confined, 'external-sandbox'];
  }
}

/** ChosenMode holds where it is narrower than what is configured. It never makes a run wider than the person chose. */
export class ChosenMode {
  private chosen: Mode | undefined;

  /** @param known what the server says, or undefined while that is not known */
  constructor(private readonly known: () => Pick<Capabilities, 'mode' | 'roots'> | undefined, private readonly changed: () => void) {}

  /** The modes to choose from: those that need no question. */
  get choices(): Mode[] {
    const known = this.known();
    return known ? within(known.mode, known.roots) : [];
  }

  /**
   * What to send with a run: undefined where the configured mode holds. A choice
   * that cannot be had any more becomes the next narrower one; one of which that
   * is not known is sent as it is, and the server refuses what it does not have.
   */
  get wanted(): Mode | undefined {
    const { chosen, choices } = this;
    if (chosen === undefined || choices.length === 0) return chosen;
    const mode = choices.findLast((m) => order.indexOf(m) <= order.indexOf(chosen));
    return mode === choices.at(-1) ? undefined : mode;
  }

  choose(mode: Mode): void {
    this.chosen = mode === this.choices.at(-1) ? undefined : mode;
    this.changed();
  }

  /** What holds, or undefined while that is not known. */
  get inForce(): Mode | undefined {
    return this.wanted ?? this.choices.at(-1);
  }
}
