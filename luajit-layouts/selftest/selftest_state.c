/* SPDX-License-Identifier: MIT */
/* Do global_State, GG_State, lua_State and C frames fit the layout? */
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/relations.h"
#include "luajit-layouts/selftest/selftest_check.h"
#include "luajit-layouts/vmstate.h"

enum {
	CFRAME_FLAGS = 3, /* CFRAME_RESUME, CFRAME_UNWIND_FF: not part of the address */
	C_FRAMES_MAX = 256,
	MARKED_COLOURS = 7,  /* LJ_GC_WHITES, LJ_GC_BLACK */
	MARKED_FIXED = 0x60, /* LJ_GC_FIXED, LJ_GC_SFIXED */
	MINSTACK = 20,       /* LUA_MINSTACK, in the A operand of bc_cfunc_int */
	STATUS_MAX = 7,
	GC_STATE_SWEEPSTRING = 3,
	GC_STATE_MAX = 7,
	CTSTATE_G = 24, /* CTState.g: the pointer after tab, top, sizetab and L */
	STRING_CHAINS = 1024,
	STRING_MASK_MIN = 31,
	CHAIN_MAX = 1000,
	POINTER_BYTES = 8,
};

/* Between maxstack and the end of the stack lie LJ_STACK_EXTRA slots and one (lj_state.c, resizestack()). */
static bool is_stack_reserve(uint64_t slots)
{
	return slots == 6 || slots == 8 || slots == 9;
}

/*
 * The object of the frame that begins at base: a function, or a thread at the
 * bottom of its stack. In one-slot frames, it shares its slot with the frame's
 * link and has no tag.
 */
static bool read_frame_object(struct check *check, uint64_t base, uint64_t *ret)
{
	uint8_t gct;

	if (!check->layout->gc64)
		return field_read(check->memory, base - TVALUE_BYTES, 4, ret);
	return check_tagged(check, base - 2 * TVALUE_BYTES, &gct, ret);
}

struct stack {
	uint64_t begin, end;
};

/* The first frame is a dummy whose object is the thread itself (stack_init()). */
static bool check_stack(struct check *check, uint64_t L, struct stack *ret)
{
	uint64_t frame_slots = check->layout->gc64 ? 2 : 1, maxstack, slots, object;

	if (!CHECK_FIELD(check, L, L_stack, 0, &ret->begin) ||
	    !CHECK_FIELD(check, L, L_stacksize, 4, &slots) ||
	    !CHECK_FIELD(check, L, L_maxstack, 0, &maxstack))
		return false;
	if (slots > STACK_SLOTS_MAX || ret->begin % TVALUE_BYTES != 0)
		return check_fail(check, "L.stack or L.stacksize is beyond belief");
	ret->end = ret->begin + slots * TVALUE_BYTES;
	if (maxstack > ret->end || !is_stack_reserve((ret->end - maxstack) / TVALUE_BYTES))
		return check_fail(check, "L.maxstack is not where L.stack and L.stacksize put it");
	if (!read_frame_object(check, ret->begin + frame_slots * TVALUE_BYTES, &object) || object != L)
		return check_fail(check, "L.stack does not start with L");
	return true;
}

static bool check_base_and_top(struct check *check, uint64_t L, const struct stack *stack)
{
	unsigned size = check->layout->gc64 ? 8 : 4;
	uint64_t base, top;

	if (!CHECK_FIELD(check, L, L_base, size, &base) || !CHECK_FIELD(check, L, L_top, size, &top))
		return false;
	if (base <= stack->begin || base > stack->end || base % TVALUE_BYTES != 0)
		return check_fail(check, "L.base is outside of the stack");
	if (top <= stack->begin || top > stack->end || top % TVALUE_BYTES != 0)
		return check_fail(check, "L.top is outside of the stack");
	return true;
}

/*
 * While a C function runs, L->base is its frame; while none runs, the thread's
 * dummy frame. In the VM, L->base may be stale.
 */
static bool check_c_function(struct check *check, uint64_t L)
{
	uint64_t base, top, function;

	if (!CHECK_FIELD(check, L, L_base, 0, &base) || !CHECK_FIELD(check, L, L_top, 0, &top))
		return false;
	if (!read_frame_object(check, base, &function) ||
	    (function != L && !check_type(check, function, GCT_FUNCTION, "L.base")))
		return check_fail(check, "L.base is no frame");
	if (top < base)
		return check_fail(check, "L.top is below L.base");
	return true;
}

