/* SPDX-License-Identifier: MIT */
/*
 * The search for a module's debug file by what the module says: a build id, the
 * name in a debuglink and its checksum.
 *
 *	input = bits:u8 length:u8 id checksum:u32 module NUL debuglink NUL file
 *
 * With some bits the debuglink is the file of the input. The linker has
 * dwfl_module_build_id() lead here (see GNUmakefile).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/elf/debug_file.h"

enum { BASE = 0x400000, EXTENT = 1 << 20 };

enum {
	BIT_LEADS_HERE = 1, /* the debuglink, whatever it is, is the file */
	BIT_ROOT = 2,       /* the target has a root of its own */
};

static struct {
	const unsigned char *bytes;
	int length;
} build_id;

int __wrap_dwfl_module_build_id(Dwfl_Module *module, const unsigned char **bits, GElf_Addr *vaddr);

int __wrap_dwfl_module_build_id(Dwfl_Module *module, const unsigned char **bits, GElf_Addr *vaddr)
{
	(void)module;
	*bits = build_id.bytes;
	*vaddr = BASE;
	return build_id.length;
}

static int find_no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       char **ret_path, Elf **ret_elf)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)ret_path, (void)ret_elf;
	return -1;
}

/* A text up to NUL or the end; to be freed. */
static char *take_text(struct fuzz_input *input)
{
	char *text = strndup((const char *)input->at, fuzz_left(input));
	size_t length;

	fuzz_check(text != NULL, "there is memory");
	length = strlen(text);
	input->at += length < fuzz_left(input) ? length + 1 : length;
	return text;
}

static void find(const char *root, const char *path, const char *debuglink, GElf_Word checksum)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_no_elf,
		.section_address = dwfl_offline_section_address,
	};
	Dwfl *session = dwfl_begin(&callbacks);
	Dwfl_Module *module;
	char *found = NULL;
	void **userdata = NULL;
	int fd;

	fuzz_check(session != NULL, "there is memory");
	dwfl_report_begin(session);
	module = dwfl_report_module(session, "", BASE, BASE + EXTENT);
	dwfl_report_end(session, NULL, NULL);
	fuzz_check(module && dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL),
		   "there is a module");
	fd = debug_file_find(&(struct debug_file_wanted){ .dwfl = module,
							  .userdata = userdata,
							  .name = "",
							  .base = BASE,
							  .root = root,
							  .path = path,
							  .debuglink = debuglink,
							  .checksum = checksum },
			     &found);
	if (fd >= 0) {
		fuzz_check(found && fcntl(fd, F_GETFD) >= 0, "a file that is found is open and has a name");
		close(fd);
	}
	free(found);
	dwfl_end(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	unsigned int bits = (unsigned int)fuzz_take(&input, 1);
	size_t length = (size_t)fuzz_take(&input, 1);
	GElf_Word checksum;
	char *path, *debuglink, here[16];
	int fd;

	build_id.bytes = input.at;
	build_id.length = (int)(length < fuzz_left(&input) ? length : fuzz_left(&input));
	input.at += build_id.length;
	checksum = (GElf_Word)fuzz_take(&input, 4);
	path = take_text(&input);
	debuglink = take_text(&input);
	fd = fuzz_file(input.at, fuzz_left(&input));
	snprintf(here, sizeof(here), "%d", fd);
	find(bits & BIT_ROOT ? "/proc/self/root" : "", bits & BIT_LEADS_HERE ? "/proc/self/fd/module" : path,
	     bits & BIT_LEADS_HERE ? here : debuglink, checksum);
	close(fd);
	free(path);
	free(debuglink);
	return 0;
}
