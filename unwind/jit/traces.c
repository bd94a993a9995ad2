/* SPDX-License-Identifier: MIT */
#include "unwind/jit/traces.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/jit/exit_stubs.h"
#include "unwind/jit/trace_table.h"
#include "unwind/lua/luajit.h"
#include "unwind/trace/trace_block.h"
#include "unwind/trace/trace_code.h"

/* No GCtrace header is larger in any layout. */
enum { HEADER_MAX = LAYOUT_TRACE_HEADER_MAX + 8, VERIFY_BATCH = 256 };

/* Fields that do not change during a trace's life, and together differ from any other trace's. */
struct identity {
	uint64_t address, mcode, ir, snap, snapmap, startpt, startpc;
	uint64_t nins, nk, nsnap, nsnapmap, szmcode, startins, spadjust, traceno, root;
};

struct entry {
	struct trace trace;
	struct identity identity;
	uint64_t verified; /* the last snapshot that confirmed the header */
	uint8_t *bytes;
	uint8_t *code;             /* machine code, once the trace was seen executing */
	size_t stubs_bytes;        /* copied behind it */
	struct trace_table *table; /* made when first needed */
	size_t kept_bytes;         /* of all of these */
};

struct traces {
	uint64_t *addresses;          /* J->trace as last seen */
	struct entry **entries;       /* by trace number */
	struct trace_numbers numbers; /* the entries' traces; its size is that of all three arrays */
	struct entry **sorted;        /* by machine code address */
	size_t sorted_count;
	bool is_sorted;
	size_t kept_bytes;                /* of all entries */
	uint64_t snapshot;                /* number of the current one */
	uint64_t exit_stubs[EXIT_GROUPS]; /* J->exitstubgroup; 0 if traces have their own */
};

struct traces *traces_new(void)
{
	return calloc(1, sizeof(struct traces));
}

/* LuaJIT allows far less, but a target may claim anything. */
static bool has_room(const struct traces *traces, size_t bytes)
{
	return traces->kept_bytes <= TRACES_BYTES_MAX && bytes <= TRACES_BYTES_MAX - traces->kept_bytes;
}

static void charge(struct traces *traces, struct entry *entry, size_t bytes)
{
	entry->kept_bytes += bytes;
	traces->kept_bytes += bytes;
}

static void free_entry(struct traces *traces, struct entry *entry)
{
	if (!entry)
		return;
	traces->kept_bytes -= entry->kept_bytes;
	trace_table_free(entry->table);
	free(entry->code);
	free(entry->bytes);
	free(entry);
}

void traces_free(struct traces *traces)
{
	if (!traces)
		return;
	for (uint32_t i = 0; i < traces->numbers.size; i++)
		free_entry(traces, traces->entries[i]);
	free(traces->entries);
	free(traces->numbers.traces);
	free(traces->addresses);
	free(traces->sorted);
	free(traces);
}

/*---- The list of traces ----*/

/* Set the entry with this number, or NULL, instead of the one that is there. */
static void set_entry(struct traces *traces, uint32_t number, struct entry *entry)
{
	free_entry(traces, traces->entries[number]);
	traces->entries[number] = entry;
	traces->numbers.traces[number] = entry ? &entry->trace : NULL;
	traces->is_sorted = false;
}

