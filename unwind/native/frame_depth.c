/* SPDX-License-Identifier: MIT */
#include "unwind/native/frame_depth.h"

#include <stdlib.h>

#include "memory/scatter.h"
#include "unwind/native/code_path_parts.h"

enum {
	INSTRUCTIONS_MAX = 16384, /* looked at for one frame */
	PLACES_SIZE = 2 * INSTRUCTIONS_MAX,
	WAYS_MAX = 512, /* pending branches */
	PARTS_MAX = 8,  /* of one function */
	WORD = 8,
};

/* An instruction, and what holds before it on all paths so far. */
struct place {
	uint64_t pc;
	struct path_value sp, pointer;
	size_t size;  /* 0: no instruction */
	bool is_owed; /* a path has not yet popped the arguments of the call that it has passed */
};

struct part {
	uint64_t begin, end;
};

struct walk {
	struct image *image;
	struct vm_decoder *decoder;
	const struct frame_question *question;
	unsigned int left;
	enum { WALK_ON, WALK_DOUBTFUL, WALK_UNDECIDED } state;
	struct part parts[PARTS_MAX]; /* the first is the function that is asked for */
	size_t part_count;
	const struct place *found;
	bool is_guess; /* the paths begin at what none has reached from the beginning */
	/* Both registers at the first call or jump with a frame. */
	bool has_frame;
	struct frame_depth frame;
	bool has_room; /* the prologue has made room below the saved registers */
	/*
	 * Of the current path: the stack pointer before arguments were pushed, and whether their call was
	 * passed.
	 */
	bool is_pushed, is_called;
	int64_t before_push;
	struct code_path ways[WAYS_MAX];
	size_t way_count;
	struct place places[PLACES_SIZE]; /* by a hash of the address; 0: none */
};

static void doubt(struct walk *walk)
{
	if (walk->state == WALK_ON)
		walk->state = WALK_DOUBTFUL;
}

/* A value as an offset from the stack pointer at the beginning. */
static bool take_offset(const struct path_value *value, int64_t *ret_offset)
{
	*ret_offset = value->offset;
	return value->kind == PATH_SUM && value->number == REGISTER_NUMBER_SP;
}

static bool is_on_stack(const struct path_value *value)
{
	int64_t offset;

	return take_offset(value, &offset);
}

static bool is_same(const struct path_value *a, const struct path_value *b)
{
	return a->kind == b->kind && a->number == b->number && a->offset == b->offset;
}

/*---- Places ----*/

static struct place *find_place(struct walk *walk, uint64_t pc)
{
	size_t at = (size_t)(scatter(pc) % PLACES_SIZE);

	while (walk->places[at].pc && walk->places[at].pc != pc)
		at = (at + 1) % PLACES_SIZE;
	return &walk->places[at];
}

/* Join a value that a path brings with that of other paths. True if this changes the latter. */
static bool join(struct path_value *value, const struct path_value *other)
{
	if (value->kind == PATH_UNKNOWN || is_same(value, other))
		return false;
	value->kind = PATH_UNKNOWN;
	return true;
}

static bool is_owed(const struct walk *walk)
{
	return walk->is_pushed && walk->is_called;
}

/* Note what holds where the path stands. NULL if that tells nothing new. */
static struct place *arrive(struct walk *walk, struct code_path *path)
{
	struct path_value *sp = &path->registers[REGISTER_NUMBER_SP];
	struct path_value *pointer = &path->registers[walk->question->number];
	struct place *place = find_place(walk, path->pc);
	bool changes;

	if (!place->pc) {
		*place = (struct place){ .pc = path->pc, .sp = *sp, .pointer = *pointer };
		place->is_owed = is_owed(walk);
		return place;
	}
	/* With a frame, there is no such thing as two depths. */
	if (is_on_stack(&place->pointer) && is_on_stack(pointer) &&
	    (!is_same(&place->pointer, pointer) || !is_same(&place->sp, sp)))
		doubt(walk);
	if (walk->is_guess)
		return NULL;
	place->is_owed |= is_owed(walk);
	changes = join(&place->sp, sp);
	changes |= join(&place->pointer, pointer);
	*sp = place->sp;
	*pointer = place->pointer;
	return changes ? place : NULL;
}

static void look_for_pc(struct walk *walk, const struct place *place)
{
	if (walk->is_guess || walk->question->pc - place->pc >= place->size)
		return;
	if (walk->found && walk->found != place)
		doubt(walk);
	walk->found = place;
}

/*---- Instructions ----*/

static const struct part *part_of(const struct walk *walk, uint64_t pc)
{
	for (size_t i = 0; i < walk->part_count; i++)
		if (pc >= walk->parts[i].begin && pc < walk->parts[i].end)
			return &walk->parts[i];
	return NULL;
}

