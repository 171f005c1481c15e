--- Output of commands on its way to the screen. A command decides every byte of
--- it, so what could do more than print is taken out. Pure; both filters take
--- pieces and keep what is unfinished until the next one.
local M = {}

--- The most bytes of an unfinished sequence that are kept.
local longest = 4096

--- Takes sequences apart. `csi` says whether control sequences (colours, cursor)
--- stay; control strings (title, clipboard, links, …) never do.
---@param keep_csi boolean
---@return fun(bytes: string): string
local function filter(keep_csi)
  local state = 'text' -- | 'escape' | 'csi' | 'string' | 'string-escape'
  local held = ''
  local function step(char, out)
    local byte = char:byte()
    if state == 'text' then
      if byte == 0x1b then
        state, held = 'escape', char
      else
        out[#out + 1] = char
      end
    elseif state == 'escape' then
      if char == '[' then
        state, held = 'csi', held .. char
      elseif char:find('[%]PX^_]') then
        state, held = 'string', ''
      elseif byte == 0x1b then
        held = char
      elseif byte < 0x20 then
        state, held = 'text', ''
        out[#out + 1] = char
      elseif byte < 0x30 then -- an intermediate byte: ESC ( B and the like
        held = held .. char
      else
        if keep_csi and #held + 1 <= 4 then
          out[#out + 1] = held .. char
        end
        state, held = 'text', ''
      end
    elseif state == 'csi' then
      held = held .. char
      if byte == 0x1b then
        state, held = 'escape', char
      elseif byte >= 0x40 and byte <= 0x7e then
        if keep_csi then
          out[#out + 1] = held
        end
        state, held = 'text', ''
      elseif #held > longest or byte >= 0x80 then
        state, held = 'text', ''
      end
    elseif state == 'string' then
      if char == '\n' then -- one that is never ended must not hide what follows
        state = 'text'
        out[#out + 1] = char
      elseif byte == 0x07 or byte == 0x18 or byte == 0x1a then
        state = 'text'
      elseif byte == 0x1b then
        state = 'string-escape'
      end
    elseif char == '\\' then
      state = 'text'
    else -- an escape ends the string, whatever follows
      state, held = 'escape', '\27'
      step(char, out)
    end
  end
  return function(bytes)
    if state == 'text' and not bytes:find('\27', 1, true) then
      return bytes
    end
    local out, i = {}, 1
    while i <= #bytes do
      if state == 'text' then
        local at = bytes:find('\27', i, true) or #bytes + 1
        out[#out + 1] = bytes:sub(i, at - 1)
        i = at
      end
      if i <= #bytes then
        step(bytes:sub(i, i), out)
        i = i + 1
      end
    end
    return table.concat(out)
  end
end

--- For a terminal buffer: colours and cursor stay. Control strings do not, which
--- could set the clipboard, the title or a link.
---@return fun(bytes: string): string
function M.for_terminal()
  return filter(true)
end

--- For a plain buffer: no sequence stays.
---@return fun(bytes: string): string
function M.for_text()
  return filter(false)
end

return M
