#include "unwind/symbols.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

struct symbols {
	struct image *image;
	Dwfl *dwfl;
};

static char *debuginfo_path;	/* NULL: libdwfl's default search path */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path,
};

struct symbols *symbols_new(struct image *image)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols)
		symbols->image = image;
	return symbols;
}

void symbols_reset(struct symbols *symbols)
{
	if (symbols->dwfl)
		dwfl_end(symbols->dwfl);
	symbols->dwfl = NULL;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	symbols_reset(symbols);
	free(symbols);
}

/* Tell libdwfl of all modules; it opens none of them before it has to. */
static bool report_modules(struct symbols *symbols)
{
	symbols->dwfl = dwfl_begin(&callbacks);
	if (!symbols->dwfl)
		return false;
	dwfl_report_begin(symbols->dwfl);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	return true;
}

static Dwfl_Module *report_module(struct symbols *symbols, const struct module *module)
{
	Dwfl_Module *reported;
	int fd;

	if (!module->file)
		return NULL;
	fd = open(module->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	dwfl_report_begin_add(symbols->dwfl);
	/* libdwfl takes the descriptor over if it succeeds. */
	reported = dwfl_report_elf(symbols->dwfl, module_name(module), module->file, fd,
				   module->base, false);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	if (!reported)
		close(fd);
	return reported;
}

const char *symbols_find(struct symbols *symbols, uint64_t address)
{
	const struct module *module = image_find(symbols->image, address);
	Dwfl_Module *reported;
	const char *name;
	GElf_Off offset;
	GElf_Sym symbol;

	if (!module || (!symbols->dwfl && !report_modules(symbols)))
		return NULL;
	reported = dwfl_addrmodule(symbols->dwfl, address);
	if (!reported)
		reported = report_module(symbols, module);
	if (!reported)
		return NULL;
	name = dwfl_module_addrinfo(reported, address, &offset, &symbol, NULL, NULL, NULL);
	return name && *name && offset < symbol.st_size ? name : NULL;
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}
