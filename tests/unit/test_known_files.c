/* SPDX-License-Identifier: MIT */
/* What one process has told of a file, taken over for another one; and who waits for files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/inspect/known_files.h"
#include "src/inspect/patience.h"
#include "tests/unit/instead_of.h"

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

	assert_true(file_identity_read(&module, &process->memory, &identity));
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
static void note_vm(struct known_files *files, const struct known_vm *known)
{
	struct process process = process_at(BASE);
	const struct file_identity identity = identity_of(&process, 1);

	known_files_note(files, &identity, &process.memory, BASE, known);
}

static void note(struct known_files *files, bool confirmed)
{
	const struct known_vm known = vm_at(BASE, confirmed);

	note_vm(files, &known);
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

static void that_a_layout_is_unknown_holds_for_the_same_code(void **state)
{
	struct process same = process_at(ELSEWHERE), other = process_at(ELSEWHERE);
	struct known_vm known = vm_at(BASE, false);

	known.status = RECOGNISE_UNKNOWN_LAYOUT;
	note_vm(*state, &known);
	assert_true(finds(*state, &same, 1, &known));
	assert_int_equal(known.status, RECOGNISE_UNKNOWN_LAYOUT);
	assert_int_equal(known.vm.begin, ELSEWHERE + CODE);
	other.bytes[CODE] ^= 1;
	assert_false(finds(*state, &other, 1, &known));
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

/* The first process had no traces to confirm the rest by. */
static void what_traces_have_confirmed_is_added(void **state)
{
	struct process process = process_at(ELSEWHERE);
	struct known_vm known = vm_at(BASE, true);

	known.vm.traces_open = true;
	note_vm(*state, &known);
	assert_true(finds(*state, &process, 1, &known));
	assert_true(known.vm.confirmed && known.vm.traces_open);
	note(*state, true);
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

static struct {
	bool holds;
	unsigned int passed_on;
} tracer;

INSTEAD_OF(tracer_holds);
bool __wrap_tracer_holds(const struct tracer *of)
{
	(void)of;
	return tracer.holds;
}

INSTEAD_OF(tracer_pass_on);
void __wrap_tracer_pass_on(struct tracer *of)
{
	(void)of;
	tracer.passed_on++;
}

/* It would stand still for as long as a disk takes. While none is held, signals are passed on. */
static void while_a_thread_is_held_no_file_is_waited_for(void **state)
{
	struct patience patience = { .tracer = NULL };
	const struct known_files *files = *state;

	patience_begin(&patience, files);
	assert_true(errands_may_wait(known_files_errands(files)));
	errands_pause(known_files_errands(files));
	errands_pause(known_files_memory_errands(files));
	assert_int_equal(tracer.passed_on, 2);
	tracer.holds = true;
	assert_false(errands_may_wait(known_files_errands(files)));
	assert_false(errands_may_wait(known_files_memory_errands(files)));
	errands_pause(known_files_errands(files));
	assert_int_equal(tracer.passed_on, 2);
	patience_end(files);
	assert_true(errands_may_wait(known_files_errands(files)));
}

static void take_a_while(void *arguments)
{
	(void)arguments;
	usleep(2000);
}

static void do_nothing(void *arguments)
{
	(void)arguments;
}

/* What reading files uses up, reading memory has no longer. */
static void there_is_one_time_for_files_and_their_memory(void **state)
{
	struct known_files *files = *state;
	int nothing = 0;

	known_files_allow_ns(files, 1000 * 1000);
	errands_run(known_files_errands(files), take_a_while, NULL, &nothing, sizeof(nothing));
	assert_false(
		errands_run(known_files_memory_errands(files), do_nothing, NULL, &nothing, sizeof(nothing)));
	known_files_allow_ns(files, UINT64_MAX);
	assert_true(
		errands_run(known_files_memory_errands(files), do_nothing, NULL, &nothing, sizeof(nothing)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_vm_is_known_wherever_its_file_is_mapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_is_another_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_code_in_the_same_file_is_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(that_a_layout_is_unknown_holds_for_the_same_code, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_traces_have_confirmed_is_added, set_up, tear_down),
		cmocka_unit_test_setup_teardown(while_a_thread_is_held_no_file_is_waited_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_state_has_confirmed_stays_confirmed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(that_there_is_no_vm_is_known_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(there_is_one_time_for_files_and_their_memory, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
