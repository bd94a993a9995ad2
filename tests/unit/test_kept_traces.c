/* SPDX-License-Identifier: MIT */
/*
 * Traces of real programs, as they lay in a process: what is read of them is what LuaJIT told of them, and
 * what their code is taken for is what it was taken for before.
 *
 * With LJSPY_KEEP=1 the processes run and are kept anew: read the difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/kept_process.h"
#include "tests/unit/kept_text.h"
#include "tests/unit/live_process.h"
#include "unwind/jit/trace_calls.h"
#include "unwind/jit/trace_table.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY

#include "tests/unit/failing_allocation.h"

/* Of another time each: with references of 64 bits and offsets of snapshots' code, and without both. */
static const struct build {
	const char *luajit, *process, *text;
} builds[] = {
	{ LIVE_LUAJIT, "traces-gc64.process", "traces-gc64.txt" },
	{ "build/packages/bullseye/luajit/usr/bin/luajit", "traces-gc32.process", "traces-gc32.txt" },
};

enum { BUILDS = sizeof(builds) / sizeof(builds[0]), TRACES_MIN = 20, CONSTANTS_MAX = 256, NUMBERS_MAX = 256 };

static const char program[] =
	"jit.opt.start('hotloop=20', 'hotexit=4')\n"
	"local ffi, bit = require('ffi'), require('bit')\n"
	"ffi.cdef('struct pair { int a; double b; }; int abs(int);')\n"
	"local function sums(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    if i % 3 == 0 then sum = sum + i / 2 else sum = sum - i * 2 end\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function plus(a, b)\n"
	"  local c = a + b\n"
	"  return c\n"
	"end\n"
	"local function twice(a)\n"
	"  return plus(a, a)\n"
	"end\n"
	"local function calls(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    local t = twice(i)\n"
	"    sum = sum + t\n"
	"    sum = plus(sum,\n"
	"      plus(i, 1))\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local vector = {}\n"
	"vector.__index = function(t, k)\n"
	"  return k\n"
	"end\n"
	"vector.__add = function(a, b)\n"
	"  return a[1] + b\n"
	"end\n"
	"vector.__lt = function(a, b)\n"
	"  return a[1] < b[1]\n"
	"end\n"
	"vector.__concat = function(a, b)\n"
	"  return 'x' .. b\n"
	"end\n"
	"local function metamethods(n)\n"
	"  local v, w = setmetatable({ 1 }, vector), setmetatable({ 2 }, vector)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum + v.name:len()\n"
	"    sum = sum + (v + i)\n"
	"    if v < w then\n"
	"      sum = sum + 1\n"
	"    end\n"
	"    sum = sum + #(v .. 'y')\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local point = { x = 1, y = 2.5, list = { 1, 2, 3, 4 } }\n"
	"global = 0\n"
	"local function fields(n)\n"
	"  local last\n"
	"  for i = 1, n do\n"
	"    point.x = point.x + point.y\n"
	"    global = global + point.list[i % 4 + 1]\n"
	"    point.list[2] = i\n"
	"    last = { i, point.x }\n"
	"    local empty = {}\n"
	"    empty.key = last\n"
	"  end\n"
	"  return last\n"
	"end\n"
	"local function texts(n)\n"
	"  local text = ''\n"
	"  for i = 1, n do\n"
	"    local part = string.sub('abcdef', 2, 4) .. i\n"
	"    if #part > 3 and part:byte(1) == 98 then\n"
	"      text = part .. '-' .. text:sub(1, 5)\n"
	"    end\n"
	"  end\n"
	"  return text\n"
	"end\n"
	"local function fib(n)\n"
	"  if n < 2 then return n end\n"
	"  return fib(n - 1) + fib(n - 2)\n"
	"end\n"
	"local function down(n)\n"
	"  if n == 0 then return 0 end\n"
	"  return 1 + down(n - 1)\n"
	"end\n"
	"local function tail(n, sum)\n"
	"  if n == 0 then return sum end\n"
	"  return tail(n - 1, sum + n)\n"
	"end\n"
	"local function protected(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    local ok, value = pcall(plus, i, 2)\n"
	"    sum = sum + (ok and value or 0)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function each(list)\n"
	"  local sum = 0\n"
	"  for i, v in ipairs(list) do\n"
	"    sum = sum + v * i\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function counter()\n"
	"  local count = 0\n"
	"  return function(step)\n"
	"    count = count + step\n"
	"    return count\n"
	"  end\n"
	"end\n"
	"local function whiles(n)\n"
	"  local step, i = counter(), 0\n"
	"  while i < n do\n"
	"    i = step(1)\n"
	"    if i == 150 then i = step(2) end\n"
	"  end\n"
	"  repeat\n"
	"    i = i - 1\n"
	"  until i <= 0\n"
	"  return i\n"
	"end\n"
	"local function count(...)\n"
	"  return select('#', ...) + (...)\n"
	"end\n"
	"local function varargs(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum + count(i, 2, 3)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function numbers(n)\n"
	"  local x, y = 1, 2\n"
	"  for i = 1, n do\n"
	"    x = bit.bxor(bit.lshift(x, 1), bit.band(i, 255))\n"
	"    y = math.floor(math.sqrt(y + i)) + math.max(y, 3)\n"
	"    y = math.abs(-y) % 1000 + y ^ 0.5\n"
	"    if not (x ~= i) then y = 0 end\n"
	"  end\n"
	"  return x + y\n"
	"end\n"
	"local function natives(n)\n"
	"  local pairs, sum = ffi.new('struct pair[16]'), 0\n"
	"  for i = 1, n do\n"
	"    local pair = pairs[i % 16]\n"
	"    pair.a = pair.a + 1\n"
	"    pair.b = ffi.C.abs(-i)\n"
	"    sum = sum + pair.a + pair.b\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function inner(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum + i\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function nested(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum\n"
	"      + inner(5)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function stitched(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    local at = string.find('abc', '[b-c]')\n"
	"    sum = sum + at\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function yes() return true end\n"
	"local function no() return false end\n"
	"local function none() end\n"
	"local function id(x) return x end\n"
	"local function tests(n)\n"
	"  local sum, flag, off = 0, true, nil\n"
	"  for i = 1, n do\n"
	"    if yes() then sum = sum + 1 end\n"
	"    if no() then sum = sum + 2 end\n"
	"    if none() then sum = sum + 3 end\n"
	"    if id(flag) then sum = sum + 4 end\n"
	"    if off then sum = sum + 5 end\n"
	"    local value = i > 5 and sum or i\n"
	"    local other = off or value\n"
	"    if not id(other) then break end\n"
	"    sum = other + (i ~= 7 and 1 or 0)\n"
	"    repeat local constant = 'x' until constant\n"
	"    local fixed = false\n"
	"    while fixed do sum = sum + 1 end\n"
	"    if id(nil) or i == -1 then return sum end\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function pass(...)\n"
	"  return id(...)\n"
	"end\n"
	"local function outermost(...)\n"
	"  local a, b = pass(...), select(2, ...)\n"
	"  return a + b\n"
	"end\n"
	"local function manyvalues(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum + outermost(i, 2)\n"
	"    local x, y = id(i), (id(i))\n"
	"    sum = sum + x - y\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local makers = {}\n"
	"for i = 1, 3 do\n"
	"  makers[i] = function(x)\n"
	"    return x + i\n"
	"  end\n"
	"end\n"
	"local function closures(n)\n"
	"  local sum, first, second = 0, makers[1], makers[2]\n"
	"  for i = 1, n do\n"
	"    sum = sum + first(i)\n"
	"    sum = sum + second(i)\n"
	"    local third = makers[i % 3 + 1]\n"
	"    sum = sum + third(1)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local rich = {}\n"
	"rich.__eq = function(a, b)\n"
	"  return a.v == b.v\n"
	"end\n"
	"rich.__le = function(a, b)\n"
	"  return a.v <= b.v\n"
	"end\n"
	"rich.__call = function(self, x)\n"
	"  return self.v + x\n"
	"end\n"
	"rich.__newindex = function(self, k, v)\n"
	"  rawset(self, 'v', v)\n"
	"end\n"
	"rich.__len = function(self)\n"
	"  return 3\n"
	"end\n"
	"rich.__unm = function(self)\n"
	"  return -self.v\n"
	"end\n"
	"rich.__index = { inherited = 5 }\n"
	"local function metamethods2(n)\n"
	"  local a, b = setmetatable({ v = 1 }, rich), setmetatable({ v = 1 }, rich)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    if a == b then sum = sum + 1 end\n"
	"    if a <= b then sum = sum + 1 end\n"
	"    if a ~= b then sum = sum + 100 end\n"
	"    sum = sum + a(i)\n"
	"    a.new = 1\n"
	"    sum = sum + -a\n"
	"    sum = sum + a.inherited\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function bottom(n)\n"
	"  local sum = 0\n"
	"  for i = n, 1, -1 do\n"
	"    sum = sum + i / n\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function middle(n)\n"
	"  local sum = bottom(n)\n"
	"  return sum + 1\n"
	"end\n"
	"local function top(n)\n"
	"  local sum = middle(n)\n"
	"  return sum * 2\n"
	"end\n"
	"local function deep(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    sum = sum + top(20)\n"
	"    sum = sum - 1\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function library(n)\n"
	"  local list, sum = {}, 0\n"
	"  for i = 1, n do\n"
	"    table.insert(list, i)\n"
	"    list[#list + 1] = tostring(i)\n"
	"    sum = sum + tonumber(list[#list]) + math.min(i, 5)\n"
	"    sum = sum + #string.format('%d', i)\n"
	"    list.n = rawlen and 0 or rawget(list, 1)\n"
	"    local ok, err = pcall(error, 'x')\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function tried(n)\n"
	"  local sum = 0\n"
	"  for i = 1, n do\n"
	"    local ok, value = pcall(function_of_this)\n"
	"    ok, value = pcall(id, i)\n"
	"    ok, value = xpcall(yes, no)\n"
	"    sum = sum + (value == true and 1 or 2)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"function function_of_this()\n"
	"  return id(2)\n"
	"end\n"
	"local function keys(n)\n"
	"  local t, sum = { a = 1, b = 2, c = 3 }, 0\n"
	"  for i = 1, n do\n"
	"    for key, value in pairs(t) do\n"
	"      sum = sum + value\n"
	"    end\n"
	"    for key in next, t do\n"
	"      sum = sum + 1\n"
	"    end\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function jumps(n)\n"
	"  local sum, i = 0, 0\n"
	"  while true do\n"
	"    i = i + 1\n"
	"    if i > n then break end\n"
	"    do\n"
	"      local captured = i\n"
	"      if i % 2 == 0 then goto continue end\n"
	"      sum = sum + captured / 3\n"
	"    end\n"
	"    ::continue::\n"
	"    sum = sum + 0.5\n"
	"    for x = 0, 1, 0.5 do sum = sum + x end\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function fibonacci(n)\n"
	"  if n < 2 then return n end\n"
	"  return fibonacci(n - 1) + fibonacci(n - 2)\n"
	"end\n"
	"local wide = ffi.new('int64_t[4]')\n"
	"local function longs(n)\n"
	"  local sum, text = 0LL, 'abcdef'\n"
	"  for i = 1, n do\n"
	"    wide[i % 4] = wide[i % 4] + i\n"
	"    sum = sum + wide[1] / 3 - bit.band(wide[2], 7)\n"
	"    sum = sum + ffi.cast('int', i) + #ffi.string(text, 3)\n"
	"  end\n"
	"  return sum\n"
	"end\n"
	"local function wholes(n)\n"
	"  local x, y, z = 3, 1000, 0\n"
	"  for i = 1, n do\n"
	"    x = bit.bnot(bit.bor(x, bit.rshift(i, 1)))\n"
	"    y = bit.tobit(y * 3) - bit.arshift(i, 2) + bit.rol(i, 3)\n"
	"    z = z + x % 10 - i % 16 + (i - 1) / i\n"
	"    z = -z\n"
	"  end\n"
	"  return z + y\n"
	"end\n"
	"local function run(f, n)\n"
	"  jit.opt.start('hotloop=20', 'hotexit=4')\n"
	"  f(n)\n"
	"end\n"
	"run(sums, 300)\n"
	"run(calls, 100)\n"
	"run(metamethods, 100)\n"
	"run(fields, 100)\n"
	"run(texts, 100)\n"
	"run(function() for i = 1, 40 do fib(3) end end)\n"
	"run(function() for i = 1, 60 do down(50) end end)\n"
	"run(function() for i = 1, 60 do tail(60, 0) end end)\n"
	"run(protected, 100)\n"
	"local list = {}\n"
	"for i = 1, 40 do list[i] = i * 0.5 end\n"
	"run(function() for i = 1, 5 do each(list) end end)\n"
	"run(whiles, 200)\n"
	"run(varargs, 100)\n"
	"run(numbers, 100)\n"
	"run(natives, 100)\n"
	"run(nested, 200)\n"
	"run(stitched, 100)\n"
	"run(tests, 100)\n"
	"run(manyvalues, 100)\n"
	"run(closures, 200)\n"
	"run(metamethods2, 100)\n"
	"run(deep, 100)\n"
	"run(library, 100)\n"
	"run(tried, 100)\n"
	"run(keys, 60)\n"
	"run(jumps, 200)\n"
	"run(fibonacci, 14)\n"
	"run(longs, 100)\n"
	"run(wholes, 100)\n"
	"jit.off()\n"
	"local util = require('jit.util')\n"
	"io.write('ready\\n')\n"
	"for number = 1, 100 do\n"
	"  local info = util.traceinfo(number)\n"
	"  if not info then break end\n"
	"  local code, address, loop = util.tracemc(number)\n"
	"  local stub = util.traceexitstub(1)\n"
	"  print(number, info.link, info.linktype, info.nins, info.nk, info.nexit, #code, address, loop, stub)\n"
	"  for ref = 1, info.nins do print(util.traceir(number, ref)) end\n"
	"  for exit = 0, info.nexit - 1 do\n"
	"    local snapshot = util.tracesnap(number, exit)\n"
	"    print(snapshot[0], snapshot[1], #snapshot - 2)\n"
	"    for i = 2, #snapshot - 1 do print(snapshot[i]) end\n"
	"  end\n"
	"end\n"
	"print('end')\n"
	"io.flush()\n"
	"io.read('*l')\n";

