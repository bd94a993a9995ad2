/* SPDX-License-Identifier: MIT */
/* Do strings, prototypes, functions, upvalues, tables and userdata fit the layout? */
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/selftest/selftest_check.h"

enum {
	SAMPLES = 32,
	NODES_MAX = 1024,        /* checked in one table */
	HASH_BEHIND_GCT = 3,     /* GCstr: gct, reserved, hashalg (once unused), the hash for tables */
	INSTRUCTIONS_MAX = 4096, /* checked in one prototype */
	NAMES_BYTES_MAX = 1 << 16,
	ARRAY_MAX = 1 << 27,
	NARROW_LINES = 256,
	WIDE_LINES = 65536,     /* below these: one byte a line, two bytes a line */
	INTERNAL_NAMES_MAX = 6, /* VARNAME__MAX: "(for index)" and the like are one byte */
	MODULE_BYTES_MAX = 64 << 20,
	FFID_C = 1,         /* FF_C: a C function of the program; library functions have more */
	MARKED_RARE = 0xe0, /* LJ_GC_FIXED, LJ_GC_SFIXED, LJ_GC_CDATA_VAR */
	UDTYPE_IO_FILE = 1,
	IO_FILE_BYTES = 16, /* IOFileUD: FILE *, and its type */
};

/* ---- strings --------------------------------------------------------------- */

/* gcroot starts with the names of the metamethods, in order of their numbers. */
bool selftest_strings(struct check *check)
{
	static const struct {
		unsigned mm;
		const char *name;
	} names[] = {
		{ MM_index, "__index" }, { MM_newindex, "__newindex" }, { MM_gc, "__gc" },
		{ MM_eq, "__eq" },       { MM_call, "__call" },         { MM_unm, "__unm" },
	};
	unsigned size = layout_ref_size(check->layout);
	uint64_t string;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!check_read(check, check->g, check->layout->g_gcroot + (int32_t)(names[i].mm * size), 0,
				"g.gcroot", &string))
			return false;
		if (!check_string_is(check, string, names[i].name))
			return check_fail(check, "g.gcroot does not hold the name %s", names[i].name);
		check->checked++;
	}
	return true;
}

/* ---- prototypes ------------------------------------------------------------ */

struct prototype {
	uint64_t at, bytecode, end; /* addresses */
	uint64_t sizebc, sizekgc, sizekn, sizeuv, sizept, numline;
	uint64_t k, uv, lineinfo, uvinfo, varinfo;
};

static bool read_prototype(struct check *check, uint64_t proto, struct prototype *ret)
{
	ret->at = proto;
	if (!CHECK_FIELD(check, proto, GCproto_sizebc, 4, &ret->sizebc) ||
	    !CHECK_FIELD(check, proto, GCproto_sizekgc, 4, &ret->sizekgc) ||
	    !CHECK_FIELD(check, proto, GCproto_sizekn, 4, &ret->sizekn) ||
	    !CHECK_FIELD(check, proto, GCproto_sizeuv, 1, &ret->sizeuv) ||
	    !CHECK_FIELD(check, proto, GCproto_sizept, 4, &ret->sizept) ||
	    !CHECK_FIELD(check, proto, GCproto_numline, 4, &ret->numline) ||
	    !CHECK_FIELD(check, proto, GCproto_k, 0, &ret->k) ||
	    !CHECK_FIELD(check, proto, GCproto_uv, 0, &ret->uv) ||
	    !CHECK_FIELD(check, proto, GCproto_lineinfo, 0, &ret->lineinfo) ||
	    !CHECK_FIELD(check, proto, GCproto_uvinfo, 0, &ret->uvinfo) ||
	    !CHECK_FIELD(check, proto, GCproto_varinfo, 0, &ret->varinfo))
		return false;
	ret->bytecode = proto + (uint64_t)check->layout->GCproto_size;
	ret->end = proto + ret->sizept;
	return true;
}

/* Bytes of an entry of lineinfo. */
static unsigned line_width(const struct prototype *pt)
{
	return pt->numline < NARROW_LINES ? 1 : pt->numline < WIDE_LINES ? 2 : 4;
}

/*
 * A prototype is one block: bytecode, collectable constants up to k, numbers
 * from k, upvalues, lines, names (lj_parse.c, fs_finish()). Each part starts
 * where the one before it ends.
 */
