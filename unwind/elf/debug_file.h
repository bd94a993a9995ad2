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

/*
 * As libdwfl's find_debuginfo: returns a descriptor, or -1; the caller frees
 * *ret_path. root is the target's root directory as seen from ljspy, "" for
 * ljspy's own; path is the module's path in it.
 */
int debug_file_find(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base, const char *root,
		    const char *path, const char *debuglink, GElf_Word crc, char **ret_path);

#endif
