/* SPDX-License-Identifier: MIT */
#include "src/apart/sample_message.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/word_hash.h"
#include "output/recording/recording_format.h"
#include "unwind/lua/request.h"

enum tag { TAG_FUNCTION = 1, TAG_LOST, TAG_SAMPLE, TAG_FORGET };

enum {
	TEXT_MAX = RECORDING_TEXT_MAX,
	UINT_SIZE_MAX = 10,
	TEXTS = 6, /* of a sample; a function has fewer */
};

/*---- Writing ----*/

struct numbered {
	const struct function *function;
	uint32_t number;
	UT_hash_handle hh;
};

struct sample_writer {
	struct numbered *functions;
	uint32_t sent_count; /* how many of the functions have been sent */
	unsigned char *bytes;
	size_t length, size, size_max;
	bool failed;  /* the current message cannot be written */
	bool forgets; /* the next message must begin with TAG_FORGET */
};

struct sample_writer *sample_writer_new(size_t size_max)
{
	struct sample_writer *writer = calloc(1, sizeof(*writer));

	if (writer)
		writer->size_max = size_max;
	return writer;
}

void sample_writer_forget(struct sample_writer *writer)
{
	HASH_FREE_ALL(writer->functions);
	writer->sent_count = 0;
	writer->forgets = true;
}

void sample_writer_free(struct sample_writer *writer)
{
	if (!writer)
		return;
	sample_writer_forget(writer);
	free(writer->bytes);
	free(writer);
}

/* Make room for count more bytes. */
static bool make_room(struct sample_writer *writer, size_t count)
{
	size_t wanted = writer->length + count;
	unsigned char *larger;

	if (writer->failed || wanted > writer->size_max) {
		writer->failed = true;
		return false;
	}
	if (wanted <= writer->size)
		return true;
	larger = realloc(writer->bytes, 2 * wanted);
	if (!larger) {
		writer->failed = true;
		return false;
	}
	writer->bytes = larger;
	writer->size = 2 * wanted;
	return true;
}

static void put_uint(struct sample_writer *writer, uint64_t value)
{
	if (!make_room(writer, UINT_SIZE_MAX))
		return;
	for (; value >= 0x80; value >>= 7)
		writer->bytes[writer->length++] = (unsigned char)(value | 0x80);
	writer->bytes[writer->length++] = (unsigned char)value;
}

static void put_text(struct sample_writer *writer, const char *text)
{
	size_t length = text ? strnlen(text, TEXT_MAX) : 0;

	put_uint(writer, text ? length + 1 : 0);
	if (length == 0 || !make_room(writer, length))
		return;
	memcpy(writer->bytes + writer->length, text, length);
	writer->length += length;
}

static void define(struct sample_writer *writer, const struct function *function)
{
	for (unsigned reason = 0; reason < LOST_COUNT; reason++)
		if (lost_function((enum lost_reason)reason) == function) {
			put_uint(writer, TAG_LOST);
			put_uint(writer, reason);
			return;
		}
	put_uint(writer, TAG_FUNCTION);
	put_uint(writer, function->kind);
	put_uint(writer, function->firstline);
	put_text(writer, function->name);
	put_text(writer, function->file);
	put_text(writer, function->module);
	put_uint(writer, function->root);
}

/* The function's number; defines a new function in the current message. 0 for no function. */
static uint32_t number_of(struct sample_writer *writer, const struct function *function)
{
	struct numbered *numbered;

	if (!function)
		return 0;
	HASH_FIND_PTR(writer->functions, &function, numbered);
	if (numbered)
		return numbered->number;
	numbered = malloc(sizeof(*numbered));
	if (!numbered) {
		writer->failed = true;
		return 0;
	}
	numbered->function = function;
	HASH_ADD_PTR(writer->functions, function, numbered);
	if (!hash_added(&numbered->hh)) {
		free(numbered);
		writer->failed = true;
		return 0;
	}
	numbered->number = HASH_COUNT(writer->functions);
	define(writer, function);
	return numbered->number;
}

