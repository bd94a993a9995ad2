/* SPDX-License-Identifier: MIT */
#include "unwind/listing/trace_listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/trace/trace_block.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/listing/ir_text.h"
#include "unwind/listing/machine_text.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum {
	CONSTANTS_MAX = 1024,
	PROTOS_MAX = 1024, /* whose strings are copied */
	CDATA_MAX = 64,    /* constants; the others show as addresses */
	UPVALUES_MAX = 60, /* of a function (LJ_MAX_UPVAL) */
	DEPTH_MAX = 64,    /* of calls, as indented */
};

struct trace_listing {
	struct memory *live;
	const struct global_state *global;
	uint32_t number;
	struct snapshot *snapshot;
	struct lua_objects *objects;
	struct traces *traces;
	const struct trace *trace;
	uint32_t sizetrace; /* numbers of traces are below */
	struct builtins builtins;
	/* For making lines: */
	struct listing_source source;
	struct trace_path path;
	struct trace_code code;
	bool has_path, has_code;
};

struct trace_listing *trace_listing_new(struct memory *live, const struct global_state *global,
					uint32_t number)
{
	struct trace_listing *listing = calloc(1, sizeof(*listing));

	if (!listing)
		return NULL;
	listing->live = live;
	listing->global = global;
	listing->number = number;
	listing->snapshot = snapshot_new(live);
	listing->objects = lua_objects_new();
	if (listing->snapshot && listing->objects) {
		builtins_collect(live, &global->vm->layout, global->g, &listing->builtins);
		return listing;
	}
	trace_listing_free(listing);
	return NULL;
}

void trace_listing_free(struct trace_listing *listing)
{
	if (!listing)
		return;
	builtins_clear(&listing->builtins);
	traces_free(listing->traces);
	lua_objects_free(listing->objects);
	snapshot_free(listing->snapshot);
	free(listing);
}

/*---- Copying ----*/

struct strings {
	uint64_t at[LISTING_STRINGS_MAX];
	size_t count;
	uint64_t protos[PROTOS_MAX]; /* whose strings are among them */
	size_t proto_count;
};

static void add_proto(struct strings *strings, const struct layout *layout, const struct proto *proto)
{
	if (!proto || strings->proto_count == PROTOS_MAX)
		return;
	for (size_t i = 0; i < strings->proto_count; i++)
		if (strings->protos[i] == proto->address)
			return;
	strings->protos[strings->proto_count++] = proto->address;
	strings->count += bytecode_text_constants(layout, proto, BYTECODE_STRINGS,
						  strings->at + strings->count,
						  LISTING_STRINGS_MAX - strings->count);
}

static void add_functions(struct trace_listing *listing, const struct layout *layout,
			  const uint64_t *functions, size_t count, struct strings *strings)
{
	for (size_t i = 0; i < count; i++) {
		const struct function_object *function = lua_objects_function(listing->objects, functions[i]);

		if (!function || !function->proto)
			continue;
		add_proto(strings, layout, function->proto);
		for (unsigned j = 0; j < UPVALUES_MAX; j++) {
			const struct function_object *upvalue = lua_objects_upvalue(listing->objects,
										    functions[i], j);

			if (upvalue)
				add_proto(strings, layout, upvalue->proto);
		}
	}
}

/* The functions in these prototypes, whose names a listing shows. */
static void capture_children(struct trace_listing *listing, const struct layout *layout,
			     const struct strings *strings)
{
	uint64_t children[CONSTANTS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < strings->proto_count; i++) {
		const struct proto *proto = lua_objects_proto(listing->objects, strings->protos[i]);

		if (proto)
			count += bytecode_text_constants(layout, proto, BYTECODE_PROTOS, children + count,
							 CONSTANTS_MAX - count);
	}
	lua_objects_capture_protos(listing->objects, listing->snapshot, layout, children, count);
}

