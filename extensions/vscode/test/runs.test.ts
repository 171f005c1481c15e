import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunResult } from '../src/protocol';
import { canWiden, denied, going, type Piece, type Reading, Runs, Tail } from '../src/runs';

const nothing = { text: '', bytes: 0, truncated: false };
function result(runId: string, more: Partial<RunResult> = {}): RunResult {
  return { runId, status: 'completed', exitCode: 0, timedOut: false, durationMs: 1, stdout: nothing, stderr: nothing, modelText: '', ...more };
}
const runs = () => new Runs(() => undefined, () => 0);
const output = (data: string, skipped?: number) => ({ runId: 'a', seq: 0, stream: 'stdout' as const, offset: 0, data, ...(skipped ? { skipped } : {}) });

test('a run goes on until its result says otherwise', () => {
  const list = runs();
  const run = list.begin('a', { command: 'sleep 9', origin: 'person' });
  assert.ok(going(run));
  list.ended('a', result('a', { status: 'running' }));
  assert.ok(going(run));
  list.ended('a', result('a'));
  assert.ok(!going(run));
});

test('a response that comes after the end changes nothing', () => {
  const list = runs();
  const run = list.begin('a', { command: 'true', origin: 'person' });
  list.ended('a', result('a', { exitCode: 3 }));
  list.ended('a', result('a', { status: 'running' }));
  assert.equal(run.result?.exitCode, 3);
});

test('when the server ends, what ran is lost and what ended is not', () => {
  const list = runs();
  const [first, second] = [list.begin('a', { command: '1', origin: 'person' }), list.begin('b', { command: '2', origin: 'model' })];
  list.ended('a', result('a'));
  list.lost();
  assert.equal(first.failure, undefined);
  assert.equal(second.failure?.ran, 'lost');
  assert.ok(second.output.ended);
});

test('the newest run that can have more is offered', () => {
  const list = runs();
  for (const id of ['a', 'b', 'c']) list.begin(id, { command: id, origin: 'person' });
  const sandbox = { mode: 'read-only' as const, denied: true };
  for (const id of ['a', 'b']) list.ended(id, result(id, { sandbox, escalation: { targets: ['workspace-write'] } }));
  list.ended('c', result('c', { sandbox }));
  assert.equal(list.lastWidenable?.id, 'b');
  assert.ok(denied(list.get('c')!) && !canWiden(list.get('c')!));
});

test('a smaller step comes from the same command in the same folder, or from the first run', () => {
  const list = runs();
  const escalation = { targets: ['danger-full-access' as const], additional: { write: ['/srv'] } };
  const first = list.begin('a', { command: 'make', origin: 'model', cwd: '/w' });
  list.ended('a', result('a', { escalation }));
  const again = list.begin('b', { command: 'make', origin: 'model', cwd: '/w' });
  assert.deepEqual(list.narrowerThan(again), { from: first, additional: { write: ['/srv'] } });
  assert.equal(list.narrowerThan(list.begin('c', { command: 'make', origin: 'model', cwd: '/elsewhere' })), undefined);
  assert.equal(list.narrowerThan(list.begin('d', { command: 'make ', origin: 'model', cwd: '/w' })), undefined);
  assert.equal(list.narrowerThan(list.begin('e', { command: 'other', origin: 'model', from: 'a' }))?.from, first);
});

test('only so many ended runs are remembered, and all that go on', () => {
  const list = runs();
  list.begin('going', { command: '', origin: 'person' });
  for (let i = 0; i < 300; i++) {
    list.begin(`r${i}`, { command: '', origin: 'person' });
    list.ended(`r${i}`, result(`r${i}`));
  }
  assert.ok(list.get('going'));
  assert.equal(list.get('r0'), undefined);
  assert.ok(list.all.length <= 130, String(list.all.length));
});

// taken is everything that a reader can have now.
function taken(reading: Reading): Piece[] {
  const pieces: Piece[] = [];
  for (let piece = reading.take(); piece; piece = reading.take()) pieces.push(piece);
  return pieces;
}
const text = (pieces: Piece[]) => pieces.map((p) => Buffer.from(p.bytes).toString()).join('');
const skipped = (pieces: Piece[]) => pieces.reduce((sum, p) => sum + p.skipped, 0);
const size = (pieces: Piece[]) => pieces.reduce((sum, p) => sum + p.bytes.length, 0);

test('a terminal that is opened late gets what is held, then what comes, then the end', () => {
  const tail = new Tail();
  tail.add(output('one '));
  let wakes = 0;
  const reading = tail.read(() => wakes++);
  assert.equal(text(taken(reading)), 'one ');
  tail.add({ ...output(''), base64: Buffer.from('two').toString('base64') });
  assert.equal(text(taken(reading)), 'two');
  tail.end();
  assert.deepEqual([wakes, tail.ended], [2, true]);
  reading.stop();
  tail.add(output(' three'));
  assert.equal(wakes, 2);
  assert.equal(text(taken(tail.read(() => undefined))), 'one two three');
});

test('one reads at a time, and who stopped disturbs no other', () => {
  const tail = new Tail();
  const wakes: string[] = [];
  const first = tail.read(() => wakes.push('first'));
  tail.read(() => wakes.push('second'));
  first.stop();
  tail.add(output('x'));
  assert.deepEqual(wakes, ['second']);
});

const large = 'x'.repeat(60000);

test('of much output the end is held, and what is not is counted', () => {
  const tail = new Tail();
  for (let i = 0; i < 20; i++) tail.add(output(large, i === 0 ? 7 : 0));
  const pieces = taken(tail.read(() => undefined));
  assert.ok(size(pieces) <= 512 * 1024 && size(pieces) > 400000);
  assert.equal(pieces[0]!.skipped, skipped(pieces));
  assert.equal(size(pieces) + skipped(pieces), 20 * 60000 + 7);
});

test('a slow reader misses what was dropped meanwhile, and is told how much', () => {
  const tail = new Tail();
  const reading = tail.read(() => undefined);
  tail.add(output(large, 7));
  const before = taken(reading);
  for (let i = 0; i < 20; i++) tail.add(output(large, i === 3 ? 5 : 0));
  tail.add({ ...output('', 11), stream: 'stderr' }); // missing at the end of a stream
  const after = taken(reading);
  assert.deepEqual([size(before), skipped(before)], [60000, 7]);
  assert.ok(size(after) <= 512 * 1024);
  assert.equal(size(after) + skipped(after), 20 * 60000 + 5 + 11);
  assert.equal(after.at(-1)!.skipped, 11);
});

test('many small pieces are not held without end', () => {
  const tail = new Tail();
  for (let i = 0; i < 50000; i++) tail.add(output('x'));
  const pieces = taken(tail.read(() => undefined));
  assert.ok(pieces.length > 1000 && pieces.length < 10000, String(pieces.length));
  assert.equal(pieces.length + skipped(pieces), 50000);
});
