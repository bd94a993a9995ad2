/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_pprof.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/hash.h"
#include "output/formats/pprof_writer.h"
#include "output/heap_reports/heap_profile.h"
#include "output/heap_reports/heap_uncertain.h"
#include "output/labels/frame_text.h"

enum { VALUE_TYPES = 2, FRAMES_MAX = HEAP_DEPTH_MAX + 4 };

/* A function that was written, with its location of the same number. */
struct written {
	const struct function *function;
	uint64_t number;
	UT_hash_handle hh;
};

struct writer {
	struct pprof_writer *pprof;
	struct written *functions;
};

static void write_function(struct writer *writer, const struct written *written)
{
	Pprof__Function function = PPROF__FUNCTION__INIT;
	char name[FRAME_TEXT_SIZE];

	function.id = written->number;
	function.name = pprof_safe_text(writer->pprof, frame_text(written->function, 0, false, name));
	pprof_write_function(writer->pprof, &function);
	pprof_write_location(writer->pprof, written->number, written->number, 0);
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
	Pprof__Sample sample = PPROF__SAMPLE__INIT;

	for (size_t i = 0; i < count; i++) {
		locations[i] = location_of(writer, frames[i].function);
		if (!locations[i])
			return -ENOMEM;
	}
	sample.n_location_id = count;
	sample.location_id = locations;
	sample.n_value = VALUE_TYPES;
	sample.value = values;
	pprof_write_sample(writer->pprof, &sample);
	return pprof_writer_error(writer->pprof);
}

static void write_about(struct pprof_writer *pprof, const struct heap_side *side,
			const struct heap_view *view)
{
	struct session session = heap_profile_session(side, view);
	Pprof__ValueType types[VALUE_TYPES] = {
		pprof_value_type(pprof, "inuse_objects", "count"),
		pprof_value_type(pprof, "inuse_space", "bytes"),
	};
	Pprof__ValueType *pointers[VALUE_TYPES] = { &types[0], &types[1] };
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	char uncertain[HEAP_UNCERTAIN_SIZE];

	piece.n_sample_type = VALUE_TYPES;
	piece.sample_type = pointers;
	piece.default_sample_type = types[view->measure == HEAP_BY_COUNT ? 0 : 1].type;
	piece.time_nanos = (int64_t)session.start_unix_ns;
	pprof_write_piece(pprof, &piece);
	pprof_write_mapping(pprof, session.target);
	if (*heap_side_uncertain_text(side, uncertain))
		pprof_write_comment(pprof, pprof_safe_text(pprof, uncertain));
}

static int write_all(struct writer *writer, const struct heap_side *side, const struct heap_view *view)
{
	const struct heap_view paths = { .measure = HEAP_BY_OWN, .group = view->group };
	struct functions *functions = functions_new();
	int error;

	if (!functions)
		return -ENOMEM;
	write_about(writer->pprof, side, view);
	error = heap_profile_each(side, &paths, functions, write_stack, writer);
	functions_free(functions);
	return error;
}

int heap_pprof_write(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	struct writer writer = { .pprof = pprof_writer_new(out) };
	int end, error;

	if (!writer.pprof)
		return -ENOMEM;
	error = write_all(&writer, side, view);
	end = pprof_writer_end(writer.pprof);
	HASH_FREE_ALL(writer.functions);
	return error ? error : end;
}
