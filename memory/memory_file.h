/* SPDX-License-Identifier: MIT */
/*
 * memory_file: a file without a name, in memory where the kernel can.
 */
#ifndef LJSPY_MEMORY_FILE_H
#define LJSPY_MEMORY_FILE_H

/*
 * A descriptor, or -1 with errno. Linux before 3.17 has no memfd_create(), and a container's filter may
 * refuse it: there the file is in /dev/shm or /tmp, and loses its name at once.
 */
int memory_file(const char *name);

#endif