/* Is it -1, or the offset of an error function on the Lua stack? */
static bool is_errf(int32_t errf, const struct stack *stack)
{
	return errf == -1 ||
	       (errf % TVALUE_BYTES == 0 && (uint64_t)(int64_t)errf < stack->end - stack->begin);
}

static bool check_c_frame(struct check *check, uint64_t cframe, uint64_t L, const struct stack *stack)
{
	uint64_t owner, value;
	int32_t nres;

	if (!CHECK_FIELD(check, cframe, CFRAME_L, 0, &owner) ||
	    !CHECK_FIELD(check, cframe, CFRAME_NRES, 4, &value))
		return false;
	if (owner != L)
		return check_fail(check, "CFRAME.L is another thread");
	/* Negative: an offset on the stack, or one far above it to catch every error (lj_trace_exit()). */
	nres = (int32_t)value;
	if (nres < -2 * STACK_SLOTS_MAX * TVALUE_BYTES || (nres < 0 && nres % TVALUE_BYTES != 0))
		return check_fail(check, "CFRAME.NRES is beyond belief");
	if (nres >= 0)
		return true;
	/* vm_call leaves ERRF as it was; vm_cpcall sets it. */
	if (!CHECK_FIELD(check, cframe, CFRAME_ERRF, 4, &value) || !is_errf((int32_t)value, stack))
		return check_fail(check, "CFRAME.ERRF is beyond belief");
	return true;
}

static bool check_c_frames(struct check *check, uint64_t L, const struct stack *stack)
{
	uint64_t cframe, previous;

	if (!CHECK_FIELD(check, L, L_cframe, 8, &cframe))
		return false;
	cframe &= ~(uint64_t)CFRAME_FLAGS;
	for (unsigned count = 0; cframe != 0 && count < C_FRAMES_MAX; count++) {
		if (!check_c_frame(check, cframe, L, stack) ||
		    !CHECK_FIELD(check, cframe, CFRAME_PREV, 8, &previous))
			return false;
		previous &= ~(uint64_t)CFRAME_FLAGS;
		if (previous != 0 && previous < cframe + (uint64_t)check->layout->CFRAME_size)
			return check_fail(check, "CFRAME.PREV does not lead outwards");
		cframe = previous;
	}
	return true;
}

/* The value of an open upvalue lies in a slot of the stack. */
static bool check_open_upvalue(struct check *check, uint64_t upvalue, const struct stack *stack)
{
	uint64_t value, closed;

	if (upvalue == 0)
		return true;
	if (!check_type(check, upvalue, GCT_UPVALUE, "L.openupval") ||
	    !CHECK_FIELD(check, upvalue, GCupval_v, 0, &value) ||
	    !CHECK_FIELD(check, upvalue, GCupval_closed, 1, &closed))
		return false;
	if (closed != 0 || value < stack->begin || value >= stack->end)
		return check_fail(check, "GCupval.v of an open upvalue is not on the stack");
	return true;
}

bool check_thread(struct check *check, uint64_t L)
{
	uint64_t g, env, upvalue, status;
	struct stack stack;

	if (!check_type(check, L, GCT_THREAD, "a thread") || !CHECK_FIELD(check, L, L_glref, 0, &g) ||
	    !CHECK_FIELD(check, L, L_env, 0, &env) || !CHECK_FIELD(check, L, L_openupval, 0, &upvalue) ||
	    !CHECK_FIELD(check, L, L_status, 1, &status))
		return false;
	if (g != check->g)
		return check_fail(check, "L.glref leads to another state");
	if (status > STATUS_MAX)
		return check_fail(check, "L.status is %u", (unsigned)status);
	if (!check_type(check, env, GCT_TABLE, "L.env") || !check_stack(check, L, &stack) ||
	    !check_open_upvalue(check, upvalue, &stack) || !check_base_and_top(check, L, &stack) ||
	    !check_c_frames(check, L, &stack))
		return false;
	check->checked++;
	return true;
}

/*
 * Check a thread that g refers to, if the build has the field; an optional one
 * may be 0. Not for g.tmpbuf.L and g.jit_L: their thread may be long gone.
 */
