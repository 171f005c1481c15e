// The server over the life of the window: finds a program, starts it, and
// starts it again when it ends by itself.
import path from 'node:path';
import * as vscode from 'vscode';
import type { Capabilities, Requests } from '../protocol';
import { Client, type Handlers } from './client';
import { find, type Found, NotFoundError } from './find';
import { Backoff } from './restart';
import { localFolders } from '../folders';
import { ownSettings, serverPath, serverSettings } from '../settings';
import type { Unwaited } from '../unwaited';

export type State = 'stopped' | 'starting' | 'running' | 'waiting' | 'missing' | 'failed';

export class Server implements vscode.Disposable {
  private current: Client | undefined;
  private readonly backoff = new Backoff();
  private timer: NodeJS.Timeout | undefined;
  private generation = 0; // of the latest wish to start or stop
  private turn: Promise<void> = Promise.resolve(); // ends when the latest of them was followed
  private asked = 0; // how often for the capabilities
  private readonly changed = new vscode.EventEmitter<void>();

  /** Fires when any of the fields below did. */
  readonly onDidChange = this.changed.event;
  state: State = 'stopped';
  found: Found | undefined;
  capabilities: Capabilities | undefined;
  problem = ''; // why it is missing or failed
  settings = ''; // with which it was started last

  constructor(private readonly extensionPath: string, private readonly log: vscode.LogOutputChannel, private readonly unwaited: Unwaited, private readonly handlers: Handlers) {}

  /** restart ends the server, if there is one, and starts it; the person asked for it. */
  restart(): Promise<void> {
    this.backoff.reset();
    return this.again();
  }

  /** stop ends the server and everything that it runs. */
  stop(): Promise<void> {
    return this.next(() => {
      this.set('stopped');
      return Promise.resolve();
    });
  }

  request<M extends keyof Requests>(method: M, params: Requests[M][0], token?: vscode.CancellationToken): Promise<Requests[M][1]> {
    if (!this.current || this.state !== 'running') return Promise.reject(new Error('The server of confine is not running.'));
    return this.current.request(method, params, token);
  }

  dispose(): void {
    this.unwaited('stopping the server', this.stop().then(() => this.changed.dispose()));
  }

  private again(): Promise<void> {
    return this.next((generation) => this.start(generation));
  }

  // next follows one wish after the other; of several that wait, only the last.
  private next(then: (generation: number) => Promise<void>): Promise<void> {
    const generation = ++this.generation;
    clearTimeout(this.timer);
    this.turn = this.turn.then(async () => {
      if (generation !== this.generation) return;
      await this.current?.stop();
      this.current = undefined;
      this.capabilities = undefined;
      await then(generation);
    }).catch((error: unknown) => { // or no later wish would be followed
      this.log.error(String(error));
      this.set('failed', String(error));
    });
    return this.turn;
  }

  private async start(generation: number): Promise<void> {
    this.settings = ownSettings();
    this.set('starting');
    const began = Date.now();
    const bundled = path.join(this.extensionPath, 'bin', process.platform === 'win32' ? 'confine.exe' : 'confine');
    try {
      this.found = await find({ setting: serverPath(), pathVariable: process.env['PATH'] ?? '', bundled, workspace: localFolders() });
    } catch (error) {
      this.found = undefined;
      this.log.error(String(error));
      this.set(error instanceof NotFoundError ? 'missing' : 'failed', error instanceof Error ? error.message : String(error));
      return;
    }
    this.log.info(`Starting ${this.found.path} (${this.found.source}, version ${this.found.version}).`);
    const client = new Client({ program: this.found.path, settings: serverSettings(), log: this.log, handlers: this.fresh(generation), ended: () => this.ended(generation, began) });
    this.current = client;
    try {
      await client.start();
    } catch (error) {
      this.log.error(`The server did not start: ${String(error)}`);
      await client.stop();
      this.ended(generation, began, `It does not start: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    this.set('running');
    this.unwaited('asking for capabilities', this.refresh());
  }

  // fresh are the handlers, deaf to a server that was replaced.
  private fresh(generation: number): Handlers {
    const mine = () => generation === this.generation;
    const h = this.handlers;
    return {
      'confine/requestApproval': (question, token) => (mine() ? h['confine/requestApproval'](question, token) : Promise.resolve({ outcome: { outcome: 'cancelled' } })),
      'confine/approvalWithdrawn': (p) => mine() && h['confine/approvalWithdrawn'](p),
      'confine/output': (p) => mine() && h['confine/output'](p),
      'confine/exit': (p) => mine() && h['confine/exit'](p),
      'confine/capabilitiesChanged': (p) => {
        if (!mine()) return;
        h['confine/capabilitiesChanged'](p);
        this.unwaited('asking for capabilities', this.refresh());
      },
    };
  }

  // refresh asks for the capabilities. Only the latest answer counts, and what is not known is not shown.
  private async refresh(): Promise<void> {
    const asked = ++this.asked;
    const capabilities = await this.request('capabilities', {}).catch((error: unknown) => {
      this.log.error(`Asking for capabilities failed: ${String(error)}`);
      return undefined;
    });
    if (asked !== this.asked) return;
    this.capabilities = capabilities;
    this.changed.fire();
  }

  private ended(generation: number, began: number, why = 'It ended again and again.'): void {
    if (generation !== this.generation) return;
    const delay = this.backoff.ended(Date.now() - began);
    if (delay === undefined) return this.set('failed', why);
    this.log.warn(`The server ended by itself; it is started again in ${delay} ms.`);
    this.set('waiting');
    this.timer = setTimeout(() => this.unwaited('starting the server', this.again()), delay);
  }

  private set(state: State, problem = ''): void {
    this.state = state;
    this.problem = problem;
    if (state !== 'running') {
      this.capabilities = undefined;
      this.asked++; // what is on its way does not count
    }
    this.changed.fire();
  }
}
