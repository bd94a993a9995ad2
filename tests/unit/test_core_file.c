/* SPDX-License-Identifier: MIT */
/* What a core file tells of its process and its memory. The cores are made up. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/core_file.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(pread);
INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum {
	SEGMENTS_MAX = 8,
	NOTES_MAX = 0x4000,
	NOTES_AT = 0x1000,
	DATA_AT = NOTES_AT + NOTES_MAX,
	CORE_BYTES = DATA_AT + 0x8000,
	HEAD = 4096, /* so many bytes tell whether a file is the one that was mapped */
	PATHS = 64,
};

static struct {
	unsigned int reads; /* so many to come fail */
	int error;
} failing;

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (failing.reads == 0)
		return __real_pread(fd, bytes, size, offset);
	failing.reads--;
	errno = failing.error;
	return -1;
}

/*---- A core ----*/

static struct {
	int fd;
	char path[PATHS];
	Elf64_Ehdr header;
	Elf64_Phdr segments[SEGMENTS_MAX];
	uint8_t notes[NOTES_MAX];
	size_t notes_length, data_length;
	uint8_t bytes[CORE_BYTES];
} made;

/* A file in memory, and the path to open it by. */
static int new_file(char path[PATHS])
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(path, PATHS, "/proc/self/fd/%d", fd);
	return fd;
}

static void add_note(uint32_t type, const void *bytes, uint32_t size)
{
	const Elf64_Nhdr header = { .n_namesz = 5, .n_descsz = size, .n_type = type };
	uint8_t *at = made.notes + made.notes_length;

	assert_in_range(made.notes_length + sizeof(header) + 8 + size + 3, 0, NOTES_MAX);
	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), "CORE", 5);
	memcpy(at + sizeof(header) + 8, bytes, size);
	made.notes_length += sizeof(header) + 8 + ((size + 3) & ~3u);
}

/* A core with one thread and no memory. */
static int begin(void **state)
{
	(void)state;
	memset(&made, 0, sizeof(made));
	made.fd = new_file(made.path);
	made.header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
				    .e_type = ET_CORE,
				    .e_machine = EM_X86_64,
				    .e_phoff = sizeof(Elf64_Ehdr),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1 };
	made.segments[0] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = NOTES_AT };
	for (size_t i = DATA_AT; i < CORE_BYTES; i++)
		made.bytes[i] = (uint8_t)(i * 7 + i / 256);
	add_note(NT_PRSTATUS, "first", 5);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(made.fd);
	return 0;
}

/* Memory at an address, of which the core holds the first bytes; returns them, for the test to change. */
static uint8_t *add_memory(uint64_t address, uint64_t length, uint32_t flags, uint64_t held)
{
	const size_t at = DATA_AT + made.data_length;

	assert_in_range(made.header.e_phnum, 1, SEGMENTS_MAX - 1);
	assert_in_range(at + held, 0, CORE_BYTES);
	made.segments[made.header.e_phnum++] = (Elf64_Phdr){ .p_type = PT_LOAD,
							     .p_flags = flags,
							     .p_offset = at,
							     .p_vaddr = address,
							     .p_filesz = held,
							     .p_memsz = length };
	made.data_length += held;
	return made.bytes + at;
}

struct named {
	uint64_t begin, end, page;
	const char *path;
};

/* The note of mapped files, in pages of 4096 bytes. */
static void add_files(const struct named *files, size_t count)
{
	union {
		uint64_t words[512];
		char text[4096];
	} note = { .words = { count, 4096 } };
	size_t length = (2 + 3 * count) * sizeof(uint64_t);

	for (size_t i = 0; i < count; i++) {
		memcpy(&note.words[2 + 3 * i], &files[i], 3 * sizeof(uint64_t));
		assert_in_range(length + strlen(files[i].path), 0, sizeof(note) - 1);
		length += (size_t)snprintf(note.text + length, sizeof(note) - length, "%s", files[i].path) +
			  1;
	}
	add_note(NT_FILE, &note, (uint32_t)length);
}

