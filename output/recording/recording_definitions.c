/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_reader_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void recording_forget(struct recording_reader *reader)
{
	reader->tables.string_count = 0;
	reader->tables.text_length = 0;
	reader->tables.function_count = 0;
	reader->forgotten += reader->tables.stack_count;
	reader->tables.stack_count = 0;
	reader->tables.thread_count = 0;
}

static const char *text_of(const struct tables *tables, uint32_t id)
{
	return tables->text + tables->strings[id - 1];
}

static bool take_string(struct recording_reader *reader, const char **ret_string)
{
	uint32_t id;

	if (!record_take_number(reader->block, reader->tables.string_count, &id))
		return false;
	*ret_string = id ? text_of(&reader->tables, id) : NULL;
	return true;
}

bool recording_memory_is_left(const struct recording_reader *reader)
{
	return functions_size(reader->functions) + reader->names_size < RECORDING_MEMORY_MAX;
}

int recording_read_string(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	const char *text;
	size_t length;

	if (!record_take_text(reader->block, RECORDING_TEXT_MAX, &text, &length) ||
	    tables->string_count == RECORDING_STRINGS_MAX || length + 1 > TEXT_SIZE - tables->text_length)
		return READ_DAMAGED;
	memcpy(tables->text + tables->text_length, text, length);
	tables->text[tables->text_length + length] = '\0';
	tables->names[tables->string_count] = NULL;
	tables->strings[tables->string_count++] = (uint32_t)tables->text_length;
	tables->text_length += length + 1;
	return READ_ON;
}

/* The static function of a lost frame, because others compare its address. NULL for an unknown reason. */
static const struct function *find_lost(const char *name)
{
	for (int reason = 0; reason < LOST_COUNT; reason++)
		if (strcmp(lost_reason_text((enum lost_reason)reason), name) == 0)
			return lost_function((enum lost_reason)reason);
	return NULL;
}

const char *recording_keep_name(struct recording_reader *reader, const char *text)
{
	size_t length = strlen(text);
	struct name *name;

	HASH_FIND(hh, reader->names, text, length, name);
	if (name)
		return name->text;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return NULL;
	memcpy(name->text, text, length + 1);
	HASH_ADD_KEYPTR(hh, reader->names, name->text, length, name);
	if (!hash_added(&name->hh)) {
		free(name);
		return NULL;
	}
	reader->names_size += sizeof(*name) + length + 1;
	return name->text;
}

bool recording_note_root(struct recording_reader *reader, const struct function *function)
{
	const char *root;
	char *copy;

	if (function->root == 0 || reader->root_count == RECORDING_ROOTS_MAX)
		return true;
	for (size_t i = 0; i < reader->root_count; i++)
		if (strlen(reader->roots[i]) == function->root &&
		    strncmp(reader->roots[i], function->file, function->root) == 0)
			return true;
	copy = strndup(function->file, function->root);
	root = copy ? recording_keep_name(reader, copy) : NULL;
	free(copy);
	if (root)
		reader->roots[reader->root_count++] = root;
	return root;
}

/* The longest root that the function's file is below. */
static uint32_t root_of(const struct recording_reader *reader, const struct function *function)
{
	size_t longest = function->root;

	for (size_t i = 0; i < reader->root_count; i++) {
		size_t length = strlen(reader->roots[i]);

		if (length > longest && strncmp(reader->roots[i], function->file, length) == 0)
			longest = length;
	}
	return (uint32_t)longest;
}

/* Read the root of a function, and set it. READ_ON on success. */
static int take_root(struct recording_reader *reader, struct function *function)
{
	if (reader->version >= RECORDING_VERSION_ROOTS &&
	    !record_take_number(reader->block, UINT32_MAX, &function->root))
		return READ_DAMAGED;
	if (function->root && (!function->file || function->root >= strlen(function->file)))
		return READ_DAMAGED;
	if (reader->opening)
		return recording_note_root(reader, function) ? READ_ON : -ENOMEM;
	if (function->kind == FRAME_LUA && function->file)
		function->root = root_of(reader, function);
	return READ_ON;
}

int recording_read_function(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct function function = { 0 };
	const struct function *known = NULL;
	uint32_t kind;
	int result;

	if (!record_take_number(reader->block, FRAME_KIND_COUNT - 1, &kind) ||
	    !record_take_number(reader->block, UINT32_MAX, &function.firstline) ||
	    !take_string(reader, &function.name) || !take_string(reader, &function.file) ||
	    !take_string(reader, &function.module) || tables->function_count == RECORDING_FUNCTIONS_MAX ||
	    !recording_memory_is_left(reader))
		return READ_DAMAGED;
	function.kind = (enum frame_kind)kind;
	result = take_root(reader, &function);
	if (result != READ_ON)
		return result;
	if (function.kind == FRAME_LOST && function.name)
		known = find_lost(function.name);
	if (!known)
		known = functions_intern(reader->functions, &function);
	if (!known)
		return -ENOMEM;
	if (function.root > known->root)
		functions_set_root(known, function.root);
	tables->functions[tables->function_count++] = known;
	return READ_ON;
}

int recording_read_stack(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct stack stack = { 0 };
	uint32_t depth;
	uint8_t certainty;

	if (!record_take_number(reader->block, tables->stack_count, &stack.caller) ||
	    !record_take_number(reader->block, tables->function_count, &stack.function) ||
	    stack.function == 0 || !record_take_number(reader->block, UINT32_MAX, &stack.line) ||
	    !record_take_byte(reader->block, &certainty) || (certainty & CERTAINTY_MASK) >= CERTAINTY_COUNT ||
	    certainty >= 2 * CERTAINTY_COMPILED || tables->stack_count == RECORDING_STACKS_MAX)
		return READ_DAMAGED;
	depth = stack.caller ? tables->stacks[stack.caller - 1].depth + 1 : 1;
	if (depth > RECORDING_DEPTH_MAX)
		return READ_DAMAGED;
	stack.figures = stack.caller ? tables->stacks[stack.caller - 1].figures : (struct figures_stack){ 0 };
	figures_push(&stack.figures, tables->functions[stack.function - 1],
		     (enum frame_certainty)(certainty & CERTAINTY_MASK));
	stack.depth = depth & 0xffffff;
	stack.certainty = certainty;
	tables->stacks[tables->stack_count++] = stack;
	return READ_ON;
}

int recording_take_name(struct recording_reader *reader, const char **ret_name)
{
	uint32_t id;
	const char **name;

	if (!record_take_number(reader->block, reader->tables.string_count, &id))
		return READ_DAMAGED;
	*ret_name = NULL;
	if (id == 0)
		return READ_ON;
	name = &reader->tables.names[id - 1];
	if (!*name) {
		if (!recording_memory_is_left(reader))
			return READ_DAMAGED;
		*name = recording_keep_name(reader, text_of(&reader->tables, id));
	}
	*ret_name = *name;
	return *name ? READ_ON : -ENOMEM;
}

int recording_read_thread(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct thread thread = { 0 };
	uint32_t pid, tid;
	int result;

	if (!record_take_number(reader->block, INT_MAX, &pid) ||
	    !record_take_number(reader->block, INT_MAX, &tid) ||
	    tables->thread_count == RECORDING_THREADS_MAX)
		return READ_DAMAGED;
	result = recording_take_name(reader, &thread.process_name);
	if (result == READ_ON)
		result = recording_take_name(reader, &thread.thread_name);
	if (result != READ_ON)
		return result;
	thread.pid = (pid_t)pid;
	thread.tid = (pid_t)tid;
	tables->threads[tables->thread_count++] = thread;
	return READ_ON;
}
