/* SPDX-License-Identifier: MIT */
/* Where an interpreter begins and ends in a made-up module: by its unwind entry, and by its dispatches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/module/vm_code.h"
#include "luajit-layouts/module/vm_find.h"
#include "tests/unit/range_bytes.h"

enum {
	AT = 0x400000, /* the module's code; its unwind entries lie behind */
	CODE = 0x10000,
	HEADER = AT + CODE,
	TABLE = HEADER + 0x20,
	BYTES = CODE + 0x1000,
	VM = AT + 0x1230,
	VM_LENGTH = 0x3000,
	VM_LENGTH_MIN = 4096,
	VM_LENGTH_MAX = 65536,
	CALL_LENGTH = 0x80,
};

static struct {
	struct memory memory; /* first: what is read */
	uint8_t bytes[BYTES];
	size_t end; /* of the records of the table */
} module;

static struct elf_image image;
static struct vm_extent extent;

static uint64_t code_before; /* bytes of zeros before the module's */
static size_t longest_read;

static void read_module(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		struct memory_range range = ranges[i];
		uint64_t before = range.address < AT ? AT - range.address : 0;

		if (range.length > longest_read)
			longest_read = range.length;
		if (before > code_before)
			before = 0; /* it is not mapped */
		if (before > range.length)
			before = range.length;
		memset(range.copy, 0, before);
		range.address += before;
		range.copy = (uint8_t *)range.copy + before;
		range.length -= before;
		ranges[i].status = MEMORY_OK;
		if (range.length)
			range_bytes(&range, 1, AT, module.bytes, BYTES);
		if (range.length)
			ranges[i].status = range.status;
	}
}

static uint8_t *byte_at(uint64_t address)
{
	return module.bytes + (address - AT);
}

static void put(uint64_t address, const void *bytes, size_t size)
{
	assert_in_range(address + size - AT, size, BYTES);
	memcpy(byte_at(address), bytes, size);
}

static void put_32(uint64_t address, uint32_t value)
{
	put(address, &value, sizeof(value));
}

static int begin(void **state)
{
	static const uint8_t header[] = { 1, 0x1b /* relative, 32 bits */, 3, 0x3b };

	(void)state;
	memset(&module, 0, sizeof(module));
	module.memory.read_ranges = read_module;
	module.end = TABLE;
	code_before = 0;
	image = (struct elf_image){ .machine = EM_X86_64,
				    .segments = { { AT, AT + CODE, PF_R | PF_X },
						  { HEADER, AT + BYTES, PF_R } },
				    .segment_count = 2,
				    .eh_frame_hdr = HEADER };
	put(HEADER, header, sizeof(header));
	put_32(HEADER + sizeof(header), TABLE - (HEADER + sizeof(header)));
	extent = (struct vm_extent){ .begin = 1 };
	return 0;
}

/*---- Unwind entries ----*/

/* A record of so many bytes after its id; returns where these are. */
static uint64_t add_record(uint32_t id, const void *bytes, uint32_t length)
{
	const uint64_t place = module.end;

	put_32(place, length + 4);
	put_32(place + 4, id);
	put(place + 8, bytes, length);
	module.end = place + 8 + length;
	return place + 8;
}

/* The record that the next entries refer to. */
static uint64_t common;

static void add_common(const char *augmentation)
{
	uint8_t bytes[20] = { 1 };

	common = module.end;
	memcpy(bytes + 1, augmentation, strlen(augmentation));
	add_record(0, bytes, sizeof(bytes));
}

/* An entry for code, with instructions and padding behind them; returns where it is. */
static uint64_t add_entry(uint64_t code, uint32_t length, const void *rules, size_t rules_length,
			  size_t padding)
{
	uint8_t bytes[128] = { 0 };
	const uint64_t place = module.end;
	const int32_t distance = (int32_t)(code - (place + 8));

	memcpy(bytes, &distance, sizeof(distance));
	memcpy(bytes + 4, &length, sizeof(length));
	memcpy(bytes + 9, rules, rules_length);
	return add_record((uint32_t)(place + 4 - common), bytes, (uint32_t)(9 + rules_length + padding)) - 8;
}