static void write_core(size_t size)
{
	made.segments[0].p_filesz = made.notes_length;
	memcpy(made.bytes, &made.header, sizeof(made.header));
	memcpy(made.bytes + sizeof(made.header), made.segments, sizeof(made.segments));
	memcpy(made.bytes + NOTES_AT, made.notes, sizeof(made.notes));
	assert_int_equal(ftruncate(made.fd, 0), 0);
	assert_int_equal(pwrite(made.fd, made.bytes, size, 0), size);
}

static struct core_file *open_core(void)
{
	struct core_file *core = NULL;
	const char *problem = NULL;

	write_core(CORE_BYTES);
	assert_int_equal(core_file_open(made.path, &core, &problem), 0);
	assert_non_null(core);
	return core;
}

/* The core is refused because of this. */
static void refused_for(const char *reason)
{
	const unsigned int before = open_files_count();
	struct core_file *core = NULL;
	const char *problem = "";

	assert_int_equal(core_file_open(made.path, &core, &problem), -EBADMSG);
	if (!strstr(problem, reason))
		fail_msg("'%s' instead of '%s'", problem, reason);
	assert_null(core);
	assert_int_equal(open_files_count(), before);
}

static enum memory_status status_at(struct core_file *core, uint64_t address, size_t length)
{
	static uint8_t copy[0x4000];

	assert_in_range(length, 0, sizeof(copy));
	return memory_read(core_file_memory(core), address, copy, length);
}

/* So many bytes at the address are these. */
static void holds(struct core_file *core, uint64_t address, const void *bytes, size_t length)
{
	static uint8_t copy[0x4000];

	assert_in_range(length, 1, sizeof(copy));
	assert_int_equal(memory_read(core_file_memory(core), address, copy, length), MEMORY_OK);
	assert_memory_equal(copy, bytes, length);
}

/* The mapping, from the first one on, lies there. */
static const struct core_mapping *mapping_is(const struct core_file *core, size_t index, uint64_t from,
					     uint64_t to)
{
	const struct core_mapping *mapping = core_file_mapping(core, index);

	assert_in_range(index, 0, core_file_mapping_count(core) - 1);
	assert_int_equal(mapping->begin, from);
	assert_int_equal(mapping->end, to);
	return mapping;
}

/*---- The process ----*/

static void the_notes_tell_of_the_process(void **state)
{
	const uint64_t auxv[] = { AT_PAGESZ, 4096, AT_SYSINFO_EHDR, 0x7fff0000 };
	struct elf_prpsinfo info = { .pr_pid = 4711 };
	struct core_file *core;

	(void)state;
	memset(info.pr_fname, 'n', sizeof(info.pr_fname)); /* without a NUL */
	add_note(NT_PRPSINFO, &info, sizeof(info));
	add_note(NT_AUXV, auxv, sizeof(auxv));
	add_note(0x12345, "unknown", 7);
	add_note(NT_PRSTATUS, "second!", 7);
	made.header.e_machine = EM_AARCH64;
	core = open_core();
	assert_int_equal(core_file_machine(core), EM_AARCH64);
	assert_int_equal(core_file_pid(core), 4711);
	assert_string_equal(core_file_name(core), "nnnnnnnnnnnnnnn");
	assert_int_equal(core_file_vdso(core), 0x7fff0000);
	assert_int_equal(core_file_thread_count(core), 2);
	assert_int_equal(core_file_thread(core, 0).size, 5);
	assert_memory_equal(core_file_thread(core, 0).bytes, "first", 5);
	assert_int_equal(core_file_thread(core, 1).size, 7);
	assert_memory_equal(core_file_thread(core, 1).bytes, "second!", 7);
	core_file_close(core);
}

static void without_such_notes_nothing_is_told(void **state)
{
	const uint64_t half[] = { AT_SYSINFO_EHDR };
	struct elf_prpsinfo info = { .pr_pid = 4711, .pr_fname = "name" };
	struct core_file *core;

	(void)state;
	/* Shorter than the kernel's. */
	add_note(NT_PRPSINFO, &info, sizeof(info) - 1);
	add_note(NT_AUXV, half, sizeof(half));
	core = open_core();
	assert_int_equal(core_file_pid(core), 0);
	assert_string_equal(core_file_name(core), "");
	assert_int_equal(core_file_vdso(core), 0);
	assert_int_equal(core_file_mapping_count(core), 0);
	core_file_close(core);
}