/* The objects of this type among a trace's constants, at most max. */
static size_t ir_objects(const struct trace *trace, const struct layout *layout, unsigned type,
			 uint64_t *ret_objects, size_t max)
{
	size_t count = 0;

	for (uint32_t ref = trace_nk(trace, layout); ref < TRACE_REF_BIAS && count < max; ref++) {
		struct trace_instruction constant;

		if (trace_instruction(trace, layout, ref, &constant) && constant.op == IR_KGC &&
		    constant.type == type && trace_constant(trace, layout, ref, &ret_objects[count]))
			count++;
	}
	return count;
}

static void capture_constants(struct trace_listing *listing, const struct layout *layout,
			      struct strings *strings)
{
	uint64_t constants[CONSTANTS_MAX + 1];
	size_t count = trace_constants(listing->trace, layout, TRACE_FUNCTIONS, constants, CONSTANTS_MAX);

	lua_objects_capture(listing->objects, listing->snapshot, layout, constants, count);
	lua_objects_capture_upvalues(listing->objects, listing->snapshot, layout, constants, count);
	add_functions(listing, layout, constants, count, strings);
	count = trace_constants(listing->trace, layout, TRACE_PROTOS, constants, CONSTANTS_MAX);
	constants[count++] = listing->trace->startpt;
	lua_objects_capture_protos(listing->objects, listing->snapshot, layout, constants, count);
	for (size_t i = 0; i < count; i++)
		add_proto(strings, layout, lua_objects_proto(listing->objects, constants[i]));
	capture_children(listing, layout, strings);
	count = ir_objects(listing->trace, layout, IRT_CDATA, constants, CDATA_MAX);
	listing_capture_cdata(listing->snapshot, layout, constants, count);
	strings->count += ir_objects(listing->trace, layout, IRT_STR, strings->at + strings->count,
				     LISTING_STRINGS_MAX - strings->count);
	listing_capture_strings(listing->snapshot, layout, strings->at, strings->count);
}

void trace_listing_read(struct trace_listing *listing)
{
	const struct layout *layout = &listing->global->vm->layout;
	struct traces_wanted wanted = { .J = listing->global->g + (uint64_t)layout->GG_J,
					.executing = { listing->number } };
	struct memory *memory = snapshot_memory(listing->snapshot);
	struct strings *strings = calloc(1, sizeof(*strings));
	const struct trace *trace;

	listing->trace = NULL;
	snapshot_clear(listing->snapshot);
	lua_objects_begin(listing->objects, true);
	traces_free(listing->traces);
	listing->traces = traces_new();
	if (strings && listing->traces &&
	    memory_read(memory, wanted.J + (uint64_t)layout->J_trace, &wanted.J_trace,
			layout_ref_size(layout)) == MEMORY_OK &&
	    memory_u32(memory, wanted.J + (uint64_t)layout->J_sizetrace, &wanted.sizetrace)) {
		listing->sizetrace = wanted.sizetrace;
		traces_capture(listing->traces, listing->snapshot, layout, &wanted);
		trace = traces_by_number(listing->traces, listing->number);
		trace = trace ? traces_capture_pc(listing->traces, listing->snapshot, layout, trace->mcode)
			      : NULL;
		listing->trace = trace && trace->number == listing->number && trace->bytes ? trace : NULL;
	}
	if (listing->trace)
		capture_constants(listing, layout, strings);
	free(strings);
}

const struct trace *trace_listing_trace(const struct trace_listing *listing)
{
	return listing->trace;
}

/*---- Places ----*/

static void set_place(const struct trace_listing *listing, const struct proto *proto, uint64_t pc,
		      struct listing_line *line)
{
	if (line && proto)
		listing_place(proto, lua_line(listing->source.layout, proto, pc), line->place);
}

/* The place on the path that an IR instruction was recorded for; NULL if unknown. */
static const struct path_point *point_of(const struct trace_listing *listing, uint32_t ref)
{
	size_t index = ref - TRACE_REF_BASE;
	uint32_t point;

	if (!listing->has_path || ref < TRACE_REF_BASE || index >= listing->path.instruction_count)
		return NULL;
	point = listing->path.point_of[index];
	return point < listing->path.point_count ? &listing->path.points[point] : NULL;
}

