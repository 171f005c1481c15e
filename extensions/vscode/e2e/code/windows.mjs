// Windows that are unlike others: with several folders, loaded anew, and where no page can be drawn.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as facts from './facts.mjs';
import { ask, decided, never, writes } from './asking.mjs';
import { Confine } from './confine.mjs';
import { pause, until } from './workbench.mjs';

const beside = (name) => path.join(path.dirname(facts.workspace), name);

export const chapters = [
  ['folders: of several the person chooses one; and when the window is loaded anew, what waited is no yes', async ({ code, show }) => {
    const [first, second] = ['folder-one', 'folder-two'].map(beside);
    for (const folder of [first, second]) fs.mkdirSync(folder);
    const file = beside('both.code-workspace');
    fs.writeFileSync(file, JSON.stringify({ folders: [{ path: first }, { path: second }], settings: { 'confine.sandboxMode': 'danger-full-access' } }));
    const window = await code.window(first, { workspaceFile: file });
    show(window);
    try {
      const confine = new Confine(window);
      await confine.ready();
      assert.match(await confine.status.innerText(), /workspace-write/);
      await confine.run('pwd > where.txt');
      await window.rows.filter({ hasText: second }).click();
      await until(() => facts.holds(path.join(second, 'where.txt'), `${second}\n`), 'the command ran in the folder that was picked');
      assert.equal(await confine.model('pwd').result, `${first}\n`);

      await ask(confine, 'reloaded');
      await code.reload(window, first);
      await confine.ready();
      assert.notEqual(await decided('reloaded'), 'allowed-once');
      assert.equal(await confine.question.tab.count(), 0, 'the old question is shown');
      await never(confine, 'reloaded');
      const again = await ask(confine, 'asked-anew');
      await confine.question.refuse.click();
      await again.result;
    } finally {
      await window.close();
    }
  }],

  ['no page: where none can be drawn a dialog asks, and obeys no late answer', async ({ code, show }) => {
    const folder = beside('without-pages');
    fs.mkdirSync(folder);
    const context = await code.newContext({ serviceWorkers: 'block' }); // which pages of extensions need
    const window = await code.window(folder, { context });
    show(window);
    try {
      const confine = new Confine(window);
      const answer = (name) => window.dialog.getByRole('button', { name });
      // What comes in the first half second of a dialog does not count, and has it ask again.
      const answered = (name, give) => until(async () => {
        await pause(700);
        return facts.asked(writes(name)).decided || (await give(), false);
      }, 'the answer counts');
      await confine.ready();
      const refused = confine.wide(writes('by-dialog'));
      await window.dialog.getByText(facts.outsideFile('by-dialog')).waitFor();
      await window.page.keyboard.press('Enter'); // at once, and again when it counts
      await answered('by-dialog', () => window.page.keyboard.press('Enter'));
      assert.match(await refused.result, /^Error: /);
      assert.equal(await decided('by-dialog'), 'rejected');

      const late = confine.wide(writes('late'));
      await window.dialog.getByText(facts.outsideFile('late')).waitFor();
      await late.cancel();
      assert.equal(await decided('late'), 'cancelled');
      await answer('Allow this once').click();
      await never(confine, 'late');

      const allowed = confine.wide(writes('allowed-by-dialog'));
      await window.dialog.getByText(facts.outsideFile('allowed-by-dialog')).waitFor();
      await answered('allowed-by-dialog', () => answer('Allow this once').click({ timeout: 1000 }).catch(() => {}));
      await allowed.result;
      assert.equal(facts.content(facts.outsideFile('allowed-by-dialog')), 'wide');
    } finally {
      await context.close();
    }
  }],
];
