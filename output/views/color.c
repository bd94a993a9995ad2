/* SPDX-License-Identifier: MIT */
#include "output/views/color.h"

static const struct {
	char letter;
	const char *name;
} colors[COLOR_COUNT] = {
	[COLOR_ALL] = { 'a', "all" },
	[COLOR_LUA] = { 'l', "Lua, interpreted" },
	[COLOR_COMPILED] = { 'j', "Lua, compiled" },
	[COLOR_BUILTIN] = { 'b', "builtin" },
	[COLOR_C_FUNCTION] = { 'c', "C function" },
	[COLOR_NATIVE] = { 'n', "native" },
	[COLOR_VM] = { 'v', "VM" },
	[COLOR_TRACE] = { 't', "trace" },
	[COLOR_ALLOCATED] = { 'm', "allocated" },
	[COLOR_LOST] = { 'x', "lost" },
	[COLOR_MUCH_LESS] = { 'p', "half or less" },
	[COLOR_LESS] = { 'q', "less" },
	[COLOR_SAME] = { 's', "no clear change" },
	[COLOR_MORE] = { 'y', "more" },
	[COLOR_MUCH_MORE] = { 'z', "double or more" },
};

char color_letter(enum color color)
{
	return colors[color].letter;
}

const char *color_name(enum color color)
{
	return colors[color].name;
}

enum color color_of_kind(const struct function *function)
{
	static const enum color kinds[FRAME_KIND_COUNT] = {
		[FRAME_LUA] = COLOR_LUA,
		[FRAME_BUILTIN] = COLOR_BUILTIN,
		[FRAME_C_FUNCTION] = COLOR_C_FUNCTION,
		[FRAME_NATIVE] = COLOR_NATIVE,
		[FRAME_VM] = COLOR_VM,
		[FRAME_VM_WORK] = COLOR_VM,
		[FRAME_ALLOCATED] = COLOR_ALLOCATED,
		[FRAME_TRACE] = COLOR_TRACE,
		[FRAME_LOST] = COLOR_LOST,
	};

	return function ? kinds[function->kind] : COLOR_ALL;
}

enum color color_of_node(const struct profile_node *node)
{
	enum color color = color_of_kind(node->function);

	return color == COLOR_LUA && node->compiled_ns > node->total_ns / 2 ? COLOR_COMPILED : color;
}

static double ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

enum color color_of_change(const struct color_share *before, const struct color_share *now)
{
	double old = now->exact ? (double)before->ns : ratio(before->ns, before->all_ns);
	double new = now->exact ? (double)now->ns : ratio(now->ns, now->all_ns);
	double both = ratio(before->samples + now->samples, before->all_samples + now->all_samples);
	double variance = both * (1 - both) * (ratio(1, before->all_samples) + ratio(1, now->all_samples));
	double change = new - old;
	double larger = new > old ? new : old;
	double smaller = new > old ? old : new;

	/* Compare squares, which needs no root. */
	if (change * change <= (now->exact ? 0 : 9 * variance) || larger < 1.1 * smaller)
		return COLOR_SAME;
	if (larger >= 2 * smaller)
		return new > old ? COLOR_MUCH_MORE : COLOR_MUCH_LESS;
	return new > old ? COLOR_MORE : COLOR_LESS;
}

char color_state_letter(enum vm_state state)
{
	static const char letters[VM_STATE_COUNT] = {
		[VM_STATE_NONE] = 'n',       [VM_STATE_INTERPRETED] = 'i', [VM_STATE_COMPILED] = 'j',
		[VM_STATE_C] = 'c',          [VM_STATE_GC] = 'g',          [VM_STATE_RECORDING] = 'r',
		[VM_STATE_OPTIMISING] = 'o', [VM_STATE_ASSEMBLING] = 'a',  [VM_STATE_EXIT] = 'e',
		[VM_STATE_UNKNOWN] = 'u',
	};

	return letters[state];
}