static const struct proto *proto_at(const struct trace_listing *listing, const struct path_point *point)
{
	return point->frame >= 0 ? listing->path.frames.frame[point->frame].proto : NULL;
}

/* The machine code from one piece up to the next. */
static void count_piece(const struct trace_listing *listing, size_t piece,
			const struct listing_samples *samples, struct listing_line *line)
{
	const struct trace_code *code = &listing->code;
	uint64_t end = piece + 1 < code->count ? code->pieces[piece + 1].offset : listing->trace->szmcode;

	listing_count(line, samples, listing->trace->mcode + code->pieces[piece].offset,
		      listing->trace->mcode + end);
}

/*---- Bytecode ----*/

/*
 * The instruction at a point, as it was when the trace was recorded: without what that trace has
 * replaced, and traces with higher numbers, which came later.
 */
static bool original_instruction(const struct trace_listing *listing, const struct proto *proto, uint64_t pc,
				 uint32_t *ret_instruction)
{
	const struct layout *layout = listing->source.layout;
	const struct trace *trace;

	if (!proto_instruction(proto, pc, ret_instruction))
		return false;
	switch ((int)bytecode_op(layout, (uint8_t)*ret_instruction)) {
	case BC_JFORL:
	case BC_JITERL:
	case BC_JLOOP:
	case BC_JFUNCF:
		if (bytecode_d(*ret_instruction) < listing->trace->number)
			break;
		trace = traces_by_number(listing->traces, bytecode_d(*ret_instruction));
		if (trace)
			*ret_instruction = trace->startins;
		break;
	default: break;
	}
	return true;
}

static unsigned depth_of(const struct trace_listing *listing, const struct path_point *point)
{
	unsigned depth = 0;

	for (int32_t frame = point->frame; frame >= 0 && depth < DEPTH_MAX;
	     frame = listing->path.frames.frame[frame].up)
		depth++;
	return depth;
}

static int add_bytecode(struct trace_listing *listing, const struct path_point *point, uint64_t pc,
			struct listing *lines)
{
	const struct proto *proto = proto_at(listing, point);
	unsigned depth = depth_of(listing, point);
	char prefix[2 * DEPTH_MAX + 1] = "", place[LISTING_PLACE_SIZE];
	struct listing_text text;
	uint32_t instruction, number;
	struct listing_line *line;

	if (!proto || !original_instruction(listing, proto, pc, &instruction))
		return 0;
	number = (uint32_t)((pc - proto->bc) / BYTECODE_SIZE);
	for (unsigned i = 1; i < depth; i++)
		memcpy(prefix + 2 * (i - 1), " .", sizeof(" ."));
	if (!listing_text_begin(&text))
		return -ENOMEM;
	bytecode_text_line(&listing->source, proto, number, instruction, prefix, text.out);
	if (number == 0) {
		listing_place(proto, proto->firstline, place);
		fprintf(text.out, "         ; %s", place);
	}
	line = listing_add(lines, LISTING_BYTECODE, listing_text_end(&text));
	if (!line)
		return lines->cut ? 0 : -ENOMEM;
	line->address = pc;
	set_place(listing, proto, pc, line);
	return 0;
}

/* Is it a comparison, whose jump comes next? */
static bool is_condition(const struct trace_listing *listing, const struct path_point *point)
{
	const struct proto *proto = proto_at(listing, point);
	uint32_t instruction;

	return proto && proto_instruction(proto, point->pc, &instruction) &&
	       bytecode_op(listing->source.layout, (uint8_t)instruction) <= BC_ISF;
}

/* Samples of the code that was compiled from each point. */
static void count_points(const struct trace_listing *listing, const struct listing_samples *samples,
			 struct listing_line *of_points)
{
	for (size_t i = 0; listing->has_code && i < listing->code.count; i++) {
		const struct path_point *point = point_of(listing, listing->code.pieces[i].ref);

		if (point)
			count_piece(listing, i, samples, &of_points[point - listing->path.points]);
	}
}

