#include "unwind/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/symbol_files.h"

/* What is known of a module. */
struct known {
	bool looked_for;
	struct symbol_file_entry *file;	/* NULL if there is none */
};

struct symbols {
	struct image *image;
	struct memory *live;
	struct symbol_files *files;
	struct known *known;	/* by the image's index; NULL before the first question */
	size_t count;
};

struct symbols *symbols_new(struct image *image, struct memory *live, struct symbol_files *files)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols) {
		symbols->image = image;
		symbols->live = live;
		symbols->files = files;
	}
	return symbols;
}

void symbols_reset(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++)
		symbol_files_release(symbols->known[i].file);
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

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}

/*---- Questions ----*/

static struct symbol_file_entry *file_of(struct symbols *symbols, const struct module *module)
{
	struct known *known;

	if (!symbols->known) {
		symbols->known = calloc(image_module_count(symbols->image), sizeof(*symbols->known));
		if (!symbols->known)
			return NULL;
		symbols->count = image_module_count(symbols->image);
	}
	known = &symbols->known[module - image_module(symbols->image, 0)];
	if (!known->looked_for) {
		known->looked_for = true;
		known->file = symbol_files_get(symbols->files, symbols->image, module,
					       symbols->live);
	}
	return known->file;
}

/* Have the module's file answer a question on an address. False if it cannot. */
static bool ask(struct symbols *symbols, enum symbol_question question, uint64_t address,
		struct symbol *ret_symbols, size_t *ret_count)
{
	const struct module *module = image_find(symbols->image, address);
	struct symbol_file_entry *file = module ? file_of(symbols, module) : NULL;

	return file && symbol_files_ask(symbols->files, file, symbols->image, module, symbols->live,
					question, address, ret_symbols, ret_count);
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
