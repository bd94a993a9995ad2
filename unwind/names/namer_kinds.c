/* SPDX-License-Identifier: MIT */
#include "unwind/names/namer_parts.h"

#include <string.h>

#include "unwind/jit/traces.h"
#include "unwind/trace/trace_ffi.h"

static bool has_prefix(const char *string, const char *prefix)
{
	return strncmp(string, prefix, strlen(prefix)) == 0;
}

/* Is the module LuaJIT alone, rather than a program that contains it? */
static bool is_luajit(const struct module *module)
{
	const char *name = module_name(module);

	return has_prefix(name, "libluajit") || has_prefix(name, "luajit");
}

/* Is the module the C library, glibc or musl? */
static bool is_libc(const struct module *module)
{
	const char *name = module_name(module);

	return has_prefix(name, "libc.") || has_prefix(name, "libc-") || has_prefix(name, "ld-musl-");
}

bool namer_is_nameless(const struct function *function, const struct module *module)
{
	return has_prefix(function->name, module_name(module)) &&
	       function->name[strlen(module_name(module))] == '+';
}

static enum fold_kind native_kind(const struct namer *namer, uint64_t pc, const struct function *function)
{
	const struct module *module = image_find(namer->image, pc);

	if (!module)
		return FOLD_NATIVE;
	if (has_prefix(function->name, "__libc_start"))
		return FOLD_LIBC;
	if (!module->vm)
		return FOLD_NATIVE;
	if (is_luajit(module) || has_prefix(function->name, "lj_") || has_prefix(function->name, "lua_") ||
	    has_prefix(function->name, "luaL_") || has_prefix(function->name, "luaopen_"))
		return FOLD_LUAJIT;
	return namer_is_nameless(function, module) ? FOLD_NAMELESS : FOLD_NATIVE;
}

enum fold_kind namer_kind_of(const struct namer *namer, const struct merged_frame *frame,
			     const struct function *function)
{
	const struct module *module;

	switch (frame->kind) {
	case MERGED_LUA: return FOLD_LUA;
	case MERGED_C_FUNCTION:
		if (function->kind == FRAME_BUILTIN)
			return FOLD_BUILTIN;
		module = image_find(namer->image, frame->function->f);
		return module && is_luajit(module) ? FOLD_OWN_FUNCTION : FOLD_C_FUNCTION;
	case MERGED_NATIVE: return native_kind(namer, code_address(frame), function);
	case MERGED_VM:
		return image_classify(namer->image, code_address(frame), NULL) == CODE_VM_FFI_CALL
			       ? FOLD_FFI_CALL
			       : FOLD_VM;
	case MERGED_TRACE: return namer->options.traces ? FOLD_KEPT : FOLD_LEFT_OUT;
	case MERGED_CHILD:
	case MERGED_LOST: break;
	}
	return FOLD_KEPT;
}

bool namer_is_in_libc(const struct namer *namer, const struct merged_frame *frame)
{
	const struct module *module = frame->kind == MERGED_NATIVE
					      ? image_find(namer->image, code_address(frame))
					      : NULL;

	return module && is_libc(module);
}

static bool is_call_by_ffi(const struct merged_frame *frame)
{
	const struct global_state *global = frame->global;
	const uint8_t *code;

	if (!frame->trace || !global)
		return false;
	code = global->traces ? traces_code(global->traces, frame->trace) : NULL;
	return trace_calls_by_ffi(frame->trace, &global->vm->layout, code, frame->pc);
}

/* Has this frame of a trace called the one above it, which is of that kind, through the FFI? */
static bool has_called_by_ffi(const struct merged_frame *frame, uint8_t kind)
{
	if (!frame->is_return_address)
		return false;
	/* LuaJIT's own calls are of LuaJIT's functions, or of some that call nothing back. */
	return kind == FOLD_NATIVE || ((kind == FOLD_NAMELESS || kind == FOLD_LIBC) && is_call_by_ffi(frame));
}

/* Native code that directly calls Lua: of LuaJIT's API, as lua_pcall(). */
static bool is_way_into_lua(const struct merged_stack *stack, size_t at)
{
	return at > 0 && stack->frames[at - 1].kind != MERGED_NATIVE &&
	       stack->frames[at - 1].kind != MERGED_LOST;
}

void namer_find_called_by_ffi(struct namer *namer, const struct merged_stack *stack)
{
	size_t innermost = SIZE_MAX; /* of code that is taken for the program's */
	bool is_by_ffi = false;

	for (size_t i = stack->count; i-- > 0;) {
		const struct merged_frame *frame = &stack->frames[i];

		if (frame->kind != MERGED_NATIVE)
			innermost = SIZE_MAX;
		if (namer->kinds[i] == FOLD_FFI_CALL) {
			is_by_ffi = true;
		} else if (frame->kind == MERGED_TRACE) {
			is_by_ffi = i > 0 && has_called_by_ffi(frame, namer->kinds[i - 1]);
		} else if (frame->kind != MERGED_NATIVE) {
			is_by_ffi = false;
		} else if (is_by_ffi && namer->kinds[i] == FOLD_NAMELESS && !is_way_into_lua(stack, i)) {
			namer->kinds[i] = FOLD_NATIVE;
			innermost = i;
		}
	}
	/* The collector's, of which a function of LuaJIT's API was the first to call some. */
	if (stack->vm_state == VM_STATE_GC && innermost != SIZE_MAX)
		namer->kinds[innermost] = FOLD_NAMELESS;
}
