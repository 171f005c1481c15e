--- What is known of commands that were sent: their output, their end. A model;
--- it shows nothing and sends nothing.
local M = {}

--- Bytes of output that are kept of a run, and runs that are kept.
M.most_bytes = 1024 * 1024
M.most_runs = 128
--- Pieces of output that are kept of a run: many small ones cost more than their bytes.
M.most_pieces = 4096

---@class confine.Piece
---@field stream confine.Stream
---@field bytes string
---@field gap integer how many were printed before it and are not here

---@class confine.Run
---@field id string
---@field server confine.Server
---@field life table? the server's process that ran it
---@field command string as it is shown: one line, everything visible
---@field cwd string
---@field of string? the run that this one repeats with more
---@field pty boolean
---@field state confine.Status|'failed' failed: there is no result
---@field started integer seconds since 1970
---@field started_ms integer of the monotonic clock
---@field duration_ms integer? once it has ended
---@field pieces confine.Piece[] the end of the output, as much as is kept
---@field bytes integer how many are kept
---@field missing integer how many were printed and are not in pieces
---@field seen table<confine.Stream, integer> up to which byte of each stream we were told
---@field waiting boolean the person is asked about it
---@field result confine.RunResult?
---@field failure confine.Failure?

---@type confine.Run[] newest first
local list = {}
---@type table<string, confine.Run>
local by_id = {}
local counter = 0
---@type table<fun(run: confine.Run, piece: confine.Piece?), true>
local listeners = {}

---@param run confine.Run
---@param piece confine.Piece?
local function tell(run, piece)
  for listener in pairs(listeners) do
    local ok, problem = pcall(listener, run, piece)
    if not ok then
      require('confine.log').write('error', 'showing a run failed: ' .. tostring(problem))
    end
  end
end

--- Calls listener with each run that changes, and with what it printed if it did.
---@param listener fun(run: confine.Run, piece: confine.Piece?)
---@return fun() stop
function M.listen(listener)
  listeners[listener] = true
  return function()
    listeners[listener] = nil
  end
end

--- Whether nothing more will happen to it.
---@param run confine.Run
---@return boolean
function M.ended(run)
  return run.state ~= 'running'
end

---@param facts { server: confine.Server, command: string, cwd: string, of: string?, pty: boolean? }
---@return confine.Run
function M.add(facts)
  counter = counter + 1
  ---@type confine.Run
  local run = {
    id = ('n%d'):format(counter),
    server = facts.server,
    life = nil,
    command = facts.command,
    cwd = facts.cwd,
    of = facts.of,
    pty = facts.pty or false,
    state = 'running',
    started = os.time(),
    started_ms = vim.uv.now(),
    pieces = {},
    bytes = 0,
    missing = 0,
    seen = { stdout = 0, stderr = 0 },
    waiting = false,
  }
  table.insert(list, 1, run)
  by_id[run.id] = run
  for i = #list, 1, -1 do
    if #list <= M.most_runs then
      break
    elseif M.ended(list[i]) then
      by_id[list[i].id] = nil
      table.remove(list, i)
    end
  end
  tell(run)
  return run
end

---@param id string
---@return confine.Run?
function M.get(id)
  return by_id[id]
end

---@return confine.Run[] newest first
function M.list()
  return list
end

--- The newest run for which holds(run) is true.
---@param holds fun(run: confine.Run): boolean
---@return confine.Run?
function M.newest(holds)
  for _, run in ipairs(list) do
    if holds(run) then
      return run
    end
  end
end

---@param run confine.Run
---@param stream confine.Stream
---@param bytes string
---@param gap integer bytes that were printed before it and left out
function M.output(run, stream, bytes, gap)
  run.missing = run.missing + gap
  run.seen[stream] = run.seen[stream] + gap + #bytes
  if bytes == '' and gap == 0 then
    return
  end
  local last = run.pieces[#run.pieces]
  if last and last.stream == stream and #last.bytes < 4096 and gap == 0 then
    last.bytes = last.bytes .. bytes
  else
    run.pieces[#run.pieces + 1] = { stream = stream, bytes = bytes, gap = gap }
  end
  run.bytes = run.bytes + #bytes
  while #run.pieces > M.most_pieces or (run.bytes > M.most_bytes and #run.pieces > 1) do
    local oldest = table.remove(run.pieces, 1)
    run.bytes, run.missing = run.bytes - #oldest.bytes, run.missing + #oldest.bytes
  end
  tell(run, { stream = stream, bytes = bytes, gap = gap })
end

--- Adds the end of what was printed, if we were not told it: the server leaves
--- pieces out for a client that is slow, and the result has the end.
---@param run confine.Run
---@param result confine.RunResult
function M.complete(run, result)
  for _, stream in ipairs({ 'stdout', 'stderr' }) do
    local printed = result[stream]
    local lacking = printed.bytes - run.seen[stream]
    if lacking > 0 then
      local bytes = printed.text:sub(-lacking)
      M.output(run, stream, bytes, lacking - #bytes)
    end
  end
end

---@param run confine.Run
---@param waiting boolean
function M.set_waiting(run, waiting)
  run.waiting = waiting
  tell(run)
end

---@param run confine.Run
---@param failure confine.Failure?
---@param result confine.RunResult?
function M.finish(run, failure, result)
  if M.ended(run) then
    return
  end
  run.result, run.failure, run.waiting = result, failure, false
  run.life = run.server.life
  run.state = failure and (failure.kind == 'cancelled' and 'cancelled' or 'failed') or result and result.status or 'failed'
  run.duration_ms = result and result.durationMs or (vim.uv.now() - run.started_ms)
  tell(run)
end

--- What became of a run, in some words.
---@param run confine.Run
---@return string
function M.outcome(run)
  local result = run.result
  if run.waiting then
    return 'waits for your answer'
  elseif run.state == 'running' then
    return 'running'
  elseif run.failure then
    return run.state == 'cancelled' and 'cancelled' or 'did not run'
  elseif not result then
    return run.state
  elseif result.status == 'refused' then
    return 'refused'
  elseif result.status == 'cancelled' then
    return 'cancelled'
  end
  local how = result.timedOut and 'timed out' or result.signal or (result.exitCode == 0 and 'ok' or ('exit %s'):format(result.exitCode or '?'))
  return result.sandbox and result.sandbox.denied and (how .. ', sandbox refused') or how
end

--- Whether more can be asked for, so that it may run again.
---@param run confine.Run
---@return boolean
function M.can_escalate(run)
  return run.result ~= nil and run.result.escalation ~= nil and run.life ~= nil and run.life == run.server.life
end

return M
