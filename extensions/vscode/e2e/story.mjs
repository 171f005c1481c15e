// The main job, lived through by an editor: commands of a real project run in
// the sandbox, one is refused by the kernel, the person is asked, and what the
// person says is what happens. Started by .ci/story, which makes the project.
//
// Every check looks at the disk, an exit code, a process or a message.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Editor, need, processes, until, within } from './editor.mjs';

const workspace = need('STORY_WORKSPACE'); // a git repository with a Go module
const outside = need('STORY_OUTSIDE'); // beside it, writable for us and not for commands

const outsideFile = (name) => path.join(outside, name);
const writes = (file) => `printf wide > '${file}'`;
const git = (...args) => execFileSync('git', ['-C', workspace, ...args], { encoding: 'utf8' }).trim();

let passed = 0;
const failures = [];
async function chapter(title, tell) {
  const started = Date.now();
  try {
    await tell();
    passed++;
    console.log(`ok   ${title} (${Date.now() - started} ms)`);
  } catch (error) {
    failures.push(title);
    console.log(`FAIL ${title}\n${error.stack}`);
  }
}

// denied runs a command that writes outside and checks that the kernel refused it.
async function denied(editor, file, runId) {
  const result = await editor.run({ command: writes(file), runId });
  assert.equal(result.status, 'completed');
  assert.notEqual(result.exitCode, 0);
  assert.equal(result.sandbox.denied, true, JSON.stringify(result));
  assert.ok(result.sandbox.denials.some((d) => d.path === file && d.count >= 1), JSON.stringify(result.sandbox.denials));
  assert.ok(!fs.existsSync(file), `${file} was written`);
  assert.ok(result.escalation.targets.includes('danger-full-access'), 'no way to go wider is offered');
  return result;
}

const escalate = (editor, runId) => editor.request('requestEscalation', { runId, sandboxPermissions: 'danger-full-access', justification: 'the report goes beside the project' });

// nothingRuns checks that file stays absent, also after the server had every chance to write it: what was
// answered before goes out before the end of one run, and would have run before the end of another.
async function nothingRuns(editor, file) {
  await editor.run('true');
  await editor.run('true');
  assert.ok(!fs.existsSync(file), `${file} was written`);
}

async function cancelled(editor, name) {
  const file = outsideFile(name);
  await denied(editor, file, name);
  const reply = escalate(editor, name);
  const question = await editor.nextQuestion();
  reply.cancel();
  const { result } = await reply;
  assert.ok(['cancelled', 'refused'].includes(result.status), result.status);
  assert.equal(result.approval.outcome, 'cancelled');
  await withdrawn(editor, question, 'cancelled');
  question.choose('allow_once');
  await nothingRuns(editor, file);
}

// unanswered needs an editor whose server waits a short time only.
async function unanswered(editor, name) {
  const file = outsideFile(name);
  await denied(editor, file, name);
  const reply = escalate(editor, name);
  const question = await editor.nextQuestion();
  const { result } = await within(reply, 'the question to expire', 20000);
  assert.equal(result.status, 'refused');
  assert.equal(result.approval.outcome, 'timed-out');
  await withdrawn(editor, question, 'expired');
  question.choose('allow_once');
  await nothingRuns(editor, file);
}

// withdrawn waits until the editor was told; a stock client never is.
async function withdrawn(editor, question, reason) {
  if (!editor.announce) return;
  await until(() => editor.told('confine/approvalWithdrawn').some((e) => e.params.id === question.id && e.params.reason === reason), `the question is withdrawn as ${reason}`);
}

const editor = new Editor();

