#include "unwind/traces.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/luajit.h"

/* No GCtrace header is larger in any layout. */
enum { HEADER_MAX = 160 };

/* IR constants and instructions (lj_ir.h); references are biased. */
enum {
	IR_SIZE = 8,
	REF_BIAS = 0x8000,
	IR_T = 4,		/* offset of IRIns.t */
	IR_O = 5,		/* offset of IRIns.o */
	IRT_TYPE = 0x1f,
	IRT_PROTO = 7,
	IRT_FUNC = 8,
};

/* Snapshot map entries (lj_jit.h, SNAP()). */
enum {
	SNAP_FRAME = 0x010000,
	SNAP_CONT = 0x020000,
	SNAP_REF = 0xffff,
	SNAP_SLOT_SHIFT = 24,
	SNAP_SIZE = 4,
};

/* What a trace keeps for life and no other trace has in all of it. */
struct identity {
	uint64_t address, mcode, ir, snap, snapmap, startpt, startpc;
	uint64_t nins, nk, nsnap, nsnapmap, szmcode, startins, spadjust, traceno, root;
};

struct entry {
	struct trace trace;
	struct identity identity;
	uint64_t verified;		/* snapshot in which the header was last compared */
	uint8_t *bytes;
};

struct traces {
	uint64_t *addresses;		/* J->trace as last seen */
	struct entry **entries;		/* by trace number */
	uint32_t size;			/* of both */
	struct entry **sorted;		/* by machine code address */
	size_t sorted_count;
	bool is_sorted;
	uint64_t snapshot;		/* number of the present one */
};

struct traces *traces_new(void)
{
	return calloc(1, sizeof(struct traces));
}

static void free_entry(struct entry *entry)
{
	if (!entry)
		return;
	free(entry->bytes);
	free(entry);
}

void traces_free(struct traces *traces)
{
	if (!traces)
		return;
	for (uint32_t i = 0; i < traces->size; i++)
		free_entry(traces->entries[i]);
	free(traces->entries);
	free(traces->addresses);
	free(traces->sorted);
	free(traces);
}