/*---- Reading ----*/

struct reading {
	struct kept_process *kept;
	const struct layout *layout;
	struct snapshot *snapshot;
	struct lua_objects *objects;
	struct traces *traces;
	struct traces_wanted wanted;
};

static void capture_constants(struct reading *reading, const struct trace *trace)
{
	uint64_t constants[CONSTANTS_MAX + 1];
	size_t count = trace_constants(trace, reading->layout, TRACE_FUNCTIONS, constants, CONSTANTS_MAX);

	lua_objects_capture(reading->objects, reading->snapshot, reading->layout, constants, count);
	lua_objects_capture_upvalues(reading->objects, reading->snapshot, reading->layout, constants, count);
	count = trace_constants(trace, reading->layout, TRACE_PROTOS, constants, CONSTANTS_MAX);
	constants[count++] = trace->startpt;
	lua_objects_capture_protos(reading->objects, reading->snapshot, reading->layout, constants, count);
}

static const struct trace *read_trace(struct reading *reading, uint32_t number)
{
	const struct trace *trace = traces_by_number(reading->traces, number);

	if (trace)
		trace = traces_capture_pc(reading->traces, reading->snapshot, reading->layout, trace->mcode);
	if (trace)
		capture_constants(reading, trace);
	return trace;
}

static void reading_begin(struct reading *reading, struct kept_process *kept)
{
	struct memory *memory = &kept->memory;
	uint64_t J = kept->g + (uint64_t)kept->layout.GG_J;

	*reading = (struct reading){
		.kept = kept,
		.layout = &kept->layout,
		.snapshot = snapshot_new(memory),
		.objects = lua_objects_new(),
		.traces = traces_new(),
		.wanted = { .J = J },
	};
	assert_true(reading->snapshot && reading->objects && reading->traces);
	lua_objects_begin(reading->objects, true);
	assert_int_equal(memory_read(memory, J + (uint64_t)kept->layout.J_trace, &reading->wanted.J_trace,
				     layout_ref_size(&kept->layout)),
			 MEMORY_OK);
	assert_true(memory_u32(memory, J + (uint64_t)kept->layout.J_sizetrace, &reading->wanted.sizetrace));
	traces_capture(reading->traces, reading->snapshot, &kept->layout, &reading->wanted);
	for (uint32_t number = 1; number < reading->wanted.sizetrace; number++)
		read_trace(reading, number);
}