await chapter('the server starts and says what it is', async () => {
  const { capabilities, serverInfo } = await editor.initialize(workspace);
  assert.equal(serverInfo.name, 'confine');
  assert.equal(capabilities.experimental.confine.protocolVersion, 1);
  assert.ok(capabilities.executeCommandProvider.commands.includes('confine.server.run'));
  const { result } = await editor.request('capabilities', { wait: true });
  assert.equal(result.state, 'ready');
  assert.equal(result.provider, 'landlock');
  assert.equal(result.canAsk, true);
  assert.deepEqual(result.roots, [workspace]);
  const mode = result.settings.find((s) => s.key === 'sandbox_mode');
  assert.equal(mode.value, 'workspace-write');
  assert.ok(mode.origin.startsWith(process.env.XDG_CONFIG_HOME), mode.origin);
  assert.ok('sandbox_permissions' in result.tool.inputSchema.properties);
});

await chapter('git commit works', async () => {
  fs.writeFileSync(path.join(workspace, 'notes.txt'), 'written by the editor\n');
  const result = await editor.run({ command: 'git add -A && git commit -q -m "from the sandbox"', runId: 'commit' });
  assert.equal(result.exitCode, 0, result.modelText);
  assert.equal(result.status, 'completed');
  assert.deepEqual([result.runId, result.sandbox.mode, result.sandbox.provider, result.sandbox.denied], ['commit', 'workspace-write', 'landlock', false]);
  assert.equal(git('log', '-1', '--format=%s'), 'from the sandbox');
  assert.equal(git('show', 'HEAD:notes.txt'), 'written by the editor');
  assert.equal(git('status', '--porcelain'), '');
});

await chapter('go test works', async () => {
  const result = await editor.run({ command: 'go test -v ./...' });
  assert.equal(result.exitCode, 0, result.modelText);
  assert.match(result.stdout.text, /--- PASS: TestGreeting/);
  assert.match(result.stdout.text, /^ok\s+example\.test\/story\s/m);
  const failing = await editor.run({ command: 'go test ./...', env: { STORY_FAIL: '1' } });
  assert.equal(failing.exitCode, 1, failing.modelText);
  assert.equal(failing.sandbox.denied, false, 'a test that fails by itself is no denial');
});

await chapter('output arrives in order, then the exit, then the answer', async () => {
  const result = await editor.run({ command: 'for i in $(seq 1 2000); do echo "line $i"; echo "error $i" >&2; done; exit 3', runId: 'stream' });
  assert.equal(result.exitCode, 3);
  const output = editor.told('confine/output', 'stream').map((e) => e.params);
  assert.deepEqual(output.map((o) => o.seq), output.map((_, i) => i));
  for (const stream of ['stdout', 'stderr']) {
    let text = '';
    for (const o of output.filter((o) => o.stream === stream)) {
      assert.equal(o.offset, Buffer.byteLength(text));
      assert.ok(!o.skipped);
      text += o.data ?? Buffer.from(o.base64, 'base64').toString();
    }
    const word = stream === 'stdout' ? 'line' : 'error';
    assert.equal(text, Array.from({ length: 2000 }, (_, i) => `${word} ${i + 1}\n`).join(''));
    assert.equal(result[stream].text, text);
    assert.equal(result[stream].bytes, text.length);
  }
  const kinds = editor.events.filter((e) => e.params?.runId === 'stream' || e.result?.runId === 'stream').map((e) => e.method ?? 'answer');
  assert.deepEqual(kinds.slice(-2), ['confine/exit', 'answer']);
  assert.equal(kinds.indexOf('confine/exit'), kinds.length - 2);
  assert.equal(editor.told('confine/exit', 'stream')[0].params.exitCode, 3);
});

