/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/vm_find.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/vm_code_arm64.h"
#include "luajit-layouts/module/vm_code_x86_64.h"

/* ---- by the unwind entry ----------------------------------------------------- */

/* What buildvm writes after the address range of each of its two entries. */
#define X86_64_SAVED 0x86, 0x02, 0x83, 0x03, 0x8f, 0x04, 0x8e, 0x05 /* rbp, rbx, r15, r14 */
static const uint8_t interpreter_rules_x86_64[] = {
	0x0e,
	0x50, /* def_cfa_offset CFRAME_SIZE */
	X86_64_SAVED,
};
/* Tarantool's keeps g->vmstate in the frame, too. */
static const uint8_t interpreter_rules_x86_64_tarantool[] = {
	0x0e,
	0x60, /* def_cfa_offset CFRAME_SIZE */
	X86_64_SAVED,
};
static const uint8_t ffi_call_rules_x86_64[] = {
	0x0e, 0x10, /* def_cfa_offset 16 */
	0x86, 0x02, /* rbp */
	0x0d, 0x06, /* def_cfa_register rbp */
	0x83, 0x03, /* rbx */
};
/* Since 2022 the saved registers lie next to the frame pointer's address; the CIE has def_cfa. */
#define ARM64_SAVED \
	0x93, 0x03, 0x94, 0x04, 0x95, 0x05, 0x96, 0x06, 0x97, 0x07,                     /* x19 to x23 */ \
		0x98, 0x08, 0x99, 0x09, 0x9a, 0x0a, 0x9b, 0x0b, 0x9c, 0x0c,             /* x24 to x28 */ \
		0x05, 0x48, 0x0d, 0x05, 0x49, 0x0e, 0x05, 0x4a, 0x0f, 0x05, 0x4b, 0x10, /* d8 to d11 */ \
		0x05, 0x4c, 0x11, 0x05, 0x4d, 0x12, 0x05, 0x4e, 0x13, 0x05, 0x4f, 0x14  /* d12 to d15 */
static const uint8_t interpreter_rules_arm64[] = {
	0x9e,        0x01, 0x9d, 0x02, /* lr, fp */
	ARM64_SAVED,
};
static const uint8_t interpreter_rules_arm64_sp[] = {
	0x0e, 0xd0, 0x01, /* def_cfa_offset CFRAME_SIZE */
	0x9e, 0x01, 0x9d, 0x02, ARM64_SAVED,
};
/* Until September 2021 the saved registers lie at the other end of the frame. */
static const uint8_t interpreter_rules_arm64_old[] = {
	0x0e, 0xd0, 0x01,                                           /* def_cfa_offset CFRAME_SIZE */
	0x9d, 0x1a, 0x9e, 0x19,                                     /* fp, lr */
	0x93, 0x18, 0x94, 0x17, 0x95, 0x16, 0x96, 0x15, 0x97, 0x14, /* x19 to x23 */
	0x98, 0x13, 0x99, 0x12, 0x9a, 0x11, 0x9b, 0x10, 0x9c, 0x0f, /* x24 to x28 */
	0x05, 0x48, 0x0e, 0x05, 0x49, 0x0d, 0x05, 0x4a, 0x0c, 0x05, 0x4b, 0x0b, /* d8 to d11 */
	0x05, 0x4c, 0x0a, 0x05, 0x4d, 0x09, 0x05, 0x4e, 0x08, 0x05, 0x4f, 0x07, /* d12 to d15 */
};
static const uint8_t ffi_call_rules_arm64_old[] = {
	0x0e, 0x20, 0x9d, 0x04, 0x9e, 0x03, 0x93, 0x02, /* def_cfa_offset 32; fp, lr, x19 */
};
static const uint8_t ffi_call_rules_arm64[] = {
	0x9e, 0x01, 0x9d, 0x02, 0x93, 0x03, 0x94, 0x04, /* lr, fp, x19, x20 */
};

