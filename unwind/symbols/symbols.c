/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/symbols/symbol_files.h"

/* A module and its file. */
struct known {
	bool is_searched;
	struct symbol_file_entry *file; /* NULL if there is none */
};

struct symbols {
	struct image *image;
	struct memory *live;
	struct symbol_files *files, *own_files; /* own_files is NULL if they are shared */
	struct known *known;                    /* by the image's index; NULL before the first question */
	size_t count;
};

struct symbols *symbols_new(struct image *image, struct memory *live, struct symbol_files *files)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->image = image;
	symbols->live = live;
	symbols->files = files;
	if (!files)
		symbols->files = symbols->own_files = symbol_files_new(NULL);
	if (!symbols->files) {
		free(symbols);
		return NULL;
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
	symbol_files_free(symbols->own_files);
	free(symbols);
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}

/*---- Questions ----*/

static struct symbol_file_entry *file_of(struct symbols *symbols, const struct symbol_mapping *mapping)
{
	struct known *known;

	if (!symbols->known) {
		symbols->known = calloc(image_module_count(symbols->image), sizeof(*symbols->known));
		if (!symbols->known)
			return NULL;
		symbols->count = image_module_count(symbols->image);
	}
	known = &symbols->known[mapping->module - image_module(symbols->image, 0)];
	if (!known->is_searched) {
		known->is_searched = true;
		known->file = symbol_files_get(symbols->files, mapping);
	}
	return known->file;
}

/* Ask the module's file about an address. False if there is no answer. */
static bool ask(struct symbols *symbols, enum symbol_question question, uint64_t address,
		struct symbol_answer *ret_answer)
{
	const struct module *module = image_find(symbols->image, address);
	const struct symbol_mapping mapping = { symbols->image, module, symbols->live };
	struct symbol_file_entry *file = module ? file_of(symbols, &mapping) : NULL;

	return file && symbol_files_ask(symbols->files, file, &mapping, question, address, ret_answer);
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

	if (!ask(symbols, SYMBOL_RULES, address, &answer) || !answer.count)
		return false;
	*ret_rules = answer.rules;
	return true;
}
