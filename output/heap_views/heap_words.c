/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *plural;
	bool described;
} kinds[HEAP_KIND_COUNT] = {
	[HEAP_KIND_ROOT] = { "root", "roots", false },
	[HEAP_KIND_STRING] = { "string", "strings", false },
	[HEAP_KIND_UPVALUE] = { "upvalue", "upvalues", false },
	[HEAP_KIND_THREAD] = { "thread", "coroutines", true },
	[HEAP_KIND_PROTO] = { "proto", "prototypes", true },
	[HEAP_KIND_FUNCTION] = { "function", "functions", true },
	[HEAP_KIND_TRACE] = { "trace", "traces", true },
	[HEAP_KIND_CDATA] = { "cdata", "cdata", true },
	[HEAP_KIND_TABLE] = { "table", "tables", false },
	[HEAP_KIND_USERDATA] = { "userdata", "userdata", false },
	[HEAP_KIND_VM] = { "vm", "VM's own", false },
};

const char *heap_kind_name(enum heap_kind kind)
{
	return kinds[kind].name;
}

const char *heap_kind_plural(enum heap_kind kind)
{
	return kinds[kind].plural;
}

bool heap_kind_is_described(enum heap_kind kind)
{
	return kinds[kind].described;
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Definitions without a name, main chunks and builtins say what they are themselves. */
static bool says_function(const char *text)
{
	return begins_with(text, "function ") || begins_with(text, "main chunk ") || strchr(text, '[');
}

/* In old files a text is the place where the coroutine stands, or what it runs. */
static const char *coroutine_prefix(const struct heap_node *thread, const char *text)
{
	if (thread->place)
		return "coroutine of ";
	return begins_with(text, "running ") ? "coroutine " : "coroutine at ";
}

const char *heap_words_what(const struct heap_graph *graph, const struct heap_node *node,
			    char ret_text[static HEAP_WORDS_SIZE])
{
	const char *text = heap_text(graph, node->text), *prefix = "";

	if (!*text)
		return NULL;
	if (node->kind == HEAP_KIND_FUNCTION)
		prefix = says_function(text) ? "" : "function ";
	else if (node->kind == HEAP_KIND_PROTO)
		prefix = "prototype of ";
	else if (node->kind == HEAP_KIND_THREAD)
		prefix = coroutine_prefix(node, text);
	else if (node->kind == HEAP_KIND_CDATA)
		prefix = "cdata ";
	snprintf(ret_text, HEAP_WORDS_SIZE, "%s%s", prefix, text);
	return ret_text;
}

/* Put a text into quotation marks, of which it can hold none after that. */
static void quote(const char *text, char ret_text[static 2 * HEAP_TEXT_MAX + 3])
{
	const char *end = text + strnlen(text, HEAP_TEXT_MAX);
	char *at = ret_text;

	*at++ = '"';
	for (; text < end; text++) {
		if (*text == '"' || *text == '\\')
			*at++ = '\\';
		*at++ = *text;
	}
	*at++ = '"';
	*at = '\0';
}

__attribute__((format(printf, 2, 3))) static void write_words(char *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, HEAP_WORDS_SIZE, format, arguments);
	va_end(arguments);
}

static bool write_field(const struct heap_step *step, const char *key, char *ret_text)
{
	char quoted[2 * HEAP_TEXT_MAX + 3];

	if (step->of_package_loaded && strcmp(key, "_G") == 0) {
		write_words(ret_text, "_G");
		return true;
	}
	if (step->many) {
		write_words(ret_text, "%s", HEAP_MANY_STRINGS);
	} else if (heap_is_identifier(key) && !step->of_package_loaded) {
		write_words(ret_text, ".%s", key);
	} else {
		quote(key, quoted);
		write_words(ret_text, "[%s]", quoted);
	}
	return false;
}

/* " of X", if X is known. */
static const char *of_words(const struct heap_step *step, char ret_text[static HEAP_WORDS_SIZE])
{
	if (step->of)
		write_words(ret_text, " of %s", step->of);
	else
		*ret_text = '\0';
	return ret_text;
}

