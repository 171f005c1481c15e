-- For luacheck: Neovim's Lua is LuaJIT with one global more.
std = 'luajit'
read_globals = { vim = { other_fields = true } }
globals = { 'vim.bo', 'vim.wo', 'vim.o', 'vim.go', 'vim.g', 'vim.env', 'vim.opt', 'vim.notify', 'vim.ui' }
self = false
max_line_length = false
