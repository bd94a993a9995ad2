/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_table.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/trace/trace_block.h"
#include "unwind/jit/trace_path.h"
#include "unwind/lua/lua_names.h"

struct row {
	uint32_t offset;
	uint32_t snapshot;
	uint32_t point;     /* on the path, if that is known */
	uint16_t certain;   /* the number of certain frames, from the start frame on */
	bool is_quick;      /* as code_piece.is_quick */
	bool is_after_slow; /* as code_piece.is_after_slow */
	bool base_is_moved;
	bool base_is_unknown; /* jit_base may not be that of the point's start frame */
};

enum { NO_POINT = UINT32_MAX };

/* A frame of the path, without pointers that live only as long as a sample. */
struct table_frame {
	uint64_t function;
	uint64_t call_pc;
	int32_t up;
	bool by_continuation;
	uint8_t base_slot;
};

struct trace_table {
	struct row *rows;
	size_t row_count;
	struct table_frame *frames;
	struct path_point *points;
	uint64_t *protos;
	size_t proto_count;
	bool has_path;
	size_t size; /* of everything, in bytes */
};

enum { DEPTH_MAX = TRACE_FRAMES_MAX };

void trace_table_free(struct trace_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->frames);
	free(table->points);
	free(table->protos);
	free(table);
}

size_t trace_table_size(const struct trace_table *table)
{
	return table->size;
}

/*---- Certainty ----*/

/* A point's frames from the start frame on, each with its current line. */
struct chain {
	struct {
		const struct proto *proto;
		uint32_t line;
		uint64_t call_pc; /* the call in its caller */
	} frame[DEPTH_MAX];
	size_t depth;
};

static void load_chain(const struct trace_path *path, const struct layout *layout, uint32_t point,
		       struct chain *chain)
{
	int32_t at = path->points[point].frame;
	uint64_t pc = path->points[point].pc;

	chain->depth = 0;
	for (int32_t up = at; up >= 0 && chain->depth < DEPTH_MAX; up = path->frames.frame[up].up)
		chain->depth++;
	for (size_t i = chain->depth; i-- > 0; at = path->frames.frame[at].up) {
		const struct path_frame *frame = &path->frames.frame[at];

		chain->frame[i].proto = frame->proto;
		chain->frame[i].line = frame->proto ? lua_line(layout, frame->proto, pc) : 0;
		chain->frame[i].call_pc = frame->up >= 0 ? frame->call_pc : 0;
		pc = frame->call_pc;
	}
}

/* On how many frames, from the start frame on, do two chains agree? */
static size_t agreement(const struct chain *a, const struct chain *b)
{
	size_t i = 0;

	while (i < a->depth && i < b->depth && a->frame[i].proto == b->frame[i].proto &&
	       a->frame[i].call_pc == b->frame[i].call_pc && a->frame[i].line == b->frame[i].line)
		i++;
	return i;
}

/*
 * On how many frames do all points of these snapshots' segments agree? If the path
 * after the last snapshot is unknown, the next snapshot's point counts too.
 */
static size_t certain_frames(const struct trace_path *path, const struct layout *layout, uint32_t low,
			     uint32_t high)
{
	uint32_t first = path->segments[low].first, last = path->segments[high].last;
	struct chain chain, other;
	size_t certain;

	if (!path->segments[high].found && last + 1 < path->point_count)
		last++;
	load_chain(path, layout, first, &chain);
	certain = chain.depth;
	/* The tail's stores may belong to the unknown place that the trace links to. */
	if (!path->segments[high].found && high + 1 == path->segment_count)
		return 0;
	for (uint32_t point = first + 1; certain && point <= last; point++) {
		size_t common;

		load_chain(path, layout, point, &other);
		common = agreement(&chain, &other);
		if (common < certain)
			certain = common;
	}
	return certain;
}

/*
 * The same for code that may be IR_LOOP's: between the end of the segment before this snapshot's and its
 * beginning.
 */
static size_t certain_between(const struct trace_path *path, const struct layout *layout, uint32_t snapshot)
{
	struct chain before, after;

	if (snapshot == 0 || !path->segments[snapshot - 1].found)
		return 0;
	load_chain(path, layout, path->segments[snapshot - 1].last, &before);
	load_chain(path, layout, path->segments[snapshot].first, &after);
	return agreement(&before, &after);
}

/*---- Making the table ----*/

static void keep_proto(struct trace_table *table, const struct proto *proto)
{
	for (size_t i = 0; i < table->proto_count; i++)
		if (table->protos[i] == proto->address)
			return;
	table->protos[table->proto_count++] = proto->address;
}

