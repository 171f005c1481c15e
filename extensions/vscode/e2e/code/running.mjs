// Commands of a person and of a model that need no question.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as facts from './facts.mjs';
import { toolName } from './confine.mjs';
import { until } from './workbench.mjs';

const made = (name) => path.join(facts.workspace, name);

export const chapters = [
  ['activation: the program that comes with the extension is started', async ({ window, confine }) => {
    await confine.ready();
    const extension = await window.ask('extension');
    assert.equal(extension.active, true);
    assert.equal(extension.exports, null, 'other extensions get something to call');
    const program = path.join(extension.path, 'bin/confine');
    assert.equal(facts.processes(`${program} serve`).length, 1);
    assert.match(await confine.status.innerText(), /workspace-write/);
  }],

  ['palette: a command runs, and its colours are shown', async ({ window, confine }) => {
    await confine.run("printf 'from the palette' > made.txt; printf '\\033[32mgre%s\\033[0m\\n' en");
    await until(() => facts.holds(made('made.txt'), 'from the palette'), 'the command has run');
    const green = window.page.locator('.xterm-rows .xterm-fg-2', { hasText: 'green' });
    await green.waitFor();
    fs.rmSync(made('made.txt'));
  }],

  ['terminal: a command that is typed into hears it', async ({ window, confine }) => {
    await confine.run("read -r line; printf '%s' \"$line\" > typed.txt");
    await until(() => facts.processes('read -r line').length > 0, 'the command runs');
    const terminal = window.page.locator('.terminal-wrapper.active .xterm-screen');
    await terminal.click();
    await window.page.keyboard.type('hello you');
    await window.page.keyboard.press('Enter');
    await until(() => facts.holds(made('typed.txt'), 'hello you'), 'the command has read a line');
    await until(() => facts.processes('read -r line').length === 0, 'the command has ended');
    fs.rmSync(made('typed.txt'));
  }],

  ['terminal: what is too much for it is counted, and the end is shown', async ({ window, confine }) => {
    const file = made('flooded.txt');
    await confine.run(`yes "$(printf '%0200d')" | head -c 64000000; echo the-en''d; touch flooded.txt`);
    await until(() => facts.exists(file), 'the command has ended');
    const rows = window.page.locator('.terminal-wrapper.active .xterm-rows');
    await rows.getByText('the-end').waitFor();
    await rows.getByText(/\[confine\] \d{6,} bytes of its output are not shown here/).waitFor();
    fs.rmSync(file);
  }],

  ['terminal: closing it ends the person\'s command, and not a model\'s that it shows', async ({ window, confine }) => {
    await confine.run('exec sleep 374');
    await until(() => facts.processes('sleep 374').length > 0, 'the command runs');
    await window.execute('workbench.action.terminal.kill');
    await until(() => facts.processes('sleep 374').length === 0, 'the command has ended');

    const call = confine.model('echo shown; exec sleep 375');
    await until(() => facts.processes('sleep 375').length > 0, 'the command runs');
    await confine.openPanel();
    await confine.row('Runs', 'sleep 375').click();
    await window.page.locator('.terminal-wrapper.active .xterm-rows').getByText('shown', { exact: true }).waitFor();
    await window.execute('workbench.action.terminal.kill');
    await until(async () => (await window.ask('terminals')).every((name) => !name.includes('sleep 375')), 'the terminal is closed');
    await confine.model('true').result; // what would have ended it has by now
    assert.ok(facts.processes('sleep 375').length > 0, 'it was ended');
    await call.cancel();
    await call.result.catch(() => {});
    await until(() => facts.processes('sleep 375').length === 0, 'the command has ended');
  }],

  ['selection: what is selected runs, and nothing around it', async ({ window, confine }) => {
    const script = made('script.sh');
    fs.writeFileSync(script, 'echo before > before.txt\necho chosen > chosen.txt\necho after > after.txt\n');
    await window.ask('open', { file: script });
    await window.ask('select', { from: [1, 0], to: [1, 24] });
    await window.palette('Confine: Run the Selection');
    await until(() => facts.exists(made('chosen.txt')), 'the selection has run');
    await confine.model('true').result; // whatever ran beside it has begun by now
    assert.ok(!facts.exists(made('before.txt')) && !facts.exists(made('after.txt')));
    await window.execute('workbench.action.closeAllEditors');
    for (const file of [script, made('chosen.txt')]) fs.rmSync(file);
  }],

  ['model: the tool is listed, runs in the sandbox, and tells the refusal', async ({ window, confine }) => {
    const tool = (await window.ask('tools')).find((t) => t.name === toolName);
    assert.ok(tool, 'the tool is not listed');
    assert.ok(!/workspace-write mode is|current mode/i.test(tool.description), 'the text names the mode in force');
    const file = facts.outsideFile('by-model');
    assert.equal(await confine.model('echo $((40 + 2))').result, '42\n');
    const told = await confine.model(`echo x > '${file}'`).result;
    assert.match(told, /\[sandbox: file access denied under workspace-write mode\]/);
    assert.match(told, /\[exit code: 1\]/);
    assert.ok(!facts.exists(file));
  }],

  ['model: a call that is cancelled ends its command', async ({ confine }) => {
    const call = confine.model('touch began.txt; exec sleep 371');
    await until(() => facts.exists(made('began.txt')), 'the command runs');
    await call.cancel();
    await call.result.catch(() => {});
    await until(() => facts.processes('sleep 371').length === 0, 'the command has ended');
    fs.rmSync(made('began.txt'));
  }],

  ['refusal: what was refused is shown, and nothing was written', async ({ window, confine }) => {
    const file = facts.outsideFile('refused');
    await confine.run(`echo x > '${file}'`);
    const toast = window.toasts.filter({ hasText: 'The sandbox refused something' });
    await toast.getByRole('button', { name: 'Show What Was Refused' }).click();
    await confine.tree('Runs').waitFor();
    await confine.row('Runs', 'exit status 1, ').first().waitFor();
    await until(async () => (await confine.tree('Runs').innerText()).includes(`create ${file}`), 'the refused path is shown');
    assert.ok(!facts.exists(file));
  }],

  ['panel: the state of the sandbox in plain words', async ({ confine }) => {
    await confine.openPanel();
    const text = async () => (await confine.tree('Sandbox').innerText()).replaceAll('\n', ' ');
    await until(async () => /Commands run in workspace-write, confined by (landlock|bwrap)\./.test(await text()), 'the mode is told');
    assert.match(await text(), /Changing files ?confined/);
    assert.match(await confine.tree('Questions').innerText(), /No question waits/);
    assert.match(await confine.tree('Runs').innerText(), /model/);
  }],

  ['kill: a run is ended from the palette', async ({ window, confine }) => {
    await confine.run('exec sleep 372');
    await until(() => facts.processes('sleep 372').length > 0, 'the command runs');
    await window.palette('Confine: End a Run…');
    await until(() => facts.processes('sleep 372').length === 0, 'the command has ended');
  }],

  ['mode: it is made narrower by the status bar, and never wider', async ({ window, confine }) => {
    await confine.status.click();
    await window.rows.filter({ hasText: 'read-only' }).waitFor();
    assert.equal(await window.rows.filter({ hasText: /danger-full-access|external-sandbox/ }).count(), 0, 'a wider mode is offered');
    await window.rows.filter({ hasText: 'read-only' }).click();
    await confine.status.getByText('read-only').waitFor();
    assert.match(await confine.model('echo x > narrowed.txt').result, /denied under read-only mode/);
    assert.ok(!facts.exists(made('narrowed.txt')));
    await confine.status.click();
    await window.rows.filter({ hasText: 'workspace-write' }).first().click();
    await confine.status.getByText('workspace-write').waitFor();
    await confine.model('echo x > widened.txt').result;
    assert.ok(facts.exists(made('widened.txt')));
    fs.rmSync(made('widened.txt'));
  }],

  ['diagnostics: they are copied, and the doctor shows the same', async ({ window }) => {
    await window.palette('Confine: Copy Diagnostics');
    const toast = window.toasts.filter({ hasText: 'diagnostics are in the clipboard' });
    await toast.waitFor();
    const text = await window.ask('text', { uri: 'confine:/doctor.txt' });
    assert.match(text, /workspace-write/);
    assert.equal(await window.ask('clipboard'), text);
    await window.execute('notifications.clearAll');
  }],
];
