/* SPDX-License-Identifier: MIT */
#include "unwind/values/value_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/sample/utf8.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"
#include "unwind/values/ctype_text.h"
#include "unwind/values/live_ctypes.h"

/* Tags of values that are no objects (lj_obj.h: LJ_TNIL and the like). */
enum {
	TAG_FALSE = ~1,
	TAG_TRUE = ~2,
	TAG_CDATA = ~10,
	LIGHTUD_GC32 = -2, /* of a tag's higher half */
	LIGHTUD_SHIFT = 15,
	HEADER_MAX = LAYOUT_OBJECT_MAX,
	CHARACTER_MAX = 4, /* bytes of UTF-8 */
	CDATA_HEADER = 16, /* GCcdata: a header, a C type; what it holds comes next */
};

struct text {
	char *bytes;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	size_t room = VALUE_TEXT_SIZE - text->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		text->length += (size_t)length < room ? (size_t)length : room - 1;
}

/*---- Strings ----*/

/* The bytes of a UTF-8 character that begins so; 1 of what begins none. */
static size_t character_bytes(uint8_t first)
{
	return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

/* The end of the last whole UTF-8 character in a text that is cut. It is longer than a character. */
static size_t whole_characters(const uint8_t *bytes, size_t length)
{
	size_t last = length - 1;

	while (length - last < CHARACTER_MAX && utf8_continues((char)bytes[last]))
		last--;
	return length - last < character_bytes(bytes[last]) ? last : length;
}

/* The string's first bytes, at most max. False if it is not in the copy. */
static bool load_string(const struct value_reader *reader, uint64_t string, size_t max,
			uint8_t ret_bytes[static VALUE_STRING_BYTES], uint32_t *ret_length)
{
	const struct layout *layout = reader->layout;
	uint32_t length;
	uint8_t gct;

	if (!field_gct(reader->memory, layout, string, &gct) || gct != GCT_STRING ||
	    !memory_u32(reader->memory, string + (uint64_t)layout->GCstr_len, &length) ||
	    memory_read(reader->memory, string + (uint64_t)layout->GCstr_size, ret_bytes,
			length < max ? length : max) != MEMORY_OK)
		return false;
	*ret_length = length;
	return true;
}

static void add_quoted(struct text *text, const uint8_t *bytes, size_t length)
{
	add(text, "\"");
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\0')
			add(text, "\\0");
		else if (bytes[i] == '"' || bytes[i] == '\\')
			add(text, "\\%c", bytes[i]);
		else
			add(text, "%c", bytes[i]);
	}
	add(text, "\"");
}

static bool add_string(const struct value_reader *reader, struct text *text, uint64_t string, size_t max)
{
	uint8_t bytes[VALUE_STRING_BYTES];
	uint32_t length;

	if (!load_string(reader, string, max, bytes, &length))
		return false;
	if (length <= max) {
		add_quoted(text, bytes, length);
		return true;
	}
	add_quoted(text, bytes, whole_characters(bytes, max));
	add(text, "... (%" PRIu32 " bytes)", length);
	return true;
}

/*---- Numbers and other values that are no objects ----*/

static void add_double(struct text *text, double number)
{
	char digits[40];

	if (number != number) {
		add(text, "nan"); /* of any sign: the interpreter keeps notes of its own in some */
		return;
	}
	snprintf(digits, sizeof(digits), "%.14g", number);
	if (strtod(digits, NULL) != number)
		snprintf(digits, sizeof(digits), "%.17g", number);
	add(text, "%s", digits);
}

static bool is_light_userdata(bool gc64, int32_t tag)
{
	return gc64 ? tag == TAG_LIGHTUD : tag >> LIGHTUD_SHIFT == LIGHTUD_GC32 && tag != TAG_INTEGER_GC32;
}

/* Integers and doubles; false if it is none. */
static bool add_number(const struct value_reader *reader, struct text *text, uint64_t value)
{
	bool is_integer;
	double number;

	if (!tvalue_is_number(reader->layout->gc64, value, &is_integer))
		return false;
	if (is_integer) {
		add(text, "%" PRId32, (int32_t)(uint32_t)value);
		return true;
	}
	memcpy(&number, &value, sizeof(number));
	add_double(text, number);
	return true;
}

