/* SPDX-License-Identifier: MIT */
/* Unwinding this very process, by its own unwind tables and by damaged ones. */
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "tests/unit/own_module.h"
#include "unwind/native/native.h"

enum { FRAMES_MAX = 64, DAMAGES = 3000, MODULES_MAX = 64 };

struct extent {
	uint64_t begin, end;
};

/* This process's memory, with some bytes of unwind tables changed. */
struct damaged {
	struct memory memory; /* must be first */
	struct extent tables[MODULES_MAX];
	size_t table_count;
	unsigned int seed;    /* 0: nothing is changed */
	struct extent hidden; /* cannot be read; empty: all can */
	struct {
		uint64_t address, value;
	} word; /* a word that is another one */
};

struct fixture {
	struct damaged damaged;
	struct image *image;
	struct symbols *symbols;
	struct native_unwinder *unwinder;
};

static uint32_t next_number(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* Each address has one value for a seed, however often it is read. */
static void damage(const struct damaged *damaged, uint64_t address, uint8_t *byte)
{
	/* Expressions, DW_CFA_register, a signal frame, large numbers and lengths. */
	static const uint8_t nasty[] = { 0x09, 0x0f, 0x10, 0x16, 0x0a, 0x0e, 0x80, 0xff, 0x00, 'S' };
	unsigned int seed = damaged->seed * 2654435761u ^ (unsigned int)address * 40503u;

	next_number(&seed);
	if (next_number(&seed) % 24 == 0)
		*byte = next_number(&seed) % 2 ? nasty[next_number(&seed) % sizeof(nasty)]
					       : (uint8_t)next_number(&seed);
}

static void read_damaged(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct damaged *damaged = (const struct damaged *)memory;

	for (size_t i = 0; i < count; i++) {
		struct iovec local = { ranges[i].copy, ranges[i].length };
		struct iovec remote = { (void *)(uintptr_t)ranges[i].address, ranges[i].length };
		uint64_t begin = ranges[i].address, end = begin + ranges[i].length;

		if (damaged->hidden.begin < end && begin < damaged->hidden.end) {
			ranges[i].status = MEMORY_NOT_CAPTURED;
			continue;
		}
		ranges[i].status = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
						   (ssize_t)ranges[i].length
					   ? MEMORY_OK
					   : MEMORY_UNMAPPED;
		if (damaged->word.address >= begin && damaged->word.address + sizeof(uint64_t) <= end)
			memcpy((uint8_t *)ranges[i].copy + (damaged->word.address - begin),
			       &damaged->word.value, sizeof(uint64_t));
		for (size_t t = 0; damaged->seed && t < damaged->table_count; t++) {
			const struct extent *table = &damaged->tables[t];
			uint64_t last = end < table->end ? end : table->end;

			for (uint64_t at = begin > table->begin ? begin : table->begin; at < last; at++)
				damage(damaged, at, (uint8_t *)ranges[i].copy + (at - begin));
		}
	}
}

struct found {
	struct module *modules;
	struct damaged *damaged;
	size_t count;
};

/* .eh_frame lies behind its header, in the same segment. */
static struct extent find_tables(const struct dl_phdr_info *info)
{
	uint64_t header = 0;

	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		uint64_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uint64_t end = begin + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && header >= begin && header < end)
			return (struct extent){ header, end };
	}
	return (struct extent){ 0, 0 };
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct found *found = context;
	struct module *module = &found->modules[found->count];

	(void)size;
	if (found->count == MODULES_MAX)
		return 1;
	*module = own_module(info);
	module->path = strdup(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	module->file = strdup(module->path);
	found->damaged->tables[found->count++] = find_tables(info);
	return 0;
}