static void reading_end(struct reading *reading)
{
	traces_free(reading->traces);
	lua_objects_free(reading->objects);
	snapshot_free(reading->snapshot);
	kept_process_free(reading->kept);
}

/* Run the program, and keep what is read of its traces. */
static void keep(const struct build *build)
{
	struct kept_process *kept = kept_process_new();
	size_t length = 0;
	FILE *told = open_memstream(&kept->told, &length);
	char line[256];
	struct reading reading;
	struct live live;

	live_begin_with(&live, build->luajit, program, 0, 1);
	assert_non_null(fgets(line, sizeof(line), live.target.output)); /* what is left of "ready" */
	while (fgets(line, sizeof(line), live.target.output) && strcmp(line, "end\n") != 0)
		fputs(line, told);
	fclose(told);
	kept->live = lua_process_memory(live.process);
	kept->layout = live.global->vm->layout;
	kept->g = live.global->g;
	reading_begin(&reading, kept);
	kept_process_save(kept, build->process);
	reading_end(&reading);
	live_end(&live);
}

static bool is_kept[BUILDS];

/* Skips on other machines than the processes'. */
static void reading_load(struct reading *reading, const struct build *build)
{
#ifndef __x86_64__
	skip();
#endif
	/* Once, as all tests are of the same process. */
	if (getenv("LJSPY_KEEP") && !is_kept[build - builds])
		keep(build);
	is_kept[build - builds] = true;
	reading_begin(reading, kept_process_load(build->process));
}

