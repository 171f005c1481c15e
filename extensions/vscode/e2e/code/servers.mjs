// The server's own life: it is killed, replaced, and stops waiting.
import assert from 'node:assert/strict';
import path from 'node:path';
import * as facts from './facts.mjs';
import { ask, decided, never, writes } from './asking.mjs';
import { until } from './workbench.mjs';

export const chapters = [
  ['killed: the server is started again, and says what became of its runs', async ({ window, confine }) => {
    const extension = await window.ask('extension');
    const serve = `${path.join(extension.path, 'bin/confine')} serve`;
    const [before] = facts.processes(serve);
    const lost = confine.model('exec sleep 373');
    await until(() => facts.processes('sleep 373').length > 0, 'the command runs');
    const asked = await ask(confine, 'orphaned');
    process.kill(before, 'SIGKILL');
    await confine.question.gone();
    assert.match(await lost.result.catch(String), /Error/);
    await asked.result.catch(() => {});
    await until(() => facts.processes('sleep 373').length === 0, 'the command has ended');
    const [after] = await until(() => { const found = facts.processes(serve).filter((pid) => pid !== before); return found.length === 1 && found; }, 'the server runs again');
    assert.notEqual(after, before);
    await confine.ready();
    assert.equal(await confine.model('echo again').result, 'again\n');
    await never(confine, 'orphaned');
  }],

  ['restart: by the palette, into one server and not two', async ({ window, confine }) => {
    const extension = await window.ask('extension');
    const serve = `${path.join(extension.path, 'bin/confine')} serve`;
    const [before] = facts.processes(serve);
    await window.palette('Confine: Restart the Server');
    await until(() => { const found = facts.processes(serve); return found.length === 1 && found[0] !== before; }, 'another server runs');
    await confine.ready();
    assert.equal(await confine.model('echo restarted').result, 'restarted\n');
  }],

  ['expired: nobody answers in time, and the question goes away', async ({ window, confine }) => {
    await window.ask('set', { name: 'confine.serverPath', value: facts.hasty, target: 'Global' });
    await until(() => facts.processes(`${facts.hasty} serve`).length === 1, 'the server of the setting runs');
    await confine.ready();
    const call = confine.wide(writes('expired'));
    assert.match(await call.result, /^Error: /);
    assert.equal(await decided('expired'), 'timed-out');
    await confine.question.gone();
    await window.toasts.filter({ hasText: 'Nobody answered' }).waitFor();
    await never(confine, 'expired');
    await window.execute('notifications.clearAll');
  }],

  ['missing: a program that is none is named, and nothing runs', async ({ window, confine }) => {
    await window.ask('set', { name: 'confine.serverPath', value: '/nowhere/confine', target: 'Global' });
    await window.toasts.filter({ hasText: 'There is no confine to start' }).waitFor();
    await confine.status.getByText('not found').waitFor();
    assert.match(await confine.model('echo unconfined > unconfined.txt').result.catch(String), /Error/);
    assert.ok(!facts.exists(path.join(facts.workspace, 'unconfined.txt')));
    await window.ask('set', { name: 'confine.serverPath', target: 'Global' });
    await confine.ready();
    await window.execute('notifications.clearAll');
  }],
];