static void each_thread_is_kept(void **state)
{
	enum { THREADS = 200 };
	struct core_file *core;

	(void)state;
	for (int i = 1; i < THREADS; i++)
		add_note(NT_PRSTATUS, &i, sizeof(i));
	core = open_core();
	assert_int_equal(core_file_thread_count(core), THREADS);
	for (int i = 1; i < THREADS; i++)
		assert_memory_equal(core_file_thread(core, (size_t)i).bytes, &i, sizeof(i));
	core_file_close(core);
}

/* A core may claim to have any number of threads. */
static void so_many_threads_are_kept_and_no_more(void **state)
{
	static struct {
		Elf64_Nhdr header;
		char name[8];
		uint32_t number;
	} notes[CORE_THREADS_MAX];
	struct core_file *core = NULL;
	const char *problem = NULL;
	uint32_t last;

	(void)state;
	for (uint32_t i = 0; i < CORE_THREADS_MAX; i++) {
		notes[i].header = (Elf64_Nhdr){ .n_namesz = 5, .n_descsz = sizeof(i), .n_type = NT_PRSTATUS };
		memcpy(notes[i].name, "CORE", 5);
		notes[i].number = i;
	}
	/* Behind all else of the core, and behind the thread that it has. */
	made.segments[made.header.e_phnum++] = (Elf64_Phdr){ .p_type = PT_NOTE,
							     .p_offset = CORE_BYTES,
							     .p_filesz = sizeof(notes) };
	write_core(CORE_BYTES);
	assert_int_equal(pwrite(made.fd, notes, sizeof(notes), CORE_BYTES), sizeof(notes));
	assert_int_equal(core_file_open(made.path, &core, &problem), 0);
	assert_int_equal(core_file_thread_count(core), CORE_THREADS_MAX);
	memcpy(&last, core_file_thread(core, CORE_THREADS_MAX - 1).bytes, sizeof(last));
	assert_int_equal(last, CORE_THREADS_MAX - 2);
	core_file_close(core);
}

static void notes_of_several_segments_are_read(void **state)
{
	struct core_file *core;
	size_t first;

	(void)state;
	first = made.notes_length;
	add_note(NT_PRSTATUS, "more", 4);
	made.segments[made.header.e_phnum++] = (Elf64_Phdr){ .p_type = PT_NOTE,
							     .p_offset = NOTES_AT + first,
							     .p_filesz = made.notes_length - first };
	made.notes_length = first;
	core = open_core();
	assert_int_equal(core_file_thread_count(core), 2);
	assert_memory_equal(core_file_thread(core, 0).bytes, "first", 5);
	assert_memory_equal(core_file_thread(core, 1).bytes, "more", 4);
	core_file_close(core);
}

/* The last note may lack the bytes that would pad it, but none of its contents. */
static void a_note_that_is_cut_short_is_left_out(void **state)
{
	struct core_file *core;

	(void)state;
	add_note(NT_PRSTATUS, "abcde", 5);
	made.notes_length -= 3;
	core = open_core();
	assert_int_equal(core_file_thread_count(core), 2);
	core_file_close(core);
	made.notes_length--;
	core = open_core();
	assert_int_equal(core_file_thread_count(core), 1);
	core_file_close(core);
}

/*---- The memory ----*/

