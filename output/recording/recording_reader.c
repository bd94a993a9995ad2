/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_reader.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"
#include "output/blocks/block_reader.h"
#include "output/recording/recording_format.h"
#include "output/recording/stack_cache.h"

/* A name that samples point to. It lives as long as the reader. */
struct name {
	UT_hash_handle hh;
	char text[];
};

/* The labels of a process. */
struct process_labels {
	pid_t pid;
	const char *text; /* kept as a name */
	UT_hash_handle hh;
};

struct stack {
	uint32_t caller;
	uint32_t function;
	uint32_t line;
	uint32_t depth : 24;
	uint32_t certainty : 8;
	struct figures_stack figures;
};

/* Bytes of all strings with their NULs. */
enum { TEXT_SIZE = RECORDING_STRING_BYTES_MAX + RECORDING_STRINGS_MAX };

static_assert(RECORDING_DEPTH_MAX < 1 << 24, "a depth has 24 bits");

struct thread {
	pid_t pid, tid;
	const char *process_name, *thread_name;
	uint64_t last_ns;    /* of its last sample; 0 before the first */
	uint64_t heap_bytes; /* of its last sample that has them; 0 before the first */
};

/* The current definitions; the first one of each has number 1. */
struct tables {
	uint32_t *strings;  /* where each begins in the text */
	const char **names; /* kept copies of the same strings; NULL until needed as a name */
	char *text;
	const struct function **functions;
	struct stack *stacks;
	struct thread *threads;
	size_t string_count, text_length, function_count, stack_count, thread_count;
};

struct recording_reader {
	struct sample_source source; /* first: the source and the reader are one address */
	FILE *in;
	bool resting; /* before the first sample, or behind the last: without block and tables */
	struct functions *functions;
	struct name *names;
	size_t names_size;
	struct tables tables;
	struct block_reader blocks;
	struct record_source *block; /* the current one of them */
	struct stack_cache expanded; /* by sample.stack */
	struct frame *frames;        /* of a stack that the cache does not keep */
	size_t frames_size;
	uint32_t version;                       /* of the grammar */
	const char *roots[RECORDING_ROOTS_MAX]; /* package roots of all functions, with their "@" */
	size_t root_count;
	uint64_t last_ns;
	uint64_t forgotten; /* number of stacks forgotten so far */
	uint64_t samples_read;
	struct sample_request request; /* of the next sample */
	bool opening;                  /* the first pass, which computes the members below */
	bool ended;
	bool has_large; /* the recording tells how many bytes are in large allocations */
	enum recording_extent extent;
	uint64_t sample_count;
	uint64_t first_ns, cpu_ns, wall_ns;
	struct session session;
	struct figures figures;
	struct process_labels *labels; /* at most RECORDING_THREADS_MAX */
};

/* Results of reading a record, besides negative errnos. */
enum {
	READ_END, /* the end of the recording, or of its readable part */
	READ_SAMPLE,
	READ_ON,
	READ_DAMAGED, /* the file is damaged */
};

/*---- Definitions ----*/

static void forget(struct recording_reader *reader)
{
	reader->tables.string_count = 0;
	reader->tables.text_length = 0;
	reader->tables.function_count = 0;
	reader->forgotten += reader->tables.stack_count;
	reader->tables.stack_count = 0;
	reader->tables.thread_count = 0;
}

/* A string by its number; NULL for 0. */
static const char *string_of(const struct recording_reader *reader, uint32_t id)
{
	return id ? reader->tables.text + reader->tables.strings[id - 1] : NULL;
}

static bool take_string(struct recording_reader *reader, const char **ret_string)
{
	uint32_t id;

	if (!record_take_number(reader->block, reader->tables.string_count, &id))
		return false;
	*ret_string = string_of(reader, id);
	return true;
}

static bool memory_is_left(const struct recording_reader *reader)
{
	return functions_size(reader->functions) + reader->names_size < RECORDING_MEMORY_MAX;
}