static bool keep_path(struct trace_table *table, const struct trace_path *path)
{
	table->size += (path->frames.count + 1) * (sizeof(*table->frames) + sizeof(*table->protos)) +
		       (path->point_count + 1) * sizeof(*table->points);
	table->frames = calloc(path->frames.count + 1, sizeof(*table->frames));
	table->points = calloc(path->point_count + 1, sizeof(*table->points));
	table->protos = calloc(path->frames.count + 1, sizeof(*table->protos));
	if (!table->frames || !table->points || !table->protos)
		return false;
	for (size_t i = 0; i < path->point_count; i++)
		for (int32_t at = path->points[i].frame; at >= 0; at = path->frames.frame[at].up)
			if (path->frames.frame[at].proto)
				keep_proto(table, path->frames.frame[at].proto);
	for (size_t i = 0; i < path->frames.count; i++)
		table->frames[i] = (struct table_frame){
			.function = path->frames.frame[i].function,
			.call_pc = path->frames.frame[i].call_pc,
			.up = path->frames.frame[i].up,
			.by_continuation = path->frames.frame[i].by_continuation,
			.base_slot = path->frames.frame[i].base_slot,
		};
	memcpy(table->points, path->points, path->point_count * sizeof(*path->points));
	return true;
}

/* The number of returns below the start frame before an IR instruction. */
static uint32_t lowered_before(const struct trace *trace, const struct layout *layout, uint32_t end_ref)
{
	struct trace_instruction ins;
	uint32_t lowered = 0;

	for (uint32_t ref = TRACE_REF_BASE; ref < end_ref; ref++)
		if (trace_instruction(trace, layout, ref, &ins) && ins.op == IR_RETF)
			lowered++;
	return lowered;
}

/* Did the code show each of these returns? The code's last instruction is never one. */
static bool is_lowering_known(const struct trace *trace, const struct layout *layout,
			      const struct trace_code *code)
{
	return code->count && code->pieces[code->count - 1].lowered ==
				      lowered_before(trace, layout, trace_nins(trace, layout));
}

/*
 * Move *snapshot on to the first one after this many returns: LuaJIT takes a snapshot right
 * after a return. False if there is none.
 */
static bool find_lowered(const struct trace *trace, const struct layout *layout, uint32_t lowered,
			 uint32_t *snapshot)
{
	uint32_t count = trace_snapshot_count(trace, layout);

	for (uint32_t number = *snapshot; number < count; number++) {
		struct trace_snapshot found;

		if (!trace_snapshot(trace, layout, number, &found) ||
		    lowered_before(trace, layout, found.ref) < lowered)
			continue;
		if (lowered_before(trace, layout, found.ref) > lowered)
			return false;
		*snapshot = number;
		return true;
	}
	return false;
}

static void keep_snapshots(struct trace_table *table, const struct trace *trace, const struct layout *layout,
			   const struct trace_code *code)
{
	bool is_counted = is_lowering_known(trace, layout, code);
	uint32_t snapshot = UINT32_MAX, lowered = 0;

	table->size += code->count * sizeof(*table->rows);
	table->rows = calloc(code->count, sizeof(*table->rows));
	if (!table->rows)
		return;
	for (size_t i = 0; i < code->count; i++) {
		const struct code_piece *piece = &code->pieces[i];

		if (piece->low_snapshot != snapshot) {
			struct trace_snapshot found = { 0 };

			snapshot = piece->low_snapshot;
			trace_snapshot(trace, layout, snapshot, &found);
			lowered = lowered_before(trace, layout, found.ref);
		}
		table->rows[i] = (struct row){
			.offset = piece->offset,
			.snapshot = snapshot,
			.is_quick = piece->is_quick,
			.is_after_slow = piece->is_after_slow,
			.base_is_moved = piece->base_is_moved,
			.base_is_unknown = !is_counted,
		};
		if (piece->lowered != lowered &&
		    !find_lowered(trace, layout, piece->lowered, &table->rows[i].snapshot))
			table->rows[i].base_is_unknown = true;
	}
	table->row_count = code->count;
}

/*
 * The code shows how often jit_base was lowered. Find the nearest point after that many
 * returns. NO_POINT if there is none.
 */
static uint32_t fit_base(const struct trace_path *path, uint32_t point, uint32_t lowered)
{
	while (path->points[point].lowered > lowered && point > 0)
		point--;
	while (path->points[point].lowered < lowered && point + 1 < path->point_count)
		point++;
	return path->points[point].lowered == lowered ? point : NO_POINT;
}

static bool keep_points(struct trace_table *table, const struct trace_path *path, const struct trace *trace,
			const struct layout *layout, const struct trace_code *code)
{
	bool is_counted = is_lowering_known(trace, layout, code);
	uint32_t low = UINT32_MAX, high = UINT32_MAX;
	size_t certain = 0;

	for (size_t i = 0; i < code->count; i++) {
		const struct code_piece *piece = &code->pieces[i];
		uint32_t index = piece->ref - TRACE_REF_BASE;

		if (piece->high_snapshot >= path->segment_count || index >= path->instruction_count)
			return false;
		if (piece->low_snapshot != low || piece->high_snapshot != high) {
			low = piece->low_snapshot;
			high = piece->high_snapshot;
			certain = certain_frames(path, layout, low, high);
		}
		table->rows[i].point = fit_base(path, path->point_of[index], piece->lowered);
		table->rows[i].base_is_unknown = !is_counted || table->rows[i].point == NO_POINT;
		table->rows[i].certain = (uint16_t)certain;
		if (piece->joins_loop) {
			size_t between = certain_between(path, layout, low);

			if (between < certain)
				table->rows[i].certain = (uint16_t)between;
		}
	}
	return true;
}

