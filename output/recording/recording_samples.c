/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_reader_parts.h"

#include <errno.h>

#include "memory/array.h"

/* A buffer for the frames of a stack that the cache does not keep. NULL when memory is short. */
static struct frame *make_room(struct recording_reader *reader, size_t depth)
{
	struct frame *frames = array_grow(reader->frames, &reader->frames_size, depth, sizeof(*frames));

	if (frames)
		reader->frames = frames;
	return frames;
}

static void write_frames(const struct tables *tables, uint32_t id, struct frame *frames)
{
	while (id) {
		const struct stack *stack = &tables->stacks[id - 1];

		*frames++ = (struct frame){
			.function = tables->functions[stack->function - 1],
			.line = stack->line,
			.certainty = (enum frame_certainty)(stack->certainty & CERTAINTY_MASK),
			.compiled = (stack->certainty & CERTAINTY_COMPILED) != 0,
		};
		id = stack->caller;
	}
}

/* Expand each stack once while the cache holds it, because stacks repeat often. */
static int expand_stack(struct recording_reader *reader, uint32_t id, struct sample *sample)
{
	const struct stack *stack;
	struct cached_stack *cached;
	size_t place;

	if (id == 0)
		return READ_SAMPLE;
	stack = &reader->tables.stacks[id - 1];
	sample->stack = reader->forgotten + id;
	sample->frame_count = stack->depth;
	place = stack_cache_place(&reader->expanded, sample->stack);
	cached = &reader->expanded.places[place];
	if (cached->number == sample->stack) {
		sample->frames = cached->frames;
		return READ_SAMPLE;
	}
	if (stack_cache_take(&reader->expanded, place, sample->stack, stack->depth)) {
		write_frames(&reader->tables, id, cached->frames);
		sample->frames = cached->frames;
		return READ_SAMPLE;
	}
	sample->frames = make_room(reader, stack->depth);
	if (!sample->frames)
		return -ENOMEM;
	write_frames(&reader->tables, id, reader->frames);
	return READ_SAMPLE;
}

/* During opening, count the frames of a stack without expanding it. */
static int count_stack(struct recording_reader *reader, uint32_t id, uint64_t cpu_ns)
{
	static const struct figures_stack empty;

	figures_add_stack(&reader->figures, id ? &reader->tables.stacks[id - 1].figures : &empty, cpu_ns);
	return READ_SAMPLE;
}

/* Read what a thread that does not run waits for. False if it is no function. */
static bool take_wait(struct recording_reader *reader, uint8_t state, const struct function **ret_wait)
{
	uint32_t wait;

	if (reader->version < RECORDING_VERSION_WAITS || (state & STATE_THREAD_MASK) == THREAD_RUNNING)
		return true;
	if (!record_take_number(reader->block, reader->tables.function_count, &wait))
		return false;
	*ret_wait = wait ? reader->tables.functions[wait - 1] : NULL;
	return true;
}

/* The bits that the byte of the collector can have in that version. */
static uint8_t gc_bits(uint32_t version)
{
	if (version < RECORDING_VERSION_ALLOC)
		return 2 * GC_HAS_HEAP - 1;
	return version < RECORDING_VERSION_STEPS ? 2 * GC_HAS_ALLOCATION - 1 : 2 * GC_HAS_STEP - 1;
}

