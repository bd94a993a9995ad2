/* SPDX-License-Identifier: MIT */
/* A module's file, read as the memory that it is mapped to. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "luajit-layouts/module/elf_headers.h"
#include "src/linux/files/file_image.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(errands_pause);

enum {
	BASE = 0x7000000,
	CODE_AT = 0x3000, /* in memory, from the file's first address on */
	CODE_OFFSET = 0x1000,
	CODE_LENGTH = 3 << 20, /* more than is read at once */
	DATA_AT = CODE_AT + CODE_LENGTH + 0x2000,
	DATA_OFFSET = CODE_OFFSET + CODE_LENGTH,
	DATA_IN_FILE = 0x100,
	DATA_LENGTH = 0x800,
	VADDR = 0x400000, /* of the first byte, as the file asks for it */
};

static char path[] = "/tmp/test_file_image.XXXXXX";
static uint8_t code[CODE_LENGTH], copy[CODE_LENGTH];
static struct {
	Elf64_Ehdr elf;
	Elf64_Phdr segments[4];
} head;

static void write_at(int fd, const void *bytes, size_t length, off_t offset)
{
	assert_int_equal(pwrite(fd, bytes, length, offset), length);
}

static void write_file(int fd)
{
	static const uint8_t data[DATA_IN_FILE] = { 1, 2, 3 };

	assert_int_equal(ftruncate(fd, 0), 0);
	write_at(fd, &head, sizeof(head), 0);
	write_at(fd, code, sizeof(code), CODE_OFFSET);
	write_at(fd, data, sizeof(data), DATA_OFFSET);
}

static int begin(void **state)
{
	int fd;

	(void)state;
	strcpy(path + sizeof(path) - sizeof("XXXXXX"), "XXXXXX");
	fd = mkstemp(path);
	memset(&head, 0, sizeof(head));
	memcpy(head.elf.e_ident, ELFMAG, SELFMAG);
	head.elf.e_ident[EI_CLASS] = ELFCLASS64;
	head.elf.e_ident[EI_DATA] = ELFDATA2LSB;
	head.elf.e_machine = EM_X86_64;
	head.elf.e_phoff = sizeof(head.elf);
	head.elf.e_phentsize = sizeof(Elf64_Phdr);
	head.elf.e_phnum = 4;
	/* Its address says nothing: it is not loaded. */
	head.segments[0] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_vaddr = VADDR, .p_memsz = DATA_AT };
	head.segments[1] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_vaddr = VADDR, .p_filesz = sizeof(head), .p_memsz = sizeof(head)
	};
	head.segments[2] = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_vaddr = VADDR + CODE_AT,
					 .p_offset = CODE_OFFSET,
					 .p_filesz = CODE_LENGTH,
					 .p_memsz = CODE_LENGTH };
	head.segments[3] = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_vaddr = VADDR + DATA_AT,
					 .p_offset = DATA_OFFSET,
					 .p_filesz = DATA_IN_FILE,
					 .p_memsz = DATA_LENGTH };
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)(i ^ (i >> 8) ^ (i >> 16));
	write_file(fd);
	close(fd);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void what_is_loaded_is_where_it_is_in_memory(void **state)
{
	struct file_image *image = file_image_open(NULL, path, BASE);
	struct memory *memory = file_image_memory(image);
	struct elf_headers headers;

	(void)state;
	assert_non_null(image);
	assert_true(elf_headers_read(memory, BASE, &headers));
	assert_int_equal(headers.elf.e_phnum, 4);
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, CODE_LENGTH), MEMORY_OK);
	assert_memory_equal(copy, code, CODE_LENGTH);
	assert_int_equal(memory_read(memory, BASE + CODE_AT + 5, copy, 7), MEMORY_OK);
	assert_memory_equal(copy, code + 5, 7);
	file_image_close(image);
}

static void behind_a_files_part_of_a_segment_all_is_zero(void **state)
{
	static const uint8_t zeros[DATA_LENGTH];
	struct file_image *image = file_image_open(NULL, path, BASE);
	struct memory *memory = file_image_memory(image);

	(void)state;
	memset(copy, 7, DATA_LENGTH);
	assert_int_equal(memory_read(memory, BASE + DATA_AT, copy, DATA_LENGTH), MEMORY_OK);
	assert_int_equal(copy[2], 3);
	assert_memory_equal(copy + DATA_IN_FILE, zeros, DATA_LENGTH - DATA_IN_FILE);
	memset(copy, 7, 8);
	assert_int_equal(memory_read(memory, BASE + DATA_AT + DATA_LENGTH - 8, copy, 8), MEMORY_OK);
	assert_memory_equal(copy, zeros, 8);
	file_image_close(image);
}

