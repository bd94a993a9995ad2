/* SPDX-License-Identifier: MIT */
#include "unwind/heap/heap_read.h"

#include <errno.h>

#include "unwind/heap/heap_reading.h"

/* GCState (lj_gc.h). */
static const char *state_name(uint8_t state)
{
	static const char *const names[] = { "pause",         "propagate", "atomic",
					     "sweep strings", "sweep",     "finalize" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static bool begin(struct heap_reading *reading, struct heap_copy *copy, const struct vm_code *vm, uint64_t g,
		  const struct heap_read_options *options, struct heap_account *account)
{
	const uint8_t *mainthref;

	*reading = (struct heap_reading){
		.copy = copy,
		.vm = vm,
		.layout = &vm->layout,
		.g = g,
		.options = options,
		.ref = layout_ref_size(&vm->layout),
		.gc64 = vm->layout.gc64,
		.account = account,
	};
	mainthref = heap_copy_view(copy, g + (uint64_t)vm->layout.g_mainthref, reading->ref);
	if (!mainthref || !gc_fields_read(copy, &vm->layout, g, &reading->gc))
		return false;
	reading->mainthread = heap_ref(reading, mainthref, 0);
	vm_parts_read(copy, vm, g, &reading->parts);
	account->g = g;
	account->dead_objects = account->dead_bytes = 0;
	account->dead_known = true;
	account->uncertain = (struct heap_uncertain){ 0 };
	account->gc_total = reading->gc.total;
	account->gc_state = state_name(reading->gc.state);
	account->threshold = reading->gc.threshold;
	account->estimate = reading->gc.estimate;
	account->pause = reading->gc.pause;
	account->stepmul = reading->gc.stepmul;
	return true;
}

int heap_read(struct heap_copy *copy, const struct vm_code *vm, uint64_t g,
	      const struct heap_read_options *options, struct heap_graph *ret_graph,
	      struct heap_account *account)
{
	struct heap_reading reading;
	int error;

	if (!begin(&reading, copy, vm, g, options, account))
		return -EIO;
	reading.builder = heap_builder_new();
	if (!reading.builder)
		return -ENOMEM;
	heap_list(&reading);
	account->sum = reading.sum;
	error = heap_add_references(&reading);
	if (!error)
		error = heap_builder_finish(reading.builder, ret_graph);
	heap_builder_free(reading.builder);
	return error;
}

int heap_measure(struct heap_copy *copy, const struct vm_code *vm, uint64_t g, struct heap_account *account)
{
	struct heap_reading reading;

	if (!begin(&reading, copy, vm, g, NULL, account))
		return -EIO;
	heap_list(&reading);
	account->sum = reading.sum;
	return 0;
}