static bool check_prototype_block(struct check *check, const struct prototype *pt)
{
	uint64_t constants = pt->bytecode + pt->sizebc * INSTRUCTION_BYTES +
			     pt->sizekgc * layout_ref_size(check->layout);
	uint64_t k = (constants + TVALUE_BYTES - 1) / TVALUE_BYTES * TVALUE_BYTES;
	unsigned line = line_width(pt);

	if (pt->sizebc == 0 || pt->k != k)
		return check_fail(check, "GCproto.k is not at the end of the bytecode and constants");
	if (pt->uv != pt->k + pt->sizekn * TVALUE_BYTES)
		return check_fail(check, "GCproto.uv is not at the end of the numbers");
	if (pt->uv + (pt->sizeuv + 1) / 2 * 4 > pt->end)
		return check_fail(check, "GCproto.sizept is too small");
	if (pt->lineinfo == 0) /* stripped */
		return true;
	if (pt->lineinfo != pt->uv + (pt->sizeuv + 1) / 2 * 4)
		return check_fail(check, "GCproto.lineinfo is not at the end of the upvalues");
	if (pt->uvinfo != pt->lineinfo + (pt->sizebc - 1) * line)
		return check_fail(check, "GCproto.uvinfo is not at the end of the lines");
	if (pt->varinfo < pt->uvinfo || pt->varinfo >= pt->end)
		return check_fail(check, "GCproto.varinfo is not behind the upvalue names");
	return true;
}

/* uvinfo holds a NUL-terminated name for each upvalue. varinfo follows and ends with the block. */
static bool check_prototype_names(struct check *check, const struct prototype *pt)
{
	uint64_t byte, names = 0, at;

	if (pt->lineinfo == 0 || pt->varinfo - pt->uvinfo > NAMES_BYTES_MAX)
		return true;
	for (at = pt->uvinfo; at < pt->varinfo; at++) {
		if (!field_read(check->memory, at, 1, &byte))
			return check_fail(check, "GCproto.uvinfo cannot be read");
		names += byte == 0;
	}
	if (names != pt->sizeuv)
		return check_fail(check, "GCproto.uvinfo holds %u names for %u upvalues", (unsigned)names,
				  (unsigned)pt->sizeuv);
	if (!field_read(check->memory, pt->end - 1, 1, &byte) || byte != 0)
		return check_fail(check, "GCproto.sizept does not end with the variable names");
	return true;
}

/* The lines of all instructions lie within the function. */
static bool check_prototype_lines(struct check *check, const struct prototype *pt)
{
	uint8_t lines[INSTRUCTIONS_MAX * sizeof(uint32_t)];
	unsigned width = line_width(pt);
	uint64_t delta, first, count;

	if (!CHECK_FIELD(check, pt->at, GCproto_firstline, 4, &first))
		return false;
	if (first > INT32_MAX && first != UINT32_MAX)
		return check_fail(check, "GCproto.firstline is beyond belief");
	if (pt->lineinfo == 0)
		return true;
	count = pt->sizebc - 1 < INSTRUCTIONS_MAX ? pt->sizebc - 1 : INSTRUCTIONS_MAX;
	if (memory_read(check->memory, pt->lineinfo, lines, count * width) != MEMORY_OK)
		return check_fail(check, "GCproto.lineinfo cannot be read");
	for (uint64_t i = 0; i < count; i++) {
		delta = 0;
		memcpy(&delta, lines + i * width, width);
		if (delta > pt->numline)
			return check_fail(check, "GCproto.numline is less than a line of the function");
	}
	return true;
}

/* One ULEB128 number, of at most 32 bits. */
static bool read_uleb128(struct check *check, uint64_t *at, uint64_t end, uint64_t *ret)
{
	uint64_t value = 0, byte = 0x80;

	for (unsigned shift = 0; shift < 35 && *at < end && (byte & 0x80) != 0; shift += 7) {
		if (!field_read(check->memory, (*at)++, 1, &byte))
			return false;
		value |= (byte & 0x7f) << shift;
	}
	*ret = value;
	return (byte & 0x80) == 0;
}

/*
 * varinfo lists variables by the instruction at which their scope starts: a
 * name (one byte for LuaJIT's own), the distance from the start before it, the
 * length of the scope (lj_parse.c, fs_prep_var()). Only parameters start at the
 * function header.
 */