#define RULES(text) (text), sizeof(text) - 1
#define SAVED "\x86\x02\x83\x03\x8f\x04\x8e\x05"
#define X86_64_VM "\x0e\x50" SAVED
#define TARANTOOL_VM "\x0e\x60" SAVED
#define X86_64_CALL "\x0e\x10\x86\x02\x0d\x06\x83\x03"
#define ARM64_SAVED \
	"\x93\x03\x94\x04\x95\x05\x96\x06\x97\x07\x98\x08\x99\x09\x9a\x0a\x9b\x0b\x9c\x0c" \
	"\x05\x48\x0d\x05\x49\x0e\x05\x4a\x0f\x05\x4b\x10\x05\x4c\x11\x05\x4d\x12\x05\x4e\x13\x05\x4f\x14"
#define ARM64_VM "\x9e\x01\x9d\x02" ARM64_SAVED
#define ARM64_SP_VM "\x0e\xd0\x01" ARM64_VM
#define ARM64_CALL "\x9e\x01\x9d\x02\x93\x03\x94\x04"
#define ARM64_OLD_VM \
	"\x0e\xd0\x01\x9d\x1a\x9e\x19\x93\x18\x94\x17\x95\x16\x96\x15\x97\x14\x98\x13\x99\x12\x9a\x11\x9b\x10" \
	"\x9c\x0f\x05\x48\x0e\x05\x49\x0d\x05\x4a\x0c\x05\x4b\x0b\x05\x4c\x0a\x05\x4d\x09\x05\x4e\x08\x05\x4f" \
	"\x07"
#define ARM64_OLD_CALL "\x0e\x20\x9d\x04\x9e\x03\x93\x02"

static enum vm_find_status find_entry(void)
{
	return vm_find_by_unwind_entry(&module.memory, &image, &extent);
}

static void assert_is_the_vm(bool has_call)
{
	assert_int_equal(extent.begin, VM);
	assert_int_equal(extent.end, VM + VM_LENGTH);
	assert_int_equal(extent.ffi_call, has_call ? VM + VM_LENGTH : 0);
	assert_int_equal(extent.ffi_call_end, has_call ? VM + VM_LENGTH + CALL_LENGTH : 0);
}

/* Other functions, and the VM with its call of C functions; with padding. */
static void add_vm(size_t padding)
{
	add_common("zR");
	add_entry(AT + 0x100, 0x100, RULES("\x0e\x10"), 3);
	add_common("zPR");
	add_entry(VM, VM_LENGTH, RULES(X86_64_VM), padding);
	add_entry(VM + VM_LENGTH, CALL_LENGTH, RULES(X86_64_CALL), padding);
	add_common("zR");
	add_entry(AT + 0x200, 0x100, RULES(X86_64_CALL), 0);
}

static void each_builds_entry_is_known(void **state)
{
	static const struct {
		uint16_t machine;
		const char *vm, *call;
		size_t vm_length, call_length;
	} builds[] = {
		{ EM_X86_64, X86_64_VM, X86_64_CALL, sizeof(X86_64_VM) - 1, sizeof(X86_64_CALL) - 1 },
		{ EM_X86_64, TARANTOOL_VM, X86_64_CALL, sizeof(TARANTOOL_VM) - 1, sizeof(X86_64_CALL) - 1 },
		{ EM_AARCH64, ARM64_VM, ARM64_CALL, sizeof(ARM64_VM) - 1, sizeof(ARM64_CALL) - 1 },
		{ EM_AARCH64, ARM64_SP_VM, ARM64_CALL, sizeof(ARM64_SP_VM) - 1, sizeof(ARM64_CALL) - 1 },
		{ EM_AARCH64, ARM64_OLD_VM, ARM64_OLD_CALL, sizeof(ARM64_OLD_VM) - 1,
		  sizeof(ARM64_OLD_CALL) - 1 },
	};

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		begin(state);
		image.machine = builds[i].machine;
		add_common("zPR");
		add_entry(VM, VM_LENGTH, builds[i].vm, builds[i].vm_length, 0);
		add_entry(VM + VM_LENGTH, CALL_LENGTH, builds[i].call, builds[i].call_length, 0);
		assert_int_equal(find_entry(), VM_FIND_OK);
		assert_is_the_vm(true);
		/* It is no other machine's. */
		image.machine = image.machine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
		extent.begin = 1;
		assert_int_equal(find_entry(), VM_FIND_NONE);
		assert_int_equal(extent.begin, 1);
	}
}

