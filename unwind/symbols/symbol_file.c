/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/symbol_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include "unwind/elf/debug_file.h"
#include "unwind/elf/plt.h"
#include "unwind/elf/string_tables.h"
#include "unwind/symbols/demangle.h"
#include "unwind/symbols/leaf_function.h"
#include "unwind/symbols/searched_cfi.h"

enum {
	ENTRIES_MAX = 4 << 20, /* of a symbol table */
	OVERLAPS_MAX = 64,     /* entries searched backwards for one that holds an address */
};

/* A function in a symbol table. */
struct entry {
	uint64_t begin, end;
	const char *name; /* owned by libdwfl */
	bool is_local;
};

struct symbol_file {
	int fd; /* -1 once libdwfl has it */
	char *root, *path;
	bool plain;
	Dwfl *session;
	Dwfl_Module *dwfl;
	bool is_sorted;        /* entries have been read */
	struct entry *entries; /* by begin; of several names of one function the best comes last */
	size_t count;
	bool is_searched;              /* for a table that the file does not tell of */
	struct searched_cfi *searched; /* NULL: it has none */
};

/*---- Files ----*/

/* libdwfl's callback. libdwfl takes ownership of the descriptor and the Elf. */
static int find_elf(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base, char **ret_path,
		    Elf **ret_elf)
{
	struct symbol_file *file = *userdata;
	int fd = file->fd;

	(void)dwfl;
	(void)name;
	(void)base;
	if (fd < 0)
		return -1;
	*ret_elf = elf_begin(fd, ELF_C_READ, NULL);
	if (*ret_elf && !string_tables_end(*ret_elf)) {
		elf_end(*ret_elf);
		*ret_elf = NULL;
		return -1;
	}
	*ret_path = strdup(file->path);
	file->fd = -1;
	return fd;
}

/* libdwfl's callback, with its parameters. */
static int find_debug_file(Dwfl_Module *dwfl, void **userdata, const char *name, Dwarf_Addr base,
			   const char *path, const char *debuglink, GElf_Word crc, char **ret_path)
{
	const struct symbol_file *file = *userdata;

	const struct debug_file_wanted wanted = {
		.dwfl = dwfl,
		.userdata = userdata,
		.name = name,
		.base = base,
		.root = file->root,
		.path = file->path,
		.debuglink = debuglink,
		.checksum = crc,
	};

	(void)path;
	return file->plain ? -1 : debug_file_find(&wanted, ret_path);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
};

struct symbol_file *symbol_file_open(const struct symbol_source *source)
{
	struct symbol_file *file = calloc(1, sizeof(*file));
	void **userdata;

	if (!file) {
		close(source->fd);
		return NULL;
	}
	elf_version(EV_CURRENT);
	file->fd = source->fd;
	file->plain = source->plain;
	file->path = strdup(source->path);
	file->root = strdup(source->root);
	file->session = dwfl_begin(&callbacks);
	if (file->path && file->root && file->session) {
		dwfl_report_begin(file->session);
		file->dwfl = dwfl_report_module(file->session, "", source->base, source->end);
		dwfl_report_end(file->session, NULL, NULL);
	}
	if (file->dwfl && dwfl_module_info(file->dwfl, &userdata, NULL, NULL, NULL, NULL, NULL, NULL)) {
		*userdata = file;
		return file;
	}
	symbol_file_close(file);
	return NULL;
}

void symbol_file_close(struct symbol_file *file)
{
	if (!file)
		return;
	searched_cfi_free(file->searched);
	if (file->session)
		dwfl_end(file->session);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->root);
	free(file->entries);
	free(file);
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
 * Of several names of one function ("cbrt", "__cbrt", "cbrtf64"), a global name
 * is better than a local one, then one without a leading underscore, then the
 * shortest. Better names sort last.
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

/* libdw decompresses every section that it knows, needed or not. Where variables are, nobody asks. */
static void leave_out_locations(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name)
								  : NULL;

		if (!name || !(header.sh_flags & SHF_COMPRESSED) ||
		    (strcmp(name, ".debug_loclists") != 0 && strcmp(name, ".debug_loc") != 0))
			continue;
		header.sh_type = SHT_NOBITS;
		gelf_update_shdr(section, &header);
	}
}

