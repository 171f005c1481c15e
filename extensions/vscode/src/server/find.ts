// Finds the confine program and makes sure that it is one. VS Code-free.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { protocolVersion } from '../protocol';

/** A program that said what it is. */
export interface Found {
  path: string;
  source: 'setting' | 'PATH' | 'bundled';
  version: string;
}

/** Why there is no program to start; each of tried is a sentence. */
export class NotFoundError extends Error {
  constructor(readonly tried: string[]) {
    super(tried.join(' ') || 'There is no confine on PATH, and none came with this extension.');
  }
}

/** Where to look. */
export interface Places {
  setting: string; // an absolute path; empty: not set
  pathVariable: string;
  bundled: string;
  workspace: string[]; // folders of which no program is started
  platform?: NodeJS.Platform;
}

/**
 * find gives the program that the setting names or, without one, the first usable
 * of PATH and the bundled one. A setting that names no usable program is an error:
 * whoever wrote it wants to know.
 */
export async function find(places: Places): Promise<Found> {
  if (places.setting) {
    if (!path.isAbsolute(places.setting)) throw new NotFoundError([`The setting confine.serverPath is "${places.setting}", which is no absolute path.`]);
    const version = await check(places.setting);
    if (typeof version !== 'string') throw new NotFoundError([`The setting confine.serverPath names ${places.setting}: ${version.problem}.`]);
    return { path: places.setting, source: 'setting', version };
  }
  const tried: string[] = [];
  for (const [source, file] of candidates(places)) {
    const version = await check(file);
    if (typeof version === 'string') return { path: file, source, version };
    tried.push(`${file}: ${version.problem}.`);
  }
  throw new NotFoundError(tried);
}

// candidates are the programs that exist. A repository can put its own folders
// on PATH, by a terminal's settings or node_modules/.bin: what lies in the
// workspace is never one.
function* candidates(places: Places): Generator<['PATH' | 'bundled', string]> {
  const windows = (places.platform ?? process.platform) === 'win32';
  const name = windows ? 'confine.exe' : 'confine';
  for (const folder of places.pathVariable.split(windows ? ';' : ':')) {
    if (!path.isAbsolute(folder)) continue;
    const file = path.join(folder, name);
    const real = realFile(file);
    if (real && !places.workspace.some((root) => within(real, root) || within(file, root))) yield ['PATH', file];
  }
  if (realFile(places.bundled)) yield ['bundled', places.bundled];
}

function realFile(file: string): string | undefined {
  try {
    const real = fs.realpathSync(file);
    return fs.statSync(real).isFile() ? real : undefined;
  } catch {
    return undefined; // nothing there, or nothing that we may look at
  }
}

function within(file: string, folder: string): boolean {
  for (const root of [folder, realFolder(folder)]) {
    const relative = path.relative(root, file);
    if (relative !== '..' && !relative.startsWith('..' + path.sep) && !path.isAbsolute(relative)) return true;
  }
  return false;
}

function realFolder(folder: string): string {
  try {
    return fs.realpathSync(folder);
  } catch {
    return folder;
  }
}

// check is the version of a program, or why it cannot be used.
function check(file: string): Promise<string | { problem: string }> {
  return new Promise((resolve) => {
    execFile(file, ['version', '--json'], { timeout: 10000, maxBuffer: 1 << 20, windowsHide: true, cwd: path.dirname(file) }, (error, stdout) => {
      if (error) return resolve({ problem: error.code === 'ENOENT' ? 'it does not exist' : error.code === 'EACCES' ? 'it may not be executed' : 'it did not say its version' });
      try {
        const facts = JSON.parse(stdout) as { version?: unknown; protocolVersion?: unknown };
        if (typeof facts.version !== 'string' || typeof facts.protocolVersion !== 'number') return resolve({ problem: 'it is not confine' });
        if (facts.protocolVersion < protocolVersion) return resolve({ problem: `confine ${facts.version} is too old for this extension` });
        resolve(facts.version);
      } catch {
        resolve({ problem: 'it is not confine' });
      }
    });
  });
}