/*---- What LuaJIT tells ----*/

enum {
	REF_MODE = 3,  /* of an operand (lj_ir.h, IRMref is 0) */
	OPERAND_2 = 2, /* its mode, in a shift */
	TYPE_MASK = 0x1f,
	GUARD = 0x80,
	PHI = 0x40,
	BYTE = 8,
	NAME_BYTES = 16,
};

static uint16_t operand(int value, unsigned mode)
{
	return (uint16_t)(value + ((mode & REF_MODE) == 0 ? TRACE_REF_BIAS : 0));
}

static void check_instruction(const struct reading *reading, const struct trace *trace, uint32_t ref,
			      FILE *told)
{
	struct trace_instruction ins;
	unsigned mode, type, place;
	int op1, op2;

	assert_int_equal(fscanf(told, "%u %u %d %d %u", &mode, &type, &op1, &op2, &place), 5);
	assert_true(trace_instruction(trace, reading->layout, ref, &ins));
	assert_int_equal(ins.number, type >> BYTE);
	assert_int_equal(ins.type, type & TYPE_MASK);
	assert_int_equal(ins.guard, (type & GUARD) != 0);
	assert_int_equal(ins.is_phi, (type & PHI) != 0);
	assert_int_equal(ins.reg, place & UINT8_MAX);
	assert_int_equal(ins.spill, place >> BYTE);
	assert_int_equal(ins.op1, operand(op1, mode));
	assert_int_equal(ins.op2, operand(op2, mode >> OPERAND_2));
}

static void check_snapshot(const struct reading *reading, const struct trace *trace, uint32_t number,
			   FILE *told)
{
	uint32_t entries[TRACE_ENTRIES_MAX], slots, told_ref, told_slots, told_count;
	struct trace_snapshot snapshot;

	assert_int_equal(fscanf(told, "%u %u %u", &told_ref, &told_slots, &told_count), 3);
	assert_true(trace_snapshot(trace, reading->layout, number, &snapshot));
	assert_int_equal(snapshot.ref, told_ref + TRACE_REF_BIAS);
	assert_int_equal(trace_snapshot_entries(trace, reading->layout, number, entries, &slots), told_count);
	assert_int_equal(slots, told_slots);
	for (uint32_t i = 0; i < told_count; i++) {
		int entry;

		/* Slots are from 128 on in the sign's bit. */
		assert_int_equal(fscanf(told, "%d", &entry), 1);
		assert_int_equal((int)entries[i], entry);
	}
}

static void check_trace(const struct reading *reading, uint32_t number, FILE *told)
{
	static const char *const linktypes[] = { "none",           "root",         "loop",
						 "tail-recursion", "up-recursion", "down-recursion",
						 "interpreter",    "return",       "stitch" };
	const struct trace *trace = traces_by_number(reading->traces, number);
	unsigned link, nins, nk, exits, size, loop;
	unsigned long long address, stub;
	char linktype[NAME_BYTES];
	uint32_t exit;

	assert_non_null(trace);
	assert_int_equal(fscanf(told, "%u %15s %u %u %u %u %llu %u %llu", &link, linktype, &nins, &nk, &exits,
				&size, &address, &loop, &stub),
			 9);
	assert_int_equal(trace->number, number);
	assert_int_equal(trace->mcode, address);
	assert_int_equal(trace->szmcode, size);
	assert_int_equal(trace_loop_offset(trace, reading->layout), loop);
	assert_int_equal(trace_link(trace, reading->layout), link);
	assert_in_range(trace_linktype(trace, reading->layout), 0,
			sizeof(linktypes) / sizeof(linktypes[0]) - 1);
	assert_string_equal(linktypes[trace_linktype(trace, reading->layout)], linktype);
	assert_int_equal(trace_nins(trace, reading->layout), nins + TRACE_REF_BASE + 1);
	assert_int_equal(trace_nk(trace, reading->layout), TRACE_REF_BIAS - nk);
	assert_int_equal(trace_snapshot_count(trace, reading->layout), exits);
	exit = (uint32_t)traces_exit_number(reading->traces, trace, reading->layout, stub);
	assert_int_equal(exit, 1);
	assert_true(traces_is_exit(reading->traces, reading->layout, stub));
	assert_false(traces_is_exit(reading->traces, reading->layout, address));
	for (uint32_t i = 1; i <= nins; i++)
		check_instruction(reading, trace, TRACE_REF_BASE + i, told);
	for (uint32_t i = 0; i < exits; i++)
		check_snapshot(reading, trace, i, told);
}

