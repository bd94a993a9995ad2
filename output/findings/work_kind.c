/* SPDX-License-Identifier: MIT */
#include "output/findings/work_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Longer lines are judged by their beginning. */
enum { LINE_SIZE = 1024 };

/*---- By names ----*/

struct named_work {
	enum finding_kind kind;
	const char *name; /* of a function, or its beginning if it ends with "*" */
};

/* LuaJIT's and nginx's functions for Lua, and what they and compiled code call. */
static const struct named_work functions[] = {
	{ FINDING_FORMATS, "string.format" },
	{ FINDING_FORMATS, "tostring" },
	{ FINDING_FORMATS, "tonumber" },
	{ FINDING_OWN_WORK, "table.concat" }, /* joins all pieces at once */
	{ FINDING_OWN_WORK, "string.rep" },
	{ FINDING_PATTERNS, "string.find" },
	{ FINDING_PATTERNS, "string.match" },
	{ FINDING_PATTERNS, "string.gsub" },
	{ FINDING_PATTERNS, "string.gmatch*" },
	{ FINDING_PATTERNS, "pcre_*" },
	{ FINDING_PATTERNS, "pcre2_*" },
	{ FINDING_PATTERNS, "ngx_http_lua_ffi_exec_regex" },
	{ FINDING_SHIFTS, "table.insert" },
	{ FINDING_SHIFTS, "table.remove" },
	{ FINDING_LOADS, "load" },
	{ FINDING_LOADS, "loadstring" },
	{ FINDING_LOADS, "loadfile" },
	{ FINDING_LOADS, "dofile" },
	{ FINDING_ERRORS, "error" },
	{ FINDING_ERRORS, "pcall" },
	{ FINDING_ERRORS, "xpcall" },
	{ FINDING_CLOCK, "os.clock" },
	{ FINDING_CLOCK, "os.time" },
	{ FINDING_CLOCK, "clock" },
	{ FINDING_CLOCK, "time" },
	{ FINDING_CLOCK, "clock_gettime" },
	{ FINDING_CLOCK, "gettimeofday" },
	{ FINDING_CLOCK, "poll" },
	{ FINDING_CLOCK, "select" },
	{ FINDING_CLOCK, "sched_yield" },
	{ FINDING_CLOCK, "ngx_http_lua_ffi_update_time" },
	{ FINDING_CALLS, "io.*" },
	{ FINDING_CALLS, "print" },
	{ FINDING_CALLS, "write" },
	{ FINDING_CALLS, "read" },
	{ FINDING_CALLS, "fwrite" },
	{ FINDING_CALLS, "fputs" },
	{ FINDING_CALLS, "fflush" },
	{ FINDING_CALLS, "fgets" },
	{ FINDING_CALLS, "_IO_*" },
	{ FINDING_DEBUG, "debug.*" },
};

/* What LuaJIT's own routines do, in the words of unwind/names/vm_work.c. */
static const struct named_work works[] = {
	{ FINDING_JOINS, "concatenating strings" },
	{ FINDING_STORES, "growing a table" },
	{ FINDING_STORES, "storing in a table" },
	{ FINDING_CLOSURES, "creating a closure" },
	{ FINDING_CLOSURES, "closing upvalues" },
	{ FINDING_FORMATS, "converting a number" },
	{ FINDING_CDATA, "handling C data" },
	{ FINDING_ERRORS, "raising an error" },
	{ FINDING_SHIFTS, "length" },
};

static bool is_called(const char *name, const char *pattern)
{
	const size_t length = strlen(pattern);

	return pattern[length - 1] == '*' ? strncmp(name, pattern, length - 1) == 0
					  : strcmp(name, pattern) == 0;
}

static enum finding_kind find(const struct named_work *table, size_t count, const char *name)
{
	for (size_t i = 0; name && i < count; i++)
		if (is_called(name, table[i].name))
			return table[i].kind;
	return FINDING_NONE;
}

static enum finding_kind kind_of_function(const struct function *function)
{
	if (!function || function->kind == FRAME_LUA || function->kind == FRAME_LOST)
		return FINDING_NONE;
	return function->kind == FRAME_VM_WORK
		       ? find(works, sizeof(works) / sizeof(works[0]), function->name)
		       : find(functions, sizeof(functions) / sizeof(functions[0]), function->name);
}

