/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"

struct maps {
	pid_t pid;
	pid_t tid; /* the thread used for reading: pid while that lives */

	char *text, *fresh; /* /proc/PID/maps as parsed, and room for the next reading */
	size_t text_length, text_room, fresh_room;

	char *names; /* the paths point here */
	struct mapping *mappings;
	size_t count;
	struct mapped_file *files;
	size_t file_count;
};

/* Where in a line the parser is. */
struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *cursor, char expected)
{
	if (cursor->at == cursor->end || *cursor->at != expected)
		return false;
	cursor->at++;
	return true;
}

static bool take_number(struct cursor *cursor, unsigned int base, uint64_t *ret)
{
	const char *start = cursor->at;
	uint64_t value = 0;

	for (; cursor->at < cursor->end; cursor->at++) {
		char c = *cursor->at;
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned int)(c - 'a') + 10;
		else
			break;
		if (digit >= base || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (cursor->at == start)
		return false;
	*ret = value;
	return true;
}

static bool take_access(struct cursor *cursor, unsigned int *ret)
{
	static const struct {
		char letter;
		unsigned int access;
	} places[] = {
		{ 'r', MAPPING_READ },
		{ 'w', MAPPING_WRITE },
		{ 'x', MAPPING_EXECUTE },
		{ 's', MAPPING_SHARED },
	};
	unsigned int access = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (take_char(cursor, places[i].letter))
			access |= places[i].access;
		else if (!take_char(cursor, '-') && !take_char(cursor, 'p'))
			return false;
	}
	*ret = access;
	return true;
}

/* Copy a path to *names and move *names behind it; the kernel writes a newline in a name as \012. */
static const char *take_path(struct cursor *cursor, char **names, bool *ret_deleted)
{
	static const char deleted[] = MAPS_DELETED;
	const size_t deleted_length = sizeof(deleted) - 1;
	const char *path = *names;
	char *to = *names;

	while (cursor->at < cursor->end) {
		if (cursor->end - cursor->at >= 4 && memcmp(cursor->at, "\\012", 4) == 0) {
			*to++ = '\n';
			cursor->at += 4;
		} else {
			*to++ = *cursor->at++;
		}
	}
	*ret_deleted = (size_t)(to - path) > deleted_length &&
		       memcmp(to - deleted_length, deleted, deleted_length) == 0;
	if (*ret_deleted)
		to -= deleted_length;
	*to++ = '\0';
	*names = to;
	return path;
}

/* "55d0e8a4c000-55d0e8a4e000 r-xp 00002000 fe:00 1234       /usr/bin/x (deleted)" */
static bool parse_line(struct cursor line, char **names, struct mapping *ret)
{
	struct mapping mapping;
	uint64_t major_number, minor_number;
	bool deleted;

	if (!take_number(&line, 16, &mapping.begin) || !take_char(&line, '-') ||
	    !take_number(&line, 16, &mapping.end) || !take_char(&line, ' ') ||
	    !take_access(&line, &mapping.access) || !take_char(&line, ' ') ||
	    !take_number(&line, 16, &mapping.offset) || !take_char(&line, ' ') ||
	    !take_number(&line, 16, &major_number) || !take_char(&line, ':') ||
	    !take_number(&line, 16, &minor_number) || !take_char(&line, ' ') ||
	    !take_number(&line, 10, &mapping.inode))
		return false;
	if (mapping.begin >= mapping.end)
		return false;
	while (take_char(&line, ' '))
		;
	mapping.device = makedev((unsigned int)major_number, (unsigned int)minor_number);
	mapping.path = take_path(&line, names, &deleted);
	mapping.deleted = deleted && mapping.inode != 0;
	*ret = mapping;
	return true;
}

static bool is_same_file(const struct mapping *mapping, const struct mapped_file *file)
{
	return mapping->device == file->device && mapping->inode == file->inode &&
	       strcmp(mapping->path, file->path) == 0;
}

/*
 * Does this mapping belong to the same loading of the file as the one before? The
 * header of an ELF file is never mapped writable, but the data of a small file may
 * share its first page, and so offset 0.
 */
static bool continues_file(const struct mapping *mapping, const struct mapped_file *file)
{
	return is_same_file(mapping, file) && (mapping->offset != 0 || (mapping->access & MAPPING_WRITE));
}

/*
 * Code between two mappings of a file, from its beginning on, is the file's, also if it has no file: programs
 * copy their code to memory with large pages, and put that in the place of the file's.
 */
static void collect_files(struct maps *maps)
{
	bool is_from_beginning = false, has_code_behind = false;
	uint64_t last_offset = 0;

	maps->file_count = 0;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		struct mapped_file *file = maps->file_count ? &maps->files[maps->file_count - 1] : NULL;

		if (mapping->inode == 0) {
			has_code_behind |= (mapping->access & MAPPING_EXECUTE) != 0;
			continue;
		}
		if (!file || !continues_file(mapping, file)) {
			file = &maps->files[maps->file_count++];
			*file = (struct mapped_file){
				.begin = mapping->begin,
				.base = mapping->begin,
				.device = mapping->device,
				.inode = mapping->inode,
				.path = mapping->path,
				.deleted = mapping->deleted,
			};
			is_from_beginning = mapping->offset == 0;
			has_code_behind = false;
		}
		has_code_behind &= is_from_beginning && mapping->offset > last_offset;
		last_offset = mapping->offset;
		file->end = mapping->end;
		if (has_code_behind || (mapping->access & MAPPING_EXECUTE))
			file->executable = true;
	}
}

