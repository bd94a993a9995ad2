/* SPDX-License-Identifier: MIT */
/*
 * heap_read: the heap of one global_State as a graph.
 *
 * First it lists every object: the collector's chain (gc.root), the string table, open
 * upvalues and userdata that wait for their finalizers (lj_gc.c, lj_obj.h). Then it adds what
 * each object refers to, as the collector's mark phase does. It also counts what the VM holds
 * without an object, so that the sizes add up to gc.total.
 *
 * The copy is untrusted: the target may lie, and may have run while it was copied. Chains end
 * after as many objects as gc.total allows, objects that overlap nothing readable are left
 * out, and each of these is counted.
 */
#ifndef LJSPY_HEAP_READ_H
#define LJSPY_HEAP_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "output/labels/frame_label.h"
#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "unwind/heap/heap_copy.h"
#include "unwind/heap/heap_running.h"
#include "unwind/lua/lua_objects.h"

struct heap_read_options {
	bool strings;                       /* keep the contents of strings */
	const struct heap_running *running; /* where Lua stands in the copy; NULL: that is not known */
	/* What a function is that is not in Lua, as its frame reads. 0 or -ENOMEM. NULL: none has a text. */
	int (*name_c)(void *context, const struct function_object *function,
		      char ret_text[static FRAME_LABEL_SIZE]);
	void *context; /* of name_c */
};

/*
 * Read the heap of the global_State at g. Sets what *account says of the VM: gc_total to
 * dead_known, and uncertain; nothing of how the copy was made. 0 or -ENOMEM; then *ret_graph
 * is untouched. -EIO if g cannot be read.
 */
int heap_read(struct heap_copy *copy, const struct vm_code *vm, uint64_t g,
	      const struct heap_read_options *options, struct heap_graph *ret_graph,
	      struct heap_account *account);

/*
 * Only list the objects, and add up their sizes: touches every page that heap_read() needs to
 * list them. 0, or as above.
 */
int heap_measure(struct heap_copy *copy, const struct vm_code *vm, uint64_t g, struct heap_account *account);

#endif
