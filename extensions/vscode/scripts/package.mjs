// Packs the extension for each platform, with the program for it inside.
// usage: node scripts/package.mjs [--out FOLDER] [--program FILE] [PLATFORM...]
// Without platforms: for all of them. --program takes a program that is built
// already; it makes sense for one platform. Nothing is packed but what is listed here.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createVSIX } from '@vscode/vsce';

const root = path.resolve(import.meta.dirname, '..');
const module = path.resolve(root, '../..'); // the Go module, with the licence and the pictures

// What Go calls the platforms of VS Code's marketplace.
const platforms = {
  'linux-x64': { GOOS: 'linux', GOARCH: 'amd64' },
  'linux-arm64': { GOOS: 'linux', GOARCH: 'arm64' },
  'darwin-x64': { GOOS: 'darwin', GOARCH: 'amd64' },
  'darwin-arm64': { GOOS: 'darwin', GOARCH: 'arm64' },
  'win32-x64': { GOOS: 'windows', GOARCH: 'amd64' },
};
const program = (platform) => (platform.startsWith('win32') ? 'bin/confine.exe' : 'bin/confine');

// Folders are taken with everything in them, so that a new picture needs no word here.
const packed = ['README.md', 'CHANGELOG.md', 'dist', 'media'];

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string', default: path.join(root, 'packages') }, program: { type: 'string' } } });
  const wanted = positionals.length > 0 ? positionals : Object.keys(platforms);
  const unknown = wanted.filter((platform) => !platforms[platform]);
  if (unknown.length > 0) throw new Error(`unknown platform: ${unknown.join(', ')}; known: ${Object.keys(platforms).join(', ')}`);
  if (values.program && wanted.length !== 1) throw new Error('--program is for one platform; name it');
  fs.mkdirSync(values.out, { recursive: true });
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' });
  for (const platform of wanted) console.log(await pack(platform, path.resolve(values.out), values.program));
}

// pack makes the package of one platform and gives its path.
async function pack(platform, out, built) {
  const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const stage = fs.mkdtempSync(path.join(os.tmpdir(), 'confine-package-'));
  try {
    for (const name of packed) fs.cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
    fs.cpSync(path.join(module, 'docs/images'), path.join(stage, 'media'), { recursive: true }); // for the walkthrough
    fs.copyFileSync(path.join(module, 'LICENSE'), path.join(stage, 'LICENSE'));
    // What only a checkout needs would be one more thing that VS Code's users carry about.
    const { scripts, devDependencies, dependencies, private: _, ...published } = manifest;
    fs.writeFileSync(path.join(stage, 'package.json'), JSON.stringify(published, null, 2) + '\n');
    fs.writeFileSync(path.join(stage, '.vscodeignore'), ''); // everything in the stage is meant
    place(platform, path.join(stage, program(platform)), manifest.version, built);
    const file = path.join(out, `confine-${platform}-${manifest.version}.vsix`);
    const page = manifest.homepage.replace(/#.*/, '');
    await createVSIX({
      cwd: stage, target: platform, packagePath: file, dependencies: false,
      baseContentUrl: `${page}/blob/HEAD/${manifest.repository.directory}`, baseImagesUrl: `${page}/raw/HEAD/${manifest.repository.directory}`,
    });
    return file;
  } finally {
    fs.rmSync(stage, { recursive: true, force: true });
  }
}

function place(platform, target, version, built) {
  fs.mkdirSync(path.dirname(target));
  if (built) {
    fs.copyFileSync(built, target);
  } else {
    execFileSync('go', ['build', '-trimpath', '-ldflags', `-s -w -X main.version=v${version}`, '-o', target, './cmd/confine'],
      { cwd: module, stdio: 'inherit', env: { ...process.env, CGO_ENABLED: '0', ...platforms[platform] } });
  }
  fs.chmodSync(target, 0o755);
}

await main();
