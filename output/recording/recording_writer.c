/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/hash.h"
#include "memory/scatter.h"
#include "output/blocks/block_packer.h"
#include "output/recording/recording_format.h"
#include "output/recording/stack_cache.h"
#include "output/recording/stack_numbers.h"

enum {
	/* A block of this many bytes is written; below that, any record still fits. */
	BLOCK_FULL = 256 << 10,
	RECORD_SIZE_MAX = 2 * RECORDING_TEXT_MAX + 64,
	PAUSES_SIZE_MAX = 2 * 10 * (HISTOGRAM_BUCKETS + 1),
	BUFFER_SIZE = BLOCK_FULL + RECORD_SIZE_MAX,
	COMPRESSION_LEVEL = 6,
	/*
	 * Forget all definitions at this many bytes in tables. The stack of one sample may add as much again.
	 */
	TABLES_FULL = 4 << 20,
	ENTRY_OVERHEAD = 48, /* for the allocations of an entry and of its table */
};

static_assert((size_t)BUFFER_SIZE <= BLOCK_BYTES_MAX, "every block is within the limit");
static_assert(PAUSES_SIZE_MAX <= RECORD_SIZE_MAX, "pauses fit into a block");

struct string {
	uint32_t id;
	UT_hash_handle hh;
	char text[];
};

struct defined_function {
	const struct function *function;
	uint32_t id;
	UT_hash_handle hh;
};

/* Keys have no padding: they are hashed and compared as bytes. */
struct thread_key {
	uint32_t pid;
	uint32_t tid;
	uint32_t process_name;
	uint32_t thread_name;
};

struct thread {
	struct thread_key key;
	uint32_t id;
	uint64_t last_ns;    /* of its last sample; 0 before the first */
	uint64_t heap_bytes; /* of its last sample that has them; 0 before the first */
	UT_hash_handle hh;
};

/* A sample adds one at most. */
static_assert((sizeof(struct thread) + ENTRY_OVERHEAD) * RECORDING_THREADS_MAX > TABLES_FULL,
	      "all is forgotten before there are too many threads");

struct recording_writer {
	FILE *out;
	struct block_packer packer; /* of BUFFER_SIZE bytes */
	struct record_sink *block;  /* its block */
	size_t unwritten;           /* bytes of its packed block that could not be written */
	off_t begin, written;       /* where the recording begins in its file, and its size */
	bool header_written;
	bool must_forget; /* recent definitions may be missing in the file */
	bool ended;
	int error; /* if not 0, nothing more can be written */
	uint64_t last_ns;
	struct string *strings;
	size_t string_bytes;
	size_t table_bytes; /* approximate size of all tables but that of stacks */
	struct defined_function *functions;
	struct stack_numbers stacks;
	struct thread *threads;
	struct stack_cache recent; /* stacks by a hash of their frames */
	uint32_t *recent_ids;      /* the stack's id for each place */
};

/*---- Blocks ----*/

/* Truncate a regular file to its last whole block, and write no more. */
static int give_up(struct recording_writer *writer)
{
	int error = errno;
	struct stat status;

	__fpurge(writer->out);
	if (fstat(fileno(writer->out), &status) == 0 && S_ISREG(status.st_mode) && writer->begin >= 0 &&
	    ftruncate(fileno(writer->out), writer->begin + writer->written) == 0)
		fseeko(writer->out, writer->begin + writer->written, SEEK_SET);
	errno = error;
	return writer->error = -EIO;
}

static int write_bytes(struct recording_writer *writer, const char *bytes, size_t length)
{
	if (fwrite(bytes, 1, length, writer->out) != length || fflush(writer->out))
		return give_up(writer);
	writer->written += (off_t)length;
	return 0;
}

static int write_header(struct recording_writer *writer)
{
	char header[BLOCK_HEADER_SIZE];

	block_header_make(RECORDING_MAGIC, RECORDING_VERSION, header);
	writer->header_written = true;
	return write_bytes(writer, header, sizeof(header));
}