static const struct unwind_rules {
	uint16_t machine;
	const uint8_t *interpreter, *ffi_call;
	size_t interpreter_length, ffi_call_length;
} unwind_rules[] = {
#define RULES(machine, interpreter, ffi_call) \
	{ \
		machine, interpreter, ffi_call, sizeof(interpreter), sizeof(ffi_call) \
	}
	RULES(EM_X86_64, interpreter_rules_x86_64, ffi_call_rules_x86_64),
	RULES(EM_X86_64, interpreter_rules_x86_64_tarantool, ffi_call_rules_x86_64),
	RULES(EM_AARCH64, interpreter_rules_arm64, ffi_call_rules_arm64),
	RULES(EM_AARCH64, interpreter_rules_arm64_sp, ffi_call_rules_arm64),
	RULES(EM_AARCH64, interpreter_rules_arm64_old, ffi_call_rules_arm64_old),
#undef RULES
};

enum {
	UNWIND_BYTES_MAX = 64 << 20,
	VM_BYTES_MIN = 4 << 10, /* a VM is 14 to 19 KB */
	VM_BYTES_MAX = 64 << 10,
	PCREL_SDATA4 = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
};

/* A copy of .eh_frame, from its start to the end of its segment. */
struct unwind_table {
	uint64_t address;
	uint8_t *bytes;
	size_t size;
	uint16_t machine;
};

/* A record of .eh_frame (LSB 5.0, 10.6.1) in the 32-bit format; linkers write no other. */
struct record {
	uint32_t id;                /* 0: a CIE; else an FDE: its CIE is so far before the id */
	size_t offset, next;        /* of this record and the one after it */
	const uint8_t *begin, *end; /* the bytes after the id */
};

static enum vm_find_status locate_table(struct memory *memory, const struct elf_image *image,
					uint64_t *ret_begin, uint64_t *ret_end)
{
	struct {
		uint8_t version, eh_frame_encoding, count_encoding, table_encoding;
		int32_t eh_frame;
	} header;
	const struct elf_segment *segment;
	uint64_t begin;

	if (image->eh_frame_hdr == 0)
		return VM_FIND_NONE;
	if (memory_read(memory, image->eh_frame_hdr, &header, sizeof(header)) != MEMORY_OK)
		return VM_FIND_UNREADABLE;
	if (header.version != 1 || header.eh_frame_encoding != PCREL_SDATA4)
		return VM_FIND_NONE;
	begin = image->eh_frame_hdr + 4 + header.eh_frame;
	segment = elf_image_segment(image, begin);
	if (segment == NULL)
		return VM_FIND_NONE;
	*ret_begin = begin;
	*ret_end = segment->end - begin > UNWIND_BYTES_MAX ? begin + UNWIND_BYTES_MAX : segment->end;
	return VM_FIND_OK;
}

/* On VM_FIND_OK the caller frees table->bytes. */
static enum vm_find_status copy_table(struct memory *memory, const struct elf_image *image,
				      struct unwind_table *table)
{
	enum vm_find_status status;
	uint64_t begin, end;
	uint8_t *copy;

	status = locate_table(memory, image, &begin, &end);
	if (status != VM_FIND_OK)
		return status;
	copy = malloc(end - begin);
	if (copy == NULL || memory_read(memory, begin, copy, end - begin) != MEMORY_OK) {
		free(copy);
		return VM_FIND_UNREADABLE;
	}
	*table = (struct unwind_table){
		.address = begin, .bytes = copy, .size = end - begin, .machine = image->machine
	};
	return VM_FIND_OK;
}

/* False at the end of the table, and where there is no valid record. */
static bool read_record(const struct unwind_table *table, size_t offset, struct record *ret)
{
	const uint8_t *at = table->bytes + offset;
	uint32_t length, id;

	if (table->size - offset < sizeof(length) + sizeof(id))
		return false;
	memcpy(&length, at, sizeof(length));
	memcpy(&id, at + sizeof(length), sizeof(id));
	if (length < sizeof(id) || length > table->size - offset - sizeof(length))
		return false;
	*ret = (struct record){
		.id = id,
		.offset = offset,
		.next = offset + sizeof(length) + length,
		.begin = at + sizeof(length) + sizeof(id),
		.end = at + sizeof(length) + length,
	};
	return true;
}

