// Programs here are shell scripts that say a version, and no confine.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { find, NotFoundError } from '../src/server/find';

let top: string;
before(() => {
  top = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'confine-find-')));
});
after(() => fs.rmSync(top, { recursive: true }));

function program(name: string, prints: string, mode = 0o755): string {
  const file = path.join(top, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `#!/bin/sh\n[ "$*" = "version --json" ] && echo '${prints}'\n`, { mode });
  return file;
}
const good = (version: string) => JSON.stringify({ version, protocolVersion: 1 });
const places = (more: Partial<Parameters<typeof find>[0]>) => ({ setting: '', pathVariable: '', bundled: path.join(top, 'none'), workspace: [], ...more });

const windows = process.platform === 'win32' ? 'scripts are no programs on Windows' : false;

test('the setting decides', { skip: windows }, async () => {
  const named = program('named/my-confine', good('v2'));
  program('p1/confine', good('v1'));
  assert.deepEqual(await find(places({ setting: named, pathVariable: path.join(top, 'p1') })), { path: named, source: 'setting', version: 'v2' });
});

test('a setting that names no usable program is an error, whatever else there is', { skip: windows }, async () => {
  const pathVariable = path.dirname(program('p2/confine', good('v1')));
  const wrong = [path.join(top, 'absent'), 'relative/confine', program('w1', 'hello'), program('w2', '{"version":"v0","protocolVersion":0}'), program('w3', good('v1'), 0o644)];
  for (const setting of wrong) await assert.rejects(find(places({ setting, pathVariable })), (e: Error) => e instanceof NotFoundError && e.message.includes(setting), setting);
});

test('PATH comes before what is bundled, in its order', { skip: windows }, async () => {
  const bundled = program('bin/confine', good('bundled'));
  const pathVariable = ['a', 'b'].map((d) => path.dirname(program(`order-${d}/confine`, good(d)))).join(':');
  assert.equal((await find(places({ pathVariable, bundled }))).version, 'a');
  assert.deepEqual(await find(places({ bundled })), { path: bundled, source: 'bundled', version: 'bundled' });
});

test('what is no confine or too old is passed over', { skip: windows }, async () => {
  const bundled = program('bin2/confine', good('bundled'));
  const folders = [program('old/confine', '{"version":"v0","protocolVersion":0}'), program('other/confine', 'usage: confine FILE')].map((f) => path.dirname(f));
  assert.equal((await find(places({ pathVariable: folders.join(':'), bundled }))).source, 'bundled');
  await assert.rejects(find(places({ pathVariable: folders.join(':') })), (e: Error) => folders.every((f) => e.message.includes(f)));
});

test('nothing of the workspace is started, also by a link or a relative folder', { skip: windows }, async () => {
  const inside = program('ws/node_modules/.bin/confine', good('planted'));
  fs.mkdirSync(path.join(top, 'links'));
  fs.symlinkSync(inside, path.join(top, 'links/confine'));
  fs.symlinkSync(path.join(top, 'ws'), path.join(top, 'ws-link'));
  for (const workspace of [path.join(top, 'ws'), path.join(top, 'ws-link')]) {
    for (const pathVariable of [path.dirname(inside), path.join(top, 'links'), path.join(top, 'ws-link/node_modules/.bin'), 'ws/node_modules/.bin', '.', '']) {
      await assert.rejects(find(places({ pathVariable, workspace: [workspace] })), NotFoundError, `${pathVariable} in ${workspace}`);
    }
  }
});