static int write_block(struct recording_writer *writer, size_t length)
{
	int error;

	writer->unwritten = length;
	error = write_bytes(writer, writer->packer.packed, length);
	if (!error)
		writer->unwritten = 0;
	return error;
}

int recording_writer_flush(struct recording_writer *writer)
{
	size_t length;
	int error;

	if (writer->error)
		return writer->error;
	if (!writer->header_written) {
		error = write_header(writer);
		if (error)
			return error;
	}
	if (writer->block->length == 0)
		return 0;
	length = block_packer_pack(&writer->packer);
	if (length == 0) {
		errno = ENOMEM;
		return give_up(writer);
	}
	return write_block(writer, length);
}

int recording_writer_continue(struct recording_writer *writer, FILE *out)
{
	int error = 0;

	writer->out = out;
	writer->error = 0;
	writer->must_forget = true;
	if (writer->written == 0)
		error = write_header(writer);
	if (!error && writer->unwritten)
		error = write_block(writer, writer->unwritten);
	return error;
}

/* Begin a record, with room for it in the block. */
static int begin(struct recording_writer *writer, enum recording_tag tag)
{
	int error = writer->block->length >= BLOCK_FULL ? recording_writer_flush(writer) : writer->error;

	if (error == 0)
		record_put_byte(writer->block, tag);
	return error;
}

/*---- Definitions ----*/

/*
 * Add an entry to its table before writing its record, so that the tables know
 * everything in the file. -EOVERFLOW means that a table is full.
 */

static int define_string(struct recording_writer *writer, const char *text, size_t length, uint32_t *ret_id)
{
	struct string *string;
	int error;

	if (HASH_COUNT(writer->strings) == RECORDING_STRINGS_MAX ||
	    writer->string_bytes + length > RECORDING_STRING_BYTES_MAX)
		return -EOVERFLOW;
	string = malloc(sizeof(*string) + length + 1);
	if (!string)
		return -ENOMEM;
	memcpy(string->text, text, length);
	string->text[length] = '\0';
	HASH_ADD_KEYPTR(hh, writer->strings, string->text, length, string);
	if (!hash_added(&string->hh)) {
		free(string);
		return -ENOMEM;
	}
	string->id = HASH_COUNT(writer->strings);
	writer->string_bytes += length;
	writer->table_bytes += sizeof(*string) + length + ENTRY_OVERHEAD;
	error = begin(writer, RECORD_STRING);
	if (error)
		return error;
	record_put_text(writer->block, RECORDING_TEXT_MAX, string->text);
	*ret_id = string->id;
	return 0;
}

static int find_string(struct recording_writer *writer, const char *text, uint32_t *ret_id)
{
	struct string *string;
	size_t length;

	*ret_id = 0;
	if (!text)
		return 0;
	length = strnlen(text, RECORDING_TEXT_MAX);
	HASH_FIND(hh, writer->strings, text, length, string);
	if (!string)
		return define_string(writer, text, length, ret_id);
	*ret_id = string->id;
	return 0;
}

static int define_function(struct recording_writer *writer, const struct function *function, uint32_t *ret_id)
{
	struct defined_function *defined;
	uint32_t name, file, module;
	int error = find_string(writer, function->name, &name);

	if (!error)
		error = find_string(writer, function->file, &file);
	if (!error)
		error = find_string(writer, function->module, &module);
	if (error)
		return error;
	if (HASH_COUNT(writer->functions) == RECORDING_FUNCTIONS_MAX)
		return -EOVERFLOW;
	defined = malloc(sizeof(*defined));
	if (!defined)
		return -ENOMEM;
	defined->function = function;
	HASH_ADD_PTR(writer->functions, function, defined);
	if (!hash_added(&defined->hh)) {
		free(defined);
		return -ENOMEM;
	}
	defined->id = HASH_COUNT(writer->functions);
	writer->table_bytes += sizeof(*defined) + ENTRY_OVERHEAD;
	error = begin(writer, RECORD_FUNCTION);
	if (error)
		return error;
	record_put_uint(writer->block, function->kind);
	record_put_uint(writer->block, function->firstline);
	record_put_uint(writer->block, name);
	record_put_uint(writer->block, file);
	record_put_uint(writer->block, module);
	record_put_uint(writer->block, function->root);
	*ret_id = defined->id;
	return 0;
}