static int read_string(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	const char *text;
	size_t length;

	if (!record_take_text(reader->block, RECORDING_TEXT_MAX, &text, &length) ||
	    tables->string_count == RECORDING_STRINGS_MAX || length + 1 > TEXT_SIZE - tables->text_length)
		return READ_DAMAGED;
	memcpy(tables->text + tables->text_length, text, length);
	tables->text[tables->text_length + length] = '\0';
	tables->names[tables->string_count] = NULL;
	tables->strings[tables->string_count++] = (uint32_t)tables->text_length;
	tables->text_length += length + 1;
	return READ_ON;
}

/* The static function of a lost frame, because others compare its address. NULL for an unknown reason. */
static const struct function *find_lost(const char *name)
{
	for (int reason = 0; reason < LOST_COUNT; reason++)
		if (strcmp(lost_reason_text((enum lost_reason)reason), name) == 0)
			return lost_function((enum lost_reason)reason);
	return NULL;
}

/* A copy of text that lives as long as the reader. NULL when memory is short. */
static const char *keep_name(struct recording_reader *reader, const char *text)
{
	size_t length = strlen(text);
	struct name *name;

	HASH_FIND(hh, reader->names, text, length, name);
	if (name)
		return name->text;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return NULL;
	memcpy(name->text, text, length + 1);
	HASH_ADD_KEYPTR(hh, reader->names, name->text, length, name);
	if (!hash_added(&name->hh)) {
		free(name);
		return NULL;
	}
	reader->names_size += sizeof(*name) + length + 1;
	return name->text;
}

/* Note the package root of a function, for other files below it. False when memory is short. */
static bool note_root(struct recording_reader *reader, const struct function *function)
{
	const char *root;
	char *copy;

	if (function->root == 0 || reader->root_count == RECORDING_ROOTS_MAX)
		return true;
	for (size_t i = 0; i < reader->root_count; i++)
		if (strlen(reader->roots[i]) == function->root &&
		    strncmp(reader->roots[i], function->file, function->root) == 0)
			return true;
	copy = strndup(function->file, function->root);
	root = copy ? keep_name(reader, copy) : NULL;
	free(copy);
	if (root)
		reader->roots[reader->root_count++] = root;
	return root;
}

/* The longest root that the function's file is below. */
static uint32_t root_of(const struct recording_reader *reader, const struct function *function)
{
	size_t longest = function->root;

	for (size_t i = 0; i < reader->root_count; i++) {
		size_t length = strlen(reader->roots[i]);

		if (length > longest && strncmp(reader->roots[i], function->file, length) == 0)
			longest = length;
	}
	return (uint32_t)longest;
}

/* Read the root of a function, and set it. READ_ON on success. */
static int take_root(struct recording_reader *reader, struct function *function)
{
	if (reader->version >= RECORDING_VERSION_ROOTS &&
	    !record_take_number(reader->block, UINT32_MAX, &function->root))
		return READ_DAMAGED;
	if (function->root && (!function->file || function->root >= strlen(function->file)))
		return READ_DAMAGED;
	if (reader->opening)
		return note_root(reader, function) ? READ_ON : -ENOMEM;
	if (function->kind == FRAME_LUA && function->file)
		function->root = root_of(reader, function);
	return READ_ON;
}

static int read_function(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct function function = { 0 };
	const struct function *known = NULL;
	uint32_t kind;
	int result;

	if (!record_take_number(reader->block, FRAME_KIND_COUNT - 1, &kind) ||
	    !record_take_number(reader->block, UINT32_MAX, &function.firstline) ||
	    !take_string(reader, &function.name) || !take_string(reader, &function.file) ||
	    !take_string(reader, &function.module) || tables->function_count == RECORDING_FUNCTIONS_MAX ||
	    !memory_is_left(reader))
		return READ_DAMAGED;
	function.kind = (enum frame_kind)kind;
	result = take_root(reader, &function);
	if (result != READ_ON)
		return result;
	if (function.kind == FRAME_LOST && function.name)
		known = find_lost(function.name);
	if (!known)
		known = functions_intern(reader->functions, &function);
	if (!known)
		return -ENOMEM;
	if (function.root > known->root)
		functions_set_root(known, function.root);
	tables->functions[tables->function_count++] = known;
	return READ_ON;
}

