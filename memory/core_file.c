/* SPDX-License-Identifier: MIT */
#include "memory/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/array.h"

enum {
	HEAD_BYTES = 4096, /* compared to identify a file; they hold its build id */
	FILES_MAX = 16384,
};

/* A file that the target had mapped and this machine has, open for reading. */
struct mapped_here {
	const char *path;
	int fd;
};

struct core_file {
	struct memory memory; /* must be first: core_read_ranges() casts it to the core_file */
	int fd;
	uint64_t size;
	uint16_t machine;
	Elf64_Phdr *segments;
	size_t segment_count;
	uint8_t *notes;
	size_t notes_size;
	struct core_mapping *mappings;
	size_t mapping_count;
	struct core_mapping *named; /* from NT_FILE */
	size_t named_count;
	struct mapped_here *files;
	size_t file_count;
	struct core_note *threads;
	size_t thread_count, thread_size;
	pid_t pid;
	char name[CORE_NAME_SIZE];
	uint64_t vdso;
};

static bool read_at(int fd, uint64_t offset, void *copy, size_t length)
{
	size_t done = 0;

	if (offset > INT64_MAX - length)
		return false;
	while (done < length) {
		ssize_t n = pread(fd, (char *)copy + done, length - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/*---- Headers ----*/

/* systemd-coredump and the like keep cores so. */
static const char *how_packed(const unsigned char ident[static EI_NIDENT])
{
	static const struct {
		const char *magic, *problem;
	} packed[] = {
		{ "\x28\xb5\x2f\xfd", "is compressed: unpack it by zstd -d" },
		{ "\x04\x22\x4d\x18", "is compressed: unpack it by lz4 -d" },
		{ "\xfd\x37zXZ", "is compressed: unpack it by xz -d" },
		{ "\x1f\x8b", "is compressed: unpack it by gzip -d" },
	};

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (memcmp(ident, packed[i].magic, strlen(packed[i].magic)) == 0)
			return packed[i].problem;
	return NULL;
}

static const char *check_header(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
		const char *problem = how_packed(header->e_ident);

		return problem ? problem : "is not an ELF file";
	}
	if (header->e_type != ET_CORE)
		return "is an ELF file, but no core file";
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_phentsize != sizeof(Elf64_Phdr))
		return "is a core file of a machine that is not supported";
	return NULL;
}

/* With PN_XNUM in the header there are too many segments for it; the first section header counts them. */
static bool count_segments(const struct core_file *core, const Elf64_Ehdr *header, size_t *ret_count)
{
	Elf64_Shdr section;

	if (header->e_phnum != PN_XNUM) {
		*ret_count = header->e_phnum;
		return true;
	}
	if (header->e_shoff == 0 || !read_at(core->fd, header->e_shoff, &section, sizeof(section)))
		return false;
	*ret_count = section.sh_info;
	return true;
}

static int read_headers(struct core_file *core, const char **ret_problem)
{
	Elf64_Ehdr header;

	if (core->size < sizeof(header) || !read_at(core->fd, 0, &header, sizeof(header))) {
		*ret_problem = "is too short for a core file";
		return -EBADMSG;
	}
	*ret_problem = check_header(&header);
	if (*ret_problem)
		return -EBADMSG;
	core->machine = header.e_machine;
	if (!count_segments(core, &header, &core->segment_count) || core->segment_count == 0 ||
	    core->segment_count > CORE_SEGMENTS_MAX) {
		*ret_problem = "is a damaged core file: it has no sound program headers";
		return -EBADMSG;
	}
	core->segments = calloc(core->segment_count, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	if (!read_at(core->fd, header.e_phoff, core->segments,
		     core->segment_count * sizeof(*core->segments))) {
		*ret_problem = "is cut short: its program headers are missing";
		return -EBADMSG;
	}
	for (size_t i = 0; i < core->segment_count; i++) {
		const Elf64_Phdr *segment = &core->segments[i];

		if (segment->p_filesz > core->size || segment->p_offset > core->size - segment->p_filesz) {
			*ret_problem = "is cut short: memory is missing at its end";
			return -EBADMSG;
		}
	}
	return 0;
}

/*---- Notes ----*/

typedef int visit_note(struct core_file *core, uint32_t type, struct core_note note);

/*
 * Visit the notes of one segment: name and contents, each padded to four bytes. Stops at an error of visit.
 */
static int visit_notes(struct core_file *core, struct core_note segment, visit_note *visit)
{
	size_t at = 0;

	while (segment.size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr header;
		uint64_t name, end;
		int error;

		memcpy(&header, segment.bytes + at, sizeof(header));
		name = at + sizeof(header) + (((uint64_t)header.n_namesz + 3) & ~UINT64_C(3));
		end = name + (((uint64_t)header.n_descsz + 3) & ~UINT64_C(3));
		if (name + header.n_descsz > segment.size)
			return 0;
		error = visit(core, header.n_type,
			      (struct core_note){ segment.bytes + name, header.n_descsz });
		if (error)
			return error;
		if (end >= segment.size)
			return 0;
		at = end;
	}
	return 0;
}

static uint64_t word_of(struct core_note note, size_t index)
{
	uint64_t word;

	memcpy(&word, note.bytes + index * sizeof(word), sizeof(word));
	return word;
}

/* NT_FILE: the count and the page size; begin, end and page offset of each mapping; then their paths. */
static int take_files(struct core_file *core, struct core_note note)
{
	enum { HEADER_WORDS = 2, ENTRY_WORDS = 3 };
	size_t words = note.size / sizeof(uint64_t);
	const char *name, *end = (const char *)note.bytes + note.size;
	uint64_t count, page;

	if (words < HEADER_WORDS || core->named)
		return 0;
	count = word_of(note, 0);
	page = word_of(note, 1);
	if (count > CORE_SEGMENTS_MAX || count > (words - HEADER_WORDS) / ENTRY_WORDS)
		return 0;
	core->named = calloc(count + 1, sizeof(*core->named));
	if (!core->named)
		return -ENOMEM;
	name = (const char *)note.bytes + (HEADER_WORDS + count * ENTRY_WORDS) * sizeof(uint64_t);
	for (uint64_t i = 0; i < count; i++) {
		const char *next = memchr(name, '\0', (size_t)(end - name));
		size_t at = HEADER_WORDS + i * ENTRY_WORDS;

		if (!next)
			return 0;
		core->named[core->named_count++] = (struct core_mapping){
			.begin = word_of(note, at),
			.end = word_of(note, at + 1),
			.offset = word_of(note, at + 2) * page,
			.path = name,
			.flags = PF_R | PF_X,
			.file = -1,
		};
		name = next + 1;
	}
	return 0;
}

static int add_thread(struct core_file *core, struct core_note note)
{
	struct core_note *larger;

	if (core->thread_count == CORE_THREADS_MAX)
		return 0;
	larger = array_grow(core->threads, &core->thread_size, core->thread_count + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	core->threads = larger;
	core->threads[core->thread_count++] = note;
	return 0;
}

static void take_process(struct core_file *core, struct core_note note)
{
	struct elf_prpsinfo info;

	if (note.size < sizeof(info))
		return;
	memcpy(&info, note.bytes, sizeof(info));
	core->pid = info.pr_pid;
	memcpy(core->name, info.pr_fname, sizeof(core->name) - 1);
}

static void take_auxv(struct core_file *core, struct core_note note)
{
	for (size_t i = 0; (i + 2) * sizeof(uint64_t) <= note.size; i += 2)
		if (word_of(note, i) == AT_SYSINFO_EHDR)
			core->vdso = word_of(note, i + 1);
}

static int take_note(struct core_file *core, uint32_t type, struct core_note note)
{
	switch (type) {
	case NT_PRSTATUS: return add_thread(core, note);
	case NT_PRPSINFO: take_process(core, note); return 0;
	case NT_AUXV: take_auxv(core, note); return 0;
	case NT_FILE: return take_files(core, note);
	default: return 0;
	}
}

static int read_notes(struct core_file *core, const char **ret_problem)
{
	uint64_t total = 0;
	size_t at = 0;

	for (size_t i = 0; i < core->segment_count; i++)
		if (core->segments[i].p_type == PT_NOTE)
			total += core->segments[i].p_filesz;
	if (total > CORE_NOTES_BYTES_MAX) {
		*ret_problem = "is a damaged core file: its notes are too long";
		return -EBADMSG;
	}
	core->notes = malloc(total + 1);
	if (!core->notes)
		return -ENOMEM;
	for (size_t i = 0; i < core->segment_count; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		int error;

		if (segment->p_type != PT_NOTE)
			continue;
		if (!read_at(core->fd, segment->p_offset, core->notes + at, segment->p_filesz)) {
			*ret_problem = "cannot be read to its end";
			return -EBADMSG;
		}
		error = visit_notes(core, (struct core_note){ core->notes + at, segment->p_filesz },
				    take_note);
		if (error)
			return error;
		at += segment->p_filesz;
	}
	if (core->thread_count == 0) {
		*ret_problem = "has no threads in it";
		return -EBADMSG;
	}
	return 0;
}

/*---- Mappings ----*/

static int compare_mappings(const void *a, const void *b)
{
	const struct core_mapping *left = a, *right = b;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	/* At equal addresses, the mapping with more data in the core comes first. */
	return (left->data_size < right->data_size) - (left->data_size > right->data_size);
}

static const struct core_mapping *find_in(const struct core_mapping *mappings, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < mappings[low - 1].end ? &mappings[low - 1] : NULL;
}

static void add_segments(struct core_file *core)
{
	for (size_t i = 0; i < core->segment_count; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		const struct core_mapping *named;
		struct core_mapping mapping;

		if (segment->p_type != PT_LOAD || segment->p_memsz == 0 ||
		    segment->p_vaddr > UINT64_MAX - segment->p_memsz)
			continue;
		mapping = (struct core_mapping){
			.begin = segment->p_vaddr,
			.end = segment->p_vaddr + segment->p_memsz,
			.flags = segment->p_flags,
			.data = segment->p_offset,
			.data_size = segment->p_filesz < segment->p_memsz ? segment->p_filesz
									  : segment->p_memsz,
			.file = -1,
		};
		named = find_in(core->named, core->named_count, mapping.begin);
		if (named) {
			mapping.path = named->path;
			mapping.offset = named->offset + (mapping.begin - named->begin);
		}
		core->mappings[core->mapping_count++] = mapping;
	}
}

/* Drop mappings that begin inside another, and cut those that reach into the next. */
static void part_mappings(struct core_file *core)
{
	uint64_t end = 0;
	size_t kept = 0;

	qsort(core->mappings, core->mapping_count, sizeof(*core->mappings), compare_mappings);
	for (size_t i = 0; i < core->mapping_count; i++) {
		struct core_mapping mapping = core->mappings[i];

		if (mapping.begin < end || mapping.begin >= mapping.end)
			continue;
		if (i + 1 < core->mapping_count && core->mappings[i + 1].begin < mapping.end &&
		    core->mappings[i + 1].begin > mapping.begin)
			mapping.end = core->mappings[i + 1].begin;
		if (mapping.data_size > mapping.end - mapping.begin)
			mapping.data_size = mapping.end - mapping.begin;
		core->mappings[kept++] = mapping;
		end = mapping.end;
	}
	core->mapping_count = kept;
}

static int set_mappings(struct core_file *core)
{
	core->mappings = calloc(core->segment_count + core->named_count + 1, sizeof(*core->mappings));
	if (!core->mappings)
		return -ENOMEM;
	if (core->named_count)
		qsort(core->named, core->named_count, sizeof(*core->named), compare_mappings);
	add_segments(core);
	for (size_t i = 0; i < core->named_count; i++)
		core->mappings[core->mapping_count++] = core->named[i];
	part_mappings(core);
	return 0;
}

/*---- Files ----*/

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct mapped_here *)a)->path, ((const struct mapped_here *)b)->path);
}

