import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../src/server/restart';

test('waits grow, and then it gives up', () => {
  const backoff = new Backoff([1, 2, 4], 1000);
  assert.deepEqual([0, 0, 0, 0, 0].map((lived) => backoff.ended(lived)), [1, 2, 4, undefined, undefined]);
});

test('a server that lived for long is no failure', () => {
  const backoff = new Backoff([1, 2], 1000);
  assert.deepEqual([0, 0, 1000, 0, 0].map((lived) => backoff.ended(lived)), [1, 2, 1, 2, undefined]);
});

test('a start that the person wants is a new beginning', () => {
  const backoff = new Backoff([1], 1000);
  assert.equal(backoff.ended(0), 1);
  assert.equal(backoff.ended(0), undefined);
  backoff.reset();
  assert.equal(backoff.ended(0), 1);
});
