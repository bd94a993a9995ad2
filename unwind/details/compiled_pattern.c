/* SPDX-License-Identifier: MIT */
#include "unwind/details/compiled_pattern.h"

#include <string.h>

#include "luajit-layouts/field.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/global_state.h"

enum {
	EXEC_ARGUMENTS = 5, /* of ngx_http_lua_ffi_exec_regex(): re, flags, s, len, pos */
	ARGUMENTS_MAX = 32, /* of a call (CCI_NARGS_MAX) */
	KEY_BYTES_MAX = 4096,
};

static const char cache_field[] = "hasht";

struct search {
	struct memory *memory;
	const struct trace *trace;
	const struct layout *layout;
};

struct string {
	uint64_t address; /* of the first byte */
	uint32_t length;
};

/* The instruction at a reference, if it is of this kind. */
static bool take(const struct search *search, uint32_t ref, enum ir_op op, struct trace_instruction *ret)
{
	return trace_instruction(search->trace, search->layout, ref, ret) && ret->op == op;
}

/* The constant string that a HREFK looks up. */
static bool read_key(const struct search *search, const struct trace_instruction *lookup,
		     struct string *ret_key)
{
	const struct layout *layout = search->layout;
	struct trace_instruction slot, constant;
	uint64_t object;
	uint8_t gct;

	if (!take(search, lookup->op2, IR_KSLOT, &slot) || !take(search, slot.op1, IR_KGC, &constant) ||
	    constant.type != IRT_STR || !trace_constant(search->trace, layout, slot.op1, &object) ||
	    !field_gct(search->memory, layout, object, &gct) || gct != GCT_STRING ||
	    !memory_u32(search->memory, object + (uint64_t)layout->GCstr_len, &ret_key->length))
		return false;
	ret_key->address = object + (uint64_t)layout->GCstr_size;
	return true;
}

/* The pattern ends at the last zero byte: options have none. */
static bool cut_options(const struct search *search, struct string *key)
{
	char bytes[KEY_BYTES_MAX];
	const char *end;

	if (key->length > sizeof(bytes) ||
	    memory_read(search->memory, key->address, bytes, key->length) != MEMORY_OK)
		return false;
	end = memrchr(bytes, '\0', key->length);
	if (!end)
		return false;
	key->length = (uint32_t)(end - bytes);
	return true;
}

/* Is a reference the table "hasht" of some other table? */
static bool is_cache(const struct search *search, uint32_t ref)
{
	char name[sizeof(cache_field) - 1];
	struct trace_instruction load, lookup;
	struct string key;

	return take(search, ref, IR_HLOAD, &load) && take(search, load.op1, IR_HREFK, &lookup) &&
	       read_key(search, &lookup, &key) && key.length == sizeof(name) &&
	       memory_read(search->memory, key.address, name, sizeof(name)) == MEMORY_OK &&
	       memcmp(name, cache_field, sizeof(name)) == 0;
}

/* The key under which a pointer was found. */
static bool find_key(const struct search *search, uint32_t ref, struct string *ret_key)
{
	struct trace_instruction pointer, load, lookup, node;

	return take(search, ref, IR_FLOAD, &pointer) && take(search, pointer.op1, IR_HLOAD, &load) &&
	       take(search, load.op1, IR_HREFK, &lookup) && take(search, lookup.op1, IR_FLOAD, &node) &&
	       is_cache(search, node.op1) && read_key(search, &lookup, ret_key) &&
	       cut_options(search, ret_key);
}

/* The first argument of a call. False if it has another number of them. */
static bool first_argument(const struct search *search, const struct trace_instruction *call, uint32_t *ret)
{
	struct trace_instruction argument;
	uint32_t ref = call->op1;
	unsigned count = 1;

	while (count < ARGUMENTS_MAX && take(search, ref, IR_CARG, &argument)) {
		ref = argument.op1;
		count++;
	}
	*ret = ref;
	return count == EXEC_ARGUMENTS;
}

bool compiled_pattern_find(struct memory *memory, const struct merged_frame *frame, uint64_t *ret_address,
			   uint32_t *ret_length)
{
	const struct search search = { memory, frame->trace, &frame->global->vm->layout };
	struct trace_snapshot snapshot, next;
	struct string found = { 0 };
	uint32_t number, ref, end;

	if (!frame->trace || !frame->trace->bytes || !frame->trace_pc ||
	    !trace_snapshot_at(frame->trace, search.layout, frame->trace_pc, &number) ||
	    !trace_snapshot(frame->trace, search.layout, number, &snapshot))
		return false;
	end = trace_nins(frame->trace, search.layout);
	if (trace_snapshot(frame->trace, search.layout, number + 1, &next) && next.ref < end)
		end = next.ref;
	/* Of several such calls it is unknown which one runs: all must have one pattern. */
	for (ref = snapshot.ref; ref < end; ref++) {
		struct trace_instruction call;
		struct string key;
		uint32_t argument;

		if (!take(&search, ref, IR_CALLXS, &call) || !first_argument(&search, &call, &argument))
			continue;
		if (!find_key(&search, argument, &key) || (found.address && found.address != key.address))
			return false;
		found = key;
	}
	if (found.address == 0)
		return false;
	*ret_address = found.address;
	*ret_length = found.length;
	return true;
}
