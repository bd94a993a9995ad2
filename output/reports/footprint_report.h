/* SPDX-License-Identifier: MIT */
/*
 * footprint_report: what the memory of a process is, ready to write.
 *
 * Its rows tell the resident set apart: their sum is the RSS to the byte. A row's PSS is
 * its share of RAM, in which each page is divided by the number of processes that have it.
 */
#ifndef LJSPY_FOOTPRINT_REPORT_H
#define LJSPY_FOOTPRINT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

enum footprint_kind {
	FOOTPRINT_LUA_HEAP,     /* in use in LuaJIT's segments, and its large blocks */
	FOOTPRINT_LUA_FREE,     /* free chunks of its segments */
	FOOTPRINT_LUA_LARGE,    /* large blocks of one of several VMs */
	FOOTPRINT_MCODE,        /* machine code of traces */
	FOOTPRINT_MALLOC,       /* in use in arenas of malloc() */
	FOOTPRINT_MALLOC_FREE,  /* free chunks of those */
	FOOTPRINT_MALLOC_LARGE, /* blocks of malloc() with mappings of their own */
	FOOTPRINT_ZONE,         /* zones that nginx's processes share */
	FOOTPRINT_SHARED,       /* other shared memory */
	FOOTPRINT_STACK,
	FOOTPRINT_CODE, /* of files */
	FOOTPRINT_DATA,
	FOOTPRINT_FILE,      /* other parts of files */
	FOOTPRINT_ANONYMOUS, /* all that is not told apart */
	FOOTPRINT_KERNEL,    /* mapped by the kernel: [vdso] */
	FOOTPRINT_KIND_COUNT
};

struct footprint_row {
	enum footprint_kind kind;
	char *name;    /* of a file, a zone or a stack; untrusted; NULL if it has none */
	uint64_t g;    /* the VM that it is of; 0 if of none */
	uint64_t size; /* bytes of address space */
	uint64_t rss, pss;
	size_t count; /* of pieces */
};

/* Who gives a VM its memory? */
enum footprint_allocator {
	FOOTPRINT_LJ_ALLOC,        /* LuaJIT's own allocator */
	FOOTPRINT_LJ_ALLOC_OTHERS, /* the same, of a VM before it */
	FOOTPRINT_FOREIGN,         /* malloc(), or the program's own allocator */
	FOOTPRINT_ALLOCATOR_UNKNOWN,
	FOOTPRINT_ALLOCATOR_COUNT
};

struct footprint_vm {
	uint64_t g;
	char *module; /* path of the file with LuaJIT; untrusted */
	enum footprint_allocator allocator;
	bool knows_total;
	uint64_t gc_total;
	/* Of LuaJIT's own allocator; bytes of address space. */
	size_t segment_count, segments_untold;
	uint64_t segment_bytes;
	uint64_t free_bytes; /* in segments whose chunks could be followed */
	size_t large_count;
	uint64_t large_bytes;
	bool shares_large; /* those of FOOTPRINT_LUA_LARGE may be its own, and nothing tells how many */
	uint64_t mcode_bytes;
};

/* glibc's malloc() */
struct footprint_malloc {
	const char *name; /* "glibc", "jemalloc", ...; NULL if unknown */
	size_t arenas;
	size_t pieces_untold;
	uint64_t arena_bytes; /* address space of arenas whose chunks could be followed */
	uint64_t free_bytes;  /* in these */
};

/* The pool of nginx's configuration. */
struct footprint_pool {
	bool is_nginx, is_known;
	uint64_t bytes, unused; /* of its blocks */
	size_t large;           /* blocks besides, of sizes that it does not know */
};

struct footprint_zone {
	char *name, *kind; /* untrusted; NULL if unknown */
	uint64_t size, usable, free;
	bool knows_free;
};

struct footprint {
	pid_t pid;
	char *name; /* untrusted */
	uint64_t rss, pss, swap, hugetlb;
	uint64_t looked;  /* of rss: at most so much of files is there because ljspy read it */
	bool changed;     /* the process has changed its memory at each look */
	bool unconfirmed; /* it runs LuaJIT of a layout that could not be confirmed, or may run one unread */
	struct footprint_row *rows;
	size_t row_count, row_room;
	struct footprint_vm *vms;
	size_t vm_count, vm_room;
	struct footprint_malloc malloc;
	struct footprint_pool pool;
	struct footprint_zone *zones;
	size_t zone_count, zone_room;
};

/* name is copied and may be NULL. NULL when memory is short. */
struct footprint *footprint_new(pid_t pid, const char *name);
void footprint_free(struct footprint *footprint);

/* Drop all but pid, name. */
void footprint_reset(struct footprint *footprint);

/*
 * The row of this kind, name (may be NULL) and VM, a new one if there is none. -ENOMEM, or 0 and its index.
 */
int footprint_row(struct footprint *footprint, enum footprint_kind kind, const char *name, uint64_t g,
		  size_t *ret_index);

/* Add a copy; texts of it are copied, too. 0 or -ENOMEM. */
int footprint_add_vm(struct footprint *footprint, const struct footprint_vm *vm);
int footprint_add_zone(struct footprint *footprint, const struct footprint_zone *zone);

/* Drop empty rows; sort by kind, the largest first. */
void footprint_sort(struct footprint *footprint);

/* "lua_heap" and so on, for programs; and a VM's allocator. */
const char *footprint_kind_name(enum footprint_kind kind);
const char *footprint_allocator_name(enum footprint_allocator allocator);

/* Print for people. On failure, the stream's error flag is set. */
void footprint_print(FILE *out, const struct footprint *footprint);

/* Print the sum of several processes by kind. */
void footprint_print_sum(FILE *out, struct footprint *const *footprints, size_t count);

/* The JSON object described in doc/JSON.md. The caller owns the reference. NULL when memory is short. */
json_t *footprint_json(const struct footprint *footprint);

#endif
