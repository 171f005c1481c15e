--- :checkhealth confine
local M = {}

function M.check()
  local health = vim.health
  local config = require('confine.config').current
  local workspace = require('confine.workspace')
  local program = require('confine.program')
  health.start('confine: Neovim')
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim is too old: 0.10 or newer is needed')
    return
  end
  if config.question == 'select' then
    health.warn('questions are asked by vim.ui.select, which may cut them', { "question = 'float' shows them whole" })
  end

  health.start('confine: the program')
  local root = workspace.find(workspace.here(), config)
  local command, problem = program.find(config, root)
  if not command then
    health.error(problem --[[@as string]], { 'install confine, and keep it outside your projects' })
    return
  end
  local done, unusable, found
  program.check(command, function(why, facts)
    done, unusable, found = true, why, facts
  end)
  vim.wait(12000, function()
    return done
  end, 10)
  if not found then
    health.error(unusable or 'the program did not answer')
    return
  end
  health.ok(('%s, version %s, protocol %d'):format(table.concat(found.command, ' '), found.version, found.protocol))

  health.start('confine: what is enforced for this folder')
  if not root then
    health.info('this is the home folder, or above it, and no workspace folder')
  end
  local capabilities, failure
  require('confine.client').here():request(require('confine.protocol').send.capabilities, { wait = true }, function(failed, facts)
    failure, capabilities = failed, facts
  end)
  vim.wait(20000, function()
    return capabilities ~= nil or failure ~= nil
  end, 10)
  if not capabilities then
    health.error(failure and failure.message or 'the server did not answer', { ':Confine log says more', ':Confine restart tries again' })
    return
  end
  for _, finding in ipairs(require('confine.report').findings(capabilities)) do
    health[finding.level](finding.text)
  end
end

return M
