/* SPDX-License-Identifier: MIT */
/*
 * json_values: what documents of jansson are put together from.
 */
#ifndef LJSPY_JSON_VALUES_H
#define LJSPY_JSON_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* Text of the target, as valid UTF-8 without control characters, long ones cut; null for NULL. */
json_t *json_value_text(const char *text);

/* 0 stands for what is not known: null. */
json_t *json_value_number(uint64_t number);

/* A number of JSON does not hold every address: "0x7f...". */
json_t *json_value_address(uint64_t address);

/* Add to an array, taking over both; NULL if either is, or if memory is short. */
json_t *json_value_append(json_t *array, json_t *value);

/*
 * Write the document of a command that looks at processes: its version and one
 * value for each. False when memory is short; what the stream has, is told by
 * ferror().
 */
bool json_write_processes(FILE *out, int version, json_t *processes);

#endif
