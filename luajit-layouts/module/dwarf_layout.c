/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/dwarf_layout.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "luajit-layouts/bytecode.h"

enum { MEMBER_MAX = 64, NESTING_MAX = 4 };

/* LuaJIT's names of structures that a layout names otherwise. */
static const struct {
	const char *ours, *theirs;
} structures[] = {
	{ "L", "lua_State" }, { "g", "global_State" }, { "J", "jit_State" },
	{ "GG", "GG_State" }, { "GCfunc", "GCfuncC" }, /* GCfunc is a union; they share their start */
};

/* Fields whose path is not just their name; the first path that exists holds. */
static const struct {
	const char *field, *path;
} paths[] = {
	{ "g.gc_total", "gc.total" }, { "g.gc_state", "gc.state" }, { "g.gc_root", "gc.root" },
	{ "g.strhash", "str.tab" },   { "g.strhash", "strhash" },   { "g.strmask", "str.mask" },
	{ "g.strmask", "strmask" },   { "g.strnum", "str.num" },    { "g.strnum", "strnum" },
	{ "g.tmpbuf_L", "tmpbuf.L" },
};

static const char *dwarf_name(const char *structure)
{
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++) {
		if (strcmp(structures[i].ours, structure) == 0)
			return structures[i].theirs;
	}
	return structure;
}

/* ---- members -------------------------------------------------------------- */

static bool has_name(Dwarf_Die *die, const char *name, size_t length)
{
	const char *found = dwarf_diename(die);

	return found != NULL && strlen(found) == length && memcmp(found, name, length) == 0;
}

static bool number(Dwarf_Die *die, unsigned attribute, int32_t *ret)
{
	Dwarf_Attribute value;
	Dwarf_Word word;

	if (dwarf_attr_integrate(die, attribute, &value) == NULL || dwarf_formudata(&value, &word) != 0 ||
	    word > INT32_MAX)
		return false;
	*ret = (int32_t)word;
	return true;
}

/* The type of a member, past typedefs and qualifiers. */
static bool member_type(Dwarf_Die *member, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;

	return dwarf_attr_integrate(member, DW_AT_type, &attribute) != NULL &&
	       dwarf_formref_die(&attribute, &type) != NULL && dwarf_peel_type(&type, ret) == 0;
}

static bool find_nested(Dwarf_Die *structure, const char *path, unsigned nesting, int32_t *ret);

/*
 * Find the path in a member that is its next part, or that has no name and
 * contains it. Follows nested structures to a depth of NESTING_MAX.
 */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool find_in_member(Dwarf_Die *member, const char *path, unsigned nesting, int32_t *ret)
{
	size_t length = strcspn(path, ".");
	bool anonymous = dwarf_diename(member) == NULL;
	int32_t offset = 0, inner = 0;
	Dwarf_Die type;

	if (dwarf_tag(member) != DW_TAG_member || (!anonymous && !has_name(member, path, length)))
		return false;
	/* A union's members have no location: they start where the union does. */
	if (dwarf_hasattr_integrate(member, DW_AT_data_member_location) &&
	    !number(member, DW_AT_data_member_location, &offset))
		return false;
	if (!anonymous)
		path += length + (path[length] == '.');
	if (*path != '\0' && (nesting == NESTING_MAX || !member_type(member, &type) ||
			      !find_nested(&type, path, nesting + 1, &inner)))
		return false;
	*ret = offset + inner;
	return true;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool find_nested(Dwarf_Die *structure, const char *path, unsigned nesting, int32_t *ret)
{
	Dwarf_Die member;

	if (dwarf_child(structure, &member) != 0)
		return false;
	do {
		if (find_in_member(&member, path, nesting, ret))
			return true;
	} while (dwarf_siblingof(&member, &member) == 0);
	return false;
}

/* The offset of a dotted path of members. */
static bool find_member(Dwarf_Die *structure, const char *path, int32_t *ret)
{
	return find_nested(structure, path, 0, ret);
}

static bool find_field(Dwarf_Die *die, const char *structure, const char *field, int32_t *ret)
{
	char key[MEMBER_MAX];
	bool has_path = false;

	snprintf(key, sizeof(key), "%s.%s", structure, field);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(paths[i].field, key) != 0)
			continue;
		has_path = true;
		if (find_member(die, paths[i].path, ret))
			return true;
	}
	return !has_path && find_member(die, field, ret);
}

/* Turn an offset in GG_State into a distance from g. */
static bool relate_to_g(Dwarf_Die *die, int32_t *offset)
{
	int32_t g;

	if (!find_member(die, "g", &g))
		return false;
	*offset -= g;
	return true;
}

