// A small editor built on vscode-jsonrpc, the library under VS Code's language
// clients: it starts confine, keeps what it is told in order, and lets the
// story answer questions when it likes.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import { pathToFileURL } from 'node:url';

// MODULES is a folder with node_modules; without it the ones beside this file are used.
const rpc = createRequire(process.env.MODULES ? pathToFileURL(process.env.MODULES + '/') : import.meta.url)('vscode-jsonrpc/node');

export const need = (name) => process.env[name] ?? fail(`${name} is not set; start the story with .ci/story`);
function fail(message) { throw new Error(message); }

// within settles as promise does, or fails after ms milliseconds.
export function within(promise, what, ms = 20000) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`waited ${ms} ms for ${what}`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// until resolves once holds() is true.
export async function until(holds, what, ms = 5000) {
  for (const end = Date.now() + ms; !holds();) {
    if (Date.now() > end) throw new Error(`waited ${ms} ms until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// processes lists the ids of all processes of this machine with text on their command line.
export function processes(text) {
  return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid)).filter((pid) => {
    try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text); } catch { return false; }
  });
}

export class Editor {
  events = []; // every notification and every response, in the order of arrival
  questions = []; // asked and not yet taken by nextQuestion
  #wanted = []; // waiting for a question

  // announce: what goes into capabilities.experimental.confine; null for a stock client.
  constructor({ announce = { protocolVersion: 1, approval: true, output: true }, program = need('CONFINE_BIN') } = {}) {
    this.announce = announce;
    this.server = spawn(program, ['serve'], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.exited = new Promise((resolve) => this.server.once('exit', (code, signal) => resolve({ code, signal })));
    this.server.stdin.on('error', () => {}); // a killed server breaks the pipe; the story sees it end
    this.conn = rpc.createMessageConnection(new rpc.StreamMessageReader(this.server.stdout), new rpc.StreamMessageWriter(this.server.stdin));
    this.conn.onError(() => {});
    this.conn.onNotification((method, params) => { this.events.push({ method, params }); });
    this.conn.onRequest('confine/requestApproval', (params) => this.#ask('confine/requestApproval', params));
    this.conn.onRequest('window/showMessageRequest', (params) => this.#ask('window/showMessageRequest', params));
    this.conn.onRequest('window/workDoneProgress/create', () => null);
    this.conn.listen();
  }

  #ask(method, params) {
    return new Promise((resolve) => {
      const question = { method, ...params, answer: resolve, choose: (kind) => resolve(choice(method, params, kind)) };
      const next = this.#wanted.shift();
      if (next) next(question); else this.questions.push(question);
    });
  }

  // nextQuestion resolves with the next question that the server asks.
  nextQuestion() {
    const waiting = this.questions.shift();
    return within(waiting ? Promise.resolve(waiting) : new Promise((resolve) => this.#wanted.push(resolve)), 'a question');
  }

  // request resolves with {result} or {error}. cancel(), on the promise, sends $/cancelRequest.
  request(method, params) {
    const source = new rpc.CancellationTokenSource();
    const reply = this.conn.sendRequest(method, params, source.token).then(
      (result) => { this.events.push({ response: method, result }); return { result }; },
      (error) => { this.events.push({ response: method, error }); return { error }; });
    return Object.assign(within(reply, `an answer to ${method}`, 330000), { cancel: () => source.cancel() });
  }

  async run(params) {
    const { result, error } = await this.request('runCommand', typeof params === 'string' ? { command: params } : params);
    if (error) throw new Error(`runCommand failed: ${error.code} ${error.message}`);
    return result;
  }

  told(method, runId) { return this.events.filter((e) => e.method === method && (!runId || e.params.runId === runId)); }

  async initialize(folder) {
    const { result, error } = await this.request('initialize', {
      processId: process.pid, clientInfo: { name: 'story' }, rootUri: null,
      workspaceFolders: [{ uri: pathToFileURL(folder).href, name: 'story' }],
      capabilities: this.announce ? { experimental: { confine: this.announce } } : {},
    });
    if (error) throw new Error(`initialize failed: ${error.message}`);
    await this.conn.sendNotification('initialized', {});
    return result;
  }

  // stop ends the server as an editor does, and resolves with its exit status.
  async stop() {
    await this.request('shutdown');
    await this.conn.sendNotification('exit');
    return within(this.exited, 'the server to exit');
  }

  kill() {
    this.server.kill('SIGKILL');
    return within(this.exited, 'the server to die');
  }
}

// choice is the reply that picks the one option of a kind, such as allow_once.
// The actions of a message have no kinds, only names.
function choice(method, params, kind) {
  const stock = method === 'window/showMessageRequest';
  const names = { allow_once: /^(allow|run).*\bonce\b/i, reject_once: /^(deny|refuse|reject|do not)/i };
  const found = stock ? params.actions.filter((a) => names[kind].test(a.title)) : params.options.filter((o) => o.kind === kind);
  if (found.length !== 1) throw new Error(`the question has ${found.length} options to ${kind}: ${JSON.stringify(params.actions ?? params.options)}`);
  return stock ? found[0] : { outcome: { outcome: 'selected', optionId: found[0].optionId } };
}
