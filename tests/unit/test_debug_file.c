/* SPDX-License-Identifier: MIT */
/* Where the debug file of a module is looked for, and which file is taken for it. */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "tests/unit/made_up_elf.h"
#include "unwind/elf/debug_file.h"

enum { ID_MAX = 80 };

static const uint8_t build_id[ID_MAX] = { 0xab, 0x0c, 0xd0, 0xff, 7, 6, 5, 4, 3, 2, 1 };

/* A folder, which is the target's root, and a module outside of it. */
static char root[] = "/tmp/test_debug_file.XXXXXX";
static char module_path[PATH_MAX];
static struct made_up_elf elf;
static Dwfl *session;
static Dwfl_Module *module;

static int begin(void **state)
{
	(void)state;
	strcpy(strrchr(root, '.') + 1, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

static int end(void **state)
{
	enum { FILES_MAX = 8 };

	(void)state;
	if (session)
		dwfl_end(session);
	session = NULL;
	return nftw(root, remove_one, FILES_MAX, FTW_DEPTH | FTW_PHYS);
}

/* An ELF file with a build id of that length; none if it is 0. */
static void make_file(const uint8_t *id, uint32_t length)
{
	made_up_elf_begin(&elf);
	if (length)
		made_up_elf_build_id(&elf, id, length);
	made_up_elf_end(&elf);
}

/* Write the file at a path below the root, whose folders are made. */
static void put_file(const char *path)
{
	char whole[PATH_MAX];

	assert_in_range(snprintf(whole, sizeof(whole), "%s%s", root, path), 1, sizeof(whole) - 1);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	made_up_elf_write(&elf, whole);
}

/* The module has a build id of that length. */
static void open_module(uint32_t length)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.section_address = dwfl_offline_section_address,
	};
	const unsigned char *id;
	GElf_Addr address;

	if (session)
		dwfl_end(session);
	make_file(build_id, length);
	put_file("/lib/module.so");
	snprintf(module_path, sizeof(module_path), "%s/lib/module.so", root);
	session = dwfl_begin(&callbacks);
	assert_non_null(session);
	dwfl_report_begin(session);
	module = dwfl_report_elf(session, "module", module_path, -1, 0x10000, false);
	assert_non_null(module);
	dwfl_report_end(session, NULL, NULL);
	assert_int_equal(dwfl_module_build_id(module, &id, &address), length);
}

/* What is found, as a path below the root; "" for none. Frees nothing that a caller sees. */
static const char *find_with(const char *debuglink, GElf_Word checksum, const char *target_root,
			     const char *path)
{
	static char below[PATH_MAX];
	struct debug_file_wanted wanted = {
		.dwfl = module,
		.name = "module",
		.base = 0x10000,
		.root = target_root,
		.path = path,
		.debuglink = debuglink,
		.checksum = checksum,
	};
	struct stat found_status, status;
	char *found = NULL;
	int fd;

	assert_non_null(dwfl_module_info(module, &wanted.userdata, NULL, NULL, NULL, NULL, NULL, NULL));
	fd = debug_file_find(&wanted, &found);
	if (fd < 0) {
		assert_null(found);
		return "";
	}
	/* The descriptor is the file's. */
	assert_non_null(found);
	assert_int_equal(fstat(fd, &found_status), 0);
	assert_int_equal(stat(found, &status), 0);
	assert_int_equal(found_status.st_ino, status.st_ino);
	close(fd);
	assert_int_equal(strncmp(found, root, strlen(root)), 0);
	assert_in_range(snprintf(below, sizeof(below), "%s", found + strlen(root)), 1, sizeof(below) - 1);
	free(found);
	return below;
}

static const char *find(const char *debuglink)
{
	return find_with(debuglink, 0, root, "/lib/module.so");
}

static size_t count_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void the_build_id_leads_to_a_file(void **state)
{
	static const char place[] = "/usr/lib/debug/.build-id/ab/0cd0ff07.debug";
	uint8_t other[5];
	size_t descriptors;

	(void)state;
	open_module(5);
	descriptors = count_descriptors();
	assert_string_equal(find(NULL), "");
	/* A file there with another build id, or a part of it, is none. */
	memcpy(other, build_id, sizeof(other));
	other[4]++;
	make_file(other, 5);
	put_file(place);
	assert_string_equal(find(NULL), "");
	make_file(build_id, 4);
	put_file(place);
	assert_string_equal(find(NULL), "");
	make_file(build_id, 0);
	put_file(place);
	assert_string_equal(find(NULL), "");
	make_file(build_id, 5);
	put_file(place);
	assert_string_equal(find(NULL), place);
	assert_string_equal(find("module.debug"), place);
	/* A string table that does not end makes libdwfl read on. */
	elf.bytes[elf.sections[elf.section_count].sh_offset + elf.names_length - 1] = 'x';
	put_file(place);
	assert_string_equal(find(NULL), "");
	assert_int_equal(count_descriptors(), descriptors);
}