static void read_structure(Dwarf_Die *die, struct layout *layout)
{
	const char *name = dwarf_diename(die);

	for (size_t i = 0; i < layout_field_count; i++) {
		const struct layout_field *field = &layout_fields[i];
		int32_t *offset = layout_offset_in(layout, field);
		bool found;

		if (strcmp(dwarf_name(field->structure), name) != 0)
			continue;
		if (strcmp(field->field, "size") == 0)
			found = number(die, DW_AT_byte_size, offset);
		else
			found = find_field(die, field->structure, field->field, offset);
		if (found && strcmp(name, "GG_State") == 0)
			found = relate_to_g(die, offset);
		if (!found)
			*offset = LAYOUT_ABSENT;
	}
}

/* ---- types and enumerations -------------------------------------------------- */

struct opcodes {
	int32_t funcf, jmp;
};

static void read_enumeration(Dwarf_Die *die, struct layout *layout, struct opcodes *opcodes)
{
	Dwarf_Die value;

	if (dwarf_child(die, &value) != 0)
		return;
	do {
		const char *name = dwarf_diename(&value);

		if (name == NULL)
			continue;
		if (strcmp(name, "IR_KGC") == 0)
			number(&value, DW_AT_const_value, &layout->IR_KGC);
		else if (strcmp(name, "BC_FUNCF") == 0)
			number(&value, DW_AT_const_value, &opcodes->funcf);
		else if (strcmp(name, "BC_JMP") == 0)
			number(&value, DW_AT_const_value, &opcodes->jmp);
		else if (strcmp(name, "LJ_VMST_LFUNC") == 0)
			layout->vmstates = VMSTATES_TARANTOOL;
		else if (strcmp(name, "LJ_VMST_HEAD") == 0) /* RaptorJIT's */
			layout->vmstates = VMSTATES_COUNT;
	} while (dwarf_siblingof(&value, &value) == 0);
}

/* Is it a definition, not a mere declaration, of a named structure? */
static bool is_definition(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_structure_type && dwarf_diename(die) != NULL &&
	       !dwarf_hasattr(die, DW_AT_declaration);
}

static void read_unit(Dwarf_Die *unit, struct layout *layout, struct opcodes *opcodes)
{
	int32_t size;
	Dwarf_Die die;

	if (dwarf_child(unit, &die) != 0)
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_enumeration_type)
			read_enumeration(&die, layout, opcodes);
		if (!is_definition(&die))
			continue;
		read_structure(&die, layout);
		if (strcmp(dwarf_diename(&die), "GCRef") == 0 && number(&die, DW_AT_byte_size, &size))
			layout->gc64 = size == sizeof(uint64_t);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static bool number_bytecode(const struct opcodes *opcodes, struct layout *layout)
{
	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		layout->bytecode = set;
		if (bytecode_number(layout, BC_FUNCF) == opcodes->funcf &&
		    bytecode_number(layout, BC_JMP) == opcodes->jmp)
			return true;
	}
	return false;
}

static enum dwarf_layout_status read_units(Dwarf *dwarf, struct layout *ret_layout)
{
	struct opcodes opcodes = { LAYOUT_UNKNOWN, LAYOUT_UNKNOWN };
	struct layout layout;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	layout_clear(&layout);
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
		read_unit(&die, &layout, &opcodes);
	if (layout.g_vmstate == LAYOUT_UNKNOWN || !number_bytecode(&opcodes, &layout))
		return DWARF_LAYOUT_NOT_LUAJIT;
	if (layout.vmstates == VMSTATES_COUNT)
		return DWARF_LAYOUT_OTHER_STATES;
	layout.has_jit = layout.GG_J >= 0;
	if (!layout.has_jit)
		layout_without_jit(&layout);
	snprintf(layout.name, sizeof(layout.name), "debug-info");
	*ret_layout = layout;
	return DWARF_LAYOUT_OK;
}

enum dwarf_layout_status dwarf_layout_read(const char *path, struct layout *ret_layout)
{
	enum dwarf_layout_status status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *dwarf;

	if (fd < 0)
		return DWARF_LAYOUT_UNREADABLE;
	dwarf = dwarf_begin(fd, DWARF_C_READ);
	if (dwarf == NULL) {
		close(fd);
		return DWARF_LAYOUT_NO_DEBUG_INFO;
	}
	status = read_units(dwarf, ret_layout);
	dwarf_end(dwarf);
	close(fd);
	return status;
}

const char *dwarf_layout_status_text(enum dwarf_layout_status status)
{
	switch (status) {
	case DWARF_LAYOUT_OK: return "read from debug info";
	case DWARF_LAYOUT_UNREADABLE: return "the file cannot be read";
	case DWARF_LAYOUT_NO_DEBUG_INFO: return "the file has no debug info";
	case DWARF_LAYOUT_OTHER_STATES:
		return "its VM states are not numbered as in any LuaJIT that ljspy knows";
	case DWARF_LAYOUT_NOT_LUAJIT: return "its debug info is not LuaJIT's";
	}
	return "unknown";
}
