/* SPDX-License-Identifier: MIT */
/* Where ljspy can open the files that a process, or that of a core file, has mapped. */
#include "src/inspect/lua_process_parts.h"

#include <string.h>

#include "memory/slow_file.h"

static bool find_beside_core(const struct lua_process *process, const struct mapped_file *file,
			     struct file_place *ret_place)
{
	struct file_place found = { .shown = strdup(file->path) };

	if (core_file_has_file(process->core, file->path) &&
	    slow_stat(known_files_errands(process->files), file->path, &found.status))
		found.path = strdup(file->path);
	*ret_place = found;
	return found.shown != NULL;
}

bool process_find_file(const struct lua_process *process, const struct mapped_file *file,
		       struct file_place *ret_place)
{
	struct file_owner owner = { .pid = process->pid, .maps = process->maps };

	if (file->inode == 0 && strcmp(file->path, UNPACKED_NAME) == 0) {
		*ret_place = (struct file_place){ .shown = strdup(UNPACKED_NAME) };
		return ret_place->shown != NULL;
	}
	if (process->core)
		return find_beside_core(process, file, ret_place);
	owner.memory = live_memory_memory(process->live);
	owner.errands = known_files_errands(process->files);
	return file_place_find(&owner, file, ret_place);
}