static struct mapped_here *find_file(const struct core_file *core, const char *path)
{
	struct mapped_here wanted = { .path = path };

	return core->file_count
		       ? bsearch(&wanted, core->files, core->file_count, sizeof(*core->files), compare_files)
		       : NULL;
}

/* Do the first HEAD_BYTES of the file equal those of its mapping in the core? */
static bool begins_alike(const struct core_file *core, const struct core_mapping *mapping, int fd)
{
	uint8_t dumped[HEAD_BYTES], here[HEAD_BYTES];

	return mapping->data_size >= HEAD_BYTES && read_at(core->fd, mapping->data, dumped, sizeof(dumped)) &&
	       memcmp(dumped, ELFMAG, SELFMAG) == 0 && read_at(fd, 0, here, sizeof(here)) &&
	       memcmp(dumped, here, sizeof(here)) == 0;
}

static int open_file(const struct core_file *core, const struct core_mapping *mapping)
{
	/* By now, a device or a pipe may be at this path. */
	int fd = open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && begins_alike(core, mapping, fd))
		return fd;
	close(fd);
	return -1;
}

static int open_files(struct core_file *core)
{
	core->files = calloc(core->mapping_count + 1, sizeof(*core->files));
	if (!core->files)
		return -ENOMEM;
	for (size_t i = 0; i < core->mapping_count && core->file_count < FILES_MAX; i++) {
		const struct core_mapping *mapping = &core->mappings[i];
		int fd;

		if (!mapping->path || mapping->offset != 0)
			continue;
		fd = open_file(core, mapping);
		if (fd >= 0)
			core->files[core->file_count++] = (struct mapped_here){ mapping->path, fd };
	}
	qsort(core->files, core->file_count, sizeof(*core->files), compare_files);
	for (size_t i = 0; i < core->mapping_count; i++) {
		const struct mapped_here *file = core->mappings[i].path
							 ? find_file(core, core->mappings[i].path)
							 : NULL;

		core->mappings[i].file = file ? (int)(file - core->files) : -1;
	}
	return 0;
}

