/* SPDX-License-Identifier: MIT */
#include "unwind/listing/listing_source.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"

enum {
	BATCH = 256,
	STRING_HEADER_MAX = 32,
	PLACE_NAME_MAX = 40, /* a longer name of source text is left out (lj_debug_pushloc) */
};

/*---- Strings ----*/

static bool is_string(const struct layout *layout, const uint8_t *header, uint32_t *ret_length)
{
	*ret_length = (uint32_t)load_bytes(header, layout->GCstr_len, 4);
	return load_bytes(header, layout->GChead_gct, 1) == GCT_STRING;
}

/* What is shown of a string with that length. */
static size_t shown_length(uint32_t length, unsigned cut)
{
	return length < cut ? length : cut;
}

static bool has_header(const struct layout *layout)
{
	return layout->GCstr_size > 0 && layout->GCstr_size <= STRING_HEADER_MAX &&
	       layout->GCstr_len + 4 <= layout->GCstr_size;
}

static void capture_batch(struct snapshot *snapshot, const struct layout *layout, const uint64_t *strings,
			  size_t count)
{
	struct memory_range ranges[BATCH];
	size_t lengths[BATCH];

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = strings[i],
						   .length = (size_t)layout->GCstr_size };
	snapshot_capture(snapshot, ranges, count);
	/* Capturing more may move what is captured. */
	for (size_t i = 0; i < count; i++) {
		uint32_t length;

		lengths[i] = 0;
		if (ranges[i].status == MEMORY_OK && is_string(layout, ranges[i].copy, &length))
			lengths[i] = shown_length(length, LISTING_NAME_MAX);
	}
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = strings[i] + (uint64_t)layout->GCstr_size,
						   .length = lengths[i] };
	snapshot_capture(snapshot, ranges, count);
}

void listing_capture_strings(struct snapshot *snapshot, const struct layout *layout, const uint64_t *strings,
			     size_t count)
{
	if (!has_header(layout))
		return;
	for (size_t done = 0; done < count; done += BATCH)
		capture_batch(snapshot, layout, strings + done, count - done < BATCH ? count - done : BATCH);
}

bool listing_is_string(const struct listing_source *source, uint64_t string, const char *text)
{
	const struct layout *layout = source->layout;
	uint8_t header[STRING_HEADER_MAX];
	char bytes[LISTING_NAME_MAX];
	uint32_t length;

	return has_header(layout) && strlen(text) <= LISTING_NAME_MAX &&
	       memory_read(source->memory, string, header, (size_t)layout->GCstr_size) == MEMORY_OK &&
	       is_string(layout, header, &length) && length == strlen(text) &&
	       memory_read(source->memory, string + (uint64_t)layout->GCstr_size, bytes, length) ==
		       MEMORY_OK &&
	       memcmp(bytes, text, length) == 0;
}

/* A character as jit.dump writes it; returns how many characters these are. */
static unsigned escape(unsigned char c, char ret_text[static 5])
{
	const char *const names = "\n\r\t", *const letters = "nrt";
	const char *name = c ? strchr(names, c) : NULL;

	if (name)
		return (unsigned)snprintf(ret_text, 5, "\\%c", letters[name - names]);
	if (c < ' ' || c == 0x7f)
		return (unsigned)snprintf(ret_text, 5, "\\%03u", c);
	ret_text[0] = (char)c;
	return 1;
}

bool listing_write_string(const struct listing_source *source, uint64_t string, unsigned cut, FILE *out)
{
	const struct layout *layout = source->layout;
	uint8_t header[STRING_HEADER_MAX], bytes[LISTING_STRING_MAX];
	uint32_t length;
	unsigned written = 0;

	if (!has_header(layout) ||
	    memory_read(source->memory, string, header, (size_t)layout->GCstr_size) != MEMORY_OK ||
	    !is_string(layout, header, &length) ||
	    memory_read(source->memory, string + (uint64_t)layout->GCstr_size, bytes,
			shown_length(length, cut)) != MEMORY_OK)
		return false;
	putc('"', out);
	for (size_t i = 0; i < shown_length(length, cut); i++) {
		char text[5];
		unsigned more = escape(bytes[i], text);

		/* Of a long string, so many characters are shown as they are written. */
		if (length > cut && written + more > cut)
			more = cut - written;
		fwrite(text, 1, more, out);
		written += more;
	}
	fputs(length > cut ? "\"~" : "\"", out);
	return true;
}

/*---- Cdata ----*/

/* GCcdata: a header, a C type's number, and what it holds (lj_obj.h); the numbers are lj_ctype.h's. */
enum { CDATA_MAX = 24, CTYPEID_SIZE = 2, CTID_INT64 = 11, CTID_UINT64 = 12 };

static size_t cdata_header(const struct layout *layout)
{
	return layout->gc64 ? 16 : 8;
}

