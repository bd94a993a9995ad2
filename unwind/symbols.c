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
	bool has_no_rules;	/* asking for them ended a server */
	unsigned int failures;	/* to tell names */
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
	bool opened;

	source.fd = elf_file_descriptor(module, symbols->live);
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

/* The index of the module that holds an address. False if none does, or memory is short. */
static bool find_index(struct symbols *symbols, uint64_t address, size_t *ret_index)
{
	const struct module *module = image_find(symbols->image, address);

	if (!module)
		return false;
	if (!symbols->known) {
		symbols->count = image_module_count(symbols->image);
		symbols->known = calloc(symbols->count, sizeof(*symbols->known));
		if (!symbols->known)
			return false;
	}
	*ret_index = (size_t)(module - image_module(symbols->image, 0));
	return true;
}

/* Have the server answer a question on an address. False if it cannot. */
static bool ask(struct symbols *symbols, enum symbol_question question, uint64_t address,
		struct symbol_answer *ret_answer)
{
	size_t index;

	if (!find_index(symbols, address, &index))
		return false;
	while (symbols->known[index].failures < FAILURES_MAX) {
		if (prepare(symbols, index) &&
		    symbol_server_ask(symbols->server, question, index, address, ret_answer))
			return true;
		symbols->known[index].failures++;
		end_server(symbols);
	}
	return false;
}

size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	struct symbol_answer answer;

	if (!ask(symbols, SYMBOL_FUNCTIONS, address, &answer))
		return 0;
	memcpy(ret_symbols, answer.symbols, answer.count * sizeof(*ret_symbols));
	return answer.count;
}

bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start)
{
	struct module *module = image_find(symbols->image, address);
	struct symbol_answer answer;
	uint64_t entry, start;

	if (!module || !image_unwind_entry(symbols->image, module, address, &entry, &start) ||
	    !ask(symbols, SYMBOL_COVERED, address, &answer) || !answer.count)
		return false;
	*ret_start = start;
	return true;
}

bool symbols_rules(struct symbols *symbols, uint64_t address, struct frame_rules *ret_rules)
{
	struct symbol_answer answer;
	size_t index;

	if (!find_index(symbols, address, &index) || symbols->known[index].has_no_rules ||
	    !prepare(symbols, index))
		return false;
	if (!symbol_server_ask(symbols->server, SYMBOL_RULES, index, address, &answer)) {
		symbols->known[index].has_no_rules = true;
		end_server(symbols);
		return false;
	}
	if (answer.count)
		*ret_rules = answer.rules;
	return answer.count != 0;
}