static void read_entries(struct symbol_file *file)
{
	int count = dwfl_module_getsymtab(file->dwfl);
	Elf *elf = NULL;

	file->is_sorted = true;
	if (count <= 0 || count > ENTRIES_MAX)
		return;
	file->entries = calloc((size_t)count, sizeof(*file->entries));
	if (!file->entries)
		return;
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		Elf *of = NULL;
		const char *name = dwfl_module_getsym_info(file->dwfl, i, &symbol, &address, NULL, &of, NULL);
		int type = GELF_ST_TYPE(symbol.st_info);

		if (of && of != elf)
			leave_out_locations(elf = of);
		if (!name || !*name || symbol.st_shndx == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
		    address + symbol.st_size < address)
			continue;
		file->entries[file->count++] = (struct entry){
			.begin = address,
			.end = address + symbol.st_size,
			.name = name,
			.is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
		};
	}
	qsort(file->entries, file->count, sizeof(*file->entries), compare_entries);
}

/* The number of entries that begin at or before the address. */
static size_t count_before(struct symbol_file *file, uint64_t address)
{
	size_t low = 0, high;

	if (!file->is_sorted)
		read_entries(file);
	high = file->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->entries[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* .eh_frame, searched for once if nothing leads to it; NULL if there is none. */
static Dwarf_CFI *find_cfi(struct symbol_file *file, Dwarf_Addr *ret_bias)
{
	Dwarf_CFI *cfi = dwfl_module_eh_cfi(file->dwfl, ret_bias);
	Elf *elf = cfi ? NULL : dwfl_module_getelf(file->dwfl, ret_bias);

	if (elf && !file->is_searched) {
		file->is_searched = true;
		file->searched = searched_cfi_new(elf);
	}
	return elf && file->searched ? searched_cfi_get(file->searched) : cfi;
}

/* The row of .eh_frame for an address; the caller frees it. NULL if there is none. */
static Dwarf_Frame *find_row(struct symbol_file *file, uint64_t address, Dwarf_Addr *ret_bias)
{
	Dwarf_CFI *cfi = find_cfi(file, ret_bias);
	Dwarf_Frame *row;

	return cfi && dwarf_cfi_addrframe(cfi, address - *ret_bias, &row) == 0 ? row : NULL;
}

/* The same, from .debug_frame. */
static Dwarf_Frame *find_debug_row(const struct symbol_file *file, uint64_t address)
{
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = dwfl_module_dwarf_cfi(file->dwfl, &bias);
	Dwarf_Frame *row;

	return cfi && dwarf_cfi_addrframe(cfi, address - bias, &row) == 0 ? row : NULL;
}

/* Where the row of .eh_frame for an address begins; false if there is none. */
static bool find_begin(struct symbol_file *file, uint64_t address, uint64_t *ret_begin)
{
	Dwarf_Addr bias, begin;
	Dwarf_Frame *row = find_row(file, address, &bias);

	if (!row)
		return false;
	dwarf_frame_info(row, &begin, NULL, NULL);
	free(row);
	*ret_begin = begin + bias;
	return true;
}

/* The entry whose extent holds the address; NULL if none does. */
static const struct entry *find_entry(struct symbol_file *file, uint64_t address)
{
	size_t before = count_before(file, address);

	for (size_t i = 0; i < OVERLAPS_MAX && i < before; i++)
		if (address < file->entries[before - 1 - i].end)
			return &file->entries[before - 1 - i];
	return NULL;
}

/*
 * Find a symbol whose extent holds the address. Symbols of functions written in
 * assembler may have no size: then unwind tables must show that what begins at
 * the symbol reaches the address.
 */
static bool find_in_table(struct symbol_file *file, uint64_t address, struct symbol *symbol)
{
	const struct entry *entry = find_entry(file, address);
	uint64_t begin;
	size_t before;

	if (entry) {
		set_name(symbol, entry->name);
		return true;
	}
	if (!find_begin(file, address, &begin))
		return false;
	before = count_before(file, begin);
	if (before == 0 || file->entries[before - 1].begin != begin)
		return false;
	set_name(symbol, file->entries[before - 1].name);
	return true;
}

static bool find_plt_entry(const struct symbol_file *file, uint64_t address, struct plt_entry *ret_entry,
			   GElf_Addr *ret_bias)
{
	Elf *elf = dwfl_module_getelf(file->dwfl, ret_bias);

	return elf && plt_find(elf, address - *ret_bias, ret_entry);
}

/* If a resolver filled the entry's slot, the entry has the resolver's name, which the program calls. */
static bool find_in_plt(struct symbol_file *file, uint64_t address, struct symbol *symbol)
{
	struct plt_entry entry;
	GElf_Addr bias;
	size_t length;

	if (!find_plt_entry(file, address, &entry, &bias))
		return false;
	if (entry.name)
		set_name(symbol, entry.name);
	else if (!find_in_table(file, entry.resolver + bias, symbol))
		return false;
	length = strlen(symbol->name);
	snprintf(symbol->name + length, sizeof(symbol->name) - length, "@plt");
	return true;
}

/*---- DWARF ----*/

/* The compilation unit at an address, even if its compiler wrote no .debug_aranges. */
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

/* The file that defines a function. Since DWARF 5, file 0 is the unit's own, which libdw does not return. */
static const char *die_file(Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Die unit;

	if (file || !dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &number) != 0 || number != 0 ||
	    !dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL))
		return file;
	return dwarf_diename(&unit);
}

