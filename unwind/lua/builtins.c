/* SPDX-License-Identifier: MIT */
#include "unwind/lua/builtins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/lua_table.h"
#include "unwind/lua/luajit.h"

enum {
	GCROOTS_MAX = 48,        /* g->gcroot has at most this many entries (GCROOT_MAX) */
	GLOBAL_TABLES_MAX = 256, /* more are not noted */
};

/*
 * LuaJIT's own modules, searched first: programs put builtins into tables of their
 * own. methods is the prefix for the functions in the environment of the module's
 * functions, which is the metatable of its objects.
 */
static const struct module_name {
	const char *name, *methods;
} own_modules[] = {
	{ "string", NULL },
	{ "table", NULL },
	{ "math", NULL },
	{ "io", "file" },
	{ "os", NULL },
	{ "debug", NULL },
	{ "coroutine", NULL },
	{ "package", NULL },
	{ "bit", NULL },
	{ "jit", NULL },
	{ "jit.util", NULL },
	{ "jit.opt", NULL },
	{ "jit.profile", NULL },
	{ "string.buffer", "buffer" },
	{ "ffi", "ffi.clib" },
	{ "_G", NULL },
	{ "table.new", NULL },
	{ "table.clear", NULL },
	{ "table.clone", NULL },
	{ "table.isempty", NULL },
	{ "table.isarray", NULL },
	{ "table.nkeys", NULL },
	{ "thread.exdata", NULL },
	{ "thread.exdata2", NULL },
};

/* The registry's key of the methods of lua-nginx-module's TCP sockets, since 0.10.19. */
static const char cosocket_methods[] = "__tcp_cosocket_mt";

/* The Lua 5.0 names of math.fmod and string.gmatch. LuaJIT up to 2.1.0-beta3 has both names. */
static const struct {
	const char *module, *key;
} old_names[] = { { "math", "mod" }, { "string", "gfind" } };

/*
 * Functions that no table holds, by a neighbour in the source (lib_base.c,
 * lib_string.c). Their ffid is one lower than the neighbour's. An assembler
 * function's dispatch number differs by op_distance from that of op_near.
 */
static const struct {
	const char *name;
	const char *ffid_after; /* the function declared right after it */
	const char *op_near;    /* NULL: not an assembler function */
	int op_distance;
} hidden[] = {
	{ "ipairs_aux", "ipairs", "ipairs", -1 },
	{ "coroutine.wrap_aux", "coroutine.wrap", "coroutine.resume", 1 },
	{ "string.gmatch_aux", "string.gmatch", NULL, 0 },
};

/* A table that is a global variable. */
struct global_table {
	char name[LUA_TABLE_KEY_SIZE];
	uint64_t table;
};

struct collector {
	struct memory *memory;
	const struct layout *layout;
	struct builtins *builtins;
	const char *wanted;  /* the only module of package.loaded to visit; NULL: all */
	const char *methods; /* of struct module_name */
	uint64_t globals;    /* the default environment of functions */
	struct global_table global_tables[GLOBAL_TABLES_MAX];
	size_t global_table_count;
};

/* Called for each pair with a string key. */
typedef void visit_pair(struct collector *collector, const char *key, uint64_t value, const char *context);

static bool load_reference(const struct collector *collector, uint64_t address, uint64_t *ret)
{
	uint64_t value = 0;

	if (memory_read(collector->memory, address, &value, layout_ref_size(collector->layout)) != MEMORY_OK)
		return false;
	*ret = value;
	return true;
}

struct visit {
	struct collector *collector;
	visit_pair *visit;
	const char *context;
};

static void visit_one(void *context, const char *key, uint64_t value)
{
	const struct visit *visit = context;

	visit->visit(visit->collector, key, value, visit->context);
}

static void visit_table(struct collector *collector, uint64_t table, visit_pair *visit, const char *context)
{
	struct visit each = { collector, visit, context };

	lua_table_each(collector->memory, collector->layout, table, visit_one, &each);
}

/*---- Functions ----*/

static bool join(const char *module, const char *key, char ret_name[static BUILTIN_NAME_SIZE])
{
	size_t length = strlen(module);

	/* "_G.print" is print. A module may itself be a function. */
	if (length == 0 || strcmp(module, "_G") == 0) {
		snprintf(ret_name, BUILTIN_NAME_SIZE, "%s", key);
		return true;
	}
	if (length + strlen(key) + 2 > BUILTIN_NAME_SIZE)
		return false;
	stpcpy(stpcpy(stpcpy(ret_name, module), "."), key);
	return true;
}

