/* SPDX-License-Identifier: MIT */
/* Where ljspy can open the files that a process has mapped. */
#include "src/inspect/lua_process_parts.h"

#include "memory/slow_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 1024 }; /* these tell files apart */

/* The beginning of a mapped ELF file never changes, and holds its build id. */
static bool begins_alike(const struct lua_process *process, const struct mapped_file *file, const char *path)
{
	unsigned char mapped[HEAD_BYTES], read_here[HEAD_BYTES];

	return slow_head(known_files_errands(process->files), path, read_here, sizeof(read_here)) &&
	       memory_read(live_memory_memory(process->live), file->base, mapped, sizeof(mapped)) ==
		       MEMORY_OK &&
	       memcmp(mapped, read_here, sizeof(mapped)) == 0;
}

/*
 * Is the file at that path the one that is mapped? On an overlay, the mapping has
 * device and inode of the filesystem below; and a path may lead elsewhere from
 * here than from the target's root.
 */
static bool leads_to(const struct lua_process *process, const struct mapped_file *file, const char *path,
		     struct stat *ret_status)
{
	struct stat status;

	if (!slow_stat(known_files_errands(process->files), path, &status) || !S_ISREG(status.st_mode))
		return false;
	if ((status.st_ino != file->inode || status.st_dev != file->device) &&
	    !begins_alike(process, file, path))
		return false;
	*ret_status = status;
	return true;
}

enum place {
	PLACE_TARGETS_ROOT,
	PLACE_REAL_NAME, /* the name itself may end as those of deleted files do in /proc/PID/maps */
	PLACE_OUR_ROOT,  /* the target may have another root in the same mount namespace */
	PLACE_PROGRAM,   /* this and the next are for files that were deleted or replaced */
	PLACE_MAPPING,   /* needs privileges */
	PLACE_COUNT
};

static char *path_at(const struct lua_process *process, const struct mapped_file *file, enum place place)
{
	const struct mapping *mapping;
	char *path = NULL;
	int length = -1;

	switch (place) {
	case PLACE_TARGETS_ROOT:
		length = asprintf(&path, "%s%s", image_root(process->image), file->path);
		break;
	case PLACE_REAL_NAME:
		if (file->deleted)
			length = asprintf(&path, "%s%s%s", image_root(process->image), file->path,
					  MAPS_DELETED);
		break;
	case PLACE_OUR_ROOT: return strdup(file->path);
	case PLACE_PROGRAM: length = asprintf(&path, "/proc/%d/exe", process->pid); break;
	case PLACE_MAPPING:
		mapping = maps_find(process->maps, file->base);
		if (mapping)
			length = asprintf(&path, "/proc/%d/map_files/%lx-%lx", process->pid,
					  (unsigned long)mapping->begin, (unsigned long)mapping->end);
		break;
	case PLACE_COUNT: break;
	}
	return length < 0 ? NULL : path;
}

/* A copy may have the other name: only the file itself counts. */
static bool has_real_name(const struct lua_process *process, const struct mapped_file *file)
{
	char *path = file->deleted && !process->core ? path_at(process, file, PLACE_REAL_NAME) : NULL;
	struct stat status;
	const bool has = path && slow_stat(known_files_errands(process->files), path, &status) &&
			 status.st_ino == file->inode && status.st_dev == file->device;

	free(path);
	return has;
}

char *process_shown_path(const struct lua_process *process, const struct mapped_file *file)
{
	char *path = NULL;

	if (!has_real_name(process, file))
		return strdup(file->path);
	return asprintf(&path, "%s%s", file->path, MAPS_DELETED) < 0 ? NULL : path;
}

bool process_shows_path(const struct mapped_file *file, const char *shown)
{
	const size_t length = strlen(file->path);

	return strncmp(shown, file->path, length) == 0 &&
	       (shown[length] == '\0' || (file->deleted && strcmp(shown + length, MAPS_DELETED) == 0));
}

static char *path_beside_core(const struct lua_process *process, const struct mapped_file *file,
			      struct stat *ret_status)
{
	if (!core_file_has_file(process->core, file->path) ||
	    !slow_stat(known_files_errands(process->files), file->path, ret_status))
		return NULL;
	return strdup(file->path);
}

char *process_openable_path(const struct lua_process *process, const struct mapped_file *file,
			    struct stat *ret_status)
{
	if (process->core)
		return path_beside_core(process, file, ret_status);
	for (int place = 0; place < PLACE_COUNT; place++) {
		char *path = path_at(process, file, (enum place)place);

		if (path && leads_to(process, file, path, ret_status))
			return path;
		free(path);
	}
	return NULL;
}
