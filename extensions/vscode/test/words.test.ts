import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunResult } from '../src/protocol';
import { Runs, serverEnded } from '../src/runs';
import { duration, ending, outcome, refusal, step } from '../src/words';

const nothing = { text: '', bytes: 0, truncated: false };
const result = (more: Partial<RunResult>): RunResult => ({ runId: 'a', status: 'completed', timedOut: false, durationMs: 0, stdout: nothing, stderr: nothing, modelText: '', ...more });

test('how a run ended is never mixed up', () => {
  const rows: [Partial<RunResult>, string][] = [
    [{ exitCode: 0 }, 'succeeded'],
    [{ exitCode: 3 }, 'exit status 3'],
    [{ signal: 'SIGKILL' }, 'ended by SIGKILL'],
    [{ timedOut: true, exitCode: 0 }, 'ended: out of time'],
    [{ status: 'cancelled' }, 'cancelled'],
    [{ status: 'refused', approval: { outcome: 'rejected', by: 'person', reason: '' } }, 'not allowed'],
    [{ status: 'refused', approval: { outcome: 'timed-out', by: 'default', reason: '' } }, 'not allowed: no answer in time'],
    [{ status: 'running' }, 'running'],
    [{ error: { code: -32803, message: '' } }, 'did not run'],
    [{ error: { code: -32803, message: '', data: { code: 'SANDBOX_UNAVAILABLE', started: true } } }, 'the sandbox broke'],
  ];
  for (const [more, words] of rows) assert.equal(outcome(result(more)), words);
});

test('a run whose server ended is not said to have failed, or not to have run', () => {
  const runs = new Runs(() => undefined);
  const run = runs.begin('a', { command: 'sleep 9', origin: 'model' });
  runs.failed('a', serverEnded);
  assert.equal(ending(run), 'ended with the server');
});

test('denials and grants in words', () => {
  assert.equal(refusal({ op: 'create', path: '/srv/x', errno: 'EROFS', exe: 'bash', evidence: 'observed', count: 2 }), 'create /srv/x (EROFS) by bash, 2 times');
  assert.equal(refusal({ op: 'connect', address: '1.2.3.4:80', evidence: 'stderr', count: 1 }), 'connect 1.2.3.4:80');
  assert.equal(step({ write: ['/a', '/b'], network: true }), 'writing /a, /b and the network');
  assert.equal(step({ read: ['/a\u202eb\n'] }), 'reading /a\\u{202E}b\\n', 'a name that a command chose is shown as it is');
});

test('times are short', () => {
  assert.deepEqual([7, 1500, 61000].map(duration), ['7 ms', '1.5 s', '1 min 1 s']);
});