static const struct vm_instruction *decode(struct walk *walk, const struct part *part, uint64_t pc)
{
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	uint64_t left = part->end - pc;
	size_t length = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

	if (memory_read(image_text(walk->image), pc, bytes, length) == MEMORY_OK)
		return vm_decoder_decode(walk->decoder, pc, bytes, length);
	walk->state = WALK_UNDECIDED;
	return NULL;
}

/*
 * A call, or a jump that does not stay below pushed arguments. Where the frame stands, the stack pointer is
 * at one place, or further down by the arguments of this call.
 */
static void check_depth(struct walk *walk, const struct place *place, bool is_call)
{
	struct frame_depth depth;

	if (place->pointer.kind == PATH_UNKNOWN)
		doubt(walk);
	if (!take_offset(&place->pointer, &depth.pointer))
		return;
	if (!take_offset(&place->sp, &depth.sp) || (walk->is_pushed && (!is_call || walk->is_called)) ||
	    (walk->has_frame && depth.pointer != walk->frame.pointer))
		doubt(walk);
	if (walk->is_pushed) {
		walk->is_called = true;
		return;
	}
	if (walk->has_frame && depth.sp != walk->frame.sp)
		doubt(walk);
	walk->has_frame = true;
	walk->frame = depth;
}

/*
 * Has a move down to the path's stack pointer saved a register, as prologues do? It is as it was at the
 * beginning.
 */
static bool has_saved(const struct code_path *path)
{
	struct path_value word = code_path_load(path, path->registers[REGISTER_NUMBER_SP]);

	return word.kind == PATH_SUM && word.offset == 0;
}

/*
 * The stack pointer has moved down while the frame stands. Is this for the arguments of a call? A prologue
 * saves registers, and then makes room once.
 */
static bool is_for_arguments(struct walk *walk, const struct code_path *path, int64_t before)
{
	bool had_room = walk->has_room;

	if (walk->has_frame)
		return before == walk->frame.sp;
	if (!had_room && has_saved(path))
		return false;
	walk->has_room = true;
	return had_room;
}

/* Note room for arguments that is made while the frame stands, or given up. */
static void check_move(struct walk *walk, const struct place *place, const struct code_path *path)
{
	int64_t before, now;

	if (!take_offset(&place->sp, &before))
		return;
	if (!take_offset(&path->registers[REGISTER_NUMBER_SP], &now)) {
		doubt(walk); /* alloca() */
		return;
	}
	if (walk->is_pushed && now >= walk->before_push)
		walk->is_pushed = walk->is_called = false;
	if (!walk->is_pushed && now < before && is_on_stack(&place->pointer) &&
	    is_for_arguments(walk, path, before)) {
		walk->is_pushed = true;
		walk->before_push = before;
	}
}

/*
 * Places join only the two registers. So forget addresses on the stack that are elsewhere: another path,
 * which ended where this one went on, may have brought another there.
 */
static void forget_addresses(const struct walk *walk, struct code_path *path)
{
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (number != REGISTER_NUMBER_SP && number != walk->question->number &&
		    is_on_stack(&path->registers[number]))
			path->registers[number].kind = PATH_UNKNOWN;
	for (size_t i = 0; i < path->saved_count; i++)
		if (is_on_stack(&path->saved[i].value))
			path->saved[i].value.kind = PATH_UNKNOWN;
}

/*---- Paths ----*/

static void queue(struct walk *walk, const struct code_path *path, uint64_t target)
{
	if (walk->way_count == WAYS_MAX) {
		doubt(walk);
		return;
	}
	walk->ways[walk->way_count] = *path;
	walk->ways[walk->way_count++].pc = target;
}

/*
 * A jump with its frame into another entry of the unwind table leads into a part of the function, as f.cold.
 */
static void add_part_of(struct walk *walk, const struct code_path *path, uint64_t target)
{
	struct part part;

	if (part_of(walk, target) || !is_on_stack(&path->registers[walk->question->number]))
		return;
	if (walk->part_count == PARTS_MAX || !image_function(walk->image, target, &part.begin, &part.end))
		doubt(walk);
	else
		walk->parts[walk->part_count++] = part;
}

