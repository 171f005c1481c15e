import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApprovalAnswer, Question } from '../src/protocol';
import { Questions } from '../src/questions';

function question(id: string, runId = `run-${id}`): Question {
  return {
    id, runId, kind: 'command', title: '', command: 'true', cwd: '/', mode: 'read-only', wanted: {}, reason: '', evidence: [], warnings: [], policyHash: '', defaultOptionId: 'no', expiresAt: '', text: '',
    options: [{ optionId: 'no', name: 'Refuse', kind: 'reject_once' }, { optionId: 'yes', name: 'Allow', kind: 'allow_once' }],
  };
}

const cancelled: ApprovalAnswer = { outcome: { outcome: 'cancelled' } };
const selected = (optionId: string): ApprovalAnswer => ({ outcome: { outcome: 'selected', optionId } });
const ids = (q: Questions) => q.waiting.map((w) => w.id);

test('an answer is the option that was picked', async () => {
  const questions = new Questions(() => undefined);
  const answer = questions.ask(question('a'));
  assert.equal(questions.answer('a', 'yes'), 'taken');
  assert.deepEqual(await answer, selected('yes'));
  assert.deepEqual(ids(questions), []);
});

test('refusing picks what the server says refuses', async () => {
  const questions = new Questions(() => undefined);
  const answer = questions.ask(question('a'));
  assert.equal(questions.refuse('a'), 'taken');
  assert.deepEqual(await answer, selected('no'));
});

test('whatever is no option of the question is no yes', async () => {
  const questions = new Questions(() => undefined);
  const answer = questions.ask(question('a'));
  questions.answer('a', 'allow-everything');
  assert.deepEqual(await answer, cancelled);
});

test('after it was withdrawn a yes does nothing, and that is told', async () => {
  const questions = new Questions(() => undefined);
  const answer = questions.ask(question('a'));
  questions.withdraw({ id: 'a' });
  assert.equal(questions.answer('a', 'yes'), 'too-late');
  assert.equal(questions.refuse('a'), 'too-late');
  assert.equal(questions.dismiss('a'), 'too-late');
  assert.deepEqual(await answer, cancelled);
});

test('one answer settles one question', async () => {
  const questions = new Questions(() => undefined);
  const [first, second] = [questions.ask(question('a')), questions.ask(question('b'))];
  questions.answer('a', 'yes');
  assert.deepEqual(ids(questions), ['b']);
  assert.equal(questions.answer('a', 'yes'), 'too-late');
  questions.dismiss('b');
  assert.deepEqual(await Promise.all([first, second]), [selected('yes'), cancelled]);
});

test('an id that is asked again is another question', async () => {
  const questions = new Questions(() => undefined);
  const first = questions.ask(question('a'));
  const second = questions.ask(question('a', 'other'));
  questions.answer('a', 'yes');
  assert.deepEqual(await first, cancelled);
  assert.deepEqual(await second, selected('yes'));
});

test('the oldest is shown, or the one that the person chose while it waits', async () => {
  const questions = new Questions(() => undefined);
  const answers = ['a', 'b', 'c'].map((id) => questions.ask(question(id)));
  assert.equal(questions.shown?.id, 'a');
  questions.show('c');
  assert.equal(questions.shown.id, 'c');
  questions.withdraw({ id: 'c' });
  assert.equal(questions.shown.id, 'a');
  questions.show('gone');
  assert.equal(questions.shown.id, 'a');
  assert.equal(questions.of('run-b')?.id, 'b');
  assert.equal(questions.of('run-c'), undefined);
  questions.clear();
  assert.deepEqual(await Promise.all(answers), [cancelled, cancelled, cancelled]);
});

test('when the server ends nothing waits', async () => {
  let changes = 0;
  const questions = new Questions(() => changes++);
  const answers = [questions.ask(question('a')), questions.ask(question('b'))];
  changes = 0;
  questions.clear();
  assert.deepEqual(await Promise.all(answers), [cancelled, cancelled]);
  assert.equal(questions.shown, undefined);
  assert.equal(changes, 2);
});
