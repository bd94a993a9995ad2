/* SPDX-License-Identifier: MIT */
/* Is a file the one that is mapped, and what is there instead? With copies of this program's file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/mapped_file.h"
#include "unwind/elf/elf_file.h"

static const uint64_t AT = 0x7f1200000000;

/* This program's file, as it is mapped; a copy of it, which is the module's file; and its notes. */
static struct mapped_file mapped;
static char path[64];
static struct module module;
static Elf64_Phdr notes; /* the segment that has the build id */

static void copy_file(int to)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t length;

	assert_in_range(from, 0, 1000);
	while ((length = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)length), length);
	close(from);
}

static int begin(void **state)
{
	Elf64_Ehdr header;
	struct stat status;
	int fd;

	(void)state;
	strcpy(path, "/tmp/test_elf_file.XXXXXX");
	fd = mkstemp(path);
	assert_in_range(fd, 0, 1000);
	copy_file(fd);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	assert_true(mapped_file_open(&mapped, path, AT));
	module = (struct module){
		.begin = AT, .end = AT + mapped.size, .base = AT, .inode = status.st_ino, .file = path
	};
	memcpy(&header, mapped.bytes, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, mapped.bytes + header.e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_NOTE &&
		    memmem(mapped.bytes + segment.p_vaddr, segment.p_filesz, "\3\0\0\0GNU", 8))
			notes = segment;
	}
	assert_int_not_equal(notes.p_filesz, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	mapped_file_close(&mapped);
	return unlink(path);
}

static void change_file(uint64_t offset, uint8_t change)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= change;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

/* 'f': the file, 'i': an image of what is mapped, '-': none. */
static char descriptor(void)
{
	int fd = elf_file_descriptor(&module, &mapped.memory, NULL);
	struct stat status, file;
	Elf64_Ehdr header, in_memory;

	if (fd < 0)
		return '-';
	assert_int_equal(fstat(fd, &status), 0);
	if (module.file && stat(module.file, &file) == 0 && file.st_ino == status.st_ino &&
	    file.st_dev == status.st_dev) {
		close(fd);
		return 'f';
	}
	/* It begins as the memory does, and has no table of sections: that is not mapped. */
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	memcpy(&in_memory, mapped.bytes, sizeof(in_memory));
	assert_int_equal(header.e_shoff, 0);
	assert_int_equal(header.e_shnum, 0);
	assert_int_equal(header.e_shstrndx, 0);
	in_memory.e_shoff = in_memory.e_shnum = in_memory.e_shstrndx = 0;
	assert_memory_equal(&header, &in_memory, sizeof(header));
	return 'i';
}

static void the_mapped_file_is_told_by_headers_and_notes(void **state)
{
	(void)state;
	assert_int_equal(descriptor(), 'f');
	/* Its number says nothing if it has a build id. */
	module.inode++;
	assert_int_equal(descriptor(), 'f');
	for (uint64_t offset = 0; offset < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); offset += 4) {
		change_file(offset, 1);
		assert_int_equal(descriptor(), 'i');
		change_file(offset, 1);
	}
	/* The last byte of the build id. */
	change_file(notes.p_offset + notes.p_filesz - 1, 0x80);
	assert_int_equal(descriptor(), 'i');
	change_file(notes.p_offset + notes.p_filesz - 1, 0x80);
	/* What is behind the headers and no note does not count. */
	change_file(notes.p_offset + 4096 * 16, 1);
	assert_int_equal(descriptor(), 'f');
	change_file(notes.p_offset + 4096 * 16, 1);
	assert_int_equal(descriptor(), 'f');
}

static void without_a_build_id_the_number_counts(void **state)
{
	struct stat status;
	uint8_t *note = mapped.bytes + notes.p_vaddr;
	size_t at = (size_t)((uint8_t *)memmem(note, notes.p_filesz, "\3\0\0\0GNU", 8) - note);

	(void)state;
	assert_int_equal(stat(path, &status), 0);
	module.inode = status.st_ino;
	note[at] ^= 0x40;
	change_file(notes.p_offset + at, 0x40);
	assert_int_equal(descriptor(), 'f');
	module.inode++;
	assert_int_equal(descriptor(), 'i');
	note[at] ^= 0x40;
	change_file(notes.p_offset + at, 0x40);
	assert_int_equal(descriptor(), 'f');
}

static void without_the_file_there_is_an_image(void **state)
{
	static char *const others[] = { NULL, (char *)(uintptr_t) "/no/such/file", (char *)(uintptr_t) "/tmp",
					(char *)(uintptr_t) "/dev/null", (char *)(uintptr_t) "/etc/passwd" };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		module.file = others[i];
		assert_int_equal(descriptor(), 'i');
	}
	/* What is mapped is no ELF file of ours: the magic, the class, the order of bytes. */
	for (size_t i = 0; i <= EI_DATA; i++) {
		mapped.bytes[i] ^= 2;
		assert_int_equal(descriptor(), '-');
		mapped.bytes[i] ^= 2;
	}
	module.base += mapped.size;
	assert_int_equal(descriptor(), '-');
	module.base -= mapped.size;
	module.file = path;
	assert_int_equal(descriptor(), 'f');
}

/* All bytes of segments, where the file has them. */
static void an_image_has_the_mapped_segments(void **state)
{
	Elf64_Ehdr header;
	int fd;

	(void)state;
	module.file = NULL;
	fd = elf_file_descriptor(&module, &mapped.memory, NULL);
	module.file = path;
	assert_in_range(fd, 0, 1000);
	memcpy(&header, mapped.bytes, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;
		uint8_t *bytes;

		memcpy(&segment, mapped.bytes + header.e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type != PT_LOAD || segment.p_offset == 0)
			continue;
		bytes = malloc(segment.p_filesz);
		assert_non_null(bytes);
		assert_int_equal(pread(fd, bytes, segment.p_filesz, (off_t)segment.p_offset),
				 segment.p_filesz);
		assert_memory_equal(bytes, mapped.bytes + segment.p_vaddr, segment.p_filesz);
		free(bytes);
	}
	close(fd);
}

static void only_elf_files_are_opened(void **state)
{
	struct elf_file file;

	(void)state;
	assert_true(elf_file_open_path(path, &file));
	assert_int_equal(elf_kind(file.elf), ELF_K_ELF);
	elf_file_close(&file);
	assert_int_equal(file.fd, -1);
	assert_false(elf_file_open_path("/etc/passwd", &file));
	assert_false(elf_file_open_path("/tmp", &file));
	assert_false(elf_file_open_path("/no/such/file", &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mapped_file_is_told_by_headers_and_notes),
		cmocka_unit_test(without_a_build_id_the_number_counts),
		cmocka_unit_test(without_the_file_there_is_an_image),
		cmocka_unit_test(an_image_has_the_mapped_segments),
		cmocka_unit_test(only_elf_files_are_opened),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