static bool count_parameters(struct check *check, const struct prototype *pt, uint64_t *ret)
{
	uint64_t at = pt->varinfo, byte, delta, length, count = 0;

	while (field_read(check->memory, at++, 1, &byte) && byte != 0) {
		for (bool named = byte > INTERNAL_NAMES_MAX; named && byte != 0; at++) {
			if (at >= pt->end || !field_read(check->memory, at, 1, &byte))
				return false;
		}
		if (!read_uleb128(check, &at, pt->end, &delta) || !read_uleb128(check, &at, pt->end, &length))
			return false;
		if (delta != 0)
			break;
		count++;
	}
	*ret = count;
	return at <= pt->end;
}

static bool check_prototype_parameters(struct check *check, const struct prototype *pt)
{
	uint64_t parameters, count;

	if (pt->lineinfo == 0)
		return true;
	if (!CHECK_FIELD(check, pt->at, GCproto_numparams, 1, &parameters))
		return false;
	if (!count_parameters(check, pt, &count))
		return check_fail(check, "GCproto.varinfo does not hold variables");
	return count == parameters
		       ? true
		       : check_fail(check, "GCproto.numparams is %u, with %u parameters in GCproto.varinfo",
				    (unsigned)parameters, (unsigned)count);
}

/*
 * An inner function lies within the lines of the outer one. The instruction that
 * makes it is on the last line of the inner one (lj_parse.c, parse_body()) or, in
 * a function statement that needs no other instruction, on its first (parse_func()).
 */
static bool check_child(struct check *check, const struct prototype *pt, uint64_t position,
			uint32_t instruction)
{
	unsigned width = line_width(pt);
	uint64_t child, first, lines, own_first, delta;

	if (!check_read(check,
			pt->k - (bytecode_d(instruction) + UINT64_C(1)) * layout_ref_size(check->layout), 0,
			0, "a constant before GCproto.k", &child) ||
	    !check_type(check, child, GCT_PROTO, "a constant before GCproto.k") ||
	    !CHECK_FIELD(check, pt->at, GCproto_firstline, 4, &own_first) ||
	    !CHECK_FIELD(check, child, GCproto_firstline, 4, &first) ||
	    !CHECK_FIELD(check, child, GCproto_numline, 4, &lines))
		return false;
	if (pt->lineinfo == 0)
		return true;
	if (first < own_first || first + lines > own_first + pt->numline)
		return check_fail(check,
				  "GCproto.firstline of an inner function is not within the outer one");
	if (!field_read(check->memory, pt->lineinfo + (position - 1) * width, width, &delta) ||
	    (own_first + delta != first + lines && own_first + delta != first))
		return check_fail(check, "GCproto.firstline of an inner function is not where it is made");
	return true;
}

/* GCproto.flags has PROTO_CHILD, 1, if and only if some instruction makes a function. */
static bool check_prototype_children(struct check *check, const struct prototype *pt)
{
	uint64_t count = pt->sizebc < INSTRUCTIONS_MAX ? pt->sizebc : INSTRUCTIONS_MAX, flags;
	uint32_t instructions[INSTRUCTIONS_MAX];
	bool has_child = false;

	if (!CHECK_FIELD(check, pt->at, GCproto_flags, 1, &flags))
		return false;
	if (memory_read(check->memory, pt->bytecode, instructions, count * INSTRUCTION_BYTES) != MEMORY_OK)
		return check_fail(check, "GCproto.sizebc is more than there is");
	for (uint64_t i = 0; i < count; i++) {
		if (bytecode_op(check->layout, (uint8_t)instructions[i]) != BC_FNEW)
			continue;
		has_child = true;
		if (!check_child(check, pt, i, instructions[i]))
			return false;
	}
	return has_child == ((flags & 1) != 0) || pt->sizebc > INSTRUCTIONS_MAX
		       ? true
		       : check_fail(check, "GCproto.flags is wrong about inner functions");
}

/*
 * The first instruction is the function header, with the frame size in A. If a
 * trace starts there, it is JFUNCF with the trace's number.
 */