/* Read what the collector does, after the state; and whether an allocation follows the times. */
static bool take_gc(struct recording_reader *reader, struct thread *thread, struct sample *sample,
		    bool *ret_is_allocation)
{
	uint64_t change;
	uint8_t gc;

	if (reader->version < RECORDING_VERSION_GC) {
		sample->gc.phase = sample->vm_state == VM_STATE_GC ? GC_PHASE_UNKNOWN : GC_PHASE_NONE;
		*ret_is_allocation = false;
		return true;
	}
	if (!record_take_byte(reader->block, &gc) || (gc & GC_PHASE_MASK) >= GC_PHASE_COUNT ||
	    (gc & ~gc_bits(reader->version)))
		return false;
	*ret_is_allocation = gc & GC_HAS_ALLOCATION;
	sample->gc.phase = (enum gc_phase)(gc & GC_PHASE_MASK);
	sample->gc.has_marked = gc & GC_HAS_MARKED;
	if (gc & GC_HAS_HEAP) {
		if (!record_take_sint(reader->block, &change))
			return false;
		sample->gc.heap_bytes = thread->heap_bytes += change;
	}
	return !(gc & GC_HAS_STEP) || (record_take_uint(reader->block, &sample->gc.allocated_bytes) &&
				       record_take_uint(reader->block, &sample->gc.used_ns) &&
				       record_take_uint(reader->block, &sample->gc.step_ns));
}

int recording_read_request(struct recording_reader *reader)
{
	struct sample_request request = { 0 };
	uint32_t is_subrequest;
	int result = recording_take_name(reader, &request.route);

	if (result == READ_ON)
		result = recording_take_name(reader, &request.method);
	if (result == READ_ON)
		result = recording_take_name(reader, &request.host);
	if (result != READ_ON)
		return result;
	if (!request.route || !record_take_number(reader->block, UINT32_MAX, &request.status) ||
	    !record_take_number(reader->block, 1, &is_subrequest) ||
	    !record_take_uint(reader->block, &request.connection) ||
	    !record_take_uint(reader->block, &request.number) ||
	    !record_take_uint(reader->block, &request.age_ns))
		return READ_DAMAGED;
	request.is_subrequest = is_subrequest;
	reader->request = request;
	return READ_ON;
}

int recording_read_sample(struct recording_reader *reader, struct sample *ret_sample)
{
	struct tables *tables = &reader->tables;
	struct sample sample = { 0 };
	uint64_t after, expected;
	uint32_t thread_id, leaf;
	struct thread *thread;
	bool is_allocation;
	uint8_t state;
	int result;

	if (!record_take_uint(reader->block, &after) || after > UINT64_MAX - reader->last_ns ||
	    !record_take_number(reader->block, tables->thread_count, &thread_id) || thread_id == 0 ||
	    !record_take_number(reader->block, tables->stack_count, &leaf) ||
	    !record_take_byte(reader->block, &state) || (state & STATE_THREAD_MASK) >= THREAD_STATE_COUNT ||
	    state >> STATE_THREAD_BITS >= VM_STATE_COUNT)
		return READ_DAMAGED;
	thread = &tables->threads[thread_id - 1];
	sample.thread_state = (enum thread_state)(state & STATE_THREAD_MASK);
	sample.vm_state = (enum vm_state)(state >> STATE_THREAD_BITS);
	if (!take_gc(reader, thread, &sample, &is_allocation))
		return READ_DAMAGED;
	result = recording_take_name(reader, &sample.phase);
	if (result != READ_ON)
		return result;
	if (!take_wait(reader, state, &sample.wait) || !record_take_uint(reader->block, &sample.cpu_ns) ||
	    !record_take_sint(reader->block, &sample.wall_ns))
		return READ_DAMAGED;
	if (is_allocation && (!record_take_uint(reader->block, &sample.alloc_bytes) ||
			      !record_take_uint(reader->block, &sample.alloc_objects)))
		return READ_DAMAGED;
	sample.time_ns = reader->last_ns + after;
	expected = thread->last_ns ? sample.time_ns - thread->last_ns : 0;
	sample.wall_ns += expected;
	sample.pid = thread->pid;
	sample.tid = thread->tid;
	sample.process_name = thread->process_name;
	sample.thread_name = thread->thread_name;
	result = reader->opening ? count_stack(reader, leaf, sample.cpu_ns)
				 : expand_stack(reader, leaf, &sample);
	if (result != READ_SAMPLE)
		return result;
	thread->last_ns = reader->last_ns = sample.time_ns;
	sample.request = reader->request;
	reader->request = (struct sample_request){ 0 };
	*ret_sample = sample;
	return READ_SAMPLE;
}
