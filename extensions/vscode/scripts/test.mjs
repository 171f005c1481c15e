// Bundles the unit tests and runs them with node:test. They import nothing of
// VS Code.  usage: node scripts/test.mjs [FILE...]
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const files = process.argv.length > 2 ? process.argv.slice(2) : fs.readdirSync('test').filter((f) => f.endsWith('.test.ts')).map((f) => path.join('test', f));
const out = path.resolve('dist-test');
fs.rmSync(out, { recursive: true, force: true });
try {
  await build({ absWorkingDir: process.cwd(), entryPoints: files, outdir: out, outExtension: { '.js': '.mjs' }, bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external', sourcemap: 'inline', logLevel: 'warning' });
  const tests = fs.readdirSync(out).map((f) => path.join(out, f));
  process.exitCode = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...tests], { stdio: 'inherit' }).status ?? 1;
} finally {
  fs.rmSync(out, { recursive: true, force: true });
}
