// The extension in a real VS Code, used as a person would: everything that is
// clicked and typed goes through the browser, and what came of it is looked up
// on the disk and in the server's own record. Started by .ci/story code.
//
// usage: main.mjs [CHAPTER...]   words that begin a chapter's title; default: all
import fs from 'node:fs';
import path from 'node:path';
import { Code } from './workbench.mjs';
import { Confine } from './confine.mjs';
import * as facts from './facts.mjs';
import * as running from './running.mjs';
import * as asking from './asking.mjs';
import * as hostile from './hostile.mjs';
import * as servers from './servers.mjs';
import * as trust from './trust.mjs';
import * as windows from './windows.mjs';
import * as pictures from './pictures.mjs';

const folder = fs.mkdtempSync(path.join(path.dirname(facts.workspace), 'code-'));
const wanted = process.env.PICTURES ? ['pictures'] : process.argv.slice(2);
const started = Date.now();
let passed = 0;
const failures = [];
let screen; // the window that a failing chapter is shown of

// chapter tells one part of the story; on failure the screen is kept where CODE_FAILURES says.
async function chapter(title, tell) {
  if (wanted.length > 0 && !wanted.some((word) => title.startsWith(word))) return;
  const began = Date.now();
  try {
    await tell();
    passed++;
    console.log(`ok   ${title} (${Date.now() - began} ms)`);
  } catch (error) {
    failures.push(title);
    console.log(`FAIL ${title}\n${error.stack}`);
    if (process.env.CODE_FAILURES) await screen?.screenshot(path.join(process.env.CODE_FAILURES, `${failures.length}.png`)).catch(() => {});
  }
}

const settings = { 'security.workspace.trust.enabled': false };
const code = await Code.start(folder, { settings, extensions: [facts.vsix, process.env.PROBE_VSIX] });
console.log(`VS Code runs (${Date.now() - started} ms)`);
try {
  const window = screen = await code.window(facts.workspace);
  const confine = new Confine(window);
  await confine.ready();
  console.log(`the extension is ready (${Date.now() - started} ms)`);
  for (const [title, tell] of [running, asking, hostile, servers, trust, windows, pictures].flatMap((part) => part.chapters)) {
    await chapter(title, () => tell({ code, window, confine, settings, show: (other) => { screen = other; } }));
    screen = window;
    await confine.tidy();
  }
} finally {
  await code.stop();
  if (failures.length > 0) console.log(code.log());
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;
