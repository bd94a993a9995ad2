/* SPDX-License-Identifier: MIT */
#include "output/labels/module_path.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "output/labels/frame_label.h"

/* A part of a path between slashes. */
struct part {
	const char *begin;
	size_t length;
};

static bool part_is(struct part part, const char *name)
{
	return part.length == strlen(name) && memcmp(part.begin, name, part.length) == 0;
}

/* The part before end, which is a slash or the end of the path. Empty at the path's beginning. */
static struct part part_before(const char *path, const char *end)
{
	const char *begin = end;

	while (begin > path && begin[-1] != '/')
		begin--;
	return (struct part){ begin, (size_t)(end - begin) };
}

static bool is_version(struct part part)
{
	return part.length >= 3 && part.begin[0] == '5' && part.begin[1] == '.' &&
	       isdigit((unsigned char)part.begin[2]);
}

/* Does a package root end before this slash? */
static bool is_root(const char *path, const char *slash)
{
	static const char luajit[] = "luajit-";
	struct part last = part_before(path, slash), above;

	if (part_is(last, "lualib"))
		return true;
	if (last.begin == path)
		return false;
	above = part_before(path, last.begin - 1);
	if (part_is(above, "share") && last.length > strlen(luajit) &&
	    memcmp(last.begin, luajit, strlen(luajit)) == 0)
		return true;
	if (!is_version(last) || !part_is(above, "lua") || above.begin == path)
		return false;
	above = part_before(path, above.begin - 1);
	return part_is(above, "share") || part_is(above, "lib");
}

/* The length of the package root at the beginning of a path, with its last slash; 0 if there is none. */
static size_t root_length(const char *path)
{
	const char *rest = path;

	for (const char *at = path; *at; at++)
		if (*at == '/' && is_root(path, at))
			rest = at + 1;
	if (rest == path && strncmp(path, "./", 2) == 0)
		rest = path + 2;
	return (size_t)(rest - path);
}

/*
 * Find the plugin in a path: from the folder above "plugins" to the plugin's
 * name. The first "plugins" counts, because a plugin may have a folder of that
 * name itself.
 */
static bool find_plugin(const char *path, struct part *ret_plugin)
{
	static const char folder[] = "/plugins/";
	const char *at = strstr(path, folder), *name;
	struct part above;

	if (!at || at == path)
		return false;
	above = part_before(path, at);
	name = at + strlen(folder);
	*ret_plugin = (struct part){
		.begin = *path == '/' ? above.begin : path,
		.length = (size_t)(name + strcspn(name, "/") - (*path == '/' ? above.begin : path)),
	};
	return true;
}

static void cut_suffix(struct part *part, const char *suffix)
{
	size_t length = strlen(suffix);

	if (part->length > length && memcmp(part->begin + part->length - length, suffix, length) == 0)
		part->length -= length;
}

const char *module_path_file(const struct function *function, size_t *ret_root)
{
	const char *path = frame_label_file(function->file);

	if (*function->file == '=')
		*ret_root = 0;
	else if (function->root)
		*ret_root = function->root - (size_t)(path - function->file);
	else
		*ret_root = root_length(path);
	return path;
}

static struct part module_of_path(const char *path)
{
	struct part module;

	if (!find_plugin(path, &module))
		module = (struct part){ path, strlen(path) };
	cut_suffix(&module, ".lua");
	cut_suffix(&module, ".luac");
	cut_suffix(&module, ".ljbc");
	cut_suffix(&module, "/init");
	return module;
}

size_t module_path(const struct function *function, char ret_module[static MODULE_PATH_SIZE])
{
	size_t root;
	const char *name = module_path_file(function, &root);
	struct part module = *function->file == '=' ? (struct part){ name, strlen(name) }
						    : module_of_path(name + root);

	if (module.length >= MODULE_PATH_SIZE) {
		module.begin += module.length - (MODULE_PATH_SIZE - 1);
		module.length = MODULE_PATH_SIZE - 1;
	}
	memcpy(ret_module, module.begin, module.length);
	ret_module[module.length] = '\0';
	return module.length;
}

const struct function *module_path_owner(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (frames[i].function->kind == FRAME_LUA && frames[i].function->file)
			return frames[i].function;
	return NULL;
}