static size_t count_lines(const char *text, size_t length)
{
	size_t count = 1;

	for (const char *at = text; (at = memchr(at, '\n', length - (size_t)(at - text))); at++)
		count++;
	return count;
}

/* The arrays have room for this many lines. */
static void parse_lines(struct maps *maps, char *names, size_t lines, const char *text, size_t length)
{
	const char *end = text + length;
	uint64_t last_end = 0;

	maps->count = 0;
	for (size_t i = 0; i < lines && text < end; i++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct cursor line = { text, newline ? newline : end };
		struct mapping *mapping = &maps->mappings[maps->count];

		/*
		 * ljspy reads the file in pieces, and the target may map and
		 * unmap in between; skip lines whose addresses do not ascend.
		 */
		if (parse_line(line, &names, mapping) && mapping->begin >= last_end) {
			last_end = mapping->end;
			maps->count++;
		}
		text = line.end + 1;
	}
}

int maps_parse(struct maps *maps, const char *text, size_t length)
{
	size_t lines = count_lines(text, length);
	struct mapping *mappings;
	struct mapped_file *files;
	char *names;

	if (lines > MAPS_COUNT_MAX)
		lines = MAPS_COUNT_MAX;
	names = malloc(length + lines); /* a NUL for each path */
	mappings = calloc(lines, sizeof(*mappings));
	files = calloc(lines, sizeof(*files));
	if (!names || !mappings || !files) {
		free(names);
		free(mappings);
		free(files);
		return -ENOMEM;
	}
	free(maps->names);
	free(maps->mappings);
	free(maps->files);
	maps->names = names;
	maps->mappings = mappings;
	maps->files = files;
	parse_lines(maps, names, lines, text, length);
	collect_files(maps);
	return 0;
}

/* Read /proc/PID/maps into maps->fresh. Its length or a negative errno. */
static ssize_t read_text(struct maps *maps)
{
	ssize_t length = 0, n;
	int fd = proc_file_open(maps->tid, "maps");

	if (fd < 0)
		return fd;
	do {
		if ((size_t)length == maps->fresh_room) {
			size_t room = length ? 2 * (size_t)length : 1 << 16;
			char *bigger = room <= MAPS_BYTES_MAX ? realloc(maps->fresh, room) : NULL;

			if (!bigger) {
				n = room <= MAPS_BYTES_MAX ? -ENOMEM : 0;
				break;
			}
			maps->fresh = bigger;
			maps->fresh_room = room;
		}
		n = proc_file_fill(fd, maps->fresh + length, maps->fresh_room - (size_t)length);
		if (n > 0)
			length += n;
	} while (n > 0);
	close(fd);
	if (n == 0 && length == 0) /* the process has no memory any more */
		n = -ESRCH;
	return n < 0 ? n : length;
}

/*
 * A thread that has ended shows no mappings; choose one that still has them. It is the same one where an
 * execve() has replaced the memory after the file was opened.
 */
static bool choose_thread(struct maps *maps)
{
	pid_t tid = process_thread_with_memory(maps->pid);

	if (tid == 0)
		return false;
	maps->tid = tid;
	return true;
}

int maps_refresh(struct maps *maps, bool *ret_changed)
{
	ssize_t length = read_text(maps);
	char *text;
	size_t room;
	int error;

	if (length == -ESRCH && choose_thread(maps))
		length = read_text(maps);
	if (length < 0)
		return (int)length;
	if (maps->text && (size_t)length == maps->text_length &&
	    memcmp(maps->text, maps->fresh, maps->text_length) == 0) {
		*ret_changed = false;
		return 0;
	}
	error = maps_parse(maps, maps->fresh, (size_t)length);
	if (error)
		return error;
	text = maps->text;
	room = maps->text_room;
	maps->text = maps->fresh;
	maps->text_room = maps->fresh_room;
	maps->text_length = (size_t)length;
	maps->fresh = text;
	maps->fresh_room = room;
	*ret_changed = true;
	return 0;
}

struct maps *maps_new(pid_t pid)
{
	struct maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return NULL;
	maps->pid = maps->tid = pid;
	return maps;
}

void maps_free(struct maps *maps)
{
	if (!maps)
		return;
	free(maps->text);
	free(maps->fresh);
	free(maps->names);
	free(maps->mappings);
	free(maps->files);
	free(maps);
}

size_t maps_count(const struct maps *maps)
{
	return maps->count;
}

const struct mapping *maps_at(const struct maps *maps, size_t index)
{
	return &maps->mappings[index];
}

size_t maps_file_count(const struct maps *maps)
{
	return maps->file_count;
}

const struct mapped_file *maps_file_at(const struct maps *maps, size_t index)
{
	return &maps->files[index];
}

size_t maps_index(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address < maps->mappings[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct mapping *maps_find(const struct maps *maps, uint64_t address)
{
	const size_t index = maps_index(maps, address);

	return index < maps->count && maps->mappings[index].begin <= address ? &maps->mappings[index] : NULL;
}

const struct mapping *maps_find_path(const struct maps *maps, const char *path)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strcmp(maps->mappings[i].path, path) == 0)
			return &maps->mappings[i];
	return NULL;
}
