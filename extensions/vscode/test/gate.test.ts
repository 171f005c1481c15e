import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gate, isYes } from '../src/webview/gate';

function gate() {
  const clock = { now: 1000 };
  return { clock, gate: new Gate(() => clock.now, 500) };
}

test('nothing counts before the question was drawn', () => {
  const { gate: g, clock } = gate();
  g.read();
  clock.now += 10000;
  assert.deepEqual([g.refuse, g.allow], [false, false]);
});

test('nothing counts within half a second', () => {
  const { gate: g, clock } = gate();
  g.read();
  g.drawn();
  clock.now += 499;
  assert.deepEqual([g.refuse, g.allow], [false, false]);
  clock.now += 1;
  assert.deepEqual([g.refuse, g.allow], [true, true]);
});

test('a yes needs the end to have been seen, a no does not', () => {
  const { gate: g, clock } = gate();
  g.drawn();
  clock.now += 500;
  assert.deepEqual([g.refuse, g.allow, g.unread], [true, false, true]);
  g.read();
  assert.deepEqual([g.allow, g.unread], [true, false]);
});

test('when it was hidden and is drawn again the time begins anew', () => {
  const { gate: g, clock } = gate();
  g.read();
  g.drawn();
  clock.now += 5000;
  g.drawn();
  clock.now += 100;
  assert.deepEqual([g.refuse, g.allow], [false, false]);
});

test('an option of a kind that nobody knows needs as much as a yes', () => {
  const kinds = ['reject_once', 'reject_always', 'allow_once', 'allow_always', 'allow_forever', ''];
  assert.deepEqual(kinds.map((kind) => isYes({ kind: kind as 'allow_once' })), [false, false, true, true, true, true]);
});
