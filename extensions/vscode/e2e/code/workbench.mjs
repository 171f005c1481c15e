// A real VS Code: its server, a browser that shows it, and hands for both.
// Nothing here knows confine.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const tools = process.env.CODE_TOOLS ?? fail('CODE_TOOLS is not set; start this with .ci/story code');
const { chromium } = createRequire(pathToFileURL(tools + '/'))('playwright-core');
const entry = path.join(tools, 'node_modules/code-server/out/node/entry.js');
const run = promisify(execFile);

function fail(message) { throw new Error(message); }

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// until resolves with what look gives once that is true.
export async function until(look, what, ms = 60000) {
  for (const end = Date.now() + ms; ;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`waited ${ms} ms until ${what}`);
    await pause(50);
  }
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const quiet = {
  'workbench.startupEditor': 'none', 'workbench.tips.enabled': false, 'workbench.reduceMotion': 'on', 'workbench.enableExperiments': false,
  'telemetry.telemetryLevel': 'off', 'update.mode': 'none', 'extensions.autoCheckUpdates': false, 'extensions.ignoreRecommendations': true,
  'chat.disableAIFeatures': true, 'git.enabled': false, 'window.commandCenter': false, 'workbench.layoutControl.enabled': false,
  'remote.autoForwardPorts': false, 'terminal.integrated.gpuAcceleration': 'off', 'workbench.secondarySideBar.defaultVisibility': 'hidden',
};

// Code is one VS Code server. The person's settings are its file.
export class Code {
  #windows = [];
  #probes = new Map(); // folder -> what resolves with its Probe

  constructor(folder) {
    this.folder = folder;
    this.settingsFile = path.join(folder, 'user/User/settings.json');
  }

  // start installs the extensions (.vsix files) in a fresh profile below folder and starts.
  static async start(folder, { settings = {}, extensions, env = {} }) {
    const code = new Code(folder);
    for (const dir of ['user/User', 'extensions']) fs.mkdirSync(path.join(folder, dir), { recursive: true });
    fs.writeFileSync(path.join(folder, 'config.yaml'), '{}\n');
    code.settings(settings);
    const common = ['--config', path.join(folder, 'config.yaml'), '--user-data-dir', path.join(folder, 'user'), '--extensions-dir', path.join(folder, 'extensions')];
    await run(process.execPath, [entry, ...common, ...extensions.flatMap((file) => ['--install-extension', file])]);

    code.socket = path.join(folder, 'probe');
    code.listener = net.createServer((socket) => code.#greet(socket)).listen(code.socket);
    code.port = await freePort();
    const log = fs.openSync(path.join(folder, 'server.log'), 'w');
    code.server = spawn(process.execPath, [entry, ...common, '--auth', 'none', '--bind-addr', `127.0.0.1:${code.port}`, '--disable-telemetry', '--disable-update-check', '--disable-getting-started-override'],
      { env: { ...process.env, PROBE_SOCKET: code.socket, ...env }, stdio: ['ignore', log, log], detached: true });
    process.once('exit', () => code.#kill('SIGKILL')); // also when a test breaks off
    fs.closeSync(log);
    code.ended = new Promise((resolve) => code.server.once('exit', resolve));
    await until(() => fetch(`http://127.0.0.1:${code.port}/healthz`).then((r) => r.ok, () => false), 'code-server answers');
    const root = process.getuid() === 0; // Chromium has no sandbox of its own as root
    const runtime = path.join(folder, 'browser');
    fs.mkdirSync(runtime, { mode: 0o700 });
    code.browser = await chromium.launch({
      env: { ...process.env, XDG_RUNTIME_DIR: runtime },
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, chromiumSandbox: !root,
      args: ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--force-color-profile=srgb'],
    });
    code.context = await code.newContext();
    return code;
  }

  // newContext is a browser that has loaded and stored nothing yet.
  async newContext(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ['clipboard-read', 'clipboard-write'], ...options });
    await context.addInitScript(pageClock);
    return context;
  }

  // settings replaces the person's settings; VS Code notices by itself.
  settings(settings) { fs.writeFileSync(this.settingsFile, JSON.stringify({ ...quiet, ...settings }, null, 2)); }

  // log is everything that VS Code and its extensions wrote to log files.
  log() {
    const files = fs.readdirSync(path.join(this.folder, 'user'), { recursive: true }).filter((name) => name.endsWith('.log'));
    return files.map((name) => `== ${name}\n${fs.readFileSync(path.join(this.folder, 'user', name), 'utf8').slice(-20000)}`).join('\n');
  }

