/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_pprof.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/hash.h"
#include "output/formats/pprof.pb-c.h"
#include "output/heap_reports/heap_profile.h"
#include "output/labels/frame_text.h"
#include "output/labels/gzip.h"
#include "output/labels/string_index.h"

enum { VALUE_TYPES = 2, FRAMES_MAX = HEAP_DEPTH_MAX + 4, MAPPING_ID = 1 };

/* A function that was written, with its location of the same number. */
struct written {
	const struct function *function;
	uint64_t number;
	UT_hash_handle hh;
};

/* Readers merge the pieces in which the profile is written. */
struct writer {
	struct gzip *gzip;
	struct string_index *strings;
	struct written *functions;
	int error; /* the first one */
};

static void write_piece(struct writer *writer, const Pprof__Profile *piece)
{
	int error = gzip_write_message(writer->gzip, &piece->base);

	if (error && !writer->error)
		writer->error = error;
}

/* The number of a text that needs no escaping. */
static int64_t string_of(struct writer *writer, const char *text)
{
	int64_t number = string_index_add(writer->strings, text);

	if (number >= 0)
		return number;
	writer->error = (int)number;
	return 0;
}

static void write_function(struct writer *writer, const struct written *written)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	char name[FRAME_TEXT_SIZE];

	function.id = written->number;
	function.name = string_of(writer, frame_text(written->function, 0, false, name));
	line.function_id = written->number;
	location.id = written->number;
	location.mapping_id = MAPPING_ID;
	location.n_line = 1;
	location.line = &lines;
	piece.n_function = 1;
	piece.function = &functions;
	piece.n_location = 1;
	piece.location = &locations;
	write_piece(writer, &piece);
}

/* The number of a frame's location, written on its first occurrence. 0 when memory is short. */
static uint64_t location_of(struct writer *writer, const struct function *function)
{
	struct written *written;

	HASH_FIND_PTR(writer->functions, &function, written);
	if (written)
		return written->number;
	written = calloc(1, sizeof(*written));
	if (!written)
		return 0;
	written->function = function;
	HASH_ADD_PTR(writer->functions, function, written);
	if (!hash_added(&written->hh)) {
		free(written);
		return 0;
	}
	written->number = HASH_COUNT(writer->functions);
	write_function(writer, written);
	return written->number;
}

static int write_stack(void *context, const struct frame *frames, size_t count, const struct heap_sum *sum)
{
	struct writer *writer = context;
	int64_t values[VALUE_TYPES] = { (int64_t)sum->count, (int64_t)sum->bytes };
	uint64_t locations[FRAMES_MAX];
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	for (size_t i = 0; i < count; i++) {
		locations[i] = location_of(writer, frames[i].function);
		if (!locations[i])
			return -ENOMEM;
	}
	sample.n_location_id = count;
	sample.location_id = locations;
	sample.n_value = VALUE_TYPES;
	sample.value = values;
	piece.n_sample = 1;
	piece.sample = &samples;
	write_piece(writer, &piece);
	return writer->error;
}

static void write_about(struct writer *writer, const struct heap_side *side, const struct heap_view *view)
{
	struct session session = heap_profile_session(side, view);
	Pprof__ValueType types[VALUE_TYPES] = { PPROF__VALUE_TYPE__INIT, PPROF__VALUE_TYPE__INIT };
	Pprof__ValueType *pointers[VALUE_TYPES] = { &types[0], &types[1] };
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	struct function target = { .kind = FRAME_NATIVE, .name = session.target };
	char name[FRAME_TEXT_SIZE];

	/* The first string must be empty. */
	string_of(writer, "");
	types[0].type = string_of(writer, "inuse_objects");
	types[0].unit = string_of(writer, "count");
	types[1].type = string_of(writer, "inuse_space");
	types[1].unit = string_of(writer, "bytes");
	piece.n_sample_type = VALUE_TYPES;
	piece.sample_type = pointers;
	piece.default_sample_type = types[view->measure == HEAP_BY_COUNT ? 0 : 1].type;
	piece.time_nanos = (int64_t)session.start_unix_ns;
	mapping.id = MAPPING_ID;
	mapping.filename = string_of(writer, session.target ? frame_text(&target, 0, false, name) : "");
	mapping.has_functions = mapping.has_filenames = true;
	mapping.has_line_numbers = mapping.has_inline_frames = true;
	piece.n_mapping = 1;
	piece.mapping = &mappings;
	write_piece(writer, &piece);
}

static void write_strings(struct writer *writer)
{
	for (char *text = NULL; (text = string_index_next(writer->strings, text));) {
		Pprof__Profile piece = PPROF__PROFILE__INIT;

		piece.n_string_table = 1;
		piece.string_table = &text;
		write_piece(writer, &piece);
	}
}

static int write_all(struct writer *writer, const struct heap_side *side, const struct heap_view *view)
{
	const struct heap_view paths = { .measure = HEAP_BY_OWN, .group = view->group };
	struct functions *functions = functions_new();
	int error;

	if (!functions)
		return -ENOMEM;
	write_about(writer, side, view);
	error = heap_profile_each(side, &paths, functions, write_stack, writer);
	write_strings(writer);
	functions_free(functions);
	return error ? error : writer->error;
}

int heap_pprof_write(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	struct writer writer = { .gzip = gzip_new(out), .strings = string_index_new() };
	struct written *written, *next;
	int error = writer.gzip && writer.strings ? write_all(&writer, side, view) : -ENOMEM;
	int end = gzip_end(writer.gzip);

	HASH_ITER(hh, writer.functions, written, next) {
		HASH_DEL(writer.functions, written);
		free(written);
	}
	string_index_free(writer.strings);
	return error ? error : end;
}