struct unwind_range {
	uint64_t begin, end;
};

/*
 * The range of an entry if its instructions are exactly rules, apart from
 * DW_CFA_nop padding. Takes the addresses as PC-relative with 32 bits and
 * expects no augmentation data, as buildvm writes them.
 */
static bool entry_has_rules(const struct unwind_table *table, const struct record *entry,
			    const uint8_t *rules, size_t length, struct unwind_range *ret)
{
	const size_t head = sizeof(int32_t) + sizeof(uint32_t) + 1;
	const uint8_t *instructions = entry->begin + head;
	uint64_t start = table->address + (size_t)(entry->begin - table->bytes);
	int32_t displacement;
	uint32_t range;

	if ((size_t)(entry->end - entry->begin) < head + length || entry->begin[head - 1] != 0 ||
	    memcmp(instructions, rules, length) != 0)
		return false;
	for (const uint8_t *byte = instructions + length; byte < entry->end; byte++) {
		if (*byte != DW_CFA_nop)
			return false;
	}
	memcpy(&displacement, entry->begin, sizeof(displacement));
	memcpy(&range, entry->begin + sizeof(displacement), sizeof(range));
	ret->begin = start + displacement;
	ret->end = ret->begin + range;
	return true;
}

/* Does an FDE belong to the hand-written "zPR" CIE, which has its own personality routine? */
static bool has_personality(const struct unwind_table *table, const struct record *entry)
{
	static const uint8_t version_1[] = { 1, 'z', 'P', 'R', '\0' };
	const size_t id = entry->offset + sizeof(uint32_t);
	struct record common;

	return entry->id <= id && read_record(table, id - entry->id, &common) && common.id == 0 &&
	       (size_t)(common.end - common.begin) >= sizeof(version_1) &&
	       memcmp(common.begin, version_1, sizeof(version_1)) == 0;
}

/* The rules that show that the entry is the interpreter's, or NULL. */
static const struct unwind_rules *interpreter_rules(const struct unwind_table *table,
						    const struct record *entry, struct unwind_range *ret)
{
	for (size_t i = 0; i < sizeof(unwind_rules) / sizeof(unwind_rules[0]); i++) {
		const struct unwind_rules *rules = &unwind_rules[i];

		if (rules->machine == table->machine &&
		    entry_has_rules(table, entry, rules->interpreter, rules->interpreter_length, ret) &&
		    ret->end - ret->begin >= VM_BYTES_MIN && ret->end - ret->begin <= VM_BYTES_MAX &&
		    has_personality(table, entry))
			return rules;
	}
	return NULL;
}

/*
 * lj_vm_ffi_call lies right behind the interpreter. Its entry may be anywhere: lld and gold group entries by
 * CIE.
 */
static void find_ffi_call(const struct unwind_table *table, const struct unwind_rules *rules,
			  struct vm_extent *extent)
{
	struct unwind_range range;
	struct record entry;

	for (size_t offset = 0; read_record(table, offset, &entry); offset = entry.next) {
		if (entry.id == 0 ||
		    !entry_has_rules(table, &entry, rules->ffi_call, rules->ffi_call_length, &range) ||
		    range.begin != extent->end)
			continue;
		extent->ffi_call = range.begin;
		extent->ffi_call_end = range.end;
		return;
	}
}

static enum vm_find_status search_table(const struct unwind_table *table, struct vm_extent *ret_extent)
{
	const struct unwind_rules *rules;
	struct unwind_range range;
	struct record entry;

	for (size_t offset = 0; read_record(table, offset, &entry); offset = entry.next) {
		rules = entry.id == 0 ? NULL : interpreter_rules(table, &entry, &range);
		if (rules == NULL)
			continue;
		*ret_extent = (struct vm_extent){ .begin = range.begin, .end = range.end };
		find_ffi_call(table, rules, ret_extent);
		return VM_FIND_OK;
	}
	return VM_FIND_NONE;
}

