// src/protocol.ts says what docs/protocol.schema.json says, which is generated
// from the server's code: for everything that this client sends or reads.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import ts from 'typescript';
import { protocolVersion } from '../src/protocol';

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: string[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
  propertyNames?: Schema;
}
interface Method {
  from: string;
  kind: string;
  params?: Schema;
  result?: Schema;
}

const schema = JSON.parse(fs.readFileSync('../../docs/protocol.schema.json', 'utf8')) as { protocolVersion: number; methods: Record<string, Method>; $defs: Record<string, Schema> };
const source = ts.createSourceFile('protocol.ts', fs.readFileSync('src/protocol.ts', 'utf8'), ts.ScriptTarget.ES2022, true);
const interfaces = new Map<string, ts.InterfaceDeclaration>();
const aliases = new Map<string, ts.TypeNode>();
source.forEachChild((node) => {
  if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, node);
  if (ts.isTypeAliasDeclaration(node)) aliases.set(node.name.text, node.type);
});

// Names that mean something else in TypeScript.
const renamed: Record<string, string> = { WireError: 'Error' };
const defOf = (name: string) => renamed[name] ?? name;
const methodMaps = ['Requests', 'ServerRequests', 'ServerNotifications'];

// Names of interfaces that were compared, by the way in which they go.
const seen = { sent: new Set<string>(), read: new Set<string>() };
type Way = keyof typeof seen;

function literals(node: ts.TypeNode): string[] | undefined {
  const parts = ts.isUnionTypeNode(node) ? node.types : [node];
  const values = parts.map((p) => (ts.isLiteralTypeNode(p) && ts.isStringLiteral(p.literal) ? p.literal.text : undefined));
  return values.every((v) => v !== undefined) ? values : undefined;
}

// differences of a type of ours and a schema.
function differences(node: ts.TypeNode, wire: Schema, way: Way, at: string): string[] {
  const own = literals(node);
  if (own) return same([...own].sort(), [...(wire.enum ?? [])].sort(), at);
  if (ts.isArrayTypeNode(node)) return wire.items ? differences(node.elementType, wire.items, way, `${at}[]`) : [`${at}: no list on the wire`];
  if (ts.isTypeReferenceNode(node)) return reference(node, wire, way, at);
  if (node.kind === ts.SyntaxKind.UnknownKeyword) return [];
  if (ts.isLiteralTypeNode(node) && node.literal.kind === ts.SyntaxKind.NullKeyword) return wire.type === 'null' ? [] : [`${at}: not null on the wire`];
  const kinds: Partial<Record<ts.SyntaxKind, string[]>> = { [ts.SyntaxKind.StringKeyword]: ['string'], [ts.SyntaxKind.NumberKeyword]: ['integer', 'number'], [ts.SyntaxKind.BooleanKeyword]: ['boolean'] };
  return kinds[node.kind]?.includes(wire.type as string) ? [] : [`${at}: ${node.getText()} here, ${JSON.stringify(wire)} on the wire`];
}

function reference(node: ts.TypeReferenceNode, wire: Schema, way: Way, at: string): string[] {
  const name = node.typeName.getText();
  const args = node.typeArguments ?? [];
  if (name === 'Partial') return differences(args[0]!, wire, way, at);
  if (name === 'Record') {
    if (args[1]!.kind === ts.SyntaxKind.UnknownKeyword) return wire.type === 'object' ? [] : [`${at}: no object on the wire`];
    const keys = aliases.get(args[0]!.getText());
    return [...(keys ? differences(keys, wire.propertyNames ?? {}, way, `${at} keys`) : []), ...differences(args[1]!, wire.additionalProperties ?? {}, way, `${at}.*`)];
  }
  const alias = aliases.get(name);
  if (alias) return differences(alias, wire, way, at);
  if (!interfaces.has(name)) return [`${at}: ${name} is no type of protocol.ts`];
  if (wire.$ref !== `#/$defs/${defOf(name)}`) return [`${at}: ${name} here, ${JSON.stringify(wire)} on the wire`];
  return object(name, way);
}

