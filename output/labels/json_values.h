/* SPDX-License-Identifier: MIT */
/*
 * json_values: the parts of jansson documents.
 */
#ifndef LJSPY_JSON_VALUES_H
#define LJSPY_JSON_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* Text of the target as valid UTF-8 without control characters; long text is cut. null for NULL. */
json_t *json_value_text(const char *text);

/* A number; null for 0, which means unknown. */
json_t *json_value_number(uint64_t number);

/* A string "0x7f...", because a JSON number cannot hold every address. */
json_t *json_value_address(uint64_t address);

/* Append to an array. Takes over both references. The array; NULL if either is NULL or memory is short. */
json_t *json_value_append(json_t *array, json_t *value);

/* Set a member of an object. Takes over both references. The object; NULL as above. */
json_t *json_value_set(json_t *object, const char *name, json_t *value);

/*
 * Write a borrowed document. False when it is NULL or memory is short; for errors of the stream see ferror().
 */
bool json_write_document(FILE *out, const json_t *document);

/*
 * Write the document of a command that inspects processes: its version and
 * processes, a borrowed array with one value for each. False as above.
 */
bool json_write_processes(FILE *out, int version, json_t *processes);

#endif
