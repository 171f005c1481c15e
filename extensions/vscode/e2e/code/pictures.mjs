// The pictures of docs/images, made by the test that would notice if they were
// no longer true. Only with PICTURES, the folder to put them in: pngquant 64 makes
// them small. The paths in them are those of the work folder, see CONFINE_CI_WORK.
import fs from 'node:fs';
import path from 'node:path';
import * as facts from './facts.mjs';

const folder = process.env.PICTURES;
// Each with a command of its own: what was refused is not asked again.
const themes = { light: ['Default Light Modern', 'date'], dark: ['Default Dark Modern', 'date -u'] };

export const chapters = !folder ? [] : [
  ['pictures', async ({ window, confine }) => {
    fs.mkdirSync(folder, { recursive: true });
    const report = path.relative(facts.workspace, facts.outsideFile('report.txt'));
    const picture = async (name, clip) => {
      await window.settled();
      await window.screenshot(path.join(folder, `vscode-${name}.png`), { clip });
    };
    await window.execute('workbench.action.closePanel');
    await window.execute('workbench.action.closeAllEditors');
    for (const [name, [theme, program]] of Object.entries(themes)) {
      await window.ask('set', { name: 'workbench.colorTheme', value: theme, target: 'Global' });
      await confine.model('grep -c package story.go', { description: 'look at the project' }).result;
      const told = await confine.model(`${program} > ${report}`, { description: 'write the report' }).result;
      if (!told.includes('denied')) throw new Error(told);
      const call = confine.wide(`${program} > ${report}`, 'The report goes beside the project.');
      await confine.question.drawn(report);
      await confine.openPanel();
      await confine.row('Questions', 'date').waitFor();
      await picture(`question-${name}`, { x: 352, y: 0, width: 928, height: 620 });
      await picture(`panel-${name}`, { x: 0, y: 0, width: 352, height: 800 });
      await picture(`status-${name}`, { x: 0, y: 768, width: 560, height: 32 });
      await confine.question.refuse.click();
      await call.result;
    }
    await window.ask('set', { name: 'workbench.colorTheme', target: 'Global' });
  }],
];
