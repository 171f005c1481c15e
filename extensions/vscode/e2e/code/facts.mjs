// What really happened: files on the disk, processes, and the record that the
// server keeps of every question. No check looks at the screen alone.
import fs from 'node:fs';
import path from 'node:path';

const need = (name) => process.env[name] || fail(`${name} is not set; start this with .ci/story code`);
function fail(message) { throw new Error(message); }

export const workspace = need('STORY_WORKSPACE'); // a git repository with a Go module
export const outside = need('STORY_OUTSIDE'); // beside it: writable for us, not for commands
export const vsix = need('CONFINE_VSIX');
export const hasty = need('CONFINE_HASTY_BIN'); // waits two seconds for an answer
export const home = need('HOME');

export const outsideFile = (name) => path.join(outside, name);
export const exists = (file) => fs.existsSync(file);
export const content = (file) => fs.readFileSync(file, 'utf8');
export const holds = (file, text) => exists(file) && content(file) === text;

const auditFile = path.join(need('XDG_STATE_HOME'), 'confine/audit.jsonl');

// audit lists all records so far.
export function audit() {
  if (!fs.existsSync(auditFile)) return [];
  return fs.readFileSync(auditFile, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

// asked is the record of the question about command, with what became of it as
// decided; undefined if nobody was asked.
export function asked(command) {
  const records = audit();
  const question = records.findLast((r) => r.event === 'asked' && r.command === command);
  return question && { ...question, decided: records.find((r) => r.event === 'decided' && r.id === question.id) };
}

// processes lists the ids of all processes whose command line holds text.
export function processes(text) {
  return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid)).filter((pid) => {
    try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text); } catch { return false; }
  }).map(Number);
}
