// What the server reports, in plain words. Pure.
import type { Additional, Capabilities, Denial, Facet, FacetState, Mode, RunResult } from './protocol';
import { type Failure, going, type Run } from './runs';
import { visible } from './text';

/** The facets in the order in which people ask about them. */
export const facets: Record<Facet, string> = {
  fileWrite: 'Changing files',
  fileRead: 'Reading hidden files',
  network: 'Network',
  unixSockets: 'Local services (sockets)',
  processes: 'Other processes',
  metadata: 'Attributes of files',
  devices: 'Devices',
};

export const facetStates: Record<FacetState, string> = {
  enforced: 'confined',
  partial: 'partly confined',
  open: 'not confined',
  unverified: 'confined elsewhere, not checked here',
};

export const modes: Record<Mode, string> = {
  'read-only': 'commands read what you can read and change nothing of yours',
  'workspace-write': 'commands also change files in the workspace folders',
  'danger-full-access': 'nothing confines commands',
  'external-sandbox': 'confine adds nothing: you said that something outside confines commands',
};

const failures: Record<Failure['ran'], string> = { no: 'did not run', broke: 'the sandbox broke', lost: 'ended with the server' };

/** duration is a time that a person can read at a glance. */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

/** ending says how a run stands, in a few words. */
export function ending(run: Run): string {
  if (run.failure) return failures[run.failure.ran];
  if (going(run)) return 'running';
  const result = run.result!;
  const words = [outcome(result)];
  if (result.durationMs > 0) words.push(duration(result.durationMs));
  if (result.sandbox?.denied) words.push('refused by the sandbox');
  return words.join(', ');
}

/** outcome says how a run ended. */
export function outcome(result: RunResult): string {
  if (result.error) return failures[result.error.data?.started ? 'broke' : 'no'];
  switch (result.status) {
    case 'running': return 'running';
    case 'refused': return result.approval?.outcome === 'timed-out' ? 'not allowed: no answer in time' : 'not allowed';
    case 'cancelled': return 'cancelled';
    case 'completed':
      if (result.timedOut) return 'ended: out of time';
      if (result.signal !== undefined) return `ended by ${result.signal}`;
      return result.exitCode === 0 ? 'succeeded' : `exit status ${result.exitCode ?? 'unknown'}`;
  }
}

/** refusal is one thing that the sandbox refused. */
export function refusal(denial: Denial): string {
  const times = denial.count > 1 ? `, ${denial.count} times` : '';
  const by = denial.exe ? ` by ${denial.exe}` : '';
  const why = denial.errno ? ` (${denial.errno})` : '';
  return `${denial.op} ${denial.path ?? denial.address ?? ''}`.trim() + why + by + times;
}

/** step is what an additional grant opens. */
export function step(additional: Additional): string {
  const words: string[] = [];
  const paths = (list: readonly string[]) => list.map(visible).join(', ');
  if (additional.write?.length) words.push(`writing ${paths(additional.write)}`);
  if (additional.read?.length) words.push(`reading ${paths(additional.read)}`);
  if (additional.network) words.push('the network');
  return words.join(' and ');
}

/** standing is the state of the sandbox in one sentence. */
export function standing(capabilities: Capabilities): string {
  if (capabilities.state === 'probing') return 'Trying what this machine can enforce…';
  if (!capabilities.ok) return 'Commands are refused: ' + (capabilities.problems[0] ?? 'the sandbox cannot be enforced.');
  switch (capabilities.mode) {
    case 'danger-full-access':
    case 'external-sandbox': return `Nothing confines commands (${capabilities.mode}).`;
    case 'read-only':
    case 'workspace-write':
      return capabilities.provider === 'none' ? 'Nothing confines commands: this machine has no sandbox that can be used, and your settings allow that.' : `Commands run in ${capabilities.mode}, confined by ${capabilities.provider}.`;
  }
}