static bool resize(struct traces *traces, uint32_t size)
{
	uint64_t *addresses;
	struct entry **entries;
	const struct trace **numbered;

	for (uint32_t i = size; i < traces->numbers.size; i++) {
		set_entry(traces, i, NULL);
		traces->addresses[i] = 0;
	}
	if (size <= traces->numbers.size) {
		traces->numbers.size = size;
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
	numbered = realloc(traces->numbers.traces, size * sizeof(const struct trace *));
	if (!numbered)
		return false;
	traces->numbers.traces = numbered;
	memset(addresses + traces->numbers.size, 0, (size - traces->numbers.size) * sizeof(*addresses));
	memset(entries + traces->numbers.size, 0, (size - traces->numbers.size) * sizeof(struct entry *));
	memset(numbered + traces->numbers.size, 0,
	       (size - traces->numbers.size) * sizeof(const struct trace *));
	traces->numbers.size = size;
	return true;
}

static struct identity identify(const struct layout *layout, uint64_t address, const uint8_t *header)
{
	unsigned ref = layout_ref_size(layout);

	return (struct identity){
		.address = address,
		.mcode = load_bytes(header, layout->GCtrace_mcode, 8),
		.ir = load_bytes(header, layout->GCtrace_ir, 8),
		.snap = load_bytes(header, layout->GCtrace_snap, 8),
		.snapmap = load_bytes(header, layout->GCtrace_snapmap, 8),
		.startpt = load_bytes(header, layout->GCtrace_startpt, ref),
		.startpc = load_bytes(header, layout->GCtrace_startpc, ref),
		.nins = load_bytes(header, layout->GCtrace_nins, 4),
		.nk = load_bytes(header, layout->GCtrace_nk, 4),
		.nsnap = load_bytes(header, layout->GCtrace_nsnap, 2),
		.nsnapmap = load_bytes(header, layout->GCtrace_nsnapmap,
				       layout->GCtrace_nsnapmap == layout->GCtrace_nsnap + 2 ? 2 : 4),
		.szmcode = load_bytes(header, layout->GCtrace_szmcode, 4),
		.startins = load_bytes(header, layout->GCtrace_startins, 4),
		.spadjust = load_bytes(header, layout->GCtrace_spadjust, 2),
		.traceno = load_bytes(header, layout->GCtrace_traceno, 2),
		.root = load_bytes(header, layout->GCtrace_root, 2),
	};
}

/*
 * Read the array of traces again, which may have moved or grown. Forget traces that
 * are gone. traces_capture() reads the new ones.
 */
static bool refresh_addresses(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
			      const struct traces_wanted *wanted)
{
	uint32_t sizetrace = wanted->sizetrace;
	unsigned ref = layout_ref_size(layout);
	const bool own_stubs = trace_code_has_stubs();
	struct memory_range ranges[] = {
		{ .address = wanted->J_trace, .length = (size_t)sizetrace * ref },
		{ .address = wanted->J + (uint64_t)layout->J_exitstubgroup,
		  .length = sizeof(traces->exit_stubs) },
	};

	snapshot_capture(snapshot, ranges, own_stubs ? 1 : 2);
	if (ranges[0].status != MEMORY_OK || (!own_stubs && ranges[1].status != MEMORY_OK) ||
	    !resize(traces, sizetrace))
		return false;
	if (!own_stubs)
		memcpy(traces->exit_stubs, ranges[1].copy, sizeof(traces->exit_stubs));
	for (uint32_t i = 1; i < sizetrace; i++) {
		uint64_t address = load_bytes(ranges[0].copy, (int32_t)(i * ref), ref);

		if (address == traces->addresses[i])
			continue;
		set_entry(traces, i, NULL);
		traces->addresses[i] = address;
	}
	return true;
}

/* A block's size; 0 if invalid. lj_trace_save() puts IR, snapshots and snapshot map after the header. */
static size_t block_size(const struct layout *layout, const struct identity *id)
{
	uint64_t end = id->snapmap + id->nsnapmap * TRACE_SNAP_SIZE;

	if (id->snapmap < id->address || end - id->address > TRACE_BYTES_MAX || id->snap < id->address ||
	    id->snap > id->snapmap || id->nk > TRACE_REF_BIAS || id->nins < TRACE_REF_BIAS ||
	    id->ir + id->nk * TRACE_IR_SIZE < id->address + (uint64_t)layout->GCtrace_nsnap ||
	    id->ir + id->nins * TRACE_IR_SIZE > id->snap)
		return 0;
	return (size_t)(end - id->address);
}

size_t trace_block_size(const struct layout *layout, uint64_t address, const uint8_t *header)
{
	struct identity id = identify(layout, address, header);

	return block_size(layout, &id);
}

static struct trace trace_of(const struct identity *id)
{
	return (struct trace){
		.address = id->address,
		.number = (uint32_t)id->traceno,
		.mcode = id->mcode,
		.szmcode = (uint32_t)id->szmcode,
		.spadjust = (uint16_t)id->spadjust,
		.root = (uint16_t)id->root,
		.startpt = id->startpt,
		.startpc = id->startpc,
		.startins = (uint32_t)id->startins,
	};
}

struct trace trace_of_header(const struct layout *layout, uint64_t address, const uint8_t *header)
{
	struct identity id = identify(layout, address, header);

	return trace_of(&id);
}

static void learn(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
		  uint32_t number, const struct identity *id)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct memory_range range = { .address = id->address };

	set_entry(traces, number, NULL);
	if (!entry)
		return;
	entry->identity = *id;
	entry->verified = traces->snapshot;
	entry->trace = trace_of(id);
	range.length = block_size(layout, id);
	if (range.length && has_room(traces, range.length)) {
		snapshot_capture(snapshot, &range, 1);
		if (range.status == MEMORY_OK && range.copy)
			entry->bytes = malloc(range.length);
	}
	if (entry->bytes && range.copy) {
		memcpy(entry->bytes, range.copy, range.length);
		charge(traces, entry, range.length);
		entry->trace.bytes = entry->bytes;
		entry->trace.size = range.length;
	}
	set_entry(traces, number, entry);
}

