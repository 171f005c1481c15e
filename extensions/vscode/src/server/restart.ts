// When a server that ended by itself is started again. Pure.

/** Backoff spaces starts that fail, and gives up after some of them. */
export class Backoff {
  private failures = 0;

  /** Waiting times in milliseconds; there is one start for each. */
  constructor(private readonly delays: readonly number[] = [500, 2000, 5000, 15000, 30000], private readonly healthyMs = 60000) {}

  /**
   * ended is how long to wait before the next start, or undefined when it is time
   * to ask the person. A server that lived for healthyMs counts as a new beginning.
   */
  ended(livedMs: number): number | undefined {
    if (livedMs >= this.healthyMs) this.failures = 0;
    return this.delays[this.failures++];
  }

  /** reset forgets what failed: the person asked for a start. */
  reset(): void {
    this.failures = 0;
  }
}
