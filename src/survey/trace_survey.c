/* SPDX-License-Identifier: MIT */
#include "src/survey/trace_survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/field.h"
#include "memory/hash.h"
#include "memory/snapshot.h"
#include "output/sample/functions.h"
#include "src/survey/same_state.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_aborts.h"
#include "unwind/compiled/trace_exits.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/object_walk.h"

enum {
	PROTOS_AT_ONCE = 256, /* read per slice */
	EXITS_AT_ONCE = 16,   /* traces whose exits are read per slice */
	READS_MAX = 5,        /* of what cannot be read while LuaJIT changes it */
	NAME_KEY_SIZE = 512,
};

/* Tells a trace from every other one ever seen. All bytes count. */
struct trace_key {
	uint64_t address, mcode, startpt, startpc;
	uint32_t pid, number, szmcode, root;
};

_Static_assert(sizeof(struct trace_key) == 4 * sizeof(uint64_t) + 4 * sizeof(uint32_t), "compared as bytes");

/* The key of a struct trace or a struct trace_summary. */
#define TRACE_KEY(of_pid, trace) \
	((struct trace_key){ .address = (trace)->address, \
			     .mcode = (trace)->mcode, \
			     .startpt = (trace)->startpt, \
			     .startpc = (trace)->startpc, \
			     .pid = (uint32_t)(of_pid), \
			     .number = (trace)->number, \
			     .szmcode = (trace)->szmcode, \
			     .root = (trace)->root })

struct seen_trace {
	struct trace_key key;
	uint64_t g; /* of its global_State; 0 if that is unknown */
	uint64_t samples, cpu_ns;
	bool is_there; /* it still exists at the end */
	UT_hash_handle hh;
};

/* The function that samples have seen at a place, with its name; it may have been any function there. */
struct seen_name {
	char key[NAME_KEY_SIZE]; /* line and file, see name_key() */
	const struct function *function;
	UT_hash_handle hh;
};

/* All bytes count. */
struct proto_key {
	uint64_t address, pid;
};

_Static_assert(sizeof(struct proto_key) == 2 * sizeof(uint64_t), "compared as bytes");

/* A prototype whose function was the innermost one of Lua in samples. */
struct seen_proto {
	struct proto_key key;
	const struct function *function; /* by the first name seen */
	uint64_t interpreted_ns;         /* when it did not run as compiled code */
	UT_hash_handle hh;
};

struct seen_process {
	int pid;
	uint64_t samples, cpu_ns;
	uint64_t state_ns[VM_STATE_COUNT];
	UT_hash_handle hh;
};

/* A function whose name is already noted. */
struct seen_function {
	const struct function *function;
	UT_hash_handle hh;
};

struct trace_survey {
	struct functions *functions;
	struct seen_trace *traces;
	struct seen_name *names;
	struct seen_function *noted;
	struct seen_process *processes;
	struct seen_proto *protos;
};

struct trace_survey *trace_survey_new(struct functions *functions)
{
	struct trace_survey *survey = calloc(1, sizeof(*survey));

	if (survey)
		survey->functions = functions;
	return survey;
}

void trace_survey_free(struct trace_survey *survey)
{
	if (!survey)
		return;
	HASH_FREE_ALL(survey->traces);
	HASH_FREE_ALL(survey->names);
	HASH_FREE_ALL(survey->noted);
	HASH_FREE_ALL(survey->processes);
	HASH_FREE_ALL(survey->protos);
	free(survey);
}

/*---- Samples ----*/