bool core_file_has_file(const struct core_file *core, const char *path)
{
	return find_file(core, path) != NULL;
}

/*---- Memory ----*/

/* Read what one source, core or file, holds of the range; *length becomes the bytes read. */
static enum memory_status read_part(const struct core_file *core, const struct core_mapping *mapping,
				    uint64_t address, uint8_t *copy, size_t *length)
{
	uint64_t skip = address - mapping->begin;

	if (*length > mapping->end - address)
		*length = (size_t)(mapping->end - address);
	if (skip < mapping->data_size) {
		if (*length > mapping->data_size - skip)
			*length = (size_t)(mapping->data_size - skip);
		return read_at(core->fd, mapping->data + skip, copy, *length) ? MEMORY_OK
									      : MEMORY_NOT_CAPTURED;
	}
	/* The program may have changed writable memory, so the file does not show it. */
	if (mapping->file < 0 || (mapping->flags & PF_W))
		return MEMORY_NOT_CAPTURED;
	return read_at(core->files[mapping->file].fd, mapping->offset + skip, copy, *length)
		       ? MEMORY_OK
		       : MEMORY_NOT_CAPTURED;
}

static enum memory_status read_range(const struct core_file *core, const struct memory_range *range)
{
	uint64_t address = range->address;
	uint8_t *copy = range->copy;
	size_t left = range->length;