/* The type of a value that is no object; NULL if it is one. */
static const char *add_plain(const struct value_reader *reader, struct text *text, uint64_t value)
{
	int32_t tag = tvalue_tag(reader->layout->gc64, value);

	if (is_light_userdata(reader->layout->gc64, tag)) {
		add(text, "light userdata");
		return "userdata";
	}
	switch (tag) {
	case TAG_NIL: add(text, "nil"); return "nil";
	case TAG_FALSE: add(text, "false"); return "boolean";
	case TAG_TRUE: add(text, "true"); return "boolean";
	default: return add_number(reader, text, value) ? "number" : NULL;
	}
}

static const char *object_type(int32_t tag)
{
	switch (tag) {
	case TAG_STR: return "string";
	case TAG_THREAD: return "thread";
	case TAG_FUNC: return "function";
	case TAG_CDATA: return "cdata";
	case TAG_TAB: return "table";
	case TAG_UDATA: return "userdata";
	default: return NULL;
	}
}

/*---- Tables ----*/

/* A value in a table: strings are cut short, other objects are an address. */
static bool add_brief(const struct value_reader *reader, struct text *text, uint64_t value)
{
	int32_t tag = tvalue_tag(reader->layout->gc64, value);
	uint64_t object = tvalue_object(reader->layout->gc64, value);

	if (add_plain(reader, text, value))
		return true;
	if (tag == TAG_STR)
		return add_string(reader, text, object, VALUE_KEY_SHOWN);
	if (!object_type(tag))
		return false;
	add(text, "%s: 0x%" PRIx64, object_type(tag), object);
	return true;
}

static bool is_identifier(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalpha(bytes[i]) && bytes[i] != '_' && (i == 0 || !isdigit(bytes[i])))
			return false;
	return length > 0;
}

static bool add_key(const struct value_reader *reader, struct text *text, uint64_t key)
{
	uint8_t bytes[VALUE_STRING_BYTES];
	uint32_t length;
	bool known;

	if (tvalue_tag(reader->layout->gc64, key) == TAG_STR) {
		if (!load_string(reader, tvalue_object(reader->layout->gc64, key), VALUE_KEY_SHOWN, bytes,
				 &length))
			return false;
		if (length <= VALUE_KEY_SHOWN && is_identifier(bytes, length)) {
			add(text, "%.*s", (int)length, (const char *)bytes);
			return true;
		}
	}
	add(text, "[");
	known = add_brief(reader, text, key);
	add(text, "]");
	return known;
}

struct entries {
	const struct value_reader *reader;
	struct text text; /* of the first ones */
	uint64_t count;
};

static void add_entry(struct entries *entries, uint64_t key, bool key_is_index, uint64_t value)
{
	const size_t before = entries->text.length;
	struct text *text = &entries->text;
	bool known = true;

	if (tvalue_tag(entries->reader->layout->gc64, value) == TAG_NIL)
		return;
	if (entries->count++ >= VALUE_ENTRIES_SHOWN)
		return;
	add(text, "%s", entries->count > 1 ? ", " : "");
	if (key_is_index)
		add(text, "[%" PRIu64 "]", key);
	else
		known = add_key(entries->reader, text, key);
	add(text, " = ");
	if (known && add_brief(entries->reader, text, value))
		return;
	text->length = before;
	add(text, "%s?", entries->count > 1 ? ", " : "");
}

/* Count and show the entries of one part of a table. False if not all of it is in the copy. */
static bool read_part(struct entries *entries, uint64_t address, uint64_t bytes, uint64_t all, bool is_array)
{
	enum { PART_MAX = VALUE_TABLE_NODES * 32 };
	const struct layout *layout = entries->reader->layout;
	uint64_t size = is_array ? SLOT_SIZE : (uint64_t)layout->Node_size;
	uint8_t part[PART_MAX];

	if (bytes > PART_MAX ||
	    memory_read(entries->reader->memory, address, part, (size_t)bytes) != MEMORY_OK)
		return all == 0;
	for (uint64_t i = 0; i < bytes / size; i++) {
		const uint8_t *entry = part + i * size;

		if (is_array)
			add_entry(entries, i, true, load_bytes(entry, 0, SLOT_SIZE));
		else
			add_entry(entries, load_bytes(entry, layout->Node_key, SLOT_SIZE), false,
				  load_bytes(entry, layout->Node_val, SLOT_SIZE));
	}
	return bytes / size == all;
}