static void put_request(struct sample_writer *writer, const struct sample_request *request)
{
	put_text(writer, request->route);
	if (!request->route)
		return;
	put_text(writer, request->method);
	put_text(writer, request->host);
	put_uint(writer, request->status);
	put_uint(writer, request->is_subrequest);
	put_uint(writer, request->connection);
	put_uint(writer, request->number);
	put_uint(writer, request->age_ns);
}

static void put_sample(struct sample_writer *writer, const struct sample *sample)
{
	put_uint(writer, TAG_SAMPLE);
	put_uint(writer, sample->time_ns);
	put_uint(writer, (uint64_t)sample->pid);
	put_uint(writer, (uint64_t)sample->tid);
	put_text(writer, sample->process_name);
	put_text(writer, sample->thread_name);
	put_text(writer, sample->phase);
	put_request(writer, &sample->request);
	put_uint(writer, sample->thread_state);
	put_uint(writer, sample->vm_state);
	put_uint(writer, number_of(writer, sample->wait));
	put_uint(writer, sample->cpu_ns);
	put_uint(writer, sample->wall_ns);
	put_uint(writer, sample->alloc_bytes);
	put_uint(writer, sample->alloc_objects);
	put_uint(writer, sample->loop_ns);
	put_uint(writer, sample->sleeps);
	put_uint(writer, sample->awaits_events);
	put_uint(writer, sample->gc.phase);
	put_uint(writer, sample->gc.has_marked);
	put_uint(writer, sample->gc.heap_bytes);
	put_uint(writer, sample->gc.live_bytes);
	put_uint(writer, sample->gc.allocated_bytes);
	put_uint(writer, sample->gc.used_ns);
	put_uint(writer, sample->gc.step_ns);
	put_uint(writer, sample->frame_count);
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];

		put_uint(writer, number_of(writer, frame->function));
		put_uint(writer, frame->line);
		put_uint(writer, frame->certainty | (frame->compiled ? CERTAINTY_COMPILED : 0u));
	}
}

const void *sample_writer_write(struct sample_writer *writer, const struct sample *sample, size_t *ret_size)
{
	writer->length = 0;
	writer->failed = false;
	if (writer->forgets)
		put_uint(writer, TAG_FORGET);
	number_of(writer, sample->wait);
	for (size_t i = 0; i < sample->frame_count; i++)
		number_of(writer, sample->frames[i].function);
	put_sample(writer, sample);
	if (writer->failed) {
		sample_writer_note(writer, false);
		return NULL;
	}
	*ret_size = writer->length;
	return writer->bytes;
}

void sample_writer_note(struct sample_writer *writer, bool sent)
{
	/* The table is in the order of numbers. */
	while (!sent && HASH_COUNT(writer->functions) > writer->sent_count) {
		struct numbered *last = ELMT_FROM_HH(writer->functions->hh.tbl,
						     writer->functions->hh.tbl->tail);

		HASH_DEL(writer->functions, last);
		free(last);
	}
	if (!sent)
		return;
	writer->sent_count = HASH_COUNT(writer->functions);
	writer->forgets = false;
}

/*---- Reading ----*/

struct sample_reader {
	struct functions *functions;
	const struct function **numbered; /* defined so far; the first is number 1 */
	size_t count, size;
	char *texts[TEXTS]; /* of the current function or sample */
	size_t text_sizes[TEXTS];
	struct frame *frames;
	size_t frames_size;
};

struct sample_reader *sample_reader_new(struct functions *functions)
{
	struct sample_reader *reader = calloc(1, sizeof(*reader));

	if (reader)
		reader->functions = functions;
	return reader;
}

void sample_reader_free(struct sample_reader *reader)
{
	if (!reader)
		return;
	for (int i = 0; i < TEXTS; i++)
		free(reader->texts[i]);
	free(reader->numbered);
	free(reader->frames);
	free(reader);
}