static int find_function(struct recording_writer *writer, const struct function *function, uint32_t *ret_id)
{
	struct defined_function *defined;

	HASH_FIND_PTR(writer->functions, &function, defined);
	if (!defined)
		return define_function(writer, function, ret_id);
	*ret_id = defined->id;
	return 0;
}

static int define_stack(struct recording_writer *writer, const struct stack_key *key, uint32_t *ret_id)
{
	int error;

	if (writer->stacks.count == RECORDING_STACKS_MAX)
		return -EOVERFLOW;
	error = stack_numbers_add(&writer->stacks, key);
	if (!error)
		error = begin(writer, RECORD_STACK);
	if (error)
		return error;
	record_put_uint(writer->block, key->caller);
	record_put_uint(writer->block, key->function);
	record_put_uint(writer->block, key->line);
	record_put_byte(writer->block, key->certainty);
	*ret_id = writer->stacks.count;
	return 0;
}

static unsigned int certainty_byte(const struct frame *frame)
{
	return frame->certainty | (frame->compiled ? CERTAINTY_COMPILED : 0u);
}

static int find_frames(struct recording_writer *writer, const struct sample *sample, uint32_t *ret_id)
{
	uint32_t id = 0;

	for (size_t i = sample->frame_count; i-- > 0;) {
		const struct frame *frame = &sample->frames[i];
		struct stack_key key = {
			.caller = id,
			.line = frame->line,
			.certainty = certainty_byte(frame),
		};
		int error = find_function(writer, frame->function, &key.function);

		if (error)
			return error;
		id = stack_numbers_find(&writer->stacks, &key);
		error = id ? 0 : define_stack(writer, &key, &id);
		if (error)
			return error;
	}
	*ret_id = id;
	return 0;
}

static uint64_t hash_frames(const struct sample *sample)
{
	uint64_t hash = sample->frame_count;

	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];

		hash = scatter(hash ^ (uintptr_t)frame->function ^ (uint64_t)frame->line << 48 ^
			       (uint64_t)certainty_byte(frame) << 60);
	}
	return hash ? hash : 1;
}

static bool is_stack_of(const struct cached_stack *stack, const struct sample *sample)
{
	if (stack->frame_count != sample->frame_count)
		return false;
	for (size_t i = 0; i < sample->frame_count; i++)
		if (stack->frames[i].function != sample->frames[i].function ||
		    stack->frames[i].line != sample->frames[i].line ||
		    certainty_byte(&stack->frames[i]) != certainty_byte(&sample->frames[i]))
			return false;
	return true;
}

/* Find a recent stack by its hash: most stacks repeat, and looking up each frame is slow. */
static int find_stack(struct recording_writer *writer, const struct sample *sample, uint32_t *ret_id)
{
	uint64_t hash = hash_frames(sample);
	size_t place = stack_cache_place(&writer->recent, hash);
	struct cached_stack *stack = &writer->recent.places[place];
	int error;

	if (stack->number == hash && is_stack_of(stack, sample)) {
		*ret_id = writer->recent_ids[place];
		return 0;
	}
	error = find_frames(writer, sample, ret_id);
	if (error || !stack_cache_take(&writer->recent, place, hash, sample->frame_count))
		return error;
	writer->recent_ids[place] = *ret_id;
	if (sample->frame_count)
		memcpy(stack->frames, sample->frames, sample->frame_count * sizeof(*stack->frames));
	return 0;
}

static int define_thread(struct recording_writer *writer, const struct thread_key *key,
			 struct thread **ret_thread)
{
	struct thread *thread;
	int error;

	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	thread->key = *key;
	HASH_ADD_KEYPTR(hh, writer->threads, &thread->key, sizeof(thread->key), thread);
	if (!hash_added(&thread->hh)) {
		free(thread);
		return -ENOMEM;
	}
	thread->id = HASH_COUNT(writer->threads);
	writer->table_bytes += sizeof(*thread) + ENTRY_OVERHEAD;
	error = begin(writer, RECORD_THREAD);
	if (error)
		return error;
	record_put_uint(writer->block, key->pid);
	record_put_uint(writer->block, key->tid);
	record_put_uint(writer->block, key->process_name);
	record_put_uint(writer->block, key->thread_name);
	*ret_thread = thread;
	return 0;
}

