/* SPDX-License-Identifier: MIT */
#include "src/linux/files/file_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/slow_file.h"
#include "unwind/elf/file_identity.h"

_Static_assert((int)FILE_HEAD_BYTES <= (int)SLOW_HEAD_MAX, "it is read as one errand");

/* What lies at a path. */
enum answer {
	ANSWER_LATE,  /* that is not known yet */
	ANSWER_OTHER, /* another file, or none */
	ANSWER_ALIKE, /* a file that begins as what is mapped does, maybe a copy of it */
	ANSWER_SAME,
};

/* The beginning of a mapped ELF file never changes, and holds its build id. */
static enum answer compare_heads(const struct file_owner *owner, const struct mapped_file *file,
				 const char *path)
{
	unsigned char mapped[FILE_HEAD_BYTES], read_here[FILE_HEAD_BYTES];
	enum memory_status status;

	if (!slow_head(owner->errands, path, read_here, sizeof(read_here)))
		return errno == ETIMEDOUT ? ANSWER_LATE : ANSWER_OTHER;
	status = memory_read(owner->memory, file->base, mapped, sizeof(mapped));
	if (status != MEMORY_OK)
		return status == MEMORY_NOT_CAPTURED ? ANSWER_LATE : ANSWER_OTHER;
	return memcmp(mapped, read_here, sizeof(mapped)) == 0 ? ANSWER_ALIKE : ANSWER_OTHER;
}

/*
 * On an overlay, the mapping has device and inode of the filesystem below; and a path may lead elsewhere from
 * here than from the target's root.
 */
static enum answer ask(const struct file_owner *owner, const struct mapped_file *file, const char *path,
		       struct stat *ret_status)
{
	if (!slow_stat(owner->errands, path, ret_status))
		return errno == ETIMEDOUT ? ANSWER_LATE : ANSWER_OTHER;
	if (!S_ISREG(ret_status->st_mode))
		return ANSWER_OTHER;
	if (ret_status->st_ino == file->inode && ret_status->st_dev == file->device)
		return ANSWER_SAME;
	return compare_heads(owner, file, path);
}

enum place {
	PLACE_REAL_NAME, /* the name itself may end as those of deleted files do in /proc/PID/maps */
	PLACE_TARGETS_ROOT,
	PLACE_OUR_ROOT, /* the target may have another root in the same mount namespace */
	PLACE_PROGRAM,  /* this and the next are for files that were deleted or replaced */
	PLACE_MAPPING,  /* needs privileges */
	PLACE_COUNT
};

/* NULL if there is no such place. */
static char *path_at(const struct file_owner *owner, const struct mapped_file *file, enum place place)
{
	const struct mapping *mapping;
	char *path = NULL;
	int length = -1;

	switch (place) {
	case PLACE_REAL_NAME:
		if (file->deleted)
			length = asprintf(&path, "/proc/%d/root%s%s", (int)owner->pid, file->path,
					  MAPS_DELETED);
		break;
	case PLACE_TARGETS_ROOT:
		length = asprintf(&path, "/proc/%d/root%s", (int)owner->pid, file->path);
		break;
	case PLACE_OUR_ROOT: return strdup(file->path);
	case PLACE_PROGRAM: length = asprintf(&path, "/proc/%d/exe", (int)owner->pid); break;
	case PLACE_MAPPING:
		mapping = maps_find(owner->maps, file->base);
		if (mapping)
			length = asprintf(&path, "/proc/%d/map_files/%lx-%lx", (int)owner->pid,
					  (unsigned long)mapping->begin, (unsigned long)mapping->end);
		break;
	case PLACE_COUNT: break;
	}
	return length < 0 ? NULL : path;
}

/* Beside the mapped file, a copy may have the other name: it has another inode on the same device. */
static bool is_real_name(const struct mapped_file *file, const struct stat *status, enum answer answer)
{
	return answer == ANSWER_SAME || status->st_dev != file->device;
}

static char *shown_name(const struct mapped_file *file, bool is_real)
{
	char *shown = NULL;

	if (!is_real)
		return strdup(file->path);
	return asprintf(&shown, "%s%s", file->path, MAPS_DELETED) < 0 ? NULL : shown;
}

bool file_place_find(const struct file_owner *owner, const struct mapped_file *file,
		     struct file_place *ret_place)
{
	struct file_place found = { .is_late = false };
	bool is_real = false;

	for (int place = 0; place < PLACE_COUNT && !found.path; place++) {
		char *path = path_at(owner, file, (enum place)place);
		struct stat status;
		const enum answer answer = path ? ask(owner, file, path, &status) : ANSWER_OTHER;

		found.is_late |= answer == ANSWER_LATE;
		if (answer < ANSWER_ALIKE) {
			free(path);
			continue;
		}
		found.path = path;
		found.status = status;
		is_real = place == PLACE_REAL_NAME && is_real_name(file, &status, answer);
	}
	found.is_late &= !found.path;
	found.shown = shown_name(file, is_real);
	*ret_place = found;
	if (found.shown)
		return true;
	file_place_clear(ret_place);
	return false;
}

void file_place_clear(struct file_place *place)
{
	free(place->shown);
	free(place->path);
	*place = (struct file_place){ .shown = NULL };
}

bool file_place_shows(const struct mapped_file *file, const char *shown)
{
	const size_t length = strlen(file->path);

	return strncmp(shown, file->path, length) == 0 &&
	       (shown[length] == '\0' || (file->deleted && strcmp(shown + length, MAPS_DELETED) == 0));
}