static bool check_state_thread(struct check *check, int32_t offset, bool optional, const char *name)
{
	uint64_t L;

	if (offset == LAYOUT_ABSENT)
		return true;
	if (!check_read(check, check->g, offset, 0, name, &L))
		return false;
	return (L == 0 && optional) || (check_type(check, L, GCT_THREAD, name) && check_thread(check, L));
}

static bool check_main_thread(struct check *check)
{
	const struct layout *layout = check->layout;
	int32_t last = layout->L_exdata2 < 0 ? layout->L_exdata : layout->L_exdata2;
	uint64_t L, marked;

	if (!CHECK_FIELD(check, check->g, g_mainthref, 0, &L) || !check_thread(check, L) ||
	    !CHECK_FIELD(check, L, GChead_marked, 1, &marked))
		return false;
	if ((marked & ~(uint64_t)MARKED_COLOURS) != MARKED_FIXED)
		return check_fail(check, "GChead.marked of the main thread does not say it stays");
	if (layout->L_size != LAYOUT_UNKNOWN && check->g - L != (uint64_t)layout->L_size)
		return check_fail(check, "L.size is %u: g follows the main thread in GG_State",
				  (unsigned)(check->g - L));
	/* Forks add fields at the end. */
	if (layout->L_exdata >= 0 && last + POINTER_BYTES != layout->L_size)
		return check_fail(check, "L.exdata is not at the end of lua_State");
	return true;
}

static bool check_vmstate(struct check *check)
{
	uint64_t value, L = 0;

	if (!CHECK_FIELD(check, check->g, g_vmstate, 4, &value))
		return false;
	if ((int32_t)value < VMST_LOWEST || (int32_t)value > UINT16_MAX)
		return check_fail(check, "g.vmstate is %d", (int)(int32_t)value);
	if (vmstate_of(check->layout, (int32_t)value) != VMST_C || check->layout->g_cur_L == LAYOUT_ABSENT)
		return true;
	return CHECK_FIELD(check, check->g, g_cur_L, 0, &L) && (L == 0 || check_c_function(check, L));
}

static bool check_collector(struct check *check)
{
	uint64_t white, state, total;

	if (!CHECK_FIELD(check, check->g, g_gc_total, 0, &total) ||
	    !CHECK_FIELD(check, check->g, g_gc_state, 1, &state) ||
	    !check_read(check, check->g, check->layout->g_gc_state - 1, 1, "gc.currentwhite", &white))
		return false;
	white &= 3;
	if (state > GC_STATE_MAX || white == 0 || white == 3)
		return check_fail(check, "g.gc.state is not preceded by a current white");
	if (total < (uint64_t)check->layout->GG_dispatch)
		return check_fail(check, "g.gc.total is less than a state takes");
	return true;
}

/*
 * Count the strings of one chain. The low bit of an anchor marks a second hash. False for what leads to
 * something else; and, while strings are swept, for a chain without an end.
 */
static bool count_chain(struct check *check, uint64_t string, bool sweeps, uint64_t *count)
{
	string &= ~(uint64_t)1;
	for (unsigned steps = 0; string != 0 && steps < CHAIN_MAX; steps++, ++*count) {
		if (!check_type(check, string, GCT_STRING, "g.strhash") ||
		    !CHECK_FIELD(check, string, GChead_nextgc, 0, &string))
			return false;
	}
	return string == 0 || !sweeps || check_fail(check, "g.strhash has a chain without an end");
}

/* What the looked-at chains hold, but for one torn chain. */
struct strings {
	uint64_t count, longest; /* that of the longest chain */
	bool is_torn;            /* one chain */
};

/*
 * A sweep frees the dead strings of one chain before it takes them off (lj_gc.c, gc_sweep_str(), since June
 * 2020).
 */
static bool count_strings(struct check *check, const uint8_t *anchors, uint64_t chains, bool sweeps,
			  struct strings *strings)
{
	unsigned size = layout_ref_size(check->layout);

	for (uint64_t i = 0; i < chains; i++) {
		uint64_t string = 0, length = 0;

		memcpy(&string, anchors + i * size, size);
		if (!count_chain(check, string, sweeps, &length)) {
			if (!sweeps || strings->is_torn)
				return false;
			strings->is_torn = true;
			check->failure[0] = '\0';
			continue;
		}
		strings->count += length;
		strings->longest = length > strings->longest ? length : strings->longest;
	}
	return true;
}

