/* SPDX-License-Identifier: MIT */
/*
 * Is a file the one that is mapped, and what is there instead? With copies of this program's file, and
 * made-up ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_elf.h"
#include "tests/unit/mapped_file.h"
#include "tests/unit/open_files.h"
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
	const unsigned int files = open_files_count();
	int fd = elf_file_descriptor(&module, &mapped.memory, NULL);
	struct stat status, file;
	Elf64_Ehdr header, in_memory;

	/* A file that is another one does not stay open. */
	assert_int_equal(open_files_count(), files + (fd >= 0));
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
	const unsigned int files = open_files_count();
	struct elf_file file;

	(void)state;
	assert_true(elf_file_open_path(path, &file));
	assert_int_equal(elf_kind(file.elf), ELF_K_ELF);
	elf_file_close(&file);
	assert_int_equal(file.fd, -1);
	assert_false(elf_file_open_path("/etc/passwd", &file));
	assert_false(elf_file_open_path("/tmp", &file));
	assert_false(elf_file_open_path("/no/such/file", &file));
	assert_int_equal(open_files_count(), files);
}

/*---- Made-up files ----*/

enum { IMAGE_MAX = 64 << 20, NOTES_MAX = 64 << 10, SEGMENTS_MAX = 64 };

static struct made_up_elf made_up;
static uint32_t data; /* a section of the file, and all of a segment */
static struct module made_up_module;

/* Bytes of a note that is no build id. */
static const uint8_t other_note[] = { 4, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 'G', 'N', 'U', 0, 9, 0, 0, 0 };

/* Its first segment is all of the file; the second has notes, the third data. */
static void make_file(const void *notes_bytes, size_t notes_size)
{
	struct stat status;

	made_up_elf_begin(&made_up);
	made_up.base = AT;
	made_up_elf_segment(&made_up, PT_NOTE,
			    made_up_elf_section(&made_up, ".note", (Elf64_Shdr){ .sh_type = SHT_NOTE },
						notes_bytes, notes_size));
	data = made_up_elf_section(&made_up, ".data", (Elf64_Shdr){ .sh_type = SHT_PROGBITS },
				   "0123456789abcdef", 16);
	made_up_elf_segment(&made_up, PT_LOAD, data);
	made_up_elf_end(&made_up);
	made_up_elf_write(&made_up, path);
	assert_int_equal(stat(path, &status), 0);
	made_up_module = (struct module){
		.begin = AT, .end = AT + made_up.size, .base = AT, .inode = status.st_ino, .file = path
	};
}

/* Its headers have changed, in memory, and in the file if it is to be the same. */
static void put_headers(bool in_file)
{
	memcpy(made_up.bytes + sizeof(Elf64_Ehdr), made_up.segments, sizeof(made_up.segments));
	if (in_file)
		made_up_elf_write(&made_up, path);
}

/* As descriptor(). */
static char kind_of(int fd)
{
	struct stat status, file;

	if (fd < 0)
		return '-';
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	assert_int_equal(stat(path, &file), 0);
	return file.st_ino == status.st_ino && file.st_dev == status.st_dev ? 'f' : 'i';
}

static char made_up_kind(void)
{
	return kind_of(elf_file_descriptor(&made_up_module, &made_up.memory, NULL));
}

static void a_number_is_enough_where_no_note_has_a_build_id(void **state)
{
	(void)state;
	make_file(other_note, sizeof(other_note));
	assert_int_equal(made_up_kind(), 'f');
	made_up_module.inode++;
	assert_int_equal(made_up_kind(), 'i');
}

/* Is the file of these notes known by a build id among them? */
static bool has_build_id(const void *bytes, size_t size)
{
	make_file(bytes, size);
	made_up_module.inode++;
	return made_up_kind() == 'f';
}

