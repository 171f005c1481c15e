// The questions that wait for the person: which is shown, and what became of
// each. Pure. Whatever is not a clear yes is no yes.
import type { ApprovalAnswer, ApprovalWithdrawn, Question } from './protocol';

/** What became of an answer that the person gave. */
export type Taken = 'taken' | 'too-late';

const cancelled: ApprovalAnswer = { outcome: { outcome: 'cancelled' } };

export class Questions {
  private readonly open = new Map<string, { question: Question; settle: (answer: ApprovalAnswer) => void }>();
  private front: string | undefined; // the one that the person chose to see first

  /** changed is called after each change of what waits. */
  constructor(private readonly changed: () => void) {}

  /** The questions that wait, the oldest first. */
  get waiting(): Question[] {
    return [...this.open.values()].map((entry) => entry.question);
  }

  /** The question to show: the one that the person chose, or the oldest. */
  get shown(): Question | undefined {
    return (this.front !== undefined ? this.open.get(this.front)?.question : undefined) ?? this.waiting[0];
  }

  /** of is the question that a run waits for. */
  of(runId: string): Question | undefined {
    return this.waiting.find((q) => q.runId === runId);
  }

  /** ask resolves with the answer, which is cancelled when the question is withdrawn. */
  ask(question: Question): Promise<ApprovalAnswer> {
    this.settle(question.id, cancelled); // an id that is asked again is another question
    return new Promise((resolve) => {
      this.open.set(question.id, { question, settle: resolve });
      this.changed();
    });
  }

  /** show puts a question in front. */
  show(id: string): void {
    if (!this.open.has(id)) return;
    this.front = id;
    this.changed();
  }

  /** answer picks an option; one that the question does not have counts as none. */
  answer(id: string, optionId: string): Taken {
    const known = this.open.get(id)?.question.options.some((o) => o.optionId === optionId);
    return this.settle(id, known ? { outcome: { outcome: 'selected', optionId } } : cancelled);
  }

  /** refuse picks what the server says refuses. */
  refuse(id: string): Taken {
    const question = this.open.get(id)?.question;
    return question ? this.answer(id, question.defaultOptionId) : 'too-late';
  }

  /** dismiss says that the person picked nothing. */
  dismiss(id: string): Taken {
    return this.settle(id, cancelled);
  }

  /** withdraw takes back a question that is moot. */
  withdraw({ id }: Pick<ApprovalWithdrawn, 'id'>): void {
    this.settle(id, cancelled);
  }

  /** clear takes back all: nobody is there to hear an answer. */
  clear(): void {
    for (const id of [...this.open.keys()]) this.settle(id, cancelled);
  }

  private settle(id: string, answer: ApprovalAnswer): Taken {
    const entry = this.open.get(id);
    if (!entry) return 'too-late';
    this.open.delete(id);
    if (this.front === id) this.front = undefined;
    entry.settle(answer);
    this.changed();
    return 'taken';
  }
}
