import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChosenMode, within } from '../src/mode';
import type { Mode } from '../src/protocol';

test('a narrower mode than the configured one needs no question', () => {
  assert.deepEqual(within('read-only', ['/w']), ['read-only']);
  assert.deepEqual(within('workspace-write', ['/w']), ['read-only', 'workspace-write']);
  assert.deepEqual(within('workspace-write', []), ['read-only']);
  assert.deepEqual(within('danger-full-access', ['/w']), ['read-only', 'workspace-write', 'danger-full-access']);
  assert.deepEqual(within('external-sandbox', []), ['read-only', 'external-sandbox']);
});

// chosen is a window in which a mode was chosen while before was configured, and after is by now.
function chosen(mode: Mode, before: Mode, after: { mode: Mode; roots: string[] } | undefined) {
  let known: { mode: Mode; roots: string[] } | undefined = { mode: before, roots: ['/w'] };
  const choice = new ChosenMode(() => known, () => undefined);
  choice.choose(mode);
  known = after;
  return choice;
}

test('what is configured needs not be sent', () => {
  const choice = chosen('workspace-write', 'workspace-write', { mode: 'workspace-write', roots: ['/w'] });
  assert.equal(choice.wanted, undefined);
  assert.equal(choice.inForce, 'workspace-write');
});

test('a narrower choice lasts over a restart, while nothing is known of the new server', () => {
  const choice = chosen('read-only', 'workspace-write', undefined);
  assert.equal(choice.wanted, 'read-only');
  assert.equal(choice.inForce, 'read-only');
});

test('a choice that cannot be had any more becomes narrower, never wider', () => {
  const noRoots = chosen('workspace-write', 'danger-full-access', { mode: 'danger-full-access', roots: [] });
  assert.equal(noRoots.wanted, 'read-only');
  assert.equal(noRoots.inForce, 'read-only');
  const narrowed = chosen('workspace-write', 'danger-full-access', { mode: 'read-only', roots: ['/w'] });
  assert.equal(narrowed.inForce, 'read-only');
  const widened = chosen('read-only', 'workspace-write', { mode: 'danger-full-access', roots: ['/w'] });
  assert.equal(widened.wanted, 'read-only');
});
