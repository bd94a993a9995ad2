/* SPDX-License-Identifier: MIT */
#include "output/findings/work_kind.h"

#include <ctype.h>
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

/* LuaJIT's functions for Lua. */
static const struct named_work builtins[] = {
	{ FINDING_FORMATS, "string.format" },
	{ FINDING_FORMATS, "tostring" },
	{ FINDING_FORMATS, "tonumber" },
	{ FINDING_OWN_WORK, "table.concat" }, /* joins all pieces at once */
	{ FINDING_OWN_WORK, "string.rep" },
	{ FINDING_PATTERNS, "string.find" },
	{ FINDING_PATTERNS, "string.match" },
	{ FINDING_PATTERNS, "string.gsub" },
	{ FINDING_PATTERNS, "string.gmatch*" },
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
	{ FINDING_CALLS, "io.*" },
	{ FINDING_CALLS, "file.read" },
	{ FINDING_CALLS, "file.write" },
	{ FINDING_CALLS, "file.lines" },
	{ FINDING_CALLS, "print" },
	{ FINDING_DEBUG, "debug.*" },
};

/* What they, nginx's functions for Lua, and the FFI call. */
static const struct named_work natives[] = {
	{ FINDING_PATTERNS, "pcre_*" },
	{ FINDING_PATTERNS, "pcre2_*" },
	{ FINDING_PATTERNS, "ngx_http_lua_ffi_exec_regex" },
	{ FINDING_CLOCK, "ngx_http_lua_ffi_update_time" },
};

/*
 * Names that anybody may give to a function count in the C library only. Of glibc's _IO_ functions, those of
 * files: snprintf() works on a string by others (fileops.c and strops.c of glibc 2.36).
 */
static const struct named_work library_functions[] = {
	{ FINDING_CLOCK, "clock" },         { FINDING_CLOCK, "time" },
	{ FINDING_CLOCK, "clock_gettime" }, { FINDING_CLOCK, "gettimeofday" },
	{ FINDING_CLOCK, "poll" },          { FINDING_CLOCK, "select" },
	{ FINDING_CLOCK, "sched_yield" },   { FINDING_CALLS, "write" },
	{ FINDING_CALLS, "read" },          { FINDING_CALLS, "fread" },
	{ FINDING_CALLS, "fwrite" },        { FINDING_CALLS, "fputs" },
	{ FINDING_CALLS, "fflush" },        { FINDING_CALLS, "fgets" },
	{ FINDING_CALLS, "_IO_file_*" },    { FINDING_CALLS, "_IO_new_file_*" },
	{ FINDING_CALLS, "_IO_do_write*" }, { FINDING_CALLS, "_IO_new_do_write" },
	{ FINDING_CALLS, "_IO_fread" },     { FINDING_CALLS, "_IO_fwrite" },
	{ FINDING_CALLS, "_IO_fputs" },     { FINDING_CALLS, "_IO_fflush" },
	{ FINDING_CALLS, "_IO_fgets" },     { FINDING_CALLS, "_IO_getline*" },
};

/* glibc's, with the parts that it had until 2.33, musl's, and what the kernel has of them. */
static const char *const libraries[] = { "libc.", "libc-", "libpthread", "librt", "ld-musl-", "vdso" };

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

static bool is_of_library(const struct function *function)
{
	for (size_t i = 0; function->module && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(function->module, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

#define FIND(table, name) find((table), sizeof(table) / sizeof((table)[0]), (name))

static enum finding_kind kind_of_function(const struct function *function)
{
	if (!function)
		return FINDING_NONE;
	if (function->kind == FRAME_BUILTIN)
		return FIND(builtins, function->name);
	if (function->kind == FRAME_VM_WORK)
		return FIND(works, function->name);
	if (function->kind == FRAME_NATIVE && is_of_library(function))
		return FIND(library_functions, function->name);
	return function->kind == FRAME_NATIVE ? FIND(natives, function->name) : FINDING_NONE;
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

/* "time()": a call without arguments, of no other name that ends so. */
static bool asks_for_time(const char *line)
{
	for (const char *at = line; (at = strstr(at, "time")); at++) {
		const char *after = at + strlen("time");

		after += strspn(after, " \t");
		if (*after != '(' || (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
			continue;
		if (after[1 + strspn(after + 1, " \t")] == ')')
			return true;
	}
	return false;
}

/* ", true)": the last argument of a find() for plain text. */
static bool is_plain(const char *line)
{
	for (const char *at = line; (at = strchr(at, ',')); at++) {
		const char *word = at + 1 + strspn(at + 1, " \t");

		if (strncmp(word, "true", strlen("true")) != 0)
			continue;
		word += strlen("true");
		if (word[strspn(word, " \t")] == ')')
			return true;
	}
	return false;
}

/* Does the line that calls a builtin do what the builtin is named for here? NULL: the line is unknown. */
static bool fits_line(const struct function *builtin, enum finding_kind kind, const char *line)
{
	const char *name = builtin->name ? builtin->name : "";
	char text[LINE_SIZE];

	/* It also turns dates into times. */
	if (strcmp(name, "os.time") == 0 && !line)
		return false;
	if (!line)
		return true;
	strip(line, text, sizeof(text));
	if (strcmp(name, "os.time") == 0)
		return asks_for_time(text);
	if (strcmp(name, "string.find") == 0)
		return !is_plain(text);
	return kind != FINDING_SHIFTS || shifts(text);
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

static bool line_joins(const char *line)
{
	char text[LINE_SIZE];

	strip(line, text, sizeof(text));
	return joins(text);
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

/*
 * LuaJIT joins strings for "..", for builtins and for a string.buffer by the same routines (lj_buf.c of
 * v2.1). The interpreter calls them itself for ".." only (BC_CAT); compiled code calls them for any of these.
 */
static enum finding_kind kind_of_joins(const struct work *work, const char *line)
{
	const struct function *callee = work->key.callee;

	if (callee && callee->kind == FRAME_BUILTIN) {
		enum finding_kind kind = only_calls(callee) ? FINDING_NONE : kind_of_function(callee);

		return kind ? kind : FINDING_OWN_WORK;
	}
	return !work->key.compiled || !line || line_joins(line) ? FINDING_JOINS : FINDING_OWN_WORK;
}

enum finding_kind work_kind(const struct work *work, const char *line)
{
	const struct function *callee = work->key.callee;
	enum finding_kind kind = kind_of_state((enum vm_state)work->key.state);
	bool is_known;

	if (kind || !work->key.function)
		return kind;
	kind = kind_of_function(work->key.leaf);
	if (kind == FINDING_JOINS)
		return kind_of_joins(work, line);
	/* The interpreter runs them; it is C code that unwinds the stack to them after an error. */
	if (only_calls(work->key.leaf) && work->key.state != VM_STATE_C)
		kind = FINDING_NONE;
	is_known = kind && work->key.leaf != callee; /* whatever the line calls */
	if (!kind && !only_calls(callee))
		kind = kind_of_function(callee);
	if (kind && callee && callee->kind == FRAME_BUILTIN && (!is_known || kind == FINDING_SHIFTS) &&
	    !fits_line(callee, kind, line))
		kind = FINDING_NONE;
	if (!kind && is_own_work(work))
		kind = line ? work_kind_of_line(line) : FINDING_OWN_WORK;
	return kind;
}
