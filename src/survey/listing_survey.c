/* SPDX-License-Identifier: MIT */
#include "src/survey/listing_survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "src/survey/same_state.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/listing/proto_listing.h"
#include "unwind/listing/trace_listing.h"
#include "unwind/lua/object_walk.h"

enum {
	PROTOS_AT_ONCE = 128, /* read per slice */
	FOUND_MAX = 1024,     /* functions that match */
	SHOWN_MAX = 16,       /* of these */
	STRINGS_AT_ONCE = 4096,
};

struct survey {
	struct lua_process *process;
	struct hold *hold;
	struct code_samples *samples;
	struct listing_process *report;
	const struct global_state *global;
	size_t global_index;
	struct same_state same;
};

/* Call read() while the process is held. False if it cannot be, or the state is closed. */
static bool while_held(struct survey *survey, void (*read)(void *), void (*undo)(void *), void *context)
{
	if (survey->hold)
		return same_state_hold(&survey->same, read, undo, context) == SAME_STATE_READ;
	read(context);
	return true;
}

static struct listing_part *add_part(struct survey *survey)
{
	return listing_process_add(survey->report, survey->global->g,
				   lua_process_global_path(survey->process, survey->global_index));
}

/*---- A trace ----*/

static void read_trace(void *context)
{
	trace_listing_read(context);
}

static int make_trace(struct survey *survey, struct trace_listing *reading)
{
	const struct trace *trace = trace_listing_trace(reading);
	struct listing_samples samples;
	struct listing_part *part = add_part(survey);

	if (!part ||
	    (survey->samples && code_samples_of(survey->samples, survey->report->pid, trace, &samples)))
		return -ENOMEM;
	part->trace = trace->number;
	return trace_listing_make(reading, survey->samples ? &samples : NULL, &part->listing);
}

static int list_trace(struct survey *survey, uint32_t number)
{
	struct trace_listing *reading = trace_listing_new(lua_process_memory(survey->process), survey->global,
							  number);
	int error = reading ? 0 : -ENOMEM;

	if (error)
		return error;
	if (!while_held(survey, read_trace, NULL, reading))
		survey->report->complete = false;
	else if (trace_listing_trace(reading))
		error = make_trace(survey, reading);
	trace_listing_free(reading);
	return error;
}

/*---- Functions ----*/

/* A function that matches, as it was when it was found. */
struct found {
	uint64_t address;
	uint32_t firstline, numline, sizebc;
	enum proto_match match;
};

struct search {
	struct survey *survey;
	const struct layout *layout;
	struct proto_wanted wanted;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	struct object_walk *walk;
	enum object_walk_step step;
	struct listing_source source;
	struct builtins builtins;
	struct found found[FOUND_MAX];
	size_t count, count_before; /* of the current slice */
	bool is_full;
};

static void add_found(struct search *search, const struct proto *proto, enum proto_match match)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].address == proto->address)
			return;
	if (search->count == FOUND_MAX) {
		search->is_full = true;
		return;
	}
	search->found[search->count++] = (struct found){
		.address = proto->address,
		.firstline = proto->firstline,
		.numline = proto->numline,
		.sizebc = proto->sizebc,
		.match = match,
	};
}

static size_t next_protos(struct search *search, uint64_t ret_protos[static PROTOS_AT_ONCE])
{
	size_t count = 0;

	search->step = OBJECT_WALK_FOUND;
	object_walk_begin_slice(search->walk);
	while (count < PROTOS_AT_ONCE) {
		search->step = object_walk_next(search->walk, &ret_protos[count]);
		if (search->step != OBJECT_WALK_FOUND)
			break;
		if (++count == PROTOS_AT_ONCE / 2)
			object_walk_rest(search->walk);
	}
	return count;
}

/* Those of one slice that are called so by the function that they are in. */
static void find_named(struct search *search, const uint64_t *protos, size_t count)
{
	static const size_t max = STRINGS_AT_ONCE;
	uint64_t *strings = calloc(max, sizeof(*strings));
	uint64_t children[SHOWN_MAX];
	size_t string_count = 0;

	for (size_t i = 0; strings && i < count; i++) {
		const struct proto *proto = lua_objects_proto(search->objects, protos[i]);

		if (proto && bytecode_text_constants(search->layout, proto, BYTECODE_PROTOS, children, 1))
			string_count += bytecode_text_constants(search->layout, proto, BYTECODE_STRINGS,
								strings + string_count, max - string_count);
	}
	if (strings)
		listing_capture_strings(search->snapshot, search->layout, strings, string_count);
	search->is_full |= string_count == max;
	for (size_t i = 0; i < count; i++) {
		const struct proto *proto = lua_objects_proto(search->objects, protos[i]);
		size_t named = proto ? proto_children_named(&search->source, proto, search->wanted.name,
							    children, SHOWN_MAX)
				     : 0;

		lua_objects_capture_protos(search->objects, search->snapshot, search->layout, children,
					   named);
		for (size_t j = 0; j < named; j++) {
			const struct proto *child = lua_objects_proto(search->objects, children[j]);

			if (child)
				add_found(search, child, PROTO_BEGINS_AT_LINE);
		}
	}
	free(strings);
}

