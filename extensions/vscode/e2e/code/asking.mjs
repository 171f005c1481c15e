// Questions: each answer, each way to give none, and what comes of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import * as facts from './facts.mjs';
import { until } from './workbench.mjs';

export const writes = (name) => `printf wide > '${facts.outsideFile(name)}'`;

// ask lets a model ask for a command that writes outside, and waits for the question.
export async function ask(confine, name) {
  const call = confine.wide(writes(name));
  await confine.question.drawn(facts.outsideFile(name));
  return call;
}

// decided waits for what the server recorded of the question.
export const decided = async (name) => (await until(() => facts.asked(writes(name))?.decided, `the question about ${name} is decided`)).outcome;

// never checks that name was not written, also after the server had every chance to.
export async function never(confine, name) {
  await confine.model('true').result;
  await confine.model('true').result;
  assert.ok(!facts.exists(facts.outsideFile(name)), `${name} was written`);
}

export const chapters = [
  ['allow: a click runs the command wider, once', async ({ confine }) => {
    const call = await ask(confine, 'allowed');
    assert.ok(!facts.exists(facts.outsideFile('allowed')), 'it ran before the answer');
    assert.equal(await confine.question.command.innerText(), writes('allowed'));
    await confine.question.allow.click();
    await confine.question.gone();
    await call.result;
    assert.equal(facts.content(facts.outsideFile('allowed')), 'wide');
    assert.equal(await decided('allowed'), 'allowed-once');
    // Once is once: the same command asks again.
    const second = await ask(confine, 'allowed');
    await confine.question.refuse.click();
    assert.match(await second.result, /^Error: /);
  }],

  ['refuse: a click, and the command does not run', async ({ confine }) => {
    const call = await ask(confine, 'refused-by-click');
    await confine.question.refuse.click();
    await confine.question.gone();
    assert.match(await call.result, /^Error: /);
    assert.equal(await decided('refused-by-click'), 'rejected');
    await never(confine, 'refused-by-click');
  }],

  ['dismiss: Escape is no answer, and no answer is no yes', async ({ window, confine }) => {
    const call = await ask(confine, 'escaped');
    await confine.question.frame.locator('#title').click();
    await window.page.keyboard.press('Escape');
    await confine.question.gone();
    await call.result;
    assert.equal(await decided('escaped'), 'cancelled');
    await never(confine, 'escaped');
  }],

  ['dismiss: the page is closed', async ({ window, confine }) => {
    const call = await ask(confine, 'closed');
    await window.execute('workbench.action.closeAllEditors');
    await confine.question.gone();
    await call.result;
    assert.equal(await decided('closed'), 'cancelled');
    await never(confine, 'closed');
  }],

  ['withdrawn: the request is cancelled, and the question goes away', async ({ confine }) => {
    const call = await ask(confine, 'withdrawn');
    await call.cancel();
    await confine.question.gone();
    assert.equal(await decided('withdrawn'), 'cancelled');
    await never(confine, 'withdrawn');
  }],

  ['early keys: nothing that is pressed in the first half second allows', async ({ window, confine }) => {
    // The page's clock stands still, so that the half second is as long as the test needs.
    await window.holdClock(1000);
    const call = confine.wide(writes('early'));
    const { allow, refuse } = confine.question;
    await confine.question.command.filter({ hasText: facts.outsideFile('early') }).waitFor();
    await window.page.keyboard.press('Enter'); // wherever the focus is
    await window.page.keyboard.press('Space');
    await window.holdClock(1499);
    for (const key of ['Enter', 'Space']) await allow.press(key);
    await allow.click({ force: true });
    assert.equal(await allow.getAttribute('aria-disabled'), 'true');
    await confine.model('true').result;
    assert.equal(facts.asked(writes('early')).decided, undefined, 'an early key was an answer');
    assert.ok(!facts.exists(facts.outsideFile('early')));
    await window.holdClock(1500);
    await allow.press('Enter'); // the same key, at its time
    await call.result;
    assert.equal(await decided('early'), 'allowed-once');
    assert.equal(facts.content(facts.outsideFile('early')), 'wide');
    await window.holdClock(undefined);
    assert.equal(await refuse.count(), 0);
  }],

  ['one path: only what was refused is opened', async ({ window, confine }) => {
    const file = facts.outsideFile('folder/narrow');
    fs.mkdirSync(facts.outsideFile('folder'));
    const command = `printf narrow > '${file}' && printf other > '${facts.outsideFile('beside')}'`;
    await confine.run(command);
    await window.toasts.getByRole('button', { name: 'Ask for More…' }).last().click();
    await window.rows.filter({ hasText: 'Only what was refused' }).click();
    await confine.question.drawn(file);
    assert.match(await confine.question.frame.locator('#grants').innerText(), /write .*\/outside\/folder/);
    assert.match(await confine.question.frame.locator('#evidence').innerText(), /create .*\/narrow/);
    await confine.question.allow.click();
    await until(() => facts.holds(file, 'narrow'), 'the command ran again');
    assert.equal(facts.asked(command).wanted.mode, 'workspace-write', 'it left the sandbox');
    assert.ok(!facts.exists(facts.outsideFile('beside')), 'more than the path was opened');
    await window.execute('notifications.clearAll');
  }],

  ['Do Not Disturb: a question is shown all the same', async ({ window, confine }) => {
    await window.palette('Notifications: Toggle Do Not Disturb Mode');
    const call = await ask(confine, 'undisturbed');
    await confine.question.allow.click();
    await call.result;
    assert.equal(facts.content(facts.outsideFile('undisturbed')), 'wide');
    await window.palette('Notifications: Toggle Do Not Disturb Mode');
  }],

  ['several: they come one after the other, and the badge counts them', async ({ window, confine }) => {
    const first = await ask(confine, 'first');
    const second = confine.wide(writes('second'));
    await confine.status.getByText(/^\s*2 · /).waitFor();
    await window.page.locator('.activitybar .badge-content', { hasText: '2' }).waitFor();
    await confine.question.allow.click();
    await confine.question.drawn(facts.outsideFile('second'));
    await confine.question.refuse.click();
    await Promise.all([first.result, second.result]);
    assert.equal(await decided('first'), 'allowed-once');
    assert.equal(await decided('second'), 'rejected');
    await never(confine, 'second');
  }],
];