/* Does a thread's description, as heap_words_what() has it, say no more than its frame? */
static bool is_of_frame(const char *thread, const char *frame)
{
	static const char *const prefixes[] = { "coroutine of ", "coroutine at ", "coroutine running " };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (begins_with(thread, prefixes[i]) && strcmp(thread + strlen(prefixes[i]), frame) == 0)
			return true;
	return !*thread;
}

/* A slot of a frame: the frame, and the coroutine that it is in. */
static bool write_slot(const struct heap_graph *graph, const struct heap_step *step, const char *name,
		       char *ret_text)
{
	const char *frame = heap_text(graph, step->edge->detail), *thread = step->of ? step->of : "";
	/* No frame is known between frames. */
	const char *of = *frame ? frame : step->of_main_thread ? "main thread" : thread;
	char quoted[2 * HEAP_TEXT_MAX + 3], coroutine[HEAP_WORDS_SIZE] = "";

	quote(name, quoted);
	if (*frame && !step->of_main_thread && !is_of_frame(thread, frame))
		write_words(coroutine, " (%s)", thread);
	write_words(ret_text, "%s%s%s%s%.*s", *name ? "local " : "slot", *name ? quoted : "",
		    *of ? " of " : "", of, HEAP_WORDS_SIZE / 2, coroutine);
	return true;
}

static bool write_upvalue(const struct heap_step *step, const char *name, char *ret_text)
{
	char quoted[2 * HEAP_TEXT_MAX + 3], of[HEAP_WORDS_SIZE];

	of_words(step, of);
	if (*name) {
		quote(name, quoted);
		write_words(ret_text, "upvalue %s%.*s", quoted, HEAP_WORDS_SIZE / 2, of);
	} else {
		write_words(ret_text, "upvalue %d%.*s", step->edge->number, HEAP_WORDS_SIZE / 2, of);
	}
	return step->of != NULL;
}

/* A part of a function, prototype or trace: by what it is part of, if that is known. */
static bool write_part(const struct heap_step *step, const char *part, char *ret_text)
{
	if (step->of)
		write_words(ret_text, "%s of %.*s", part, HEAP_WORDS_SIZE / 2, step->of);
	else
		write_words(ret_text, " (%s)", part);
	return step->of != NULL;
}

bool heap_words_step(const struct heap_graph *graph, const struct heap_step *step,
		     char ret_text[static HEAP_WORDS_SIZE])
{
	const struct heap_edge *edge = step->edge;
	const char *text = heap_text(graph, edge->text);
	char part[HEAP_WORDS_SIZE];

	*ret_text = '\0';
	switch ((enum heap_hold)edge->hold) {
	case HEAP_HOLDS_ROOT: write_words(ret_text, "%s", *text ? text : "root"); return true;
	case HEAP_HOLDS_FIELD: return write_field(step, text, ret_text);
	case HEAP_HOLDS_INDEX:
		if (step->many)
			write_words(ret_text, "%s", HEAP_MANY_OTHERS);
		else
			write_words(ret_text, "[%d]", edge->number);
		return false;
	case HEAP_HOLDS_VALUE: write_words(ret_text, "[%s]", step->many ? "*" : text); return false;
	case HEAP_HOLDS_KEY: write_words(ret_text, " (key)"); return false;
	case HEAP_HOLDS_METATABLE: write_words(ret_text, " (metatable)"); return false;
	case HEAP_HOLDS_ENVIRONMENT: write_words(ret_text, " (environment)"); return false;
	case HEAP_HOLDS_UPVALUE: return write_upvalue(step, text, ret_text);
	case HEAP_HOLDS_CLOSED: write_words(ret_text, " (value)"); return false;
	case HEAP_HOLDS_LOCAL: return write_slot(graph, step, text, ret_text);
	case HEAP_HOLDS_SLOT: return write_slot(graph, step, "", ret_text);
	case HEAP_HOLDS_PROTO: write_words(ret_text, " (prototype)"); return false;
	case HEAP_HOLDS_CONSTANT: return write_part(step, "constant", ret_text);
	case HEAP_HOLDS_TRACE:
		write_words(part, "trace %d", edge->number);
		return write_part(step, part, ret_text);
	case HEAP_HOLDS_OTHER: write_words(ret_text, " (%s)", *text ? text : "other"); return false;
	case HEAP_HOLD_COUNT: break;
	}
	return false;
}
