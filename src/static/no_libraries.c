/* SPDX-License-Identifier: MIT */
/*
 * Keep the static ljspy from loading shared libraries. They would need the machine's
 * C library, but a static program contains its own. Of ljspy's libraries only libdw
 * loads one, if present: libdebuginfod, which fetches debug info from the network.
 * The linker redirects its call here (--wrap=dlopen).
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