static void memory_is_read_where_the_core_holds_it(void **state)
{
	struct core_file *core;
	uint8_t *low, *high, word[16];
	struct memory_range ranges[2] = { { .address = 0x90000, .copy = word, .length = 1 },
					  { .address = 0x10000, .copy = word, .length = 2 } };

	(void)state;
	high = add_memory(0x11000, 0x1000, PF_R, 0x800);
	low = add_memory(0x10000, 0x1000, PF_R | PF_W, 0x1000);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 2);
	assert_int_equal(mapping_is(core, 0, 0x10000, 0x11000)->flags, PF_R | PF_W);
	assert_int_equal(mapping_is(core, 1, 0x11000, 0x12000)->flags, PF_R);
	assert_null(core_file_mapping(core, 0)->path);
	assert_int_equal(core_file_mapping(core, 0)->file, -1);
	assert_int_equal(core_file_mapping(core, 1)->data_size, 0x800);
	holds(core, 0x10000, low, 0x1000);
	holds(core, 0x11000, high, 0x800);
	/* Across the border, and up to the last byte that is held. */
	memcpy(word, low + 0xff8, 8);
	memcpy(word + 8, high, 8);
	holds(core, 0x10ff8, word, sizeof(word));
	assert_int_equal(status_at(core, 0x117ff, 1), MEMORY_OK);
	assert_int_equal(status_at(core, 0x117ff, 2), MEMORY_NOT_CAPTURED);
	assert_int_equal(status_at(core, 0x11fff, 1), MEMORY_NOT_CAPTURED);
	/* Around it there is nothing. */
	assert_int_equal(status_at(core, 0x12000, 1), MEMORY_UNMAPPED);
	assert_int_equal(status_at(core, 0xffff, 2), MEMORY_UNMAPPED);
	assert_int_equal(status_at(core, UINT64_MAX - 1, 4), MEMORY_UNMAPPED);
	assert_int_equal(status_at(core, 0x90000, 0), MEMORY_OK);
	/* One that fails does not fail the others. */
	memory_read_ranges(core_file_memory(core), ranges, 2);
	assert_int_equal(ranges[0].status, MEMORY_UNMAPPED);
	assert_int_equal(ranges[1].status, MEMORY_OK);
	assert_memory_equal(word, low, 2);
	core_file_close(core);
}

static void mappings_that_overlap_are_parted(void **state)
{
	struct core_file *core;
	uint8_t *outer, *inner;

	(void)state;
	outer = add_memory(0x10000, 0x3000, PF_R, 0x3000);
	/* Of those that begin at one address, the one with most bytes is kept. */
	add_memory(0x11000, 0x800, PF_R, 0x20);
	inner = add_memory(0x11000, 0x1000, PF_R, 0x1000);
	add_memory(0x11000, 0x800, PF_R, 0x10);
	add_memory(0x11800, 0x100, PF_R, 0x100);
	/* None of these can be. */
	add_memory(0x20000, 0, PF_R, 0);
	add_memory(UINT64_MAX - 0x10, 0x11, PF_R, 0x10);
	core = open_core();
	/* The next one ends the first; of those within the second nothing is left. */
	assert_int_equal(core_file_mapping_count(core), 2);
	assert_int_equal(mapping_is(core, 0, 0x10000, 0x11000)->data_size, 0x1000);
	assert_int_equal(mapping_is(core, 1, 0x11000, 0x12000)->data_size, 0x1000);
	holds(core, 0x10000, outer, 0x1000);
	holds(core, 0x11000, inner, 0x1000);
	core_file_close(core);
}

static void memory_may_end_with_the_last_address_but_one(void **state)
{
	struct core_file *core;
	uint8_t *bytes;

	(void)state;
	bytes = add_memory(UINT64_MAX - 0x10, 0x10, PF_R, 0x10);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 1);
	holds(core, UINT64_MAX - 0x10, bytes, 0x10);
	core_file_close(core);
}

static void memory_past_its_own_end_in_the_core_is_not_taken(void **state)
{
	struct core_file *core;

	(void)state;
	add_memory(0x10000, 0x100, PF_R, 0x180);
	core = open_core();
	assert_int_equal(mapping_is(core, 0, 0x10000, 0x10100)->data_size, 0x100);
	assert_int_equal(status_at(core, 0x100ff, 2), MEMORY_UNMAPPED);
	core_file_close(core);
}

/*---- Mapped files ----*/

/* A program here, of four pages; its bytes for the test, and its path. */
static struct {
	int fd;
	char path[PATHS];
	uint8_t bytes[4 * HEAD];
} program;

