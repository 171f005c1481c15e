local check = require('check')
local ansi = require('confine.ansi')

-- through passes text in pieces of one length through a fresh filter.
local function through(make, given, size)
  local filter, out = make(), {}
  for i = 1, #given, size do
    out[#out + 1] = filter(given:sub(i, i + size - 1))
  end
  return table.concat(out)
end

-- given, as plain text, in a terminal
local cases = {
  { 'plain\n', 'plain\n', 'plain\n' },
  { '\27[1;31mred\27[0m', 'red', '\27[1;31mred\27[0m' },
  { 'a\27[2Kb\27[10;20Hc', 'abc', 'a\27[2Kb\27[10;20Hc' },
  { 'a\27]52;c;aGk=\7b', 'ab', 'ab' }, -- sets the clipboard
  { 'a\27]0;title\27\\b', 'ab', 'ab' },
  { 'a\27]8;;http://example.test\27\\link\27]8;;\27\\b', 'alinkb', 'alinkb' },
  { 'a\27Pq#0\27\\b', 'ab', 'ab' },
  { 'a\27_G\27\\b\27^x\27\\c\27Xy\27\\d', 'abcd', 'abcd' },
  { 'a\27(Bb', 'ab', 'a\27(Bb' },
  { 'a\27=b', 'ab', 'a\27=b' },
  { 'a\27]never ended\nb', 'a\nb', 'a\nb' }, -- hides no line after it
  { 'a\27]x\27[31mb', 'ab', 'a\27[31mb' },
  { 'a\27\27[31mb', 'ab', 'a\27[31mb' },
  { 'é\27[0m漢', 'é漢', 'é\27[0m漢' },
  { 'a\27', 'a', 'a' },
  { '\27[' .. ('1;'):rep(4000) .. 'm|\nend', nil, nil },
}

check.test('control sequences, however they are cut', function()
  for _, case in ipairs(cases) do
    for size = 1, 7 do
      local plain, terminal = through(ansi.for_text, case[1], size), through(ansi.for_terminal, case[1], size)
      if case[2] then
        check.eq(plain, case[2], vim.inspect(case[1]))
        check.eq(terminal, case[3], vim.inspect(case[1]))
      else
        check.has(plain, '\nend')
      end
      assert(not plain:find('\27'), 'an escape is left')
      assert(not terminal:find('\27[%]PX^_]'), 'a control string is left')
    end
  end
end)

check.test('what is fuzzed never brings a control string through', function()
  local alphabet = { '\27', '[', ']', 'P', '_', '^', 'X', '\\', '\7', '\24', '0', ';', 'm', 'x', '\n', '(', '\155' }
  math.randomseed(7)
  for _ = 1, 2000 do
    local parts = {}
    for i = 1, 30 do
      parts[i] = alphabet[math.random(#alphabet)]
    end
    local given = table.concat(parts)
    local size = math.random(1, 5)
    local terminal = through(ansi.for_terminal, given, size)
    assert(not terminal:find('\27[%]PX^_]'), vim.inspect(given))
    assert(not through(ansi.for_text, given, size):find('\27'), vim.inspect(given))
  end
end)
