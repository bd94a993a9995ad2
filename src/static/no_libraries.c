/* SPDX-License-Identifier: MIT */
/*
 * A static program has a C library of its own, and what it loads would need
 * that of the machine. Of ljspy's libraries only libdw loads another one, if it
 * is there: libdebuginfod, which fetches debug info from the network. The
 * linker (--wrap=dlopen) has it come here.
 */
#include <stddef.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's name for it */
void *__wrap_dlopen(const char *path, int mode);

void *__wrap_dlopen(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return NULL;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
