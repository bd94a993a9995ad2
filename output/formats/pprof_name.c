/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/labels/module_path.h"

/* With these limits every name fits in FRAME_LABEL_SIZE. Names keep their beginning, paths their end. */
enum { NAME_MAX_BYTES = 400, PATH_MAX_BYTES = 400 };

/* A part of a text. */
struct part {
	const char *begin;
	int length;
};

static struct part head(const char *text, size_t length)
{
	return (struct part){ text, (int)(length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES) };
}

/* The path of a file without its package root and suffix. */
static struct part path_of(const struct function *function)
{
	static const char suffix[] = ".lua";
	size_t root;
	const char *path = module_path_file(function, &root), *end;

	path += root;
	end = path + strlen(path);
	if ((size_t)(end - path) > strlen(suffix) && strcmp(end - strlen(suffix), suffix) == 0)
		end -= strlen(suffix);
	if (end - path > PATH_MAX_BYTES)
		path = end - PATH_MAX_BYTES;
	return (struct part){ path, (int)(end - path) };
}

static void write_lua(const struct function *function, char label[static FRAME_LABEL_SIZE])
{
	const char *name = function->name ? function->name : "function";
	struct part path = path_of(function), own = head(name, strlen(name));
	int length = snprintf(label, FRAME_LABEL_SIZE, "%.*s.%.*s", path.length, path.begin, own.length,
			      own.begin);

	if (function->firstline != 0)
		snprintf(label + length, FRAME_LABEL_SIZE - (size_t)length, ":%" PRIu32, function->firstline);
}

static void write_native(const struct function *function, char label[static FRAME_LABEL_SIZE])
{
	struct part own = head(function->name, strlen(function->name));
	struct part module = head(function->module, strcspn(function->module, "."));

	snprintf(label, FRAME_LABEL_SIZE, "%.*s [%.*s]", own.length, own.begin, module.length, module.begin);
}

const char *pprof_name(const struct function *function, char ret_text[static FRAME_TEXT_SIZE])
{
	bool is_lua = function->kind == FRAME_LUA || function->kind == FRAME_TRACE;
	bool is_native = function->kind == FRAME_C_FUNCTION || function->kind == FRAME_NATIVE;
	char label[FRAME_LABEL_SIZE];

	if (is_lua && function->file)
		write_lua(function, label);
	else if (is_native && function->name && function->module)
		write_native(function, label);
	else if (function->kind == FRAME_BUILTIN && function->name)
		snprintf(label, sizeof(label), "%.*s", NAME_MAX_BYTES, function->name);
	else
		frame_label(function, 0, false, label);
	escape_text(ESCAPE_PLAIN, label, ret_text, FRAME_TEXT_SIZE);
	return ret_text;
}