struct trace_table *trace_table_new(const struct trace_numbers *numbers, const struct trace *trace,
				    const struct layout *layout, struct lua_objects *objects,
				    const uint8_t *code_bytes, const struct trace_exits *exits)
{
	struct trace_table *table = calloc(1, sizeof(*table));
	struct trace_path path = { 0 };
	struct trace_code code = { 0 };

	if (!table)
		return NULL;
	table->size = sizeof(*table);
	if (trace_code_align(&code, trace, layout, code_bytes, exits)) {
		keep_snapshots(table, trace, layout, &code);
		table->has_path = table->rows && trace_path_replay(&path, numbers, trace, layout, objects) &&
				  keep_path(table, &path) && keep_points(table, &path, trace, layout, &code);
	}
	trace_code_clear(&code);
	trace_path_clear(&path);
	return table;
}

/*---- Looking up ----*/

const uint64_t *trace_table_protos(const struct trace_table *table, size_t *ret_count)
{
	*ret_count = table->proto_count;
	return table->protos;
}

static const struct row *find_row(const struct trace_table *table, uint32_t offset)
{
	size_t low = 0, high = table->row_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &table->rows[low - 1] : NULL;
}

/*
 * A CPU that is interrupted while it waits for an instruction completes it, and reports
 * the next one. If the next one takes no time, the instruction before it took the time.
 * So take the line from there, if all else is equal. After a division or square root do
 * so whatever the next one is. (For a return address, offset lies within the call
 * instead, and is not the start of a piece.)
 */
static const struct row *waited_for(const struct trace_table *table, const struct row *row, uint32_t offset)
{
	const struct row *before = row - 1;

	if (row->offset != offset || !(row->is_quick || row->is_after_slow) || before->base_is_unknown ||
	    before->base_is_moved != row->base_is_moved)
		return row;
	if (row->is_after_slow)
		return table->points[before->point].lowered == table->points[row->point].lowered ? before
												 : row;
	if (before->certain != row->certain || before->snapshot != row->snapshot ||
	    table->points[before->point].frame != table->points[row->point].frame)
		return row;
	return before;
}

static size_t depth_of(const struct trace_table *table, int32_t frame)
{
	size_t depth = 0;

	for (; frame >= 0 && depth < DEPTH_MAX; frame = table->frames[frame].up)
		depth++;
	return depth;
}

/* On how many frames, from the start frame on, do two points of a path certainly agree? */
static size_t common_frames(const struct trace_table *table, uint32_t a, uint32_t b)
{
	int32_t one = table->points[a].frame, other = table->points[b].frame;
	size_t depth = depth_of(table, one), other_depth = depth_of(table, other);

	for (; depth > other_depth; depth--)
		one = table->frames[one].up;
	for (; other_depth > depth; other_depth--)
		other = table->frames[other].up;
	for (; one != other; depth--) {
		one = table->frames[one].up;
		other = table->frames[other].up;
	}
	/* In the innermost common frame, the points differ. */
	return depth ? depth - 1 : 0;
}

size_t trace_table_frames(const struct trace_table *table, uint32_t offset, struct trace_frame *ret_frames,
			  size_t max)
{
	const struct row *row = find_row(table, offset), *waited;
	bool called_by_continuation = false, is_lowered;
	size_t count = 0, certain;
	int32_t at;
	uint64_t pc;

	if (!row || !table->has_path || row->base_is_unknown)
		return 0;
	waited = waited_for(table, row, offset);
	certain = waited->certain < row->certain ? waited->certain : row->certain;
	if (waited->point != row->point) {
		size_t common = common_frames(table, waited->point, row->point);

		certain = common < certain ? common : certain;
	}
	row = waited;
	at = table->points[row->point].frame;
	pc = table->points[row->point].pc;
	/* Below the start frame, slots count from another base. */
	is_lowered = row->base_is_moved || table->points[row->point].lowered > 0;
	while (at >= 0) {
		const struct table_frame *frame = &table->frames[at];

		if (count == max)
			return 0;
		ret_frames[count++] = (struct trace_frame){
			.function = frame->function,
			.pc = pc,
			.is_continuation = called_by_continuation,
			.base_slot = is_lowered ? 0 : frame->base_slot,
		};
		/* The other frames lie below the new base. */
		if (row->base_is_moved)
			break;
		called_by_continuation = frame->by_continuation;
		pc = frame->call_pc;
		at = frame->up;
	}
	for (size_t i = 0; i < count; i++)
		ret_frames[i].is_near = count - i > certain;
	return count;
}

bool trace_table_snapshot(const struct trace_table *table, uint32_t offset, uint32_t *ret_snapshot)
{
	const struct row *row = find_row(table, offset);

	/* The snapshot's frames are relative to a base that has not moved. */
	if (!row || row->base_is_moved || row->base_is_unknown)
		return false;
	*ret_snapshot = row->snapshot;
	return true;
}
