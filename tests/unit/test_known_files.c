/* SPDX-License-Identifier: MIT */
/* What one process has told of a file, taken over for another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/inspect/known_files.h"

enum { BASE = 0x10000, ELSEWHERE = 0x7f0000, CODE = 0x800, CODE_END = 0x880, SIZE = 0x1000 };

/* A file of its own bytes, mapped at base. */
struct process {
	struct memory memory; /* must be first */
	uint64_t base;
	uint8_t bytes[SIZE];
};

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct process *process = (struct process *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t at = ranges[i].address - process->base;

		ranges[i].status = at < SIZE && ranges[i].length <= SIZE - at ? MEMORY_OK : MEMORY_UNMAPPED;
		if (ranges[i].status == MEMORY_OK)
			memcpy(ranges[i].copy, process->bytes + at, ranges[i].length);
	}
}

static struct process process_at(uint64_t base)
{
	struct process process = { .memory.read_ranges = read_ranges, .base = base };

	for (size_t i = 0; i < SIZE; i++)
		process.bytes[i] = (uint8_t)(i * 7);
	return process;
}

static struct file_identity identity_of(struct process *process, uint64_t inode)
{
	const struct module module = {
		.begin = process->base,
		.end = process->base + SIZE,
		.base = process->base,
		.inode = inode,
	};
	struct file_identity identity;

	assert_true(file_identity_read(&module, &process->memory, NULL, &identity));
	return identity;
}

static struct known_vm vm_at(uint64_t base, bool confirmed)
{
	return (struct known_vm){
		.status = RECOGNISE_OK,
		.vm = { .begin = base + CODE,
			.end = base + CODE_END,
			.ffi_call = base + CODE_END,
			.ffi_call_end = base + CODE_END + 8,
			.traces_open = !confirmed,
			.confirmed = confirmed },
	};
}

/* Of a process at BASE. */
static void note(struct known_files *files, bool confirmed)
{
	struct process process = process_at(BASE);
	const struct file_identity identity = identity_of(&process, 1);
	const struct known_vm known = vm_at(BASE, confirmed);

	known_files_note(files, &identity, &process.memory, BASE, &known);
}

static bool finds(struct known_files *files, struct process *process, uint64_t inode,
		  struct known_vm *ret_known)
{
	const struct file_identity identity = identity_of(process, inode);

	return known_files_find(files, &identity, &process->memory, process->base, ret_known);
}

static int set_up(void **state)
{
	*state = known_files_new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	known_files_free(*state);
	return 0;
}

static void a_vm_is_known_wherever_its_file_is_mapped(void **state)
{
	struct process process = process_at(ELSEWHERE);
	struct known_vm known;

	assert_false(finds(*state, &process, 1, &known));
	note(*state, true);
	assert_true(finds(*state, &process, 1, &known));
	assert_int_equal(known.status, RECOGNISE_OK);
	assert_true(known.vm.confirmed);
	assert_int_equal(known.vm.begin, ELSEWHERE + CODE);
	assert_int_equal(known.vm.end, ELSEWHERE + CODE_END);
	assert_int_equal(known.vm.ffi_call, ELSEWHERE + CODE_END);
	assert_int_equal(known.vm.ffi_call_end, ELSEWHERE + CODE_END + 8);
}

static void another_file_is_another_one(void **state)
{
	struct process process = process_at(ELSEWHERE);
	struct known_vm known;

	note(*state, true);
	assert_false(finds(*state, &process, 2, &known));
	process.bytes[FILE_HEAD_BYTES - 1] ^= 1; /* its build id, say */
	assert_false(finds(*state, &process, 1, &known));
}

static void other_code_in_the_same_file_is_not_believed(void **state)
{
	struct process process = process_at(ELSEWHERE);
	struct known_vm known;

	note(*state, true);
	process.bytes[FILE_HEAD_BYTES + 1] ^= 1; /* not of the VM */
	assert_true(finds(*state, &process, 1, &known));
	process.bytes[CODE_END - 1] ^= 1;
	assert_false(finds(*state, &process, 1, &known));
}

static void what_a_state_has_confirmed_stays_confirmed(void **state)
{
	struct process process = process_at(ELSEWHERE);
	struct known_vm known;

	note(*state, false);
	assert_true(finds(*state, &process, 1, &known));
	assert_false(known.vm.confirmed);
	note(*state, true);
	note(*state, false);
	assert_true(finds(*state, &process, 1, &known));
	assert_true(known.vm.confirmed);
	assert_false(known.vm.traces_open);
}

static void that_there_is_no_vm_is_known_too(void **state)
{
	struct process process = process_at(BASE);
	const struct file_identity identity = identity_of(&process, 3);
	struct known_vm known = { .status = RECOGNISE_NO_VM };

	known_files_note(*state, &identity, &process.memory, BASE, &known);
	known.status = RECOGNISE_OK;
	assert_true(finds(*state, &process, 3, &known));
	assert_int_equal(known.status, RECOGNISE_NO_VM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_vm_is_known_wherever_its_file_is_mapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_is_another_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_code_in_the_same_file_is_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_state_has_confirmed_stays_confirmed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(that_there_is_no_vm_is_known_too, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
