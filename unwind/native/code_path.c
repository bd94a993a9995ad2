/* SPDX-License-Identifier: MIT */
#include "unwind/native/code_path_parts.h"

#include <string.h>

enum {
	WORD = 8,
	OFFSET_MAX = 1 << 30, /* no frame is larger */
};

static const struct path_value unknown = { .kind = PATH_UNKNOWN };

void code_path_begin(struct code_path *path, uint64_t pc)
{
	memset(path, 0, sizeof(*path));
	path->pc = pc;
	for (int i = 0; i < REGISTER_NUMBERS; i++)
		path->registers[i] = (struct path_value){ .kind = PATH_SUM, .number = i };
}

/*---- Memory ----*/

struct path_value code_path_plus(struct path_value value, int64_t offset)
{
	if (value.kind != PATH_SUM || offset < -OFFSET_MAX || offset > OFFSET_MAX)
		return unknown;
	value.offset += offset;
	return value.offset < -OFFSET_MAX || value.offset > OFFSET_MAX ? unknown : value;
}

static bool is_within(int64_t offset, int64_t begin, int64_t end)
{
	return offset > begin - WORD && offset < end;
}

struct path_value code_path_load(const struct code_path *path, struct path_value address)
{
	const struct path_extent *stored = &path->stored[address.number];

	if (address.kind != PATH_SUM)
		return unknown;
	for (size_t i = 0; i < path->saved_count; i++) {
		const struct path_saved *saved = &path->saved[i];

		if (saved->address.number != address.number)
			continue;
		if (saved->address.offset == address.offset)
			return saved->value;
		if (is_within(address.offset, saved->address.offset, saved->address.offset + WORD))
			return unknown;
	}
	if (is_within(address.offset, stored->begin, stored->end))
		return unknown;
	address.kind = PATH_LOADED;
	return address;
}

static void forget(struct code_path *path, struct path_value address, int64_t size)
{
	for (size_t i = path->saved_count; i-- > 0;)
		if (path->saved[i].address.number == address.number &&
		    is_within(path->saved[i].address.offset, address.offset, address.offset + size))
			path->saved[i] = path->saved[--path->saved_count];
}

static void store_unknown(struct code_path *path, struct path_value address, int64_t size)
{
	struct path_extent *stored = &path->stored[address.number];

	if (stored->begin == stored->end)
		*stored = (struct path_extent){ address.offset, address.offset };
	if (address.offset < stored->begin)
		stored->begin = address.offset;
	if (address.offset + size > stored->end)
		stored->end = address.offset + size;
}

/* A store to an unknown address does not matter: the stack's addresses are known. */
void code_path_store(struct code_path *path, struct path_value address, int64_t size, struct path_value value)
{
	if (address.kind != PATH_SUM)
		return;
	forget(path, address, size);
	if (value.kind == PATH_UNKNOWN || size != WORD || path->saved_count == CODE_PATH_SAVED_MAX)
		store_unknown(path, address, size);
	else
		path->saved[path->saved_count++] = (struct path_saved){ address, value };
}

bool code_path_may_be_astray(const struct code_path *path, struct path_value return_address)
{
	return path->at_call.kind == PATH_SUM && return_address.kind == PATH_LOADED &&
	       return_address.number == path->at_call.number && return_address.offset <= path->at_call.offset;
}
