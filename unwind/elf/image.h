/* SPDX-License-Identifier: MIT */
/*
 * image: the code of one process, as the unwinder sees it.
 *
 * The owner of the process tells the image which modules are mapped and which
 * LuaJIT VMs were recognised in them; the image answers what lies at an address
 * and keeps the text and unwind tables that it has read. Text of a module does
 * not change while it is mapped, so it may be read at any time.
 */
#ifndef LJSPY_IMAGE_H
#define LJSPY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "memory/memory.h"

/* Bounds of what is believed of a target. */
enum {
	IMAGE_MODULES_MAX = 65536,
	IMAGE_ROOT_SIZE = 64,
};

/* Where a module's .eh_frame_hdr lies (System V ABI, LSB 10.6.2). */
struct unwind_table {
	bool looked_for;
	bool found;
	uint64_t header;	/* segment base of the table's offsets */
	uint64_t entries;	/* address of the sorted table */
	uint64_t entry_count;
};

struct module {
	uint64_t begin, end;	/* whole mapped extent */
	uint64_t base;		/* where its ELF header is mapped */
	uint64_t device, inode;	/* of its file, as in /proc/PID/maps; 0 if none */
	char *path;		/* as in /proc/PID/maps; owned by the image */
	char *file;		/* where its file can be opened from here; NULL if nowhere */
	bool made;			/* no ELF file: code that was made at run time, by way of a file */
	const struct vm_code *vm;	/* NULL if none was recognised in it */
	const struct vm_code *unknown_vm;	/* the same of one whose layout is not known: only where it is */
	struct unwind_table unwind_table;
};

enum code_kind {
	CODE_UNKNOWN,		/* made at run time, or nothing at all */
	CODE_NATIVE,
	CODE_VM,		/* LuaJIT's interpreter, lj_vm_ffi_call excluded */
	CODE_VM_FFI_CALL,
};

struct image;

/* live reads the target's memory whether it is stopped or not; it must outlive the image. */
struct image *image_new(struct memory *live);
void image_free(struct image *image);

/*
 * Replace the modules. The image takes ownership of the array and its paths;
 * vm pointers must stay valid for as long as the image does.
 */
void image_set_modules(struct image *image, struct module *modules, size_t count);

/*
 * The process's root directory as seen from here, "/proc/PID/root"; "" until
 * it is set, and where it cannot be seen. Copied; too long a one is not taken.
 */
void image_set_root(struct image *image, const char *root);
const char *image_root(const struct image *image);

/* Sorted by address. */
size_t image_module_count(const struct image *image);
struct module *image_module(const struct image *image, size_t index);

/* The module that holds the address, or NULL. */
struct module *image_find(const struct image *image, uint64_t address);

/* Is it in no module, or in one that was made: code that may change, if it is any? */
bool image_is_made(const struct image *image, uint64_t pc);

/* Is there a VM whose layout is not known; and is this its code? */
bool image_has_unknown_vm(const struct image *image);
bool image_in_unknown_vm(const struct image *image, uint64_t pc);

enum code_kind image_classify(const struct image *image, uint64_t pc,
			      const struct module **ret_module);

/* Memory of modules, cached by page; for read-only mappings only. */
struct memory *image_text(struct image *image);

/* What image_new() was given. */
struct memory *image_live(const struct image *image);

/* Read the module's .eh_frame_hdr if that was not done yet; false if it has none. */
bool image_unwind_table(struct image *image, struct module *module);

/*
 * The last entry of the module's .eh_frame_hdr that does not begin behind the
 * address: where it lies itself, and where the code begins that it is for.
 */
bool image_unwind_entry(struct image *image, struct module *module, uint64_t address,
			uint64_t *ret_entry, uint64_t *ret_begin);

#endif