static void a_build_id_is_found_among_notes(void **state)
{
	static const uint8_t build_id[] = {
		4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 9, 0, 0, 0
	};
	enum { SIZE = sizeof(build_id), NAME_END = 16 };
	uint8_t two[2 * SIZE];

	(void)state;
	assert_true(has_build_id(build_id, SIZE));
	assert_true(has_build_id(build_id, NAME_END));
	assert_false(has_build_id(build_id, NAME_END - 1));
	assert_false(has_build_id(other_note, SIZE));
	memcpy(two, other_note, SIZE);
	memcpy(two + SIZE, build_id, SIZE);
	assert_true(has_build_id(two, sizeof(two)));
	assert_true(has_build_id(two, SIZE + NAME_END));
	assert_false(has_build_id(two, SIZE + NAME_END - 1));
	/* Names and contents of one to three bytes are padded to four. */
	for (uint8_t length = 1; length <= 4; length++) {
		two[0] = length;
		two[4] = (uint8_t)(5 - length);
		assert_true(has_build_id(two, sizeof(two)));
	}
	two[0] = 5;
	assert_false(has_build_id(two, sizeof(two)));
	two[0] = 4;
	two[4] = 5;
	assert_false(has_build_id(two, sizeof(two)));
	/* Another owner's, and one whose name is longer. */
	memcpy(two, build_id, SIZE);
	two[13] ^= 1;
	assert_false(has_build_id(two, SIZE));
	memcpy(two, build_id, SIZE);
	two[0] = 3;
	assert_false(has_build_id(two, SIZE));
}

static void notes_with_lengths_of_no_sense_end_the_search(void **state)
{
	uint8_t hostile[sizeof(other_note)];

	(void)state;
	for (size_t field = 0; field < 8; field += 4) {
		memcpy(hostile, other_note, sizeof(hostile));
		memset(hostile + field, 0xff, 4);
		assert_false(has_build_id(hostile, sizeof(hostile)));
		/* They do not hinder that the file is told by its number. */
		made_up_module.inode--;
		assert_int_equal(made_up_kind(), 'f');
	}
}

static void every_segment_of_notes_is_compared(void **state)
{
	(void)state;
	make_file(other_note, sizeof(other_note));
	made_up.segments[2].p_type = PT_NOTE;
	put_headers(true);
	assert_int_equal(made_up_kind(), 'f');
	made_up.bytes[made_up.sections[data].sh_addr] ^= 1;
	assert_int_equal(made_up_kind(), 'i');
	made_up.segments[2].p_type = PT_LOAD;
	put_headers(false);
	made_up.bytes[made_up.sections[data].sh_addr] ^= 1;
	made_up_elf_write(&made_up, path);
	made_up.bytes[made_up.sections[data].sh_addr] ^= 1;
	assert_int_equal(made_up_kind(), 'f');
	/* Notes that the memory, or the file, does not have. */
	made_up.segments[1].p_vaddr = made_up.size;
	put_headers(true);
	assert_int_equal(made_up_kind(), 'i');
	made_up.segments[1].p_vaddr = made_up.segments[1].p_offset;
	made_up.segments[1].p_offset = made_up.size;
	put_headers(true);
	assert_int_equal(made_up_kind(), 'i');
}

static void notes_have_a_largest_size(void **state)
{
	static uint8_t bytes[2 * NOTES_MAX];
	struct mapped_file large = { .memory = { .read_ranges = mapped_file_read },
				     .base = AT,
				     .bytes = bytes,
				     .size = sizeof(bytes) };
	FILE *file;

	(void)state;
	make_file(other_note, sizeof(other_note));
	for (size_t more = 0; more < 2; more++) {
		made_up.segments[1].p_filesz = NOTES_MAX + more;
		put_headers(false);
		memcpy(bytes, made_up.bytes, made_up.size);
		file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
		fclose(file);
		assert_int_equal(kind_of(elf_file_descriptor(&made_up_module, &large.memory, NULL)),
				 more ? 'i' : 'f');
	}
}

