/* SPDX-License-Identifier: MIT */
/* A module's file in the place of memory, where both are the same: in this process, which maps one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "luajit-layouts/module/elf_headers.h"
#include "src/linux/files/file_backed.h"
#include "src/linux/proc/resident.h"

enum { PAGES = 8 };

static struct {
	Elf64_Ehdr elf;
	Elf64_Phdr segment;
} head;

static struct {
	struct maps *maps;
	struct file_backed *backed;
	uint8_t *mapped;
	int fd;
	pid_t pid;
} here;

static size_t page(size_t index)
{
	return index * memory_page_size();
}

static void read_here(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		memcpy(ranges[i].copy, (const void *)(uintptr_t)ranges[i].address, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory live = { .read_ranges = read_here };

static void read_image(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const uint64_t offset = ranges[i].address - (uintptr_t)here.mapped;

		ranges[i].status = pread(here.fd, ranges[i].copy, ranges[i].length, (off_t)offset) < 0
					   ? MEMORY_UNMAPPED
					   : MEMORY_OK;
	}
}

static struct memory image = { .read_ranges = read_image };

static int begin(void **state)
{
	(void)state;
	memset(&head, 0, sizeof(head));
	memcpy(head.elf.e_ident, ELFMAG, SELFMAG);
	head.elf.e_ident[EI_CLASS] = ELFCLASS64;
	head.elf.e_ident[EI_DATA] = ELFDATA2LSB;
	head.elf.e_phoff = sizeof(head.elf);
	head.elf.e_phentsize = sizeof(Elf64_Phdr);
	head.elf.e_phnum = 1;
	here.fd = memfd_create("module", MFD_CLOEXEC);
	assert_int_equal(ftruncate(here.fd, (off_t)page(PAGES)), 0);
	assert_int_equal(pwrite(here.fd, &head, sizeof(head), 0), sizeof(head));
	here.mapped = mmap(NULL, page(PAGES), PROT_READ | PROT_WRITE, MAP_PRIVATE, here.fd, 0);
	assert_ptr_not_equal(here.mapped, MAP_FAILED);
	here.maps = maps_new(getpid());
	here.pid = getpid();
	return 0;
}

static int end(void **state)
{
	(void)state;
	file_backed_free(here.backed);
	here.backed = NULL;
	munmap(here.mapped, page(PAGES));
	maps_free(here.maps);
	close(here.fd);
	return 0;
}

/* As it is mapped now. */
static void open_at(const uint8_t *base)
{
	bool changed;

	file_backed_free(here.backed);
	assert_int_equal(maps_refresh(here.maps, &changed), 0);
	here.backed = file_backed_new(&image, &live, here.maps, here.pid, (uintptr_t)base);
}

static enum memory_status read_at(size_t offset, size_t length)
{
	static uint8_t copy[PAGES << 16];

	return memory_read(file_backed_memory(here.backed), (uintptr_t)here.mapped + offset, copy, length);
}

static void what_the_process_has_not_changed_is_read_from_the_file(void **state)
{
	(void)state;
	open_at(here.mapped);
	assert_non_null(here.backed);
	assert_int_equal(read_at(0, page(PAGES)), MEMORY_OK);
	/* One page is there, as it is in the file. */
	assert_int_equal(*(volatile uint8_t *)(here.mapped + page(2)), 0);
	assert_int_equal(read_at(0, page(PAGES)), MEMORY_OK);
	assert_int_equal(read_at(page(7) + 5, 7), MEMORY_OK);
}

static void what_it_has_written_to_is_not(void **state)
{
	(void)state;
	*(volatile uint8_t *)(here.mapped + page(3)) = 1;
	open_at(here.mapped);
	assert_int_equal(read_at(0, page(PAGES)), MEMORY_NOT_CAPTURED);
	assert_int_equal(read_at(0, page(3)), MEMORY_OK);
	assert_int_equal(read_at(0, page(3) + 1), MEMORY_NOT_CAPTURED);
	assert_int_equal(read_at(page(4) - 1, 1), MEMORY_NOT_CAPTURED);
	assert_int_equal(read_at(page(4), page(4)), MEMORY_OK);
}

static void what_is_in_the_place_of_it_is_not(void **state)
{
	const int other = memfd_create("other", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(other, (off_t)page(PAGES)), 0);
	mmap(here.mapped + page(2), page(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mmap(here.mapped + page(4), page(1), PROT_READ, MAP_SHARED | MAP_FIXED, other, 0);
	munmap(here.mapped + page(6), page(1));
	open_at(here.mapped);
	for (size_t i = 0; i < PAGES - 1; i++)
		assert_int_equal(read_at(page(i), 1), i % 2 || i == 0 ? MEMORY_OK : MEMORY_NOT_CAPTURED);
	assert_int_equal(read_at(0, page(PAGES)), MEMORY_NOT_CAPTURED);
	assert_int_equal(memory_read(file_backed_memory(here.backed), UINT64_MAX - 1, &(uint8_t){ 0 }, 1),
			 MEMORY_NOT_CAPTURED);
	close(other);
}

static void another_file_tells_nothing(void **state)
{
	(void)state;
	/* It has replaced the one that is mapped. */
	*(volatile uint8_t *)(here.mapped + offsetof(Elf64_Ehdr, e_version)) = 7;
	open_at(here.mapped);
	assert_null(here.backed);
	/* What is mapped lies within the file. */
	assert_int_equal(pwrite(here.fd, &head, sizeof(head), (off_t)page(1)), sizeof(head));
	munmap(here.mapped, page(1));
	here.mapped += page(1);
	open_at(here.mapped);
	assert_null(here.backed);
	here.mapped -= page(1);
}

/* Of the file's pages, the third and the fourth have code. */
static bool has_all_code(void)
{
	const int pagemap = resident_open(here.pid);
	bool changed, has = false;

	mprotect(here.mapped + page(2), page(2), PROT_READ | PROT_EXEC);
	assert_int_equal(maps_refresh(here.maps, &changed), 0);
	for (size_t i = 0; i < maps_file_count(here.maps); i++) {
		const struct mapped_file *file = maps_file_at(here.maps, i);

		if (file->base == (uintptr_t)here.mapped)
			has = file_backed_is_all_code(here.maps, pagemap, file);
	}
	if (pagemap >= 0)
		close(pagemap);
	return has;
}

static void code_that_is_written_is_not_all_the_file_s(void **state)
{
	(void)state;
	*(volatile uint8_t *)(here.mapped + page(1)) = 1;
	assert_true(has_all_code());
	mprotect(here.mapped, page(PAGES), PROT_READ | PROT_WRITE);
	*(volatile uint8_t *)(here.mapped + page(3)) = 1;
	assert_false(has_all_code());
}

static void code_in_the_place_of_the_file_s_is_not(void **state)
{
	(void)state;
	mmap(here.mapped + page(3), page(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_false(has_all_code());
}

static void who_does_not_tell_of_pages_has_none(void **state)
{
	(void)state;
	here.pid = 0;
	open_at(here.mapped);
	assert_null(here.backed);
	assert_false(has_all_code());
	file_backed_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_the_process_has_not_changed_is_read_from_the_file),
		TEST(what_it_has_written_to_is_not),
		TEST(what_is_in_the_place_of_it_is_not),
		TEST(another_file_tells_nothing),
		TEST(code_that_is_written_is_not_all_the_file_s),
		TEST(code_in_the_place_of_the_file_s_is_not),
		TEST(who_does_not_tell_of_pages_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