static void traces_are_as_luajit_tells_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		struct reading reading;
		uint32_t number, count = 0;
		FILE *told;

		reading_load(&reading, &builds[i]);
		told = fmemopen(reading.kept->told, strlen(reading.kept->told), "r");
		assert_non_null(told);
		for (; fscanf(told, "%u", &number) == 1; count++)
			check_trace(&reading, number, told);
		assert_true(feof(told));
		assert_in_range(count, TRACES_MIN, reading.wanted.sizetrace);
		assert_null(traces_by_number(reading.traces, count + 1));
		fclose(told);
		reading_end(&reading);
	}
}

/*---- What code is taken for ----*/

static void print_code(FILE *out, const struct trace_code *code)
{
	fputs("  code, by IR instruction:\n", out);
	for (size_t i = 0; i < code->count; i++) {
		const struct code_piece *piece = &code->pieces[i];

		if (i == 0 || piece->ref != piece[-1].ref || piece->low_snapshot != piece[-1].low_snapshot ||
		    piece->high_snapshot != piece[-1].high_snapshot)
			fprintf(out, "%s    %04u of #%u to #%u: ", i ? "\n" : "", piece->ref - TRACE_REF_BASE,
				piece->low_snapshot, piece->high_snapshot);
		/* A letter for each machine instruction. */
		fputs(piece->base_is_moved ? "m" : piece->joins_loop ? "j" : "", out);
		fputs(piece->is_after_slow ? "s" : piece->is_quick ? "q" : ".", out);
		if (i && piece->lowered != piece[-1].lowered)
			fprintf(out, "^%u", piece->lowered);
	}
	putc('\n', out);
}

static int line_of(const struct proto *proto)
{
	return proto ? (int)proto->firstline : -1;
}

/* Functions by their first lines; -1 is a builtin. */
static void print_calls(FILE *out, const struct reading *reading, const struct trace *trace)
{
	static struct trace_calls calls;
	const struct trace *list[NUMBERS_MAX] = { NULL };
	const struct trace_numbers numbers = { list, NUMBERS_MAX };

	for (uint32_t number = 1; number < NUMBERS_MAX; number++)
		list[number] = traces_by_number(reading->traces, number);
	trace_calls_find(&calls, &numbers, trace, reading->layout, reading->objects);
	fprintf(out, "  callees%s:", calls.has_builtin ? " and builtins" : "");
	for (size_t i = 0; i < calls.callee_count; i++)
		fprintf(out, " %d", line_of(calls.callees[i]));
	fputs("; closures:", out);
	for (size_t i = 0; i < calls.function_count; i++)
		if (calls.functions[i]->proto)
			fprintf(out, " %d", line_of(calls.functions[i]->proto));
	fputs("; checks:", out);
	for (uint32_t i = 0; i < calls.check_count; i++)
		fprintf(out, " %04u of %d", calls.checks[i].ref - TRACE_REF_BASE,
			line_of(calls.checks[i].callee));
	fputs("; calls:", out);
	for (size_t i = 0; i < calls.call_count; i++) {
		const struct proto *caller = lua_objects_proto_of_pc(reading->objects, calls.calls[i].pc);

		fprintf(out, " %u to %d", caller ? lua_line(reading->layout, caller, calls.calls[i].pc) : 0,
			line_of(calls.calls[i].callee));
	}
	putc('\n', out);
}

static void print_path(FILE *out, const struct trace_path *path)
{
	for (size_t i = 0; i < path->segment_count; i++) {
		const struct path_segment *segment = &path->segments[i];

		fprintf(out, "  #%zu%s:", i, segment->found ? "" : " (lost)");
		for (uint32_t at = segment->first; at <= segment->last; at++) {
			const struct path_point *point = &path->points[at];
			const struct path_frame *frame = &path->frames.frame[point->frame];

			putc(' ', out);
			for (uint32_t lowered = 0; lowered < point->lowered; lowered++)
				putc('^', out);
			for (int32_t up = frame->up; up >= 0; up = path->frames.frame[up].up)
				putc(path->frames.frame[up].proto ? '.' : '-', out);
			fprintf(out, "%d:%u", line_of(frame->proto),
				(unsigned)((point->pc - frame->proto->bc) / BYTECODE_SIZE));
		}
		fputs(" |", out);
		for (uint32_t ref = segment->ref; ref < segment->end_ref; ref++)
			fprintf(out, " %d", (int)(path->point_of[ref - TRACE_REF_BASE] - segment->first));
		putc('\n', out);
	}
}

/* A trace's frames at a pc: lines, the innermost first. */
static void frames_text(struct reading *reading, const struct trace *trace, uint64_t pc, char *text,
			size_t room)
{
	struct trace_frame frames[TRACE_FRAMES_MAX];
	size_t count = traces_frames(reading->traces, trace, reading->layout, reading->objects, pc, frames);
	FILE *out = fmemopen(text, room, "w");

	assert_non_null(out);
	for (size_t i = 0; i < count; i++) {
		const struct proto *proto = lua_objects_proto_of_pc(reading->objects, frames[i].pc);

		fprintf(out, " %s%u%s@%u%s", frames[i].is_near ? "~" : "",
			proto ? lua_line(reading->layout, proto, frames[i].pc) : 0,
			frames[i].is_continuation ? "c" : "", frames[i].base_slot,
			frames[i].function ? "" : "?");
	}
	fclose(out);
}

