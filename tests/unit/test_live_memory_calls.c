/* SPDX-License-Identifier: MIT */
/* How ljspy asks the kernel for a process's memory, and what it does not ask for while it may not wait. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(process_vm_readv);
INSTEAD_OF(pread);
INSTEAD_OF(process_thread_with_memory);
INSTEAD_OF(resident_open);
INSTEAD_OF(errands_run);
INSTEAD_OF(errands_may_wait);
INSTEAD_OF(errands_serve_nobody);
INSTEAD_OF(errands_pause);

enum { PID = INT_MAX - 1, OTHER_TID = INT_MAX, MEBIBYTE = 1 << 20 }; /* no process has these numbers */

/*---- The kernel ----*/

/*
 * The process has memory from here on, each byte of which tells of its address; behind it nothing is mapped.
 */
enum { BEGIN = 0x10000, END = 0x18000 };

static struct {
	int error;     /* of the call as a whole; 0: none */
	pid_t working; /* the thread through which memory can be read; 0: each */
	bool copies;
	unsigned int calls;
	size_t vectors[8];
	pid_t tids[8];
	/* Of reads of a file: so many bytes at most, if any; so many are interrupted first. */
	size_t file_piece;
	unsigned int file_interrupts;
	bool file_has_ended;
} kernel;

static uint8_t byte_at(uint64_t address)
{
	return (uint8_t)(address * 7 + (address >> 8));
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
				const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
	ssize_t done = 0;

	assert_int_equal(local_count, remote_count);
	assert_int_equal(flags, 0);
	kernel.vectors[kernel.calls % 8] = local_count;
	kernel.tids[kernel.calls++ % 8] = pid;
	errno = kernel.error;
	if (kernel.working && pid != kernel.working)
		errno = ESRCH;
	if (errno)
		return -1;
	for (size_t i = 0; i < local_count; i++) {
		const uint64_t address = (uintptr_t)remote[i].iov_base;

		assert_int_equal(local[i].iov_len, remote[i].iov_len);
		if (kernel.copies && (address < BEGIN || address + remote[i].iov_len > END))
			break;
		for (size_t n = 0; kernel.copies && n < local[i].iov_len; n++)
			((uint8_t *)local[i].iov_base)[n] = byte_at(address + n);
		done += (ssize_t)local[i].iov_len;
	}
	errno = EFAULT;
	return done ? done : -1;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (kernel.file_interrupts) {
		kernel.file_interrupts--;
		errno = EINTR;
		return -1;
	}
	if (kernel.file_has_ended)
		return 0;
	return __real_pread(fd, bytes,
			    kernel.file_piece && kernel.file_piece < size ? kernel.file_piece : size, offset);
}

pid_t __wrap_process_thread_with_memory(pid_t pid)
{
	assert_true(pid == PID || pid == getpid());
	return kernel.working;
}

static int pagemap;

int __wrap_resident_open(pid_t pid)
{
	assert_int_equal(pid, PID);
	return pagemap;
}

/*---- Errands ----*/

static struct {
	bool may_wait, ends, serve_nobody;
	unsigned int count;
} errand;

bool __wrap_errands_may_wait(const struct errands *errands)
{
	assert_non_null(errands);
	return errand.may_wait;
}

bool __wrap_errands_serve_nobody(const struct errands *errands)
{
	assert_non_null(errands);
	return errand.serve_nobody;
}

bool __wrap_errands_run(struct errands *errands, errand_work *work, errand_work *undo, void *arguments,
			size_t size)
{
	(void)errands;
	(void)undo;
	assert_true(errand.may_wait);
	assert_true(size > 0);
	errand.count++;
	if (errand.ends)
		work(arguments);
	return errand.ends;
}

/*---- Reads ----*/

static struct live_memory *live;
static struct maps *maps;

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.copies = true;
	memset(&errand, 0, sizeof(errand));
	errand.may_wait = errand.ends = true;
	live = live_memory_new(PID);
	maps = NULL;
	return live ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	live_memory_free(live);
	maps_free(maps);
	return 0;
}