/* Whatever was read with another seed is forgotten. */
static void set_damage(struct fixture *fixture, unsigned int seed)
{
	struct found found = {
		.modules = calloc(MODULES_MAX, sizeof(*found.modules)),
		.damaged = &fixture->damaged,
	};

	assert_non_null(found.modules);
	dl_iterate_phdr(add_module, &found);
	fixture->damaged.table_count = found.count;
	fixture->damaged.seed = seed;
	image_set_modules(fixture->image, found.modules, found.count);
	native_reset(fixture->unwinder);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->damaged.memory.read_ranges = read_damaged;
	fixture->image = image_new(&fixture->damaged.memory);
	fixture->symbols = symbols_new(fixture->image, &fixture->damaged.memory, NULL);
	fixture->unwinder = native_unwinder_new(fixture->image, fixture->symbols);
	assert_non_null(fixture->unwinder);
	set_damage(fixture, 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	native_unwinder_free(fixture->unwinder);
	symbols_free(fixture->symbols);
	image_free(fixture->image);
	free(fixture);
	return 0;
}

static struct registers registers_of(const ucontext_t *context)
{
	const greg_t *held = context->uc_mcontext.gregs;

	return (struct registers){
		.pc = (uint64_t)held[REG_RIP],
		.sp = (uint64_t)held[REG_RSP],
		.rbp = (uint64_t)held[REG_RBP],
		.rbx = (uint64_t)held[REG_RBX],
		.r12 = (uint64_t)held[REG_R12],
		.r13 = (uint64_t)held[REG_R13],
		.r14 = (uint64_t)held[REG_R14],
		.r15 = (uint64_t)held[REG_R15],
	};
}

static enum native_status step(struct native_unwinder *unwinder)
{
	enum native_status status = native_step(unwinder);

	return status == NATIVE_LOST && native_lacks_register(unwinder) ? native_step_by_depth(unwinder, 0)
									: status;
}

/* How the walk ends, and after how many frames. */
static enum native_status walk(struct fixture *fixture, const struct registers *leaf, size_t *ret_frames)
{
	enum native_status status = NATIVE_FRAME;
	size_t frames = 0;

	native_begin(fixture->unwinder, &fixture->damaged.memory, leaf);
	while (status == NATIVE_FRAME && ++frames < FRAMES_MAX)
		status = step(fixture->unwinder);
	*ret_frames = frames;
	return status;
}

static void a_stack_is_walked_to_its_end(void **state)
{
	struct registers leaf;
	ucontext_t context;
	size_t frames;

	assert_int_equal(getcontext(&context), 0);
	leaf = registers_of(&context);
	assert_int_equal(walk(*state, &leaf, &frames), NATIVE_END);
	/* This function, cmocka, main, the C library, _start. */
	assert_in_range(frames, 5, FRAMES_MAX - 1);
}

static void hide(struct fixture *fixture, uint64_t begin)
{
	enum { BEHIND = 1 << 20 };

	fixture->damaged.hidden = (struct extent){ begin, begin ? begin + BEHIND : 0 };
}

static void nothing_behind_the_end_is_needed(void **state)
{
	struct fixture *fixture = *state;
	struct registers leaf;
	ucontext_t context;
	size_t frames, again;
	uint64_t end;

	assert_int_equal(getcontext(&context), 0);
	leaf = registers_of(&context);
	assert_int_equal(walk(fixture, &leaf, &frames), NATIVE_END);
	end = native_end(fixture->unwinder);
	assert_true(end > leaf.sp);
	hide(fixture, end);
	assert_int_equal(walk(fixture, &leaf, &again), NATIVE_END);
	assert_int_equal(again, frames);
	assert_int_equal(native_end(fixture->unwinder), end);
	hide(fixture, leaf.sp);
	assert_int_equal(walk(fixture, &leaf, &again), NATIVE_LOST);
	/* The rules tell how much more is needed. */
	assert_true(native_caller_sp(fixture->unwinder) > leaf.sp);
	hide(fixture, 0);
}

/* By itself, with its own context, cache and way to get at memory. */
static void callers_have_the_registers_that_libunwind_finds(void **state)
{
	static const int numbers[] = { UNW_X86_64_RBX, UNW_X86_64_RBP, UNW_X86_64_RSP, UNW_X86_64_R12,
				       UNW_X86_64_R13, UNW_X86_64_R14, UNW_X86_64_R15, UNW_X86_64_RIP };
	struct fixture *fixture = *state;
	struct registers leaf;
	unw_context_t context;
	unw_cursor_t cursor;
	size_t frames = 0;

	unw_getcontext(&context);
	leaf = registers_of(&context);
	assert_int_equal(unw_init_local(&cursor, &context), 0);
	native_begin(fixture->unwinder, &fixture->damaged.memory, &leaf);
	while (native_step(fixture->unwinder) == NATIVE_FRAME) {
		struct registers caller = native_current(fixture->unwinder)->registers;

		assert_true(unw_step(&cursor) > 0);
		frames++;
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			unw_word_t expected;

			if (unw_get_reg(&cursor, numbers[i], &expected) < 0) {
				assert_true(caller.unknown & registers_set_of(numbers[i]));
				continue;
			}
			assert_int_equal(caller.unknown & registers_set_of(numbers[i]), 0);
			assert_int_equal(*registers_locate(&caller, numbers[i]), expected);
		}
	}
	assert_true(frames >= 5);
}