/* The lowest address above a given one at which the code of an entry begins. */
static bool find_next_function(struct memory *memory, const struct elf_image *image, uint64_t after,
			       uint64_t *ret)
{
	uint64_t lowest = UINT64_MAX;
	struct unwind_table table;
	struct record entry;
	int32_t displacement;
	uint64_t begin;

	if (copy_table(memory, image, &table) != VM_FIND_OK)
		return false;
	for (size_t offset = 0; read_record(&table, offset, &entry); offset = entry.next) {
		if (entry.id == 0 || entry.end - entry.begin < (ptrdiff_t)sizeof(displacement))
			continue;
		memcpy(&displacement, entry.begin, sizeof(displacement));
		begin = table.address + (size_t)(entry.begin - table.bytes) + displacement;
		if (begin > after && begin < lowest)
			lowest = begin;
	}
	free(table.bytes);
	*ret = lowest;
	return lowest != UINT64_MAX;
}

enum vm_find_status vm_find_by_unwind_entry(struct memory *memory, const struct elf_image *image,
					    struct vm_extent *ret_extent)
{
	struct unwind_table table;
	enum vm_find_status status;

	status = copy_table(memory, image, &table);
	if (status != VM_FIND_OK)
		return status;
	status = search_table(&table, ret_extent);
	free(table.bytes);
	return status;
}

/* ---- by the dispatch sequence ------------------------------------------------ */

/* How BC_ISLT, the first handler, starts: it loads or tests its two operands. */
static const uint8_t first_handler_gc64[] = {
	0x4c, 0x8b, 0x1c, 0xca, /* mov ITYPE, [BASE+RA*8] */
	0x48, 0x8b, 0x2c, 0xc2, /* mov RB, [BASE+RD*8] */
};
static const uint8_t first_handler_gc32[] = {
	0x81, 0x7c, 0xca, 0x04, /* cmp dword [BASE+RA*8+4], LJ_T... */
};
static const uint8_t first_handler_arm64[] = {
	0x60, 0x7a, 0x7b, 0xf8, /* ldr CARG1, [BASE, RA, lsl #3] */
	0xb1, 0x06, 0x40, 0x79, /* ldrh RBw, [PC, #2] */
};
/* Instructions early in lj_vm_ffi_call, and its end. */
static const uint8_t ffi_call_head[] = {
	0x55, 0x48, 0x89, 0xe5, 0x53, /* push rbp; mov rbp, rsp; push rbx */
	0x48, 0x89, 0xfb, 0x8b, 0x43, /* mov CCSTATE, CARG1; mov eax, CCSTATE->spadj */
};
static const uint8_t ffi_call_tail[] = { 0xc9, 0xc3 }; /* leave; ret */
static const uint8_t ffi_call_head_arm64[] = {
	0xf3, 0x03, 0x00, 0xaa, /* mov CCSTATE, CARG1 */
	0x08, 0x08, 0x40, 0xb9, /* ldr TMP0w, CCSTATE:CARG1->spadj */
	0x69, 0x32, 0x40, 0x39, /* ldrb TMP1w, CCSTATE->nsp */
};
static const uint8_t ffi_call_tail_arm64[] = { 0xc0, 0x03, 0x5f, 0xd6 }; /* ret */
static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

struct mark {
	const uint8_t *bytes;
	size_t length;
};
#define MARK(bytes) \
	{ \
		bytes, sizeof(bytes) \
	}