/* Is what follows the point known? *segment is that of the point before it, and becomes that of this one. */
static bool is_found(const struct trace_listing *listing, size_t point, size_t *segment)
{
	const struct trace_path *path = &listing->path;

	while (*segment < path->segment_count && path->segments[*segment].last < point)
		++*segment;
	return *segment < path->segment_count && path->segments[*segment].found;
}

/* The first point that is of the copy of a loop, which LuaJIT makes without recording (lj_opt_loop.c). */
static size_t end_of_recording(const struct trace_listing *listing)
{
	const struct trace_path *path = &listing->path;
	struct trace_instruction ins;
	uint32_t loop = TRACE_REF_BASE;

	while (trace_instruction(listing->trace, listing->source.layout, loop, &ins) && ins.op != IR_LOOP)
		loop++;
	for (size_t i = 0; i < path->segment_count; i++)
		if (path->segments[i].ref >= loop)
			return path->segments[i].first;
	return path->point_count;
}

/* A snapshot's point ends one part of the path and begins the next. */
static bool is_again(const struct trace_listing *listing, size_t point)
{
	const struct path_point *points = listing->path.points;

	return point > 0 && points[point - 1].pc == points[point].pc &&
	       path_frames_are_same(&listing->path.frames, points[point - 1].frame, points[point].frame);
}

/* Add the samples of a point of the copy to the line of the same bytecode. */
static void count_copy(struct listing *lines, size_t first, uint64_t pc, const struct listing_line *point)
{
	for (size_t i = first; i < lines->count && point->samples; i++) {
		if (lines->lines[i].address != pc)
			continue;
		lines->lines[i].samples += point->samples;
		lines->lines[i].cpu_ns += point->cpu_ns;
		return;
	}
}

/* One point, with the jump behind a comparison, which jit.dump prints, too. */
static int add_point(struct trace_listing *listing, size_t index, const struct listing_line *counted,
		     struct listing *lines)
{
	const struct path_point *point = &listing->path.points[index];
	bool jump_follows = index + 1 < listing->path.point_count && point[1].pc == point->pc + BYTECODE_SIZE;
	size_t before = lines->count;
	int error = add_bytecode(listing, point, point->pc, lines);

	if (lines->count > before) {
		lines->lines[before].samples += counted->samples;
		lines->lines[before].cpu_ns += counted->cpu_ns;
	}
	if (!error && is_condition(listing, point) && !jump_follows)
		error = add_bytecode(listing, point, point->pc + BYTECODE_SIZE, lines);
	return error;
}

static int add_path(struct trace_listing *listing, const struct listing_line *of_points,
		    struct listing *lines)
{
	const size_t end = end_of_recording(listing), first = lines->count;
	size_t segment = 0;
	int error = 0;

	for (size_t i = 0; i < listing->path.point_count && !error && !lines->cut; i++) {
		if (i >= end || is_again(listing, i))
			count_copy(lines, first, listing->path.points[i].pc, &of_points[i]);
		else
			error = add_point(listing, i, &of_points[i], lines);
		if (!error && i < end && !is_found(listing, i, &segment))
			listing_add_format(lines, LISTING_NOTE,
					   "(the bytecode up to the next snapshot is not known)");
	}
	return error;
}

/* Does it go on after a call that another trace could not compile? */
static bool is_stitched(const struct trace_listing *listing)
{
	switch ((int)bytecode_op(listing->source.layout, (uint8_t)listing->trace->startins)) {
	case BC_CALL:
	case BC_CALLM:
	case BC_ITERC: return listing->trace->root == 0;
	default: return false;
	}
}

/* The trace that a stitched one goes on after; 0 if unknown. */
static uint32_t stitched_after(const struct trace_listing *listing)
{
	const struct layout *layout = listing->source.layout;

	for (uint32_t number = 1; number < listing->sizetrace; number++) {
		const struct trace *trace = traces_by_number(listing->traces, number);

		if (trace && number != listing->trace->number &&
		    trace_linktype(trace, layout) == TRACE_LINK_STITCH &&
		    trace_link(trace, layout) == listing->trace->number)
			return number;
	}
	return 0;
}

