/* SPDX-License-Identifier: MIT */
#include "output/formats/pprof_writer.h"

#include <errno.h>
#include <stdlib.h>

#include "output/labels/escape.h"
#include "output/labels/frame_text.h"
#include "output/labels/gzip.h"
#include "output/labels/string_index.h"

enum { MAPPING_ID = 1 };

struct pprof_writer {
	struct gzip *gzip;
	struct string_index *strings;
	int error; /* the first one */
};

/*---- Elements ----*/

void pprof_write_piece(struct pprof_writer *writer, const Pprof__Profile *piece)
{
	int error = gzip_write_message(writer->gzip, &piece->base);

	if (error)
		pprof_writer_fail(writer, error);
}

void pprof_write_sample(struct pprof_writer *writer, Pprof__Sample *sample)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	piece.n_sample = 1;
	piece.sample = &sample;
	pprof_write_piece(writer, &piece);
}

void pprof_write_function(struct pprof_writer *writer, Pprof__Function *function)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	piece.n_function = 1;
	piece.function = &function;
	pprof_write_piece(writer, &piece);
}

void pprof_write_location(struct pprof_writer *writer, uint64_t id, uint64_t function_id, int64_t line)
{
	Pprof__Line message = PPROF__LINE__INIT, *lines = &message;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	message.function_id = function_id;
	message.line = line;
	location.id = id;
	location.mapping_id = MAPPING_ID;
	location.n_line = 1;
	location.line = &lines;
	piece.n_location = 1;
	piece.location = &locations;
	pprof_write_piece(writer, &piece);
}

/* The mapping says that readers have nothing to look up in it. */
void pprof_write_mapping(struct pprof_writer *writer, const char *target)
{
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	mapping.id = MAPPING_ID;
	mapping.filename = pprof_target_text(writer, target);
	mapping.has_functions = mapping.has_filenames = true;
	mapping.has_line_numbers = mapping.has_inline_frames = true;
	piece.n_mapping = 1;
	piece.mapping = &mappings;
	pprof_write_piece(writer, &piece);
}

void pprof_write_comment(struct pprof_writer *writer, int64_t text)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;

	piece.n_comment = 1;
	piece.comment = &text;
	pprof_write_piece(writer, &piece);
}

/*---- Texts ----*/

int64_t pprof_safe_text(struct pprof_writer *writer, const char *text)
{
	int64_t number = string_index_add(writer->strings, text);

	if (number >= 0)
		return number;
	pprof_writer_fail(writer, (int)number);
	return 0;
}

int64_t pprof_target_text(struct pprof_writer *writer, const char *text)
{
	char escaped[FRAME_TEXT_SIZE];

	escape_text(ESCAPE_PLAIN, text ? text : "", escaped, sizeof(escaped));
	return pprof_safe_text(writer, escaped);
}

Pprof__ValueType pprof_value_type(struct pprof_writer *writer, const char *type, const char *unit)
{
	Pprof__ValueType message = PPROF__VALUE_TYPE__INIT;

	message.type = pprof_safe_text(writer, type);
	message.unit = pprof_safe_text(writer, unit);
	return message;
}

static void write_texts(struct pprof_writer *writer)
{
	for (char *text = NULL; (text = string_index_next(writer->strings, text));) {
		Pprof__Profile piece = PPROF__PROFILE__INIT;

		piece.n_string_table = 1;
		piece.string_table = &text;
		pprof_write_piece(writer, &piece);
	}
}

/*---- The writer ----*/

static int end(struct pprof_writer *writer)
{
	int error = gzip_end(writer->gzip);

	if (writer->error)
		error = writer->error;
	string_index_free(writer->strings);
	free(writer);
	return error;
}

struct pprof_writer *pprof_writer_new(FILE *out)
{
	struct pprof_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->gzip = gzip_new(out);
	writer->strings = string_index_new();
	/* The first text must be the empty one. */
	if (writer->gzip && writer->strings && string_index_add(writer->strings, "") == 0)
		return writer;
	end(writer);
	return NULL;
}

int pprof_writer_end(struct pprof_writer *writer)
{
	write_texts(writer);
	return end(writer);
}

int pprof_writer_error(const struct pprof_writer *writer)
{
	return writer->error;
}

void pprof_writer_fail(struct pprof_writer *writer, int error)
{
	if (!writer->error)
		writer->error = error;
}