static unsigned int pauses;

bool __wrap_errands_pause(const struct errands *errands)
{
	pauses++;
	return __real_errands_pause(errands);
}

/*
 * Whoever searches a large file does not let others wait until it is done, whether the file has these bytes
 * or not.
 */
static void there_is_a_pause_for_each_mebibyte(void **state)
{
	enum { MEBIBYTE = 1 << 20, PART = MEBIBYTE / 4 };
	struct file_image *image;
	int fd;

	(void)state;
	head.segments[3].p_memsz = 3 * MEBIBYTE;
	head.segments[3].p_filesz = MEBIBYTE;
	assert_int_equal(truncate(path, DATA_OFFSET + MEBIBYTE), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	write_at(fd, &head, sizeof(head), 0);
	close(fd);
	image = file_image_open(NULL, path, BASE);
	pauses = 0;
	for (size_t bytes = 0; bytes < 3 * MEBIBYTE; bytes += PART) {
		assert_in_range(pauses, bytes / MEBIBYTE, bytes / MEBIBYTE + 1);
		assert_int_equal(memory_read(file_image_memory(image), BASE + DATA_AT + bytes, copy, PART),
				 MEMORY_OK);
	}
	assert_int_equal(pauses, 3);
	file_image_close(image);
}

static void between_segments_there_is_nothing(void **state)
{
	struct file_image *image = file_image_open(NULL, path, BASE);
	struct memory *memory = file_image_memory(image);

	(void)state;
	assert_int_equal(memory_read(memory, BASE + CODE_AT - 1, copy, 2), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, 1), MEMORY_OK);
	assert_int_equal(memory_read(memory, BASE + DATA_AT + DATA_LENGTH - 1, copy, 2), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(memory, BASE - 1, copy, 1), MEMORY_UNMAPPED);
	file_image_close(image);
}

static void a_file_that_ends_early_cannot_be_read(void **state)
{
	struct file_image *image = file_image_open(NULL, path, BASE);

	(void)state;
	assert_int_equal(truncate(path, CODE_OFFSET + CODE_LENGTH - 1), 0);
	assert_int_equal(memory_read(file_image_memory(image), BASE + CODE_AT, copy, CODE_LENGTH),
			 MEMORY_UNMAPPED);
	file_image_close(image);
}

static bool always(void *context)
{
	(void)context;
	return true;
}

static bool is_wanted(void *context)
{
	return *(const bool *)context;
}

/* However little more is asked for, until the caller wants it again. */
static void a_search_that_is_abandoned_reads_nothing_more(void **state)
{
	bool wanted = false;
	const struct errands_waiter waiter = { .may_wait = always,
					       .meanwhile = is_wanted,
					       .context = &wanted };
	struct errands *errands = errands_new();
	struct file_image *image = file_image_open(errands, path, BASE);
	struct memory *memory = file_image_memory(image);

	(void)state;
	errands_wait_as(errands, &waiter);
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, 1), MEMORY_OK);
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, CODE_LENGTH), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, 1), MEMORY_UNMAPPED);
	wanted = true;
	assert_int_equal(memory_read(memory, BASE + CODE_AT, copy, CODE_LENGTH), MEMORY_OK);
	file_image_close(image);
	errands_free(errands);
}

static void other_files_are_none(void **state)
{
	(void)state;
	assert_null(file_image_open(NULL, "/tmp/test_file_image/there/is/none", BASE));
	assert_null(file_image_open(NULL, "/dev/null", BASE));
	assert_null(file_image_open(NULL, "/proc/self/status", BASE));
	file_image_close(NULL);
}

static void no_file_stays_open(void **state)
{
	const unsigned int files = open_files_count();
	struct file_image *image = file_image_open(NULL, path, BASE);

	(void)state;
	assert_non_null(image);
	assert_int_equal(open_files_count(), files + 1);
	file_image_close(image);
	assert_null(file_image_open(NULL, "/dev/null", BASE));
	assert_int_equal(open_files_count(), files);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_is_loaded_is_where_it_is_in_memory),
		TEST(behind_a_files_part_of_a_segment_all_is_zero),
		TEST(there_is_a_pause_for_each_mebibyte),
		TEST(between_segments_there_is_nothing),
		TEST(a_file_that_ends_early_cannot_be_read),
		TEST(a_search_that_is_abandoned_reads_nothing_more),
		TEST(other_files_are_none),
		TEST(no_file_stays_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
