local check = require('check')
local text = require('confine.text')

check.test('what cannot be seen is written out', function()
  for given, want in pairs({
    ['plain text'] = 'plain text',
    ['a\nb\r\tc'] = 'a\\nb\\r\\tc',
    ['a\27[31mred'] = 'a\\u{1B}[31mred',
    ['\0'] = '\\u{0}',
    ['\127'] = '\\u{7F}',
    ['x\194\155y'] = 'x\\u{9B}y',
    ['abc\226\128\174def'] = 'abc\\u{202E}def', -- right-to-left override
    ['\226\129\166x\226\129\169'] = '\\u{2066}x\\u{2069}', -- isolates
    ['a\226\128\139b'] = 'a\\u{200B}b', -- zero-width space
    ['\239\187\191'] = '\\u{FEFF}',
    ['\243\160\128\129'] = '\\u{E0001}', -- tag
    ['a\204\184b'] = 'a\\u{338}b', -- a stroke through the letter
    ['\239\191\189'] = '\\u{FFFD}',
    ['\255\254'] = '\\xff\\xfe',
    ['\192\175'] = '\\xc0\\xaf', -- overlong
    ['\224\128\175'] = '\\xe0\\x80\\xaf', -- overlong
    ['\237\160\128'] = '\\xed\\xa0\\x80', -- surrogate
    ['\226\130'] = '\\xe2\\x82', -- cut
    ['\244\144\128\128'] = '\\xf4\\x90\\x80\\x80', -- above the last character
    ['é 漢 🙂'] = 'é 漢 🙂',
  }) do
    check.eq(text.visible(given), want)
    check.eq(text.readable(given), want)
  end
end)

check.test('what looks like something else is written out in commands, and left in prose', function()
  for _, code in ipairs({ 0xa0, 0x1680, 0x2000, 0x200a, 0x202f, 0x205f, 0x3000, 0x5d0, 0x627, 0xe000, 0xfb1d, 0xfe70, 0x1e900, 0xf0000, 0x10ffff }) do
    local char = vim.fn.nr2char(code)
    check.eq(text.visible('rm' .. char .. '-rf'), ('rm\\u{%X}-rf'):format(code))
    check.eq(text.readable(char), char)
  end
end)

check.test('of a long text the beginning and the end', function()
  check.eq(text.bounded('abcdef', 6), 'abcdef')
  check.eq(text.bounded('abcdefg', 6), 'abc⟨1 bytes not shown⟩efg')
  check.eq(text.bounded('漢漢漢', 4), '⟨9 bytes not shown⟩')
  check.eq(text.bounded('漢漢漢', 8), '漢⟨3 bytes not shown⟩漢')
end)

check.test('rows hold every character, and none is wider than it may be', function()
  for _, line in ipairs({ ('x'):rep(1000), ('漢'):rep(333), 'a' .. ('漢b'):rep(100), 'e\204\129' .. ('é'):rep(200), '' }) do
    for _, width in ipairs({ 2, 3, 10, 77 }) do
      local rows = text.rows(line, width)
      check.eq(table.concat(rows), line)
      for _, row in ipairs(rows) do
        assert(vim.fn.strdisplaywidth(row) <= width, ('%q is wider than %d'):format(row, width))
      end
    end
  end
  check.eq(text.rows('', 5), { '' })
end)

check.test('prose is cut between words, and long words in themselves', function()
  check.eq(text.prose('one two three', 7), { 'one two', 'three' })
  check.eq(text.prose('abcdefghij k', 4), { 'abcd', 'efgh', 'ij k' })
  check.eq(text.prose('', 4), { '' })
end)

check.test('short keeps start and end', function()
  check.eq(text.short('abc', 3), 'abc')
  check.eq(text.short('abcdefghij', 5), 'ab…ij')
  check.eq(text.short('漢漢漢漢', 5), '漢…漢')
end)

check.test('durations', function()
  check.eq({ text.duration(0), text.duration(999), text.duration(1500), text.duration(61000) }, { '0 ms', '999 ms', '1.5 s', '1 min 1 s' })
end)
