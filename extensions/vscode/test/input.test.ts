import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Input, type Send } from '../src/input';

// taker is an input whose run takes at most so many bytes at once; done resolves when it has all of want.
function taker(bytes: number, want: string) {
  const seen = { taken: '', pauses: 0 };
  let finish: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const take: Send = (data) => {
    const part = Buffer.from(data).subarray(0, bytes).toString();
    seen.taken += part;
    if (seen.taken.length >= want.length) finish();
    return Promise.resolve({ taken: Buffer.byteLength(part), open: true });
  };
  const pause = () => {
    seen.pauses++;
    return Promise.resolve();
  };
  return { input: new Input(take, pause), done, seen };
}

test('all that is typed arrives in order', async () => {
  const { input, done, seen } = taker(1000, 'one two three');
  for (const text of ['one ', 'two ', 'three']) assert.ok(input.push(text));
  await done;
  assert.equal(seen.taken, 'one two three');
});

test('what was not taken is sent again after a pause', async () => {
  const { input, done, seen } = taker(3, 'abcdefgh');
  input.push('abcdefgh');
  await done;
  assert.deepEqual(seen, { taken: 'abcdefgh', pauses: 2 });
});

test('after the end nothing is sent', async () => {
  let sends = 0;
  const input = new Input(() => {
    sends++;
    return Promise.reject(new Error('ended'));
  }, () => Promise.resolve());
  input.push('x');
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(input.push('y'), false);
  assert.equal(sends, 1);
});

test('what waits is bounded', () => {
  const never = new Input(() => new Promise(() => undefined), () => Promise.resolve());
  never.push('x');
  const megabyte = 'y'.repeat(1 << 20);
  assert.equal(never.push(megabyte), true);
  assert.equal(never.push('z'), false);
});