/*
 * Read the headers of these traces. Skip those that LuaJIT still assembles (their
 * machine code is not final), and learn those that have changed.
 */
static void verify_batch(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
			 const uint32_t *numbers, size_t batch)
{
	struct memory_range ranges[VERIFY_BATCH];
	uint8_t headers[VERIFY_BATCH][HEADER_MAX];

	for (size_t i = 0; i < batch; i++)
		ranges[i] = (struct memory_range){ .address = traces->addresses[numbers[i]],
						   .length = (size_t)layout->GCtrace_size };
	snapshot_capture(snapshot, ranges, batch);
	/* Learning captures more, which may move earlier captures. */
	for (size_t i = 0; i < batch; i++)
		if (ranges[i].status == MEMORY_OK)
			memcpy(headers[i], ranges[i].copy, ranges[i].length);
	for (size_t i = 0; i < batch; i++) {
		uint32_t number = numbers[i];
		struct entry *entry = traces->entries[number];
		struct identity id;

		if (ranges[i].status != MEMORY_OK ||
		    load_bytes(headers[i], layout->GChead_gct, 1) != GCT_TRACE)
			continue;
		id = identify(layout, traces->addresses[number], headers[i]);
		if (id.traceno != number || id.mcode == 0 || id.szmcode == 0)
			continue;
		if (entry && memcmp(&entry->identity, &id, sizeof(id)) == 0)
			entry->verified = traces->snapshot;
		else
			learn(traces, snapshot, layout, number, &id);
	}
}

static void verify(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
		   const uint32_t *numbers, size_t count)
{
	for (size_t done = 0; done < count; done += VERIFY_BATCH)
		verify_batch(traces, snapshot, layout, numbers + done,
			     count - done < VERIFY_BATCH ? count - done : VERIFY_BATCH);
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
	/* The old list may hold freed entries. If there is no memory for a new one, it stays empty. */
	traces->sorted_count = 0;
	sorted = realloc(traces->sorted, (traces->numbers.size + 1) * sizeof(struct entry *));
	if (!sorted)
		return;
	traces->sorted = sorted;
	for (uint32_t i = 0; i < traces->numbers.size; i++)
		if (traces->entries[i])
			sorted[traces->sorted_count++] = traces->entries[i];
	qsort(sorted, traces->sorted_count, sizeof(struct entry *), compare_mcode);
	traces->is_sorted = true;
}

/* The trace whose code begins last at or before pc; NULL if none does. */
static struct entry *last_entry_before(const struct traces *traces, uint64_t pc)
{
	size_t low = 0, high = traces->sorted_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (traces->sorted[middle]->trace.mcode <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? NULL : traces->sorted[low - 1];
}

static struct entry *find_entry(const struct traces *traces, uint64_t pc)
{
	struct entry *entry = last_entry_before(traces, pc);