/* What the code of the VM contains on each machine. */
static const struct patterns {
	uint16_t machine;
	const uint8_t *(*dispatch)(const uint8_t *at, const uint8_t *end);
	struct mark first_handlers[2]; /* alternatives */
	struct mark branch_target;     /* may precede it in builds for control-flow checks; or none */
	struct mark ffi_call;
	size_t ffi_call_before; /* bytes of the function before that mark */
	struct mark ffi_call_end;
} vm_patterns[] = {
	{ EM_X86_64,
	  vm_code_x86_64_dispatch,
	  { MARK(first_handler_gc64), MARK(first_handler_gc32) },
	  MARK(endbr64),
	  MARK(ffi_call_head),
	  0,
	  MARK(ffi_call_tail) },
	/* Three instructions make lj_vm_ffi_call's frame, in varying order. */
	{ EM_AARCH64,
	  vm_code_arm64_dispatch,
	  { MARK(first_handler_arm64), MARK(first_handler_arm64) },
	  { NULL, 0 },
	  MARK(ffi_call_head_arm64),
	  12,
	  MARK(ffi_call_tail_arm64) },
};
#undef MARK

enum {
	DISPATCH_GAP_MAX = 4096, /* between two dispatches of one VM */
	FIRST_HANDLER_MAX = 512, /* from its start to its dispatch */
	FFI_CALL_MAX = 512,
	TAIL_MAX = 8192, /* routines behind the last dispatch */
};

/* Code is read in such parts: a browser has 200 MB of it. A part repeats the last bytes of the one before. */
enum { PART_BYTES = 1 << 20, PART_REPEATS = 16 };

/* All code of a module; segments that overlap may claim more than there is. */
enum { CODE_BYTES_MAX = 1 << 30 };

/* Dispatches close together, by their addresses. */
struct cluster {
	uint64_t first, last;
	unsigned count;
};

static const uint8_t *find_mark(const uint8_t *from, const uint8_t *end, const struct mark *mark)
{
	return memmem(from, (size_t)(end - from), mark->bytes, mark->length);
}

/* Add the dispatches in a part of the code. True once a run of them ends that is dense enough for a VM. */
static bool add_dispatches(const struct patterns *patterns, const uint8_t *part, size_t length,
			   uint64_t address, struct cluster *cluster)
{
	const uint8_t *at = part, *end = part + length;

	for (; (at = patterns->dispatch(at, end)) != NULL; at++) {
		const uint64_t dispatch = address + (size_t)(at - part);

		if (cluster->count != 0 && dispatch <= cluster->last)
			continue; /* the part before had it */
		if (cluster->count == 0 || dispatch - cluster->last > DISPATCH_GAP_MAX) {
			if (cluster->count >= VM_CODE_DISPATCHES_MIN)
				return true;
			*cluster = (struct cluster){ .first = dispatch };
		}
		cluster->last = dispatch;
		cluster->count++;
	}
	return false;
}

/* The first run of dispatches dense enough for a VM. part has room for PART_BYTES. */
static enum vm_find_status find_cluster(struct memory *memory, const struct patterns *patterns,
					const struct elf_segment *segment, uint8_t *part, struct cluster *ret)
{
	struct cluster cluster = { .count = 0 };
	uint64_t at = segment->begin, left;

	for (;; at += PART_BYTES - PART_REPEATS) {
		left = segment->end - at;
		if (left > PART_BYTES)
			left = PART_BYTES;
		if (memory_read(memory, at, part, left) != MEMORY_OK)
			return VM_FIND_UNREADABLE;
		if (add_dispatches(patterns, part, left, at, &cluster) || at + left == segment->end)
			break;
	}
	*ret = cluster;
	return cluster.count >= VM_CODE_DISPATCHES_MIN ? VM_FIND_OK : VM_FIND_NONE;
}

static const uint8_t *find_first_handler(const struct patterns *patterns, const uint8_t *code,
					 const uint8_t *dispatch)
{
	const uint8_t *from = dispatch - code > FIRST_HANDLER_MAX ? dispatch - FIRST_HANDLER_MAX : code;
	const uint8_t *head = find_mark(from, dispatch, &patterns->first_handlers[0]);
	const struct mark *target = &patterns->branch_target;

	if (head == NULL)
		head = find_mark(from, dispatch, &patterns->first_handlers[1]);
	if (head != NULL && target->bytes != NULL && head - code >= (ptrdiff_t)target->length &&
	    memcmp(head - target->length, target->bytes, target->length) == 0)
		head -= target->length;
	return head;
}

