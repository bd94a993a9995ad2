/* SPDX-License-Identifier: MIT */
/* A growing array of frames. */
#include "unwind/stack/merged_stack.h"

#include <stdlib.h>

#include "memory/array.h"

void merged_stack_begin(struct merged_stack *stack, enum vm_state vm_state)
{
	stack->count = 0;
	stack->vm_state = vm_state;
	stack->native_end = 0;
	stack->passes_copy = false;
	stack->out_of_memory = false;
}

void merged_stack_clear(struct merged_stack *stack)
{
	free(stack->frames);
	*stack = (struct merged_stack){ 0 };
}

struct merged_frame *merged_stack_add(struct merged_stack *stack, enum merged_kind kind)
{
	struct merged_frame *frame,
		*frames = array_grow(stack->frames, &stack->size, stack->count + 1, sizeof(*frames));

	if (!frames) {
		stack->out_of_memory = true;
		return NULL;
	}
	stack->frames = frames;
	frame = &stack->frames[stack->count++];
	*frame = (struct merged_frame){ .kind = kind };
	return frame;
}

void merged_stack_add_lost(struct merged_stack *stack, enum lost_reason reason)
{
	struct merged_frame *frame = merged_stack_add(stack, MERGED_LOST);

	if (frame)
		frame->lost = reason;
}

bool merged_stack_is_full(const struct merged_stack *stack)
{
	return stack->out_of_memory || stack->count >= MERGE_FRAMES_MAX;
}