static void only_padding_may_follow_its_rules(void **state)
{
	(void)state;
	add_vm(5);
	assert_int_equal(find_entry(), VM_FIND_OK);
	assert_is_the_vm(true);
	begin(state);
	add_common("zPR");
	add_entry(VM, VM_LENGTH, RULES(X86_64_VM "\x83\x03"), 0);
	assert_int_equal(find_entry(), VM_FIND_NONE);
	begin(state);
	add_common("zPR");
	add_entry(VM, VM_LENGTH, RULES("\x0e\x50\x86\x02\x83\x03\x8f\x04\x8e"), 0);
	assert_int_equal(find_entry(), VM_FIND_NONE);
}

static void the_call_of_c_functions_is_right_behind(void **state)
{
	(void)state;
	/* A build without it. */
	add_common("zPR");
	add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	assert_is_the_vm(false);
	add_entry(VM + VM_LENGTH, CALL_LENGTH, RULES("\x0e\x10"), 0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	assert_is_the_vm(false);
	add_entry(VM + VM_LENGTH + 1, CALL_LENGTH, RULES(X86_64_CALL), 0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	assert_is_the_vm(false);
}

/* Linkers may put entries of different functions between the two, and either of them first. */
static void the_entry_of_the_call_may_be_anywhere(void **state)
{
	for (int is_first = 0; is_first <= 1; is_first++) {
		begin(state);
		add_common("zR");
		if (is_first)
			add_entry(VM + VM_LENGTH, CALL_LENGTH, RULES(X86_64_CALL), 3);
		add_entry(AT + 0x100, 0x100, RULES("\x0e\x10"), 3);
		add_common("zPR");
		add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 3);
		add_common("zR");
		add_entry(AT + 0x200, 0x100, RULES(X86_64_CALL), 0);
		if (!is_first)
			add_entry(VM + VM_LENGTH, CALL_LENGTH, RULES(X86_64_CALL), 0);
		assert_int_equal(find_entry(), VM_FIND_OK);
		assert_is_the_vm(true);
	}
}

static void a_vm_has_a_vms_size(void **state)
{
	static const struct {
		uint32_t length;
		enum vm_find_status status;
	} lengths[] = { { VM_LENGTH_MIN - 1, VM_FIND_NONE },
			{ VM_LENGTH_MIN, VM_FIND_OK },
			{ VM_LENGTH_MAX, VM_FIND_OK },
			{ VM_LENGTH_MAX + 1, VM_FIND_NONE } };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		begin(state);
		add_common("zPR");
		add_entry(VM, lengths[i].length, RULES(X86_64_VM), 0);
		assert_int_equal(find_entry(), lengths[i].status);
	}
}

/* A compiler's function may have the same rules, but not the same routine for errors. */
static void the_entry_has_a_personality(void **state)
{
	uint64_t entry, first;

	(void)state;
	add_common("zR");
	add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
	assert_int_equal(find_entry(), VM_FIND_NONE);
	begin(state);
	add_common("zPR");
	first = common;
	entry = add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	put_32(entry + 4, (uint32_t)(entry + 4 - TABLE) + 4); /* before the table */
	assert_int_equal(find_entry(), VM_FIND_NONE);
	put_32(entry + 4, 4); /* the entry itself */
	assert_int_equal(find_entry(), VM_FIND_NONE);
	put_32(entry + 4, (uint32_t)(entry + 4 - first));
	*byte_at(first + 8) = 3; /* another version */
	assert_int_equal(find_entry(), VM_FIND_NONE);
	*byte_at(first + 8) = 1;
	*byte_at(first + 12) = 'S';
	assert_int_equal(find_entry(), VM_FIND_NONE);
	/* What names it may be all that there is, but not less. */
	for (uint32_t length = 4; length <= 5; length++) {
		begin(state);
		common = module.end;
		add_record(0, "\1zPR", length);
		add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
		assert_int_equal(find_entry(), length == 5 ? VM_FIND_OK : VM_FIND_NONE);
	}
}

static void the_entry_has_no_more_data(void **state)
{
	uint64_t entry;

	(void)state;
	add_common("zPR");
	entry = add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	*byte_at(entry + 16) = 1;
	assert_int_equal(find_entry(), VM_FIND_NONE);
}

