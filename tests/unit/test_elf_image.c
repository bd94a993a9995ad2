/* SPDX-License-Identifier: MIT */
/* An ELF file as it is mapped: where its parts are, and what of its headers is not believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/module/elf_image.h"
#include "tests/unit/made_up_memory.h"

enum { AT = MADE_UP_AT, HEADERS = 0x100 /* where the program headers are in the file */ };

static Elf64_Ehdr header;
static Elf64_Phdr headers[ELF_IMAGE_SEGMENTS_MAX + 1];
static struct elf_image image;

static int begin(void **state)
{
	(void)state;
	header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
			       .e_machine = EM_X86_64,
			       .e_phoff = HEADERS,
			       .e_phentsize = sizeof(Elf64_Phdr),
			       .e_phnum = 4 };
	memset(headers, 0, sizeof(headers));
	headers[0] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME, .p_offset = 0x900, .p_vaddr = 0x400900 };
	headers[1] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x400000, .p_memsz = 0x1000, .p_flags = PF_R
	};
	headers[2] = (Elf64_Phdr){ .p_type = PT_LOAD,
				   .p_offset = 0x1000,
				   .p_vaddr = 0x402000,
				   .p_memsz = 0x2345,
				   .p_flags = PF_R | PF_X };
	headers[3] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = 0x1100, .p_vaddr = 0x402100 };
	image = (struct elf_image){ .machine = 1 };
	return 0;
}

static enum elf_image_status open_image(void)
{
	struct memory *memory = made_up_memory_begin();

	put_bytes(AT, &header, sizeof(header));
	put_bytes(AT + HEADERS, headers, sizeof(headers));
	return elf_image_open(memory, AT, &image);
}

static void parts_are_where_the_first_segment_was_put(void **state)
{
	(void)state;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_int_equal(image.machine, EM_X86_64);
	assert_int_equal(image.bias, AT - 0x400000);
	assert_int_equal(image.segment_count, 2);
	assert_int_equal(image.segments[0].begin, AT);
	assert_int_equal(image.segments[0].end, AT + 0x1000);
	assert_int_equal(image.segments[0].flags, PF_R);
	assert_int_equal(image.segments[1].begin, AT + 0x2000);
	assert_int_equal(image.segments[1].end, AT + 0x4345);
	assert_int_equal(image.segments[1].flags, PF_R | PF_X);
	assert_int_equal(image.eh_frame_hdr, AT + 0x900);
	assert_int_equal(image.dynamic, AT + 0x2100);
	/* Of several segments with the file's first byte, the first one counts. */
	headers[2].p_offset = 0;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_int_equal(image.bias, AT - 0x400000);
	/* It need have neither. */
	header.e_phnum = 1;
	memmove(headers, headers + 1, sizeof(headers[0]));
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_int_equal(image.eh_frame_hdr, 0);
	assert_int_equal(image.dynamic, 0);
}

static void an_address_is_in_the_segment_that_holds_it(void **state)
{
	(void)state;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_null(elf_image_segment(&image, AT - 1));
	assert_ptr_equal(elf_image_segment(&image, AT), &image.segments[0]);
	assert_ptr_equal(elf_image_segment(&image, AT + 0xfff), &image.segments[0]);
	assert_null(elf_image_segment(&image, AT + 0x1000));
	assert_ptr_equal(elf_image_segment(&image, AT + 0x2000), &image.segments[1]);
	assert_ptr_equal(elf_image_segment(&image, AT + 0x4344), &image.segments[1]);
	assert_null(elf_image_segment(&image, AT + 0x4345));
}

static void an_image_of_another_machine_is_said_to_be_one(void **state)
{
	(void)state;
	header.e_machine = EM_AARCH64;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_int_equal(image.machine, EM_AARCH64);
	header.e_machine = EM_386;
	header.e_ident[EI_CLASS] = ELFCLASS32; /* whose headers are others */
	header.e_phentsize = 0;
	assert_int_equal(open_image(), ELF_IMAGE_OTHER_MACHINE);
	assert_int_equal(image.machine, EM_386);
	begin(state);
	header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_image(), ELF_IMAGE_OTHER_MACHINE);
}

static void what_is_no_image_is_malformed(void **state)
{
	for (int i = 0; i < 6; i++) {
		begin(state);
		switch (i) {
		case 0: header.e_ident[3] = 'f'; break;
		case 1: header.e_ident[EI_CLASS] = ELFCLASS32; break;
		case 2: header.e_phentsize++; break;
		case 3:
			header.e_phnum = 0;
			header.e_phoff = UINT64_MAX;
			break;
		case 4: header.e_phnum = ELF_IMAGE_SEGMENTS_MAX + 1; break;
		default: headers[1].p_offset = 0x1000; break; /* where it is mapped is unknown */
		}
		assert_int_equal(open_image(), ELF_IMAGE_MALFORMED);
		assert_int_equal(image.machine, 1); /* untouched */
	}
	begin(state);
	header.e_phnum = ELF_IMAGE_SEGMENTS_MAX;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	for (size_t i = 0; i < ELF_IMAGE_SEGMENTS_MAX; i++)
		headers[i] = headers[2];
	headers[0] = headers[1] = (Elf64_Phdr){ .p_type = PT_LOAD };
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	assert_int_equal(image.segment_count, ELF_IMAGE_SEGMENTS_MAX);
}

static void segments_have_a_bounded_size(void **state)
{
	(void)state;
	headers[2].p_memsz = ELF_IMAGE_SEGMENT_BYTES_MAX;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
	headers[2].p_memsz++;
	assert_int_equal(open_image(), ELF_IMAGE_MALFORMED);
	/* Nor do they go beyond the last address. */
	headers[2].p_memsz = 0x2000;
	headers[2].p_vaddr = 0x400000 - AT - 0x1000;
	assert_int_equal(open_image(), ELF_IMAGE_MALFORMED);
	headers[2].p_memsz = 0xfff;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
}

static void headers_that_cannot_be_read_are_unreadable(void **state)
{
	struct memory *memory = made_up_memory_begin();

	(void)state;
	assert_int_equal(elf_image_open(memory, AT - 1, &image), ELF_IMAGE_UNREADABLE);
	header.e_phoff = MADE_UP_BYTES - 4 * sizeof(headers[0]) + 1;
	assert_int_equal(open_image(), ELF_IMAGE_UNREADABLE);
	header.e_phoff = HEADERS;
	assert_int_equal(open_image(), ELF_IMAGE_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(parts_are_where_the_first_segment_was_put),
		TEST(an_address_is_in_the_segment_that_holds_it),
		TEST(an_image_of_another_machine_is_said_to_be_one),
		TEST(what_is_no_image_is_malformed),
		TEST(segments_have_a_bounded_size),
		TEST(headers_that_cannot_be_read_are_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