static bool check_prototype_header(struct check *check, const struct prototype *pt)
{
	uint64_t header, framesize, parameters, flags, trace, name;
	enum bytecode_op op;

	if (!field_read(check->memory, pt->bytecode, INSTRUCTION_BYTES, &header) ||
	    !CHECK_FIELD(check, pt->at, GCproto_framesize, 1, &framesize) ||
	    !CHECK_FIELD(check, pt->at, GCproto_numparams, 1, &parameters) ||
	    !CHECK_FIELD(check, pt->at, GCproto_flags, 1, &flags) ||
	    !CHECK_FIELD(check, pt->at, GCproto_trace, 2, &trace) ||
	    !CHECK_FIELD(check, pt->at, GCproto_chunkname, 0, &name))
		return false;
	op = bytecode_op(check->layout, (uint8_t)header);
	if (op < BC_FUNCF || op > BC_JFUNCV)
		return check_fail(check, "GCproto.size: no function header there, but opcode %u",
				  (unsigned)(header & 0xff));
	if (bytecode_a((uint32_t)header) != framesize || parameters > framesize)
		return check_fail(check, "GCproto.framesize is not the one in the function header");
	/* PROTO_VARARG, 2: the header shows it, too. */
	if (((flags & 2) != 0) != (op >= BC_FUNCV))
		return check_fail(check, "GCproto.flags disagrees with the function header");
	return check_type(check, name, GCT_STRING, "GCproto.chunkname");
}

static bool check_prototype(struct check *check, uint64_t proto)
{
	struct prototype pt;

	if (!read_prototype(check, proto, &pt) || !check_prototype_block(check, &pt) ||
	    !check_prototype_names(check, &pt) || !check_prototype_lines(check, &pt) ||
	    !check_prototype_header(check, &pt) || !check_prototype_parameters(check, &pt) ||
	    !check_prototype_children(check, &pt))
		return false;
	check->checked++;
	return true;
}

/* ---- functions and upvalues ------------------------------------------------- */

static bool check_lua_function(struct check *check, uint64_t function, uint64_t pc, uint64_t count)
{
	uint64_t proto = pc - (uint64_t)check->layout->GCproto_size, upvalues, upvalue;

	if (!check_type(check, proto, GCT_PROTO, "GCfunc.pc") ||
	    !CHECK_FIELD(check, proto, GCproto_sizeuv, 1, &upvalues))
		return false;
	if (upvalues != count)
		return check_fail(check, "GCfunc.nupvalues is not the prototype's");
	for (uint64_t i = 0; i < count; i++) {
		if (!check_read(check, function + i * layout_ref_size(check->layout),
				check->layout->GCfuncL_uvptr, 0, "GCfuncL.uvptr", &upvalue) ||
		    !check_type(check, upvalue, GCT_UPVALUE, "GCfuncL.uvptr"))
			return false;
	}
	return true;
}

/*
 * A C function's pc is the address of one of two instructions in g: one for
 * library functions, one for others. The pc of a function in assembler lies
 * behind the dispatch table. Library functions are in the VM's own module.
 */
static bool check_c_function(struct check *check, uint64_t function, uint64_t pc, uint64_t ffid)
{
	uint64_t shared = check->g + (uint64_t)check->layout->g_bc_cfunc_int;
	uint64_t dispatch = check->g + (uint64_t)check->layout->GG_dispatch;
	uint64_t code, distance;

	if (!CHECK_FIELD(check, function, GCfuncC_f, 8, &code))
		return false;
	if (ffid == FFID_C ? pc != shared + INSTRUCTION_BYTES : pc != shared && pc < dispatch)
		return check_fail(check, "GCfunc.pc of a C function is not in g");
	distance = code > check->vm->begin ? code - check->vm->begin : check->vm->begin - code;
	if (ffid != FFID_C && distance > MODULE_BYTES_MAX)
		return check_fail(check, "GCfuncC.f of a library function is not in the library");
	return true;
}

static bool check_function(struct check *check, uint64_t function)
{
	uint64_t ffid, pc, env, count;

	if (!CHECK_FIELD(check, function, GCfunc_ffid, 1, &ffid) ||
	    !CHECK_FIELD(check, function, GCfunc_nupvalues, 1, &count) ||
	    !CHECK_FIELD(check, function, GCfunc_env, 0, &env) ||
	    !CHECK_FIELD(check, function, GCfunc_pc, 0, &pc) ||
	    !check_type(check, env, GCT_TABLE, "GCfunc.env"))
		return false;
	if (!(ffid == 0 ? check_lua_function(check, function, pc, count)
			: check_c_function(check, function, pc, ffid)))
		return false;
	check->checked++;
	return true;
}