/* A numeric attribute of a DIE; 0 if it has none. */
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
	Dwarf_Die *scopes = NULL; /* it stays so if there are none */
	int count = dwarf_getscopes(unit, address, &scopes);
	bool found = false;

	for (int i = 0; i < count && !found; i++) {
		int tag = dwarf_tag(&scopes[i]);

		found = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
		if (found)
			*ret_die = scopes[i];
	}
	free(scopes);
	return found;
}

/*
 * Write the inlined calls at an address, innermost first, and the function
 * around them last. Returns their number. Leaves out a line that lies in another
 * file than its function.
 */
static size_t find_in_dwarf(Dwfl_Module *dwfl, uint64_t address,
			    struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = find_unit(dwfl, address, &bias), *scopes = NULL, innermost;
	Dwarf_Line *row;
	int line = 0, scope_count;
	size_t count = 0;

	if (!unit || !find_scope(unit, address - bias, &innermost))
		return 0;
	row = dwarf_getsrc_die(unit, address - bias);
	if (row)
		dwarf_lineno(row, &line);
	scope_count = dwarf_getscopes_die(&innermost, &scopes);
	for (int i = 0; i < scope_count && count < SYMBOL_INLINES_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);
		struct symbol *symbol = &ret_symbols[count];
		const char *name;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		name = die_name(&scopes[i]);
		set_name(symbol, name ? name : "?");
		set_file(symbol, die_file(&scopes[i]));
		symbol->line = line > 0 ? (uint32_t)line : 0;
		count++;
		if (tag == DW_TAG_subprogram)
			break;
		line = (int)die_number(&scopes[i], DW_AT_call_line);
	}
	free(scopes);
	if (count && row) {
		struct symbol at = { .line = 0 };

		set_file(&at, dwarf_linesrc(row, NULL, NULL));
		if (strcmp(at.file, ret_symbols[0].file) != 0)
			ret_symbols[0].line = 0;
	}
	return count;
}

size_t symbol_file_find(struct symbol_file *file, uint64_t address,
			struct symbol ret_symbols[static SYMBOL_INLINES_MAX])
{
	struct symbol outermost;
	size_t count;

	memset(&outermost, 0, sizeof(outermost));
	if (!find_in_table(file, address, &outermost))
		find_in_plt(file, address, &outermost);
	count = file->plain ? 0 : find_in_dwarf(file->dwfl, address, ret_symbols);
	if (count == 0) {
		ret_symbols[0] = outermost;
		return *outermost.name ? 1 : 0;
	}
	/* The symbol table has the name by which code calls the function. */
	if (*outermost.name)
		memcpy(ret_symbols[count - 1].name, outermost.name, sizeof(outermost.name));
	return count;
}

/*---- Extents ----*/

static bool has_debug_info(const struct symbol_file *file)
{
	Dwarf_Addr bias;

	return !file->plain && dwfl_module_getdwarf(file->dwfl, &bias);
}

static void clip(struct symbol_extent *extent, uint64_t begin, uint64_t end)
{
	if (begin > extent->begin)
		extent->begin = begin;
	if (end < extent->end)
		extent->end = end;
}