static uint64_t load(const uint8_t *bytes, int32_t offset, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

/*---- What traces there are ----*/

static bool resize(struct traces *traces, uint32_t size)
{
	uint64_t *addresses;
	struct entry **entries;

	for (uint32_t i = size; i < traces->size; i++) {
		free_entry(traces->entries[i]);
		traces->entries[i] = NULL;
		traces->addresses[i] = 0;
		traces->is_sorted = false;
	}
	if (size <= traces->size) {
		traces->size = size;
		return true;
	}
	addresses = realloc(traces->addresses, size * sizeof(*addresses));
	if (!addresses)
		return false;
	traces->addresses = addresses;
	entries = realloc(traces->entries, size * sizeof(struct entry *));
	if (!entries)
		return false;
	traces->entries = entries;
	memset(addresses + traces->size, 0, (size - traces->size) * sizeof(*addresses));
	memset(entries + traces->size, 0, (size - traces->size) * sizeof(struct entry *));
	traces->size = size;
	return true;
}

static struct identity identify(const struct layout *layout, uint64_t address,
				const uint8_t *header)
{
	unsigned ref = layout_ref_size(layout);

	return (struct identity){
		.address = address,
		.mcode = load(header, layout->GCtrace_mcode, 8),
		.ir = load(header, layout->GCtrace_ir, 8),
		.snap = load(header, layout->GCtrace_snap, 8),
		.snapmap = load(header, layout->GCtrace_snapmap, 8),
		.startpt = load(header, layout->GCtrace_startpt, ref),
		.startpc = load(header, layout->GCtrace_startpc, ref),
		.nins = load(header, layout->GCtrace_nins, 4),
		.nk = load(header, layout->GCtrace_nk, 4),
		.nsnap = load(header, layout->GCtrace_nsnap, 2),
		.nsnapmap = load(header, layout->GCtrace_nsnapmap,
				 layout->GCtrace_nsnapmap > layout->GCtrace_nk ? 4 : 2),
		.szmcode = load(header, layout->GCtrace_szmcode, 4),
		.startins = load(header, layout->GCtrace_startins, 4),
		.spadjust = load(header, layout->GCtrace_spadjust, 2),
		.traceno = load(header, layout->GCtrace_traceno, 2),
		.root = load(header, layout->GCtrace_root, 2),
	};
}

/*
 * The array may have moved or grown at any time; what is no more there is
 * forgotten, what is new is read when it is first needed.
 */
static bool refresh_addresses(struct traces *traces, struct snapshot *snapshot,
			      const struct layout *layout, uint64_t J_trace, uint32_t sizetrace)
{
	unsigned ref = layout_ref_size(layout);
	struct memory_range range = { .address = J_trace, .length = (size_t)sizetrace * ref };

	snapshot_capture(snapshot, &range, 1);
	if (range.status != MEMORY_OK || !resize(traces, sizetrace))
		return false;
	for (uint32_t i = 1; i < sizetrace; i++) {
		uint64_t address = load(range.copy, (int32_t)(i * ref), ref);

		if (address == traces->addresses[i])
			continue;
		free_entry(traces->entries[i]);
		traces->entries[i] = NULL;
		traces->addresses[i] = address;
		traces->is_sorted = false;
	}
	return true;
}

/* lj_trace_save() puts a trace's IR, snapshots and snapshot map behind its header. */
static size_t block_size(const struct layout *layout, const struct identity *id)
{
	uint64_t end = id->snapmap + id->nsnapmap * SNAP_SIZE;

	if (id->snapmap < id->address || end - id->address > TRACE_BYTES_MAX ||
	    id->snap < id->address || id->snap > id->snapmap ||
	    id->nk > REF_BIAS || id->nins < REF_BIAS ||
	    id->ir + id->nk * IR_SIZE < id->address + (uint64_t)layout->GCtrace_nsnap ||
	    id->ir + id->nins * IR_SIZE > id->snap)
		return 0;
	return (size_t)(end - id->address);
}

static void learn(struct traces *traces, struct snapshot *snapshot,
		  const struct layout *layout, uint32_t number, const struct identity *id)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct memory_range range = { .address = id->address };

	free_entry(traces->entries[number]);
	traces->entries[number] = NULL;
	traces->is_sorted = false;
	if (!entry)
		return;
	entry->identity = *id;
	entry->verified = traces->snapshot;
	entry->trace = (struct trace){
		.address = id->address,
		.number = number,
		.mcode = id->mcode,
		.szmcode = (uint32_t)id->szmcode,
		.spadjust = (uint16_t)id->spadjust,
		.root = (uint16_t)id->root,
		.startpt = id->startpt,
		.startpc = id->startpc,
	};
	range.length = block_size(layout, id);
	if (range.length) {
		snapshot_capture(snapshot, &range, 1);
		if (range.status == MEMORY_OK)
			entry->bytes = malloc(range.length);
	}
	if (entry->bytes) {
		memcpy(entry->bytes, range.copy, range.length);
		entry->trace.bytes = entry->bytes;
		entry->trace.size = range.length;
	}
	traces->entries[number] = entry;
}

/*
 * Read the headers of these traces; forget those that are being assembled
 * (their machine code is not final) and learn those that changed.
 */
static void verify(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
		   const uint32_t *numbers, size_t count)
{
	enum { BATCH = 256 };
	struct memory_range ranges[BATCH];
	uint8_t headers[BATCH][HEADER_MAX];
	size_t batch = count < BATCH ? count : BATCH;

	if (!batch)
		return;
	for (size_t i = 0; i < batch; i++)
		ranges[i] = (struct memory_range){ .address = traces->addresses[numbers[i]],
						   .length = (size_t)layout->GCtrace_size };
	snapshot_capture(snapshot, ranges, batch);
	/* Learning captures more, which may move what was captured before. */
	for (size_t i = 0; i < batch; i++)
		if (ranges[i].status == MEMORY_OK)
			memcpy(headers[i], ranges[i].copy, ranges[i].length);
	for (size_t i = 0; i < batch; i++) {
		uint32_t number = numbers[i];
		struct entry *entry = traces->entries[number];
		struct identity id;

		if (ranges[i].status != MEMORY_OK ||
		    load(headers[i], layout->GChead_gct, 1) != GCT_TRACE)
			continue;
		id = identify(layout, traces->addresses[number], headers[i]);
		if (id.traceno != number || id.mcode == 0 || id.szmcode == 0)
			continue;
		if (entry && memcmp(&entry->identity, &id, sizeof(id)) == 0)
			entry->verified = traces->snapshot;
		else
			learn(traces, snapshot, layout, number, &id);
	}
	verify(traces, snapshot, layout, numbers + batch, count - batch);
}

