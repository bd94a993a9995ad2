/* SPDX-License-Identifier: MIT */
/*
 * maps: what is mapped where in a process, from /proc/PID/maps.
 *
 * Paths are as the process sees them in its own mount namespace. They are untrusted
 * and may contain any byte but NUL.
 */
#ifndef LJSPY_MAPS_H
#define LJSPY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	MAPS_BYTES_MAX = 64 << 20, /* of /proc/PID/maps; ljspy reads no more */
	MAPS_COUNT_MAX = 1 << 20,
};

enum mapping_access {
	MAPPING_READ = 1 << 0,
	MAPPING_WRITE = 1 << 1,
	MAPPING_EXECUTE = 1 << 2,
	MAPPING_SHARED = 1 << 3,
};

/* What the kernel puts behind the name of a file that has none any more; any file's name may end so, too. */
#define MAPS_DELETED " (deleted)"

struct mapping {
	uint64_t begin, end;
	uint64_t offset; /* in the file */
	dev_t device;
	uint64_t inode;      /* 0: no file */
	const char *path;    /* "" if it has none; "[stack]", "[vdso]" and the like have inode 0 */
	unsigned int access; /* enum mapping_access */
	bool deleted;        /* the file has no name any more; path is its last name */
};

/* One loading of a file: from its first mapping to its last. */
struct mapped_file {
	uint64_t begin, end;
	uint64_t base; /* where offset 0 is mapped; begin if it is not */
	dev_t device;
	uint64_t inode;
	const char *path;
	bool deleted;
	bool executable; /* some part of it is mapped executable */
};

struct maps;

/* Empty until maps_refresh(). NULL when memory is short. */
struct maps *maps_new(pid_t pid);
void maps_free(struct maps *maps);

/*
 * Read again; an unchanged text is not parsed again. 0 with *ret_changed telling
 * whether anything changed; after a change, pointers into the maps are no longer
 * valid. Or a negative errno (-ESRCH: gone, also for a process without memory;
 * -EACCES: refused), and the maps are as before.
 */
int maps_refresh(struct maps *maps, bool *ret_changed);

/* Sorted by address. */
size_t maps_count(const struct maps *maps);
const struct mapping *maps_at(const struct maps *maps, size_t index);
size_t maps_file_count(const struct maps *maps);
const struct mapped_file *maps_file_at(const struct maps *maps, size_t index);

/* The index of the first mapping that ends behind the address; maps_count() if none does. */
size_t maps_index(const struct maps *maps, uint64_t address);

/* The mapping that contains the address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);

/* The mapping with that path, such as "[stack]", or NULL. */
const struct mapping *maps_find_path(const struct maps *maps, const char *path);

/* For tests and core files: parse a text in the format of /proc/PID/maps. 0 or -ENOMEM. */
int maps_parse(struct maps *maps, const char *text, size_t length);

#endif
