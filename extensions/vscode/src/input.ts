// What a person types into the terminal of a run, on its way there. Pure.

/** Send gives text to a run, and tells how many of its bytes were taken and whether more may follow. */
export type Send = (data: string) => Promise<{ taken: number; open: boolean }>;

// What may wait here. Whoever pastes more into a command that does not read loses the rest.
const mostWaiting = 1 << 20;

/** Input keeps the order, and sends again what was not taken. */
export class Input {
  private waiting = '';
  private busy = false;
  private closed = false;

  constructor(private readonly send: Send, private readonly pause: () => Promise<void>) {}

  /** push gives text to the run; false if it was not taken because too much waits. */
  push(text: string): boolean {
    if (this.closed || this.waiting.length + text.length > mostWaiting) return false;
    this.waiting += text;
    this.drain().catch(() => (this.closed = true)); // the run ended, or nobody is there to take it
    return true;
  }

  private async drain(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    while (this.waiting && !this.closed) {
      const sent = this.waiting;
      this.waiting = '';
      const { taken, open } = await this.send(sent);
      const rest = Buffer.from(sent).subarray(taken).toString();
      this.waiting = rest + this.waiting;
      this.closed = !open;
      if (rest && open) await this.pause();
    }
    this.busy = false;
  }
}