static void a_file_may_have_four_gigabytes(void **state)
{
	const off_t size_max = (off_t)4 << 30;
	struct elf_file file;

	(void)state;
	make_file(other_note, sizeof(other_note));
	if (truncate(path, size_max) != 0)
		skip();
	assert_int_equal(made_up_kind(), 'f');
	assert_true(elf_file_open_path(path, &file));
	elf_file_close(&file);
	assert_int_equal(truncate(path, size_max + 1), 0);
	assert_int_equal(made_up_kind(), 'i');
	assert_false(elf_file_open_path(path, &file));
}

/* The headers, with so many segments, of which all but the first are nothing. */
static char kind_with_segments(uint16_t count)
{
	static uint8_t bytes[sizeof(Elf64_Ehdr) + (SEGMENTS_MAX + 1) * sizeof(Elf64_Phdr)];
	struct mapped_file many = { .memory = { .read_ranges = mapped_file_read },
				    .base = AT,
				    .bytes = bytes,
				    .size = sizeof(bytes) };
	FILE *file = fopen(path, "w");

	memcpy(bytes, made_up.bytes, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
	memcpy(bytes + offsetof(Elf64_Ehdr, e_phnum), &count, sizeof(count));
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	return kind_of(elf_file_descriptor(&made_up_module, &many.memory, NULL));
}

static void headers_are_bounded(void **state)
{
	(void)state;
	make_file(other_note, sizeof(other_note));
	assert_int_equal(kind_with_segments(1), 'f');
	assert_int_equal(kind_with_segments(SEGMENTS_MAX), 'f');
	assert_int_equal(kind_with_segments(SEGMENTS_MAX + 1), '-');
	/* Segments of another size, and where nothing is mapped. */
	make_file(other_note, sizeof(other_note));
	made_up.bytes[offsetof(Elf64_Ehdr, e_phentsize)]++;
	made_up_elf_write(&made_up, path);
	assert_int_equal(made_up_kind(), '-');
	make_file(other_note, sizeof(other_note));
	made_up.bytes[offsetof(Elf64_Ehdr, e_phoff) + 4] = 1;
	made_up_elf_write(&made_up, path);
	assert_int_equal(made_up_kind(), '-');
}

/* The size of the image of what is mapped; 0 if there is none. */
static size_t image_size(void)
{
	struct stat status = { .st_size = 0 };
	int fd;

	put_headers(false);
	made_up_module.file = NULL;
	fd = elf_file_descriptor(&made_up_module, &made_up.memory, NULL);
	if (fd >= 0) {
		assert_int_equal(fstat(fd, &status), 0);
		close(fd);
	}
	return (size_t)status.st_size;
}

static void an_image_ends_with_its_last_segment_and_is_bounded(void **state)
{
	enum { BEHIND = 0x9000, BYTES = 16 };

	(void)state;
	make_file(other_note, sizeof(other_note));
	assert_int_equal(image_size(), made_up.size);
	made_up.segments[2].p_offset = BEHIND;
	assert_int_equal(image_size(), BEHIND + BYTES);
	made_up.segments[2].p_type = PT_NOTE;
	assert_int_equal(image_size(), made_up.size);
	made_up.segments[2].p_offset = UINT64_MAX - 1; /* of no segment that is loaded */
	assert_int_equal(image_size(), made_up.size);
	made_up.segments[2].p_type = PT_LOAD;
	assert_int_equal(image_size(), 0);
	made_up.segments[2].p_offset = IMAGE_MAX - BYTES;
	assert_int_equal(image_size(), IMAGE_MAX);
	made_up.segments[2].p_offset++;
	assert_int_equal(image_size(), 0);
	made_up.segments[2].p_offset = 0;
	made_up.segments[2].p_filesz = IMAGE_MAX + 1;
	assert_int_equal(image_size(), 0);
	/* Without any segment there are the headers. */
	made_up.segments[0].p_type = made_up.segments[2].p_type = PT_NULL;
	assert_int_equal(image_size(), sizeof(Elf64_Ehdr));
}

/* The bytes of the data in an image. */
static void read_image_data(char ret_bytes[static 16])
{
	int fd = elf_file_descriptor(&made_up_module, &made_up.memory, NULL);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, ret_bytes, 16, (off_t)made_up.sections[data].sh_offset), 16);
	close(fd);
}

