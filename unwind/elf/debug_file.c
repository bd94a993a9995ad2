/* SPDX-License-Identifier: MIT */
#include "unwind/elf/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "unwind/elf/elf_file.h"
#include "unwind/elf/string_tables.h"

struct build_id {
	const unsigned char *bytes;
	size_t length;
};

static bool has_build_id(Elf *elf, const struct build_id *id)
{
	const void *found;

	return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)id->length &&
	       memcmp(found, id->bytes, id->length) == 0;
}

/* A descriptor of the file, and its path, if it has this build id and sound string tables; or -1. */
static int open_if_same(const struct build_id *id, char **ret_path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int open_if_same(const struct build_id *id, char **ret_path, const char *format, ...)
{
	char path[PATH_MAX];
	struct elf_file file;
	va_list arguments;
	int length, fd = -1;

	va_start(arguments, format);
	length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || length >= (int)sizeof(path) || !elf_file_open_path(path, &file))
		return -1;
	if (has_build_id(file.elf, id) && string_tables_end(file.elf))
		fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	elf_file_close(&file);
	if (fd >= 0)
		*ret_path = strdup(path);
	return fd;
}

/* ROOT/usr/lib/debug/.build-id/ab/cdef0123.debug */
static int find_by_build_id(const char *root, const struct build_id *id, char **ret_path)
{
	char hex[2 * 64 + 1];

	if (id->length < 2 || id->length > sizeof(hex) / 2)
		return -1;
	for (size_t i = 0; i < id->length; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	return open_if_same(id, ret_path, "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, hex, hex + 2);
}

/* Try the places to which a debuglink may lead, in gdb's and libdwfl's order. */
static int find_by_debuglink(const char *root, const char *path, const char *debuglink,
			     const struct build_id *id, char **ret_path)
{
	static const struct {
		const char *before, *after; /* the directory of the module */
	} places[] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
	const char *slash = strrchr(path, '/');
	int fd = -1;

	if (!slash || strchr(debuglink, '/'))
		return -1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && fd < 0; i++)
		fd = open_if_same(id, ret_path, "%s%s%.*s%s/%s", root, places[i].before, (int)(slash - path),
				  path, places[i].after, debuglink);
	return fd;
}

/* By its checksum. libdwfl asks servers by build id only, so it asks none. */
static int find_by_checksum(const struct debug_file_wanted *wanted, const char *root, char **ret_path)
{
	char file[PATH_MAX];

	if (snprintf(file, sizeof(file), "%s%s", root, wanted->path) >= (int)sizeof(file))
		return -1;
	return dwfl_standard_find_debuginfo(wanted->dwfl, wanted->userdata, wanted->name, wanted->base, file,
					    wanted->debuglink, wanted->checksum, ret_path);
}

static int find_below(const struct debug_file_wanted *wanted, const char *root, const struct build_id *id,
		      char **ret_path)
{
	int fd = -1;

	if (id->length > 0)
		fd = find_by_build_id(root, id, ret_path);
	if (fd >= 0 || !wanted->debuglink)
		return fd;
	return id->length > 0 ? find_by_debuglink(root, wanted->path, wanted->debuglink, id, ret_path)
			      : find_by_checksum(wanted, root, ret_path);
}

int debug_file_find(const struct debug_file_wanted *wanted, char **ret_path)
{
	struct build_id id;
	GElf_Addr address;
	int length = dwfl_module_build_id(wanted->dwfl, &id.bytes, &address), fd;

	id.length = length > 0 ? (size_t)length : 0;
	fd = find_below(wanted, wanted->root, &id, ret_path);
	return fd < 0 && *wanted->root ? find_below(wanted, "", &id, ret_path) : fd;
}