static int compare_mcode(const void *a, const void *b)
{
	const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;

	return (left->trace.mcode > right->trace.mcode) - (left->trace.mcode < right->trace.mcode);
}

static void sort(struct traces *traces)
{
	struct entry **sorted;

	if (traces->is_sorted)
		return;
	/* The list may name what is gone; without memory for a new one it is empty. */
	traces->sorted_count = 0;
	sorted = realloc(traces->sorted, (traces->size + 1) * sizeof(struct entry *));
	if (!sorted)
		return;
	traces->sorted = sorted;
	for (uint32_t i = 0; i < traces->size; i++)
		if (traces->entries[i])
			sorted[traces->sorted_count++] = traces->entries[i];
	qsort(sorted, traces->sorted_count, sizeof(struct entry *), compare_mcode);
	traces->is_sorted = true;
}

static struct entry *find_entry(const struct traces *traces, uint64_t pc)
{
	size_t low = 0, high = traces->sorted_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (traces->sorted[middle]->trace.mcode <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	low--;
	return pc - traces->sorted[low]->trace.mcode < traces->sorted[low]->trace.szmcode
		? traces->sorted[low] : NULL;
}

void traces_capture(struct traces *traces, struct snapshot *snapshot,
		    const struct layout *layout, uint64_t J_trace, uint32_t sizetrace,
		    const uint32_t *executing, size_t count)
{
	uint32_t *unknown;
	size_t unknown_count = 0;

	traces->snapshot++;
	if (sizetrace == 0 || sizetrace > TRACES_MAX ||
	    !refresh_addresses(traces, snapshot, layout, J_trace, sizetrace)) {
		sort(traces);
		return;
	}
	unknown = calloc(sizetrace + count, sizeof(*unknown));
	if (!unknown)
		return;
	for (uint32_t i = 1; i < sizetrace; i++)
		if (traces->addresses[i] && !traces->entries[i])
			unknown[unknown_count++] = i;
	for (size_t i = 0; i < count; i++)
		if (executing[i] > 0 && executing[i] < sizetrace && traces->entries[executing[i]])
			unknown[unknown_count++] = executing[i];
	verify(traces, snapshot, layout, unknown, unknown_count);
	free(unknown);
	sort(traces);
}

const struct trace *traces_capture_pc(struct traces *traces, struct snapshot *snapshot,
				      const struct layout *layout, uint64_t pc)
{
	struct entry *entry = find_entry(traces, pc);

	if (entry && entry->verified != traces->snapshot) {
		uint32_t number = entry->trace.number;

		verify(traces, snapshot, layout, &number, 1);
		sort(traces);
	}
	return traces_find(traces, pc);
}

const struct trace *traces_find(const struct traces *traces, uint64_t pc)
{
	const struct entry *entry = find_entry(traces, pc);

	return entry && entry->verified == traces->snapshot ? &entry->trace : NULL;
}

const struct trace *traces_by_number(const struct traces *traces, uint32_t number)
{
	const struct entry *entry = number < traces->size ? traces->entries[number] : NULL;

	return entry && entry->verified == traces->snapshot ? &entry->trace : NULL;
}

const struct trace *traces_find_startins(const struct traces *traces,
					 const struct layout *layout, uint64_t pc)
{
	for (size_t i = 0; i < traces->sorted_count; i++) {
		const struct trace *trace = &traces->sorted[i]->trace;

		if (pc - BYTECODE_SIZE == trace->address + (uint64_t)layout->GCtrace_startins)
			return trace;
	}
	return NULL;
}

/*---- What a trace says of a pc ----*/

/* The bytes of a trace's block at a target's address, or NULL. */
static const uint8_t *at(const struct trace *trace, uint64_t address, size_t length)
{
	uint64_t offset = address - trace->address;

	if (!trace->bytes || address < trace->address || offset > trace->size ||
	    length > trace->size - offset)
		return NULL;
	return trace->bytes + offset;
}

static uint64_t field(const struct trace *trace, int32_t offset, unsigned size)
{
	const uint8_t *bytes = at(trace, trace->address + (uint64_t)offset, size);

	return bytes ? load(bytes, 0, size) : 0;
}

static const uint8_t *ir(const struct trace *trace, const struct layout *layout, uint32_t ref)
{
	return at(trace, field(trace, layout->GCtrace_ir, 8) + (uint64_t)ref * IR_SIZE,
		  layout->gc64 ? 2 * IR_SIZE : IR_SIZE);
}

/* The object of a constant of this IR type, or 0. */
static uint64_t constant_object(const struct trace *trace, const struct layout *layout,
				uint32_t ref, uint8_t type)
{
	const uint8_t *constant = ref < REF_BIAS ? ir(trace, layout, ref) : NULL;

	if (!constant || constant[IR_O] != layout->IR_KGC || (constant[IR_T] & IRT_TYPE) != type)
		return 0;
	return layout->gc64 ? load(constant, IR_SIZE, 8) : load(constant, 0, 4);
}

size_t trace_constants(const struct trace *trace, const struct layout *layout,
		       enum trace_constant kind, uint64_t *ret_objects, size_t max)
{
	uint32_t nk = (uint32_t)field(trace, layout->GCtrace_nk, 4);
	uint8_t type = kind == TRACE_FUNCTIONS ? IRT_FUNC : IRT_PROTO;
	size_t count = 0;

