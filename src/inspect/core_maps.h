/* SPDX-License-Identifier: MIT */
/*
 * core_maps: what was mapped in a process that left a core file.
 */
#ifndef LJSPY_CORE_MAPS_H
#define LJSPY_CORE_MAPS_H

#include "memory/core_file.h"
#include "src/linux/proc/maps.h"

/*
 * Fill the maps as /proc/PID/maps had them, but with device 0 and an inode made from the path. 0 or -ENOMEM.
 */
int core_maps_load(const struct core_file *core, struct maps *maps);

#endif