static void add_start(const struct trace_listing *listing, const char *place, struct listing *lines)
{
	uint32_t number = listing->trace->number, parent, exitno;

	if (trace_parent(listing->trace, listing->source.layout, &parent, &exitno)) {
		listing_add_format(lines, LISTING_HEAD,
				   "---- TRACE %" PRIu32 " start %" PRIu32 "/%" PRIu32 " %s", number, parent,
				   exitno, place);
	} else if (is_stitched(listing)) {
		parent = stitched_after(listing);
		if (parent)
			listing_add_format(lines, LISTING_HEAD,
					   "---- TRACE %" PRIu32 " start %" PRIu32 "/stitch %s", number,
					   parent, place);
		else
			listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " start ?/stitch %s",
					   number, place);
	} else {
		listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " start %s", number, place);
	}
}

static int list_bytecode(struct trace_listing *listing, const struct listing_samples *samples,
			 struct listing *lines)
{
	const struct trace *trace = listing->trace;
	const struct proto *start = lua_objects_proto(listing->objects, trace->startpt);
	char place[LISTING_PLACE_SIZE] = "?";
	struct listing_line *of_points;
	int error;

	if (start)
		listing_place(start, lua_line(listing->source.layout, start, trace->startpc), place);
	add_start(listing, place, lines);
	if (!listing->has_path) {
		listing_add_format(lines, LISTING_NOTE,
				   "(the bytecode that it was recorded from is not known)");
		return 0;
	}
	listing_add_format(
		lines, LISTING_NOTE,
		"(LuaJIT does not keep this: found again from IR and snapshots, the likeliest way)");
	of_points = calloc(listing->path.point_count + 1, sizeof(*of_points));
	if (!of_points)
		return -ENOMEM;
	count_points(listing, samples, of_points);
	error = add_path(listing, of_points, lines);
	free(of_points);
	return error;
}

/*---- IR ----*/

/* Samples of the code of each IR instruction, by reference less TRACE_REF_BASE. */
static void count_instructions(const struct trace_listing *listing, const struct listing_samples *samples,
			       uint32_t count, struct listing_line *of_refs)
{
	for (size_t i = 0; listing->has_code && i < listing->code.count; i++) {
		uint32_t index = listing->code.pieces[i].ref - TRACE_REF_BASE;

		if (index < count)
			count_piece(listing, i, samples, &of_refs[index]);
	}
}

static int add_instruction(struct trace_listing *listing, const struct ir_text *ir, uint32_t ref,
			   const struct listing_line *counted, struct listing *lines)
{
	const struct path_point *point = point_of(listing, ref);
	struct listing_text text;
	struct listing_line *line;
	char *written;
	bool is_shown;

	if (!listing_text_begin(&text))
		return -ENOMEM;
	is_shown = ir_text_instruction(ir, ref, text.out);
	written = listing_text_end(&text);
	if (!is_shown) {
		free(written);
		return 0;
	}
	line = listing_add(lines, LISTING_IR, written);
	if (!line)
		return lines->cut ? 0 : -ENOMEM;
	line->ref = ref - TRACE_REF_BIAS;
	if (point)
		set_place(listing, proto_at(listing, point), point->pc, line);
	line->samples = counted->samples;
	line->cpu_ns = counted->cpu_ns;
	return 0;
}

static int add_snapshot(const struct ir_text *ir, uint32_t number, struct listing *lines)
{
	struct listing_text text;

	if (!listing_text_begin(&text))
		return -ENOMEM;
	ir_text_snapshot(ir, number, text.out);
	return listing_add(lines, LISTING_SNAPSHOT, listing_text_end(&text)) || lines->cut ? 0 : -ENOMEM;
}

static int list_ir(struct trace_listing *listing, const struct listing_samples *samples,
		   struct listing *lines)
{
	const struct layout *layout = listing->source.layout;
	const struct ir_text ir = { &listing->source, listing->trace, machine_text_register };
	uint32_t nins = trace_nins(listing->trace, layout), next = 0;
	uint32_t count = nins > TRACE_REF_BASE ? nins - TRACE_REF_BASE : 0;
	struct listing_line *of_refs = calloc(count + 1, sizeof(*of_refs));
	struct trace_snapshot snapshot;
	int error = of_refs ? 0 : -ENOMEM;

