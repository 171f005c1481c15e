// package.json says what the code does and what the server serves.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node';
import type { Capabilities, Tool } from '../src/protocol';
import { toolName } from '../src/tool';

interface Property { scope?: string; default?: unknown; enum?: unknown[]; type?: unknown }
const manifest = JSON.parse(fs.readFileSync('package.json', 'utf8')) as {
  engines: { vscode: string };
  devDependencies: Record<string, string>;
  capabilities: { untrustedWorkspaces: { supported: unknown }; virtualWorkspaces: { supported: unknown } };
  contributes: {
    commands: { command: string }[];
    menus: Record<string, { command: string }[]>;
    viewsWelcome: { contents: string }[];
    walkthroughs: { steps: { description: string; media: { image: Record<string, string> }; completionEvents: string[] }[] }[];
    languageModelTools: { name: string; modelDescription: string; inputSchema: unknown }[];
    configuration: { properties: Record<string, Property> };
  };
};
const { contributes } = manifest;
const properties = contributes.configuration.properties;
const steps = contributes.walkthroughs.flatMap((w) => w.steps);

// keys of an object literal in a source file.
function keys(file: string, name: string): string[] {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.ES2022, true);
  for (const statement of source.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const declaration of statement.declarationList.declarations) {
      if (declaration.name.getText() !== name) continue;
      const value = ts.isAsExpression(declaration.initializer!) ? declaration.initializer.expression : declaration.initializer;
      return (value as ts.ObjectLiteralExpression).properties.map((p) => p.name!.getText());
    }
  }
  throw new Error(`${file} has no ${name}`);
}

test('nothing that a repository can set counts', () => {
  assert.ok(Object.keys(properties).length > 1);
  for (const [name, property] of Object.entries(properties)) assert.equal(property.scope, 'machine', name);
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, false);
  assert.equal(manifest.capabilities.virtualWorkspaces.supported, false);
});

test('each command is there once, and is served', () => {
  const declared = contributes.commands.map((c) => c.command).sort();
  assert.deepEqual(declared, keys('src/commands.ts', 'commands').map((k) => `confine.${k}`).sort());
  const texts = [...contributes.viewsWelcome.map((w) => w.contents), ...steps.flatMap((s) => [s.description, ...s.completionEvents.map((e) => e.replace('onCommand:', 'command:'))])];
  const used = [...Object.values(contributes.menus).flat().map((m) => m.command), ...texts.flatMap((text) => [...text.matchAll(/command:([\w.]+)/g)].map((m) => m[1]!))];
  for (const command of used) assert.ok(declared.includes(command), command);
});

test('the pictures of the walkthrough are there, below the folder that packages take them from', () => {
  const pictures = steps.flatMap((s) => Object.values(s.media.image));
  assert.ok(pictures.length > 0);
  for (const picture of pictures) {
    assert.equal(path.dirname(picture), 'media');
    assert.ok(fs.existsSync(path.join('../../docs/images', path.basename(picture))), picture);
  }
});

// Settings that are not the server's. What the library reads under the client's id has to be declared as well, or any workspace could set it.
const ours = ['serverPath', 'trace.server'];

test('each setting is sent, and each that is sent is a setting', () => {
  assert.deepEqual(Object.keys(properties).sort(), [...ours, ...keys('src/settings.ts', 'serverKeys')].map((k) => `confine.${k}`).sort());
});

test('what the library reads from the settings is declared', () => {
  const [, id] = /new QuietClient\('(\w+)'/.exec(fs.readFileSync('src/server/client.ts', 'utf8'))!;
  const source = fs.readFileSync('node_modules/vscode-languageclient/lib/common/client.js', 'utf8');
  assert.match(source, /getConfiguration\(this\._id\)/);
  const read = new Set([...source.matchAll(/config\.get\('([\w.]+)'/g)].map((m) => m[1]!));
  // verbosity and format are looked at only where trace.server is no text, which it always is.
  assert.deepEqual([...read].sort(), ['trace.server', 'trace.server.format', 'trace.server.verbosity']);
  assert.equal(properties[`${id}.trace.server`]!.scope, 'machine');
  assert.equal(typeof properties[`${id}.trace.server`]!.default, 'string');
});

test('the types of VS Code are no newer than the oldest VS Code', () => {
  assert.equal(`^${manifest.devDependencies['@types/vscode']}`, manifest.engines.vscode);
});

// What follows asks the program itself: CONFINE_BIN, or one that is built here.
const program = process.env['CONFINE_BIN'] ?? build();

function build(): string {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'confine-manifest-')), 'confine');
  execFileSync('go', ['build', '-o', file, './cmd/confine'], { cwd: '../..', stdio: 'inherit' });
  process.on('exit', () => fs.rmSync(path.dirname(file), { recursive: true }));
  return file;
}

// served is the tool of a server with no settings, in a home of its own.
async function served(): Promise<Tool> {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'confine-home-'));
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('CONFINE_') && !name.startsWith('XDG_')));
  const server = spawn(program, ['serve'], { env: { ...environment, HOME: home }, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  try {
    const connection = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
    connection.listen();
    await connection.sendRequest('initialize', { processId: process.pid, capabilities: { experimental: { confine: { protocolVersion: 1, approval: true, output: true } } } });
    await connection.sendNotification('initialized', {});
    const { tool } = await connection.sendRequest<Capabilities>('capabilities', { wait: true });
    await connection.sendRequest('shutdown');
    await connection.sendNotification('exit');
    return tool;
  } finally {
    server.stdin.end();
    await ended;
    fs.rmSync(home, { recursive: true, force: true });
  }
}

test('the tool is the one that the server describes', async () => {
  const tool = await served();
  const [declared, ...more] = contributes.languageModelTools;
  assert.equal(more.length, 0);
  assert.equal(declared!.name, toolName);
  assert.equal(declared!.modelDescription, tool.description);
  assert.deepEqual(declared!.inputSchema, tool.inputSchema);
});

test('settings are those of the server, with its values', () => {
  const schema = JSON.parse(execFileSync(program, ['config', '--schema'], { encoding: 'utf8' })) as { properties: Record<string, { enum?: string[] }> };
  const source = fs.readFileSync('src/settings.ts', 'utf8');
  for (const key of keys('src/settings.ts', 'serverKeys')) {
    const name = new RegExp(`\\b${key}: '(\\w+)'`).exec(source)![1]!;
    const known = schema.properties[name];
    assert.ok(known, `${name} is no setting of the server`);
    assert.deepEqual((properties[`confine.${key}`]!.enum ?? []).filter((v) => v !== null), known.enum ?? [], key);
  }
});