/* A closed upvalue holds its own value. */
static bool check_upvalue(struct check *check, uint64_t upvalue)
{
	uint64_t closed, value;

	if (!CHECK_FIELD(check, upvalue, GCupval_closed, 1, &closed) ||
	    !CHECK_FIELD(check, upvalue, GCupval_v, 0, &value))
		return false;
	/* Open upvalues are on the lists of their threads, not on this one. */
	if (closed != 1)
		return check_fail(check, "GCupval.closed is %u", (unsigned)closed);
	if (value != upvalue + (uint64_t)check->layout->GCupval_tv)
		return check_fail(check, "GCupval.v of a closed upvalue is not its own");
	check->checked++;
	return true;
}

/* ---- tables and userdata ---------------------------------------------------- */

static bool check_array(struct check *check, uint64_t table, uint64_t metatable)
{
	uint64_t array, asize, colo;

	if (!CHECK_FIELD(check, table, GCtab_array, 0, &array) ||
	    !CHECK_FIELD(check, table, GCtab_asize, 4, &asize) ||
	    !CHECK_FIELD(check, table, GCtab_colo, 1, &colo))
		return false;
	if (asize > ARRAY_MAX || array % TVALUE_BYTES != 0 || (array == 0 && asize != 0))
		return check_fail(check, "GCtab.asize or GCtab.array is beyond belief");
	/*
	 * colo: the slots allocated together with the table; negative once the table has left them. Without
	 * any, the allocator may have put the array right behind the table, as one without headers between
	 * blocks does.
	 */
	if (colo != 0 && (array == table + (uint64_t)check->layout->GCtab_size) != ((int8_t)colo > 0))
		return check_fail(check, "GCtab.array is not colocated as GCtab.colo says");
	if (asize > 0 && !field_read(check->memory, array + (asize - 1) * TVALUE_BYTES, TVALUE_BYTES, &array))
		return check_fail(check, "GCtab.asize is more than there is");
	return check_type_or_null(check, metatable, GCT_TABLE, "GCtab.metatable");
}

struct nodes {
	uint64_t at, count, size;
	uint64_t string_keys; /* among the nodes checked that hold a value */
	bool has_value;
};

/* Is the slot nil (its tag is LJ_TNIL, ~0) or unreadable? The key of a node without a value may be gone. */
static bool is_nil(struct check *check, uint64_t slot)
{
	uint64_t value;

	return !field_read(check->memory, slot, TVALUE_BYTES, &value) ||
	       (int64_t)value >> (check->layout->gc64 ? 47 : 32) == -1;
}

/* The next node of a chain, which lies in the same array; 0 at the end. */
static bool read_next(struct check *check, const struct nodes *nodes, uint64_t node, uint64_t *ret)
{
	uint64_t next;

	if (!CHECK_FIELD(check, node, Node_next, 0, &next))
		return false;
	if (next != 0 && (next < nodes->at || (next - nodes->at) / nodes->size >= nodes->count ||
			  (next - nodes->at) % nodes->size != 0))
		return check_fail(check, "Node.next leads out of the table");
	*ret = next;
	return true;
}

/*
 * A string key is on the chain that starts where its hash leads (lj_tab.c,
 * lj_tab_getstr()). Tables hash a string by the word behind the GCstr's header:
 * the string's hash, since June 2020 its number (sid).
 */
static bool check_string_key(struct check *check, const struct nodes *nodes, uint64_t node, uint64_t string)
{
	uint64_t hash, found;

	if (!check_read(check, string, check->layout->GChead_gct + HASH_BEHIND_GCT, 4, "GCstr.hash", &hash))
		return false;
	found = nodes->at + (hash & (nodes->count - 1)) * nodes->size;
	for (unsigned steps = 0; found != node && steps < NODES_MAX; steps++) {
		if (!read_next(check, nodes, found, &found))
			return false;
		/* A chain of more than all nodes goes in a circle. */
		if (found == 0 || steps >= nodes->count)
			return check_fail(check, "Node.key is not where the hash of a string leads");
	}
	return true;
}

