if vim.g.loaded_confine then
  return
end
vim.g.loaded_confine = 1

if vim.fn.has('nvim-0.10') == 0 then
  vim.api.nvim_err_writeln('confine: Neovim 0.10 or newer is needed')
  return
end

vim.api.nvim_create_user_command('Confine', function(args)
  require('confine.commands').run_command(args)
end, {
  nargs = '+',
  range = true,
  bang = true,
  desc = 'Run commands in a sandbox',
  complete = function(...)
    return require('confine.commands').complete(...)
  end,
})