static int find_thread(struct recording_writer *writer, const struct sample *sample,
		       struct thread **ret_thread)
{
	struct thread_key key = { .pid = (uint32_t)sample->pid, .tid = (uint32_t)sample->tid };
	struct thread *thread;
	int error = find_string(writer, sample->process_name, &key.process_name);

	if (!error)
		error = find_string(writer, sample->thread_name, &key.thread_name);
	if (error)
		return error;
	HASH_FIND(hh, writer->threads, &key, sizeof(key), thread);
	if (!thread)
		return define_thread(writer, &key, ret_thread);
	*ret_thread = thread;
	return 0;
}

static void clear_tables(struct recording_writer *writer)
{
	HASH_FREE_ALL(writer->strings);
	HASH_FREE_ALL(writer->functions);
	stack_numbers_clear(&writer->stacks);
	HASH_FREE_ALL(writer->threads);
	stack_cache_forget(&writer->recent);
	writer->string_bytes = 0;
	writer->table_bytes = 0;
}

static int forget(struct recording_writer *writer)
{
	clear_tables(writer);
	writer->must_forget = false;
	return begin(writer, RECORD_FORGET);
}

void recording_writer_forget_functions(struct recording_writer *writer)
{
	clear_tables(writer);
	writer->must_forget = true;
}

/*---- Samples ----*/

static bool is_allocation(const struct sample *sample)
{
	return sample->alloc_bytes || sample->alloc_objects;
}

static void put_gc(struct recording_writer *writer, const struct sample *sample, struct thread *thread)
{
	const struct sample_gc *gc = &sample->gc;
	const bool has_step = gc->allocated_bytes || gc->used_ns || gc->step_ns;

	record_put_byte(writer->block, gc->phase | (gc->has_marked ? GC_HAS_MARKED : 0u) |
					       (gc->heap_bytes ? GC_HAS_HEAP : 0u) |
					       (is_allocation(sample) ? GC_HAS_ALLOCATION : 0u) |
					       (has_step ? GC_HAS_STEP : 0u));
	if (gc->heap_bytes) {
		record_put_sint(writer->block, (int64_t)(gc->heap_bytes - thread->heap_bytes));
		thread->heap_bytes = gc->heap_bytes;
	}
	if (has_step) {
		record_put_uint(writer->block, gc->allocated_bytes);
		record_put_uint(writer->block, gc->used_ns);
		record_put_uint(writer->block, gc->step_ns);
	}
}

/* What a request has of strings, by number. */
struct request_strings {
	uint32_t route, method, host;
};

static int find_request(struct recording_writer *writer, const struct sample_request *request,
			struct request_strings *ret_strings)
{
	int error = find_string(writer, request->route, &ret_strings->route);

	if (!error)
		error = find_string(writer, request->method, &ret_strings->method);
	return error ? error : find_string(writer, request->host, &ret_strings->host);
}

static int put_request(struct recording_writer *writer, const struct sample_request *request,
		       const struct request_strings *strings)
{
	int error = strings->route ? begin(writer, RECORD_REQUEST) : 0;

	if (error || strings->route == 0)
		return error;
	record_put_uint(writer->block, strings->route);
	record_put_uint(writer->block, strings->method);
	record_put_uint(writer->block, strings->host);
	record_put_uint(writer->block, request->status);
	record_put_uint(writer->block, request->is_subrequest);
	record_put_uint(writer->block, request->connection);
	record_put_uint(writer->block, request->number);
	record_put_uint(writer->block, request->age_ns);
	return 0;
}