static int read_stack(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct stack stack = { 0 };
	uint32_t depth;
	uint8_t certainty;

	if (!record_take_number(reader->block, tables->stack_count, &stack.caller) ||
	    !record_take_number(reader->block, tables->function_count, &stack.function) ||
	    stack.function == 0 || !record_take_number(reader->block, UINT32_MAX, &stack.line) ||
	    !record_take_byte(reader->block, &certainty) || (certainty & CERTAINTY_MASK) >= CERTAINTY_COUNT ||
	    certainty >= 2 * CERTAINTY_COMPILED || tables->stack_count == RECORDING_STACKS_MAX)
		return READ_DAMAGED;
	depth = stack.caller ? tables->stacks[stack.caller - 1].depth + 1 : 1;
	if (depth > RECORDING_DEPTH_MAX)
		return READ_DAMAGED;
	stack.figures = stack.caller ? tables->stacks[stack.caller - 1].figures : (struct figures_stack){ 0 };
	figures_push(&stack.figures, tables->functions[stack.function - 1],
		     (enum frame_certainty)(certainty & CERTAINTY_MASK));
	stack.depth = depth & 0xffffff;
	stack.certainty = certainty;
	tables->stacks[tables->stack_count++] = stack;
	return READ_ON;
}

/* Read a name and keep it. READ_ON on success. */
static int take_name(struct recording_reader *reader, const char **ret_name)
{
	uint32_t id;
	const char **name;

	if (!record_take_number(reader->block, reader->tables.string_count, &id))
		return READ_DAMAGED;
	*ret_name = NULL;
	if (id == 0)
		return READ_ON;
	name = &reader->tables.names[id - 1];
	if (!*name) {
		if (!memory_is_left(reader))
			return READ_DAMAGED;
		*name = keep_name(reader, string_of(reader, id));
	}
	*ret_name = *name;
	return *name ? READ_ON : -ENOMEM;
}

static int read_thread(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;
	struct thread thread = { 0 };
	uint32_t pid, tid;
	int result;

	if (!record_take_number(reader->block, INT_MAX, &pid) ||
	    !record_take_number(reader->block, INT_MAX, &tid) ||
	    tables->thread_count == RECORDING_THREADS_MAX)
		return READ_DAMAGED;
	result = take_name(reader, &thread.process_name);
	if (result == READ_ON)
		result = take_name(reader, &thread.thread_name);
	if (result != READ_ON)
		return result;
	thread.pid = (pid_t)pid;
	thread.tid = (pid_t)tid;
	tables->threads[tables->thread_count++] = thread;
	return READ_ON;
}

/*---- Samples ----*/

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
static int count_stack(struct recording_reader *reader, uint32_t id)
{
	static const struct figures_stack empty;

	figures_add_stack(&reader->figures, id ? &reader->tables.stacks[id - 1].figures : &empty);
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

static int read_request(struct recording_reader *reader)
{
	struct sample_request request = { 0 };
	uint32_t is_subrequest;
	int result = take_name(reader, &request.route);

	if (result == READ_ON)
		result = take_name(reader, &request.method);
	if (result == READ_ON)
		result = take_name(reader, &request.host);
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

static int read_sample(struct recording_reader *reader, struct sample *ret_sample)
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
	result = take_name(reader, &sample.phase);
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
	result = reader->opening ? count_stack(reader, leaf) : expand_stack(reader, leaf, &sample);
	if (result != READ_SAMPLE)
		return result;
	thread->last_ns = reader->last_ns = sample.time_ns;
	sample.request = reader->request;
	reader->request = (struct sample_request){ 0 };
	*ret_sample = sample;
	return READ_SAMPLE;
}

/*---- Properties of the session ----*/

static bool is_text(const char *text, size_t length, const char *expected)
{
	return length == strlen(expected) && memcmp(text, expected, length) == 0;
}

/* A name that is no clock leaves it as it is. */
static void read_clock(const char *text, size_t length, enum weight_kind *clock)
{
	enum weight_kind kind;

	if (weight_by_name(text, length, &kind) && weight_is_clock(kind))
		*clock = kind;
}

/* The number; 0 if the text is empty, no number or one of more than 64 bits. */
static uint64_t decimal(const char *text, size_t length)
{
	uint64_t value = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return 0;
	}
	return value;
}