	for (uint32_t ref = nk; trace->bytes && ref < REF_BIAS && count < max; ref++) {
		uint64_t object = constant_object(trace, layout, ref, type);

		if (object)
			ret_objects[count++] = object;
	}
	return count;
}

static const uint8_t *snapshot_number(const struct trace *trace, const struct layout *layout,
				      uint64_t number)
{
	uint64_t snap = field(trace, layout->GCtrace_snap, 8);

	return number < field(trace, layout->GCtrace_nsnap, 2)
		? at(trace, snap + number * (uint64_t)layout->SnapShot_size,
		     (size_t)layout->SnapShot_size) : NULL;
}

/* The snapshot in force: the last one whose code begins at or before pc. */
static const uint8_t *snapshot_at(const struct trace *trace, const struct layout *layout,
				  uint64_t pc)
{
	uint64_t count = field(trace, layout->GCtrace_nsnap, 2);
	const uint8_t *found = NULL;

	if (layout->SnapShot_mcofs == LAYOUT_ABSENT)
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *one = snapshot_number(trace, layout, i);

		/* Snapshots that no guard uses may lie in between with any offset. */
		if (one && trace->mcode + load(one, layout->SnapShot_mcofs, 2) <= pc)
			found = one;
	}
	return found;
}

/* What a snapshot's map says of one slot. */
struct slot {
	uint32_t entry;		/* 0 if the slot is not in the map */
	uint64_t link;		/* of a frame or continuation slot */
};

enum { SLOTS = 256 };

struct slots {
	struct slot slot[SLOTS];
	uint64_t pc;		/* where the snapshot would resume */
};

static bool load_entry(const struct trace *trace, const struct layout *layout,
		       uint64_t index, uint32_t *ret_entry)
{
	uint64_t snapmap = field(trace, layout->GCtrace_snapmap, 8);
	const uint8_t *bytes = at(trace, snapmap + index * SNAP_SIZE, SNAP_SIZE);

	if (!bytes)
		return false;
	*ret_entry = (uint32_t)load(bytes, 0, SNAP_SIZE);
	return true;
}

/* GC64: links are 64-bit constants of their own slots; the pc shares a word with the base slot. */
static bool load_links_gc64(const struct trace *trace, const struct layout *layout,
			    uint64_t behind, struct slots *slots)
{
	uint32_t low, high;

	if (!load_entry(trace, layout, behind, &low) ||
	    !load_entry(trace, layout, behind + 1, &high))
		return false;
	slots->pc = ((uint64_t)high << 32 | low) >> 8;
	for (unsigned s = 2; s < SLOTS; s++) {
		const uint8_t *constant;

		if (!(slots->slot[s].entry & (SNAP_FRAME | SNAP_CONT)))
			continue;
		constant = ir(trace, layout, slots->slot[s].entry & SNAP_REF);
		if (!constant)
			return false;
		slots->slot[s].link = load(constant, IR_SIZE, 8);
	}
	return true;
}