static bool add_table(const struct value_reader *reader, struct text *text, uint64_t table)
{
	const struct layout *layout = reader->layout;
	char bytes[VALUE_TEXT_SIZE];
	struct entries entries = { .reader = reader, .text = { .bytes = bytes } };
	uint8_t header[HEADER_MAX];
	uint64_t address, length;
	bool whole;

	if (memory_read(reader->memory, table, header, (size_t)layout->GCtab_size) != MEMORY_OK ||
	    load_bytes(header, layout->GChead_gct, 1) != GCT_TABLE)
		return false;
	bytes[0] = '\0';
	length = value_array_bytes(layout, header, &address);
	whole = read_part(&entries, address, length, load_bytes(header, layout->GCtab_asize, 4), true);
	length = value_node_bytes(layout, header, &address);
	whole &= read_part(&entries, address, length, load_bytes(header, layout->GCtab_hmask, 4) + 1, false);
	add(text, "table: 0x%" PRIx64, table);
	if (whole && entries.count == 0)
		add(text, " (empty)");
	else if (whole)
		add(text, " (%" PRIu64 " entr%s)", entries.count, entries.count == 1 ? "y" : "ies");
	else
		add(text, " (%" PRIu64 " or more entries)", entries.count);
	if (entries.count)
		add(text, " {%s%s}", bytes, entries.count > VALUE_ENTRIES_SHOWN || !whole ? ", ..." : "");
	return true;
}

/*---- Functions ----*/

static bool add_lua_function(const struct value_reader *reader, struct text *text, uint64_t pc)
{
	const struct layout *layout = reader->layout;
	uint64_t proto = pc - (uint64_t)layout->GCproto_size, chunk;
	char name[VALUE_STRING_BYTES + 1], file[CHUNKNAME_MAX + 16], *shown = file;
	uint8_t bytes[VALUE_STRING_BYTES];
	uint32_t firstline, numline, length, kept;

	if (!memory_u32(reader->memory, proto + (uint64_t)layout->GCproto_firstline, &firstline) ||
	    !memory_u32(reader->memory, proto + (uint64_t)layout->GCproto_numline, &numline) ||
	    !field_reference(reader->memory, layout, proto + (uint64_t)layout->GCproto_chunkname, &chunk) ||
	    !load_string(reader, chunk, VALUE_STRING_BYTES, bytes, &length))
		return false;
	kept = length < VALUE_STRING_BYTES ? length : VALUE_STRING_BYTES;
	memcpy(name, bytes, kept);
	name[kept] = '\0';
	if (firstline == FIRSTLINE_BUILTIN) {
		add(text, " %s [builtin]", name);
		return true;
	}
	lua_chunk_file(name, file);
	if (*shown == '@' || *shown == '=')
		shown++;
	/* Stripped bytecode has neither: it may be any function (lua_names.h). */
	add(text, firstline || !numline ? " %s" : " main chunk %s", shown);
	if (kept < length)
		add(text, "...");
	if (firstline)
		add(text, ":%" PRIu32, firstline);
	return true;
}

static bool add_function(const struct value_reader *reader, struct text *text, uint64_t function)
{
	const struct layout *layout = reader->layout;
	char name[VALUE_FUNCTION_SIZE];
	uint64_t pc;
	uint8_t ffid, gct;

	if (!field_gct(reader->memory, layout, function, &gct) || gct != GCT_FUNCTION ||
	    !memory_u8(reader->memory, function + (uint64_t)layout->GCfunc_ffid, &ffid) ||
	    !field_reference(reader->memory, layout, function + (uint64_t)layout->GCfunc_pc, &pc))
		return false;
	add(text, "function: 0x%" PRIx64, function);
	if (ffid == FF_LUA)
		return add_lua_function(reader, text, pc);
	if (reader->name_function && reader->name_function(reader->context, function, name))
		add(text, " %s", name);
	return true;
}

/*---- C data ----*/