/*
 * The table of interned strings has a power of two of chains. Count all strings
 * of a small table, and those in the first chains of a large one.
 */
static bool check_string_table(struct check *check)
{
	uint64_t table, mask, total, chains, state, freed, torn;
	uint8_t anchors[STRING_CHAINS * 8];
	struct strings strings = { 0 };
	bool sweeps;

	if (!CHECK_FIELD(check, check->g, g_strhash, 0, &table) ||
	    !CHECK_FIELD(check, check->g, g_strmask, 4, &mask) ||
	    !CHECK_FIELD(check, check->g, g_strnum, 4, &total) ||
	    !CHECK_FIELD(check, check->g, g_gc_state, 1, &state))
		return false;
	sweeps = state == GC_STATE_SWEEPSTRING;
	if (mask < STRING_MASK_MIN || (mask & (mask + 1)) != 0)
		return check_fail(check, "g.strmask is no mask");
	chains = mask < STRING_CHAINS ? mask + 1 : STRING_CHAINS;
	if (memory_read(check->memory, table, anchors, chains * layout_ref_size(check->layout)) != MEMORY_OK)
		return check_fail(check, "g.strhash cannot be read");
	if (!count_strings(check, anchors, chains, sweeps, &strings))
		return false;
	/* Freed strings that still look like strings are on one chain: the torn one if there is one. */
	freed = sweeps && !strings.is_torn ? strings.longest : 0;
	torn = strings.is_torn ? CHAIN_MAX : 0;
	/* g.strnum may lack the newest string. */
	if (strings.count > total + 1 + freed || (mask < STRING_CHAINS && strings.count + torn + 1 < total))
		return check_fail(check, "g.strnum is %u, with %u strings", (unsigned)total,
				  (unsigned)strings.count);
	return true;
}

/* All C functions start with the same instruction, which lies in g: FUNCC with A = LUA_MINSTACK. */
static bool check_c_instruction(struct check *check)
{
	uint64_t instruction;

	if (!CHECK_FIELD(check, check->g, g_bc_cfunc_int, 4, &instruction))
		return false;
	if (bytecode_op(check->layout, (uint8_t)instruction) != BC_FUNCC ||
	    bytecode_a((uint32_t)instruction) != MINSTACK)
		return check_fail(check, "g.bc_cfunc_int is 0x%x, not FUNCC", (unsigned)instruction);
	return true;
}

static bool check_anchors(struct check *check)
{
	const struct layout *layout = check->layout;
	uint64_t object, g, base;
	uint8_t gct;

	if (!check_tagged(check, check->g + (uint64_t)layout->g_registrytv, &gct, &object) ||
	    gct != GCT_TABLE)
		return check_fail(check, "g.registrytv holds no table");
	if (!CHECK_FIELD(check, check->g, g_ctype_state, 0, &object))
		return false;
	if (object != 0 && (!field_read(check->memory, object + CTSTATE_G, 8, &g) || g != check->g))
		return check_fail(check, "g.ctype_state does not lead back to g");
	if (!CHECK_FIELD(check, check->g, g_jit_base, 0, &base))
		return false;
	if (base % TVALUE_BYTES != 0)
		return check_fail(check, "g.jit_base is no stack slot");
	return true;
}

static bool check_dispatch(struct check *check)
{
	uint64_t before, first;

	if (!check_read(check, check->g, check->layout->GG_dispatch, 8, "GG.dispatch", &first) ||
	    !check_read(check, check->g, check->layout->GG_dispatch - 8, 8, "GG.dispatch", &before))
		return false;
	if (first < check->vm->begin || first >= check->vm->end ||
	    (before >= check->vm->begin && before < check->vm->end))
		return check_fail(check, "GG.dispatch is not the start of the dispatch table");
	return true;
}

bool selftest_state(struct check *check)
{
	const struct layout *layout = check->layout;
	const char *moved = relations_broken(layout, POINTER_BYTES);

	if (moved != NULL)
		return check_fail(check, "%s is not where it has always been", moved);
	return check_main_thread(check) && check_state_thread(check, layout->g_cur_L, true, "g.cur_L") &&
	       check_state_thread(check, layout->g_vmthref, false, "g.vmthref") && check_vmstate(check) &&
	       check_collector(check) && check_string_table(check) && check_c_instruction(check) &&
	       check_anchors(check) && check_dispatch(check);
}