static void write_program(void)
{
	assert_int_equal(pwrite(program.fd, program.bytes, sizeof(program.bytes), 0), sizeof(program.bytes));
}

static int begin_with_program(void **state)
{
	begin(state);
	program.fd = new_file(program.path);
	for (size_t i = 0; i < sizeof(program.bytes); i++)
		program.bytes[i] = (uint8_t)(i * 3 + i / 256);
	memcpy(program.bytes, ELFMAG, SELFMAG);
	write_program();
	return 0;
}

static int end_with_program(void **state)
{
	close(program.fd);
	return end(state);
}

/* Its first page is in the core, its text and its data are not. */
static void map_program(uint64_t head)
{
	const struct named files[] = {
		{ 0x403000, 0x404000, 3, program.path },
		{ 0x400000, 0x401000, 0, program.path },
		{ 0x401000, 0x403000, 1, program.path },
		{ 0x600000, 0x601000, 0, "/nowhere/at/all" },
	};

	memcpy(add_memory(0x400000, HEAD, PF_R, head), program.bytes, head);
	add_memory(0x401000, 2 * HEAD, PF_R | PF_X, 0);
	add_memory(0x403000, HEAD, PF_R | PF_W, 0);
	add_files(files, sizeof(files) / sizeof(files[0]));
}

static void what_the_core_leaves_out_comes_from_the_mapped_file(void **state)
{
	const unsigned int before = open_files_count();
	struct core_file *core;
	const struct core_mapping *text, *other;

	(void)state;
	map_program(HEAD);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 4);
	text = mapping_is(core, 1, 0x401000, 0x403000);
	assert_string_equal(text->path, program.path);
	assert_int_equal(text->offset, HEAD);
	assert_true(text->file >= 0);
	assert_int_equal(mapping_is(core, 0, 0x400000, 0x401000)->offset, 0);
	assert_int_equal(mapping_is(core, 2, 0x403000, 0x404000)->offset, 3 * HEAD);
	/* A mapping that only the names tell of can be read and run. */
	other = mapping_is(core, 3, 0x600000, 0x601000);
	assert_string_equal(other->path, "/nowhere/at/all");
	assert_int_equal(other->flags, PF_R | PF_X);
	assert_int_equal(other->file, -1);
	assert_true(core_file_has_file(core, program.path));
	assert_false(core_file_has_file(core, "/nowhere/at/all"));
	holds(core, 0x400000, program.bytes, 3 * HEAD);
	holds(core, 0x402ff0, program.bytes + 2 * HEAD + 0xff0, 0x10);
	assert_int_equal(status_at(core, 0x600000, 1), MEMORY_NOT_CAPTURED);
	/* The program may have written to its data. */
	assert_int_equal(status_at(core, 0x403000, 1), MEMORY_NOT_CAPTURED);
	core_file_close(core);
	assert_int_equal(open_files_count(), before);
}

/* A segment that begins within a file's mapping is at that place of the file. */
static void a_segment_within_a_mapping_has_its_place_in_the_file(void **state)
{
	const struct named file = { 0x400000, 0x404000, 1, "/a/file" };
	struct core_file *core;

	(void)state;
	add_memory(0x402000, HEAD, PF_R, 0);
	add_memory(0x404000, HEAD, PF_R, 0);
	add_files(&file, 1);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 3);
	assert_int_equal(mapping_is(core, 0, 0x400000, 0x402000)->offset, HEAD);
	assert_int_equal(mapping_is(core, 1, 0x402000, 0x403000)->offset, 3 * HEAD);
	assert_string_equal(core_file_mapping(core, 1)->path, "/a/file");
	mapping_is(core, 2, 0x404000, 0x405000);
	assert_null(core_file_mapping(core, 2)->path);
	core_file_close(core);
}

static void the_file_is_not_read(void)
{
	struct core_file *core = open_core();

	assert_false(core_file_has_file(core, program.path));
	mapping_is(core, 1, 0x401000, 0x403000);
	assert_int_equal(core_file_mapping(core, 1)->file, -1);
	assert_int_equal(status_at(core, 0x401000, 1), MEMORY_NOT_CAPTURED);
	core_file_close(core);
}

