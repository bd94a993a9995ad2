#include "unwind/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include "unwind/debug_file.h"
#include "unwind/demangle.h"
#include "unwind/elf_file.h"
#include "unwind/plt.h"

enum {
	ENTRIES_MAX = 4 << 20,	/* of one module's symbol table */
	OVERLAPS_MAX = 64,	/* entries before the nearest one that may still hold an address */
};

/* A function in a module's symbol table. */
struct entry {
	uint64_t begin, end;
	const char *name;	/* libdwfl's */
	bool is_local;
};

/* One module as libdwfl knows it. */
struct known {
	const struct module *module;
	struct memory *live;
	Dwfl_Module *dwfl;	/* NULL until one of its addresses was asked for */
	void *bytes;		/* the image, if it was read from memory */
	bool is_sorted;		/* the entries were read */
	struct entry *entries;	/* by begin; of several names of one function the best comes last */
	size_t count;
};

struct symbols {
	struct image *image;
	struct memory *live;
	Dwfl *dwfl;
	struct known *known;	/* by the image's index */
	size_t count;
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

void symbols_reset(struct symbols *symbols)
{
	if (symbols->dwfl)
		dwfl_end(symbols->dwfl);
	symbols->dwfl = NULL;
	for (size_t i = 0; i < symbols->count; i++) {
		free(symbols->known[i].bytes);
		free(symbols->known[i].entries);
	}
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

/*---- Modules ----*/

/* libdwfl's callback: it takes over the descriptor and the Elf. */
static int find_elf(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
		    char **ret_path, Elf **ret_elf)
{
	struct known *known = *userdata;
	struct elf_file file;

	(void)dwfl;
	(void)name;
	(void)base;
	if (!elf_file_open(known->module, known->live, &file))
		return -1;
	known->bytes = file.bytes;
	*ret_path = strdup(known->module->path);
	*ret_elf = file.elf;
	return file.fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = debug_file_find,
	.section_address = dwfl_offline_section_address,
};

static bool begin(struct symbols *symbols)
{
	size_t count = image_module_count(symbols->image);

	if (symbols->dwfl)
		return true;
	symbols->known = calloc(count, sizeof(*symbols->known));
	if (!symbols->known)
		return false;
	symbols->count = count;
	for (size_t i = 0; i < count; i++) {
		symbols->known[i].module = image_module(symbols->image, i);
		symbols->known[i].live = symbols->live;
	}
	symbols->dwfl = dwfl_begin(&callbacks);
	return symbols->dwfl != NULL;
}

static struct known *find_module(struct symbols *symbols, uint64_t address)
{
	const struct module *module = image_find(symbols->image, address);
	struct known *known;
	void **userdata;

	if (!module || !begin(symbols))
		return NULL;
	known = &symbols->known[module - image_module(symbols->image, 0)];
	if (known->dwfl)
		return known;
	dwfl_report_begin_add(symbols->dwfl);
	known->dwfl = dwfl_report_module(symbols->dwfl, module_name(module), module->base,
					 module->end);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	if (known->dwfl && dwfl_module_info(known->dwfl, &userdata, NULL, NULL, NULL, NULL, NULL,
					    NULL))
		*userdata = known;
	return known->dwfl ? known : NULL;
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash ? slash + 1 : module->path;
}

/*---- Names ----*/

static void set_name(struct symbol *symbol, const char *name)
{
	const char *version;

	if (demangle(name, symbol->name, sizeof(symbol->name)))
		return;
	/* "clock_gettime@@GLIBC_2.17" */
	version = strchr(name, '@');
	snprintf(symbol->name, sizeof(symbol->name), "%.*s",
		 version && version != name ? (int)(version - name) : (int)SYMBOL_NAME_SIZE, name);
}

static void set_file(struct symbol *symbol, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	snprintf(symbol->file, sizeof(symbol->file), "%s", slash ? slash + 1 : path ? path : "");
}

/*
 * Of several names of one function, "cbrt", "__cbrt", "cbrtf64": a global one
 * before a local one, one without underscores before one with, then the shortest.
 */
static int compare_names(const struct entry *a, const struct entry *b)
{
	size_t left = strlen(a->name), right = strlen(b->name);

	if (a->is_local != b->is_local)
		return a->is_local ? -1 : 1;
	if ((*a->name == '_') != (*b->name == '_'))
		return *a->name == '_' ? -1 : 1;
	if (left != right)
		return left > right ? -1 : 1;
	return strcmp(b->name, a->name);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->begin != right->begin)
		return left->begin > right->begin ? 1 : -1;
	return compare_names(left, right);
}

static void read_entries(struct known *known)
{
	int count = dwfl_module_getsymtab(known->dwfl);

	known->is_sorted = true;
	if (count <= 0 || count > ENTRIES_MAX)
		return;
	known->entries = calloc((size_t)count, sizeof(*known->entries));
	if (!known->entries)
		return;
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(known->dwfl, i, &symbol, &address, NULL,
							   NULL, NULL);
		int type = GELF_ST_TYPE(symbol.st_info);

		if (!name || !*name || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0 ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
		    address + symbol.st_size < address)
			continue;
		known->entries[known->count++] = (struct entry){
			.begin = address,
			.end = address + symbol.st_size,
			.name = name,
			.is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
		};
	}
	qsort(known->entries, known->count, sizeof(*known->entries), compare_entries);
}

