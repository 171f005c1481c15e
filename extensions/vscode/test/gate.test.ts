import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliberate, Gate, isYes } from '../src/gate';

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

// dialog gives its answers one by one, each after so many milliseconds.
function dialog(...answers: [after: number, answer: string | undefined][]) {
  let now = 0;
  let shown = 0;
  const ask = () => {
    const [after, answer] = answers[shown++]!;
    now += after;
    return Promise.resolve(answer);
  };
  return { ask, clock: () => now, shown: () => shown };
}

test('an answer that comes too early is asked for again, whatever it is', async () => {
  const { ask, clock, shown } = dialog([10, 'yes'], [499, 'no'], [0, undefined], [500, 'yes']);
  assert.equal(await deliberate(ask, () => true, clock), 'yes');
  assert.equal(shown(), 4);
});

test('no answer is one as well', async () => {
  const { ask, clock } = dialog([800, undefined]);
  assert.equal(await deliberate(ask, () => true, clock), undefined);
});

test('what is moot is not asked again', async () => {
  const { ask, clock, shown } = dialog([10, 'yes'], [800, 'yes']);
  assert.equal(await deliberate(ask, () => shown() === 0, clock), undefined);
  assert.equal(shown(), 1);
});