/* The rest of a message; empty after the first error. */
struct bytes {
	const unsigned char *at, *end;
	int error;
};

static uint64_t get_uint(struct bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned shift = 0; bytes->at < bytes->end && shift < 64; shift += 7) {
		unsigned char byte = *bytes->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	bytes->error = bytes->error ? bytes->error : -EBADMSG;
	bytes->at = bytes->end;
	return 0;
}

/* A number up to most; a larger one is an error. */
static uint64_t get_limited(struct bytes *bytes, uint64_t most)
{
	uint64_t value = get_uint(bytes);

	if (value <= most)
		return value;
	bytes->error = -EBADMSG;
	bytes->at = bytes->end;
	return 0;
}

/* Read a text into the reader's buffer for that place; NULL for none or an error. */
static const char *get_text(struct sample_reader *reader, struct bytes *bytes, int place)
{
	size_t length = get_limited(bytes, TEXT_MAX + 1);
	char *larger;

	if (bytes->error || length == 0)
		return NULL;
	length--;
	if (length > (size_t)(bytes->end - bytes->at) || memchr(bytes->at, '\0', length)) {
		bytes->error = -EBADMSG;
		return NULL;
	}
	if (length + 1 > reader->text_sizes[place]) {
		larger = realloc(reader->texts[place], length + 1);
		if (!larger) {
			bytes->error = -ENOMEM;
			return NULL;
		}
		reader->texts[place] = larger;
		reader->text_sizes[place] = length + 1;
	}
	memcpy(reader->texts[place], bytes->at, length);
	reader->texts[place][length] = '\0';
	bytes->at += length;
	return reader->texts[place];
}

static bool make_room_for_function(struct sample_reader *reader)
{
	const struct function **numbered = array_grow(reader->numbered, &reader->size, reader->count + 1,
						      sizeof(const struct function *));

	if (!numbered)
		return false;
	reader->numbered = numbered;
	return true;
}

static void add_function(struct sample_reader *reader, struct bytes *bytes, const struct function *function)
{
	if (bytes->error)
		return;
	if (!function || !make_room_for_function(reader))
		bytes->error = -ENOMEM;
	else
		reader->numbered[reader->count++] = function;
}

static void read_lost(struct sample_reader *reader, struct bytes *bytes)
{
	uint64_t reason = get_limited(bytes, LOST_COUNT - 1);

	add_function(reader, bytes, lost_function((enum lost_reason)reason));
}

static void read_function(struct sample_reader *reader, struct bytes *bytes)
{
	struct function function = {
		.kind = (enum frame_kind)get_limited(bytes, FRAME_KIND_COUNT - 1),
		.firstline = (uint32_t)get_limited(bytes, UINT32_MAX),
	};

	function.name = get_text(reader, bytes, 0);
	function.file = get_text(reader, bytes, 1);
	function.module = get_text(reader, bytes, 2);
	function.root = (uint32_t)get_limited(bytes, UINT32_MAX);
	if (!bytes->error)
		add_function(reader, bytes, functions_intern(reader->functions, &function));
}

/* NULL for none. */
static const struct function *get_function(const struct sample_reader *reader, struct bytes *bytes)
{
	uint64_t number = get_limited(bytes, reader->count);

	return number ? reader->numbered[number - 1] : NULL;
}

static void read_frame(const struct sample_reader *reader, struct bytes *bytes, struct frame *frame)
{
	uint64_t certainty;

	frame->function = get_function(reader, bytes);
	frame->line = (uint32_t)get_limited(bytes, UINT32_MAX);
	certainty = get_limited(bytes, CERTAINTY_MASK | CERTAINTY_COMPILED);
	frame->certainty = (enum frame_certainty)(certainty & CERTAINTY_MASK);
	frame->compiled = certainty & CERTAINTY_COMPILED;
	if (!frame->function || frame->certainty >= CERTAINTY_COUNT)
		bytes->error = bytes->error ? bytes->error : -EBADMSG;
}