/* A copy of a text of that length that lives as long as the reader. READ_ON on success. */
static int keep_text(struct recording_reader *reader, const char *text, size_t length, const char **ret_text)
{
	char copy[RECORDING_TEXT_MAX + 1];

	if (!memory_is_left(reader))
		return READ_DAMAGED;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*ret_text = keep_name(reader, copy);
	return *ret_text ? READ_ON : -ENOMEM;
}

/* Later labels of a process replace earlier ones. */
static int set_labels(struct recording_reader *reader, pid_t pid, const char *text, size_t length)
{
	struct process_labels *labels;
	const char *kept = NULL;
	int result = keep_text(reader, text, length, &kept);

	if (result != READ_ON)
		return result;
	HASH_FIND_INT(reader->labels, &pid, labels);
	if (!labels) {
		if (HASH_COUNT(reader->labels) == RECORDING_THREADS_MAX)
			return READ_DAMAGED;
		labels = calloc(1, sizeof(*labels));
		if (!labels)
			return -ENOMEM;
		labels->pid = pid;
		HASH_ADD_INT(reader->labels, pid, labels);
		if (!hash_added(&labels->hh)) {
			free(labels);
			return -ENOMEM;
		}
	}
	labels->text = kept;
	return READ_ON;
}

/* If it is one of those that are plain numbers. */
static void set_number(struct recording_reader *reader, const char *name, size_t name_length,
		       const char *text, size_t length)
{
	struct session *session = &reader->session;
	struct figures *figures = &reader->figures;
	struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {
		{ "start_unix_ns", &session->start_unix_ns },
		{ "start_ns", &session->start_ns },
		{ "home_start_ticks", &session->home.start_ticks },
		{ "home_began_unix_ns", &session->home.began_unix_ns },
		{ "duration_ns", &figures->duration_ns },
		{ "missed_ticks", &figures->missed_ticks },
		{ "dropped", &figures->dropped },
		{ "away_ns", &figures->away_ns },
		{ "undisturbed", &figures->undisturbed },
		{ "skid", &figures->skid },
		{ "self_cpu_ns", &figures->self_cpu_ns },
		{ "target_cpu_ns", &figures->target_cpu_ns },
		{ "alloc_estimated", &figures->alloc_estimated },
		{ "alloc_least", &figures->alloc_least },
		{ "alloc_all", &figures->alloc_all },
		{ "alloc_large", &figures->alloc_large },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (is_text(name, name_length, numbers[i].name))
			*numbers[i].number = decimal(text, length);
	reader->has_large |= is_text(name, name_length, "alloc_large");
}

static int set_property(struct recording_reader *reader, const char *name, size_t name_length,
			const char *text, size_t length)
{
	const size_t prefix = sizeof(RECORDING_LABELS_PREFIX) - 1;
	struct session *session = &reader->session;
	struct figures *figures = &reader->figures;
	struct {
		const char *name;
		const char **text;
	} texts[] = {
		{ "target", &session->target },       { "command_line", &session->command_line },
		{ "cause", &session->cause },         { "layout", &session->layout },
		{ "roots", &session->roots },         { "home_boot", &session->home.boot },
		{ "home_root", &session->home.root }, { "home_directory", &session->home.directory },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (is_text(name, name_length, texts[i].name))
			return keep_text(reader, text, length, texts[i].text);
	if (name_length > prefix && is_text(name, prefix, RECORDING_LABELS_PREFIX)) {
		uint64_t pid = decimal(name + prefix, name_length - prefix);

		return pid && pid <= INT_MAX ? set_labels(reader, (pid_t)pid, text, length) : READ_ON;
	}
	set_number(reader, name, name_length, text, length);
	if (is_text(name, name_length, "is_part"))
		figures->is_part = decimal(text, length) > 0;
	if (is_text(name, name_length, "is_unfinished"))
		figures->is_unfinished = decimal(text, length) > 0;
	if (is_text(name, name_length, "pid") && decimal(text, length) <= INT_MAX)
		session->pid = (pid_t)decimal(text, length);
	if (is_text(name, name_length, "home_pid") && decimal(text, length) <= INT_MAX)
		session->home.pid = (pid_t)decimal(text, length);
	if (is_text(name, name_length, "clock"))
		read_clock(text, length, &session->clock);
	if (is_text(name, name_length, "rate_asked_uhz"))
		figures->rate_asked_hz = (double)decimal(text, length) / 1e6;
	return READ_ON;
}

static int read_property(struct recording_reader *reader)
{
	const char *name, *text;
	size_t name_length, length;

	if (!record_take_text(reader->block, RECORDING_TEXT_MAX, &name, &name_length) ||
	    !record_take_text(reader->block, RECORDING_TEXT_MAX, &text, &length))
		return READ_DAMAGED;
	return reader->opening ? set_property(reader, name, name_length, text, length) : READ_ON;
}

static int read_pauses(struct recording_reader *reader)
{
	struct histogram pauses = { 0 };
	uint32_t count, bucket = 0;

	if (!record_take_uint(reader->block, &pauses.max) ||
	    !record_take_number(reader->block, HISTOGRAM_BUCKETS, &count))
		return READ_DAMAGED;
	for (; count > 0; count--, bucket++) {
		uint32_t skipped;

		if (!record_take_number(reader->block, HISTOGRAM_BUCKETS, &skipped) ||
		    bucket + skipped >= HISTOGRAM_BUCKETS)
			return READ_DAMAGED;
		bucket += skipped;
		if (!record_take_uint(reader->block, &pauses.buckets[bucket]) ||
		    pauses.buckets[bucket] > UINT64_MAX - pauses.count)
			return READ_DAMAGED;
		pauses.count += pauses.buckets[bucket];
	}
	if (reader->opening)
		reader->figures.pause_ns = pauses;
	return READ_ON;
}

/*---- Records and blocks ----*/

static int read_record(struct recording_reader *reader, struct sample *ret_sample)
{
	switch ((enum recording_tag) * reader->block->at++) {
	case RECORD_STRING: return read_string(reader);
	case RECORD_FUNCTION: return read_function(reader);
	case RECORD_STACK: return read_stack(reader);
	case RECORD_THREAD: return read_thread(reader);
	case RECORD_SAMPLE: return read_sample(reader, ret_sample);
	case RECORD_PROPERTY: return read_property(reader);
	case RECORD_PAUSES: return read_pauses(reader);
	case RECORD_FORGET: forget(reader); return READ_ON;
	case RECORD_REQUEST: return read_request(reader);
	case RECORD_END: reader->ended = true; return READ_END;
	default: return READ_DAMAGED;
	}
}

/* Unpack the next block. READ_ON, READ_END, READ_DAMAGED or a negative errno. */
static int next_block(struct recording_reader *reader)
{
	int result = block_reader_next(&reader->blocks);

	if (result > 0)
		return READ_ON;
	if (result == 0)
		return READ_END;
	return result == -EBADMSG ? READ_DAMAGED : result;
}

/* READ_SAMPLE, READ_END, READ_DAMAGED or a negative errno. */
static int read_to_sample(struct recording_reader *reader, struct sample *ret_sample)
{
	int result = READ_ON;

	while (result == READ_ON)
		result = reader->block->at < reader->block->end ? read_record(reader, ret_sample)
								: next_block(reader);
	return result;
}

/* 0, -EIO, -EILSEQ or -EPROTONOSUPPORT. */
static int read_header(struct recording_reader *reader)
{
	FILE *in = reader->blocks.in;

	block_reader_restart(&reader->blocks);
	clearerr(in);
	if (fseeko(in, 0, SEEK_SET))
		return -EIO;
	return block_header_read(in, RECORDING_MAGIC, RECORDING_VERSION, &reader->version);
}

static bool allocate(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;

	tables->strings = calloc(RECORDING_STRINGS_MAX, sizeof(*tables->strings));
	tables->names = calloc(RECORDING_STRINGS_MAX, sizeof(const char *));
	tables->text = malloc(TEXT_SIZE);
	tables->functions = calloc(RECORDING_FUNCTIONS_MAX, sizeof(const struct function *));
	tables->stacks = calloc(RECORDING_STACKS_MAX, sizeof(*tables->stacks));
	tables->threads = calloc(RECORDING_THREADS_MAX, sizeof(*tables->threads));
	return block_reader_init(&reader->blocks, reader->in) == 0 && tables->strings && tables->names &&
	       tables->text && tables->functions && tables->stacks && tables->threads &&
	       stack_cache_init(&reader->expanded) == 0;
}

/* Free what only reading samples needs. */
static void rest(struct recording_reader *reader)
{
	block_reader_clear(&reader->blocks);
	free(reader->tables.strings);
	free(reader->tables.names);
	free(reader->tables.text);
	free(reader->tables.functions);
	free(reader->tables.stacks);
	free(reader->tables.threads);
	reader->tables = (struct tables){ 0 };
	stack_cache_clear(&reader->expanded);
	free(reader->frames);
	reader->frames = NULL;
	reader->frames_size = 0;
	reader->resting = true;
}

/* Begin to read samples, from the first on. 0 or a negative errno. */
static int begin_samples(struct recording_reader *reader)
{
	int error = reader->resting && !allocate(reader) ? -ENOMEM : 0;

	if (error) {
		rest(reader);
		return error;
	}
	reader->resting = false;
	forget(reader);
	stack_cache_forget(&reader->expanded);
	reader->forgotten = 0;
	reader->last_ns = 0;
	reader->samples_read = 0;
	reader->request = (struct sample_request){ 0 };
	return read_header(reader);
}

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct recording_reader *reader = (struct recording_reader *)source;
	int result;

	/* Stop where opening stopped: the file may have grown since, or be damaged after that. */
	if (reader->samples_read == reader->sample_count) {
		if (!reader->resting)
			rest(reader);
		return 0;
	}
	result = reader->resting ? begin_samples(reader) : 0;
	if (result == 0)
		result = read_to_sample(reader, ret_sample);
	if (result < 0)
		return result;
	if (result != READ_SAMPLE) {
		errno = EIO; /* the file has changed since it was opened */
		return -EIO;
	}
	reader->samples_read++;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct recording_reader *reader = (struct recording_reader *)source;

	if (!reader->resting)
		return begin_samples(reader);
	reader->samples_read = 0;
	return 0;
}

/* Compute the figures that follow from the samples, and those of a missing end record. */
static void set_open_figures(struct recording_reader *reader)
{
	struct figures *figures = &reader->figures;
	uint64_t start_ns = reader->session.start_ns ? reader->session.start_ns : reader->first_ns;

	if (!reader->ended) {
		figures->is_unfinished = true;
		figures->target_cpu_ns = reader->cpu_ns;
		figures->duration_ns = reader->last_ns > start_ns ? reader->last_ns - start_ns : 0;
	}
	figures->target_cpu_unknown = !weight_is_time(reader->session.clock) && figures->target_cpu_ns == 0;
	figures->alloc_large_unknown = weights[reader->session.clock].clock == WEIGHT_ALLOC_BYTES &&
				       !reader->has_large;
	figures_set_rate(figures, recording_reader_clocked_ns(reader));
	reader->session.duration_ns = figures->duration_ns;
}

/* Note the package roots of the session. False when memory is short. */
static bool note_session_roots(struct recording_reader *reader)
{
	const char *at = reader->session.roots, *end;

	for (; at && (end = strchr(at, ';')); at = end + 1) {
		char *file = NULL;
		bool good;

		if (end == at)
			continue;
		if (asprintf(&file, "@%.*s", (int)(end - at), at) < 0)
			return false;
		good = note_root(reader, &(struct function){ .file = file, .root = (uint32_t)strlen(file) });
		free(file);
		if (!good)
			return false;
	}
	return true;
}

/* Set the extent, after reading has ended with that result. 0 or a negative errno. */
static int set_extent(struct recording_reader *reader, int result)
{
	int at_end = 1;

	if (result == READ_DAMAGED)
		reader->extent = RECORDING_DAMAGED;
	else if (!reader->ended)
		reader->extent = RECORDING_UNFINISHED;
	else
		at_end = block_reader_at_end(&reader->blocks);
	if (at_end == 0)
		reader->extent = RECORDING_FOLLOWED;
	return at_end < 0 ? at_end : 0;
}

static int read_all(struct recording_reader *reader)
{
	struct sample sample;
	int result = begin_samples(reader);

	if (result)
		return result;
	reader->opening = true;
	while ((result = read_to_sample(reader, &sample)) == READ_SAMPLE) {
		if (reader->sample_count++ == 0)
			reader->first_ns = sample.time_ns;
		reader->cpu_ns += sample.cpu_ns;
		reader->wall_ns += sample.wall_ns;
	}
	reader->opening = false;
	if (result >= 0)
		result = set_extent(reader, result);
	if (result)
		return result;
	if (!note_session_roots(reader))
		return -ENOMEM;
	set_open_figures(reader);
	rest(reader);
	reader->samples_read = 0;
	return 0;
}

int recording_reader_open(FILE *in, struct functions *functions, struct recording_reader **ret_reader)
{
	struct recording_reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return -ENOMEM;
	reader->source.next = next_sample;
	reader->source.rewind = rewind_samples;
	reader->functions = functions;
	reader->block = &reader->blocks.block;
	reader->in = in;
	reader->resting = true;
	error = read_all(reader);
	if (error) {
		recording_reader_close(reader);
		return error;
	}
	*ret_reader = reader;
	return 0;
}

void recording_reader_close(struct recording_reader *reader)
{
	if (!reader)
		return;
	HASH_FREE_ALL(reader->labels);
	HASH_FREE_ALL(reader->names);
	if (!reader->resting)
		rest(reader);
	free(reader);
}

struct sample_source *recording_reader_samples(struct recording_reader *reader)
{
	return &reader->source;
}

const char *recording_reader_labels(const struct recording_reader *reader, pid_t pid)
{
	const struct process_labels *labels;

	HASH_FIND_INT(reader->labels, &pid, labels);
	return labels ? labels->text : NULL;
}

uint64_t recording_reader_first_ns(const struct recording_reader *reader)
{
	return reader->first_ns;
}

enum recording_extent recording_reader_extent(const struct recording_reader *reader)
{
	return reader->extent;
}

const struct session *recording_reader_session(const struct recording_reader *reader)
{
	return &reader->session;
}

const struct figures *recording_reader_figures(const struct recording_reader *reader)
{
	return &reader->figures;
}

uint64_t recording_reader_clocked_ns(const struct recording_reader *reader)
{
	return weight_clocked_ns(reader->session.clock, reader->figures.target_cpu_ns, reader->wall_ns);
}
