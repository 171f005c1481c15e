// A window with several folders, which is loaded anew.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as facts from './facts.mjs';
import { ask, decided, never } from './asking.mjs';
import { Confine } from './confine.mjs';
import { until } from './workbench.mjs';

const beside = (name) => path.join(path.dirname(facts.workspace), name);

export const chapters = [
  ['folders: of several the person chooses one; and when the window is loaded anew, what waited is no yes', async ({ code, show }) => {
    const [first, second] = ['folder-one', 'folder-two'].map(beside);
    for (const folder of [first, second]) fs.mkdirSync(folder);
    const file = beside('both.code-workspace');
    fs.writeFileSync(file, JSON.stringify({ folders: [{ path: first }, { path: second }], settings: { 'confine.sandboxMode': 'danger-full-access' } }));
    const window = await code.window(first, file);
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
];