static void read_frames(struct sample_reader *reader, struct bytes *bytes, struct sample *sample)
{
	/* A frame has at least three bytes. */
	size_t count = get_limited(bytes, (uint64_t)(bytes->end - bytes->at) / 3);
	struct frame *larger;

	if (count > reader->frames_size) {
		larger = realloc(reader->frames, count * sizeof(*larger));
		if (!larger) {
			bytes->error = -ENOMEM;
			return;
		}
		reader->frames = larger;
		reader->frames_size = count;
	}
	for (size_t i = 0; i < count && !bytes->error; i++)
		read_frame(reader, bytes, &reader->frames[i]);
	sample->frames = reader->frames;
	sample->frame_count = count;
}

static void read_request(struct sample_reader *reader, struct bytes *bytes, struct sample_request *request)
{
	request->route = get_text(reader, bytes, 3);
	if (!request->route)
		return;
	request->method = get_text(reader, bytes, 4);
	request->host = get_text(reader, bytes, 5);
	request->status = (uint32_t)get_limited(bytes, UINT32_MAX);
	request->is_subrequest = get_limited(bytes, 1);
	request->connection = get_uint(bytes);
	request->number = get_uint(bytes);
	request->age_ns = get_uint(bytes);
}

static void read_sample(struct sample_reader *reader, struct bytes *bytes, struct sample *sample)
{
	*sample = (struct sample){ .time_ns = get_uint(bytes) };
	sample->pid = (pid_t)get_limited(bytes, INT_MAX);
	sample->tid = (pid_t)get_limited(bytes, INT_MAX);
	sample->process_name = get_text(reader, bytes, 0);
	sample->thread_name = get_text(reader, bytes, 1);
	sample->phase = request_phase_named(get_text(reader, bytes, 2));
	read_request(reader, bytes, &sample->request);
	sample->thread_state = (enum thread_state)get_limited(bytes, THREAD_STATE_COUNT - 1);
	sample->vm_state = (enum vm_state)get_limited(bytes, VM_STATE_COUNT - 1);
	sample->wait = get_function(reader, bytes);
	sample->cpu_ns = get_uint(bytes);
	sample->wall_ns = get_uint(bytes);
	sample->alloc_bytes = get_uint(bytes);
	sample->alloc_objects = get_uint(bytes);
	sample->loop_ns = get_uint(bytes);
	sample->sleeps = get_uint(bytes);
	sample->awaits_events = get_limited(bytes, 1);
	sample->gc.phase = (enum gc_phase)get_limited(bytes, GC_PHASE_COUNT - 1);
	sample->gc.has_marked = get_limited(bytes, 1);
	sample->gc.heap_bytes = get_uint(bytes);
	sample->gc.live_bytes = get_uint(bytes);
	sample->gc.allocated_bytes = get_uint(bytes);
	sample->gc.used_ns = get_uint(bytes);
	sample->gc.step_ns = get_uint(bytes);
	read_frames(reader, bytes, sample);
}

bool sample_message_forgets(const unsigned char *bytes, size_t size)
{
	return size > 0 && bytes[0] == TAG_FORGET;
}

int sample_reader_read(struct sample_reader *reader, const unsigned char *bytes, size_t size,
		       struct sample *ret_sample)
{
	struct bytes left = { .at = bytes, .end = bytes + size };
	struct sample sample;

	if (sample_message_forgets(bytes, size)) {
		reader->count = 0;
		left.at++;
	}
	while (!left.error) {
		switch (get_uint(&left)) {
		case TAG_FUNCTION: read_function(reader, &left); break;
		case TAG_LOST: read_lost(reader, &left); break;
		case TAG_SAMPLE:
			read_sample(reader, &left, &sample);
			if (left.error || left.at != left.end)
				return left.error ? left.error : -EBADMSG;
			*ret_sample = sample;
			return 0;
		default: return left.error ? left.error : -EBADMSG;
		}
	}
	return left.error;
}