	return entry && pc - entry->trace.mcode < entry->trace.szmcode ? entry : NULL;
}

/* Learn the traces that are new, and verify those that execute. */
static void verify_wanted(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
			  const struct traces_wanted *wanted)
{
	const uint32_t sizetrace = wanted->sizetrace;
	uint32_t *unknown = calloc(sizetrace + TRACES_EXECUTING_MAX, sizeof(*unknown));
	size_t unknown_count = 0;

	if (!unknown)
		return;
	for (uint32_t i = 1; i < sizetrace; i++)
		if (traces->addresses[i] && !traces->entries[i])
			unknown[unknown_count++] = i;
	for (size_t i = 0; i < TRACES_EXECUTING_MAX; i++) {
		uint32_t number = wanted->executing[i];

		if (number < sizetrace && traces->entries[number])
			unknown[unknown_count++] = number;
	}
	verify(traces, snapshot, layout, unknown, unknown_count);
	free(unknown);
}

void traces_capture(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
		    const struct traces_wanted *wanted)
{
	traces->snapshot++;
	if (wanted->sizetrace <= TRACES_MAX && refresh_addresses(traces, snapshot, layout, wanted))
		verify_wanted(traces, snapshot, layout, wanted);
	sort(traces);
}

void traces_capture_again(struct traces *traces, struct snapshot *snapshot, const struct layout *layout)
{
	uint32_t *numbers = calloc(traces->numbers.size + 1, sizeof(*numbers));
	size_t count = 0;

	if (!numbers)
		return;
	for (uint32_t i = 1; i < traces->numbers.size; i++)
		if (traces->addresses[i])
			numbers[count++] = i;
	verify(traces, snapshot, layout, numbers, count);
	free(numbers);
	sort(traces);
}

/* How much of the trace's own stubs to copy: up to the end of the page that they certainly reach. */
static size_t stubs_length(const struct trace *trace, const struct layout *layout)
{
	enum { SMALLEST_PAGE = 4096 };
	uint64_t begin = trace->mcode + trace->szmcode, certain = begin;
	size_t length;

	if (!trace_code_has_stubs())
		return 0;
	length = exit_stubs_size_max(trace, layout);
	certain += (uint64_t)trace_snapshot_count(trace, layout) * sizeof(uint32_t);
	certain |= SMALLEST_PAGE - 1;
	return certain + 1 - begin < length ? (size_t)(certain + 1 - begin) : length;
}

/*
 * Copy the machine code, and the stubs behind it, which LuaJIT may free with its trace. Exits patched later
 * do not matter.
 */
static void capture_code(struct traces *traces, struct entry *entry, struct snapshot *snapshot,
			 const struct layout *layout)
{
	size_t stubs = stubs_length(&entry->trace, layout);
	struct memory_range range = { .address = entry->trace.mcode, .length = entry->trace.szmcode + stubs };

	if (entry->code || range.length > TRACE_CODE_BYTES_MAX || !has_room(traces, range.length))
		return;
	snapshot_capture(snapshot, &range, 1);
	if (range.status != MEMORY_OK)
		return;
	entry->code = malloc(range.length);
	if (!entry->code)
		return;
	memcpy(entry->code, range.copy, range.length);
	entry->stubs_bytes = stubs;
	charge(traces, entry, range.length);
}

const struct trace *traces_capture_pc(struct traces *traces, struct snapshot *snapshot,
				      const struct layout *layout, uint64_t pc)
{
	struct entry *entry = find_entry(traces, pc);

	if (entry && entry->verified != traces->snapshot) {
		uint32_t number = entry->trace.number;

		verify(traces, snapshot, layout, &number, 1);
		sort(traces);
		entry = find_entry(traces, pc);
	}
	if (!entry || entry->verified != traces->snapshot)
		return NULL;
	capture_code(traces, entry, snapshot, layout);
	return &entry->trace;
}

static struct entry *entry_of(const struct traces *traces, const struct trace *trace)
{
	return trace->number < traces->numbers.size ? traces->entries[trace->number] : NULL;
}

bool traces_protos(const struct traces *traces, const struct trace *trace, const uint64_t **ret_protos,
		   size_t *ret_count)
{
	const struct entry *entry = entry_of(traces, trace);

	if (!entry || !entry->table)
		return false;
	*ret_protos = trace_table_protos(entry->table, ret_count);
	return true;
}

const uint8_t *traces_code(const struct traces *traces, const struct trace *trace)
{
	const struct entry *entry = entry_of(traces, trace);

	return entry ? entry->code : NULL;
}

const struct trace *traces_capture_link(struct traces *traces, struct snapshot *snapshot,
					const struct layout *layout, const struct trace *trace)
{
	uint32_t number = trace_link(trace, layout);
	const struct trace *link = number ? trace_numbered(&traces->numbers, number) : NULL;

	return link ? traces_capture_pc(traces, snapshot, layout, link->mcode) : NULL;
}

const struct trace *traces_find(const struct traces *traces, uint64_t pc)
{
	const struct entry *entry = find_entry(traces, pc);

	return entry && entry->verified == traces->snapshot ? &entry->trace : NULL;
}

const struct trace *traces_by_number(const struct traces *traces, uint32_t number)
{
	const struct entry *entry = number < traces->numbers.size ? traces->entries[number] : NULL;

	return entry && entry->verified == traces->snapshot ? &entry->trace : NULL;
}

const struct trace *traces_find_startins(const struct traces *traces, const struct layout *layout,
					 uint64_t pc)
{
	for (size_t i = 0; i < traces->sorted_count; i++) {
		const struct trace *trace = &traces->sorted[i]->trace;

		if (pc - BYTECODE_SIZE == trace->address + (uint64_t)layout->GCtrace_startins)
			return trace;
	}
	return NULL;
}

/*---- The frames at a pc ----*/

/* The trace in whose own stubs pc is; NULL if there is none. */
static struct entry *entry_of_stub(const struct traces *traces, const struct layout *layout, uint64_t pc)
{
	struct entry *entry = trace_code_has_stubs() ? last_entry_before(traces, pc) : NULL;