// object compares an interface: what is read is exactly as on the wire, what is sent has all that is required.
function object(name: string, way: Way): string[] {
  if (seen[way].has(name)) return [];
  seen[way].add(name);
  const def = schema.$defs[defOf(name)];
  if (!def) return [`${name}: not in the schema`];
  const found: string[] = [];
  const fields = new Map(members(name));
  for (const [field, member] of fields) {
    const wire = def.properties?.[field];
    if (!wire) found.push(`${name}.${field}: not on the wire`);
    else found.push(...differences(member.type!, wire, way, `${name}.${field}`));
    const required = def.required?.includes(field) ?? false;
    const ours = member.questionToken === undefined;
    if (way === 'read' ? required !== ours : required && !ours) found.push(`${name}.${field}: ${required ? 'required' : 'optional'} on the wire`);
  }
  if (way === 'sent') for (const field of def.required ?? []) if (!fields.has(field)) found.push(`${name}.${field}: required on the wire, missing here`);
  return found;
}

function same(ours: string[], wire: string[], at: string): string[] {
  return JSON.stringify(ours) === JSON.stringify(wire) ? [] : [`${at}: ${ours.join(' | ')} here, ${wire.join(' | ')} on the wire`];
}

function members(name: string): [string, ts.PropertySignature][] {
  return interfaces.get(name)!.members.map((m) => [(m.name as ts.Identifier | ts.StringLiteral).text, m as ts.PropertySignature]);
}

function pair(member: ts.PropertySignature): [ts.TypeNode, ts.TypeNode] {
  const [first, second] = (member.type as ts.TupleTypeNode).elements;
  return [first!, second!];
}

function method(name: string, from: string, kind: string): Method {
  const found = schema.methods[name];
  assert.ok(found, `${name} is no method`);
  assert.equal(found.kind, kind, name);
  assert.ok(found.from === from || found.from === 'both', `${name} comes from the ${found.from}`);
  return found;
}

test('requests that this client sends are as on the wire', () => {
  for (const [name, member] of members('Requests')) {
    const { params, result } = method(name, 'client', 'request');
    const [sent, read] = pair(member);
    assert.deepEqual(differences(sent, params!, 'sent', `${name} params`), []);
    assert.deepEqual(differences(read, result!, 'read', `${name} result`), []);
  }
});

test('requests that the server sends are as on the wire', () => {
  for (const [name, member] of members('ServerRequests')) {
    const { params, result } = method(name, 'server', 'request');
    const [read, sent] = pair(member);
    assert.deepEqual(differences(read, params!, 'read', `${name} params`), []);
    assert.deepEqual(differences(sent, result!, 'sent', `${name} result`), []);
  }
});

test('notifications that the server sends are as on the wire', () => {
  for (const [name, member] of members('ServerNotifications')) {
    assert.deepEqual(differences(member.type!, method(name, 'server', 'notification').params!, 'read', name), []);
  }
});

test('the announcements are as on the wire', () => {
  assert.equal(protocolVersion, schema.protocolVersion);
  assert.deepEqual(object('ClientConfine', 'sent'), []);
  assert.deepEqual(object('ServerConfine', 'read'), []);
});

test('every type of protocol.ts was compared', () => {
  const unused = [...interfaces.keys()].filter((name) => !methodMaps.includes(name) && !seen.sent.has(name) && !seen.read.has(name));
  assert.deepEqual(unused, []);
});

test('differences are found', () => {
  const wrong = ts.createSourceFile('wrong.ts', "type A = string[]; type B = 'once'; type C = number; type D = Additional;", ts.ScriptTarget.ES2022, true);
  const types = wrong.statements.map((s) => (s as ts.TypeAliasDeclaration).type);
  const wires: Schema[] = [{ type: 'string' }, { type: 'string', enum: ['once', 'session'] }, { type: 'boolean' }, { $ref: '#/$defs/Wanted' }];
  for (const [i, wire] of wires.entries()) assert.equal(differences(types[i]!, wire, 'read', 'it').length, 1);
});