/* Run an instruction. False where the path ends. */
static bool step(struct walk *walk, struct code_path *path, const struct place *place,
		 const struct vm_instruction *instruction)
{
	const uint64_t next = place->pc + place->size;
	struct path_value pc;
	uint64_t target;
	enum path_step step;

	if (vm_instruction_is_call(instruction) || vm_instruction_is_indirect_jump(instruction))
		check_depth(walk, place, vm_instruction_is_call(instruction));
	step = code_path_step(path, instruction, &target, &pc);
	forget_addresses(walk, path);
	switch (step) {
	case PATH_ON:
		check_move(walk, place, path);
		if (path->pc != next) {
			check_depth(walk, place, false);
			add_part_of(walk, path, path->pc);
		}
		return true;
	case PATH_BRANCHES:
		check_depth(walk, place, false);
		add_part_of(walk, path, target);
		queue(walk, path, target);
		return true;
	case PATH_RETURNS:
	case PATH_ENDS: break;
	}
	return false;
}

/* Follow one path until it leaves the function, ends or tells nothing new. */
static void follow(struct walk *walk, struct code_path *path)
{
	const struct part *part = part_of(walk, path->pc);

	walk->is_pushed = walk->is_called = false;
	/* Behind a part's end is another function, and the path came from a call that never returns. */
	while (part && walk->state == WALK_ON) {
		struct place *place = arrive(walk, path);
		const struct vm_instruction *instruction;

		if (!place || walk->state != WALK_ON)
			return;
		if (walk->left-- == 0) {
			walk->state = WALK_UNDECIDED;
			return;
		}
		instruction = decode(walk, part, path->pc);
		if (!instruction)
			return;
		place->size = vm_instruction_size(instruction);
		look_for_pc(walk, place);
		if (!step(walk, path, place, instruction))
			return;
		if (path->pc != place->pc + place->size)
			part = part_of(walk, path->pc);
		else if (path->pc >= part->end)
			part = NULL;
	}
}

static void follow_all(struct walk *walk)
{
	struct code_path path;

	while (walk->way_count && walk->state == WALK_ON) {
		path = walk->ways[--walk->way_count];
		follow(walk, &path);
	}
}

/* Follow what no path has reached as if the frame stood there. */
static void follow_rest(struct walk *walk, const struct part *part)
{
	const struct place *place;
	struct code_path *path;

	for (uint64_t pc = part->begin; pc < part->end && walk->state == WALK_ON; pc += place->size) {
		place = find_place(walk, pc);
		if (!place->pc) {
			path = &walk->ways[walk->way_count++];
			code_path_begin(path, pc);
			for (int number = 0; number < REGISTER_NUMBERS; number++)
				path->registers[number].kind = PATH_UNKNOWN;
			path->registers[REGISTER_NUMBER_SP] = (struct path_value){ PATH_SUM,
										   REGISTER_NUMBER_SP,
										   walk->frame.sp };
			path->registers[walk->question->number] = (struct path_value){ PATH_SUM,
										       REGISTER_NUMBER_SP,
										       walk->frame.pointer };
			follow_all(walk);
		}
		if (place->size == 0)
			doubt(walk); /* data, or what the decoder does not know */
	}
}

static bool find(struct walk *walk, struct frame_depth *ret_depth)
{
	walk->parts[walk->part_count++] = (struct part){ walk->question->begin, walk->question->end };
	code_path_begin(&walk->ways[walk->way_count++], walk->question->begin);
	follow_all(walk);
	if (walk->state != WALK_ON || !walk->found || walk->found->is_owed ||
	    !take_offset(&walk->found->sp, &ret_depth->sp) ||
	    !take_offset(&walk->found->pointer, &ret_depth->pointer))
		return false;
	walk->is_guess = true;
	if (!walk->has_frame)
		walk->frame = *ret_depth;
	walk->has_frame = true;
	for (size_t i = 0; i < walk->part_count; i++)
		follow_rest(walk, &walk->parts[i]);
	return walk->state == WALK_ON && walk->frame.pointer == ret_depth->pointer;
}

enum frame_depth_status frame_depth_find(struct image *image, const struct frame_question *question,
					 unsigned int *left, struct frame_depth *ret_depth)
{
	const unsigned int given = *left < INSTRUCTIONS_MAX ? *left : INSTRUCTIONS_MAX;
	enum frame_depth_status status = FRAME_DEPTH_UNDECIDED;
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return status;
	walk->image = image;
	walk->question = question;
	walk->left = given;
	walk->decoder = vm_decoder_new();
	if (walk->decoder) {
		bool found = find(walk, ret_depth);
		unsigned int used = walk->left < given ? given - walk->left : given;

		*left -= used;
		if (found)
			status = FRAME_DEPTH_FOUND;
		else if (walk->state != WALK_UNDECIDED || (used == INSTRUCTIONS_MAX))
			status = FRAME_DEPTH_NONE;
		vm_decoder_free(walk->decoder);
	}
	free(walk);
	return status;
}