	if (error)
		return error;
	count_instructions(listing, samples, count, of_refs);
	listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " IR", listing->trace->number);
	if (listing->source.numbering == NUMBERING_UNKNOWN)
		listing_add_format(
			lines, LISTING_NOTE,
			"(which names this build's numbers of fields and functions have is not known)");
	for (uint32_t index = 1; index < count && !error && !lines->cut; index++) {
		while (!error && !lines->cut && trace_snapshot(listing->trace, layout, next, &snapshot) &&
		       index + TRACE_REF_BASE >= snapshot.ref)
			error = add_snapshot(&ir, next++, lines);
		if (!error)
			error = add_instruction(listing, &ir, index + TRACE_REF_BASE, &of_refs[index], lines);
	}
	while (!error && !lines->cut && trace_snapshot(listing->trace, layout, next, &snapshot))
		error = add_snapshot(&ir, next++, lines);
	free(of_refs);
	return error;
}

/*---- Machine code ----*/

/* The piece of the aligned code that begins there; NULL if there is none. */
static const struct code_piece *piece_at(const struct trace_listing *listing, uint32_t offset, size_t *next)
{
	const struct trace_code *code = &listing->code;

	while (*next < code->count && code->pieces[*next].offset < offset)
		++*next;
	return *next < code->count && code->pieces[*next].offset == offset ? &code->pieces[*next] : NULL;
}

/* The name of what an instruction calls for this IR instruction; NULL if unknown. */
static const char *called_name(const struct trace_listing *listing, const struct code_piece *piece)
{
	struct trace_instruction ins;

	if (!piece || !trace_instruction(listing->trace, listing->source.layout, piece->ref, &ins))
		return NULL;
	switch ((int)ins.op) {
	case IR_CALLN:
	case IR_CALLA:
	case IR_CALLL:
	case IR_CALLS: return ir_call_name(listing->source.numbering, ins.op2);
	default: return NULL;
	}
}

/* "  ->7", "  ->LOOP", "  ->lj_tab_new1" */
static void write_target(const struct trace_listing *listing, const struct code_piece *piece, uint64_t target,
			 uint32_t loop, FILE *out)
{
	const struct trace *trace = listing->trace;
	int exit = traces_exit_number(listing->traces, trace, listing->source.layout, target);
	const char *name = called_name(listing, piece);

	if (loop && target == trace->mcode + loop)
		fputs("  ->LOOP", out);
	else if (target - trace->mcode < trace->szmcode)
		return;
	else if (exit >= 0)
		fprintf(out, "  ->%d", exit);
	else if (name)
		fprintf(out, "  ->%s", name);
}

static void set_code_place(struct trace_listing *listing, uint64_t address, struct listing_line *line)
{
	struct trace_frame frames[TRACE_FRAMES_MAX];
	size_t count = traces_frames(listing->traces, listing->trace, listing->source.layout,
				     listing->objects, address, frames);
	const struct proto *proto = count && frames[0].pc
					    ? lua_objects_proto_of_pc(listing->objects, frames[0].pc)
					    : NULL;

	set_place(listing, proto, count ? frames[0].pc : 0, line);
}

static int add_code(struct trace_listing *listing, const struct machine_instruction_text *instruction,
		    uint64_t address, const struct code_piece *piece, struct listing *lines)
{
	uint32_t loop = trace_loop_offset(listing->trace, listing->source.layout);
	struct listing_line *line;
	struct listing_text text;

	if (loop && address == listing->trace->mcode + loop)
		listing_add_format(lines, LISTING_NOTE, "->LOOP:");
	if (!listing_text_begin(&text))
		return -ENOMEM;
	fprintf(text.out, "%08" PRIx64 "  %s", address, instruction->text);
	if (instruction->has_target)
		write_target(listing, piece, instruction->target, loop, text.out);
	line = listing_add(lines, LISTING_CODE, listing_text_end(&text));
	if (!line)
		return lines->cut ? 0 : -ENOMEM;
	line->address = address;
	line->ref = piece && piece->ref > TRACE_REF_BIAS ? piece->ref - TRACE_REF_BIAS : 0;
	set_code_place(listing, address, line);
	return 0;
}