static void a_file_that_begins_otherwise_is_another_one(void **state)
{
	(void)state;
	map_program(HEAD);
	program.bytes[HEAD - 1]++;
	write_program();
	the_file_is_not_read();
}

static void a_file_that_is_shorter_than_its_head_is_another_one(void **state)
{
	(void)state;
	map_program(HEAD);
	assert_int_equal(ftruncate(program.fd, HEAD - 1), 0);
	the_file_is_not_read();
}

static void a_file_of_which_the_core_lacks_a_byte_is_not_known(void **state)
{
	(void)state;
	map_program(HEAD - 1);
	the_file_is_not_read();
}

static void all_mapped_files_are_read(void **state)
{
	const unsigned int before = open_files_count();
	const struct named files[] = {
		{ 0x400000, 0x401000, 0, "/nowhere/at/all" },
		{ 0x500000, 0x501000, 0, "/proc/self/exe" },
		{ 0x600000, 0x601000, 0, program.path },
	};
	struct core_file *core;
	uint8_t head[HEAD];
	FILE *own = fopen("/proc/self/exe", "re");

	(void)state;
	assert_non_null(own);
	assert_int_equal(fread(head, sizeof(head), 1, own), 1);
	fclose(own);
	memcpy(add_memory(0x500000, HEAD, PF_R, HEAD), head, HEAD);
	memcpy(add_memory(0x600000, HEAD, PF_R, HEAD), program.bytes, HEAD);
	add_files(files, sizeof(files) / sizeof(files[0]));
	core = open_core();
	assert_false(core_file_has_file(core, "/nowhere/at/all"));
	assert_true(core_file_has_file(core, "/proc/self/exe"));
	assert_true(core_file_has_file(core, program.path));
	core_file_close(core);
	assert_int_equal(open_files_count(), before);
}

/* Only the beginning of a file tells which one it is. */
static void a_later_part_of_a_file_does_not_tell_which_it_is(void **state)
{
	const struct named files[] = {
		{ 0x400000, 0x401000, 5, program.path },
		{ 0x401000, 0x403000, 6, program.path },
	};

	(void)state;
	memcpy(add_memory(0x400000, HEAD, PF_R, HEAD), program.bytes, HEAD);
	add_memory(0x401000, 2 * HEAD, PF_R | PF_X, 0);
	add_files(files, 2);
	the_file_is_not_read();
}

static void a_file_of_data_is_not_read(void **state)
{
	(void)state;
	program.bytes[0] = 0;
	write_program();
	map_program(HEAD);
	the_file_is_not_read();
}

static void a_file_that_has_become_a_directory_is_not_read(void **state)
{
	const unsigned int before = open_files_count();
	const struct named files[] = { { 0x400000, 0x401000, 0, "/" } };
	struct core_file *core;

	(void)state;
	memcpy(add_memory(0x400000, HEAD, PF_R, HEAD), program.bytes, HEAD);
	add_files(files, 1);
	core = open_core();
	assert_false(core_file_has_file(core, "/"));
	assert_int_equal(open_files_count(), before + 1);
	core_file_close(core);
}

/* Names that the note lacks, or says that it has. */
static void a_list_of_files_may_be_damaged(void **state)
{
	uint64_t words[] = { 2, 4096, 0x400000, 0x401000, 0, 0x402000, 0x403000, 0, 0x0061 };
	const size_t notes = made.notes_length;
	struct core_file *core;

	(void)state;
	/* The second file has no name that ends. */
	add_note(NT_FILE, words, 8 * sizeof(uint64_t) + 2);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 1);
	assert_string_equal(mapping_is(core, 0, 0x400000, 0x401000)->path, "a");
	core_file_close(core);
	/* Another list is not read. */
	add_files(&(struct named){ 0x500000, 0x501000, 0, "b" }, 1);
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 1);
	core_file_close(core);
	/* It says that there are more than it has room for. */
	for (words[0] = 3; words[0]; words[0] *= 16) {
		made.notes_length = notes;
		add_note(NT_FILE, words, sizeof(words));
		core = open_core();
		assert_int_equal(core_file_mapping_count(core), 0);
		core_file_close(core);
	}
	made.notes_length = notes;
	add_note(NT_FILE, words, sizeof(uint64_t));
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 0);
	core_file_close(core);
}