static void add_offered(struct builtins *builtins, uint64_t code, const char *module, const char *key)
{
	struct offered_function *known;

	HASH_FIND(hh, builtins->offered, &code, sizeof(code), known);
	if (known || HASH_COUNT(builtins->offered) >= OFFERED_MAX)
		return;
	known = calloc(1, sizeof(*known));
	if (!known)
		return;
	known->code = code;
	if (!join(module, key, known->name)) {
		free(known);
		return;
	}
	HASH_ADD(hh, builtins->offered, code, sizeof(known->code), known);
	if (!hash_added(&known->hh))
		free(known);
}

/* An assembler function's dispatch number: the opcode that its GCfunc.pc points to. Else 0. */
static uint8_t find_op(const struct collector *collector, uint64_t function)
{
	uint64_t pc;
	uint8_t op;

	if (!load_reference(collector, function + (uint64_t)collector->layout->GCfunc_pc, &pc) ||
	    !memory_u8(collector->memory, pc, &op) || bytecode_name(collector->layout, op))
		return 0;
	return op;
}

/* Add a function that LuaJIT has in Lua. Its prototype's firstline marks it. */
static void visit_lua_function(struct collector *collector, const char *key, uint64_t function,
			       const char *module)
{
	const struct layout *layout = collector->layout;
	uint64_t proto;
	uint32_t firstline;

	if (!load_reference(collector, function + (uint64_t)layout->GCfunc_pc, &proto))
		return;
	proto -= (uint64_t)layout->GCproto_size;
	if (memory_u32(collector->memory, proto + (uint64_t)layout->GCproto_firstline, &firstline) &&
	    firstline == FIRSTLINE_BUILTIN)
		add_offered(collector->builtins, proto, module, key);
}

static bool is_old_name(const char *module, const char *key)
{
	for (size_t i = 0; i < sizeof(old_names) / sizeof(old_names[0]); i++)
		if (strcmp(module, old_names[i].module) == 0 && strcmp(key, old_names[i].key) == 0)
			return true;
	return false;
}

static void visit_version(struct collector *collector, const char *key, uint64_t value, const char *module)
{
	char version[BUILTIN_NAME_SIZE];

	if (strcmp(module, "jit") == 0 && strcmp(key, "version") == 0 &&
	    lua_table_text(collector->memory, collector->layout,
			   tvalue_object(collector->layout->gc64, value), version))
		memcpy(collector->builtins->version, version, sizeof(version));
}

static void visit_function(struct collector *collector, const char *key, uint64_t value, const char *module)
{
	const struct layout *layout = collector->layout;
	uint64_t function = tvalue_object(layout->gc64, value), f, environment;
	struct builtin *builtin;
	uint8_t gct, ffid;

	if (tvalue_tag(layout->gc64, value) == TAG_STR)
		visit_version(collector, key, value, module);
	if (tvalue_tag(layout->gc64, value) != TAG_FUNC || is_old_name(module, key) ||
	    !memory_u8(collector->memory, function + (uint64_t)layout->GChead_gct, &gct) ||
	    gct != GCT_FUNCTION ||
	    !memory_u8(collector->memory, function + (uint64_t)layout->GCfunc_ffid, &ffid))
		return;
	if (ffid == FF_LUA) {
		visit_lua_function(collector, key, function, module);
		return;
	}
	if (ffid == FF_C) {
		if (memory_u64(collector->memory, function + (uint64_t)layout->GCfuncC_f, &f))
			add_offered(collector->builtins, f, module, key);
		return;
	}
	builtin = &collector->builtins->at[ffid];
	if (*builtin->name || !join(module, key, builtin->name))
		return;
	builtin->op = find_op(collector, function);
	if (collector->methods &&
	    load_reference(collector, function + (uint64_t)layout->GCfunc_env, &environment) &&
	    environment != collector->globals)
		visit_table(collector, environment, visit_function, collector->methods);
}

static void visit_metamethod(struct collector *collector, const char *key, uint64_t value, const char *module)
{
	if (strncmp(key, "__", 2) == 0)
		visit_function(collector, key, value, module);
}

/*---- Tables ----*/