/* A key with the tag of an object is one, and a string is where its hash leads. */
static bool check_node(struct check *check, struct nodes *nodes, uint64_t node)
{
	const struct layout *layout = check->layout;
	uint64_t next, key;
	uint8_t gct;

	if (!read_next(check, nodes, node, &next))
		return false;
	if (is_nil(check, node + (uint64_t)layout->Node_val))
		return true;
	nodes->has_value = true;
	if (!check_tagged(check, node + (uint64_t)layout->Node_key, &gct, &key))
		return true;
	if (!check_type(check, key, gct, "Node.key"))
		return false;
	if (gct != GCT_STRING)
		return true;
	nodes->string_keys++;
	return check_string_key(check, nodes, node, key);
}

static bool check_nodes(struct check *check, struct nodes *nodes)
{
	if (nodes->size == 0)
		return check_fail(check, "Node.size is 0");
	for (uint64_t i = 0; i < nodes->count && i < NODES_MAX; i++) {
		if (!check_node(check, nodes, nodes->at + i * nodes->size))
			return false;
	}
	return true;
}

static bool read_nodes(struct check *check, uint64_t table, struct nodes *ret)
{
	uint64_t hmask;

	*ret = (struct nodes){ .size = (uint64_t)check->layout->Node_size };
	if (!CHECK_FIELD(check, table, GCtab_node, 0, &ret->at) ||
	    !CHECK_FIELD(check, table, GCtab_hmask, 4, &hmask))
		return false;
	if ((hmask & (hmask + 1)) != 0 || hmask >= ARRAY_MAX)
		return check_fail(check, "GCtab.hmask is no mask");
	ret->count = hmask + 1;
	return true;
}

static bool check_table(struct check *check, uint64_t table)
{
	struct nodes nodes;
	uint64_t metatable;

	if (!read_nodes(check, table, &nodes) || !CHECK_FIELD(check, table, GCtab_metatable, 0, &metatable) ||
	    !check_array(check, table, metatable) || !check_nodes(check, &nodes))
		return false;
	check->checked++;
	return true;
}

/* The slot of the value that the registry has under a name; 0 if it has none. */
static uint64_t find_in_registry(struct check *check, const char *name)
{
	const struct layout *layout = check->layout;
	uint64_t table, key, length;
	struct nodes nodes;
	uint8_t gct;

	if (!check_tagged(check, check->g + (uint64_t)layout->g_registrytv, &gct, &table) ||
	    !read_nodes(check, table, &nodes))
		return 0;
	for (uint64_t i = 0; i < nodes.count && i < NODES_MAX; i++) {
		uint64_t node = nodes.at + i * nodes.size;

		if (check_tagged(check, node + (uint64_t)layout->Node_key, &gct, &key) && gct == GCT_STRING &&
		    field_read(check->memory, key + (uint64_t)layout->GCstr_len, 4, &length) &&
		    length == strlen(name) && check_string_is(check, key, name))
			return node + (uint64_t)layout->Node_val;
	}
	return 0;
}

/*
 * The registry is the second object that a state makes, after the table of
 * globals (lj_state.c, cpluaopen()). So both come last on the list of all
 * objects, before the main thread. The program may have dropped its globals.
 */
static bool check_registry_age(struct check *check, uint64_t registry)
{
	uint64_t older, main;

	if (!CHECK_FIELD(check, check->g, g_mainthref, 0, &main) ||
	    !CHECK_FIELD(check, registry, GChead_nextgc, 0, &older))
		return false;
	if (older != main && (!check_type(check, older, GCT_TABLE, "GChead.nextgc of the registry") ||
			      !CHECK_FIELD(check, older, GChead_nextgc, 0, &older)))
		return false;
	return older == main ? true
			     : check_fail(check,
					  "g.registrytv holds a table that is not the state's second object");
}

/* Programs and libraries keep what they like there; _LOADED is a table since the first library. */
static bool check_registry(struct check *check)
{
	uint64_t registry, loaded, value;
	uint8_t gct;

	if (!check_tagged(check, check->g + (uint64_t)check->layout->g_registrytv, &gct, &registry) ||
	    gct != GCT_TABLE)
		return check_fail(check, "g.registrytv holds no table");
	if (!check_table(check, registry) || !check_registry_age(check, registry))
		return false;
	loaded = find_in_registry(check, "_LOADED");
	if (loaded == 0 || is_nil(check, loaded))
		return true;
	return check_tagged(check, loaded, &gct, &value) && gct == GCT_TABLE
		       ? check_type(check, value, GCT_TABLE, "registry._LOADED")
		       : check_fail(check, "Node.val of registry._LOADED is no table");
}