/* From the code around the dispatches, which begins at this address. */
static bool find_extent(const struct patterns *patterns, const uint8_t *code, size_t length, uint64_t address,
			const struct cluster *cluster, struct vm_extent *ret)
{
	const uint8_t *end = code + length, *last = code + (cluster->last - address), *first, *call, *tail;

	first = find_first_handler(patterns, code, code + (cluster->first - address));
	if (first == NULL)
		return false;
	if (end - last > TAIL_MAX)
		end = last + TAIL_MAX;
	*ret = (struct vm_extent){ .begin = address + (first - code), .end = address + (end - code) };
	call = find_mark(last, end, &patterns->ffi_call);
	if (call == NULL)
		return true;
	tail = find_mark(call, code + length, &patterns->ffi_call_end);
	call -= patterns->ffi_call_before;
	ret->end = ret->ffi_call = address + (call - code);
	if (tail != NULL && tail - call < FFI_CALL_MAX)
		ret->ffi_call_end = address + (tail - code) + patterns->ffi_call_end.length;
	else
		ret->ffi_call = 0;
	return true;
}

/* Read the code around the dispatches, as much as may belong to the VM, and find its ends. */
static enum vm_find_status find_ends(struct memory *memory, const struct patterns *patterns,
				     const struct elf_segment *segment, const struct cluster *cluster,
				     struct vm_extent *ret_extent)
{
	const uint64_t before = FIRST_HANDLER_MAX + patterns->branch_target.length;
	const uint64_t behind = TAIL_MAX + FFI_CALL_MAX + patterns->ffi_call_end.length;
	const uint64_t begin = cluster->first - segment->begin > before ? cluster->first - before
									: segment->begin;
	const uint64_t end = segment->end - cluster->last > behind ? cluster->last + behind : segment->end;
	enum vm_find_status status = VM_FIND_NONE;
	uint8_t *code = malloc(end - begin);

	if (code == NULL || memory_read(memory, begin, code, end - begin) != MEMORY_OK)
		status = VM_FIND_UNREADABLE;
	else if (find_extent(patterns, code, end - begin, begin, cluster, ret_extent))
		status = VM_FIND_OK;
	free(code);
	return status;
}

static const struct patterns *patterns_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(vm_patterns) / sizeof(vm_patterns[0]); i++)
		if (vm_patterns[i].machine == machine)
			return &vm_patterns[i];
	return NULL;
}

enum vm_find_status vm_find_by_dispatch(struct memory *memory, const struct elf_image *image,
					struct vm_extent *ret_extent)
{
	const struct patterns *patterns = patterns_of(image->machine);
	enum vm_find_status status = VM_FIND_NONE;
	uint64_t next, left = CODE_BYTES_MAX;
	struct cluster cluster;
	uint8_t *part;

	if (patterns == NULL)
		return VM_FIND_NONE;
	part = malloc(PART_BYTES);
	if (part == NULL)
		return VM_FIND_UNREADABLE;
	for (size_t i = 0; i < image->segment_count && status == VM_FIND_NONE; i++) {
		const struct elf_segment *segment = &image->segments[i];

		if ((segment->flags & PF_X) == 0 || segment->end == segment->begin)
			continue;
		if (segment->end - segment->begin > left) {
			status = VM_FIND_UNREADABLE;
			break;
		}
		left -= segment->end - segment->begin;
		status = find_cluster(memory, patterns, segment, part, &cluster);
		if (status == VM_FIND_OK)
			status = find_ends(memory, patterns, segment, &cluster, ret_extent);
	}
	free(part);
	/* Without FFI, the VM ends where the next function begins that has an unwind entry. */
	if (status == VM_FIND_OK && ret_extent->ffi_call == 0 &&
	    find_next_function(memory, image, ret_extent->end - TAIL_MAX, &next) && next < ret_extent->end)
		ret_extent->end = next;
	return status;
}