await chapter('a write outside is refused, asked about, and allowed once', async () => {
  const file = outsideFile('allowed');
  const { modelText } = await denied(editor, file, 'allow-1');
  assert.match(modelText, /denied/i);
  const reply = escalate(editor, 'allow-1');
  const question = await editor.nextQuestion();
  assert.equal(question.method, 'confine/requestApproval');
  assert.equal(question.kind, 'escalation');
  assert.equal(question.command, writes(file));
  assert.equal(question.cwd, workspace);
  assert.equal(question.mode, 'workspace-write');
  assert.equal(question.wanted.mode, 'danger-full-access');
  assert.equal(question.justification, 'the report goes beside the project');
  assert.ok(question.evidence.some((d) => d.path === file));
  assert.match(question.options[0].kind, /^reject/);
  assert.match(question.options.find((o) => o.optionId === question.defaultOptionId).kind, /^reject/);
  assert.equal(new Set(question.options.map((o) => o.name)).size, question.options.length);
  assert.ok(Date.parse(question.expiresAt) > Date.now());
  assert.ok(!fs.existsSync(file), 'it ran before the answer');
  question.choose('allow_once');
  const { result } = await reply;
  assert.equal(result.exitCode, 0, result.modelText);
  assert.equal(result.sandbox.mode, 'danger-full-access');
  assert.equal(result.approval.outcome, 'allowed-once');
  assert.equal(fs.readFileSync(file, 'utf8'), 'wide');
});

await chapter('once means once', async () => {
  const file = outsideFile('allowed');
  fs.rmSync(file);
  await denied(editor, file, 'allow-2');
  const reply = escalate(editor, 'allow-2');
  (await editor.nextQuestion()).choose('reject_once'); // it had to ask again
  assert.equal((await reply).result.status, 'refused');
  await nothingRuns(editor, file);
});

await chapter('a no is a no, and is not asked about again', async () => {
  const file = outsideFile('refused');
  await denied(editor, file, 'refuse');
  const reply = escalate(editor, 'refuse');
  (await editor.nextQuestion()).choose('reject_once');
  const { result } = await reply;
  assert.equal(result.status, 'refused');
  assert.equal(result.approval.outcome, 'rejected');
  assert.equal(result.exitCode, undefined);
  await nothingRuns(editor, file);
  const again = await escalate(editor, 'refuse');
  assert.equal(again.result.status, 'refused');
  assert.equal(editor.questions.length, 0, 'the same question was asked twice');
  await nothingRuns(editor, file);
});

await chapter('a cancelled request runs nothing, whatever is answered later', () => cancelled(editor, 'cancelled'));

await chapter('replies that are no answer are no yes', async () => {
  for (const [name, answer] of Object.entries({ empty: {}, nothing: null, unknown: { outcome: { outcome: 'selected', optionId: 'yes' } }, dismissed: { outcome: { outcome: 'cancelled' } } })) {
    const file = outsideFile(`no-answer-${name}`);
    await denied(editor, file, `no-answer-${name}`);
    const reply = escalate(editor, `no-answer-${name}`);
    (await editor.nextQuestion()).answer(answer);
    const { result } = await reply;
    assert.ok(['refused', 'cancelled'].includes(result.status), `${name}: ${result.status}`);
    assert.ok(['rejected', 'cancelled', 'unavailable'].includes(result.approval.outcome), `${name}: ${result.approval.outcome}`);
    await nothingRuns(editor, file);
  }
});

await chapter('nobody can widen without being asked', async () => {
  const file = outsideFile('sneaked');
  for (const params of [{ mode: 'danger-full-access' }, { network: true }]) {
    const { error } = await editor.request('runCommand', { command: writes(file), ...params });
    assert.equal(error?.code, -32602);
  }
  await nothingRuns(editor, file);
});

