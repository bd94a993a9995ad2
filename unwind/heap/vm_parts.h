/* SPDX-License-Identifier: MIT */
/*
 * vm_parts: what a global_State allocates besides objects, and its collector's figures.
 *
 * No layout has rows for these fields. They lie at distances from fields that layouts have
 * which never changed, or of which only one fits what is there (vm_parts.c says which).
 */
#ifndef LJSPY_VM_PARTS_H
#define LJSPY_VM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "output/heap/heap_account.h"
#include "unwind/heap/heap_copy.h"

/* Of global_State.gc (lj_obj.h: GCState). */
struct gc_fields {
	uint64_t total;
	uint64_t root, mmudata;
	uint8_t currentwhite, state;
	struct heap_figure threshold, estimate, pause, stepmul;
};

bool gc_fields_read(struct heap_copy *copy, const struct layout *layout, uint64_t g,
		    struct gc_fields *ret_fields);

enum { VM_PARTS_MAX = 16 };

/* A piece of memory that is no object. */
struct vm_part {
	const char *name; /* a literal */
	uint64_t bytes;
	uint32_t slots, used; /* of a table of the VM's; 0 of others */
};

struct vm_parts {
	struct vm_part parts[VM_PARTS_MAX];
	size_t count;
	/*
	 * While no trace tells the size of a SnapShot, parts lack their buffer, which has so many;
	 * 0 otherwise. See vm_parts_add_snapshots().
	 */
	uint32_t snapshots;
	/* CTState, all 0 without the FFI library */
	uint64_t ctypes, ctype_top; /* CTState.tab, .top */
	uint64_t finalizer, miscmap;
};

/* Add up the parts. What cannot be read is left out. */
void vm_parts_read(struct heap_copy *copy, const struct vm_code *vm, uint64_t g, struct vm_parts *ret_parts);

/* Add the buffer of snapshots if it is what lacks. */
void vm_parts_add_snapshots(struct vm_parts *parts, uint64_t lacking);

#endif
