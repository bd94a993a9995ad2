/* SPDX-License-Identifier: MIT */
#include "unwind/names/fold.h"

#include <stdbool.h>

/* The effect of the frames from the root so far on the next frame. */
struct state {
	bool in_lua;      /* there is a Lua frame */
	bool hidden;      /* hide native code */
	bool through_ffi; /* lj_vm_ffi_call came after the innermost Lua frame */
	size_t builtin;   /* that frame, if it is a builtin; else SIZE_MAX */
};

static bool is_lua(uint8_t kind)
{
	return kind == FOLD_LUA || kind == FOLD_BUILTIN || kind == FOLD_C_FUNCTION ||
	       kind == FOLD_OWN_FUNCTION;
}

static uint8_t decide(struct state *state, uint8_t kind, size_t at, uint8_t *shown)
{
	switch ((enum fold_kind)kind) {
	case FOLD_KEPT: return FOLD_SHOWN;
	case FOLD_LEFT_OUT:
	case FOLD_VM: return FOLD_HIDDEN;
	case FOLD_OWN_FUNCTION:
		/* pmain, which the luajit program calls first. */
		if (!state->in_lua)
			return FOLD_HIDDEN;
		__attribute__((fallthrough));
	case FOLD_LUA:
	case FOLD_BUILTIN:
	case FOLD_C_FUNCTION:
		state->in_lua = true;
		state->hidden = kind != FOLD_LUA;
		state->through_ffi = false;
		state->builtin = kind == FOLD_BUILTIN ? at : SIZE_MAX;
		return FOLD_SHOWN;
	case FOLD_FFI_CALL:
		state->hidden = false;
		state->through_ffi = true;
		return FOLD_HIDDEN;
	case FOLD_NAMELESS:
		if (!state->in_lua)
			return FOLD_SHOWN;
		__attribute__((fallthrough));
	case FOLD_LUAJIT:
		if (state->hidden)
			return FOLD_HIDDEN;
		state->hidden = state->in_lua;
		return FOLD_AS_VM;
	case FOLD_LIBC:
	case FOLD_NATIVE: break;
	}
	if (state->hidden)
		return FOLD_HIDDEN;
	if (state->through_ffi && state->builtin != SIZE_MAX)
		shown[state->builtin] = FOLD_HIDDEN;
	return FOLD_SHOWN;
}

/*
 * Where the start-up code begins. "_start", which may have no name, calls the C library, which
 * calls main. Other threads begin in the C library.
 */
static size_t before_start(const uint8_t *kinds, size_t count)
{
	size_t at = count;

	if (at > 1 && !is_lua(kinds[at - 1]) && kinds[at - 1] != FOLD_KEPT && kinds[at - 2] == FOLD_LIBC)
		at--;
	while (at > 0 && kinds[at - 1] == FOLD_LIBC)
		at--;
	return at > 0 ? at : count;
}

void fold(const uint8_t *kinds, size_t count, uint8_t *ret_shown)
{
	struct state state = { .builtin = SIZE_MAX };
	size_t start = before_start(kinds, count);
	bool below_lua = false;

	for (size_t i = count; i-- > 0;)
		ret_shown[i] = i < start ? decide(&state, kinds[i], i, ret_shown) : FOLD_HIDDEN;
	for (size_t i = 0; i < count; i++) {
		if (ret_shown[i] == FOLD_AS_VM && below_lua)
			ret_shown[i] = FOLD_HIDDEN;
		below_lua |= is_lua(kinds[i]);
	}
}