static enum memory_status read_at(uint64_t address, size_t length)
{
	uint8_t copy[0x8000] = { 0 };
	enum memory_status status;

	assert_in_range(length, 0, sizeof(copy));
	status = memory_read(live_memory_memory(live), address, copy, length);
	for (size_t i = 0; status == MEMORY_OK && i < length; i++)
		assert_int_equal(copy[i], byte_at(address + i));
	return status;
}

static void what_the_kernel_says_of_all_is_said_of_each(void **state)
{
	static const struct {
		int error;
		enum memory_status status;
	} errors[] = { { ESRCH, MEMORY_GONE },
		       { EINVAL, MEMORY_UNMAPPED },
		       { ENOMEM, MEMORY_REFUSED },
		       { EACCES, MEMORY_REFUSED } };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		uint8_t copies[3];
		struct memory_range ranges[] = {
			{ .address = BEGIN, .copy = &copies[0], .length = 1 },
			{ .address = BEGIN, .copy = &copies[1], .length = 0 },
			{ .address = BEGIN, .copy = &copies[2], .length = 1 },
		};

		kernel.error = errors[i].error;
		memory_read_ranges(live_memory_memory(live), ranges, 3);
		assert_int_equal(ranges[0].status, errors[i].status);
		assert_int_equal(ranges[1].status, MEMORY_OK);
		assert_int_equal(ranges[2].status, errors[i].status);
	}
	kernel.error = 0;
	assert_int_equal(read_at(BEGIN, 16), MEMORY_OK);
}