static void a_record_that_is_none_ends_the_table(void **state)
{
	uint64_t first;

	(void)state;
	first = module.end;
	add_vm(0);
	assert_int_equal(find_entry(), VM_FIND_OK);
	put_32(first, 3); /* shorter than its id */
	assert_int_equal(find_entry(), VM_FIND_NONE);
	put_32(first, 0);
	assert_int_equal(find_entry(), VM_FIND_NONE);
	put_32(first, 0x7fffffff);
	assert_int_equal(find_entry(), VM_FIND_NONE);
	/* As long as all that is left: there is nothing behind it. */
	put_32(first, (uint32_t)(AT + BYTES - first - 4));
	assert_int_equal(find_entry(), VM_FIND_NONE);
	put_32(first, (uint32_t)(AT + BYTES - first - 3));
	assert_int_equal(find_entry(), VM_FIND_NONE);
}

/* The table ends with its segment, be it in the middle of a record. */
static void the_table_ends_with_its_segment(void **state)
{
	(void)state;
	add_common("zPR");
	add_entry(VM, VM_LENGTH, RULES(X86_64_VM), 0);
	for (uint64_t end = TABLE + 1; end <= module.end; end++) {
		image.segments[1].end = end;
		assert_int_equal(find_entry(), end < module.end ? VM_FIND_NONE : VM_FIND_OK);
	}
}

static void a_header_of_another_kind_leads_nowhere(void **state)
{
	(void)state;
	add_vm(0);
	*byte_at(HEADER) = 2;
	assert_int_equal(find_entry(), VM_FIND_NONE);
	*byte_at(HEADER) = 1;
	*byte_at(HEADER + 1) = 0x1c;
	assert_int_equal(find_entry(), VM_FIND_NONE);
	*byte_at(HEADER + 1) = 0x1b;
	assert_int_equal(find_entry(), VM_FIND_OK);
	image.eh_frame_hdr = 0;
	assert_int_equal(find_entry(), VM_FIND_NONE);
	image.eh_frame_hdr = AT - 4;
	assert_int_equal(find_entry(), VM_FIND_UNREADABLE);
	image.eh_frame_hdr = HEADER;
	image.segments[1].begin = TABLE + 1; /* the table is in no segment */
	assert_int_equal(find_entry(), VM_FIND_NONE);
	image.segments[1].begin = TABLE;
	assert_int_equal(find_entry(), VM_FIND_OK);
	image.segments[1].end = AT + BYTES + 1;
	assert_int_equal(find_entry(), VM_FIND_UNREADABLE);
}

/*---- Dispatches ----*/

enum {
	DISPATCHES = VM_CODE_DISPATCHES_MIN,
	FIRST = VM + 0x80, /* dispatch */
	STEP = 0x100,
	LAST = FIRST + (DISPATCHES - 1) * STEP,
	GAP_MAX = 4096,
	TAIL_MAX = 8192,
	CALL = LAST + 0x100,
	NEAR = 512,
};

#define PUT(address, text) put(address, text, sizeof(text) - 1)
#define DISPATCH "\x83\xc3\x04\xc1\xe8\x10\x41\xff\x24\xee"
#define HANDLER "\x4c\x8b\x1c\xca\x48\x8b\x2c\xc2"
#define HANDLER_GC32 "\x81\x7c\xca\x04"
#define ENDBR64 "\xf3\x0f\x1e\xfa"
#define CALL_HEAD "\x55\x48\x89\xe5\x53\x48\x89\xfb\x8b\x43"
#define CALL_TAIL "\xc9\xc3"
#define ARM64_DISPATCH "\xb0\x46\x40\xb8\xc9\x0e\x30\x8b"
#define ARM64_HANDLER "\x60\x7a\x7b\xf8\xb1\x06\x40\x79"
#define ARM64_CALL_HEAD "\xf3\x03\x00\xaa\x08\x08\x40\xb9\x69\x32\x40\x39"
#define ARM64_CALL_TAIL "\xc0\x03\x5f\xd6"

static enum vm_find_status find_dispatches(void)
{
	return vm_find_by_dispatch(&module.memory, &image, &extent);
}

static void put_dispatches(uint64_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		PUT(first + i * STEP, DISPATCH);
}