await chapter('a background run is read, waited for and killed', async () => {
  const marker = `story-background-${process.pid}`;
  const started = await editor.run({ command: `echo ready; exec -a ${marker} sleep 600`, runId: 'background', background: true });
  assert.equal(started.status, 'running');
  await until(() => editor.told('confine/output', 'background').length > 0, 'its output arrives');
  const { result: read } = await editor.request('confine/runs/read', { runId: 'background', offset: 2 });
  assert.deepEqual([read.data, read.offset, read.nextOffset, read.eof], ['ady\n', 2, 6, false]);
  await until(() => processes(marker).length > 0, 'it is seen on the host');
  const { result: waited } = await editor.request('confine/runs/wait', { runId: 'background', timeoutMs: 50 });
  assert.equal(waited.status, 'running');
  const { result: killed } = await editor.request('confine/runs/kill', { runId: 'background' });
  assert.equal(killed.killed, true);
  const { result: ended } = await editor.request('confine/runs/wait', { runId: 'background', timeoutMs: 20000 });
  assert.equal(ended.status, 'cancelled');
  assert.deepEqual(processes(marker), []);
  const { result: list } = await editor.request('confine/runs/list', {});
  assert.equal(list.runs.find((r) => r.runId === 'background').status, 'cancelled');
});

await chapter('the server ends when it is told to', async () => {
  const marker = `story-shutdown-${process.pid}`;
  await editor.run({ command: `exec -a ${marker} sleep 600`, background: true });
  await until(() => processes(marker).length > 0, 'the background run is seen');
  assert.deepEqual(await editor.stop(), { code: 0, signal: null });
  await until(() => processes(marker).length === 0, 'nothing is left', 2000);
});

for (const [kind, announce] of [['our own client', undefined], ['a stock client', null]]) {
  await chapter(`a question left unanswered by ${kind} runs nothing`, async () => {
    const hasty = new Editor({ announce, program: need('CONFINE_HASTY_BIN') });
    await hasty.initialize(workspace);
    await unanswered(hasty, announce === null ? 'unanswered-stock' : 'unanswered');
    await hasty.stop();
  });
}

await chapter('a stock client is asked by message', async () => {
  const stock = new Editor({ announce: null });
  await stock.initialize(workspace);
  const file = outsideFile('stock');
  await denied(stock, file, 'stock-1');
  let reply = escalate(stock, 'stock-1');
  let question = await stock.nextQuestion();
  assert.equal(question.method, 'window/showMessageRequest');
  assert.ok(question.message.includes(file), question.message);
  question.answer(null); // the person closed it
  assert.ok(['refused', 'cancelled'].includes((await reply).result.status));
  await nothingRuns(stock, file);
  await cancelled(stock, 'cancelled-stock');
  await denied(stock, file, 'stock-2');
  reply = escalate(stock, 'stock-2');
  question = await stock.nextQuestion();
  question.choose('allow_once');
  assert.equal((await reply).result.approval.outcome, 'allowed-once');
  assert.equal(fs.readFileSync(file, 'utf8'), 'wide');
  const { result: started } = await stock.request('workspace/executeCommand', { command: 'confine.server.run', arguments: ['echo by command > by-command.txt'] });
  assert.match(started.runId, /^[A-Za-z0-9_-]{1,64}$/);
  await stock.request('confine/runs/wait', { runId: started.runId });
  assert.equal(fs.readFileSync(path.join(workspace, 'by-command.txt'), 'utf8'), 'by command\n');
  fs.rmSync(path.join(workspace, 'by-command.txt'));
  await stock.stop();
});

for (const [title, end] of [
  ['a killed server leaves nothing', (lost) => lost.kill()],
  ['a lost editor leaves nothing', (lost) => { lost.server.stdin.end(); return within(lost.exited, 'the server to exit'); }],
]) {
  await chapter(title, async () => {
    const lost = new Editor();
    await lost.initialize(workspace);
    const marker = `story-lost-${process.pid}-${passed}`;
    const file = outsideFile(marker);
    await denied(lost, file, 'asked');
    escalate(lost, 'asked').catch(() => {}); // never answered
    await lost.nextQuestion();
    await lost.run({ command: `(setsid bash -c 'exec -a ${marker} sleep 600' &) ; exec -a ${marker} sleep 600`, background: true });
    await until(() => processes(marker).length >= 2, 'the background run is seen');
    await end(lost);
    await until(() => processes(marker).length === 0, 'nothing is left', 2000);
    assert.ok(!fs.existsSync(file));
  });
}

console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