static int list_code(struct trace_listing *listing, const struct listing_samples *samples,
		     struct listing *lines)
{
	const struct trace *trace = listing->trace;
	const uint8_t *code = traces_code(listing->traces, trace);
	size_t next = 0;
	struct machine_decoder decoder;
	int error = 0;

	listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " mcode %" PRIu32, trace->number,
			   trace->szmcode);
	if (!code || !machine_decoder_open(&decoder)) {
		listing_add_format(lines, LISTING_NOTE, "(the machine code could not be read)");
		return 0;
	}
	for (uint32_t offset = 0; offset < trace->szmcode && !error && !lines->cut;) {
		uint64_t address = trace->mcode + offset;
		struct machine_instruction_text instruction;

		machine_text_next(&decoder, code + offset, trace->szmcode - offset, address, &instruction);
		error = add_code(listing, &instruction, address,
				 listing->has_code ? piece_at(listing, offset, &next) : NULL, lines);
		if (!error && !lines->cut)
			listing_count(&lines->lines[lines->count - 1], samples, address,
				      address + instruction.length);
		offset += (uint32_t)instruction.length;
	}
	machine_decoder_close(&decoder);
	return error;
}

/*---- The whole ----*/

static void list_end(const struct trace_listing *listing, struct listing *lines)
{
	static const char *const names[TRACE_LINK_COUNT] = {
		"none",           "root",        "loop",   "tail-recursion", "up-recursion",
		"down-recursion", "interpreter", "return", "stitch",
	};
	unsigned type = trace_linktype(listing->trace, listing->source.layout);
	const char *name = type < TRACE_LINK_COUNT ? names[type] : "?";
	uint32_t link = trace_link(listing->trace, listing->source.layout), number = listing->trace->number;

	if (link == number || link == 0)
		listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " stop -> %s", number, name);
	else if (type == TRACE_LINK_ROOT)
		listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " stop -> %" PRIu32, number,
				   link);
	else
		listing_add_format(lines, LISTING_HEAD, "---- TRACE %" PRIu32 " stop -> %" PRIu32 " %s",
				   number, link, name);
}

int trace_listing_make(struct trace_listing *listing, const struct listing_samples *samples,
		       struct listing *ret_listing)
{
	const struct layout *layout = &listing->global->vm->layout;
	struct listing_line all = { 0 };
	int error;

	*ret_listing = (struct listing){ 0 };
	if (!listing->trace)
		return 0;
	snapshot_seal(listing->snapshot);
	listing->source = (struct listing_source){
		.memory = snapshot_memory(listing->snapshot),
		.layout = layout,
		.objects = listing->objects,
		.builtins = &listing->builtins,
		.numbering = ir_numbering(layout, listing->builtins.version),
	};
	listing->has_path = traces_replay(listing->traces, listing->trace, layout, listing->objects,
					  &listing->path);
	listing->has_code = traces_align_code(listing->traces, listing->trace, layout, &listing->code);
	listing_count(&all, samples, listing->trace->mcode, listing->trace->mcode + listing->trace->szmcode);
	ret_listing->samples = all.samples;
	ret_listing->cpu_ns = all.cpu_ns;
	error = list_bytecode(listing, samples, ret_listing);
	if (!error)
		error = list_ir(listing, samples, ret_listing);
	if (!error)
		error = list_code(listing, samples, ret_listing);
	if (!error)
		list_end(listing, ret_listing);
	if (listing->has_path)
		trace_path_clear(&listing->path);
	if (listing->has_code)
		trace_code_clear(&listing->code);
	return !error && ret_listing->failed ? -ENOMEM : error;
}