static int put_sample(struct recording_writer *writer, const struct sample *sample)
{
	uint64_t now = sample->time_ns > writer->last_ns ? sample->time_ns : writer->last_ns;
	uint32_t stack = 0, phase = 0, wait = 0;
	struct request_strings request = { 0 };
	struct thread *thread;
	int error = find_thread(writer, sample, &thread);

	if (!error)
		error = find_string(writer, sample->phase, &phase);
	if (!error)
		error = find_stack(writer, sample, &stack);
	if (!error && sample->wait && sample->thread_state != THREAD_RUNNING)
		error = find_function(writer, sample->wait, &wait);
	if (!error && sample->request.route)
		error = find_request(writer, &sample->request, &request);
	if (!error)
		error = put_request(writer, &sample->request, &request);
	if (!error)
		error = begin(writer, RECORD_SAMPLE);
	if (error)
		return error;
	record_put_uint(writer->block, now - writer->last_ns);
	record_put_uint(writer->block, thread->id);
	record_put_uint(writer->block, stack);
	record_put_byte(writer->block, sample->thread_state | sample->vm_state << STATE_THREAD_BITS);
	put_gc(writer, sample, thread);
	record_put_uint(writer->block, phase);
	if (sample->thread_state != THREAD_RUNNING)
		record_put_uint(writer->block, wait);
	record_put_uint(writer->block, sample->cpu_ns);
	record_put_sint(writer->block,
			(int64_t)(sample->wall_ns - (now - (thread->last_ns ? thread->last_ns : now))));
	if (is_allocation(sample)) {
		record_put_uint(writer->block, sample->alloc_bytes);
		record_put_uint(writer->block, sample->alloc_objects);
	}
	thread->last_ns = writer->last_ns = now;
	return 0;
}

int recording_writer_add(struct recording_writer *writer, const struct sample *sample)
{
	int error = 0;

	if (sample->frame_count > RECORDING_DEPTH_MAX)
		return -EOVERFLOW;
	if (writer->must_forget || writer->table_bytes >= TABLES_FULL)
		error = forget(writer);
	if (!error)
		error = put_sample(writer, sample);
	if (error != -EOVERFLOW)
		return error;
	error = forget(writer);
	return error ? error : put_sample(writer, sample);
}

/*---- Beginning and end ----*/

static int put_property(struct recording_writer *writer, const char *name, const char *value)
{
	int error;

	if (!value)
		return 0;
	error = begin(writer, RECORD_PROPERTY);
	if (error)
		return error;
	record_put_text(writer->block, RECORDING_TEXT_MAX, name);
	record_put_text(writer->block, RECORDING_TEXT_MAX, value);
	return 0;
}

static int put_number(struct recording_writer *writer, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return put_property(writer, name, text);
}

int recording_writer_add_labels(struct recording_writer *writer, pid_t pid, const char *labels)
{
	char name[sizeof(RECORDING_LABELS_PREFIX) + 12];

	snprintf(name, sizeof(name), RECORDING_LABELS_PREFIX "%d", (int)pid);
	return put_property(writer, name, labels);
}

/* 0, or an error of put_property(). */
static int put_home(struct recording_writer *writer, const struct session_home *home)
{
	int error = put_property(writer, "home_boot", home->boot);

	if (!error)
		error = put_property(writer, "home_root", home->root);
	if (!error)
		error = put_property(writer, "home_directory", home->directory);
	if (!error)
		error = put_number(writer, "home_pid", (uint64_t)home->pid);
	if (!error)
		error = put_number(writer, "home_start_ticks", home->start_ticks);
	if (!error)
		error = put_number(writer, "home_began_unix_ns", home->began_unix_ns);
	return error;
}

static int put_session(struct recording_writer *writer, const struct session *session)
{
	int error = put_property(writer, "target", session->target);

	if (!error)
		error = put_property(writer, "command_line", session->command_line);
	if (!error)
		error = put_property(writer, "cause", session->cause);
	if (!error)
		error = put_property(writer, "layout", session->layout);
	if (!error)
		error = put_property(writer, "roots", session->roots);
	if (!error)
		error = put_property(writer, "clock", weights[weights[session->clock].clock].name);
	if (!error)
		error = put_number(writer, "pid", (uint64_t)session->pid);
	if (!error)
		error = put_number(writer, "start_unix_ns", session->start_unix_ns);
	if (!error)
		error = put_number(writer, "start_ns", session->start_ns);
	return error ? error : put_home(writer, &session->home);
}

