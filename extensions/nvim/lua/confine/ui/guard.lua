--- Whether the person meant a key for the question in front of them. Pure: it is
--- told the time, and what happened.
---
--- A key counts only after the question has been in front of the person for half
--- a second in which nothing was typed. Until then the person may be typing what
--- was meant for something else.
local M = {}

--- Milliseconds without a key, in front of the question.
M.quiet = 500

---@class confine.Guard
---@field armed boolean
---@field since number milliseconds; from when on it has been quiet
local Guard = {}
Guard.__index = Guard

---@param now number milliseconds
---@return confine.Guard
function M.new(now)
  return setmetatable({ armed = false, since = now }, Guard)
end

--- The question was drawn anew, or is not in front of the person any more.
---@param now number
function Guard:disarm(now)
  self.armed, self.since = false, now
end

--- A key was typed.
---@param now number
function Guard:typed(now)
  if not self.armed then
    self.since = now
  end
end

--- Time went by. drain takes what was typed and not read yet, and reports
--- whether there was any.
---@param now number
---@param drain fun(): boolean
function Guard:tick(now, drain)
  if self.armed or now - self.since < M.quiet then
    return
  end
  if drain() then
    self.since = now
  else
    self.armed = true
  end
end

---@class confine.Keypress
---@field typed string what came from the keyboard; empty if a macro, a mapping or a script pressed it
---@field key string the key that it is bound to
---@field replayed boolean a macro is running

--- Whether a key that allows may be obeyed.
---@param press confine.Keypress
---@return boolean
function Guard:allows(press)
  return self.armed and not press.replayed and press.typed == press.key
end

--- Whether a key that refuses may be obeyed. A mapping of the person's own may press it.
---@param press confine.Keypress
---@return boolean
function Guard:refuses(press)
  return self.armed and not press.replayed and press.typed ~= ''
end

return M
