/* SPDX-License-Identifier: MIT */
/*
 * debug_file: finds a module's separate debug file, by build id or debuglink.
 *
 * The search covers the target's root directory first, then ljspy's own, and
 * never a network. The file must have the module's build id, or the debuglink's
 * checksum if the module has no build id.
 */
#ifndef LJSPY_DEBUG_FILE_H
#define LJSPY_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

/* A module whose debug file is wanted, as libdwfl's find_debuginfo gets it. */
struct debug_file_wanted {
	Dwfl_Module *dwfl;
	void **userdata;
	const char *name;
	Dwarf_Addr base;
	const char *root;      /* the target's root directory as seen from ljspy; "" for ljspy's own */
	const char *path;      /* the module's in that root */
	const char *debuglink; /* or NULL */
	GElf_Word checksum;    /* in the debuglink */
};

/* A descriptor, or -1; the caller frees *ret_path. */
int debug_file_find(const struct debug_file_wanted *wanted, char **ret_path);

#endif
