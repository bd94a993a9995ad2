/* SPDX-License-Identifier: MIT */
#include "unwind/elf/file_identity.h"

#include <string.h>

bool file_identity_read(const struct module *module, struct memory *live, struct file_identity *ret_identity)
{
	struct file_identity identity;

	memset(&identity, 0, sizeof(identity));
	identity.device = module->device;
	identity.inode = module->inode;
	identity.extent = module->end - module->begin;
	identity.changed_ns = module->changed_ns;
	if (memory_read(live, module->base, identity.head, sizeof(identity.head)) != MEMORY_OK)
		return false;
	*ret_identity = identity;
	return true;
}
