/* SPDX-License-Identifier: MIT */
#include "unwind/elf/elf_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "luajit-layouts/module/elf_headers.h"
#include "memory/memory_file.h"
#include "memory/slow_file.h"

enum {
	NOTES_MAX = 64 << 10, /* bytes of one note segment */
	IMAGE_MAX = 64 << 20, /* bytes read from memory */
};
static const off_t file_max = (off_t)4 << 30;

/* Where the segment at the file's beginning is mapped, less where it asked to be. */
static uint64_t find_bias(const struct module *module, const struct elf_headers *headers)
{
	uint64_t bias;

	return elf_headers_bias(headers, module->base, &bias) ? bias : module->base;
}

/*---- Is a file the one that is mapped? ----*/

static bool holds_build_id(const uint8_t *notes, size_t length)
{
	Elf64_Nhdr note;

	for (size_t at = 0; length - at >= sizeof(note);) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    length - at >= sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0)
			return true;
		if (note.n_namesz > NOTES_MAX || note.n_descsz > NOTES_MAX)
			return false;
		at += ((size_t)note.n_namesz + 3) / 4 * 4 + ((size_t)note.n_descsz + 3) / 4 * 4;
		if (at > length)
			return false;
	}
	return false;
}

/* Compare one segment of notes. Sets *build_id if they are the same and include a build id. */
static bool same_notes(int fd, struct memory *live, struct errands *errands, const Elf64_Phdr *segment,
		       uint64_t bias, bool *build_id)
{
	size_t length = segment->p_filesz;
	uint8_t *notes;
	bool same;

	if (length > NOTES_MAX)
		return false;
	notes = malloc(2 * length + 1);
	if (!notes)
		return false;
	same = slow_pread(errands, fd, notes, length, segment->p_offset) &&
	       memory_read(live, bias + segment->p_vaddr, notes + length, length) == MEMORY_OK &&
	       memcmp(notes, notes + length, length) == 0;
	*build_id |= same && holds_build_id(notes, length);
	free(notes);
	return same;
}

static bool is_mapped_file(int fd, const struct module *module, struct memory *live, struct errands *errands)
{
	struct elf_headers mapped, file;
	struct stat status;
	bool build_id = false;
	uint64_t bias;

	memset(&file, 0, sizeof(file));
	if (!slow_fstat(errands, fd, &status) || !S_ISREG(status.st_mode) || status.st_size > file_max ||
	    !elf_headers_read(live, module->base, &mapped) ||
	    !slow_pread(errands, fd, &file.elf, sizeof(file.elf), 0) || !elf_headers_fit(&file.elf) ||
	    !slow_pread(errands, fd, file.segments, file.elf.e_phnum * sizeof(Elf64_Phdr),
			file.elf.e_phoff) ||
	    memcmp(&mapped, &file, sizeof(file)) != 0)
		return false;
	bias = find_bias(module, &mapped);
	for (size_t i = 0; i < mapped.elf.e_phnum; i++)
		if (mapped.segments[i].p_type == PT_NOTE &&
		    !same_notes(fd, live, errands, &mapped.segments[i], bias, &build_id))
			return false;
	return build_id || status.st_ino == module->inode;
}

static bool begin_file(int fd, struct elf_file *ret_file)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		return false;
	}
	*ret_file = (struct elf_file){ .elf = elf, .fd = fd };
	return true;
}

bool elf_file_open_path(const char *path, struct elf_file *ret_file)
{
	int fd = slow_open(NULL, path);
	struct stat status;

	elf_version(EV_CURRENT);
	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= file_max &&
	    begin_file(fd, ret_file))
		return true;
	close(fd);
	return false;
}

static int open_mapped_file(const struct module *module, struct memory *live, struct errands *errands)
{
	int fd = module->file ? slow_open(errands, module->file) : -1;

	if (fd < 0)
		return -1;
	if (is_mapped_file(fd, module, live, errands))
		return fd;
	slow_close(errands, fd);
	return -1;
}

/*---- The image in memory ----*/

/* Bytes from the file's beginning to its last mapped one; 0 if they are too many. */
static size_t mapped_size(const struct elf_headers *headers)
{
	uint64_t size = sizeof(Elf64_Ehdr);

	for (size_t i = 0; i < headers->elf.e_phnum; i++) {
		const Elf64_Phdr *segment = &headers->segments[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (segment->p_offset > IMAGE_MAX || segment->p_filesz > IMAGE_MAX)
			return 0;
		if (segment->p_offset + segment->p_filesz > size)
			size = segment->p_offset + segment->p_filesz;
	}
	return size <= IMAGE_MAX ? size : 0;
}

/* A descriptor of an anonymous file with these bytes; -1 on failure. */
static int file_of(const uint8_t *bytes, size_t size)
{
	int fd = memory_file("image");

	if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int read_image(const struct module *module, struct memory *live)
{
	struct elf_headers headers;
	Elf64_Ehdr *elf;
	uint64_t bias;
	size_t size;
	uint8_t *bytes;
	int fd;

	if (!elf_headers_read(live, module->base, &headers))
		return -1;
	size = mapped_size(&headers);
	bytes = size ? calloc(1, size) : NULL;
	if (!bytes)
		return -1;
	bias = find_bias(module, &headers);
	/* A segment that cannot be read stays zero. */
	for (size_t i = 0; i < headers.elf.e_phnum; i++)
		if (headers.segments[i].p_type == PT_LOAD)
			memory_read(live, bias + headers.segments[i].p_vaddr,
				    bytes + headers.segments[i].p_offset, headers.segments[i].p_filesz);
	memcpy(bytes, &headers.elf, sizeof(headers.elf));
	elf = (Elf64_Ehdr *)(void *)bytes;
	/* The loader maps no section headers, except the vdso's. */
	if (elf->e_shoff > size || (size_t)elf->e_shnum * sizeof(Elf64_Shdr) > size - elf->e_shoff)
		elf->e_shoff = elf->e_shnum = elf->e_shstrndx = 0;
	fd = file_of(bytes, size);
	free(bytes);
	return fd;
}

int elf_file_descriptor(const struct module *module, struct memory *live, struct errands *errands)
{
	int fd = open_mapped_file(module, live, errands);

	return fd >= 0 ? fd : read_image(module, live);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	close(file->fd);
	*file = (struct elf_file){ .fd = -1 };
}