	if (!entry)
		return NULL;
	return pc - entry->trace.mcode - entry->trace.szmcode < exit_stubs_size_max(&entry->trace, layout)
		       ? entry
		       : NULL;
}

const struct trace *traces_capture_exit(struct traces *traces, struct snapshot *snapshot,
					const struct layout *layout, uint64_t pc)
{
	const struct entry *entry = entry_of_stub(traces, layout, pc);

	return entry ? traces_capture_pc(traces, snapshot, layout, entry->trace.mcode) : NULL;
}

bool traces_is_exit(const struct traces *traces, const struct layout *layout, uint64_t pc)
{
	return exit_group_contains(traces->exit_stubs, pc) || entry_of_stub(traces, layout, pc);
}

/* Context for exit_number(): an exit jumps to its stub, or to the side trace that starts at it. */
struct exits_of {
	const struct traces *traces;
	const struct trace *trace;
	const struct layout *layout;
};

static int exit_number(const void *context, uint64_t target)
{
	const struct exits_of *exits = context;
	const struct entry *side = find_entry(exits->traces, target);
	uint32_t parent, exitno;

	if (side && side->trace.mcode == target &&
	    trace_parent(&side->trace, exits->layout, &parent, &exitno))
		return parent == exits->trace->number ? (int)exitno : -1;
	if (trace_code_has_stubs()) {
		const struct entry *own = entry_of(exits->traces, exits->trace);

		return own && own->code ? exit_stub_number(&own->trace, own->code + own->trace.szmcode,
							   own->stubs_bytes, target)
					: -1;
	}
	return exit_group_number(exits->traces->exit_stubs, target);
}

int traces_exit_number(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		       uint64_t target)
{
	return exit_number(&(struct exits_of){ traces, trace, layout }, target);
}

bool traces_align_code(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		       struct trace_code *code)
{
	const struct exits_of context = { traces, trace, layout };
	const struct trace_exits exits = { .number = exit_number, .context = &context };
	const uint8_t *bytes = traces_code(traces, trace);

	return bytes && trace_code_align(code, trace, layout, bytes, &exits);
}

bool traces_replay(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		   struct lua_objects *objects, struct trace_path *path)
{
	return trace_path_replay(path, &traces->numbers, trace, layout, objects);
}

size_t traces_frames(struct traces *traces, const struct trace *trace, const struct layout *layout,
		     struct lua_objects *objects, uint64_t pc,
		     struct trace_frame ret_frames[static TRACE_FRAMES_MAX])
{
	struct entry *entry = entry_of(traces, trace);
	uint32_t offset = (uint32_t)(pc - trace->mcode), snapshot;
	size_t count = 0;

	if (entry && entry->code && !entry->table) {
		const struct exits_of context = { traces, trace, layout };
		const struct trace_exits exits = { .number = exit_number, .context = &context };

		entry->table = trace_table_new(&traces->numbers, trace, layout, objects, entry->code, &exits);
		if (entry->table)
			charge(traces, entry, trace_table_size(entry->table));
	}
	if (entry && entry->table)
		count = trace_table_frames(entry->table, offset, ret_frames, TRACE_FRAMES_MAX);
	if (count)
		return count;
	if (!entry || !entry->table)
		count = trace_frames(trace, layout, pc, ret_frames, TRACE_FRAMES_MAX);
	else if (trace_table_snapshot(entry->table, offset, &snapshot))
		count = trace_exit_frames(trace, layout, snapshot, ret_frames, TRACE_FRAMES_MAX);
	for (size_t i = 0; i < count; i++)
		ret_frames[i].is_near = true;
	return count;
}