/* Find the addresses around this one that one entry holds, or none holds; true if one does. */
static bool find_stretch(struct symbol_file *file, uint64_t address, struct symbol_extent *ret_extent)
{
	size_t before = count_before(file, address);
	struct symbol_extent extent = {
		.begin = before ? file->entries[before - 1].begin : 0,
		.end = before < file->count ? file->entries[before].begin : UINT64_MAX,
	};
	bool is_held = false;

	/* In the order of find_entry(). Entries that end before the address must end before the extent. */
	for (size_t i = 0; i < OVERLAPS_MAX && i < before && !is_held; i++) {
		const struct entry *entry = &file->entries[before - 1 - i];

		is_held = address < entry->end;
		if (is_held)
			clip(&extent, 0, entry->end);
		else
			clip(&extent, entry->end, UINT64_MAX);
	}
	*ret_extent = extent;
	return is_held;
}

/* Clip to the row of .eh_frame; false if there is none. */
static bool clip_to_row(struct symbol_file *file, uint64_t address, struct symbol_extent *extent)
{
	Dwarf_Addr bias, begin, end;
	Dwarf_Frame *row = find_row(file, address, &bias);

	if (!row)
		return false;
	dwarf_frame_info(row, &begin, &end, NULL);
	free(row);
	clip(extent, begin + bias, end + bias);
	return true;
}

/* Clip to the section. False if there is none, or it may be a PLT: each entry of a PLT has its own name. */
static bool clip_to_section(const struct symbol_file *file, uint64_t address, struct symbol_extent *extent)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(file->dwfl, &bias);
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    address - bias - header.sh_addr >= header.sh_size)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		clip(extent, header.sh_addr + bias, header.sh_addr + header.sh_size + bias);
		return name && !strstr(name, "plt");
	}
	return false;
}

struct symbol_extent symbol_file_extent(struct symbol_file *file, uint64_t address)
{
	const struct symbol_extent alone = { address, address + 1 };
	struct symbol_extent extent;

	if (has_debug_info(file))
		return alone;
	if (find_stretch(file, address, &extent))
		return extent;
	return clip_to_row(file, address, &extent) && clip_to_section(file, address, &extent) ? extent
											      : alone;
}

bool symbol_file_covers(struct symbol_file *file, uint64_t address)
{
	uint64_t begin;

	return find_begin(file, address, &begin);
}

/* The bytes of the file that are mapped at an address in it; NULL unless all of them are. */
static const uint8_t *find_bytes(Elf *elf, uint64_t address, size_t length)
{
	GElf_Phdr segment;
	Elf_Data *data;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return NULL;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++) {
		uint64_t skipped = address - segment.p_vaddr;

		if (segment.p_type != PT_LOAD || skipped >= segment.p_filesz ||
		    length > segment.p_filesz - skipped)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)(segment.p_offset + skipped), length, ELF_T_BYTE);
		return data && data->d_size == length ? data->d_buf : NULL;
	}
	return NULL;
}

/* Is the address in a function that puts nothing on the stack? */
static bool is_in_leaf(struct symbol_file *file, uint64_t address)
{
	const struct entry *entry = find_entry(file, address);
	const uint8_t *code;
	GElf_Addr bias;
	Elf *elf;

	if (!entry)
		return false;
	elf = dwfl_module_getelf(file->dwfl, &bias);
	code = elf ? find_bytes(elf, entry->begin - bias, entry->end - entry->begin) : NULL;
	return code && leaf_function(code, entry->end - entry->begin);
}

/*
 * Is the return address on top of the stack, in code that no table describes?
 * No linker describes the PLT of a static program, some linkers describe none,
 * and some functions have no description.
 */
static bool is_after_call(struct symbol_file *file, uint64_t address)
{
	struct plt_entry entry;
	GElf_Addr bias;

	return (find_plt_entry(file, address, &entry, &bias) && entry.is_before_jump) ||
	       is_in_leaf(file, address);
}

bool symbol_file_rules(struct symbol_file *file, uint64_t address, struct frame_rules *ret_rules)
{
	Dwarf_Addr bias;
	Dwarf_Frame *row = find_row(file, address, &bias);
	bool taken;

	if (!row)
		row = find_debug_row(file, address);
	if (!row) {
		taken = is_after_call(file, address);
		if (taken)
			frame_rules_of_call(ret_rules);
		return taken;
	}
	taken = frame_rules_take(row, ret_rules);
	free(row);
	return taken;
}