static void read_slice(void *context)
{
	struct search *search = context;
	uint64_t protos[PROTOS_AT_ONCE];
	size_t count;

	search->count = search->count_before;
	snapshot_clear(search->snapshot);
	lua_objects_begin(search->objects, true);
	count = next_protos(search, protos);
	lua_objects_capture_protos(search->objects, search->snapshot, search->layout, protos, count);
	if (search->wanted.name) {
		find_named(search, protos, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct proto *proto = lua_objects_proto(search->objects, protos[i]);
		enum proto_match match = proto ? proto_match_place(proto, &search->wanted)
					       : PROTO_IS_ELSEWHERE;

		if (match != PROTO_IS_ELSEWHERE)
			add_found(search, proto, match);
	}
}

static void undo_slice(void *context)
{
	struct search *search = context;

	object_walk_undo_slice(search->walk);
}

/* False if not all functions could be looked at. */
static bool find_all(struct search *search)
{
	do {
		if (!while_held(search->survey, read_slice, undo_slice, search))
			return false;
		search->count_before = search->count;
	} while (search->step != OBJECT_WALK_END && search->step != OBJECT_WALK_BROKEN);
	return search->step == OBJECT_WALK_END && !search->is_full;
}

/* Those defined at the line, or else the smallest that it lies in; then by line. */
static int compare_found(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->match != right->match)
		return left->match > right->match ? -1 : 1;
	if (left->numline != right->numline)
		return left->numline < right->numline ? -1 : 1;
	return (left->firstline > right->firstline) - (left->firstline < right->firstline);
}

static void choose(struct search *search)
{
	size_t kept = 0;

	if (search->count)
		qsort(search->found, search->count, sizeof(*search->found), compare_found);
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].match == search->found[0].match &&
		    (search->found[i].match == PROTO_BEGINS_AT_LINE ||
		     search->found[i].numline == search->found[0].numline))
			kept++;
	search->count = kept < SHOWN_MAX ? kept : SHOWN_MAX;
	search->survey->report->left_off += (uint32_t)(kept - search->count);
}

/*---- Their listings ----*/

static void read_found(void *context)
{
	struct search *search = context;
	uint64_t protos[SHOWN_MAX], *strings = calloc(LISTING_STRINGS_MAX, sizeof(*strings));
	uint64_t children[PROTOS_AT_ONCE];
	size_t count = 0;

	snapshot_clear(search->snapshot);
	lua_objects_begin(search->objects, true);
	for (size_t i = 0; i < search->count; i++)
		protos[i] = search->found[i].address;
	lua_objects_capture_protos(search->objects, search->snapshot, search->layout, protos, search->count);
	for (size_t i = 0; strings && i < search->count; i++) {
		const struct proto *proto = lua_objects_proto(search->objects, protos[i]);

		if (!proto)
			continue;
		count += bytecode_text_constants(search->layout, proto, BYTECODE_STRINGS, strings + count,
						 LISTING_STRINGS_MAX - count);
		lua_objects_capture_protos(search->objects, search->snapshot, search->layout, children,
					   bytecode_text_constants(search->layout, proto, BYTECODE_PROTOS,
								   children, PROTOS_AT_ONCE));
	}
	if (strings)
		listing_capture_strings(search->snapshot, search->layout, strings, count);
	free(strings);
}

static int list_found(struct search *search)
{
	struct survey *survey = search->survey;
	struct listing_samples samples;

	if (search->count == 0)
		return 0;
	if (!while_held(survey, read_found, NULL, search)) {
		survey->report->complete = false;
		return 0;
	}
	snapshot_seal(search->snapshot);
	if (survey->samples && code_samples_of(survey->samples, survey->report->pid, NULL, &samples))
		return -ENOMEM;
	for (size_t i = 0; i < search->count; i++) {
		const struct found *found = &search->found[i];
		const struct proto *proto = lua_objects_proto(search->objects, found->address);
		struct listing_part *part;

		/* Another one may be there by now. */
		if (!proto || proto->firstline != found->firstline || proto->numline != found->numline ||
		    proto->sizebc != found->sizebc) {
			survey->report->complete = false;
			continue;
		}
		part = add_part(survey);
		if (!part || proto_listing_add(&search->source, proto, survey->samples ? &samples : NULL,
					       &part->listing))
			return -ENOMEM;
	}
	return 0;
}

static int list_functions(struct survey *survey, const char *function)
{
	struct memory *live = lua_process_memory(survey->process);
	struct search *search = calloc(1, sizeof(*search));
	int error = -ENOMEM;

	if (!search)
		return error;
	search->survey = survey;
	search->layout = &survey->global->vm->layout;
	search->wanted = proto_wanted(function);
	search->objects = lua_objects_new();
	search->snapshot = snapshot_new(live);
	search->walk = object_walk_new(live, survey->global, GCT_PROTO);
	if (search->objects && search->snapshot && search->walk) {
		search->source = (struct listing_source){
			.memory = snapshot_memory(search->snapshot),
			.layout = search->layout,
			.objects = search->objects,
			.builtins = &search->builtins,
		};
		if (!find_all(search))
			survey->report->complete = false;
		choose(search);
		error = list_found(search);
	}
	object_walk_free(search->walk);
	snapshot_free(search->snapshot);
	lua_objects_free(search->objects);
	free(search);
	return error;
}

/*---- A process ----*/

int listing_survey(struct lua_process *process, struct hold *hold, const struct listing_wanted *wanted,
		   struct code_samples *samples, struct listing_process *report)
{
	struct survey survey = { .process = process, .hold = hold, .samples = samples, .report = report };
	int error = 0;

	for (size_t i = 0; !error && i < lua_process_global_count(process); i++) {
		survey.global = lua_process_global(process, i);
		survey.global_index = i;
		survey.same = (struct same_state){ .hold = hold,
						   .memory = lua_process_memory(process),
						   .global = survey.global };
		/* Until the layout of traces is confirmed, they cannot be read. */
		if (survey.global->vm->traces_open && !wanted->function)
			report->complete = false;
		else if (wanted->function)
			error = list_functions(&survey, wanted->function);
		else if (survey.global->vm->layout.has_jit)
			error = list_trace(&survey, wanted->trace);
	}
	return error;
}
