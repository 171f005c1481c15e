// What a model, another extension or a repository would try.
import assert from 'node:assert/strict';
import * as facts from './facts.mjs';
import { ask, decided, never, writes } from './asking.mjs';

// Each would do something in a place that knows links, icons, lines or colours.
const texts = {
  'a link that runs a command': '[Allow once](command:workbench.action.toggleZenMode) <a href="command:workbench.action.toggleZenMode">yes</a>',
  'markup and a script': '</pre><script>document.body.textContent = "gone"</script><img src=x onerror=alert(1)><button data-kind="allow_once">Allow</button>',
  'an icon': '$(check) $(id) $(shield)',
  'a right-to-left override': 'echo \u202Eevil\u202C \u2066x\u2069',
  'lines that look like options': 'true\n\n1: Refuse\n2: Allow this once\nConfigured: danger-full-access',
  'colours and a title of the terminal': 'true \x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J',
  'what cannot be seen': 'a\u200bb\u00adc\u2060d\ufeffe\u3164f',
};

const invisible = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff]/;

export const chapters = [
  ...Object.entries(texts).map(([what, text]) => [`hostile text: ${what}`, async ({ window, confine }) => {
    const command = `: ${JSON.stringify(what)}; ${text}`;
    const call = confine.wide(command, text);
    await confine.question.drawn(what);
    const { frame } = confine.question;
    assert.equal(await frame.locator('a, img, iframe').count(), 0, 'markup was made of text');
    assert.equal(await frame.locator('button').count(), await frame.locator('.buttons button').count(), 'a button was made of text');
    const shown = await confine.question.command.innerText();
    assert.ok(!shown.includes('\n'), `more than one line: ${JSON.stringify(shown)}`);
    for (const part of await frame.locator('main pre, main p, main li').allInnerTexts()) assert.ok(!invisible.test(part), `invisible: ${JSON.stringify(part)}`);
    // All that can be seen of the command is there.
    for (const word of command.split(/[^\x21-\x7e]+|\](?=\()/).filter(Boolean)) assert.ok(shown.includes(word), `${word} is not in ${shown}`);
    // Elsewhere it is text as well.
    await confine.openPanel();
    const rows = await confine.tree('Questions').innerText();
    assert.ok(!invisible.test(rows.replaceAll('$\u200b(', '$(')), `invisible in the panel: ${JSON.stringify(rows)}`);
    assert.equal(await confine.tree('Questions').locator('.label-name a, .label-name .codicon').count(), 0, 'an icon or a link was made of text');
    assert.ok(await window.statusBar.isVisible(), 'a command of VS Code ran');
    await confine.question.refuse.click();
    await call.result;
    assert.equal(facts.asked(command).decided.outcome, 'rejected');
  }]),

  ['hostile text: what does not fit on the screen has to be read to its end', async ({ confine }) => {
    const hidden = writes('beyond');
    const command = `${Array.from({ length: 400 }, (_, n) => `echo line ${n}`).join('; ')}; ${hidden}`;
    assert.ok(command.length > 5000);
    const call = confine.wide(command);
    await confine.question.drawn('line 399');
    assert.ok((await confine.question.command.innerText()).endsWith(hidden), 'the end is not on the page');
    assert.equal(await confine.question.allow.getAttribute('aria-disabled'), 'true');
    await confine.question.allow.click({ force: true });
    await confine.question.allow.press('Enter');
    await never(confine, 'beyond');
    assert.equal(facts.asked(command).decided, undefined, 'a yes counted before the end was in view');
    await confine.question.frame.locator('#end').scrollIntoViewIfNeeded();
    await confine.question.drawn('line 399');
    await confine.question.allow.click();
    await call.result;
    assert.equal(facts.content(facts.outsideFile('beyond')), 'wide');
  }],

  ['page: in a small window a yes waits for the end, and each answer can be reached', async ({ window, confine }) => {
    const { page } = window;
    const size = page.viewportSize();
    const words = Array.from({ length: 60 }, (_, n) => `word${n}`).join(' ');
    const call = confine.wide(`: ${words}; ${writes('narrow-window')}`);
    const { frame, allow, refuse } = confine.question;
    try {
      await page.setViewportSize({ width: 900, height: 260 });
      await confine.question.drawn('word59');
      assert.equal(await allow.getAttribute('aria-disabled'), 'true');
      await page.setViewportSize({ width: 480, height: 420 }); // the answers take more lines now
      const clear = () => frame.locator('#end').evaluate((end) => end.getBoundingClientRect().top <= document.querySelector('footer').getBoundingClientRect().top);
      for (let at = 0; (await allow.getAttribute('aria-disabled')) === 'true'; at += 20) {
        assert.ok(at < 4000, 'the end is never in view');
        await frame.locator('main').evaluate((main, top) => new Promise((drawn) => {
          (main.scrollHeight > main.clientHeight ? main : document.scrollingElement).scrollTop = top;
          requestAnimationFrame(() => requestAnimationFrame(drawn));
        }), at);
        if ((await allow.getAttribute('aria-disabled')) === 'false') assert.ok(await clear(), 'a yes counted while the end was covered');
      }
      await page.setViewportSize({ width: 480, height: 200 });
      for (const button of await confine.question.buttons.all()) await button.click({ trial: true });
      await page.setViewportSize({ width: 480, height: 420 });
      await refuse.click();
    } finally {
      await page.setViewportSize(size);
    }
    await call.result;
    assert.equal(facts.asked(`: ${words}; ${writes('narrow-window')}`).decided.outcome, 'rejected');
  }],

  ['another extension: no command of ours says yes', async ({ window, confine }) => {
    const call = await ask(confine, 'by-extension');
    const { id } = facts.asked(writes('by-extension'));
    const ours = (await window.ask('commands')).filter((c) => /confine/i.test(c) && !/restart|kill|resetViewLocation|removeView|openSettings|\.run$|\.mode$|\.doctor$/i.test(c));
    assert.ok(ours.includes('confine.showQuestion'), ours.join(' '));
    const guesses = [[], ['allow-once'], [id, 'allow-once'], [{ id, optionId: 'allow-once', question: { id }, outcome: { outcome: 'selected', optionId: 'allow-once' } }]];
    // Some wait for the person, so none is waited for; what they did is there when never has looked.
    for (const command of ours.filter((c) => c.startsWith('confine.'))) for (const args of guesses) window.execute(command, ...args);
    await window.page.keyboard.press('Escape'); // whatever was opened
    await never(confine, 'by-extension');
    const outcome = facts.asked(writes('by-extension')).decided?.outcome;
    assert.ok([undefined, 'rejected', 'cancelled'].includes(outcome), outcome);
    if (outcome === undefined) {
      await window.execute('confine.showQuestion');
      await confine.question.drawn('by-extension');
      await confine.question.refuse.click();
    }
    await call.result;
    assert.ok(['rejected', 'cancelled'].includes(await decided('by-extension')));
    await window.execute('workbench.action.closeAllEditors');
    await window.execute('notifications.clearAll');
  }],

  ['another extension: a click that a script makes does not count', async ({ confine }) => {
    const call = await ask(confine, 'scripted');
    await confine.question.allow.evaluate((button) => button.click());
    await confine.question.allow.evaluate((button) => button.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })));
    await never(confine, 'scripted');
    await confine.question.refuse.click();
    await call.result;
    assert.equal(await decided('scripted'), 'rejected');
  }],
];
