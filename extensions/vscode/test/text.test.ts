import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cut, label, message, visible } from '../src/text';

test('what cannot be seen is spelled', () => {
  assert.equal(visible('a\nb\tc\r\x1b[0m'), 'a\\nb\\tc\\r\\e[0m');
  assert.equal(visible('x\u202Ey\u200Bz\u00A0\u{E0041}'), 'x\\u{202E}y\\u{200B}z\\u{A0}\\u{E0041}');
  assert.equal(visible('\u3164\u115F\uFE0F'), '\\u{3164}\\u{115F}\\u{FE0F}');
  assert.equal(visible('plain text, é 漢 ✓'), 'plain text, é 漢 ✓');
});

test('a long text keeps its beginning and its end', () => {
  const text = cut('begin' + '-'.repeat(1000) + '&& rm -rf /', 60);
  assert.equal(Array.from(text).length, 60);
  assert.ok(text.startsWith('begin-') && text.endsWith('rm -rf /') && text.includes('…'));
  assert.equal(cut('short', 60), 'short');
  assert.equal(cut('😀'.repeat(10), 10), '😀'.repeat(10));
});

test('labels have no icons, notifications no links', () => {
  assert.doesNotMatch(label('$(zap) echo $(id)'), /\$\(/);
  assert.doesNotMatch(message('[Allow](command:x)\n[y](https://z)'), /\]\(|\n/);
});
