#include "unwind/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/elf_file.h"
#include "unwind/symbol_server.h"

enum { FAILURES_MAX = 2 };	/* with debug info, and without */

/* What became of a module. */
struct known {
	bool is_open;		/* the server has it */
	unsigned int failures;
};

struct symbols {
	struct image *image;
	struct memory *live;
	struct symbol_server *server;	/* NULL if none runs */
	struct known *known;	/* by the image's index; NULL before the first question */
	size_t count;
	uint64_t cpu_ns;	/* of servers that have ended */
};

struct symbols *symbols_new(struct image *image, struct memory *live)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols) {
		symbols->image = image;
		symbols->live = live;
	}
	return symbols;
}

static void end_server(struct symbols *symbols)
{
	symbols->cpu_ns = symbols_cpu_ns(symbols);
	symbol_server_end(symbols->server);
	symbols->server = NULL;
	for (size_t i = 0; i < symbols->count; i++)
		symbols->known[i].is_open = false;
}

void symbols_reset(struct symbols *symbols)
{
	end_server(symbols);
	free(symbols->known);
	symbols->known = NULL;
	symbols->count = 0;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	symbols_reset(symbols);
	free(symbols);
}

uint64_t symbols_cpu_ns(const struct symbols *symbols)
{
	return symbols->cpu_ns + (symbols->server ? symbol_server_cpu_ns(symbols->server) : 0);
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}

/*---- Questions ----*/

static bool open_module(struct symbols *symbols, size_t index)
{
	const struct module *module = image_module(symbols->image, index);
	struct symbol_source source = {
		.base = module->base,
		.end = module->end,
		.root = image_root(symbols->image),
		.path = module->path,
		.plain = symbols->known[index].failures > 0,
	};
	uint64_t bias;
	bool opened;

	source.fd = elf_file_descriptor(module, symbols->live, &bias);
	if (source.fd < 0) {
		symbols->known[index].failures = FAILURES_MAX;
		return false;
	}
	opened = symbol_server_open(symbols->server, index, &source);
	close(source.fd);
	symbols->known[index].is_open = opened;
	return opened;
}

/* See to it that a server has the module. False if that is not to be. */
static bool prepare(struct symbols *symbols, size_t index)
{
	if (symbols->known[index].failures >= FAILURES_MAX)
		return false;
	if (!symbols->server)
		symbols->server = symbol_server_start();
	return symbols->server &&
	       (symbols->known[index].is_open || open_module(symbols, index));
}

/* Have the server answer a question on an address. False if it cannot. */
static bool ask(struct symbols *symbols, enum symbol_question question, uint64_t address,
		struct symbol *ret_symbols, size_t *ret_count)
{
	const struct module *module = image_find(symbols->image, address);
	size_t index;

	if (!module)
		return false;
	if (!symbols->known) {
		symbols->count = image_module_count(symbols->image);
		symbols->known = calloc(symbols->count, sizeof(*symbols->known));
		if (!symbols->known)
			return false;
	}
	index = (size_t)(module - image_module(symbols->image, 0));
	while (symbols->known[index].failures < FAILURES_MAX) {
		if (prepare(symbols, index) &&
		    symbol_server_ask(symbols->server, question, index, address, ret_symbols,
				      ret_count))
			return true;
		symbols->known[index].failures++;
		end_server(symbols);
	}
	return false;
}

size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	size_t count;

	return ask(symbols, SYMBOL_FUNCTIONS, address, ret_symbols, &count) ? count : 0;
}

bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start)
{
	struct module *module = image_find(symbols->image, address);
	uint64_t start;
	size_t covered;

	if (!module || !image_unwind_entry(symbols->image, module, address, &start) ||
	    !ask(symbols, SYMBOL_COVERED, address, NULL, &covered) || !covered)
		return false;
	*ret_start = start;
	return true;
}