static int put_pauses(struct recording_writer *writer, const struct histogram *pauses)
{
	unsigned int count = 0, skipped = 0;
	int error = begin(writer, RECORD_PAUSES);

	if (error)
		return error;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += pauses->buckets[i] > 0;
	record_put_uint(writer->block, pauses->max);
	record_put_uint(writer->block, count);
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (pauses->buckets[i] == 0) {
			skipped++;
			continue;
		}
		record_put_uint(writer->block, skipped);
		record_put_uint(writer->block, pauses->buckets[i]);
		skipped = 0;
	}
	return 0;
}

/* Also if there are none: of a recording without these, it is not known. */
static int put_large(struct recording_writer *writer, const struct figures *figures)
{
	int error = put_number(writer, "alloc_all", figures->alloc_all);

	return error ? error : put_number(writer, "alloc_large", figures->alloc_large);
}

int recording_writer_finish(struct recording_writer *writer, const struct session *session,
			    const struct figures *figures)
{
	int error;

	if (writer->ended)
		return recording_writer_flush(writer);
	error = put_session(writer, session);
	if (!error)
		error = put_number(writer, "duration_ns", figures->duration_ns);
	if (!error)
		error = put_number(writer, "missed_ticks", figures->missed_ticks);
	if (!error)
		error = put_number(writer, "dropped", figures->dropped);
	if (!error)
		error = put_number(writer, "away_ns", figures->away_ns);
	if (!error)
		error = put_number(writer, "undisturbed", figures->undisturbed);
	if (!error && figures->skid)
		error = put_number(writer, "skid", figures->skid);
	if (!error)
		error = put_number(writer, "self_cpu_ns", figures->self_cpu_ns);
	if (!error)
		error = put_number(writer, "target_cpu_ns", figures->target_cpu_ns);
	if (!error && figures->alloc_estimated)
		error = put_number(writer, "alloc_estimated", figures->alloc_estimated);
	if (!error && figures->alloc_least)
		error = put_number(writer, "alloc_least", figures->alloc_least);
	if (!error && weights[session->clock].clock == WEIGHT_ALLOC_BYTES && !figures->alloc_large_unknown)
		error = put_large(writer, figures);
	if (!error && figures->is_part)
		error = put_number(writer, "is_part", 1);
	if (!error && figures->is_unfinished)
		error = put_number(writer, "is_unfinished", 1);
	if (!error)
		error = put_number(writer, "rate_asked_uhz", (uint64_t)(figures->rate_asked_hz * 1e6));
	if (!error)
		error = put_pauses(writer, &figures->pause_ns);
	if (!error)
		error = begin(writer, RECORD_END);
	writer->ended = !error;
	return error ? error : recording_writer_flush(writer);
}

int recording_writer_new(FILE *out, const struct session *session, struct recording_writer **ret_writer)
{
	struct recording_writer *writer = calloc(1, sizeof(*writer));
	bool good;

	if (!writer)
		return -ENOMEM;
	writer->out = out;
	writer->block = &writer->packer.block;
	writer->begin = ftello(out);
	writer->recent_ids = calloc(STACK_CACHE_PLACES, sizeof(*writer->recent_ids));
	good = block_packer_init(&writer->packer, BUFFER_SIZE, COMPRESSION_LEVEL) == 0 &&
	       writer->recent_ids && stack_cache_init(&writer->recent) == 0;
	if (!good) {
		recording_writer_free(writer);
		return -ENOMEM;
	}
	/* The buffer is empty, so this writes nothing to the file and cannot fail. */
	put_session(writer, session);
	*ret_writer = writer;
	return 0;
}

void recording_writer_free(struct recording_writer *writer)
{
	if (!writer)
		return;
	clear_tables(writer);
	stack_cache_clear(&writer->recent);
	free(writer->recent_ids);
	block_packer_clear(&writer->packer);
	free(writer);
}
