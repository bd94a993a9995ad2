/* SPDX-License-Identifier: MIT */
/*
 * fuzz: what the fuzz targets share.
 *
 * Each fuzz_*.c is a program with one entry, as libFuzzer wants it: given any
 * bytes, ljspy's parser of them must come to an end without touching what is
 * not its own. `make fuzz` lets libFuzzer look for bytes with which it does
 * not; `make replay` runs every kept input of tests/fuzz/inputs once more,
 * without libFuzzer. Results that are wrong in themselves end the program.
 */
#ifndef LJSPY_TESTS_FUZZ_H
#define LJSPY_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "luajit-layouts/tables.h"
#include "memory/memory.h"

/* Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What of the input was not taken yet. */
struct fuzz_input {
	const uint8_t *at, *end;
};

struct fuzz_input fuzz_input(const uint8_t *data, size_t size);
size_t fuzz_left(const struct fuzz_input *input);

/* A little-endian number of that many bytes (at most 8); what is missing is zero. */
uint64_t fuzz_take(struct fuzz_input *input, size_t bytes);

/* What is left of the input as the memory at FUZZ_BASE of a target. */
enum { FUZZ_BASE = 0x400000 };

struct fuzz_memory {
	struct memory memory;
	const uint8_t *bytes;
	size_t size;
};

struct fuzz_memory fuzz_memory(const struct fuzz_input *input);

/* The first row of each table of layouts that holds for LAYOUT_X64_GC32 or LAYOUT_X64_GC64. */
const struct layout *fuzz_layout(enum layout_mode mode);

/* A file with these bytes, read from its beginning; to be closed. Ends the program if there can be none. */
int fuzz_file(const uint8_t *bytes, size_t size);
FILE *fuzz_stream(const uint8_t *bytes, size_t size);

/* Ends the program, telling why, if what must hold does not. */
void fuzz_check(bool holds, const char *what);

/* Is it valid UTF-8 on lines of printable characters? As every text that ljspy writes has to be. */
bool fuzz_is_clean(const char *text, size_t length);

#endif
