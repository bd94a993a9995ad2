/* SPDX-License-Identifier: MIT */
#include "output/labels/json_values.h"

#include <inttypes.h>

#include "output/labels/escape.h"

enum { TEXT_MAX = 8192 }; /* bytes of one name or path; longer ones are cut */

json_t *json_value_text(const char *text)
{
	char escaped[TEXT_MAX];

	if (!text)
		return json_null();
	escape_text(ESCAPE_PLAIN, text, escaped, sizeof(escaped));
	return json_string(escaped);
}

json_t *json_value_number(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

json_t *json_value_address(uint64_t address)
{
	char text[2 + 16 + 1];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	return json_string(text);
}

json_t *json_value_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) == 0)
		return array;
	json_decref(array);
	return NULL;
}

json_t *json_value_set(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) == 0)
		return object;
	json_decref(object);
	return NULL;
}

bool json_write_document(FILE *out, const json_t *document)
{
	bool good = document && json_dumpf(document, out, JSON_INDENT(1)) == 0;

	if (good)
		putc('\n', out);
	return good || ferror(out);
}

bool json_write_processes(FILE *out, int version, json_t *processes)
{
	json_t *document = json_pack("{s:i, s:O}", "version", version, "processes", processes);
	bool good = json_write_document(out, document);

	json_decref(document);
	return good;
}