void listing_capture_cdata(struct snapshot *snapshot, const struct layout *layout, const uint64_t *cdata,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct memory_range range = { .address = cdata[i],
					      .length = cdata_header(layout) + sizeof(uint64_t) };

		snapshot_capture(snapshot, &range, 1);
	}
}

void listing_write_cdata(const struct listing_source *source, uint64_t cdata, FILE *out)
{
	const struct layout *layout = source->layout;
	size_t header = cdata_header(layout);
	uint8_t bytes[CDATA_MAX];
	uint64_t type, value;

	if (memory_read(source->memory, cdata, bytes, header + sizeof(value)) == MEMORY_OK &&
	    load_bytes(bytes, layout->GChead_gct, 1) == GCT_CDATA) {
		type = load_bytes(bytes, layout->GChead_gct + 1, CTYPEID_SIZE);
		value = load_bytes(bytes, (int32_t)header, sizeof(value));
		if (type == CTID_INT64) {
			fprintf(out, "%" PRId64 "LL", (int64_t)value);
			return;
		}
		if (type == CTID_UINT64) {
			fprintf(out, "%" PRIu64 "ULL", value);
			return;
		}
	}
	fputs("cdata: ", out);
	listing_write_pointer(cdata, out);
}

/*---- Functions ----*/

void listing_place(const struct proto *proto, uint32_t line, char ret_place[static LISTING_PLACE_SIZE])
{
	const char *name = proto->chunkname ? proto->chunkname : "?";
	size_t length = strlen(name);

	if (proto->firstline == FIRSTLINE_BUILTIN) {
		snprintf(ret_place, LISTING_PLACE_SIZE, "builtin:%s", name);
		return;
	}
	if (*name == '@') {
		name++;
		for (const char *at = name; *at; at++)
			if (*at == '/' || *at == '\\')
				name = at + 1;
		snprintf(ret_place, LISTING_PLACE_SIZE, "%s:%" PRIu32, name, line);
	} else if (length > PLACE_NAME_MAX) {
		snprintf(ret_place, LISTING_PLACE_SIZE, "0x%08" PRIx64 ":%" PRIu32, proto->address, line);
	} else if (*name == '=') {
		snprintf(ret_place, LISTING_PLACE_SIZE, "%s:%" PRIu32, name + 1, line);
	} else {
		snprintf(ret_place, LISTING_PLACE_SIZE, "\"%s\":%" PRIu32, name, line);
	}
}

void listing_write_function(const struct listing_source *source, uint64_t function, FILE *out)
{
	const struct function_object *object = lua_objects_function(source->objects, function);
	char place[LISTING_PLACE_SIZE];

	if (!object || (object->ffid == FF_LUA && !object->proto)) {
		fputs("(?)", out);
	} else if (object->proto) {
		listing_place(object->proto, object->proto->firstline, place);
		fputs(place, out);
	} else if (object->ffid == FF_C) {
		fprintf(out, "C:%" PRIx64, object->f);
	} else if (*source->builtins->at[object->ffid].name) {
		fputs(source->builtins->at[object->ffid].name, out);
	} else {
		fprintf(out, "builtin #%u", object->ffid);
	}
}

/*---- Numbers ----*/

/* LuaJIT writes a denormal number as if it were normal. */
static void write_denormal(double number, FILE *out)
{
	char text[40];
	int exponent;

	snprintf(text, sizeof(text), "%+a", 2 * frexp(number, &exponent));
	fprintf(out, "%.*sp%d", (int)strcspn(text, "p"), text, exponent - 1);
}

void listing_write_number(double number, bool with_sign, FILE *out)
{
	if (isnan(number))
		fputs(with_sign ? "+nan" : "nan", out);
	else if (with_sign && number > 0 && number < 0x1p-1026)
		write_denormal(number, out);
	else
		fprintf(out, with_sign ? "%+.14g" : "%.14g", number);
}

void listing_write_pointer(uint64_t address, FILE *out)
{
	const unsigned high = address >> 32 ? 64u - (unsigned)__builtin_clzll(address) - 32u : 0;
	const int digits = high ? 8 + 2 + 2 * (int)((high - 1) / 8) : 8;

	if (address == 0)
		fputs("NULL", out);
	else
		fprintf(out, "0x%0*" PRIx64, digits, address);
}

/*---- Text in memory ----*/

bool listing_text_begin(struct listing_text *text)
{
	*text = (struct listing_text){ 0 };
	text->out = open_memstream(&text->text, &text->length);
	return text->out != NULL;
}

char *listing_text_end(struct listing_text *text)
{
	bool failed = ferror(text->out) != 0;

	if (fclose(text->out) == 0 && !failed)
		return text->text;
	free(text->text);
	return NULL;
}
