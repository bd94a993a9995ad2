-- SPDX-License-Identifier: MIT
-- Says what the variables of all frames hold, as ljspy dump --locals writes it.

local truth, lines = {}, {}
local ffi_ok, ffi = pcall(require, "ffi")

local function hex(text)
  return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function address(text)
  return ((text:match("0x%x+") or "?"):gsub("^0x0*", "0x"))
end

local function number(value)
  local text = value == value and ("%.14g"):format(value) or "nan"
  if value == value and tonumber(text) ~= value then
    text = ("%.17g"):format(value)
  end
  return text
end

-- In tests no string has a character that is more than one byte long where it is cut.
local function quoted(text, most)
  local shown = text:sub(1, most):gsub('[%z"\\]', { ["\0"] = "\\0", ['"'] = '\\"', ["\\"] = "\\\\" })
  return '"' .. shown .. '"' .. (#text > most and ("... (%d bytes)"):format(#text) or "")
end

local function brief(value)
  local kind = type(value)
  if kind == "string" then
    return quoted(value, 40)
  elseif kind == "number" then
    return number(value)
  elseif kind == "nil" or kind == "boolean" then
    return tostring(value)
  end
  return kind .. ": " .. address(tostring(value))
end

local function key_text(key, in_array)
  if type(key) == "string" and #key <= 40 and key:match("^[%a_][%w_]*$") then
    return key
  end
  return "[" .. brief(key) .. "]"
end

local function describe(value)
  local kind = type(value)
  if kind == "string" then
    return quoted(value, 80)
  elseif kind == "table" then
    local entries, count = {}, 0
    for k, v in next, value do
      count = count + 1
      if count <= 5 then
        entries[count] = key_text(k) .. " = " .. brief(v)
      end
    end
    local text = "table: " .. address(tostring(value))
    if count == 0 then
      return text .. " (empty)"
    end
    return ("%s (%d entr%s) {%s%s}"):format(text, count, count == 1 and "y" or "ies",
      table.concat(entries, ", "), count > 5 and ", ..." or "")
  elseif kind == "function" then
    local info = debug.getinfo(value, "S")
    if info.what == "C" then
      return "C function"
    end
    return ("function: %s %s"):format(address(tostring(value)),
      info.what == "main" and "main chunk " .. info.short_src or info.short_src .. ":" .. info.linedefined)
  elseif kind == "cdata" then
    local name, text = tostring(value):match("^(%-?%d+)U?LL$"), ""
    if name then
      return ("cdata<%s>: %s"):format(ffi.istype("uint64_t", value) and "uint64_t" or "int64_t", name)
    end
    return "cdata"
  elseif kind == "thread" then
    return "thread: " .. address(tostring(value))
  elseif kind == "userdata" then
    return "userdata"
  end
  return brief(value)
end

local function say(...)
  lines[#lines + 1] = table.concat({ ... }, " ")
end

local function say_variable(kind, index, name, value)
  say("V", kind, index, name and hex(name) or "-", hex(describe(value)))
end

local threads = {}

-- The running coroutine is about to resume another one.
function truth.note()
  threads[#threads + 1] = coroutine.running()
end

local function say_frame(thread, level, info)
  say("F", info.linedefined, info.currentline, hex(info.short_src))
  for i = 1, 255 do
    local name, value = debug.getlocal(thread, level, i)
    if not name then
      break
    end
    say_variable(name == "(*temporary)" and "temporary" or "local", i - 1, name, value)
  end
  for i = 1, 255 do
    local name, value = debug.getlocal(thread, level, -i)
    if not name then
      break
    end
    say_variable("vararg", i, nil, value)
  end
  for i = 1, 255 do
    local name, value = debug.getupvalue(info.func, i)
    if not name then
      break
    end
    say_variable("upvalue", i - 1, name ~= "" and name or nil, value)
  end
end

-- The frames of the coroutines that have resumed one another, innermost first.
local function say_frames()
  for i = #threads, 1, -1 do
    for level = 0, 250 do
      local info = debug.getinfo(threads[i], level, "Slfu")
      if not info then
        break
      end
      if info.what ~= "C" then
        say_frame(threads[i], level, info)
      end
    end
  end
end

-- Says the truth of all frames of the program, and comes back.
function truth.tell()
  truth.note()
  local teller = coroutine.create(function()
    say_frames()
    io.write(table.concat(lines, "\n"), "\nready\n")
    io.flush()
  end)
  assert(coroutine.resume(teller))
  lines = {}
  threads[#threads] = nil
end

-- Says the truth and stays where it is.
function truth.park()
  truth.tell()
  while true do
    io.read()
  end
end

return truth
