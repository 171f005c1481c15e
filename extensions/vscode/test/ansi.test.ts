import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Printed } from '../src/ansi';

const pipe = (text: string) => new Printed(false).push(Buffer.from(text));
const terminal = (text: string) => new Printed(true).push(Buffer.from(text));

const rows: [name: string, text: string, pipe: string, terminal: string][] = [
  ['text', 'a é 漢 ✓', 'a é 漢 ✓', 'a é 漢 ✓'],
  ['ends of lines', 'a\nb\r\n', 'a\r\nb\r\r\n', 'a\nb\r\n'],
  ['colours', '\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb', '\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb', '\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb'],
  ['a progress bar', '1%\r\x1b[K2%', '1%\r\x1b[K2%', '1%\r\x1b[K2%'],
  ['moving the cursor', 'a\x1b[3Ab\x1b[2Jc', 'abc', 'a\x1b[3Ab\x1b[2Jc'],
  ['modes', '\x1b[?1049hvim\x1b=\x1b7', 'vim', '\x1b[?1049hvim\x1b=\x1b7'],
  ['a character set', '\x1b(0qq\x1b(B', 'qq', '\x1b(0qq\x1b(B'],
  ['a title, ended by BEL', '\x1b]0;root@host\x07after', 'after', 'after'],
  ['the clipboard, ended by ST', '\x1b]52;c;aGk=\x1b\\after', 'after', 'after'],
  ['what the shell integration reports', '\x1b]633;E;rm -rf /\x07after', 'after', 'after'],
  ['a link', '\x1b]8;;command:x\x07text\x1b]8;;\x07', 'text', 'text'],
  ['a device control string', '\x1bP$qm\x1b\\after', 'after', 'after'],
  ['C1 controls', '\u009b31mred\u009d0;title\u009cafter\u0085', '\x1b[31mredafter', '\x1b[31mredafter'],
  ['questions about the window', '\x1b[21tafter', 'after', 'after'],
  ['a sequence within another', '\x1b[3\x1b[31mx', '\x1b[31mx', '\x1b[31mx'],
  ['a line that ends within a sequence', 'a\x1b[3\nb', 'a\r\nb', 'a\nb'],
  ['bells and shifts', 'a\x07b\x0e\x0fc\x05d', 'abcd', 'a\x07bcd'],
  ['a string without an end swallows its line only', '\x1b]0;never\nafter', '\r\nafter', '\nafter'],
  ['a string without an end in a terminal', '\x1bPnever\r\nafter', '\r\r\nafter', '\r\nafter'],
];
for (const [name, text, fromPipe, fromTerminal] of rows) {
  test(name, () => {
    assert.equal(pipe(text), fromPipe);
    assert.equal(terminal(text), fromTerminal);
  });
}

test('pieces can be cut anywhere', () => {
  const bytes = Buffer.from('é\x1b[1;31m漢\x1b]0;title\x1b\\z\x1b[0m');
  for (let cut = 0; cut <= bytes.length; cut++) {
    const printed = new Printed(false);
    assert.equal(printed.push(bytes.subarray(0, cut)) + printed.push(bytes.subarray(cut)), 'é\x1b[1;31m漢z\x1b[0m', `cut at ${cut}`);
  }
});

test('a sequence without an end does not grow', () => {
  const printed = new Printed(true);
  printed.push(Buffer.from('\x1b['));
  for (let i = 0; i < 1000; i++) printed.push(Buffer.from('1;'));
  assert.equal(printed.push(Buffer.from('\nafter')).endsWith('\nafter'), true);
});

test('a string that goes on and on is shown from some point, and what is not is counted', () => {
  for (const begin of ['\x1b]52;c;', '\x1bP', '\u009f']) {
    const printed = new Printed(true);
    assert.equal(printed.push(Buffer.from(begin + 'x'.repeat(10000))), '');
    const shown = printed.push(Buffer.from('x'.repeat(100000) + 'after'));
    assert.match(shown, /^\[confine: 65536 characters of a control string are not shown\]x{40000,}after$/);
    assert.equal(printed.push(Buffer.from('more')), 'more');
  }
});