static void note_global(struct collector *collector, const char *key, uint64_t value, const char *context)
{
	struct global_table *global = &collector->global_tables[collector->global_table_count];

	(void)context;
	if (tvalue_tag(collector->layout->gc64, value) != TAG_TAB ||
	    collector->global_table_count == GLOBAL_TABLES_MAX)
		return;
	snprintf(global->name, sizeof(global->name), "%s", key);
	global->table = tvalue_object(collector->layout->gc64, value);
	collector->global_table_count++;
}

/*
 * What programs write: the parts of Neovim's global vim add to one table, and each returns it, so that it is
 * in package.loaded as vim.shared and as vim._editor.
 */
static const char *name_of_module(const struct collector *collector, const char *key, uint64_t table)
{
	for (size_t i = 0; i < collector->global_table_count; i++) {
		const struct global_table *global = &collector->global_tables[i];
		const size_t length = strlen(global->name);

		if (global->table == table && strncmp(key, global->name, length) == 0 && key[length] == '.')
			return global->name;
	}
	return key;
}

static void visit_module(struct collector *collector, const char *key, uint64_t value, const char *context)
{
	const uint64_t table = tvalue_object(collector->layout->gc64, value);

	if (collector->wanted && strcmp(key, collector->wanted) != 0)
		return;
	if (tvalue_tag(collector->layout->gc64, value) == TAG_TAB)
		visit_table(collector, table, visit_function, name_of_module(collector, key, table));
	else
		visit_function(collector, key, value, context);
}

static void visit_registry(struct collector *collector, const char *key, uint64_t value, const char *context)
{
	uint64_t loaded = tvalue_object(collector->layout->gc64, value);

	if (tvalue_tag(collector->layout->gc64, value) != TAG_TAB)
		return;
	if (strcmp(key, cosocket_methods) == 0)
		visit_table(collector, loaded, visit_function, "");
	if (strcmp(key, "_LOADED") != 0)
		return;
	for (size_t i = 0; i < sizeof(own_modules) / sizeof(own_modules[0]); i++) {
		collector->wanted = own_modules[i].name;
		collector->methods = own_modules[i].methods;
		visit_table(collector, loaded, visit_module, context);
	}
	collector->wanted = collector->methods = NULL;
	visit_table(collector, loaded, visit_module, context);
}

/* Visit the basic types' metatables, for cdata's: the FFI library keeps it nowhere else. */
static void visit_roots(struct collector *collector, uint64_t g)
{
	unsigned ref = layout_ref_size(collector->layout);

	for (uint64_t i = 0; i < GCROOTS_MAX; i++) {
		uint64_t object;

		if (load_reference(collector, g + (uint64_t)collector->layout->g_gcroot + i * ref, &object) &&
		    object)
			visit_table(collector, object, visit_metamethod, "ffi");
	}
}

static struct builtin *find_named(struct builtins *builtins, const char *name)
{
	for (size_t i = 0; i < BUILTIN_COUNT; i++)
		if (strcmp(builtins->at[i].name, name) == 0)
			return &builtins->at[i];
	return NULL;
}

static void add_hidden(struct builtins *builtins)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		struct builtin *next = find_named(builtins, hidden[i].ffid_after);
		const struct builtin *near = hidden[i].op_near ? find_named(builtins, hidden[i].op_near)
							       : NULL;

		if (!next || next == builtins->at || *next[-1].name)
			continue;
		join("", hidden[i].name, next[-1].name);
		if (near && near->op)
			next[-1].op = (uint8_t)(near->op + hidden[i].op_distance);
	}
}

void builtins_collect(struct memory *memory, const struct layout *layout, uint64_t g,
		      struct builtins *ret_builtins)
{
	struct collector collector = {
		.memory = memory,
		.layout = layout,
		.builtins = ret_builtins,
	};
	uint64_t registry, thread;

	memset(ret_builtins, 0, sizeof(*ret_builtins));
	if (load_reference(&collector, g + (uint64_t)layout->g_mainthref, &thread))
		load_reference(&collector, thread + (uint64_t)layout->L_env, &collector.globals);
	visit_table(&collector, collector.globals, note_global, NULL);
	if (lua_table_registry(memory, layout, g, &registry))
		visit_table(&collector, registry, visit_registry, "");
	visit_roots(&collector, g);
	add_hidden(ret_builtins);
}

void builtins_clear(struct builtins *builtins)
{
	HASH_FREE_ALL(builtins->offered);
}

const char *builtins_offered(const struct builtins *builtins, uint64_t code)
{
	struct offered_function *known;

	HASH_FIND(hh, builtins->offered, &code, sizeof(code), known);
	return known ? known->name : NULL;
}