/* Two bytes are the folder and an empty name; up to 64 make a name. */
static void a_build_id_has_a_length(void **state)
{
	static const struct {
		uint32_t length;
		bool is_found;
	} lengths[] = { { 1, false }, { 2, true }, { 3, true }, { 64, true }, { 65, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char place[PATH_MAX] = "/usr/lib/debug/.build-id/ab/";
		size_t length = strlen(place);

		for (size_t n = 1; n < lengths[i].length; n++)
			length += (size_t)snprintf(place + length, sizeof(place) - length, "%02x",
						   build_id[n]);
		strcpy(place + length, ".debug");
		open_module(lengths[i].length);
		put_file(place);
		assert_string_equal(find(NULL), lengths[i].is_found ? place : "");
	}
}

static void a_debuglink_names_a_file_near_the_module(void **state)
{
	/* The first that is found. */
	static const char *const places[] = { "/usr/lib/debug/lib/module.debug", "/lib/.debug/module.debug",
					      "/lib/module.debug" };

	(void)state;
	open_module(5);
	assert_string_equal(find("module.debug"), "");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		make_file(build_id, 4);
		put_file(places[i]);
		assert_string_equal(find("module.debug"), i ? places[i - 1] : "");
		make_file(build_id, 5);
		put_file(places[i]);
		assert_string_equal(find("module.debug"), places[i]);
		assert_string_equal(find("another.debug"), "");
		assert_string_equal(find(NULL), "");
	}
	/* Of a build id that makes no name. */
	open_module(1);
	put_file("/lib/module.debug");
	assert_string_equal(find("module.debug"), "/lib/module.debug");
	/* It is a name, not a way. */
	assert_string_equal(find("../lib/module.debug"), "");
	assert_string_equal(find_with("module.debug", 0, root, "module.so"), "");
}

static void without_a_build_id_the_checksum_counts(void **state)
{
	static const char place[] = "/lib/module.debug";
	uLong checksum;

	(void)state;
	open_module(0);
	put_file(place);
	checksum = crc32(crc32(0, NULL, 0), elf.bytes, (uInt)elf.size);
	assert_string_equal(find_with(NULL, (GElf_Word)checksum, root, "/lib/module.so"), "");
	assert_string_equal(find_with("module.debug", (GElf_Word)checksum + 1, root, "/lib/module.so"), "");
	assert_string_equal(find_with("module.debug", (GElf_Word)checksum, root, "/lib/module.so"), place);
}

/* What ljspy's own root has serves where the target's has nothing. */
static void the_targets_root_comes_first(void **state)
{
	static const char place[] = "/lib/module.debug";
	char in_target[PATH_MAX];

	(void)state;
	open_module(5);
	put_file(place);
	assert_string_equal(find_with("module.debug", 0, "", module_path), place);
	assert_string_equal(find_with("module.debug", 0, "/no/such/root", module_path), place);
	/* A target that has the module at the same path below its root. */
	snprintf(in_target, sizeof(in_target), "%s/lib/module.debug", root);
	assert_string_equal(find_with("module.debug", 0, root, module_path), place);
	put_file(in_target);
	assert_string_equal(find_with("module.debug", 0, root, module_path), in_target);
}

static void paths_that_are_too_long_lead_nowhere(void **state)
{
	char path[2 * PATH_MAX];

	(void)state;
	open_module(5);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	path[PATH_MAX] = '/';
	assert_string_equal(find_with("module.debug", 0, root, path), "");
	open_module(0);
	assert_string_equal(find_with("module.debug", 0, root, path), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_build_id_leads_to_a_file, begin, end),
		cmocka_unit_test_setup_teardown(a_build_id_has_a_length, begin, end),
		cmocka_unit_test_setup_teardown(a_debuglink_names_a_file_near_the_module, begin, end),
		cmocka_unit_test_setup_teardown(without_a_build_id_the_checksum_counts, begin, end),
		cmocka_unit_test_setup_teardown(the_targets_root_comes_first, begin, end),
		cmocka_unit_test_setup_teardown(paths_that_are_too_long_lead_nowhere, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
