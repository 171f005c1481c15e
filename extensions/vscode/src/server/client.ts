// One process of the server and the connection to it. It is never started
// again: whoever wants another one makes another Client.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import * as vscode from 'vscode';
import {
  type CancellationToken, CloseAction, type ClientCapabilities, type DynamicFeature, ErrorAction, ErrorCodes, ExecuteCommandRequest, LanguageClient, ResponseError,
  ShowMessageNotification, ShowMessageRequest, State, type StaticFeature,
} from 'vscode-languageclient/node';
import { type ClientConfine, protocolVersion, type Requests, type ServerConfine, type ServerNotifications, type ServerRequests } from '../protocol';

/** What the server may ask and tell. */
export type Handlers = {
  [M in keyof ServerRequests]: (params: ServerRequests[M][0], token: CancellationToken) => Promise<ServerRequests[M][1]>;
} & {
  [M in keyof ServerNotifications]: (params: ServerNotifications[M]) => void;
};

export interface ClientOptions {
  program: string;
  settings: Record<string, unknown>; // the person's own, which may widen
  log: vscode.LogOutputChannel;
  handlers: Handlers;
  ended: () => void; // the connection closed without stop
}

/** The server ended before it answered. */
export class EndedError extends Error {
  constructor() {
    super('The server of confine ended before it answered.');
  }
}

// Codes that the library makes up for requests that get no answer.
const connectionEnded = new Set<number>([ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive, ErrorCodes.MessageWriteError]);

// How long a server may take to answer initialize, which waits for nothing.
const startMs = 60000;

const announced: ClientConfine = { protocolVersion, approval: true, output: true };

export class Client {
  private readonly client: QuietClient;
  private process: ChildProcess | undefined;
  private stopping = false;

  constructor(private readonly options: ClientOptions) {
    this.client = new QuietClient('confine', 'Confine', () => this.spawn(), {
      documentSelector: [],
      initializationOptions: options.settings,
      outputChannel: options.log,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
    });
    this.client.registerFeature(announcement);
    this.client.onRequest('confine/requestApproval', options.handlers['confine/requestApproval']);
    const methods: (keyof ServerNotifications)[] = ['confine/output', 'confine/exit', 'confine/approvalWithdrawn', 'confine/capabilitiesChanged'];
    for (const method of methods) this.client.onNotification(method, options.handlers[method] as (params: unknown) => void);
    // What the library would show as notifications, whose text can hold links
    // that run commands of VS Code.
    this.client.onRequest(ShowMessageRequest.type, () => null);
    this.client.onNotification(ShowMessageNotification.type, ({ message }) => options.log.info(message));
    this.client.onDidChangeState(({ oldState, newState }) => {
      if (oldState === State.Running && newState === State.Stopped && !this.stopping) options.ended();
    });
  }

  /** start resolves when the server answered initialize. */
  async start(): Promise<ServerConfine> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('It did not answer within a minute.')), startMs);
    });
    await Promise.race([this.client.start(), late]).finally(() => clearTimeout(timer));
    const experimental = this.client.initializeResult?.capabilities.experimental as { confine?: ServerConfine } | undefined;
    if (!experimental?.confine) throw new Error('The server is not confine.');
    return experimental.confine;
  }

  /** Only after start, and not after the end: the library would start a second process. */
  request<M extends keyof Requests>(method: M, params: Requests[M][0], token?: vscode.CancellationToken): Promise<Requests[M][1]> {
    if (!this.client.isRunning()) return Promise.reject(new Error('The server of confine is not running.'));
    const answer: Promise<Requests[M][1]> = token ? this.client.sendRequest(method, params, token) : this.client.sendRequest(method, params);
    return answer.catch((error: unknown) => {
      throw error instanceof ResponseError && connectionEnded.has(error.code) ? new EndedError() : error;
    });
  }

  /** stop ends the server and everything that it runs. */
  async stop(): Promise<void> {
    this.stopping = true;
    if (this.client.isRunning()) await this.client.stop(3000).catch(() => undefined);
    const process = this.process;
    if (process?.pid === undefined || process.exitCode !== null || process.signalCode !== null) return;
    process.stdin?.end(); // it ends what it runs, then itself
    const exited = once(process, 'exit');
    const killer = setTimeout(() => process.kill('SIGKILL'), 5000);
    await exited;
    clearTimeout(killer);
  }

  // The home folder is the working directory, so that nothing is looked up in a repository.
  private async spawn(): Promise<ChildProcess> {
    const process = spawn(this.options.program, ['serve', '--trust-editor-options'], { cwd: os.homedir(), stdio: 'pipe', windowsHide: true });
    this.process = process;
    process.on('exit', (code, signal) => this.options.log.info(`The server ended: ${signal ?? `exit status ${code}`}.`));
    process.stdin.on('error', () => undefined); // it ended; the connection tells
    await new Promise((resolve, reject) => process.once('spawn', () => resolve(undefined)).once('error', reject));
    return process;
  }
}

// What this client announces. Progress is shown in the panel, not as notifications.
const announcement: StaticFeature = {
  fillClientCapabilities(capabilities: ClientCapabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), confine: announced };
    capabilities.window = { ...capabilities.window, workDoneProgress: false };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

// QuietClient writes its troubles to the log only, and makes no commands of VS Code
// out of those that the server has for clients that know nothing else.
class QuietClient extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if ('registrationType' in feature && feature.registrationType.method === ExecuteCommandRequest.method) return;
    super.registerFeature(feature);
  }

  override error(text: string, data?: unknown): void {
    super.error(text, data, false);
  }

  override warn(text: string, data?: unknown): void {
    super.warn(text, data, false);
  }

  override info(text: string, data?: unknown): void {
    super.info(text, data, false);
  }
}
