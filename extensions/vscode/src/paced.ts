// Output on its way to a terminal, no faster than that can draw it. Pure.
//
// VS Code takes whatever is written to a terminal and holds what is not drawn
// yet, without end at first and then throwing away without a word. So from time
// to time we ask the terminal a question, which it answers when it has drawn what
// stands before, and write on only while few questions are open. What the command
// prints meanwhile is held by the tail of its run, which counts what it drops.

// Characters between two questions, and how many questions may be open.
const stride = 64 * 1024;
const mostOpen = 4;

// How many questions are remembered that nobody waits for any more.
const mostLate = 16;

export class Paced {
  private open: number[] = []; // questions without an answer, the oldest first
  private late: number[] = []; // those that are waited for no more; their answers are still ours
  private unasked = 0; // characters behind the last question

  /**
   * @param write gives text to the terminal
   * @param pick makes a number between 2^30 and 2^31, which nobody can guess: the command must not be able to answer
   */
  constructor(private readonly write: (text: string) => void, private readonly pick: () => number) {}

  /** Whether more may be written. */
  get ready(): boolean {
    return this.open.length < mostOpen;
  }

  push(text: string): void {
    this.unasked += text.length;
    if (this.unasked >= stride) {
      this.unasked = 0;
      const mode = this.pick();
      this.open.push(mode);
      text += `\x1b[?${mode}$p`; // is this mode set? It is one that no terminal knows
    }
    this.write(text);
  }

  /** giveUp waits for no answer any more: a terminal that is being made or moved can lose some. */
  giveUp(): void {
    this.late = [...this.late, ...this.open].slice(-mostLate);
    this.open = [];
  }

  /** typed is what the terminal sent, without its answers to us. */
  typed(data: string): string {
    for (const mode of [...this.open, ...this.late]) {
      const answer = `\x1b[?${mode};0$y`;
      if (!data.includes(answer)) continue;
      data = data.replace(answer, '');
      this.open = this.open.slice(this.open.indexOf(mode) + 1); // what was asked before it is drawn, too
    }
    return data;
  }
}