/* A number or pointer in a cdata; false if it holds something else. */
static bool add_c_value(struct text *text, const struct ctype *type, const uint8_t *bytes)
{
	uint64_t value;
	double number;
	float single;

	if (type->size == 0 || type->size > sizeof(value) || (type->size & (type->size - 1)))
		return false;
	value = load_bytes(bytes, 0, type->size);
	if (ctype_kind(type) == CT_PTR) {
		add(text, "0x%" PRIx64, value);
		return true;
	}
	if (ctype_kind(type) != CT_NUM && ctype_kind(type) != CT_ENUM)
		return false;
	if (ctype_kind(type) == CT_NUM && ctype_is_floating(type)) {
		memcpy(&number, bytes, sizeof(number));
		memcpy(&single, bytes, sizeof(single));
		add_double(text, type->size == sizeof(double) ? number : (double)single);
	} else if (ctype_kind(type) == CT_NUM && ctype_is_unsigned(type)) {
		add(text, "%" PRIu64, value);
	} else {
		unsigned shift = 64 - 8 * type->size;

		add(text, "%" PRId64, (int64_t)(value << shift) >> shift);
	}
	return true;
}

static bool add_cdata(const struct value_reader *reader, struct text *text, uint64_t cdata)
{
	const int32_t type_at = reader->layout->GChead_gct + 1;
	const size_t header = reader->layout->gc64 ? CDATA_HEADER : CDATA_HEADER / 2;
	struct live_ctypes context = { .memory = reader->live, .layout = reader->layout, .g = reader->g };
	const struct ctypes types = { .get = live_ctypes_get, .context = &context };
	uint8_t bytes[CDATA_HEADER + VALUE_CDATA_BYTES], gct;
	char name[CTYPE_TEXT_SIZE];
	struct ctype raw;
	uint32_t id;
	bool is_raw, names_type;

	if (!field_gct(reader->memory, reader->layout, cdata, &gct) || gct != GCT_CDATA ||
	    memory_read(reader->memory, cdata, bytes, sizeof(bytes)) != MEMORY_OK)
		return false;
	id = (uint32_t)load_bytes(bytes, type_at, 2);
	if (!live_ctypes_load(&context) ||
	    !ctype_object_text(&types, id, (uint32_t)load_bytes(bytes, (int32_t)header, 4), name))
		return false;
	is_raw = ctype_raw(&types, id, &raw);
	names_type = ctype_is_ctypeid(&types, id);
	if (!live_ctypes_stay(&context))
		return false;
	if (names_type) {
		add(text, "%s", name);
		return true;
	}
	add(text, "cdata<%s>: ", name);
	if (!is_raw || !add_c_value(text, &raw, bytes + header))
		add(text, "0x%" PRIx64, cdata);
	return true;
}

static bool add_userdata(const struct value_reader *reader, struct text *text, uint64_t userdata)
{
	const struct layout *layout = reader->layout;
	uint32_t length;
	uint8_t gct;

	if (!field_gct(reader->memory, layout, userdata, &gct) || gct != GCT_USERDATA ||
	    !memory_u32(reader->memory, userdata + (uint64_t)layout->GCudata_len, &length))
		return false;
	add(text, "userdata: 0x%" PRIx64 " (%" PRIu32 " bytes)", userdata, length);
	return true;
}

static bool add_object(const struct value_reader *reader, struct text *text, int32_t tag, uint64_t object)
{
	uint8_t gct;

	switch (tag) {
	case TAG_STR: return add_string(reader, text, object, VALUE_STRING_SHOWN);
	case TAG_TAB: return add_table(reader, text, object);
	case TAG_FUNC: return add_function(reader, text, object);
	case TAG_CDATA: return add_cdata(reader, text, object);
	case TAG_UDATA: return add_userdata(reader, text, object);
	case TAG_THREAD:
		add(text, "thread: 0x%" PRIx64, object);
		return field_gct(reader->memory, reader->layout, object, &gct) && gct == GCT_THREAD;
	default: return false;
	}
}

const char *value_text(const struct value_reader *reader, uint64_t value,
		       char ret_text[static VALUE_TEXT_SIZE])
{
	const bool gc64 = reader->layout->gc64;
	const int32_t tag = tvalue_tag(gc64, value);
	struct text text = { .bytes = ret_text };
	const char *type;

	ret_text[0] = '\0';
	type = add_plain(reader, &text, value);
	if (type)
		return type;
	if (object_type(tag) && add_object(reader, &text, tag, tvalue_object(gc64, value)))
		return object_type(tag);
	ret_text[0] = '\0';
	return NULL;
}
