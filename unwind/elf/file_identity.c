/* SPDX-License-Identifier: MIT */
#include "unwind/elf/file_identity.h"

#include <string.h>
#include <sys/stat.h>

#include "memory/slow_file.h"

bool file_identity_read(const struct module *module, struct memory *live, struct errands *errands,
			struct file_identity *ret_identity)
{
	struct file_identity identity;
	struct stat status;

	memset(&identity, 0, sizeof(identity));
	identity.device = module->device;
	identity.inode = module->inode;
	identity.extent = module->end - module->begin;
	if (module->file && slow_stat(errands, module->file, &status))
		identity.changed_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u +
				      (uint64_t)status.st_mtim.tv_nsec;
	if (memory_read(live, module->base, identity.head, sizeof(identity.head)) != MEMORY_OK)
		return false;
	*ret_identity = identity;
	return true;
}
