/* SPDX-License-Identifier: MIT */
/*
 * file_place: where ljspy can open a file that a process has mapped.
 *
 * What the process's path leads to may be another file by now, or lead elsewhere from here; and the kernel
 * tells of deleted files by a name that any file may really have.
 */
#ifndef LJSPY_FILE_PLACE_H
#define LJSPY_FILE_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "memory/errand.h"
#include "memory/memory.h"
#include "src/linux/proc/maps.h"

/* The process that has mapped it. */
struct file_owner {
	pid_t pid;
	const struct maps *maps;
	struct memory *memory;   /* of the process */
	struct errands *errands; /* by which files are asked for; may be NULL */
};

struct file_place {
	char *shown;        /* the file's path to be shown, with " (deleted)" if that is part of its name */
	char *path;         /* by which ljspy can open it; NULL if there is none */
	struct stat status; /* of what is there; zero with path NULL */
	bool is_late;       /* path is NULL, as it has not been told in time */
};

/* False when memory is short. */
bool file_place_find(const struct file_owner *owner, const struct mapped_file *file,
		     struct file_place *ret_place);
void file_place_clear(struct file_place *place);

/* Can the file have been shown so? */
bool file_place_shows(const struct mapped_file *file, const char *shown);

#endif
