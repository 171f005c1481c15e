import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Tool } from '../src/protocol';
import { call } from '../src/tool';

const tool: Tool = {
  name: 'bash', description: '', inputSchema: {},
  arguments: [{ name: 'command', field: 'command' }, { name: 'description' }, { name: 'workdir', field: 'cwd' }, { name: 'timeoutMs', field: 'timeoutMs' }, { name: 'pty', field: 'pty' }, { name: 'permissions', field: 'sandboxPermissions' }],
};

test('arguments become fields as the server says', () => {
  const input = { command: 'make', description: 'builds', workdir: '/w', timeoutMs: 5, permissions: 'workspace-write' };
  assert.deepEqual(call(tool, input), { command: 'make', cwd: '/w', purpose: 'builds', params: { timeoutMs: 5, sandboxPermissions: 'workspace-write' } });
});

test('what the server does not name, or no model may set, counts for nothing', () => {
  assert.deepEqual(call(tool, { command: 'x', mode: 'danger-full-access', runId: 'mine', cwd: '/etc', pty: {} }).params, {});
  assert.equal(call(tool, { command: 'x', cwd: '/etc' }).cwd, undefined);
});

test('a call without a command is an error that says so', () => {
  for (const input of [{}, { command: '' }, { command: 5 }, { command: null }]) assert.throws(() => call(tool, input), /command/);
});