#ifdef __clang__ /* has no such attributes; then this is code like any other */
#define UNOPTIMISED __attribute__((noinline))
#define OPTIMISED __attribute__((noinline))
#else
#define UNOPTIMISED __attribute__((noinline, noclone, optimize("O0")))
#define OPTIMISED __attribute__((noinline, noclone, optimize("O2,optimize-sibling-calls")))
#endif

/* A walk from a thread that shows its pc and stack pointer only. Its place keeps the stack free of it. */
static struct {
	ucontext_t context;
	struct registers leaf;
	size_t frames;
	enum native_status status;
} asleep;

static void walk_asleep(struct fixture *fixture)
{
	asleep.leaf = registers_of(&asleep.context);
	asleep.leaf.unknown = REGISTERS_ALL_BUT_PC_AND_SP;
	asleep.status = walk(fixture, &asleep.leaf, &asleep.frames);
}

/*
 * Who asks for its frame's address has a frame pointer. Returns the frames of a walk that knows all
 * registers.
 */
static __attribute__((noinline)) size_t sleep_in_a_frame(struct fixture *fixture)
{
	assert_int_equal(getcontext(&asleep.context), 0);
	asleep.leaf = registers_of(&asleep.context);
	assert_ptr_equal(asleep.leaf.rbp, __builtin_frame_address(0));
	assert_int_equal(walk(fixture, &asleep.leaf, &asleep.frames), NATIVE_END);
	return asleep.frames;
}

static __attribute__((noinline)) void sleep_in_a_frame_again(struct fixture *fixture)
{
	assert_int_equal(getcontext(&asleep.context), 0);
	walk_asleep(fixture);
	assert_ptr_equal(asleep.leaf.rbp, __builtin_frame_address(0));
}

/* Has no frame of its own: what it calls returns to its caller. */
OPTIMISED static void jump_to_sleep(struct fixture *fixture)
{
	sleep_in_a_frame_again(fixture);
}

static __attribute__((noinline)) void sleep_in_a_frame_of_any_size(struct fixture *fixture, size_t bytes)
{
	volatile uint8_t *room = __builtin_alloca(bytes);

	room[0] = 0;
	assert_int_equal(getcontext(&asleep.context), 0);
	walk_asleep(fixture);
	assert_int_equal(room[0], 0);
}

static void a_frame_is_found_without_its_pointer(void **state)
{
	struct fixture *fixture = *state;
	void (*volatile call)(struct fixture * fixture);
	size_t frames = sleep_in_a_frame(fixture);

	/* Once by the code, and once as it is known. */
	for (size_t i = 0; i < 2; i++) {
		sleep_in_a_frame_again(fixture);
		assert_int_equal(asleep.status, NATIVE_END);
		assert_int_equal(asleep.frames, frames);
	}
	/* By other ways to call it. */
	call = sleep_in_a_frame_again;
	call(fixture);
	assert_int_equal(asleep.status, NATIVE_END);
	assert_int_equal(asleep.frames, frames);
	jump_to_sleep(fixture);
	assert_int_equal(asleep.status, NATIVE_END);
	sleep_in_a_frame_of_any_size(fixture, frames * 100);
	assert_int_equal(asleep.status, NATIVE_LOST);
	assert_int_equal(asleep.frames, 1);
	assert_true(native_lacks_register(fixture->unwinder));
}

/* 0: its own */
static __attribute__((noinline)) void sleep_with_return_address(struct fixture *fixture, uint64_t address)
{
	assert_int_equal(getcontext(&asleep.context), 0);
	fixture->damaged.word.address = (uint64_t)(uintptr_t)__builtin_frame_address(0) + sizeof(uint64_t);
	fixture->damaged.word.value = address ? address : (uint64_t)(uintptr_t)__builtin_return_address(0);
	walk_asleep(fixture);
	fixture->damaged.word.address = 0;
}

