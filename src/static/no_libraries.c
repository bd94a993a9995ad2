/*
 * A static program has a C library of its own, and what it loads would need
 * that of the machine. Of ljspy's libraries only libdw loads another one, if it
 * is there: libdebuginfod, which fetches debug info from the network.
 */
#include <dlfcn.h>
#include <stddef.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
void *dlopen(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return NULL;
}
