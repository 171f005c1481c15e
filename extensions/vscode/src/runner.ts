// Runs commands on the server and keeps the list of runs true.
import { randomBytes } from 'node:crypto';
import type { CancellationToken } from 'vscode';
import type { Additional, FailureData, Mode, Question, RunCommandParams, RunResult, TerminalSize } from './protocol';
import type { Questions } from './questions';
import { type Failure, type Run, type Runs, serverEnded, type Start, type Step } from './runs';
import { EndedError } from './server/client';
import type { Server } from './server/server';
import { cut } from './text';
import { step } from './words';

/** What more is wanted for a run: exactly one of both. */
export type Wider = { mode: Mode } | { additional: Additional };

/** How a request ended: with a result, or with why there is none. */
export type Outcome = { result: RunResult } | { failure: string };

/** modelText is what an agent should be shown. */
export function modelText(outcome: Outcome): string {
  return 'result' in outcome ? outcome.result.modelText : `Error: ${outcome.failure}`;
}

export class Runner {
  /** @param again is called for each second run that was asked for */
  constructor(private readonly server: Server, private readonly runs: Runs, private readonly questions: Questions, private readonly again: (run: Run) => void) {}

  /** begin sends a command. The run is in the list at once; done resolves when the request is answered. */
  begin(start: Start, params: Omit<RunCommandParams, 'runId' | 'command' | 'cwd'>, token?: CancellationToken): { run: Run; done: Promise<Outcome> } {
    const run = this.runs.begin(newId(), start);
    const request: RunCommandParams = { ...params, runId: run.id, command: run.command, ...(run.cwd === undefined ? {} : { cwd: run.cwd }) };
    return { run, done: this.finish(run, this.server.request('runCommand', request, token), params.justification, token) };
  }

  /** escalate asks whether a command that ran may run once more, with more. */
  escalate(from: Run, wider: Wider, justification: string, token?: CancellationToken): { run: Run; done: Promise<Outcome> } {
    const { command, purpose, origin, cwd, interactive } = from;
    const run = this.runs.begin(newId(), { command, purpose, origin, cwd, interactive, from: from.id });
    const wanted = 'mode' in wider ? { sandboxPermissions: wider.mode } : { additional: wider.additional };
    const answer = this.server.request('requestEscalation', { runId: from.id, newRunId: run.id, justification, ...wanted }, token);
    this.again(run);
    return { run, done: this.finish(run, answer, justification, token) };
  }

  async kill(run: Run): Promise<void> {
    await this.server.request('confine/runs/kill', { runId: run.id });
  }

  async write(run: Run, data: string): Promise<{ taken: number; open: boolean }> {
    return this.server.request('confine/runs/write', { runId: run.id, data });
  }

  async resize(run: Run, size: Required<TerminalSize>): Promise<void> {
    await this.server.request('confine/runs/resize', { runId: run.id, ...size });
  }

  /** smaller is a smaller step than the one that a question is about, in words. */
  smaller(question: Question): string | undefined {
    const hint = this.smallerStep(question);
    return hint && cut(step(hint.additional), 300);
  }

  /** askForSmaller refuses a question; when that is answered, the smaller step is asked for. */
  askForSmaller(question: Question): void {
    const run = this.runs.get(question.runId);
    if (run) run.instead = this.smallerStep(question);
    this.questions.refuse(question.id);
  }

  private smallerStep({ runId, wanted }: Question): Step | undefined {
    const run = this.runs.get(runId);
    return run && wanted.mode !== undefined && !wanted.additional ? this.runs.narrowerThan(run) : undefined;
  }

  private async finish(run: Run, answer: Promise<RunResult>, justification: string | undefined, token: CancellationToken | undefined): Promise<Outcome> {
    try {
      const result = await answer;
      this.runs.ended(run.id, result);
      if (!run.instead || result.status !== 'refused') return { result };
    } catch (error) {
      const failure = failureOf(error);
      this.runs.failed(run.id, failure);
      return { failure: failure.why };
    }
    const { from, additional } = run.instead;
    return this.escalate(from, { additional }, justification ?? 'The person at the editor chose this smaller step.', token).done;
  }
}

function newId(): string {
  return `code-${randomBytes(12).toString('hex')}`;
}

// failureOf says what happened, why, and what to do.
function failureOf(error: unknown): Failure {
  if (error instanceof EndedError) return serverEnded;
  if (!(error instanceof Error)) return { ran: 'no', why: String(error) };
  const { detail, remedies, started } = (error as Error & { data?: Partial<FailureData> }).data ?? {};
  const why = [error.message, ...(detail && !error.message.includes(detail) ? [detail] : []), ...(remedies ?? [])].join('\n');
  return { ran: started ? 'broke' : 'no', why };
}