static bool find_in_table(struct known *known, uint64_t address, struct symbol *symbol)
{
	size_t low = 0, high;

	if (!known->is_sorted)
		read_entries(known);
	high = known->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (known->entries[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < OVERLAPS_MAX && low > 0; i++) {
		const struct entry *entry = &known->entries[--low];

		if (address < entry->end) {
			set_name(symbol, entry->name);
			return true;
		}
	}
	return false;
}

static bool find_in_plt(const struct symbols *symbols, Dwfl_Module *dwfl, uint64_t address,
			struct symbol *symbol)
{
	char name[SYMBOL_NAME_SIZE];
	size_t length;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(dwfl, &bias);

	if (!elf || !plt_find(elf, bias, image_text(symbols->image), address, name, sizeof(name)))
		return false;
	set_name(symbol, name);
	length = strlen(symbol->name);
	snprintf(symbol->name + length, sizeof(symbol->name) - length, "@plt");
	return true;
}

/*---- DWARF ----*/

/* The compilation unit at an address, also of compilers that write no .debug_aranges. */
static Dwarf_Die *find_unit(Dwfl_Module *dwfl, uint64_t address, Dwarf_Addr *ret_bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(dwfl, address, ret_bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(dwfl, unit, ret_bias)))
		if (dwarf_haspc(unit, address - *ret_bias) > 0)
			return unit;
	return NULL;
}

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

/* A number of a DIE, 0 if it has none. */
static uint32_t die_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* The innermost function or inlined call at an address. */
static bool find_scope(Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret_die)
{
	Dwarf_Die *scopes;
	int count = dwarf_getscopes(unit, address, &scopes);
	bool found = false;

	for (int i = 0; i < count && !found; i++) {
		int tag = dwarf_tag(&scopes[i]);

		found = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
		if (found)
			*ret_die = scopes[i];
	}
	if (count > 0)
		free(scopes);
	return found;
}

/*
 * Inlined calls at an address, innermost first, and the function around them
 * last. A line that lies in another file than its function is not told.
 */
static size_t find_in_dwarf(Dwfl_Module *dwfl, uint64_t address,
			    struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = find_unit(dwfl, address, &bias), *scopes, innermost;
	Dwarf_Line *row;
	int line = 0, scope_count;
	size_t count = 0;

	if (!unit || !find_scope(unit, address - bias, &innermost))
		return 0;
	row = dwarf_getsrc_die(unit, address - bias);
	if (row && dwarf_lineno(row, &line) != 0)
		line = 0;
	scope_count = dwarf_getscopes_die(&innermost, &scopes);
	for (int i = 0; i < scope_count && count < SYMBOL_INLINES_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);
		struct symbol *symbol = &ret_symbols[count];
		const char *name;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		name = die_name(&scopes[i]);
		set_name(symbol, name ? name : "?");
		set_file(symbol, dwarf_decl_file(&scopes[i]));
		symbol->line = line > 0 ? (uint32_t)line : 0;
		count++;
		if (tag == DW_TAG_subprogram)
			break;
		line = (int)die_number(&scopes[i], DW_AT_call_line);
	}
	if (scope_count > 0)
		free(scopes);
	if (count && row) {
		struct symbol at;

		set_file(&at, dwarf_linesrc(row, NULL, NULL));
		if (strcmp(at.file, ret_symbols[0].file) != 0)
			ret_symbols[0].line = 0;
	}
	return count;
}

size_t symbols_find(struct symbols *symbols, uint64_t address,
		    struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	struct known *known = find_module(symbols, address);
	struct symbol outermost;
	size_t count;

	if (!known)
		return 0;
	memset(&outermost, 0, sizeof(outermost));
	if (!find_in_table(known, address, &outermost))
		find_in_plt(symbols, known->dwfl, address, &outermost);
	count = find_in_dwarf(known->dwfl, address, ret_symbols);
	if (count == 0) {
		ret_symbols[0] = outermost;
		return *outermost.name ? 1 : 0;
	}
	/* The table knows under which name the function is called. */
	if (*outermost.name)
		memcpy(ret_symbols[count - 1].name, outermost.name, sizeof(outermost.name));
	return count;
}

/* Does an entry of .eh_frame cover the address? */
static bool is_covered(const struct known *known, uint64_t address)
{
	Dwarf_Addr bias;
	Dwarf_Frame *frame;
	Dwarf_CFI *cfi = dwfl_module_eh_cfi(known->dwfl, &bias);

	if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0)
		return false;
	free(frame);
	return true;
}

bool symbols_function_start(struct symbols *symbols, uint64_t address, uint64_t *ret_start)
{
	struct known *known = find_module(symbols, address);
	struct module *module = image_find(symbols->image, address);
	uint64_t start;

	if (!known || !image_unwind_entry(symbols->image, module, address, &start) ||
	    !is_covered(known, address))
		return false;
	*ret_start = start;
	return true;
}
