-- The mirror against the schema, in both directions: what it names is there as it
-- says, and nothing is missing of what we send. Fields and values that are new in
-- what we are sent may be missing: clients ignore those.
local check = require('check')
local protocol = require('confine.protocol')

local schema_path = vim.fs.joinpath(vim.fs.dirname(vim.fs.dirname(check.plugin)), 'docs/protocol.schema.json')
local schema = vim.json.decode(check.read(schema_path))
local source = check.read(check.plugin .. '/lua/confine/protocol.lua')

-- The annotations of the mirror: classes with their fields, and closed sets.
local classes, aliases = {}, {}
local class = ''
for line in vim.gsplit(source, '\n', { plain = true }) do
  local name = line:match('^%-%-%-@class confine%.(%w+)$')
  local field, optional, kind = line:match('^%-%-%-@field (%w+)(%??) (.+)$')
  local alias, values = line:match('^%-%-%-@alias confine%.(%w+) (.+)$')
  if name then
    class = name
    classes[class] = {}
  elseif field then
    classes[class][field] = { optional = optional == '?', kind = kind }
  elseif alias then
    aliases[alias] = values
  end
end

-- is_set reports whether 'a'|'b' of the mirror are values of the schema, and all of them if it must be whole.
local function is_set(written, values, whole)
  local count = 0
  for value in written:gmatch("'([^']*)'") do
    count = count + 1
    if not vim.tbl_contains(values, value) then
      return false
    end
  end
  return count > 0 and (not whole or count == #values)
end

-- fits reports whether a type of the mirror says what a type of the schema says.
local function fits(kind, wanted, whole)
  local set = aliases[kind:match('^confine%.(%w+)$') or '']
  if wanted['$ref'] then
    local name = wanted['$ref']:match('(%w+)$')
    return kind == 'confine.' .. name or (kind == 'table' and not classes[name])
  elseif wanted.enum then
    return is_set(set or kind, wanted.enum, whole)
  elseif type(wanted.type) == 'table' then
    local kinds = vim.split(kind, '|', { plain = true })
    return #kinds == #wanted.type
  elseif wanted.type == 'array' then
    local inner = kind:match('^%(?(.-)%)?%[%]$')
    return inner ~= nil and fits(inner, wanted.items or {}, whole)
  elseif wanted.type == 'object' then
    local of = kind:match('^table<string,(.+)>$')
    return kind == 'table' or (of ~= nil and fits(of, wanted.additionalProperties, whole))
  elseif wanted.type then
    return kind == wanted.type
  end
  return kind == 'any'
end

-- sent is the set of types that we send, by name.
local sent = {}
local function is_sent(of)
  if type(of) ~= 'table' then
    return
  end
  local name = of['$ref'] and of['$ref']:match('(%w+)$')
  if name and not sent[name] then
    sent[name] = true
    is_sent(schema['$defs'][name])
  end
  for _, inner in pairs(of) do
    is_sent(inner)
  end
end
for _, method in pairs(protocol.send) do
  is_sent(schema.methods[method].params)
end
is_sent(schema.methods[protocol.receive.question].result)

check.test('every class is a type of the schema', function()
  local count = 0
  for name, fields in pairs(classes) do
    local def = schema['$defs'][name]
    assert(def, 'the schema has no ' .. name)
    local required = {}
    for _, field in ipairs(def.required or {}) do
      required[field] = true
    end
    for field, got in pairs(fields) do
      local wanted = def.properties[field]
      assert(wanted, ('%s has no field %s'):format(name, field))
      check.eq(got.optional, not required[field], ('%s.%s is optional'):format(name, field))
      assert(fits(got.kind, wanted, sent[name]), ('%s.%s: %s is not %s'):format(name, field, got.kind, vim.inspect(wanted)))
      count = count + 1
    end
    for field in pairs(sent[name] and required or {}) do
      assert(fields[field], ('the mirror lacks %s.%s'):format(name, field))
    end
  end
  assert(count > 100, 'the annotations were not read: ' .. count)
  assert(sent.RunCommandParams and sent.Additional and sent.ApprovalOutcome and not sent.RunResult, 'what is sent was not found')
end)

check.test('every method is there, and goes in the direction that we use', function()
  local kinds = { initialized = 'notification', exit = 'notification', cancel = 'notification' }
  for name, method in pairs(protocol.send) do
    local known = schema.methods[method]
    assert(known, 'the schema has no ' .. method)
    assert(known.from == 'client' or known.from == 'both', method .. ' is not ours to send')
    check.eq(known.kind, kinds[name] or 'request', method)
  end
  for name, method in pairs(protocol.receive) do
    local known = schema.methods[method]
    assert(known, 'the schema has no ' .. method)
    assert(known.from == 'server' or known.from == 'both', method .. ' does not come to us')
    check.eq(known.kind, name == 'question' and 'request' or 'notification', method)
  end
end)

check.test('the types of methods that we use are mirrored', function()
  local function mirrored(of)
    local name = of and of['$ref'] and of['$ref']:match('(%w+)$')
    assert(not name or classes[name], 'the mirror lacks ' .. tostring(name))
  end
  for _, methods in ipairs({ protocol.send, protocol.receive }) do
    for _, method in pairs(methods) do
      mirrored(schema.methods[method].params)
      mirrored(schema.methods[method].result)
    end
  end
end)

check.test('the version and the modes are those of the schema', function()
  check.eq(protocol.version, schema.protocolVersion)
  check.eq(protocol.modes, schema['$defs'].RunCommandParams.properties.mode.enum)
end)

check.test('no other file names a method of the wire', function()
  local names = {}
  for _, methods in ipairs({ protocol.send, protocol.receive }) do
    for _, method in pairs(methods) do
      if method:find('[/A-Z]') then -- others are words of the language
        names[#names + 1] = method
      end
    end
  end
  local files = vim.fs.find(function(name)
    return name:find('%.lua$') ~= nil
  end, { path = check.plugin .. '/lua', type = 'file', limit = math.huge })
  assert(#files > 15, 'the files were not found')
  for _, file in ipairs(files) do
    if not file:find('/protocol%.lua$') then
      local text = check.read(file)
      for _, name in ipairs(names) do
        assert(not text:find("['\"]" .. vim.pesc(name) .. "['\"]"), file .. ' names ' .. name)
      end
    end
  end
end)

check.test('what initialize says', function()
  local params = protocol.initialize_params('name', '1', '/somewhere/project', { network_access = false })
  check.eq(params.workspaceFolders, { { uri = 'file:///somewhere/project', name = 'project' } })
  check.eq(params.capabilities, { experimental = { confine = { protocolVersion = 1, approval = true, output = true } } })
  check.eq(params.initializationOptions, { network_access = false })
  check.eq(params.processId, vim.fn.getpid())
  local none = protocol.initialize_params('name', '1', nil, {})
  check.eq(none.workspaceFolders, vim.NIL)
  check.eq(none.initializationOptions, nil)
end)

check.test('null is the same as nothing', function()
  local got = protocol.without_null({ a = vim.NIL, b = { c = vim.NIL, d = 1 }, e = { 1, 2 } })
  check.eq(got, { b = { d = 1 }, e = { 1, 2 } })
  check.eq(protocol.without_null(vim.NIL), nil)
end)

check.test('bytes of a piece', function()
  check.eq(protocol.bytes({ data = 'a\n' }), 'a\n')
  check.eq(protocol.bytes({ base64 = '/wA=' }), '\255\0')
  check.eq(protocol.bytes({ base64 = '!' }), '')
  check.eq(protocol.bytes({}), '')
end)

check.test('which mode is within which', function()
  local within = {
    ['read-only'] = { 'read-only', 'workspace-write', 'danger-full-access', 'external-sandbox' },
    ['workspace-write'] = { 'workspace-write', 'danger-full-access', 'external-sandbox' },
    ['danger-full-access'] = { 'danger-full-access' },
    ['external-sandbox'] = { 'external-sandbox' },
  }
  for _, a in ipairs(protocol.modes) do
    for _, b in ipairs(protocol.modes) do
      check.eq(protocol.within(a, b), vim.tbl_contains(within[a], b), a .. ' within ' .. b)
    end
  end
  check.eq(protocol.within('other', 'danger-full-access'), false)
end)