	if (range->address > UINT64_MAX - range->length)
		return MEMORY_UNMAPPED;
	while (left) {
		const struct core_mapping *mapping = find_in(core->mappings, core->mapping_count, address);
		size_t part = left;
		enum memory_status status;

		if (!mapping)
			return MEMORY_UNMAPPED;
		status = read_part(core, mapping, address, copy, &part);
		if (status != MEMORY_OK)
			return status;
		address += part;
		copy += part;
		left -= part;
	}
	return MEMORY_OK;
}

static void core_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct core_file *core = (const struct core_file *)memory;

	for (size_t i = 0; i < count; i++)
		ranges[i].status = read_range(core, &ranges[i]);
}

/*---- The whole ----*/

static int load(struct core_file *core, const char *path, const char **ret_problem)
{
	struct stat status;
	int error;

	core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (core->fd < 0 || fstat(core->fd, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode)) {
		*ret_problem = "is not a regular file";
		return -EBADMSG;
	}
	core->size = (uint64_t)status.st_size;
	error = read_headers(core, ret_problem);
	if (!error)
		error = read_notes(core, ret_problem);
	if (!error)
		error = set_mappings(core);
	return error ? error : open_files(core);
}

int core_file_open(const char *path, struct core_file **ret_core, const char **ret_problem)
{
	struct core_file *core = calloc(1, sizeof(*core));
	int error;

	if (!core)
		return -ENOMEM;
	core->memory.read_ranges = core_read_ranges;
	error = load(core, path, ret_problem);
	if (error) {
		core_file_close(core);
		return error;
	}
	*ret_core = core;
	return 0;
}

void core_file_close(struct core_file *core)
{
	if (!core)
		return;
	for (size_t i = 0; i < core->file_count; i++)
		close(core->files[i].fd);
	if (core->fd >= 0)
		close(core->fd);
	free(core->files);
	free(core->mappings);
	free(core->named);
	free(core->threads);
	free(core->notes);
	free(core->segments);
	free(core);
}

struct memory *core_file_memory(struct core_file *core)
{
	return &core->memory;
}

uint16_t core_file_machine(const struct core_file *core)
{
	return core->machine;
}

size_t core_file_mapping_count(const struct core_file *core)
{
	return core->mapping_count;
}

const struct core_mapping *core_file_mapping(const struct core_file *core, size_t index)
{
	return &core->mappings[index];
}

size_t core_file_thread_count(const struct core_file *core)
{
	return core->thread_count;
}

struct core_note core_file_thread(const struct core_file *core, size_t index)
{
	return core->threads[index];
}

pid_t core_file_pid(const struct core_file *core)
{
	return core->pid;
}

const char *core_file_name(const struct core_file *core)
{
	return core->name;
}

uint64_t core_file_vdso(const struct core_file *core)
{
	return core->vdso;
}