/*---- By the text of a line ----*/

static bool has(const char *line, const char *word)
{
	return strstr(line, word) != NULL;
}

/* ".." but not "..." */
static bool joins(const char *line)
{
	for (const char *at = line; (at = strstr(at, "..")); at += strspn(at, "."))
		if (strspn(at, ".") == 2)
			return true;
	return false;
}

/* "a[b] = c": an assignment to what is between brackets. */
static bool stores(const char *line)
{
	for (const char *at = line; (at = strchr(at, ']')); at++) {
		const char *after = at + 1 + strspn(at + 1, " \t");

		if (*after == '=' && after[1] != '=')
			return true;
	}
	return false;
}

/* Does a call of this name in the line have more commas between its own brackets? */
static bool has_commas(const char *line, const char *name, unsigned commas)
{
	const char *at = strstr(line, name);
	unsigned depth = 0, seen = 0;

	for (at = at ? at + strlen(name) : ""; *at; at++) {
		if (strchr("({[", *at))
			depth++;
		else if (strchr(")}]", *at) && depth-- == 0)
			break;
		else if (*at == ',' && depth == 0)
			seen++;
	}
	return seen > commas;
}

/* Only table.insert(t, at, x) and table.remove(t, at) may move what follows. */
static bool shifts(const char *line)
{
	return has_commas(line, "insert(", 1) || has_commas(line, "remove(", 0);
}

/* Copy a line without its strings, which may hold anything, and its comment. */
static void strip(const char *line, char *ret_text, size_t size)
{
	size_t length = 0;
	char quote = '\0';

	for (; *line && length + 1 < size; line++) {
		if (quote && *line == '\\' && line[1])
			line++;
		else if (quote && *line == quote)
			quote = '\0';
		else if (quote)
			continue;
		else if (*line == '"' || *line == '\'')
			quote = *line;
		else if (strncmp(line, "--", 2) == 0)
			break;
		else
			ret_text[length++] = *line;
	}
	ret_text[length] = '\0';
}

static bool line_shifts(const char *line)
{
	char text[LINE_SIZE];

	strip(line, text, sizeof(text));
	return shifts(text);
}

enum finding_kind work_kind_of_line(const char *line)
{
	char text[LINE_SIZE];

	strip(line, text, sizeof(text));
	if (joins(text))
		return FINDING_JOINS;
	if (has(text, "format(") || has(text, "tostring(") || has(text, "tonumber("))
		return FINDING_FORMATS;
	if (shifts(text))
		return FINDING_SHIFTS;
	if (stores(text))
		return FINDING_STORES;
	return FINDING_OWN_WORK;
}

/*---- Both ----*/

/* What it calls is not its own work. */
static bool only_calls(const struct function *function)
{
	return kind_of_function(function) == FINDING_ERRORS && strcmp(function->name, "error") != 0;
}

/* LuaJIT's own C code, for an instruction or for compiled code. */
static bool is_own_work(const struct work *work)
{
	const struct function *leaf = work->key.leaf;

	return leaf && work->key.state == VM_STATE_C &&
	       (leaf->kind == FRAME_VM || leaf->kind == FRAME_VM_WORK);
}

/* What LuaJIT itself is at, whatever the line does. */
static enum finding_kind kind_of_state(enum vm_state state)
{
	if (state == VM_STATE_GC)
		return FINDING_GARBAGE;
	if (state == VM_STATE_RECORDING || state == VM_STATE_OPTIMISING || state == VM_STATE_ASSEMBLING)
		return FINDING_COMPILING;
	return state == VM_STATE_EXIT ? FINDING_EXITS : FINDING_NONE;
}

enum finding_kind work_kind(const struct work *work, const char *line)
{
	enum finding_kind kind = kind_of_state((enum vm_state)work->key.state);

	if (kind || !work->key.function)
		return kind;
	kind = kind_of_function(work->key.leaf);
	if (!kind && !only_calls(work->key.callee))
		kind = kind_of_function(work->key.callee);
	if (kind == FINDING_SHIFTS && work->key.callee && work->key.callee->kind == FRAME_BUILTIN && line)
		kind = line_shifts(line) ? kind : FINDING_NONE;
	if (!kind && is_own_work(work))
		kind = line ? work_kind_of_line(line) : FINDING_OWN_WORK;
	return kind;
}
