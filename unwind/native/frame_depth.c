/* SPDX-License-Identifier: MIT */
#include "unwind/native/frame_depth.h"

#include <stdlib.h>
#include <string.h>

#include "memory/scatter.h"
#include "unwind/native/code_path.h"

enum {
	INSTRUCTIONS_MAX = 16384, /* followed for one frame */
	PLACES_SIZE = 2 * INSTRUCTIONS_MAX,
	WAYS_MAX = 512, /* pending branches */
};

/* An instruction, and what holds before it on all paths so far. */
struct place {
	uint64_t pc;
	struct path_value sp, pointer;
};

struct frame_depths {
	struct image *image;
	struct vm_decoder *decoder;
	struct code_path ways[WAYS_MAX];
	size_t way_count;
	struct place places[PLACES_SIZE]; /* by a hash of the address; 0: none */
	unsigned int left;                /* instructions that may still be followed */
	/* What is asked for. */
	uint64_t begin, end, pc;
	int number;
	const struct place *found;
	bool is_doubtful; /* not all paths were followed, or pc lies in two instructions */
};

struct frame_depths *frame_depths_new(struct image *image)
{
	struct frame_depths *depths = calloc(1, sizeof(*depths));

	if (!depths)
		return NULL;
	depths->image = image;
	depths->decoder = vm_decoder_new();
	if (!depths->decoder) {
		free(depths);
		return NULL;
	}
	return depths;
}

void frame_depths_free(struct frame_depths *depths)
{
	if (!depths)
		return;
	vm_decoder_free(depths->decoder);
	free(depths);
}

/*---- Places ----*/

static struct place *find_place(struct frame_depths *depths, uint64_t pc)
{
	size_t at = (size_t)(scatter(pc) % PLACES_SIZE);

	while (depths->places[at].pc && depths->places[at].pc != pc)
		at = (at + 1) % PLACES_SIZE;
	return &depths->places[at];
}

/* Join a value that a path brings with that of other paths. True if this changes the latter. */
static bool join(struct path_value *value, const struct path_value *other)
{
	if (value->kind == PATH_UNKNOWN ||
	    (value->kind == other->kind && value->number == other->number && value->offset == other->offset))
		return false;
	value->kind = PATH_UNKNOWN;
	return true;
}

/* Note what holds where the path stands. NULL if that tells nothing new. */
static const struct place *arrive(struct frame_depths *depths, struct code_path *path)
{
	struct path_value *sp = &path->registers[REGISTER_NUMBER_SP];
	struct path_value *pointer = &path->registers[depths->number];
	struct place *place = find_place(depths, path->pc);
	bool changes;

	if (!place->pc) {
		*place = (struct place){ path->pc, *sp, *pointer };
		return place;
	}
	changes = join(&place->sp, sp);
	changes |= join(&place->pointer, pointer);
	*sp = place->sp;
	*pointer = place->pointer;
	return changes ? place : NULL;
}

static void look_for_pc(struct frame_depths *depths, const struct place *place, size_t size)
{
	if (depths->pc - place->pc >= size)
		return;
	depths->is_doubtful |= depths->found && depths->found != place;
	depths->found = place;
}

/*---- Paths ----*/

static const struct vm_instruction *decode(const struct frame_depths *depths, uint64_t pc)
{
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	uint64_t left = depths->end - pc;
	size_t length = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

	if (memory_read(image_text(depths->image), pc, bytes, length) != MEMORY_OK)
		return NULL;
	return vm_decoder_decode(depths->decoder, pc, bytes, length);
}

static void queue(struct frame_depths *depths, const struct code_path *path, uint64_t target)
{
	if (depths->way_count == WAYS_MAX) {
		depths->is_doubtful = true;
		return;
	}
	depths->ways[depths->way_count] = *path;
	depths->ways[depths->way_count++].pc = target;
}

/* Follow one path until it leaves the function, ends or tells nothing new. */
static void follow(struct frame_depths *depths, struct code_path *path)
{
	while (path->pc >= depths->begin && path->pc < depths->end) {
		const struct place *place = arrive(depths, path);
		const struct vm_instruction *instruction;
		struct path_value pc;
		uint64_t target;

		if (!place)
			return;
		if (depths->left-- == 0) {
			depths->is_doubtful = true;
			return;
		}
		instruction = decode(depths, path->pc);
		if (!instruction)
			return;
		look_for_pc(depths, place, vm_instruction_size(instruction));
		switch (code_path_step(path, instruction, &target, &pc)) {
		case PATH_ON: break;
		case PATH_BRANCHES: queue(depths, path, target); break;
		case PATH_RETURNS:
		case PATH_ENDS: return;
		}
	}
}

/* A value as an offset from the stack pointer at the beginning. */
static bool take_offset(const struct path_value *value, int64_t *ret_offset)
{
	*ret_offset = value->offset;
	return value->kind == PATH_SUM && value->number == REGISTER_NUMBER_SP;
}

bool frame_depth_find(struct frame_depths *depths, uint64_t begin, uint64_t end, uint64_t pc, int number,
		      struct frame_depth *ret_depth)
{
	struct code_path path;

	memset(depths->places, 0, sizeof(depths->places));
	depths->begin = begin;
	depths->end = end;
	depths->pc = pc;
	depths->number = number;
	depths->found = NULL;
	depths->is_doubtful = false;
	depths->left = INSTRUCTIONS_MAX;
	code_path_begin(&depths->ways[0], begin);
	depths->way_count = 1;
	while (depths->way_count && !depths->is_doubtful) {
		path = depths->ways[--depths->way_count];
		follow(depths, &path);
	}
	return !depths->is_doubtful && depths->found && take_offset(&depths->found->sp, &ret_depth->sp) &&
	       take_offset(&depths->found->pointer, &ret_depth->pointer);
}