  // window opens a folder, or the folders of a workspace file of which it is the first.
  // All windows of a context share what the browser has loaded and stored.
  async window(folder, { workspaceFile, context = this.context } = {}) {
    const opens = workspaceFile ? `workspace=${encodeURIComponent(workspaceFile)}` : `folder=${encodeURIComponent(folder)}`;
    const page = await context.newPage();
    page.setDefaultTimeout(60000); // of a busy machine
    const probe = this.#expect(folder);
    await page.goto(`http://127.0.0.1:${this.port}/?${opens}`, { waitUntil: 'commit' });
    await page.waitForSelector('.monaco-workbench', { timeout: 120000 });
    const window = new Window(page, probe);
    this.#windows.push(window);
    return window;
  }

  // reload loads a window anew, with the same folder.
  async reload(window, folder) {
    window.probe = this.#expect(folder);
    await window.page.reload({ waitUntil: 'commit' });
    await window.page.waitForSelector('.monaco-workbench', { timeout: 120000 });
  }

  #expect(folder) {
    const slot = {};
    slot.probe = new Promise((resolve) => { slot.resolve = resolve; });
    this.#probes.set(folder, slot);
    return slot.probe;
  }

  #greet(socket) {
    const probe = new Probe(socket, (folder) => this.#probes.get(folder)?.resolve(probe));
  }

  async stop() {
    await this.browser?.close();
    this.listener?.close();
    this.#kill('SIGTERM');
    await Promise.race([this.ended, pause(5000)]);
    this.#kill('SIGKILL');
  }

  // kill signals the server and all that it started.
  #kill(signal) {
    try { process.kill(-this.server.pid, signal); } catch { /* it has ended */ }
  }
}

// pageClock lets the clock of extensions' pages show what holdClock says.
function pageClock() {
  if (window === window.top) return;
  const now = performance.now.bind(performance);
  performance.now = () => Number(localStorage.getItem('test.clock') ?? now());
}

// Probe tells the probe extension of one window what to do.
class Probe {
  #waiting = new Map();
  #next = 1;

  constructor(socket, hello) {
    this.socket = socket;
    let text = '';
    socket.setEncoding('utf8').on('data', (data) => {
      const lines = (text + data).split('\n');
      text = lines.pop();
      for (const { id, folder, result, error } of lines.map((line) => JSON.parse(line))) {
        if (folder !== undefined) { hello(folder); continue; }
        const { resolve, reject } = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (error === undefined) resolve(result); else reject(new Error(error));
      }
    }).on('error', () => {});
  }

  do(what, params = {}) {
    const id = this.#next++;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    answer.catch(() => {}); // whoever waits hears of it
    this.socket.write(JSON.stringify({ id, what, params }) + '\n');
    return answer;
  }
}

// Window is one workbench on the screen.
export class Window {
  constructor(page, probe) {
    this.page = page;
    this.probe = probe;
    this.input = page.locator('.quick-input-widget');
    this.inputBox = this.input.locator('input.input');
    this.rows = this.input.locator('.quick-input-list .monaco-list-row');
    this.dialog = page.locator('.monaco-dialog-box');
    this.toasts = page.locator('.notifications-toasts .notification-toast');
    this.statusBar = page.locator('.statusbar');
  }

  // ask lets the probe do something and resolves with what it says.
  async ask(what, params) { return (await this.probe).do(what, params); }
  execute(command, ...args) { return this.ask('execute', { command, args }); }

  // palette runs the command that is called title, as a person does.
  async palette(title) {
    const soon = { timeout: 10000 };
    for (let tries = 1; ; tries++) { // what takes the focus just then, such as a terminal that opens, closes the palette
      try {
        await this.page.keyboard.press('F1');
        await this.inputBox.fill('>' + title, soon);
        await this.rows.filter({ hasText: title }).first().waitFor(soon);
        break;
      } catch (error) {
        if (tries === 5) throw error;
      }
    }
    await this.page.keyboard.press('Enter');
  }

  // press sends keys, with time for the workbench in between.
  async press(...keys) { for (const key of keys) await this.page.keyboard.press(key); }

  // holdClock lets the clock of extensions' pages stand at ms; undefined lets it go.
  holdClock(ms) {
    return this.page.evaluate((at) => (at === undefined ? localStorage.removeItem('test.clock') : localStorage.setItem('test.clock', String(at))), ms);
  }

  // settled waits until what is drawn moves no more.
  async settled() {
    let last = '';
    await until(async () => {
      const now = (await this.page.screenshot()).toString('base64');
      const same = now === last;
      last = now;
      return same;
    }, 'the screen is still');
  }

  screenshot(file, options = {}) { return this.page.screenshot({ path: file, ...options }); }

  close() { return this.page.close(); }
}