static void print_frames(FILE *out, struct reading *reading, const struct trace *trace,
			 const struct trace_code *code)
{
	char last[1024] = "", text[1024];

	for (size_t i = 0; i < code->count; i++)
		for (unsigned behind = 0; behind < 2; behind++) {
			frames_text(reading, trace, trace->mcode + code->pieces[i].offset + behind, text,
				    sizeof(text));
			/* The address of an instruction, and one within it, as calls return to. */
			if (strcmp(text, last) != 0)
				fprintf(out, "    from %zu%s:%s\n", i, behind ? "+" : "", text);
			memcpy(last, text, sizeof(last));
		}
}

static void code_and_ways_of_traces_are_found_as_before(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		struct reading reading;
		struct kept_text kept;
		uint32_t count = 0, ways = 0;

		reading_load(&reading, &builds[i]);
		kept_text_begin(&kept);
		for (uint32_t number = 1; number < reading.wanted.sizetrace; number++) {
			const struct trace *trace = traces_by_number(reading.traces, number);
			struct trace_code code;
			struct trace_path path;

			if (!trace)
				continue;
			count++;
			fprintf(kept.out, "trace %u, of %u, links to %u\n", number, trace->root,
				trace_link(trace, reading.layout));
			print_calls(kept.out, &reading, trace);
			if (traces_replay(reading.traces, trace, reading.layout, reading.objects, &path)) {
				print_path(kept.out, &path);
				trace_path_clear(&path);
				ways++;
			} else {
				fputs("  no way\n", kept.out);
			}
			assert_true(traces_align_code(reading.traces, trace, reading.layout, &code));
			print_code(kept.out, &code);
			print_frames(kept.out, &reading, trace, &code);
			trace_code_clear(&code);
		}
		assert_in_range(ways, TRACES_MIN, count);
		reading_end(&reading);
		kept_text_check(&kept, builds[i].text);
	}
}

/*---- Without memory ----*/

/* How many allocations the alignment of a trace's code makes. */
static size_t align_without_memory(const struct reading *reading, const struct trace *trace)
{
	struct trace_code whole, code;
	size_t after = 0;
	bool failed = true;

	assert_true(traces_align_code(reading->traces, trace, reading->layout, &whole));
	while (failed) {
		bool done;

		allocation_fails_after(after);
		done = traces_align_code(reading->traces, trace, reading->layout, &code);
		failed = allocation_failed();
		assert_int_equal(done, !failed);
		assert_int_equal(code.count, failed ? 0 : whole.count);
		assert_int_equal(code.pieces == NULL, failed);
		trace_code_clear(&code);
		after++;
	}
	trace_code_clear(&whole);
	return after;
}

/* A stretch of the way may be lost, but not the others. */
static size_t replay_without_memory(const struct reading *reading, const struct trace *trace)
{
	struct trace_path path;
	size_t after = 0, done = 0;
	bool failed = true;

	while (failed) {
		bool is_done;

		allocation_fails_after(after);
		is_done = traces_replay(reading->traces, trace, reading->layout, reading->objects, &path);
		failed = allocation_failed();
		assert_true(is_done || failed);
		assert_int_equal(path.segment_count,
				 is_done ? trace_snapshot_count(trace, reading->layout) : 0);
		assert_int_equal(path.points != NULL, is_done);
		assert_int_equal(path.point_count > 0, is_done);
		done += is_done;
		trace_path_clear(&path);
		after++;
	}
	assert_in_range(done, 1, after);
	return after;
}

static int no_exit(const void *context, uint64_t target)
{
	(void)context;
	(void)target;
	return -1;
}

/* Whatever is missing, the table's frames are frames, or none. */
static size_t make_table_without_memory(const struct reading *reading, const struct trace *trace)
{
	const struct trace *numbered[] = { NULL };
	const struct trace_numbers numbers = { numbered, 1 };
	const struct trace_exits exits = { .number = no_exit };
	struct trace_frame frames[TRACE_FRAMES_MAX];
	size_t after = 0, empty = 0;
	bool failed = true;

	while (failed) {
		struct trace_table *table;
		size_t count;

		allocation_fails_after(after);
		table = trace_table_new(&numbers, trace, reading->layout, reading->objects,
					traces_code(reading->traces, trace), &exits);
		failed = allocation_failed();
		assert_int_equal(table == NULL, after == 0);
		for (uint32_t offset = 0; table && offset < trace->szmcode; offset++) {
			count = trace_table_frames(table, offset, frames, TRACE_FRAMES_MAX);
			assert_in_range(count, 0, TRACE_FRAMES_MAX);
			empty += offset == trace->szmcode / 2 && count == 0;
			for (size_t i = 0; i < count; i++)
				assert_true(frames[i].pc || i > 0);
			assert_int_equal(trace_table_frames(table, offset, frames, 0), 0);
		}
		if (table) {
			assert_true(trace_table_size(table) > 0);
			assert_true(trace_table_protos(table, &count) || count == 0);
		}
		trace_table_free(table);
		after++;
	}
	assert_in_range(empty, 1, after);
	return after;
}