/*---- What is refused ----*/

static void another_file_is_no_core(void **state)
{
	(void)state;
	write_core(sizeof(Elf64_Ehdr) - 1);
	refused_for("too short");
	made.header.e_ident[1] = 'e';
	write_core(CORE_BYTES);
	refused_for("is not an ELF file");
	memcpy(made.header.e_ident, "\x28\xb5\x2f\xfd", 4);
	write_core(CORE_BYTES);
	refused_for("is compressed: unpack it by zstd -d");
	memcpy(made.header.e_ident, ELFMAG, SELFMAG);
	made.header.e_type = ET_EXEC;
	write_core(CORE_BYTES);
	refused_for("no core file");
	made.header.e_type = ET_CORE;
	made.header.e_ident[EI_CLASS] = ELFCLASS32;
	write_core(CORE_BYTES);
	refused_for("not supported");
	made.header.e_ident[EI_CLASS] = ELFCLASS64;
	made.header.e_ident[EI_DATA] = ELFDATA2MSB;
	write_core(CORE_BYTES);
	refused_for("not supported");
	made.header.e_ident[EI_DATA] = ELFDATA2LSB;
	made.header.e_phentsize++;
	write_core(CORE_BYTES);
	refused_for("not supported");
	made.header.e_phentsize--;
	core_file_close(open_core());
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct core_file *core = NULL;
	const char *problem = NULL;

	(void)state;
	snprintf(made.path, PATHS, "/dev/null");
	refused_for("regular file");
	assert_int_equal(core_file_open("/nowhere/at/all", &core, &problem), -ENOENT);
	assert_null(core);
	core_file_close(NULL);
}

static void a_core_that_is_cut_short_is_refused(void **state)
{
	size_t last;

	(void)state;
	add_memory(0x10000, 0x1000, PF_R, 0x1000);
	last = DATA_AT + made.data_length;
	write_core(last - 1);
	refused_for("memory is missing");
	write_core(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) - 1);
	refused_for("program headers are missing");
	write_core(last);
	made.segments[1].p_filesz = UINT64_MAX;
	write_core(CORE_BYTES);
	refused_for("memory is missing");
	made.segments[1].p_filesz = 0x1000;
	made.header.e_phoff = UINT64_MAX;
	write_core(CORE_BYTES);
	refused_for("program headers are missing");
	made.header.e_phoff = sizeof(Elf64_Ehdr);
	core_file_close(open_core());
}

/* A disk's error ends the reading; a signal does not. */
static void a_core_that_cannot_be_read_is_refused(void **state)
{
	struct core_file *core;

	(void)state;
	write_core(CORE_BYTES);
	failing.error = EIO;
	failing.reads = 1;
	refused_for("is too short for a core file");
	assert_int_equal(failing.reads, 0);
	failing.error = EINTR;
	failing.reads = 2;
	core = open_core();
	assert_int_equal(failing.reads, 0);
	assert_int_equal(core_file_thread_count(core), 1);
	core_file_close(core);
	/* The end of the file is no signal, though one came before. */
	write_core(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) - 1);
	failing.reads = 1;
	refused_for("program headers are missing");
}

static void a_core_of_no_segments_or_threads_is_refused(void **state)
{
	(void)state;
	made.header.e_phnum = 0;
	write_core(CORE_BYTES);
	refused_for("no sound program headers");
	made.header.e_phnum = 1;
	made.notes_length = 0;
	write_core(CORE_BYTES);
	refused_for("no threads");
}