static void put_vm(void)
{
	PUT(VM, HANDLER);
	put_dispatches(FIRST, DISPATCHES);
	PUT(CALL, CALL_HEAD);
	PUT(CALL + 0x40, CALL_TAIL);
}

static void a_vm_is_from_its_first_handler_to_the_call_of_c_functions(void **state)
{
	(void)state;
	put_vm();
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM);
	assert_int_equal(extent.end, CALL);
	assert_int_equal(extent.ffi_call, CALL);
	assert_int_equal(extent.ffi_call_end, CALL + 0x40 + 2);
	memset(byte_at(VM), 0, 8);
	PUT(VM + 4, HANDLER_GC32);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM + 4);
}

static void an_arm64_vm_has_marks_of_its_own(void **state)
{
	(void)state;
	put_vm();
	image.machine = EM_AARCH64;
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	PUT(VM, ARM64_HANDLER);
	for (size_t i = 0; i < DISPATCHES; i++)
		PUT(FIRST + i * STEP, ARM64_DISPATCH);
	PUT(CALL, ARM64_CALL_HEAD);
	PUT(CALL + 0x40, ARM64_CALL_TAIL);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM);
	/* Three instructions of the function come before its mark. */
	assert_int_equal(extent.end, CALL - 12);
	assert_int_equal(extent.ffi_call, CALL - 12);
	assert_int_equal(extent.ffi_call_end, CALL + 0x40 + 4);
	image.machine = EM_386;
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
}

static void a_vm_has_so_many_dispatches_close_together(void **state)
{
	(void)state;
	PUT(VM, HANDLER);
	put_dispatches(FIRST, DISPATCHES - 1);
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	PUT(LAST - STEP + GAP_MAX, DISPATCH);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST - STEP + GAP_MAX + TAIL_MAX);
	memset(byte_at(LAST - STEP + GAP_MAX), 0, 10);
	PUT(LAST - STEP + GAP_MAX + 1, DISPATCH);
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
}

/* Bytes that look like one may be anywhere. */
static void single_dispatches_before_and_behind_do_not_count(void **state)
{
	(void)state;
	put_vm();
	PUT(AT, DISPATCH);
	PUT(LAST + GAP_MAX + 0x10, DISPATCH);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM);
	assert_int_equal(extent.ffi_call, CALL);
}

static void the_first_handler_is_near_the_first_dispatch(void **state)
{
	(void)state;
	put_vm();
	memset(byte_at(VM), 0, 8);
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	PUT(FIRST - NEAR - 1, HANDLER);
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	memset(byte_at(FIRST - NEAR - 1), 0, 8);
	PUT(FIRST - NEAR, HANDLER);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, FIRST - NEAR);
}

static void a_target_of_branches_belongs_to_the_first_handler(void **state)
{
	(void)state;
	put_vm();
	PUT(VM - 4, ENDBR64);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM - 4);
	/* The code begins there. */
	image.segments[0].begin = VM - 4;
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM - 4);
	image.segments[0].begin = VM - 3;
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM);
}

static void a_call_of_c_functions_has_a_near_end(void **state)
{
	(void)state;
	put_vm();
	memset(byte_at(CALL + 0x40), 0, 2);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, CALL);
	assert_int_equal(extent.ffi_call, 0);
	assert_int_equal(extent.ffi_call_end, 0);
	PUT(CALL + NEAR, CALL_TAIL);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.ffi_call, 0);
	PUT(CALL + NEAR - 1, CALL_TAIL);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.ffi_call, CALL);
	assert_int_equal(extent.ffi_call_end, CALL + NEAR + 1);
}