static void whichever_allocation_fails_nothing_wrong_is_told(void **state)
{
	enum { EVERY = 9, ALLOCATIONS_MIN = 5 };

	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		struct reading reading;

		reading_load(&reading, &builds[i]);
		for (uint32_t number = 1; number < TRACES_MIN; number += EVERY) {
			const struct trace *trace = traces_by_number(reading.traces, number);

			assert_non_null(trace);
			assert_true(align_without_memory(&reading, trace) > ALLOCATIONS_MIN);
			assert_true(replay_without_memory(&reading, trace) > ALLOCATIONS_MIN);
			assert_true(make_table_without_memory(&reading, trace) > ALLOCATIONS_MIN);
		}
		reading_end(&reading);
	}
}

/*---- Less than there should be ----*/

/* LuaJIT may have freed its code: its snapshots tell where it is, about. */
static void a_trace_without_a_copy_of_its_code_has_its_snapshots_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		struct reading reading;
		size_t near = 0;

		reading_load(&reading, &builds[i]);
		traces_free(reading.traces);
		reading.traces = traces_new();
		assert_non_null(reading.traces);
		traces_capture(reading.traces, reading.snapshot, reading.layout, &reading.wanted);
		for (uint32_t number = 1; number < TRACES_MIN; number++) {
			const struct trace *trace = traces_by_number(reading.traces, number);
			struct trace_frame frames[TRACE_FRAMES_MAX], wanted[TRACE_FRAMES_MAX];
			struct trace_code code;

			assert_non_null(trace);
			assert_null(traces_code(reading.traces, trace));
			assert_false(traces_align_code(reading.traces, trace, reading.layout, &code));
			for (uint64_t pc = trace->mcode; pc < trace->mcode + trace->szmcode; pc++) {
				size_t count = traces_frames(reading.traces, trace, reading.layout,
							     reading.objects, pc, frames);

				assert_int_equal(count, trace_frames(trace, reading.layout, pc, wanted,
								     TRACE_FRAMES_MAX));
				for (size_t frame = 0; frame < count; frame++, near++) {
					assert_true(frames[frame].is_near);
					assert_int_equal(frames[frame].pc, wanted[frame].pc);
				}
			}
		}
		/* Without offsets of their code, nothing tells the snapshot. */
		assert_int_equal(near > 0, reading.layout->SnapShot_mcofs != LAYOUT_ABSENT);
		reading_end(&reading);
	}
}

static void expect_no_way(const struct build *build, uint32_t number, uint32_t ref)
{
	struct kept_process *kept;
	struct trace_frame frames[TRACE_FRAMES_MAX];
	struct reading reading;
	const struct trace *trace;
	struct trace_path path;
	uint64_t snapshots;

	reading_load(&reading, build);
	trace = traces_by_number(reading.traces, 1);
	assert_true(traces_replay(reading.traces, trace, reading.layout, reading.objects, &path));
	trace_path_clear(&path);
	assert_int_equal(memory_read(&reading.kept->memory,
				     trace->address + (uint64_t)reading.layout->GCtrace_snap, &snapshots,
				     sizeof(snapshots)),
			 MEMORY_OK);
	kept = kept_process_load(build->process);
	kept_process_put(kept,
			 snapshots + number * (uint64_t)reading.layout->SnapShot_size +
				 (uint64_t)reading.layout->SnapShot_ref,
			 ref, sizeof(uint16_t));
	reading_end(&reading);
	reading_begin(&reading, kept);
	trace = traces_by_number(reading.traces, 1);
	assert_false(traces_replay(reading.traces, trace, reading.layout, reading.objects, &path));
	assert_int_equal(path.segment_count, 0);
	assert_null(path.points);
	for (uint64_t pc = trace->mcode; pc < trace->mcode + trace->szmcode; pc++) {
		size_t count = traces_frames(reading.traces, trace, reading.layout, reading.objects, pc,
					     frames);

		for (size_t i = 0; i < count; i++)
			assert_true(frames[i].is_near);
	}
	reading_end(&reading);
}

static void snapshots_in_no_order_make_no_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < BUILDS; i++) {
		/* Before the first instruction, behind the last one, and before the snapshot before it. */
		expect_no_way(&builds[i], 1, TRACE_REF_BASE - 1);
		expect_no_way(&builds[i], 1, UINT16_MAX);
		expect_no_way(&builds[i], 2, TRACE_REF_BASE + 1);
	}
}

/* Numbers of exits as a target claims them, one after the other. */
struct claims {
	const int *numbers;
	size_t count;
	size_t *asked;
};

static int claimed_exit(const void *context, uint64_t target)
{
	const struct claims *claims = context;

	(void)target;
	return claims->numbers[(*claims->asked)++ % claims->count];
}

/* The snapshots of the first and of the last piece, where exits claim to have these numbers. */
static void expect_bounds(const struct reading *reading, const int *numbers, size_t count,
			  uint32_t first_high, uint32_t last_low)
{
	const struct trace *trace = traces_by_number(reading->traces, 1);
	uint32_t snapshots = trace_snapshot_count(trace, reading->layout);
	size_t asked = 0;
	const struct claims claims = { numbers, count, &asked };
	const struct trace_exits exits = { .number = claimed_exit, .context = &claims };
	struct trace_code code;

	assert_true(
		trace_code_align(&code, trace, reading->layout, traces_code(reading->traces, trace), &exits));
	assert_in_range(asked, 3, code.count);
	assert_int_equal(code.pieces[0].low_snapshot, 0);
	assert_int_equal(code.pieces[0].high_snapshot, first_high);
	assert_int_equal(code.pieces[code.count - 1].low_snapshot, last_low);
	assert_int_equal(code.pieces[code.count - 1].high_snapshot, snapshots - 1);
	for (size_t i = 1; i < code.count; i++) {
		assert_in_range(code.pieces[i].low_snapshot, code.pieces[i - 1].low_snapshot, snapshots - 1);
		assert_in_range(code.pieces[i].high_snapshot, code.pieces[i].low_snapshot, snapshots - 1);
	}
	trace_code_clear(&code);
}

