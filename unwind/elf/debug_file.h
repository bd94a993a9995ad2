/* SPDX-License-Identifier: MIT */
/*
 * debug_file: a module's separate debug file, by build id or by debuglink.
 *
 * It is looked for in the target's root directory first, then in our own,
 * and never over a network. Any file is held against the module's build id,
 * or against the debuglink's checksum if it has none.
 */
#ifndef LJSPY_DEBUG_FILE_H
#define LJSPY_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

/* As libdwfl's find_debuginfo; root is the target's root as seen from here, path the module's in it. */
int debug_file_find(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
		    const char *root, const char *path, const char *debuglink, GElf_Word crc,
		    char **ret_path);

#endif
