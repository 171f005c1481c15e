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

  ['killed: the mode that was chosen still holds', async ({ window, confine }) => {
    const extension = await window.ask('extension');
    const [before] = facts.processes(`${path.join(extension.path, 'bin/confine')} serve`);
    await confine.status.click();
    await window.rows.filter({ hasText: 'read-only' }).click();
    await confine.status.getByText('read-only').waitFor();
    process.kill(before, 'SIGKILL');
    await confine.status.getByText('read-only').waitFor({ state: 'detached' });
    await confine.status.getByText('read-only').waitFor();
    assert.match(await confine.model('echo x > after-kill.txt').result, /denied under read-only mode/);
    await confine.status.click();
    await window.rows.filter({ hasText: 'workspace-write' }).first().click();
    await confine.status.getByText('workspace-write').waitFor();
  }],

  ['settings: new ones wait for the person while something runs, and that is told', async ({ window, confine }) => {
    const extension = await window.ask('extension');
    const serve = `${path.join(extension.path, 'bin/confine')} serve`;
    await confine.run('exec sleep 376');
    await until(() => facts.processes('sleep 376').length > 0, 'the command runs');
    await window.ask('set', { name: 'confine.networkAccess', value: false, target: 'Global' });
    await window.dialog.getByText('The settings of confine changed').waitFor();
    await window.dialog.getByRole('button', { name: 'Cancel' }).click();
    await window.toasts.filter({ hasText: 'do not count yet' }).waitFor();
    assert.ok(facts.processes('sleep 376').length > 0, 'it was ended');
    await window.ask('set', { name: 'confine.networkAccess', target: 'Global' }); // as it was
    await window.ask('set', { name: 'confine.denyRead', value: [facts.outsideFile('denied')], target: 'Global' });
    await window.dialog.getByRole('button', { name: 'Restart' }).click();
    await until(() => facts.processes('sleep 376').length === 0, 'the command has ended');
    await confine.ready();
    const [before] = await until(() => { const found = facts.processes(serve); return found.length === 1 && found; }, 'another server runs');
    await window.ask('set', { name: 'confine.denyRead', target: 'Global' }); // nothing runs: it restarts without a word
    await until(() => { const found = facts.processes(serve); return found.length === 1 && found[0] !== before; }, 'a third server runs');
    await confine.ready();
    await window.execute('notifications.clearAll');
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