static void a_range_that_is_not_mapped_costs_one_more_call(void **state)
{
	uint8_t copies[4][8];
	struct memory_range ranges[] = {
		{ .address = BEGIN, .copy = copies[0], .length = 8 },
		{ .address = END - 4, .copy = copies[1], .length = 8 },
		{ .address = END - 8, .copy = copies[2], .length = 8 },
		{ .address = BEGIN + 8, .copy = copies[3], .length = 8 },
	};

	(void)state;
	memory_read_ranges(live_memory_memory(live), ranges, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(ranges[i].status, i == 1 ? MEMORY_UNMAPPED : MEMORY_OK);
	assert_int_equal(copies[3][0], byte_at(BEGIN + 8));
	assert_int_equal(kernel.calls, 2);
	assert_int_equal(kernel.vectors[0], 4);
	assert_int_equal(kernel.vectors[1], 2);
	assert_int_equal(kernel.tids[0], PID);
}

static void a_call_has_as_many_ranges_as_the_kernel_takes(void **state)
{
	enum { COUNT = IOV_MAX + 3 };
	static struct memory_range ranges[COUNT];
	static uint8_t copies[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		ranges[i] = (struct memory_range){ .address = BEGIN + i, .copy = &copies[i], .length = 1 };
	memory_read_ranges(live_memory_memory(live), ranges, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(ranges[i].status, MEMORY_OK);
		assert_int_equal(copies[i], byte_at(BEGIN + i));
	}
	assert_int_equal(kernel.calls, 2);
	assert_int_equal(kernel.vectors[0], IOV_MAX);
	assert_int_equal(kernel.vectors[1], 3);
}

/* No bytes are copied here: the test has no such room. */
static void a_call_has_a_gibibyte_at_most(void **state)
{
	const size_t half = 512 * (size_t)MEBIBYTE;
	struct memory_range ranges[] = {
		{ .address = BEGIN, .length = half },     { .address = BEGIN, .length = half },
		{ .address = BEGIN, .length = 1 },        { .address = BEGIN, .length = 2 * half + 1 },
		{ .address = BEGIN, .length = 2 * half },
	};

	(void)state;
	kernel.copies = false;
	memory_read_ranges(live_memory_memory(live), ranges, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(ranges[i].status, i == 3 ? MEMORY_UNMAPPED : MEMORY_OK);
	assert_int_equal(kernel.calls, 3);
	assert_int_equal(kernel.vectors[0], 2);
	assert_int_equal(kernel.vectors[1], 1);
	assert_int_equal(kernel.vectors[2], 1);
}

/* Those of the upper half of 64 bits are no process's, and not asked for. */
static void no_range_reaches_into_the_kernels_half(void **state)
{
	struct memory_range last = { .address = INT64_MAX - 8, .length = 8 };

	(void)state;
	kernel.copies = false;
	memory_read_ranges(live_memory_memory(live), &last, 1);
	assert_int_equal(last.status, MEMORY_OK);
	assert_int_equal(kernel.calls, 1);
	last.address++;
	memory_read_ranges(live_memory_memory(live), &last, 1);
	assert_int_equal(last.status, MEMORY_UNMAPPED);
	assert_int_equal(kernel.calls, 1);
}

static void memory_is_read_through_a_thread_that_has_it(void **state)
{
	uint8_t copies[2];
	struct memory_range ranges[] = { { .address = BEGIN, .copy = &copies[0], .length = 1 },
					 { .address = END, .copy = &copies[1], .length = 1 } };

	(void)state;
	kernel.working = OTHER_TID;
	memory_read_ranges(live_memory_memory(live), ranges, 2);
	assert_int_equal(ranges[0].status, MEMORY_OK);
	assert_int_equal(copies[0], byte_at(BEGIN));
	assert_int_equal(ranges[1].status, MEMORY_UNMAPPED);
	assert_int_equal(kernel.tids[0], PID);
	assert_int_equal(kernel.tids[1], OTHER_TID);
	/* It is remembered. */
	kernel.calls = 0;
	assert_int_equal(read_at(BEGIN, 4), MEMORY_OK);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(kernel.tids[0], OTHER_TID);
	/* Without another thread there is nothing to try again. */
	kernel.calls = 0;
	kernel.error = ESRCH;
	assert_int_equal(read_at(BEGIN, 4), MEMORY_GONE);
	assert_int_equal(kernel.calls, 1);
	kernel.working = 0;
	assert_int_equal(read_at(BEGIN, 4), MEMORY_GONE);
	assert_int_equal(kernel.calls, 2);
}

/* Whichever range it is whose memory is gone. */
static void a_thread_that_has_memory_is_looked_for_once(void **state)
{
	uint8_t copies[3];
	struct memory_range ranges[] = { { .address = BEGIN, .copy = &copies[0], .length = 0 },
					 { .address = BEGIN, .copy = &copies[1], .length = 1 },
					 { .address = BEGIN + 1, .copy = &copies[2], .length = 1 } };

	(void)state;
	kernel.working = OTHER_TID;
	memory_read_ranges(live_memory_memory(live), ranges, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ranges[i].status, MEMORY_OK);
	assert_int_equal(copies[2], byte_at(BEGIN + 1));
	assert_int_equal(kernel.calls, 2);
}

/* This very process, by its file. */
static void where_the_file_serves_the_call_is_asked_no_more(void **state)
{
	static const uint8_t bytes[] = "bytes of ljspy's own";
	struct live_memory *own = live_memory_new(getpid());
	uint8_t copy[sizeof(bytes)];

	(void)state;
	kernel.error = ENOSYS;
	for (int i = 0; i < 3; i++) {
		memset(copy, 0, sizeof(copy));
		assert_int_equal(memory_read(live_memory_memory(own), (uintptr_t)bytes, copy, sizeof(copy)),
				 MEMORY_OK);
		assert_memory_equal(copy, bytes, sizeof(bytes));
		assert_int_equal(kernel.calls, 1);
	}
	assert_int_equal(memory_read(live_memory_memory(own), (uintptr_t)bytes, copy, 0), MEMORY_OK);
	assert_int_equal(memory_read(live_memory_memory(own), INT64_MAX, copy, 1), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(live_memory_memory(own), 8, copy, 1), MEMORY_UNMAPPED);
	live_memory_free(own);
	/* Where it does not, the call may do later. */
	assert_int_equal(read_at(BEGIN, 4), MEMORY_GONE);
	kernel.error = 0;
	assert_int_equal(read_at(BEGIN, 4), MEMORY_OK);
}

static void bytes_of_the_file_come_in_pieces(void **state)
{
	static const uint8_t bytes[] = "more bytes of ljspy's own";
	struct live_memory *own = live_memory_new(getpid());
	uint8_t copy[sizeof(bytes)];

	(void)state;
	kernel.error = EPERM;
	for (kernel.file_piece = 1; kernel.file_piece < 8; kernel.file_piece += 3) {
		memset(copy, 0, sizeof(copy));
		kernel.file_interrupts = 2;
		assert_int_equal(memory_read(live_memory_memory(own), (uintptr_t)bytes, copy, sizeof(copy)),
				 MEMORY_OK);
		assert_memory_equal(copy, bytes, sizeof(bytes));
	}
	kernel.file_has_ended = true;
	assert_int_equal(memory_read(live_memory_memory(own), (uintptr_t)bytes, copy, sizeof(copy)),
			 MEMORY_GONE);
	live_memory_free(own);
}

/*---- Files ----*/

enum {
	ANONYMOUS = 0x10000,
	FILE_AT = 0x12000,
	IN_MEMORY = 0x13000, /* the only page of the file that is */
	ANONYMOUS_AGAIN = 0x15000,
	UNMAPPED = 0x17000,
	PAGE = 0x1000,
};

static const char with_a_file[] = "10000-12000 rw-p 00000000 00:00 0 [heap]\n"
				  "12000-15000 r--p 00000000 fe:01 5 /file\n"
				  "15000-16000 rw-p 00000000 00:00 0\n"
				  "16000-17000 r--p 00000000 00:00 0\n";

/* From now on, reads of files are errands. The numbers of pages in memory are told if they can be. */
static void beware(bool tells_pages)
{
	const uint64_t present = UINT64_C(1) << 63;

	maps = maps_new(PID);
	assert_int_equal(maps_parse(maps, with_a_file, strlen(with_a_file)), 0);
	pagemap = -EACCES;
	if (tells_pages) {
		pagemap = memfd_create("pagemap", MFD_CLOEXEC);
		assert_true(pagemap >= 0);
		assert_int_equal(ftruncate(pagemap, (END / PAGE + 1) * sizeof(present)), 0);
		assert_int_equal(
			pwrite(pagemap, &present, sizeof(present), IN_MEMORY / PAGE * sizeof(present)),
			sizeof(present));
	}
	live_memory_beware(live, maps, (struct errands *)&errand);
}

/* Read it: is that an errand? It is read all the same. */
static bool is_errand(uint64_t address, size_t length)
{
	errand.count = 0;
	assert_int_equal(read_at(address, length), MEMORY_OK);
	assert_in_range(errand.count, 0, 1);
	return errand.count == 1;
}

static void what_is_not_in_memory_is_an_errand(void **state)
{
	(void)state;
	assert_false(is_errand(FILE_AT, 1));
	beware(true);
	assert_false(is_errand(ANONYMOUS, 16));
	assert_false(is_errand(FILE_AT - 16, 16));
	assert_true(is_errand(FILE_AT, 16));
	assert_true(is_errand(FILE_AT - 1, 2));
	assert_true(is_errand(IN_MEMORY - 1, 1));
	assert_false(is_errand(IN_MEMORY, 1));
	assert_false(is_errand(IN_MEMORY, PAGE));
	assert_false(is_errand(IN_MEMORY + PAGE - 1, 1));
	assert_true(is_errand(IN_MEMORY - 1, 2));
	assert_true(is_errand(IN_MEMORY - 1, PAGE + 2));
	assert_true(is_errand(IN_MEMORY + PAGE - 1, 2));
	assert_true(is_errand(IN_MEMORY + PAGE, 1));
	assert_false(is_errand(ANONYMOUS_AGAIN, 16));
	assert_false(is_errand(UNMAPPED - 1, 1));
}

/* Another program may be to deliver it. */
static void memory_without_a_file_is_an_errand_for_who_serves_nobody(void **state)
{
	(void)state;
	beware(true);
	errand.serve_nobody = true;
	assert_true(is_errand(ANONYMOUS, 16));
	assert_true(is_errand(FILE_AT - 16, 16));
	assert_false(is_errand(IN_MEMORY, 16));
	assert_true(is_errand(ANONYMOUS_AGAIN, 16));
	pagemap = -EACCES;
	live_memory_beware(live, maps, (struct errands *)&errand);
	assert_false(is_errand(ANONYMOUS, 16));
	assert_true(is_errand(FILE_AT, 16));
}

/* Two that lie side by side are as one, but not across what is between others. */
static void memory_without_a_file_is_remembered(void **state)
{
	static const char file_only[] = "10000-18000 r--p 00000000 fe:01 5 /file\n";

	(void)state;
	beware(true);
	assert_false(is_errand(ANONYMOUS + 16, PAGE));
	assert_false(is_errand(ANONYMOUS_AGAIN, 2 * PAGE));
	assert_false(is_errand(ANONYMOUS + 32, PAGE));
	assert_int_equal(maps_parse(maps, file_only, strlen(file_only)), 0);
	assert_false(is_errand(ANONYMOUS + 16, 1));
	assert_false(is_errand(FILE_AT - 1, 1));
	assert_false(is_errand(ANONYMOUS_AGAIN, 1));
	assert_false(is_errand(UNMAPPED - 1, 1));
	/* What was not asked for, or ends behind it. */
	assert_true(is_errand(ANONYMOUS, 1));
	assert_true(is_errand(FILE_AT - 1, 2));
	assert_true(is_errand(UNMAPPED - 1, 2));
	live_memory_forget_maps(live);
	assert_true(is_errand(ANONYMOUS + 16, 1));
	assert_true(is_errand(ANONYMOUS_AGAIN, 1));
}

static void what_may_have_to_wait_is_left_out_while_none_may(void **state)
{
	uint8_t copies[4][2];
	struct memory_range ranges[] = {
		{ .address = IN_MEMORY, .copy = copies[0], .length = 2 },
		{ .address = FILE_AT, .copy = copies[1], .length = 2 },
		{ .address = ANONYMOUS, .copy = copies[2], .length = 2 },
		{ .address = ANONYMOUS_AGAIN, .copy = copies[3], .length = 2 },
	};

	(void)state;
	beware(true);
	errand.may_wait = false;
	memory_read_ranges(live_memory_memory(live), ranges, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ranges[i].status, i == 1 ? MEMORY_NOT_CAPTURED : MEMORY_OK);
		if (i != 1)
			assert_int_equal(copies[i][1], byte_at(ranges[i].address + 1));
	}
	assert_int_equal(kernel.calls, 2);
	errand.may_wait = true;
	memory_read_ranges(live_memory_memory(live), ranges, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ranges[i].status, MEMORY_OK);
		assert_int_equal(copies[i][1], byte_at(ranges[i].address + 1));
	}
}

/* What cannot be known is asked for if ljspy may wait, and taken for granted if it may not. */
static void where_pages_are_not_told_they_are_in_memory_for_who_may_not_wait(void **state)
{
	(void)state;
	beware(false);
	assert_true(is_errand(FILE_AT, 1));
	assert_true(is_errand(IN_MEMORY, 1));
	assert_false(is_errand(ANONYMOUS, 1));
	errand.may_wait = false;
	assert_false(is_errand(FILE_AT, 1));
	assert_false(is_errand(ANONYMOUS_AGAIN, 1));
}

static void an_errand_that_takes_too_long_captures_nothing(void **state)
{
	uint8_t copy = 3;

	(void)state;
	beware(true);
	errand.ends = false;
	assert_int_equal(memory_read(live_memory_memory(live), FILE_AT, &copy, 1), MEMORY_NOT_CAPTURED);
	assert_int_equal(copy, 3);
	errand.ends = true;
	/* One that ends says what the kernel says. */
	errand.count = 0;
	assert_int_equal(read_at(END, 1), MEMORY_UNMAPPED);
	assert_int_equal(errand.count, 1);
	kernel.error = ENOMEM;
	assert_int_equal(read_at(FILE_AT, 1), MEMORY_REFUSED);
}

static unsigned int pauses;
static bool is_abandoned;

bool __wrap_errands_pause(const struct errands *errands)
{
	pauses += errands == (struct errands *)&errand;
	return !is_abandoned;
}

/* Whoever searches a large heap does not let others wait until it is done. */
static void there_is_a_pause_for_each_mebibyte(void **state)
{
	(void)state;
	beware(true);
	pauses = 0;
	for (size_t bytes = 0; bytes < (size_t)3 * MEBIBYTE; bytes += 2 * PAGE) {
		assert_int_equal(pauses, bytes / MEBIBYTE);
		assert_int_equal(read_at(ANONYMOUS, 2 * PAGE), MEMORY_OK);
	}
	assert_int_equal(pauses, 3);
}

/* Until the caller wants it again. */
static void a_search_that_is_abandoned_reads_nothing_more(void **state)
{
	(void)state;
	beware(true);
	pauses = 0;
	is_abandoned = true;
	while (!pauses)
		read_at(ANONYMOUS, 2 * PAGE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(read_at(ANONYMOUS, PAGE), MEMORY_NOT_CAPTURED);
	is_abandoned = false;
	assert_int_equal(read_at(ANONYMOUS, PAGE), MEMORY_OK);
}

static void ranges_that_nobody_reads_are_no_errands(void **state)
{
	(void)state;
	beware(true);
	assert_int_equal(read_at(FILE_AT, 0), MEMORY_OK);
	assert_int_equal(memory_read(live_memory_memory(live), FILE_AT, NULL, SIZE_MAX / 2), MEMORY_UNMAPPED);
	assert_int_equal(read_at(INT64_MAX, 8), MEMORY_UNMAPPED);
	assert_int_equal(errand.count, 0);
}

static void an_errand_reads_through_the_thread_that_has_memory(void **state)
{
	(void)state;
	beware(true);
	kernel.working = OTHER_TID;
	assert_false(is_errand(ANONYMOUS, 1));
	kernel.calls = 0;
	assert_true(is_errand(FILE_AT, 1));
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(kernel.tids[0], OTHER_TID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_kernel_says_of_all_is_said_of_each, begin, end),
		cmocka_unit_test_setup_teardown(a_range_that_is_not_mapped_costs_one_more_call, begin, end),
		cmocka_unit_test_setup_teardown(a_call_has_as_many_ranges_as_the_kernel_takes, begin, end),
		cmocka_unit_test_setup_teardown(a_call_has_a_gibibyte_at_most, begin, end),
		cmocka_unit_test_setup_teardown(no_range_reaches_into_the_kernels_half, begin, end),
		cmocka_unit_test_setup_teardown(memory_is_read_through_a_thread_that_has_it, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_has_memory_is_looked_for_once, begin, end),
		cmocka_unit_test_setup_teardown(bytes_of_the_file_come_in_pieces, begin, end),
		cmocka_unit_test_setup_teardown(where_the_file_serves_the_call_is_asked_no_more, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_in_memory_is_an_errand, begin, end),
		cmocka_unit_test_setup_teardown(memory_without_a_file_is_an_errand_for_who_serves_nobody,
						begin, end),
		cmocka_unit_test_setup_teardown(memory_without_a_file_is_remembered, begin, end),
		cmocka_unit_test_setup_teardown(what_may_have_to_wait_is_left_out_while_none_may, begin, end),
		cmocka_unit_test_setup_teardown(
			where_pages_are_not_told_they_are_in_memory_for_who_may_not_wait, begin, end),
		cmocka_unit_test_setup_teardown(an_errand_that_takes_too_long_captures_nothing, begin, end),
		cmocka_unit_test_setup_teardown(there_is_a_pause_for_each_mebibyte, begin, end),
		cmocka_unit_test_setup_teardown(a_search_that_is_abandoned_reads_nothing_more, begin, end),
		cmocka_unit_test_setup_teardown(ranges_that_nobody_reads_are_no_errands, begin, end),
		cmocka_unit_test_setup_teardown(an_errand_reads_through_the_thread_that_has_memory, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
