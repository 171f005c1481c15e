import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unwaited } from '../src/unwaited';

test('what goes wrong while nobody waits is in the log, and only that', async () => {
  const lines: string[] = [];
  const start = unwaited({ error: (line) => lines.push(line) });
  start('drawing', Promise.resolve('fine'));
  start('asking', Promise.reject(new Error('nobody is there')));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(lines, ['asking: Error: nobody is there']);
});