static int add_to_trace(struct trace_survey *survey, const struct sample *sample)
{
	struct trace_key key = TRACE_KEY(sample->pid, sample->trace);
	struct seen_trace *seen;

	HASH_FIND(hh, survey->traces, &key, sizeof(key), seen);
	if (!seen) {
		seen = calloc(1, sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		seen->key = key;
		HASH_ADD(hh, survey->traces, key, sizeof(seen->key), seen);
		if (!hash_added(&seen->hh)) {
			free(seen);
			return -ENOMEM;
		}
	}
	if (!seen->g)
		seen->g = sample->trace_g;
	seen->samples++;
	seen->cpu_ns += sample->cpu_ns;
	return 0;
}

static int add_to_process(struct trace_survey *survey, const struct sample *sample)
{
	int pid = (int)sample->pid;
	struct seen_process *seen;

	HASH_FIND_INT(survey->processes, &pid, seen);
	if (!seen) {
		seen = calloc(1, sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		seen->pid = pid;
		HASH_ADD_INT(survey->processes, pid, seen);
		if (!hash_added(&seen->hh)) {
			free(seen);
			return -ENOMEM;
		}
	}
	seen->samples++;
	seen->cpu_ns += sample->cpu_ns;
	seen->state_ns[sample->vm_state] += sample->cpu_ns;
	return 0;
}

/* The place of its definition, whatever name its callers use. */
static void name_key(const struct function *function, char ret_key[static NAME_KEY_SIZE])
{
	snprintf(ret_key, NAME_KEY_SIZE, "%u %s", (unsigned)function->firstline,
		 function->file ? function->file : "");
}

/* Keep the first name seen for a function. */
static int note_name(struct trace_survey *survey, const struct function *function)
{
	struct seen_function *noted;
	struct seen_name *name;

	HASH_FIND_PTR(survey->noted, &function, noted);
	if (noted || function->kind != FRAME_LUA || !function->name)
		return 0;
	noted = calloc(1, sizeof(*noted));
	name = calloc(1, sizeof(*name));
	if (!noted || !name)
		goto no_memory;
	noted->function = function;
	HASH_ADD_PTR(survey->noted, function, noted);
	if (!hash_added(&noted->hh))
		goto no_memory;
	name->function = function;
	name_key(function, name->key);
	noted = NULL;
	HASH_ADD_STR(survey->names, key, name);
	if (!hash_added(&name->hh))
		goto no_memory;
	return 0;
no_memory:
	free(noted);
	free(name);
	return -ENOMEM;
}

/* The innermost Lua function; NULL if there is none. */
static const struct frame *find_lua(const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function->kind == FRAME_LUA)
			return &sample->frames[i];
	return NULL;
}

static int add_to_proto(struct trace_survey *survey, const struct sample *sample)
{
	const struct proto_key key = { .address = sample->proto, .pid = (uint64_t)sample->pid };
	const struct frame *frame = find_lua(sample);
	struct seen_proto *seen;

	if (!frame || !key.address)
		return 0;
	HASH_FIND(hh, survey->protos, &key, sizeof(key), seen);
	if (!seen) {
		seen = calloc(1, sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		seen->key = key;
		seen->function = frame->function;
		HASH_ADD(hh, survey->protos, key, sizeof(seen->key), seen);
		if (!hash_added(&seen->hh)) {
			free(seen);
			return -ENOMEM;
		}
	}
	/* Another prototype may be at the same address by now. */
	if (!functions_share_definition(seen->function, frame->function)) {
		seen->function = frame->function;
		seen->interpreted_ns = 0;
	}
	if (!seen->function->name)
		seen->function = frame->function;
	seen->interpreted_ns += frame->compiled ? 0 : sample->cpu_ns;
	return 0;
}

int trace_survey_add(struct trace_survey *survey, const struct sample *sample)
{
	int error = add_to_process(survey, sample);

	if (!error)
		error = add_to_proto(survey, sample);
	if (!error && sample->trace)
		error = add_to_trace(survey, sample);
	for (size_t i = 0; !error && i < sample->frame_count; i++)
		error = note_name(survey, sample->frames[i].function);
	return error;
}

/*---- Traces that exist ----*/

struct reading {
	struct trace_survey *survey;
	struct memory *live;
	pid_t pid;
	const struct global_state *global;
	struct trace_vm *vm;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	struct object_walk *walk;
	enum object_walk_step step;
	struct same_state same;
	uint32_t first, next; /* trace numbers */
	bool could_read;
	struct trace_limits limits;
	struct trace_summary traces[TRACE_LIST_BATCH];
	size_t count;
	size_t exits_from; /* of these traces, to read the exits of */
	struct trace_exit exits[EXITS_AT_ONCE][TRACE_EXITS_MAX];
	size_t exit_counts[EXITS_AT_ONCE];
	struct trace_aborts aborts;
	uint64_t protos[PROTOS_AT_ONCE];
	enum not_compiled_glance glances[PROTOS_AT_ONCE];
	size_t proto_count;
};

/* What samples have seen of a prototype with this definition; NULL if they have not. */
static const struct seen_proto *find_seen_proto(const struct reading *reading, uint64_t address,
						const struct function *function)
{
	const struct proto_key key = { .address = address, .pid = (uint64_t)reading->pid };
	struct seen_proto *seen;

	HASH_FIND(hh, reading->survey->protos, &key, sizeof(key), seen);
	return seen && functions_share_definition(seen->function, function) ? seen : NULL;
}

/*
 * A function as samples have named it; else without a name, unless it is a main chunk or builtin. Several
 * functions may be on one line, and those of stripped bytecode have none: the name of one is not another's.
 */
static const struct function *function_of(const struct reading *reading, const struct proto *proto)
{
	char file[CHUNKNAME_MAX + 16], key[NAME_KEY_SIZE];
	struct function function = { .kind = FRAME_LUA, .file = file, .firstline = proto->firstline };
	const struct seen_proto *seen;
	struct seen_name *named = NULL;

	lua_chunk_file(proto->chunkname, file);
	seen = find_seen_proto(reading, proto->address, &function);
	if (seen && seen->function->name)
		return seen->function;
	name_key(&function, key);
	if (proto->numline > 0)
		HASH_FIND_STR(reading->survey->names, key, named);
	if (named)
		return named->function;
	if (lua_is_main_chunk(proto))
		function.name = MAIN_CHUNK;
	if (lua_is_builtin(proto))
		function = (struct function){ .kind = FRAME_BUILTIN, .name = proto->chunkname };
	return functions_intern(reading->survey->functions, &function);
}

static const struct seen_trace *find_seen(const struct reading *reading, const struct trace_summary *trace)
{
	struct trace_key key = TRACE_KEY(reading->pid, trace);
	struct seen_trace *seen;

	HASH_FIND(hh, reading->survey->traces, &key, sizeof(key), seen);
	if (seen)
		seen->is_there = true;
	return seen;
}

/* Read while the process is held. False if it cannot be held, or the state is closed. */
static bool read_held(struct reading *reading, void (*read)(void *context), void (*undo)(void *context))
{
	const enum same_state_read result = same_state_hold(&reading->same, read, undo, reading);

	if (result != SAME_STATE_NOT_HELD)
		reading->vm->closed = result == SAME_STATE_CLOSED;
	return result == SAME_STATE_READ;
}

static void read_traces(void *context)
{
	struct reading *reading = context;
	uint64_t protos[TRACE_LIST_BATCH];

	reading->limits = (struct trace_limits){ 0 };
	trace_list_limits(reading->live, reading->global, &reading->limits);
	reading->next = reading->first;
	reading->count = 0;
	snapshot_clear(reading->snapshot);
	lua_objects_begin(reading->objects, true);
	reading->could_read = trace_list_read(reading->live, reading->global, &reading->next, reading->traces,
					      &reading->count);
	for (size_t i = 0; i < reading->count; i++)
		protos[i] = reading->traces[i].startpt;
	lua_objects_capture_protos(reading->objects, reading->snapshot, &reading->global->vm->layout, protos,
				   reading->count);
}

static int add_traces(const struct reading *reading)
{
	for (size_t i = 0; i < reading->count; i++) {
		const struct trace_summary *trace = &reading->traces[i];
		const struct proto *proto = lua_objects_proto(reading->objects, trace->startpt);
		const struct seen_trace *seen = find_seen(reading, trace);
		struct trace_row row = { .trace = *trace };

		if (proto && proto_contains_pc(proto, trace->startpc)) {
			row.start = function_of(reading, proto);
			row.line = lua_line(&reading->global->vm->layout, proto, trace->startpc);
		}
		if (seen) {
			row.samples = seen->samples;
			row.cpu_ns = seen->cpu_ns;
		}
		if (trace_vm_add(reading->vm, &row))
			return -ENOMEM;
	}
	return 0;
}

/*---- Their exits ----*/

static void read_exits(void *context)
{
	struct reading *reading = context;
	const struct layout *layout = &reading->global->vm->layout;
	uint64_t protos[EXITS_AT_ONCE * TRACE_EXITS_MAX];
	size_t count = 0;

	snapshot_clear(reading->snapshot);
	lua_objects_begin(reading->objects, true);
	memset(reading->exit_counts, 0, sizeof(reading->exit_counts));
	for (size_t i = 0; i < EXITS_AT_ONCE && reading->exits_from + i < reading->count; i++) {
		if (!trace_exits_read(reading->live, layout, &reading->traces[reading->exits_from + i],
				      reading->exits[i], &reading->exit_counts[i]))
			continue;
		for (size_t j = 0; j < reading->exit_counts[i]; j++) {
			uint64_t proto = reading->exits[i][j].proto;

			if (proto && (count == 0 || protos[count - 1] != proto))
				protos[count++] = proto;
		}
	}
	lua_objects_capture_protos(reading->objects, reading->snapshot, layout, protos, count);
}

static int add_exit(const struct reading *reading, uint32_t trace, const struct trace_exit *exit)
{
	const struct proto *proto = exit->proto ? lua_objects_proto(reading->objects, exit->proto) : NULL;
	struct exit_row row = {
		.trace = trace,
		.number = exit->number,
		.taken = exit->taken,
		.has_side = exit->has_side,
	};

	if (proto && proto_contains_pc(proto, exit->pc)) {
		row.function = function_of(reading, proto);
		row.line = lua_line(&reading->global->vm->layout, proto, exit->pc);
	}
	return trace_vm_add_exit(reading->vm, &row);
}

/* Of the traces just read. 0 or -ENOMEM. */
static int list_exits(struct reading *reading)
{
	for (reading->exits_from = 0; reading->exits_from < reading->count;
	     reading->exits_from += EXITS_AT_ONCE) {
		if (!read_held(reading, read_exits, NULL)) {
			reading->vm->complete = false;
			return 0;
		}
		for (size_t i = 0; i < EXITS_AT_ONCE; i++)
			for (size_t j = 0; j < reading->exit_counts[i]; j++) {
				const struct trace_summary *trace = &reading->traces[reading->exits_from + i];

				if (add_exit(reading, trace->number, &reading->exits[i][j]))
					return -ENOMEM;
			}
	}
	return 0;
}

/* The process may be held amid a change of what read() reads, which is over when it has run on. */
static bool read_whole(struct reading *reading, void (*read)(void *context))
{
	for (unsigned i = 0; i < READS_MAX; i++) {
		if (!read_held(reading, read, NULL))
			return false;
		if (reading->could_read)
			return true;
	}
	return false;
}

static int list_traces(struct reading *reading)
{
	struct trace_vm *vm = reading->vm;
	int error = 0;

	vm->traces_left = true;
	do {
		if (!read_whole(reading, read_traces)) {
			vm->complete = false;
			break;
		}
		vm->limits = reading->limits;
		vm->traces_left = reading->next > 0;
		error = add_traces(reading);
		if (!error)
			error = list_exits(reading);
		reading->first = reading->next;
	} while (!error && vm->traces_left && !vm->closed);
	trace_vm_find_parents(vm);
	return error;
}

/*---- Code that LuaJIT does not compile ----*/

static void read_aborts(void *context)
{
	struct reading *reading = context;

	reading->could_read = trace_aborts_read(reading->live, reading->global, &reading->aborts);
}

static void read_protos(void *context)
{
	struct reading *reading = context;
	const struct layout *layout = &reading->global->vm->layout;
	uint64_t found[PROTOS_AT_ONCE];
	enum not_compiled_glance glances[PROTOS_AT_ONCE];
	size_t count = 0;

	reading->step = OBJECT_WALK_FOUND;
	reading->proto_count = 0;
	snapshot_clear(reading->snapshot);
	lua_objects_begin(reading->objects, true);
	object_walk_begin_slice(reading->walk);
	while (reading->step == OBJECT_WALK_FOUND) {
		reading->step = object_walk_next(reading->walk, &found[count]);
		if (reading->step != OBJECT_WALK_FOUND)
			break;
		if (++count == PROTOS_AT_ONCE / 2)
			object_walk_rest(reading->walk);
		if (count == PROTOS_AT_ONCE)
			break;
	}
	not_compiled_glance(reading->live, layout, &reading->aborts, found, count, glances);
	for (size_t i = 0; i < count; i++) {
		if (glances[i] == NOT_COMPILED_NOWHERE)
			continue;
		reading->protos[reading->proto_count] = found[i];
		reading->glances[reading->proto_count++] = glances[i];
	}
	lua_objects_capture_protos(reading->objects, reading->snapshot, layout, reading->protos,
				   reading->proto_count);
}

static void undo_protos(void *context)
{
	struct reading *reading = context;

	object_walk_undo_slice(reading->walk);
}

static int add_interpreted(const struct reading *reading, const struct proto *proto,
			   enum not_compiled_glance glance)
{
	const struct layout *layout = &reading->global->vm->layout;
	struct not_compiled places[NOT_COMPILED_MAX];
	size_t count = not_compiled_find(layout, proto, &reading->aborts, glance, places);
	const struct seen_proto *seen;

	for (size_t i = 0; i < count; i++) {
		struct interpreted_row row = {
			.function = function_of(reading, proto),
			.line = lua_line(layout, proto, places[i].pc),
			.is_loop = places[i].is_loop,
			.cause = places[i].cause,
			.reason = places[i].reason,
			.times = places[i].times,
			.proto = proto->address,
		};

		if (!row.function)
			return -ENOMEM;
		seen = find_seen_proto(reading, proto->address, row.function);
		row.cpu_ns = seen ? seen->interpreted_ns : 0;
		/* Libraries switch the compiler off for many functions: show those that take time. */
		if (row.cause == NOT_COMPILED_OFF && row.cpu_ns == 0)
			continue;
		if (trace_vm_add_interpreted(reading->vm, &row))
			return -ENOMEM;
	}
	return 0;
}

static int list_interpreted(struct reading *reading)
{
	if (!read_whole(reading, read_aborts)) {
		reading->aborts.count = 0;
		reading->vm->complete = false;
		if (reading->vm->closed)
			return 0;
	}
	do {
		if (!read_held(reading, read_protos, undo_protos)) {
			reading->vm->complete = false;
			return 0;
		}
		for (size_t i = 0; i < reading->proto_count; i++) {
			const struct proto *proto = lua_objects_proto(reading->objects, reading->protos[i]);
			int error = proto ? add_interpreted(reading, proto, reading->glances[i]) : 0;

			if (error)
				return error;
		}
	} while (reading->step != OBJECT_WALK_END && reading->step != OBJECT_WALK_BROKEN);
	reading->vm->complete &= reading->step == OBJECT_WALK_END;
	return 0;
}

/*---- A process ----*/

static int report_global(struct trace_survey *survey, struct lua_process *process, struct hold *hold,
			 size_t index, struct trace_process *report)
{
	const struct global_state *global = lua_process_global(process, index);
	struct trace_vm *vm = trace_process_add_vm(report, global->g,
						   lua_process_global_path(process, index));
	struct reading *reading = calloc(1, sizeof(*reading));
	int error = -ENOMEM;

	if (!vm || !reading)
		goto out;
	*reading = (struct reading){
		.survey = survey,
		.live = lua_process_memory(process),
		.same = { .hold = hold, .memory = lua_process_memory(process), .global = global },
		.pid = report->pid,
		.global = global,
		.vm = vm,
		.objects = lua_objects_new(),
		.snapshot = snapshot_new(lua_process_memory(process)),
		.walk = object_walk_new(lua_process_memory(process), global, GCT_PROTO),
	};
	if (!reading->objects || !reading->snapshot || !reading->walk)
		goto out;
	vm->complete = true;
	vm->has_jit = global->vm->layout.has_jit;
	error = 0;
	if (!vm->has_jit)
		goto out;
	error = list_traces(reading);
	if (!error && !vm->closed)
		error = list_interpreted(reading);
out:
	if (reading) {
		object_walk_free(reading->walk);
		snapshot_free(reading->snapshot);
		lua_objects_free(reading->objects);
	}
	free(reading);
	return error;
}

/* Only of such a state it is known which traces it no longer has. */
static bool is_known(const struct trace_process *report, uint64_t g)
{
	for (size_t i = 0; i < report->vm_count; i++)
		if (report->vms[i].g == g)
			return !report->vms[i].traces_left || report->vms[i].closed;
	return false;
}

static void add_totals(const struct trace_survey *survey, struct trace_process *report)
{
	int pid = (int)report->pid;
	struct seen_process *seen;

	HASH_FIND_INT(survey->processes, &pid, seen);
	if (seen) {
		report->samples = seen->samples;
		report->cpu_ns = seen->cpu_ns;
		memcpy(report->state_ns, seen->state_ns, sizeof(report->state_ns));
	}
	for (const struct seen_trace *trace = survey->traces; trace; trace = trace->hh.next) {
		if (trace->key.pid != (uint32_t)report->pid || trace->is_there)
			continue;
		if (!is_known(report, trace->g)) {
			report->unlisted_ns += trace->cpu_ns;
			continue;
		}
		report->gone_ns += trace->cpu_ns;
		report->gone_count++;
	}
}

int trace_survey_report(struct trace_survey *survey, struct lua_process *process, struct hold *hold,
			struct trace_process *report)
{
	int error = 0;

	for (size_t i = 0; !error && i < lua_process_global_count(process); i++)
		error = report_global(survey, process, hold, i, report);
	if (error)
		return error;
	add_totals(survey, report);
	trace_process_sort(report);
	return 0;
}