/* GC32: the pc and then the links, innermost first, follow the entries. */
static bool load_links_gc32(const struct trace *trace, const struct layout *layout,
			    uint64_t behind, struct slots *slots)
{
	uint32_t word;

	if (!load_entry(trace, layout, behind, &word))
		return false;
	slots->pc = word;
	for (unsigned s = SLOTS - 1; s > 0; s--) {
		if (!(slots->slot[s].entry & (SNAP_FRAME | SNAP_CONT)))
			continue;
		if (!load_entry(trace, layout, ++behind, &word))
			return false;
		slots->slot[s].link = word;
	}
	return true;
}

static bool load_slots(const struct trace *trace, const struct layout *layout,
		       const uint8_t *snapshot, struct slots *slots)
{
	uint64_t mapofs = load(snapshot, layout->SnapShot_mapofs,
			       layout->SnapShot_size > 8 ? 4 : 2);
	uint64_t nent = load(snapshot, layout->SnapShot_nent, 1);

	memset(slots, 0, sizeof(*slots));
	for (uint64_t i = 0; i < nent; i++) {
		uint32_t entry;

		if (!load_entry(trace, layout, mapofs + i, &entry))
			return false;
		slots->slot[entry >> SNAP_SLOT_SHIFT].entry = entry;
	}
	return layout->gc64 ? load_links_gc64(trace, layout, mapofs + nent, slots)
			    : load_links_gc32(trace, layout, mapofs + nent, slots);
}

static size_t snapshot_frames(const struct trace *trace, const struct layout *layout,
			      const uint8_t *snapshot, struct trace_frame *ret_frames, size_t max)
{
	unsigned fr2 = layout->gc64 ? 1 : 0;	/* LJ_FR2: the function has a slot of its own */
	struct slots slots;
	uint64_t caller_pc;
	bool is_continuation = false, is_vararg = false;
	size_t count = 0;

	if (!snapshot || max < 2 || !load_slots(trace, layout, snapshot, &slots))
		return 0;
	caller_pc = slots.pc;
	for (unsigned s = SLOTS - 1; s > fr2; s--) {
		const struct slot *frame = &slots.slot[s];
		uint64_t link = frame->link;

		if (!(frame->entry & SNAP_FRAME) || (frame->entry & SNAP_CONT))
			continue;
		if (count == max - 1)
			return 0;
		if (!is_vararg)
			ret_frames[count++] = (struct trace_frame){
				.function = constant_object(trace, layout,
							    slots.slot[s - fr2].entry & SNAP_REF,
							    IRT_FUNC),
				.pc = caller_pc,
				.is_continuation = is_continuation,
			};
		is_vararg = (link & FRAME_TYPE_P) == FRAME_VARG;
		is_continuation = (link & FRAME_TYPE_P) == FRAME_CONT;
		if (is_vararg)
			continue;
		if (is_continuation)
			caller_pc = slots.slot[s - 1 - fr2].link - BYTECODE_SIZE;
		else if ((link & FRAME_LUA_MASK) == 0)
			caller_pc = link - BYTECODE_SIZE;
		else
			caller_pc = 0;
	}
	/* A vararg function's start frame was emitted with the copy that runs above it. */
	if (!is_vararg)
		ret_frames[count++] = (struct trace_frame){
			.pc = caller_pc,
			.is_continuation = is_continuation,
		};
	return count;
}

size_t trace_frames(const struct trace *trace, const struct layout *layout, uint64_t pc,
		    struct trace_frame *ret_frames, size_t max)
{
	return snapshot_frames(trace, layout, snapshot_at(trace, layout, pc), ret_frames, max);
}

size_t trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
			 struct trace_frame *ret_frames, size_t max)
{
	return snapshot_frames(trace, layout, snapshot_number(trace, layout, exitno),
			       ret_frames, max);
}
