/* SPDX-License-Identifier: MIT */
#include "unwind/native/leaf_caller.h"

/* Every call pushes its return address. */
void leaf_callers_free(struct leaf_callers *callers)
{
	(void)callers;
}

bool leaf_caller_find(struct leaf_callers **callers, struct image *image, struct cfi *cfi,
		      struct symbols *symbols, struct memory *stack, const struct registers *leaf,
		      struct registers *ret_caller)
{
	(void)callers;
	(void)image;
	(void)cfi;
	(void)symbols;
	(void)stack;
	(void)leaf;
	(void)ret_caller;
	return false;
}