static void what_follows_no_call_is_no_return_address(void **state)
{
	struct fixture *fixture = *state;
	uint64_t call;

	sleep_in_a_frame_again(fixture);
	assert_int_equal(asleep.status, NATIVE_END);
	call = asleep.leaf.pc; /* getcontext() returned there */
	sleep_with_return_address(fixture, 0);
	assert_true(asleep.frames > 1);
	/* A call of another function. */
	sleep_with_return_address(fixture, call);
	assert_int_equal(asleep.status, NATIVE_LOST);
	assert_int_equal(asleep.frames, 1);
	sleep_with_return_address(fixture, call + 1);
	assert_int_equal(asleep.status, NATIVE_LOST);
	assert_int_equal(asleep.frames, 1);
	assert_true(native_lacks_register(fixture->unwinder));
}

/*---- Code whose stack pointer paths do not tell ----*/

/* A step of a walk from a thread that is in one of these. */
static struct {
	struct fixture *fixture;
	enum native_status status, asleep;
	uint64_t caller, caller_asleep;
	bool lacks_register;
} odd;

static __attribute__((noinline)) void step_from_here(void)
{
	struct native_unwinder *unwinder = odd.fixture->unwinder;
	struct registers leaf = registers_of(&asleep.context);

	native_begin(unwinder, &odd.fixture->damaged.memory, &leaf);
	odd.status = native_step(unwinder);
	odd.caller = native_current(unwinder)->registers.pc;
	leaf.unknown = REGISTERS_ALL_BUT_PC_AND_SP;
	native_begin(unwinder, &odd.fixture->damaged.memory, &leaf);
	odd.asleep = step(unwinder);
	odd.caller_asleep = native_current(unwinder)->registers.pc;
	odd.lacks_register = native_lacks_register(unwinder);
}

UNOPTIMISED static _Noreturn void end_with(const char *text, ...)
{
	fail_msg("%s", text);
	abort();
}

/* The first case is reached by the jump table, and by a path through a call that never returns. */
UNOPTIMISED static int behind_what_never_returns(int number)
{
	int result = 0;

	switch (number) {
	default: end_with("none", 1, 2, 3, 4, 5, 6, 7, 8, 9);
	case 0:
		getcontext(&asleep.context);
		step_from_here();
		break;
	case 1: result = number * 3; break;
	case 2: result = number * 5; break;
	case 3: result = number + 7; break;
	case 4: result = number ^ 7; break;
	case 5: return number & 7;
	}
	return result;
}

static __attribute__((noinline, cold)) void fill(void *bytes, size_t length)
{
	memset(bytes, 1, length);
}

/* The stack pointer comes back from another register. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla"
OPTIMISED static int behind_an_array_of_any_size(int bytes)
{
	int result = 0;

	if (__builtin_expect(bytes > 5, 0))
		fill(__builtin_alloca((size_t)bytes), (size_t)bytes);
	{
		volatile char room[result + bytes + 8];

		room[0] = 1;
		result += room[0];
	}
	getcontext(&asleep.context);
	step_from_here();
	return result;
}

#pragma GCC diagnostic pop

/* What makes room lies in the function's cold part. */
OPTIMISED static int behind_a_cold_part(int bytes)
{
	if (__builtin_expect(bytes > 5, 0))
		fill(__builtin_alloca((size_t)bytes), (size_t)bytes);
	getcontext(&asleep.context);
	step_from_here();
	return bytes;
}

static void check_odd_code(int (*function)(int), int argument)
{
	memset(&odd.status, 0, sizeof(odd) - offsetof(__typeof__(odd), status));
	function(argument);
	assert_int_equal(odd.status, NATIVE_FRAME);
	if (odd.asleep == NATIVE_FRAME)
		assert_int_equal(odd.caller_asleep, odd.caller);
	else
		assert_true(odd.lacks_register);
}

static void a_wrong_caller_is_none(void **state)
{
	odd.fixture = *state;
	check_odd_code(behind_what_never_returns, 0);
	check_odd_code(behind_an_array_of_any_size, 0);
	check_odd_code(behind_an_array_of_any_size, 800);
	check_odd_code(behind_a_cold_part, 0);
	check_odd_code(behind_a_cold_part, 800);
}

