-- The window with the output of a run, given pieces as the server sends them.
local check = require('check')
local runs = require('confine.runs')
local output = require('confine.ui.output')

-- shown opens the output of a run that printed pieces, each drawn before the next, and returns its lines.
local function shown(pieces)
  local run = runs.add({ server = {}, command = 'true', cwd = '/' })
  output.open(run)
  local buf = vim.fn.bufnr('^confine://' .. run.id .. '$')
  local function lines()
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  for i, piece in ipairs(pieces) do
    runs.output(run, 'stdout', piece .. ('piece %d\n'):format(i), 0)
    check.until_true('it is drawn', function()
      local got = lines()
      return got[#got - 1] == 'piece ' .. i
    end)
  end
  local got = lines()
  vim.api.nvim_buf_delete(buf, { force = true })
  return got
end

local function numbers(first, last)
  local out = {}
  for i = first, last do
    out[#out + 1] = i .. '\n'
  end
  return table.concat(out)
end

check.test('lines that are not shown any more are counted, however they came', function()
  for _, pieces in ipairs({
    { numbers(1, 25000) },
    { numbers(1, 9000), numbers(9001, 12000), numbers(12001, 12500), numbers(12501, 25000) },
    { numbers(1, 11000), '', '', numbers(11001, 25000) },
  }) do
    local lines = shown(pieces)
    local dropped = tonumber(lines[2]:match('^%[(%d+) lines are not shown any more%]$'))
    assert(#lines <= 10003, #lines)
    -- All that was printed, the last line included that has not begun.
    check.eq(dropped + #lines - 2, 25000 + #pieces + 1)
    check.eq({ lines[1], lines[#lines - 2] }, { '$ true', '25000' })
  end
end)
