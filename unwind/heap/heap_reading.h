/* SPDX-License-Identifier: MIT */
/*
 * heap_reading: what the parts of heap_read share. Private to unwind/heap.
 */
#ifndef LJSPY_HEAP_READING_H
#define LJSPY_HEAP_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_builder.h"
#include "unwind/heap/heap_copy.h"
#include "unwind/heap/heap_read.h"
#include "unwind/heap/vm_parts.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/luajit.h"

struct heap_names;
struct metatable;
struct heap_stacks;

struct heap_reading {
	struct heap_copy *copy;
	const struct vm_code *vm;
	const struct layout *layout; /* &vm->layout */
	uint64_t g;
	const struct heap_read_options *options;
	unsigned int ref; /* bytes of a GCRef */
	bool gc64;
	struct gc_fields gc;
	struct vm_parts parts;
	uint64_t mainthread;
	uint64_t objects_max;         /* that gc.total allows */
	struct heap_builder *builder; /* NULL: only measure */
	struct heap_account *account;
	uint64_t sum, objects;
	uint32_t first_part;          /* the node of parts.parts[0]; the others follow */
	struct metatable *metatables; /* what is known of them, by address */
	struct heap_stacks *stacks;
	struct heap_names *names;
	uint32_t detail; /* of edges from the frame that is read */
};

/* A field of an object in the copy. */
static inline uint64_t heap_field(const uint8_t *object, int32_t offset, unsigned int size)
{
	return load_bytes(object, offset, size);
}

static inline uint64_t heap_ref(const struct heap_reading *reading, const uint8_t *object, int32_t offset)
{
	return load_bytes(object, offset, reading->ref);
}

/* The bytes of an object, at least length; NULL if they cannot be read. */
static inline const uint8_t *heap_object(const struct heap_reading *reading, uint64_t address, int64_t length)
{
	return length < 0 ? NULL : heap_copy_view(reading->copy, address, (size_t)length);
}

/*---- heap_sizes.c ----*/

/*
 * Set what can be told of an object by its own bytes: bytes, kind, flags, slots, used. False if
 * it cannot be read or is of no known type, which is counted.
 */
bool heap_node_read(struct heap_reading *reading, uint64_t address, struct heap_node *ret_node);

/*---- heap_list.c ----*/

/* Add all nodes. */
void heap_list(struct heap_reading *reading);

/*---- heap_references.c ----*/

/* Add all edges. 0 or -ENOMEM. */
int heap_add_references(struct heap_reading *reading);

/* An edge from the node whose edges are added, if there is an object at address. */
void heap_refer(struct heap_reading *reading, uint64_t address, struct heap_edge edge);
/* The same for a tagged value; nothing if it is no object. */
void heap_refer_value(struct heap_reading *reading, uint64_t value, struct heap_edge edge);

/* The GCtrace with this number; 0 if there is none. */
uint64_t heap_trace_address(struct heap_reading *reading, uint32_t number);

/*---- heap_compiled.c ----*/

/* A function that a trace runs. */
struct heap_compiled {
	const struct proto *proto;
	uint64_t
		startpc; /* the first of all instructions that it may have been at when its frame was whole */
	bool stays_in_loop; /* the trace does not leave the loop that begins there */
};

/*
 * What this GCtrace runs, if that is sure: proto is the function at jit_base. False if not; no variable is
 * sure to be in its slot then. proto must outlive *ret_compiled.
 */
bool heap_compiled_find(struct heap_reading *reading, uint64_t address, const struct proto *proto,
			struct heap_compiled *ret_compiled);

/* As lua_local_name(), of a variable whose value is sure to be in its slot. */
bool heap_compiled_name(struct heap_reading *reading, const struct heap_compiled *compiled, uint32_t slot,
			const char **ret_name);

/*---- heap_stacks.c ----*/

struct heap_stacks *heap_stacks_new(struct heap_reading *reading); /* NULL when memory is short */
void heap_stacks_free(struct heap_stacks *stacks);

/* The edges of a thread's stack, and its node's texts: its first function, and where it stands. */
void heap_refer_stack(struct heap_reading *reading, uint32_t number);

/*---- heap_texts.c ----*/

/*
 * A string's contents, or what HEAP_TEXT_MAX allows of it. HEAP_TEXT_NONE if it is empty or cannot be read.
 */
uint32_t heap_string_text(struct heap_reading *reading, uint64_t string);

/* The prototype in the copy: its bytes and chunk name lie there. False if it cannot be read. */
bool heap_proto(struct heap_reading *reading, uint64_t address, struct proto *ret_proto);

/* "render page.lua:58", or with by_line the line at pc; name may be NULL. And its file. */
uint32_t heap_proto_text(struct heap_reading *reading, const struct proto *proto, const char *name,
			 uint64_t pc, bool by_line);
uint32_t heap_proto_file(struct heap_reading *reading, const struct proto *proto);

/* The type of a cdata, "struct conn *" or "ctype<struct conn>". */
uint32_t heap_ctype_text(struct heap_reading *reading, uint64_t cdata, uint32_t id);

#endif
