#include "unwind/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "unwind/elf_file.h"

static bool is_trusted(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_uid == 0 || status.st_uid == geteuid());
}

static bool has_build_id(Elf *elf, const unsigned char *id, size_t length)
{
	const void *found;

	return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)length &&
	       memcmp(found, id, length) == 0;
}

/* A descriptor of the file if it has this build id, or -1. */
static int open_if_same(const char *path, const unsigned char *id, size_t length)
{
	struct elf_file file;
	int fd = -1;

	if (!elf_file_open_path(path, &file))
		return -1;
	if (has_build_id(file.elf, id, length))
		fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	elf_file_close(&file);
	return fd;
}

/* Where a debuglink may lead (gdb's and libdwfl's order). */
static int find_by_debuglink(const char *file, const char *debuglink, const unsigned char *id,
			     size_t length, char **ret_path)
{
	static const struct {
		const char *before, *after;	/* the directory of the module */
	} places[] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
	const char *slash = strrchr(file, '/');

	if (!slash || strchr(debuglink, '/'))
		return -1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];
		int fd;

		if (snprintf(path, sizeof(path), "%s%.*s%s/%s", places[i].before, (int)(slash - file),
			     file, places[i].after, debuglink) >= (int)sizeof(path))
			continue;
		fd = open_if_same(path, id, length);
		if (fd >= 0) {
			*ret_path = strdup(path);
			return fd;
		}
	}
	return -1;
}

int debug_file_find(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
		    const char *file, const char *debuglink, GElf_Word crc, char **ret_path)
{
	const unsigned char *id;
	GElf_Addr address;
	int length = dwfl_module_build_id(dwfl, &id, &address);
	int fd;

	if (length > 0) {
		/* In the system's own directories. */
		fd = dwfl_build_id_find_debuginfo(dwfl, userdata, name, base, file, debuglink,
						  crc, ret_path);
		if (fd >= 0 || !file || !debuglink)
			return fd;
		fd = find_by_debuglink(file, debuglink, id, (size_t)length, ret_path);
	} else {
		/* Servers are asked by build id, so none is. */
		fd = dwfl_standard_find_debuginfo(dwfl, userdata, name, base, file, debuglink,
						  crc, ret_path);
	}
	if (fd < 0 || is_trusted(fd))
		return fd;
	close(fd);
	free(*ret_path);
	*ret_path = NULL;
	return -1;
}