static void what_cannot_be_read_of_an_image_is_zero(void **state)
{
	static const char zeros[16];
	char bytes[16];

	(void)state;
	make_file(other_note, sizeof(other_note));
	made_up_module.file = NULL;
	read_image_data(bytes);
	assert_memory_equal(bytes, "0123456789abcdef", 16);
	made_up.segments[0].p_filesz = sizeof(Elf64_Ehdr);
	put_headers(false);
	read_image_data(bytes);
	assert_memory_equal(bytes, "0123456789abcdef", 16);
	made_up.segments[2].p_vaddr = MADE_UP_ELF_BYTES;
	put_headers(false);
	read_image_data(bytes);
	assert_memory_equal(bytes, zeros, 16);
}

static void segments_say_where_they_are_to_be_mapped(void **state)
{
	enum { WANTED = 0x400000 };
	char bytes[16];

	(void)state;
	make_file(other_note, sizeof(other_note));
	for (size_t i = 0; i < made_up.segment_count; i++)
		made_up.segments[i].p_vaddr += WANTED;
	put_headers(true);
	assert_int_equal(made_up_kind(), 'f');
	made_up_module.file = NULL;
	read_image_data(bytes);
	assert_memory_equal(bytes, "0123456789abcdef", 16);
	/* Of a file whose beginning is not mapped, addresses count from the module's. */
	for (size_t i = 0; i < made_up.segment_count; i++)
		made_up.segments[i].p_vaddr -= WANTED;
	made_up.segments[0].p_offset = 1;
	put_headers(false);
	read_image_data(bytes);
	assert_memory_equal(bytes, "0123456789abcdef", 16);
}

/*
 * How many sections the image of what is mapped has, if the table of sections is so much further than its
 * end.
 */
static size_t section_count(uint64_t further)
{
	uint64_t place;
	Elf64_Ehdr header;
	int fd;

	memcpy(&place, made_up.bytes + offsetof(Elf64_Ehdr, e_shoff), sizeof(place));
	place += further;
	memcpy(made_up.bytes + offsetof(Elf64_Ehdr, e_shoff), &place, sizeof(place));
	fd = elf_file_descriptor(&made_up_module, &made_up.memory, NULL);
	place -= further;
	memcpy(made_up.bytes + offsetof(Elf64_Ehdr, e_shoff), &place, sizeof(place));
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	assert_int_equal(header.e_shnum == 0, header.e_shoff == 0);
	return header.e_shnum;
}

/* The vdso's are, other modules' are not. */
static void sections_are_kept_if_they_are_mapped(void **state)
{
	(void)state;
	make_file(other_note, sizeof(other_note));
	made_up_module.file = NULL;
	assert_int_equal(section_count(0), 4);
	assert_int_equal(section_count(1), 0);
	assert_int_equal(section_count(made_up.size), 0);
	assert_int_equal(section_count(UINT64_MAX / 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mapped_file_is_told_by_headers_and_notes),
		cmocka_unit_test(without_a_build_id_the_number_counts),
		cmocka_unit_test(without_the_file_there_is_an_image),
		cmocka_unit_test(an_image_has_the_mapped_segments),
		cmocka_unit_test(only_elf_files_are_opened),
		cmocka_unit_test(a_number_is_enough_where_no_note_has_a_build_id),
		cmocka_unit_test(a_build_id_is_found_among_notes),
		cmocka_unit_test(notes_with_lengths_of_no_sense_end_the_search),
		cmocka_unit_test(every_segment_of_notes_is_compared),
		cmocka_unit_test(notes_have_a_largest_size),
		cmocka_unit_test(a_file_may_have_four_gigabytes),
		cmocka_unit_test(headers_are_bounded),
		cmocka_unit_test(an_image_ends_with_its_last_segment_and_is_bounded),
		cmocka_unit_test(what_cannot_be_read_of_an_image_is_zero),
		cmocka_unit_test(segments_say_where_they_are_to_be_mapped),
		cmocka_unit_test(sections_are_kept_if_they_are_mapped),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
