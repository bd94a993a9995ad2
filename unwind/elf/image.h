/* SPDX-License-Identifier: MIT */
/*
 * image: the code of one process, as the unwinder sees it.
 *
 * The owner tells the image which modules the process has mapped and which
 * LuaJIT VMs they contain. The image says what lies at an address, and caches
 * text and unwind tables. The text of a module does not change while it is
 * mapped, so the image may read it at any time.
 */
#ifndef LJSPY_IMAGE_H
#define LJSPY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "memory/memory.h"

enum { IMAGE_ROOT_SIZE = 64 };

/* Where a module's .eh_frame_hdr lies (System V ABI, LSB 10.6.2). */
struct unwind_table {
	bool is_searched;
	bool found;
	uint64_t header;  /* segment base of the table's offsets */
	uint64_t entries; /* address of the sorted table */
	uint64_t entry_count;
};

/*
 * Between two segments of a module. Other things may be mapped there, LuaJIT's machine code among them: on
 * arm64 the linker aligns segments by 64 KiB.
 */
struct module_hole {
	uint64_t begin, end;
};

enum { MODULE_HOLES_MAX = 4 }; /* more are not kept */

struct module {
	uint64_t begin, end;    /* whole mapped extent */
	uint64_t base;          /* where its ELF header is mapped */
	uint64_t device, inode; /* of its file, as in /proc/PID/maps; 0 if none */
	uint64_t changed_ns;    /* its file's mtime when its path was found; 0 if ljspy cannot see the file */
	char *path;        /* to be shown, with " (deleted)" only if its name ends so; owned by the image */
	char *file;        /* a path by which ljspy can open its file; owned likewise; NULL if none */
	bool file_is_late; /* file is NULL as its disk has not answered in time */
	bool made;         /* no ELF file: code that was made at run time, through a file */
	const struct vm_code *vm;                   /* the VM recognised in it, or NULL */
	const struct vm_code *unknown_vm;           /* a VM of unknown layout, with addresses only; or NULL */
	struct module_hole holes[MODULE_HOLES_MAX]; /* by the image */
	unsigned int hole_count;
	struct unwind_table unwind_table;
};

enum code_kind {
	CODE_UNKNOWN, /* made at run time, or no code */
	CODE_NATIVE,
	CODE_VM, /* LuaJIT's interpreter, lj_vm_ffi_call excluded */
	CODE_VM_FFI_CALL,
};

struct image;

/* live reads the target's memory, stopped or not, and must outlive the image. NULL when memory is short. */
struct image *image_new(struct memory *live);
void image_free(struct image *image);

/*
 * Replace the modules and forget the cached text. The image takes ownership of
 * the array and its strings. What vm and unknown_vm point to must outlive the
 * image.
 */
void image_set_modules(struct image *image, struct module *modules, size_t count);

/*
 * Set the process's root directory as seen from ljspy, "/proc/PID/root". It is
 * "" until set, and where ljspy cannot see it. The path is copied; one of
 * IMAGE_ROOT_SIZE bytes or more is ignored.
 */
void image_set_root(struct image *image, const char *root);
const char *image_root(const struct image *image);

/* The modules, sorted by address. */
size_t image_module_count(const struct image *image);
struct module *image_module(const struct image *image, size_t index);

/* The module that holds the address; NULL if there is none, as in a hole. */
struct module *image_find(const struct image *image, uint64_t address);

/* Is pc in no module, or in a made one? Code there, if any, may change. */
bool image_is_made(const struct image *image, uint64_t pc);

/* Is there a VM of unknown layout; is pc in its code? */
bool image_has_unknown_vm(const struct image *image);
bool image_in_unknown_vm(const struct image *image, uint64_t pc);

/* *ret_module is the module that holds pc, or NULL; ret_module may be NULL. */
enum code_kind image_classify(const struct image *image, uint64_t pc, const struct module **ret_module);

/* The memory of modules, cached by page; owned by the image. Use it for read-only mappings only. */
struct memory *image_text(struct image *image);

/* The live of image_new(). */
struct memory *image_live(const struct image *image);

/*
 * The last entry of the module's .eh_frame_hdr whose code begins at or before
 * address: the entry's own address, and the start of its code. False if there
 * is none.
 */
bool image_unwind_entry(struct image *image, struct module *module, uint64_t address, uint64_t *ret_entry,
			uint64_t *ret_begin);

/*
 * The function at an address, as .eh_frame_hdr knows it: from its entry's code up to that of the next. False
 * if there is none, or no next one.
 */
bool image_function(struct image *image, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end);

#endif