/* Where its number of segments does not fit in the header, the first section has it. */
static void a_section_may_count_the_segments(void **state)
{
	Elf64_Shdr section = { .sh_info = 2 };
	struct core_file *core;

	(void)state;
	add_memory(0x10000, 0x1000, PF_R, 0x1000);
	made.header.e_phnum = PN_XNUM;
	made.header.e_shoff = CORE_BYTES - sizeof(section);
	memcpy(made.bytes + made.header.e_shoff, &section, sizeof(section));
	core = open_core();
	assert_int_equal(core_file_mapping_count(core), 1);
	core_file_close(core);
	section.sh_info = CORE_SEGMENTS_MAX + 1;
	memcpy(made.bytes + made.header.e_shoff, &section, sizeof(section));
	write_core(CORE_BYTES);
	refused_for("no sound program headers");
	made.header.e_shoff++;
	write_core(CORE_BYTES);
	refused_for("no sound program headers");
	made.header.e_shoff = 0;
	write_core(CORE_BYTES);
	refused_for("no sound program headers");
}

static void notes_that_are_too_long_are_refused(void **state)
{
	(void)state;
	made.segments[made.header.e_phnum++] = (Elf64_Phdr){ .p_type = PT_NOTE,
							     .p_filesz = CORE_NOTES_BYTES_MAX };
	write_core(CORE_BYTES);
	/* A file with a hole. */
	assert_int_equal(ftruncate(made.fd, CORE_NOTES_BYTES_MAX), 0);
	refused_for("notes are too long");
}

static void short_memory_is_an_error(void **state)
{
	const unsigned int before = open_files_count();
	size_t failures = 0;

	(void)state;
	map_program(HEAD);
	write_core(CORE_BYTES);
	for (bool failed = true; failed; failures += failed) {
		struct core_file *core = NULL;
		const char *problem = NULL;
		int error;

		allocation_fails_after(failures);
		error = core_file_open(made.path, &core, &problem);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		assert_int_equal(core != NULL, !failed);
		core_file_close(core);
		assert_int_equal(open_files_count(), before);
	}
	assert_in_range(failures, 7, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_notes_tell_of_the_process, begin, end),
		cmocka_unit_test_setup_teardown(without_such_notes_nothing_is_told, begin, end),
		cmocka_unit_test_setup_teardown(each_thread_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(so_many_threads_are_kept_and_no_more, begin, end),
		cmocka_unit_test_setup_teardown(notes_of_several_segments_are_read, begin, end),
		cmocka_unit_test_setup_teardown(a_note_that_is_cut_short_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(memory_is_read_where_the_core_holds_it, begin, end),
		cmocka_unit_test_setup_teardown(mappings_that_overlap_are_parted, begin, end),
		cmocka_unit_test_setup_teardown(memory_may_end_with_the_last_address_but_one, begin, end),
		cmocka_unit_test_setup_teardown(memory_past_its_own_end_in_the_core_is_not_taken, begin, end),
		cmocka_unit_test_setup_teardown(what_the_core_leaves_out_comes_from_the_mapped_file,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(a_segment_within_a_mapping_has_its_place_in_the_file, begin,
						end),
		cmocka_unit_test_setup_teardown(a_file_that_begins_otherwise_is_another_one,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(a_file_that_is_shorter_than_its_head_is_another_one,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(a_file_of_which_the_core_lacks_a_byte_is_not_known,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(all_mapped_files_are_read, begin_with_program,
						end_with_program),
		cmocka_unit_test_setup_teardown(a_later_part_of_a_file_does_not_tell_which_it_is,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(a_file_of_data_is_not_read, begin_with_program,
						end_with_program),
		cmocka_unit_test_setup_teardown(a_file_that_has_become_a_directory_is_not_read,
						begin_with_program, end_with_program),
		cmocka_unit_test_setup_teardown(a_list_of_files_may_be_damaged, begin, end),
		cmocka_unit_test_setup_teardown(another_file_is_no_core, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_core_that_is_cut_short_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_core_that_cannot_be_read_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_core_of_no_segments_or_threads_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_section_may_count_the_segments, begin, end),
		cmocka_unit_test_setup_teardown(notes_that_are_too_long_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(short_memory_is_an_error, begin_with_program,
						end_with_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
