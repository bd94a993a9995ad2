#include "output/views/look.h"

static const struct {
	char letter;
	const char *name;
} looks[LOOK_COUNT] = {
	[LOOK_ALL] = { 'a', "all" },
	[LOOK_LUA] = { 'l', "Lua, interpreted" },
	[LOOK_COMPILED] = { 'j', "Lua, compiled" },
	[LOOK_BUILTIN] = { 'b', "builtin" },
	[LOOK_C_FUNCTION] = { 'c', "C function" },
	[LOOK_NATIVE] = { 'n', "native" },
	[LOOK_VM] = { 'v', "VM" },
	[LOOK_TRACE] = { 't', "trace" },
	[LOOK_LOST] = { 'x', "lost" },
	[LOOK_MUCH_LESS] = { 'p', "half or less" },
	[LOOK_LESS] = { 'q', "less" },
	[LOOK_SAME] = { 's', "no clear change" },
	[LOOK_MORE] = { 'y', "more" },
	[LOOK_MUCH_MORE] = { 'z', "double or more" },
};

char look_letter(enum look look)
{
	return looks[look].letter;
}

const char *look_name(enum look look)
{
	return looks[look].name;
}

enum look look_of_kind(const struct function *function)
{
	static const enum look kinds[FRAME_KIND_COUNT] = {
		[FRAME_LUA] = LOOK_LUA,
		[FRAME_BUILTIN] = LOOK_BUILTIN,
		[FRAME_C_FUNCTION] = LOOK_C_FUNCTION,
		[FRAME_NATIVE] = LOOK_NATIVE,
		[FRAME_VM] = LOOK_VM,
		[FRAME_TRACE] = LOOK_TRACE,
		[FRAME_LOST] = LOOK_LOST,
	};

	return function ? kinds[function->kind] : LOOK_ALL;
}

enum look look_of_node(const struct profile_node *node)
{
	enum look look = look_of_kind(node->function);

	return look == LOOK_LUA && node->compiled_ns > node->total_ns / 2 ? LOOK_COMPILED : look;
}

static double ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

enum look look_of_change(const struct look_share *before, const struct look_share *now)
{
	double old = ratio(before->ns, before->all_ns);
	double new = ratio(now->ns, now->all_ns);
	double both = ratio(before->samples + now->samples, before->all_samples + now->all_samples);
	double variance = both * (1 - both) * (ratio(1, before->all_samples) + ratio(1, now->all_samples));
	double change = new - old;
	double larger = new > old ? new : old;
	double smaller = new > old ? old : new;

	/* Compared as squares, which needs no root. */
	if (change * change <= 9 * variance || larger < 1.1 * smaller)
		return LOOK_SAME;
	if (larger >= 2 * smaller)
		return new > old ? LOOK_MUCH_MORE : LOOK_MUCH_LESS;
	return new > old ? LOOK_MORE : LOOK_LESS;
}

char look_state_letter(enum vm_state state)
{
	static const char letters[VM_STATE_COUNT] = {
		[VM_STATE_NONE] = 'n',
		[VM_STATE_INTERPRETED] = 'i',
		[VM_STATE_COMPILED] = 'j',
		[VM_STATE_C] = 'c',
		[VM_STATE_GC] = 'g',
		[VM_STATE_RECORDING] = 'r',
		[VM_STATE_OPTIMISING] = 'o',
		[VM_STATE_ASSEMBLING] = 'a',
		[VM_STATE_EXIT] = 'e',
		[VM_STATE_UNKNOWN] = 'u',
	};

	return letters[state];
}