static void a_vm_without_ffi_ends_where_the_next_function_begins(void **state)
{
	uint32_t distance;

	(void)state;
	put_vm();
	memset(byte_at(CALL), 0, 10);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + TAIL_MAX); /* none is known */
	add_common("zR");
	add_entry(VM - 0x200, 0x100, RULES("\x0e\x10"), 0);
	add_entry(LAST, 0x100, RULES("\x0e\x10"), 0); /* it is behind the last dispatch */
	add_entry(LAST + 0x900, 0x100, RULES("\x0e\x10"), 0);
	add_entry(LAST + 0x700, 0x100, RULES("\x0e\x10"), 0);
	add_entry(LAST + 0x800, 0x100, RULES("\x0e\x10"), 0);
	/* What entries have in common is of no function, and neither is an entry too short for an address. */
	distance = LAST + 0x600 - (uint32_t)(module.end + 8);
	add_record(0, &distance, sizeof(distance));
	distance = LAST + 0x600 - (uint32_t)(module.end + 8);
	add_record(1, &distance, sizeof(distance) - 1);
	put_32(module.end, distance >> 24); /* what is missing follows */
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + 0x700);
	assert_int_equal(extent.ffi_call, 0);
	/* An address is enough. */
	distance = LAST + 0x650 - (uint32_t)(module.end + 8);
	add_record(1, &distance, sizeof(distance));
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + 0x650);
	/* None is near. */
	begin(state);
	put_vm();
	memset(byte_at(CALL), 0, 10);
	add_common("zR");
	add_entry(LAST + TAIL_MAX + 1, 0x100, RULES("\x0e\x10"), 0);
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + TAIL_MAX);
	/* It is not longer than the code. */
	image.segments[0].end = LAST + 0x500;
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + 0x500);
	/* Without unwind entries, no next function is known. */
	image.eh_frame_hdr = 0;
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.end, LAST + 0x500);
}

/* Wherever one part ends and the next begins. */
static void much_code_is_read_in_parts(void **state)
{
	static const uint64_t places[] = { VM, FIRST, FIRST + STEP, LAST, CALL, CALL + 0x40 };
	const uint64_t part = 1 << 20;

	(void)state;
	put_vm();
	code_before = part;
	longest_read = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		for (uint64_t at = places[i] - 10; at <= places[i] + 20; at++) {
			image.segments[0].begin = at - part;
			extent = (struct vm_extent){ .begin = 1 };
			assert_int_equal(find_dispatches(), VM_FIND_OK);
			assert_int_equal(extent.begin, VM);
			assert_int_equal(extent.end, CALL);
			assert_int_equal(extent.ffi_call_end, CALL + 0x40 + 2);
		}
	}
	assert_int_equal(longest_read, part);
	/* Each dispatch counts once. */
	memset(byte_at(LAST), 0, sizeof(DISPATCH) - 1);
	for (uint64_t at = FIRST; at <= FIRST + 20; at++) {
		image.segments[0].begin = at - part;
		assert_int_equal(find_dispatches(), VM_FIND_NONE);
	}
	/* As in a part that ends with the code. */
	image.segments[0].begin = AT + CODE - part;
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
}

static void code_is_searched_that_can_be_executed(void **state)
{
	(void)state;
	put_vm();
	image.segments[0].flags = PF_R;
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	image.segments[1] = (struct elf_segment){ VM - 0x30, AT + CODE, PF_R | PF_X };
	assert_int_equal(find_dispatches(), VM_FIND_OK);
	assert_int_equal(extent.begin, VM);
	image.segments[1].end = image.segments[1].begin;
	assert_int_equal(find_dispatches(), VM_FIND_NONE);
	image.segments[1].end = AT + BYTES + 1;
	assert_int_equal(find_dispatches(), VM_FIND_UNREADABLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(each_builds_entry_is_known),
		TEST(only_padding_may_follow_its_rules),
		TEST(the_call_of_c_functions_is_right_behind),
		TEST(the_entry_of_the_call_may_be_anywhere),
		TEST(a_vm_has_a_vms_size),
		TEST(the_entry_has_a_personality),
		TEST(the_entry_has_no_more_data),
		TEST(a_record_that_is_none_ends_the_table),
		TEST(the_table_ends_with_its_segment),
		TEST(a_header_of_another_kind_leads_nowhere),
		TEST(a_vm_is_from_its_first_handler_to_the_call_of_c_functions),
		TEST(an_arm64_vm_has_marks_of_its_own),
		TEST(a_vm_has_so_many_dispatches_close_together),
		TEST(single_dispatches_before_and_behind_do_not_count),
		TEST(the_first_handler_is_near_the_first_dispatch),
		TEST(a_target_of_branches_belongs_to_the_first_handler),
		TEST(a_call_of_c_functions_has_a_near_end),
		TEST(a_vm_without_ffi_ends_where_the_next_function_begins),
		TEST(much_code_is_read_in_parts),
		TEST(code_is_searched_that_can_be_executed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
