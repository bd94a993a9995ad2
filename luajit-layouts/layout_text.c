/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/layout_text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 256, KEY_MAX_BYTES = 64 };

static const char *const bytecodes[BYTECODE_COUNT] = {
	[BYTECODE_V20] = "2.0",
	[BYTECODE_V21] = "2.1",
	[BYTECODE_V21_BITOPS] = "2.1-bitops",
};

static const char *const vmstates[VMSTATES_COUNT] = {
	[VMSTATES_LUAJIT] = "luajit",
	[VMSTATES_TARANTOOL] = "tarantool",
};

void layout_text_write(const struct layout *layout, FILE *file)
{
	fprintf(file, "# A LuaJIT layout: offsets in bytes, by LuaJIT's names.\n");
	if (*layout->name)
		fprintf(file, "name = %s\n", layout->name);
	fprintf(file, "gc64 = %s\nhas_jit = %s\nbytecode = %s\nvmstates = %s\n", layout->gc64 ? "yes" : "no",
		layout->has_jit ? "yes" : "no", bytecodes[layout->bytecode], vmstates[layout->vmstates]);
	for (size_t i = 0; i < layout_field_count; i++) {
		int32_t value = layout_offset(layout, &layout_fields[i]);

		if (value == LAYOUT_ABSENT)
			fprintf(file, "%s = absent\n", layout_fields[i].name);
		else if (value == LAYOUT_UNKNOWN)
			fprintf(file, "%s = unknown\n", layout_fields[i].name);
		else
			fprintf(file, "%s = %d\n", layout_fields[i].name, value);
	}
}

void layout_text_compare(const struct layout *here, const struct layout *there, const char *prefix,
			 FILE *file)
{
	for (size_t i = 0; i < layout_field_count; i++) {
		const struct layout_field *field = &layout_fields[i];
		int32_t a = layout_offset(here, field), b = layout_offset(there, field);

		if (a != b && a != LAYOUT_UNKNOWN && b != LAYOUT_UNKNOWN)
			fprintf(file, "%s%s is %d there, %d here\n", prefix, field->name, b, a);
	}
}

static const char *read_offset(const char *text, int32_t *ret)
{
	char *end;
	long value;

	if (strcmp(text, "absent") == 0) {
		*ret = LAYOUT_ABSENT;
		return NULL;
	}
	if (strcmp(text, "unknown") == 0) {
		*ret = LAYOUT_UNKNOWN;
		return NULL;
	}
	errno = 0;
	value = strtol(text, &end, 0);
	if (end == text || *end != '\0' || errno != 0 || value < 0 || value > LAYOUT_OFFSET_MAX)
		return "not an offset";
	*ret = (int32_t)value;
	return NULL;
}

static const char *read_flag(const char *text, bool *ret)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return "neither yes nor no";
	*ret = strcmp(text, "yes") == 0;
	return NULL;
}

/* The index of text among count names, or count. */
static unsigned find_name(const char *const *names, unsigned count, const char *text)
{
	unsigned i = 0;

	while (i < count && strcmp(text, names[i]) != 0)
		i++;
	return i;
}

static const char *read_bytecode(const char *text, enum layout_bytecode *ret)
{
	enum layout_bytecode found = find_name(bytecodes, BYTECODE_COUNT, text);

	if (found == BYTECODE_COUNT)
		return "not a bytecode numbering";
	*ret = found;
	return NULL;
}

static const char *read_vmstates(const char *text, enum layout_vmstates *ret)
{
	enum layout_vmstates found = find_name(vmstates, VMSTATES_COUNT, text);

	if (found == VMSTATES_COUNT)
		return "not a numbering of VM states";
	*ret = found;
	return NULL;
}

/* NULL, or what is wrong. */
static const char *assign(struct layout *layout, const char *key, const char *value)
{
	if (strcmp(key, "name") == 0) {
		snprintf(layout->name, sizeof(layout->name), "%s", value);
		return NULL;
	}
	if (strcmp(key, "gc64") == 0)
		return read_flag(value, &layout->gc64);
	if (strcmp(key, "has_jit") == 0)
		return read_flag(value, &layout->has_jit);
	if (strcmp(key, "bytecode") == 0)
		return read_bytecode(value, &layout->bytecode);
	if (strcmp(key, "vmstates") == 0)
		return read_vmstates(value, &layout->vmstates);
	for (size_t i = 0; i < layout_field_count; i++) {
		if (strcmp(key, layout_fields[i].name) == 0)
			return read_offset(value, layout_offset_in(layout, &layout_fields[i]));
	}
	return "no such field";
}

static const char *read_line(struct layout *layout, const char *line)
{
	char key[KEY_MAX_BYTES], value[KEY_MAX_BYTES], rest;
	int found;

	found = sscanf(line, " %63[^ =\t\n] = %63[^ \t\n] %c", key, value, &rest);
	if (found == EOF || (found >= 1 && key[0] == '#'))
		return NULL; /* empty, or a comment */
	if (found < 2 || (found == 3 && rest != '#'))
		return "not of the form key = value";
	return assign(layout, key, value);
}

unsigned layout_text_read(FILE *file, struct layout *ret_layout, const char **ret_reason)
{
	struct layout layout;
	char line[LINE_MAX_BYTES];
	const char *reason;

	layout_clear(&layout);
	for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
		reason = strlen(line) == sizeof(line) - 1 ? "line too long" : read_line(&layout, line);
		if (reason != NULL) {
			*ret_reason = reason;
			return number;
		}
	}
	*ret_layout = layout;
	return 0;
}
