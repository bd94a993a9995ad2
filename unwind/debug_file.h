/*
 * debug_file: libdwfl's callback that finds a module's separate debug file.
 *
 * As libdwfl's own, but never over a network, and never a file that a
 * stranger could cut short while libdwfl has it mapped.
 */
#ifndef LJSPY_DEBUG_FILE_H
#define LJSPY_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

int debug_file_find(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
		    const char *file, const char *debuglink, GElf_Word crc, char **ret_path);

#endif