/* Without offsets of snapshots' code, exits bound it, if their numbers rise. */
static void exits_bound_code_by_rising_numbers(void **state)
{
	const struct build *build = &builds[1];
	struct reading reading;
	int last;

	(void)state;
	reading_load(&reading, build);
	assert_int_equal(reading.layout->SnapShot_mcofs, LAYOUT_ABSENT);
	last = (int)trace_snapshot_count(traces_by_number(reading.traces, 1), reading.layout) - 1;
	assert_true(last > 3);
	expect_bounds(&reading, (const int[]){ -1 }, 1, (uint32_t)last, 0);
	expect_bounds(&reading, (const int[]){ last + 1 }, 1, (uint32_t)last, 0);
	expect_bounds(&reading, (const int[]){ INT32_MAX }, 1, (uint32_t)last, 0);
	expect_bounds(&reading, (const int[]){ 0 }, 1, 0, 0);
	expect_bounds(&reading, (const int[]){ last }, 1, (uint32_t)last, (uint32_t)last);
	expect_bounds(&reading, (const int[]){ 2, 1, -1, last + 1, 0 }, 5, 2, 2);
	expect_bounds(&reading, (const int[]){ -1, 1, 3 }, 3, 1, 3);
	reading_end(&reading);
}

static void check_code(const struct reading *reading, const struct trace *trace)
{
	struct trace_code code;

	if (!traces_align_code(reading->traces, trace, reading->layout, &code))
		return;
	for (size_t i = 0; i < code.count; i++) {
		const struct code_piece *piece = &code.pieces[i];

		assert_in_range(piece->offset, i ? piece[-1].offset + 1 : 0, trace->szmcode - 1);
		assert_in_range(piece->ref, TRACE_REF_BASE, trace_nins(trace, reading->layout) - 1);
		assert_in_range(piece->low_snapshot, 0, piece->high_snapshot);
		assert_in_range(piece->high_snapshot, 0, trace_snapshot_count(trace, reading->layout) - 1);
	}
	trace_code_clear(&code);
}

static void check_path(const struct reading *reading, const struct trace *trace)
{
	struct trace_path path;

	if (!traces_replay(reading->traces, trace, reading->layout, reading->objects, &path))
		return;
	for (size_t i = 0; i < path.segment_count; i++) {
		assert_in_range(path.segments[i].last, path.segments[i].first, path.point_count - 1);
		assert_in_range(path.segments[i].end_ref, path.segments[i].ref,
				TRACE_REF_BASE + path.instruction_count);
	}
	for (size_t i = 0; i < path.instruction_count; i++)
		assert_in_range(path.point_of[i], 0, path.point_count - 1);
	for (size_t i = 0; i < path.point_count; i++)
		assert_in_range(path.points[i].frame, 0, path.frames.count - 1);
	for (size_t i = 0; i < path.frames.count; i++)
		assert_true(path.frames.frame[i].up < (int32_t)i);
	trace_path_clear(&path);
}

/* The target may change while it is read, or be hostile. */
static void spoilt_traces_stay_within_their_bounds(void **state)
{
	enum { ROUNDS = 16, CHANGES = 30, FACTOR = 1103515245, STEP = 12345, SHIFT = 16, NUMBERS = 12 };
	uint32_t chance = 1;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct kept_process *kept = kept_process_load(builds[round % BUILDS].process);
		struct trace_frame frames[TRACE_FRAMES_MAX];
		uint64_t blocks[NUMBERS];
		struct reading reading;
		size_t traces = 0;

		reading_load(&reading, &builds[round % BUILDS]);
		for (uint32_t i = 0; i < NUMBERS; i++)
			blocks[i] = traces_by_number(reading.traces, i + 1)->address;
		for (unsigned i = 0; i < CHANGES; i++) {
			uint64_t block = blocks[i % NUMBERS];
			size_t size = traces_by_number(reading.traces, i % NUMBERS + 1)->size;

			/* Behind the header, which says where all is. */
			chance = chance * FACTOR + STEP;
			size -= (size_t)reading.layout->GCtrace_size;
			kept_process_put(kept,
					 block + (uint64_t)reading.layout->GCtrace_size +
						 (chance >> SHIFT) % size,
					 chance >> BYTE, 1);
		}
		reading_end(&reading);
		reading_begin(&reading, kept);
		for (uint32_t number = 1; number <= NUMBERS; number++) {
			const struct trace *trace = traces_by_number(reading.traces, number);

			assert_non_null(trace);
			traces++;
			check_code(&reading, trace);
			check_path(&reading, trace);
			for (uint64_t pc = trace->mcode; pc < trace->mcode + trace->szmcode; pc++)
				assert_in_range(traces_frames(reading.traces, trace, reading.layout,
							      reading.objects, pc, frames),
						0, TRACE_FRAMES_MAX);
		}
		assert_int_equal(traces, NUMBERS);
		reading_end(&reading);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_are_as_luajit_tells_them),
		cmocka_unit_test(code_and_ways_of_traces_are_found_as_before),
		cmocka_unit_test(whichever_allocation_fails_nothing_wrong_is_told),
		cmocka_unit_test(a_trace_without_a_copy_of_its_code_has_its_snapshots_frames),
		cmocka_unit_test(snapshots_in_no_order_make_no_way),
		cmocka_unit_test(exits_bound_code_by_rising_numbers),
		cmocka_unit_test(spoilt_traces_stay_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
