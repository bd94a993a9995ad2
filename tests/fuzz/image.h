/* SPDX-License-Identifier: MIT */
/*
 * image: a moment of a real LuaJIT process, kept in a file, to be spoilt.
 *
 * Made by make_image.c: what ljspy read of the process at that moment, and the
 * registers. A fuzz target's input says what is different about it: pointers
 * that lead elsewhere, lengths and types that are wrong, objects that are made
 * up. So a few bytes are enough to have a process that lies at one place and
 * is sound at all others.
 *
 *	input  = count:u8 change{count} rest
 *	change = op:u8 place:u24 value		see change() in image.c
 *
 * The rest is what lies at IMAGE_FREE, over and over.
 *
 *	file   = zstd("vm BEGIN END FFI_CALL FFI_CALL_END\n" "g ADDRESS\n"
 *		      "registers" 19 numbers "\n"
 *		      "module BEGIN END BASE\n"*
 *		      "layout LENGTH\n" byte{LENGTH}	layout_text_write()
 *		      ("range ADDRESS LENGTH\n" byte{LENGTH})*)
 */
#ifndef LJSPY_TESTS_FUZZ_IMAGE_H
#define LJSPY_TESTS_FUZZ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/recognise/recognise.h"
#include "memory/memory.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"

enum {
	IMAGES_MAX = 64,
	SEGMENTS_MAX = 65536,
	MODULES_MAX = 32,
	IMAGE_BYTES_MAX = 16 << 20,
	IMAGE_FREE = 0x70000000, /* where nothing of a process lies; reachable by 32-bit references */
	IMAGE_FREE_BYTES = 1 << 16,
};

struct segment {
	uint64_t address;
	size_t length;
	uint8_t *bytes;
};

struct memory_image {
	struct memory memory;
	struct segment *segments; /* ascending; they do not touch */
	size_t segment_count;
	size_t word_count;      /* in all segments */
	uint8_t *bytes, *sound; /* of all segments, as they are and as they were */
	size_t byte_count;
	uint8_t free_bytes[IMAGE_FREE_BYTES];
	struct registers registers, sound_registers;
	struct vm_code vm;
	uint64_t g;
	struct module modules[MODULES_MAX]; /* begin, end and base only */
	size_t module_count;
};

/*
 * The image that the next byte of the input chooses among the files of the folder, in the order
 * of their names, sound again and then changed as the input says. The bits of flags do not
 * choose: they are the caller's, and returned in *ret_flags. A program has images of one folder;
 * if one cannot be read, it ends.
 */
struct memory_image *memory_image_choose(const char *folder, struct fuzz_input *input, uint8_t flags,
					 uint8_t *ret_flags);

#endif
