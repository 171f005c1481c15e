import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Paced } from '../src/paced';

// screen is a terminal that answers when it is told to.
function screen() {
  const asked: string[] = [];
  let written = '';
  let next = 2 ** 30;
  const paced = new Paced((text) => {
    written += text;
    for (const [, mode] of text.matchAll(/\x1b\[\?(\d+)\$p/g)) asked.push(mode!);
  }, () => next++);
  const answer = () => `\x1b[?${asked.shift()!};0$y`;
  return { paced, asked, answer, text: () => written.replaceAll(/\x1b\[\?\d+\$p/g, '') };
}

const chunk = 'x'.repeat(64 * 1024);

test('who prints little is never asked', () => {
  const { paced, asked, text } = screen();
  for (let n = 0; n < 100; n++) paced.push('a line\n');
  assert.equal(asked.length, 0);
  assert.ok(paced.ready);
  assert.equal(text(), 'a line\n'.repeat(100));
});

test('no more is written than the terminal has drawn, save so much', () => {
  const { paced, answer, text } = screen();
  let pushed = 0;
  for (; paced.ready; pushed++) paced.push(chunk);
  assert.equal(pushed, 4);
  assert.equal(paced.typed(answer()), '');
  assert.ok(paced.ready);
  paced.push(chunk);
  assert.ok(!paced.ready);
  assert.equal(text().length, 5 * chunk.length);
});

test('an answer is not typed text, and what is typed beside it is', () => {
  const { paced, asked, answer } = screen();
  for (let n = 0; n < 4; n++) paced.push(chunk);
  assert.equal(paced.typed(`a${answer()}b${answer()}\r`), 'ab\r');
  assert.equal(paced.typed('plain'), 'plain');
  asked.shift(); // its answer was lost, and the next one says as much
  assert.equal(paced.typed(answer()), '');
  let more = 0;
  for (; paced.ready; more++) paced.push(chunk);
  assert.equal(more, 4);
});

test('what is no answer to us goes to the command', () => {
  const { paced } = screen();
  for (let n = 0; n < 4; n++) paced.push(chunk);
  for (const text of ['\x1b[?2026;2$y', '\x1b[0n', `\x1b[?${2 ** 30 + 9};0$y`]) assert.equal(paced.typed(text), text);
  assert.ok(!paced.ready);
});

test('answers that are lost stop nothing for ever, and are ours when they come late', () => {
  const { paced, answer } = screen();
  for (let n = 0; n < 4; n++) paced.push(chunk);
  assert.ok(!paced.ready);
  paced.giveUp();
  assert.ok(paced.ready);
  for (let n = 0; n < 4; n++) paced.push(chunk);
  assert.equal(paced.typed(`a${answer()}b`), 'ab');
  assert.ok(!paced.ready, 'a late answer says nothing of what was asked since');
  for (let n = 0; n < 3; n++) assert.equal(paced.typed(answer()), '');
  assert.equal(paced.typed(answer()), '');
  assert.ok(paced.ready);
});