/* Globals have names: a program without libraries has at least its own. */
static bool check_globals(struct check *check)
{
	uint64_t main, globals;
	struct nodes nodes;

	if (!CHECK_FIELD(check, check->g, g_mainthref, 0, &main) ||
	    !CHECK_FIELD(check, main, L_env, 0, &globals) ||
	    !check_type(check, globals, GCT_TABLE, "L.env") || !read_nodes(check, globals, &nodes) ||
	    !check_nodes(check, &nodes))
		return false;
	if (nodes.has_value && nodes.string_keys == 0)
		return check_fail(check, "Node.key of no global is a name");
	check->checked++;
	return true;
}

static bool check_userdata(struct check *check, uint64_t userdata)
{
	uint64_t env, metatable, length, type;

	/* udtype takes the place of a function's ffid. */
	if (!CHECK_FIELD(check, userdata, GCfunc_ffid, 1, &type) ||
	    !CHECK_FIELD(check, userdata, GCudata_env, 0, &env) ||
	    !CHECK_FIELD(check, userdata, GCudata_metatable, 0, &metatable) ||
	    !CHECK_FIELD(check, userdata, GCudata_len, 4, &length) ||
	    !check_type(check, env, GCT_TABLE, "GCudata.env") ||
	    !check_type_or_null(check, metatable, GCT_TABLE, "GCudata.metatable"))
		return false;
	if (length > INT32_MAX || (type == UDTYPE_IO_FILE && length != IO_FILE_BYTES))
		return check_fail(check, "GCudata.len is beyond belief");
	check->checked++;
	return true;
}

/*
 * Some of the newest files have the metatable that the registry has for them.
 * Not all need to: a program that opens the libraries twice has others as well.
 */
static bool check_files(struct check *check, const uint64_t *userdata, unsigned count)
{
	uint64_t slot = find_in_registry(check, "FILE*"), registered, metatable, type;
	unsigned files = 0, fitting = 0;
	uint8_t gct;

	if (slot == 0 || !check_tagged(check, slot, &gct, &registered))
		return true;
	for (unsigned i = 0; i < count; i++) {
		if (!CHECK_FIELD(check, userdata[i], GCfunc_ffid, 1, &type) ||
		    !CHECK_FIELD(check, userdata[i], GCudata_metatable, 0, &metatable))
			return false;
		files += type == UDTYPE_IO_FILE;
		fitting += type == UDTYPE_IO_FILE && metatable == registered;
	}
	return files == 0 || fitting > 0 ? true
					 : check_fail(check, "GCudata.metatable of no file is that of files");
}

/* Only threads, strings and cdata have the rarer marks. */
static bool check_mark(struct check *check, uint64_t object, uint8_t gct)
{
	uint64_t marked;

	if (!CHECK_FIELD(check, object, GChead_marked, 1, &marked))
		return false;
	return gct == GCT_THREAD || (marked & MARKED_RARE) == 0
		       ? true
		       : check_fail(check, "GChead.marked of an object is beyond belief");
}

bool selftest_objects(struct check *check)
{
	static const struct {
		uint8_t gct;
		bool (*check)(struct check *check, uint64_t object);
	} kinds[] = {
		{ GCT_PROTO, check_prototype },   { GCT_FUNCTION, check_function },
		{ GCT_UPVALUE, check_upvalue },   { GCT_TABLE, check_table },
		{ GCT_USERDATA, check_userdata }, { GCT_THREAD, check_thread },
	};
	uint64_t objects[SAMPLES];

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		unsigned count = check_collect(check, kinds[k].gct, objects, SAMPLES);

		if (check->failure[0] != '\0')
			return false;
		for (unsigned i = 0; i < count; i++)
			if (!check_mark(check, objects[i], kinds[k].gct) ||
			    !kinds[k].check(check, objects[i]))
				return false;
		if (kinds[k].gct == GCT_USERDATA && !check_files(check, objects, count))
			return false;
	}
	return check_registry(check) && check_globals(check);
}