/* What the handler of a signal was given, and where it was then. */
static struct {
	ucontext_t interrupted, handler;
} signalled;

static void note_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	memcpy(&signalled.interrupted, context, sizeof(signalled.interrupted));
	getcontext(&signalled.handler);
}

/* The handler has returned, but nobody has written over its stack. */
static void walk_to_what_was_interrupted(struct fixture *fixture, struct registers *ret_interrupted)
{
	struct registers leaf = registers_of(&signalled.handler);

	native_begin(fixture->unwinder, &fixture->damaged.memory, &leaf);
	do
		assert_int_equal(native_step(fixture->unwinder), NATIVE_FRAME);
	while (native_current(fixture->unwinder)->is_return_address);
	*ret_interrupted = native_current(fixture->unwinder)->registers;
}

static void what_a_signal_has_interrupted_has_all_its_registers(void **state)
{
	struct sigaction action = { .sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static uint8_t stack[1 << 16]; /* not the one that is in use meanwhile */
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const greg_t *held = signalled.interrupted.uc_mcontext.gregs;
	struct registers found;

	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	walk_to_what_was_interrupted(*state, &found);
	assert_int_equal(found.unknown, 0);
	assert_int_equal(found.pc, held[REG_RIP]);
	assert_int_equal(found.sp, held[REG_RSP]);
	assert_int_equal(found.rax, held[REG_RAX]);
	assert_int_equal(found.rdx, held[REG_RDX]);
	assert_int_equal(found.rdi, held[REG_RDI]);
	assert_int_equal(found.rbx, held[REG_RBX]);
	assert_int_equal(found.r8, held[REG_R8]);
	assert_int_equal(found.r15, held[REG_R15]);
	assert_int_equal(found.flags, held[REG_EFL]);
}

/* Its rules are an expression, which libunwind is not given. */
static void an_entry_of_the_plt_keeps_what_calls_keep(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t stack[] = { (uint64_t)(uintptr_t)walk + 1, 0 };
	struct registers leaf = {
		.sp = (uint64_t)(uintptr_t)stack,
		.rbx = 1,
		.rbp = 2,
		.r12 = 3,
		.r13 = 4,
		.r14 = 5,
		.r15 = 6,
	};
	const struct registers *caller;

	__asm__("lea getppid@plt(%%rip), %0" : "=r"(leaf.pc));
	native_begin(fixture->unwinder, &fixture->damaged.memory, &leaf);
	assert_int_equal(native_step(fixture->unwinder), NATIVE_FRAME);
	caller = &native_current(fixture->unwinder)->registers;
	assert_int_equal(caller->pc, stack[0]);
	assert_int_equal(caller->sp, leaf.sp + sizeof(stack[0]));
	assert_int_equal(caller->unknown & ~(unsigned int)REGISTER_OTHERS, 0);
	assert_int_equal(caller->rbx, leaf.rbx);
	assert_int_equal(caller->rbp, leaf.rbp);
	assert_int_equal(caller->r12, leaf.r12);
	assert_int_equal(caller->r15, leaf.r15);
}

static void damaged_tables_do_no_harm(void **state)
{
	struct fixture *fixture = *state;
	struct registers leaf;
	ucontext_t context;
	size_t frames, ends[NATIVE_LOST + 1] = { 0 };

	assert_int_equal(getcontext(&context), 0);
	leaf = registers_of(&context);
	for (unsigned int seed = 1; seed <= DAMAGES; seed++) {
		set_damage(fixture, seed);
		ends[walk(fixture, &leaf, &frames)]++;
	}
	/* Some damage is beside the point, and some is not. */
	assert_true(ends[NATIVE_LOST] > 0);
	set_damage(fixture, 0);
	assert_int_equal(walk(fixture, &leaf, &frames), NATIVE_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stack_is_walked_to_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_behind_the_end_is_needed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(callers_have_the_registers_that_libunwind_finds, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_frame_is_found_without_its_pointer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_follows_no_call_is_no_return_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_wrong_caller_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_signal_has_interrupted_has_all_its_registers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_entry_of_the_plt_keeps_what_calls_keep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_tables_do_no_harm, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
