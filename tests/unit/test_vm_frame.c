/* SPDX-License-Identifier: MIT */
/* The interpreter's C frame, and what the code around an address says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/vm/vm_frame.h"

enum {
	WORD = 8,
	VM_AT = MADE_UP_AT,
	VM_BYTES = 0x1000,
	VM_END = VM_AT + VM_BYTES,
	FFI_CALL = VM_END + 0x40, /* lj_vm_ffi_call */
	CALLER_AT = VM_END + 0x800,
	MODULE_END = VM_AT + 0x2000,
	CFRAME = VM_AT + 0x3000,
	ALL_END = VM_AT + MADE_UP_BYTES,
	/* As the code below has them. */
	CFRAME_SIZE = 80,
	SLOTS_BYTES = 40,
	L_BASE = 0x20,
	THREAD = 0x7f0012345678,
	PREVIOUS = CFRAME + 0x200,
};

static struct vm_code vm;
static struct memory *memory;

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	vm = (struct vm_code){ .begin = VM_AT, .end = VM_END, .ffi_call = FFI_CALL };
	vm.layout = (struct layout){ .gc64 = true,
				     .L_base = L_BASE,
				     .g_jit_base = 0x150,
				     .g_jit_L = LAYOUT_ABSENT,
				     .GG_dispatch = 0x1000,
				     .CFRAME_NRES = 0,
				     .CFRAME_L = 16,
				     .CFRAME_PC = 24,
				     .CFRAME_PREV = SLOTS_BYTES - WORD,
				     .CFRAME_size = CFRAME_SIZE };
	return 0;
}

/* References are of 32 bits. */
static void without_gc64(void)
{
	vm.layout.gc64 = false;
	vm.layout.CFRAME_L = 20;
}

#define CODE(address, bytes) put_bytes((address), (bytes), sizeof(bytes) - 1)

/* A direct call that returns to this address. */
static void put_call(uint64_t return_address, uint64_t function)
{
	put(return_address - 5, 0xe8, 1);
	put(return_address - 4, function - return_address, 4);
}

/*---- Registers ----*/

static void the_vms_values_are_in_its_registers(void **state)
{
	const struct registers registers = { .rdx = 1, .rbx = 2, .rbp = 3, .rdi = 4, .r14 = 0x5000 };
	const struct vm_registers told = vm_registers(&registers);

	(void)state;
	assert_int_equal(told.base, 1);
	assert_int_equal(told.pc, 2);
	assert_int_equal(told.kept_base, 3);
	assert_int_equal(told.argument, 4);
	assert_int_equal(vm_global_of_registers(&vm.layout, &registers), 0x4000);
}

static void lost_registers_are_unknown(void **state)
{
	struct registers registers = { .unknown = 0 };

	(void)state;
	assert_true(vm_registers_are_known(&registers));
	assert_true(vm_global_is_known(&registers));
	registers.unknown = REGISTERS_ALL_BUT_PC_AND_SP & ~(REGISTER_RBP | REGISTER_RBX | REGISTER_R14);
	assert_true(vm_registers_are_known(&registers));
	assert_true(vm_global_is_known(&registers));
	registers.unknown = REGISTER_RBP;
	assert_false(vm_registers_are_known(&registers));
	registers.unknown = REGISTER_RBX;
	assert_false(vm_registers_are_known(&registers));
	assert_true(vm_global_is_known(&registers));
	registers.unknown = REGISTER_R14;
	assert_false(vm_global_is_known(&registers));
	assert_true(vm_registers_are_known(&registers));
}

/* Whole frames first; then those of which some saved registers are popped already. */
static void a_frame_may_be_at_these_places(void **state)
{
	static const int64_t distances[] = { 0, 8, 16, -40, -48, -56, -64, -72 };
	const struct registers registers = { .sp = CFRAME };
	uint64_t cframes[VM_FRAME_CANDIDATES_MAX];
	size_t count = vm_frame_candidates(&vm.layout, &registers, cframes);

	(void)state;
	assert_int_equal(count, sizeof(distances) / sizeof(distances[0]));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(cframes[i], CFRAME + distances[i]);
	assert_int_equal(vm_frame_from(0x1000), 0x1000);
	assert_int_equal(vm_frame_from(0x1001), 0x1010);
	assert_int_equal(vm_frame_from(0x100f), 0x1010);
}

static void a_trace_moves_the_stack_pointer(void **state)
{
	const struct registers registers = { .sp = 0x5000 };

	(void)state;
	assert_int_equal(vm_trace_cframe(&registers, 0x30), 0x5040);
	assert_int_equal(vm_trace_sp(0x5040, 0x30), 0x5000);
	assert_true(vm_may_return_to_trace(0x5000, 0x5000));
	assert_false(vm_may_return_to_trace(0x5000, 0x5008));
}

/*---- The frame ----*/

static void put_frame(void)
{
	put(CFRAME, (uint32_t)-3, 4);
	put(CFRAME + 4, 0xaaaaaaaa, 4);
	put(CFRAME + (uint64_t)vm.layout.CFRAME_L, THREAD, vm.layout.gc64 ? 8 : 4);
	put(CFRAME + 24, 0x123456789abc, vm.layout.gc64 ? 8 : 4);
	put(CFRAME + 32, PREVIOUS | 3, 8);
	for (uint64_t i = 0; i < 4; i++)
		put(CFRAME + 40 + i * WORD, 0x100 + i, 8);
	put(CFRAME + 72, CALLER_AT, 8);
}

static void a_frame_has_its_fields(void **state)
{
	uint64_t value;
	int32_t results;

	(void)state;
	put_frame();
	assert_true(vm_frame_thread(&vm.layout, memory, CFRAME, &value));
	assert_int_equal(value, THREAD);
	assert_true(vm_frame_pc(&vm.layout, memory, CFRAME, &value));
	assert_int_equal(value, 0x123456789abc);
	assert_true(vm_frame_previous(&vm.layout, memory, CFRAME, &value));
	assert_int_equal(value, PREVIOUS); /* without the flags */
	assert_true(vm_frame_nresults(&vm.layout, memory, CFRAME, &results));
	assert_int_equal(results, -3);
	assert_false(vm_frame_thread(&vm.layout, memory, ALL_END, &value));
	assert_false(vm_frame_pc(&vm.layout, memory, ALL_END, &value));
	assert_false(vm_frame_previous(&vm.layout, memory, ALL_END, &value));
	assert_false(vm_frame_nresults(&vm.layout, memory, ALL_END, &results));
}

static void a_frame_without_gc64_has_short_references(void **state)
{
	uint64_t value;

	(void)state;
	without_gc64();
	put_frame();
	put(CFRAME + 28, 0xffffffff, 4);
	assert_true(vm_frame_thread(&vm.layout, memory, CFRAME, &value));
	assert_int_equal(value, (uint32_t)THREAD);
	assert_true(vm_frame_pc(&vm.layout, memory, CFRAME, &value));
	assert_int_equal(value, 0x56789abc);
}

static struct image *image;

static int open_image(void **state)
{
	struct module *module = calloc(1, sizeof(*module));

	begin(state);
	image = image_new(memory);
	if (!image || !module)
		return -1;
	module->begin = module->base = VM_AT;
	module->end = MODULE_END;
	image_set_modules(image, module, 1);
	return 0;
}

static int close_image(void **state)
{
	(void)state;
	image_free(image);
	return 0;
}

static bool is_plausible(uint64_t cframe)
{
	uint64_t thread = 1;
	bool is = vm_frame_is_plausible(image, &vm.layout, memory, cframe, &thread);

	assert_int_equal(thread, is ? THREAD : 1);
	return is;
}

static void a_frame_is_plausible_if_all_its_fields_are(void **state)
{
	enum { RESULTS_MAX = 1 << 24, STACK_MAX = 1 << 30 };

	(void)state;
	put_frame();
	assert_true(is_plausible(CFRAME));
	/* The frame before it, if any, is further out, and not too far. */
	put(CFRAME + 32, 0, 8);
	assert_true(is_plausible(CFRAME));
	put(CFRAME + 32, CFRAME, 8);
	assert_false(is_plausible(CFRAME));
	put(CFRAME + 32, CFRAME - 16, 8);
	assert_false(is_plausible(CFRAME));
	put(CFRAME + 32, CFRAME + 16, 8);
	assert_true(is_plausible(CFRAME));
	put(CFRAME + 32, CFRAME + STACK_MAX, 8);
	assert_true(is_plausible(CFRAME));
	put(CFRAME + 32, CFRAME + STACK_MAX + 16, 8);
	assert_false(is_plausible(CFRAME));
	put_frame();
	put(CFRAME, RESULTS_MAX, 4);
	assert_true(is_plausible(CFRAME));
	put(CFRAME, RESULTS_MAX + 1, 4);
	assert_false(is_plausible(CFRAME));
	put(CFRAME, (uint32_t)-RESULTS_MAX, 4);
	assert_true(is_plausible(CFRAME));
	put(CFRAME, (uint32_t)-RESULTS_MAX - 1, 4);
	assert_false(is_plausible(CFRAME));
	put_frame();
	put(CFRAME + 16, THREAD + 4, 8);
	assert_false(is_plausible(CFRAME));
	put(CFRAME + 16, 0, 8);
	assert_false(is_plausible(CFRAME));
	put_frame();
	put(CFRAME + 72, MODULE_END, 8);
	assert_false(is_plausible(CFRAME));
	put(CFRAME + 72, MODULE_END - 1, 8);
	assert_true(is_plausible(CFRAME));
	/* Of one that ends behind the copy, the return address cannot be read. */
	memcpy(made_up_memory.bytes + MADE_UP_BYTES - 72, made_up_memory.bytes + (CFRAME - MADE_UP_AT), 72);
	put(ALL_END - 72 + 32, 0, 8);
	assert_false(is_plausible(ALL_END - 72));
	assert_false(is_plausible(ALL_END));
}

static void the_caller_has_the_saved_registers(void **state)
{
	const struct registers frame = { .pc = VM_AT,
					 .sp = CFRAME,
					 .r12 = 0x12,
					 .r13 = 0x13,
					 .unknown = REGISTER_RBX | REGISTER_R12 | REGISTER_R15 };
	struct registers caller;

	(void)state;
	put_frame();
	assert_true(vm_frame_caller(&vm.layout, memory, CFRAME, &frame, false, &caller));
	assert_int_equal(caller.pc, CALLER_AT);
	assert_int_equal(caller.sp, CFRAME + CFRAME_SIZE);
	assert_int_equal(caller.r14, 0x100);
	assert_int_equal(caller.r15, 0x101);
	assert_int_equal(caller.rbx, 0x102);
	assert_int_equal(caller.rbp, 0x103);
	assert_int_equal(caller.r12, 0x12);
	assert_int_equal(caller.r13, 0x13);
	assert_int_equal(caller.unknown, REGISTER_R12 | REGISTER_OTHERS);
	/* A frame that ends behind the copy. */
	assert_false(
		vm_frame_caller(&vm.layout, memory, ALL_END - CFRAME_SIZE + WORD, &frame, false, &caller));
	assert_false(vm_frame_caller(&vm.layout, memory, ALL_END, &frame, false, &caller));
}

static void a_trace_has_saved_two_registers_more(void **state)
{
	const struct registers frame = { .pc = VM_AT, .unknown = REGISTERS_ALL_BUT_PC_AND_SP };
	struct registers caller;

	(void)state;
	put_frame();
	put(CFRAME - 8, 0x200, 8);
	put(CFRAME, 0x201, 8);
	put(CFRAME + 8, 0x202, 8);
	assert_true(vm_frame_caller(&vm.layout, memory, CFRAME, &frame, true, &caller));
	assert_int_equal(caller.r12, 0x201);
	assert_int_equal(caller.r13, 0x200);
	assert_int_equal(caller.unknown, REGISTER_OTHERS);
	without_gc64();
	assert_true(vm_frame_caller(&vm.layout, memory, CFRAME, &frame, true, &caller));
	assert_int_equal(caller.r12, 0x201);
	assert_int_equal(caller.r13, 0x202);
	assert_true(vm_frame_caller(&vm.layout, memory, CFRAME, &frame, false, &caller));
	assert_int_equal(caller.unknown, REGISTER_OTHERS | REGISTER_R12 | REGISTER_R13);
}

/* LUAJIT_NO_UNWIND */
static void a_build_may_save_six_registers(void **state)
{
	const struct registers frame = { .pc = VM_AT };
	struct registers caller;

	(void)state;
	vm.layout.CFRAME_size = CFRAME_SIZE + 2 * WORD;
	for (uint64_t i = 0; i < 6; i++)
		put(CFRAME + SLOTS_BYTES + i * WORD, 0x300 + i, 8);
	put(CFRAME + 88, CALLER_AT, 8);
	for (int on_trace = 0; on_trace < 2; on_trace++) {
		assert_true(vm_frame_caller(&vm.layout, memory, CFRAME, &frame, on_trace, &caller));
		assert_int_equal(caller.r12, 0x300);
		assert_int_equal(caller.r13, 0x301);
		assert_int_equal(caller.r14, 0x302);
		assert_int_equal(caller.rbp, 0x305);
		assert_int_equal(caller.pc, CALLER_AT);
		assert_int_equal(caller.sp, CFRAME + 96);
	}
}

static void what_was_called_returns_to_the_word_below_the_stack_pointer(void **state)
{
	uint64_t address;

	(void)state;
	put(CFRAME - 8, 0x1234, 8);
	assert_true(vm_frame_called(&vm.layout, memory, CFRAME, CFRAME - 0x100, CFRAME, &address));
	assert_int_equal(address, 0x1234);
	assert_false(vm_frame_called(&vm.layout, memory, CFRAME, CFRAME, ALL_END + WORD, &address));
}

/*---- Into and out of the VM ----*/

/* push rbp; push rbx; push r15; push r14; sub rsp, 40 */
#define SAVES "\x53\x41\x57\x41\x56\x48\x83\xec\x28"
/* add rsp, 40; pop r14; pop r15; pop rbx; pop rbp; ret */
#define RESTORES "\x48\x83\xc4\x28\x41\x5e\x41\x5f\x5b\x5d\xc3"

/* At this pc, are so many words pushed behind the return address? */
static void assert_pushed(uint64_t pc, unsigned int words)
{
	const struct registers registers = {
		.pc = pc, .sp = CFRAME, .rbp = 1, .rbx = 2, .r15 = 3, .r14 = 4, .r12 = 5
	};
	struct registers caller;

	for (unsigned int i = 0; i < words; i++)
		put(CFRAME + i * WORD, 0x400 + words - 1 - i, 8);
	put(CFRAME + words * WORD, CALLER_AT, 8);
	assert_true(vm_is_entering_or_leaving(&vm.layout, memory, memory, &registers, &caller));
	assert_int_equal(caller.pc, CALLER_AT);
	assert_int_equal(caller.sp, CFRAME + (words + 1) * WORD);
	assert_int_equal(caller.rbp, words > 0 ? 0x400 : 1);
	assert_int_equal(caller.rbx, words > 1 ? 0x401 : 2);
	assert_int_equal(caller.r15, words > 2 ? 0x402 : 3);
	assert_int_equal(caller.r14, words > 3 ? 0x403 : 4);
	assert_int_equal(caller.r12, 5);
}

static void assert_in_frame(uint64_t pc)
{
	const struct registers registers = { .pc = pc, .sp = CFRAME };
	struct registers caller;

	assert_false(vm_is_entering_or_leaving(&vm.layout, memory, memory, &registers, &caller));
}

static void a_frame_is_made_and_left_word_by_word(void **state)
{
	const uint64_t enters = VM_AT + 0x100, from_stub = VM_AT + 0x200, leaves = VM_AT + 0x300;

	(void)state;
	CODE(enters, "\x55" SAVES);
	assert_pushed(enters, 0);
	assert_pushed(enters + 1, 1);
	assert_pushed(enters + 2, 2);
	assert_pushed(enters + 4, 3);
	assert_pushed(enters + 6, 4);
	assert_in_frame(enters + 10);
	assert_in_frame(enters - 1);
	CODE(from_stub, SAVES);
	assert_pushed(from_stub, 1);
	assert_pushed(from_stub + 1, 2);
	assert_pushed(from_stub + 3, 3);
	assert_pushed(from_stub + 5, 4);
	assert_in_frame(from_stub + 9);
	CODE(leaves, RESTORES);
	assert_in_frame(leaves);
	assert_pushed(leaves + 4, 4);
	assert_pushed(leaves + 6, 3);
	assert_pushed(leaves + 8, 2);
	assert_pushed(leaves + 9, 1);
	assert_pushed(leaves + 10, 0);
	/* Other code that looks like it has another frame. */
	put(leaves + 3, SLOTS_BYTES + 8, 1);
	assert_in_frame(leaves + 4);
	put(enters + 9, SLOTS_BYTES + 8, 1);
	assert_in_frame(enters + 1);
}

static void a_frame_whose_stack_is_unmapped_has_no_caller(void **state)
{
	const struct registers registers = { .pc = VM_AT + 0x100 + 6, .sp = ALL_END - 4 * WORD };
	struct registers caller = { .pc = 7 };

	(void)state;
	CODE(VM_AT + 0x100, "\x55" SAVES);
	assert_false(vm_is_entering_or_leaving(&vm.layout, memory, memory, &registers, &caller));
	assert_int_equal(caller.pc, 7);
}

/*---- lj_vm_ffi_call ----*/

static bool ffi_call_at(uint64_t pc, struct registers *caller)
{
	const struct registers registers = { .pc = pc, .sp = CFRAME, .rbp = 9 };

	return vm_is_entering_or_leaving_ffi_call(&vm, memory, memory, &registers, caller);
}

static void an_ffi_call_begins_and_ends_with_no_frame(void **state)
{
	struct registers caller;

	(void)state;
	CODE(FFI_CALL, "\x55\x48\x89\xe5\x53\xc9\xc3");
	put(CFRAME, CALLER_AT, 8);
	put(CFRAME + 8, CALLER_AT + 8, 8);
	assert_true(ffi_call_at(FFI_CALL, &caller));
	assert_int_equal(caller.pc, CALLER_AT);
	assert_int_equal(caller.sp, CFRAME + 8);
	assert_int_equal(caller.rbp, 9);
	assert_true(ffi_call_at(FFI_CALL + 6, &caller));
	assert_int_equal(caller.pc, CALLER_AT);
	assert_true(ffi_call_at(FFI_CALL + 1, &caller));
	assert_int_equal(caller.pc, CALLER_AT + 8);
	assert_int_equal(caller.rbp, CALLER_AT);
	assert_int_equal(caller.sp, CFRAME + 16);
	assert_false(ffi_call_at(FFI_CALL + 4, &caller));
	assert_false(ffi_call_at(ALL_END, &caller));
}

static bool find_ffi_caller(uint64_t sp, struct registers *caller)
{
	const struct registers registers = { .pc = FFI_CALL + 0x20,
					     .sp = sp,
					     .unknown = REGISTERS_ALL_BUT_PC_AND_SP };

	return vm_find_ffi_caller(&vm, memory, memory, &registers, caller);
}

static void the_caller_of_an_ffi_call_is_behind_its_arguments(void **state)
{
	enum { ARGUMENTS_MAX = 36 };
	const uint64_t at = CFRAME + (ARGUMENTS_MAX + 2) * WORD;
	struct registers caller = { .pc = 0 };

	(void)state;
	put_call(CALLER_AT, FFI_CALL);
	put_call(CALLER_AT + 0x20, FFI_CALL + 0x20);
	put(CALLER_AT + 0x40 - 5, 0xe9, 1); /* no call */
	put(CALLER_AT + 0x40 - 4, FFI_CALL - (CALLER_AT + 0x40), 4);
	put(CFRAME + 24, CALLER_AT + 0x20, 8);
	put(CFRAME + 32, CALLER_AT + 0x40, 8);
	put(at - 16, 0x55, 8);
	put(at - 8, 0x66, 8);
	put(at, CALLER_AT, 8);
	assert_true(find_ffi_caller(CFRAME, &caller));
	assert_int_equal(caller.pc, CALLER_AT);
	assert_int_equal(caller.rbx, 0x55);
	assert_int_equal(caller.rbp, 0x66);
	assert_int_equal(caller.sp, at + 8);
	assert_int_equal(caller.unknown,
			 REGISTERS_ALL_BUT_PC_AND_SP & ~(unsigned int)(REGISTER_RBP | REGISTER_RBX));
	assert_true(find_ffi_caller(at - 16, &caller));
	assert_false(find_ffi_caller(CFRAME - WORD, &caller));
	assert_false(find_ffi_caller(ALL_END - 4 * WORD, &caller));
}

/*---- What the code says ----*/

static void an_unwound_error_lands_where_rcx_says(void **state)
{
	struct registers registers = { .pc = VM_AT + 0x10, .rcx = VM_AT + 0x80, .rbx = 5 }, landed;

	(void)state;
	CODE(VM_AT + 0x10, "\xff\xe1");
	assert_true(vm_is_about_to_land(memory, &registers, &landed));
	assert_int_equal(landed.pc, VM_AT + 0x80);
	assert_int_equal(landed.rbx, 5);
	registers.pc--;
	assert_false(vm_is_about_to_land(memory, &registers, &landed));
	registers.pc = ALL_END;
	assert_false(vm_is_about_to_land(memory, &registers, &landed));
}

static void a_frame_is_linked_soon_after_it_is_made(void **state)
{
	enum { LINKING = 200, LENGTH = 9 };
	const uint64_t at = VM_AT + 0x400;

	(void)state;
	CODE(at, SAVES);
	assert_true(vm_is_linking(memory, &vm, at + LENGTH));
	assert_false(vm_is_linking(memory, &vm, at + LENGTH - 1));
	assert_true(vm_is_linking(memory, &vm, at + LINKING));
	assert_false(vm_is_linking(memory, &vm, at + LINKING + 1));
	/* Only a call may do so meanwhile. */
	put_call(at + 0x40, VM_AT);
	assert_true(vm_calls_to_link(memory, &vm, at + 0x40));
	assert_false(vm_calls_to_link(memory, &vm, at + 0x41));
	put_call(at + 0x200, VM_AT);
	assert_false(vm_calls_to_link(memory, &vm, at + 0x200));
	/* What lies before the VM is not of it. */
	vm.begin = at;
	assert_true(vm_is_linking(memory, &vm, at + 0x20));
	vm.begin = at + 1;
	assert_false(vm_is_linking(memory, &vm, at + 0x20));
}

static void the_store_of_a_frame_link_is_told(void **state)
{
	(void)state;
	CODE(VM_AT, "\x48\x89\x5a\xf8"); /* mov [rdx-8], rbx */
	assert_true(vm_is_store_pending(&vm.layout, memory, VM_AT));
	assert_false(vm_is_store_pending(&vm.layout, memory, VM_AT + 1));
	without_gc64();
	assert_false(vm_is_store_pending(&vm.layout, memory, VM_AT));
	CODE(VM_AT, "\x89\x5a\xfc"); /* mov [edx-4], ebx */
	assert_true(vm_is_store_pending(&vm.layout, memory, VM_AT));
	assert_false(vm_is_store_pending(&vm.layout, memory, ALL_END));
}

/* mov eax, [rbx]; movzx ecx, ah; movzx ebp, al */
#define FETCH "\x8b\x03\x0f\xb6\xcc\x0f\xb6\xe8"
/* lea rbx, [rbx+rax*4-0x20000] */
#define BRANCH "\x48\x8d\x9c\x83\x00\x00\xfe\xff"

static bool is_before_next(uint64_t pc)
{
	return vm_is_before_next(&vm.layout, memory, pc);
}

static void pc_is_the_next_instructions_until_it_is_fetched(void **state)
{
	const uint64_t fetch = VM_AT + 0x100, branch = VM_AT + 0x200;

	(void)state;
	CODE(fetch, FETCH "\x48\x83\xc3\x04"); /* add rbx, 4 */
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(is_before_next(fetch + i), i == 0 || i == 2 || i == 5 || i == 8);
	assert_false(is_before_next(fetch - 1));
	CODE(branch, BRANCH);
	assert_false(is_before_next(branch));
	assert_true(is_before_next(branch + 8));
	assert_true(is_before_next(branch + 40));
	assert_false(is_before_next(branch + 41));
	CODE(branch + 8, FETCH "\x48\x83\xc3\x04");
	assert_true(is_before_next(branch + 8));
	assert_false(is_before_next(branch + 20));
	/* BC_JFORI: movzx eax, word [rbx-2]; jae BC_JLOOP */
	CODE(branch + 8, "\x0f\xb7\x43\xfe\x0f\x83\x4c\x01\x00\x00" FETCH "\x48\x83\xc3\x04");
	assert_false(is_before_next(branch + 8));
	assert_false(is_before_next(branch + 12));
	assert_true(is_before_next(branch + 18));
	/* Comparisons with dual numbers: jmp to the fetch; then code for operands of other types. */
	for (unsigned int i = 0; i < 2; i++) {
		put(branch + 8, i ? 0xe9 : 0xeb, 1);
		assert_true(is_before_next(branch + 8));
		assert_false(is_before_next(branch + 10));
		assert_false(is_before_next(branch + 13));
	}
	/* BC_ISNEXT: mov byte [rbx], BC_ITERC; jmp to the fetch; then BC_RETM. */
	for (unsigned int i = 0; i < 2; i++) {
		CODE(branch + 8, "\xc6\x03\x45");
		put(branch + 11, i ? 0xe9 : 0xeb, 1);
		assert_true(is_before_next(branch + 8));
		assert_true(is_before_next(branch + 11));
		assert_false(is_before_next(branch + 13));
		assert_false(is_before_next(branch + 30));
	}
	/* With a JIT compiler since 2021: cmp byte [rbx], BC_ITERN; jne to where a trace is taken out; ... */
	CODE(branch + 8, "\x80\x3b\x46\x75\x05\xc6\x03\x45\xeb\xd7\x41\x8b\x8e\xb8\xf4\xff\xff"
			 "\x0f\xb7\x43\x02\x8b\x0c\x81\x8b\x41\x50\xb0\x45\x89\x03\xeb\xc1");
	assert_true(is_before_next(branch + 18));
	assert_true(is_before_next(branch + 39));
	assert_false(is_before_next(branch + 41)); /* BC_RETM */
	without_gc64();
	assert_false(is_before_next(fetch));
	CODE(fetch, FETCH "\x83\xc3\x04"); /* add ebx, 4 */
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(is_before_next(fetch + i), i == 0 || i == 2 || i == 5 || i == 8);
	assert_false(is_before_next(ALL_END + 32));
}

static void a_call_may_come_after_a_jump(void **state)
{
	const uint64_t branch = VM_AT + 0x300;

	(void)state;
	CODE(branch, BRANCH);
	put_call(branch + 39, VM_AT);
	assert_true(vm_jumps_before_call(memory, branch + 39));
	assert_false(vm_jumps_before_call(memory, branch + 38));
	put_call(branch + 65, VM_AT);
	assert_false(vm_jumps_before_call(memory, branch + 65));
	CODE(branch + 8, FETCH);
	assert_false(vm_jumps_before_call(memory, branch + 39));
}

static bool stores_base(uint64_t return_address)
{
	return vm_call_stores_base(&vm.layout, memory, &vm, return_address);
}

static bool moves_base(uint64_t return_address)
{
	return vm_call_moves_base(&vm.layout, memory, &vm, return_address);
}

static void a_call_may_store_base_before_it(void **state)
{
	const uint64_t at = VM_AT + 0x400;

	(void)state;
	CODE(at, "\x48\x89\x55\x20"); /* mov [rbp+L.base], rdx */
	assert_true(stores_base(at + 4));
	assert_false(stores_base(at + 3));
	assert_true(stores_base(at + 64));
	assert_false(stores_base(at + 65));
	assert_false(moves_base(at + 4));
	put(at + 3, L_BASE + 8, 1);
	assert_false(stores_base(at + 4));
	CODE(at, "\x48\x89\x57\x20"); /* mov [rdi+L.base], rdx */
	assert_true(stores_base(at + 4));
	assert_true(moves_base(at + 4));
	assert_true(moves_base(at + 32));
	assert_false(moves_base(at + 33));
	assert_false(stores_base(at + 33));
	assert_false(vm_is_leaving_callback(&vm.layout, memory, &vm, at + 4));
	CODE(at, "\x48\x89\x51\x20"); /* mov [rcx+L.base], rdx */
	assert_true(vm_is_leaving_callback(&vm.layout, memory, &vm, at + 4));
	assert_true(vm_is_leaving_callback(&vm.layout, memory, &vm, at + 32));
	assert_false(vm_is_leaving_callback(&vm.layout, memory, &vm, at + 33));
	assert_false(stores_base(at + 4));
	assert_false(stores_base(ALL_END + 64));
}

static void the_first_call_of_the_vm_is_looked_at_from_its_begin(void **state)
{
	const uint64_t at = VM_AT + 0x400;

	(void)state;
	CODE(at, "\x48\x89\x55\x20");
	vm.begin = at;
	assert_true(stores_base(at + 9));
	vm.begin = at + 1;
	assert_false(stores_base(at + 9));
	vm.begin = VM_AT;
	without_gc64();
	put(at, 0x90, 1);
	assert_true(stores_base(at + 9)); /* mov [rbp+L.base], edx */
}

static void direct_calls_of_the_vm_are_told(void **state)
{
	(void)state;
	put_call(VM_AT + 0x40, VM_AT);
	put_call(VM_AT + 0x60, VM_END - 1);
	put_call(VM_AT + 0x80, VM_END);
	put_call(VM_AT + 0xa0, VM_AT - 1);
	assert_true(vm_is_called(memory, &vm, VM_AT + 0x40));
	assert_true(vm_is_called(memory, &vm, VM_AT + 0x60));
	assert_false(vm_is_called(memory, &vm, VM_AT + 0x80));
	assert_false(vm_is_called(memory, &vm, VM_AT + 0xa0));
	assert_false(vm_is_called(memory, &vm, VM_AT + 0x3f));
	assert_false(vm_is_called(memory, &vm, VM_AT + 2));
}

static void the_call_that_leaves_a_trace_is_told(void **state)
{
	const uint64_t at = VM_AT + 0x400;

	(void)state;
	CODE(at, "\xc7\x86\x50\xf1\xff\xff\x00\x00\x00\x00"); /* mov [r14+0x150-0x1000], 0 */
	assert_true(vm_is_exiting(&vm.layout, memory, at + 10));
	assert_false(vm_is_exiting(&vm.layout, memory, at + 9));
	assert_true(vm_is_exiting(&vm.layout, memory, at + 32));
	assert_false(vm_is_exiting(&vm.layout, memory, at + 33));
	vm.layout.g_jit_base += 8;
	assert_false(vm_is_exiting(&vm.layout, memory, at + 10));
	assert_int_equal(vm_exit_trace(NULL, &(const struct registers){ .rcx = 0x700000005 }), 5);
}

/* LuaJIT 2.0 keeps jit_base, and clears jit_L. */
static void a_build_with_jit_L_clears_that(void **state)
{
	const uint64_t at = VM_AT + 0x400;

	(void)state;
	vm.layout.g_jit_L = 0x14c;
	CODE(at, "\x41\xc7\x86\x4c\xf1\xff\xff\x00\x00\x00\x00"); /* mov dword [r14+0x14c-0x1000], 0 */
	assert_true(vm_is_exiting(&vm.layout, memory, at + 11));
	assert_true(vm_is_exiting(&vm.layout, memory, at + 29));
	vm.layout.g_jit_L = LAYOUT_ABSENT;
	assert_false(vm_is_exiting(&vm.layout, memory, at + 11));
}

#define WITH_MEMORY(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MEMORY(the_vms_values_are_in_its_registers),
		WITH_MEMORY(lost_registers_are_unknown),
		WITH_MEMORY(a_frame_may_be_at_these_places),
		WITH_MEMORY(a_trace_moves_the_stack_pointer),
		WITH_MEMORY(a_frame_has_its_fields),
		WITH_MEMORY(a_frame_without_gc64_has_short_references),
		cmocka_unit_test_setup_teardown(a_frame_is_plausible_if_all_its_fields_are, open_image,
						close_image),
		WITH_MEMORY(the_caller_has_the_saved_registers),
		WITH_MEMORY(a_trace_has_saved_two_registers_more),
		WITH_MEMORY(a_build_may_save_six_registers),
		WITH_MEMORY(what_was_called_returns_to_the_word_below_the_stack_pointer),
		WITH_MEMORY(a_frame_is_made_and_left_word_by_word),
		WITH_MEMORY(a_frame_whose_stack_is_unmapped_has_no_caller),
		WITH_MEMORY(an_ffi_call_begins_and_ends_with_no_frame),
		WITH_MEMORY(the_caller_of_an_ffi_call_is_behind_its_arguments),
		WITH_MEMORY(an_unwound_error_lands_where_rcx_says),
		WITH_MEMORY(a_frame_is_linked_soon_after_it_is_made),
		WITH_MEMORY(the_store_of_a_frame_link_is_told),
		WITH_MEMORY(pc_is_the_next_instructions_until_it_is_fetched),
		WITH_MEMORY(a_call_may_come_after_a_jump),
		WITH_MEMORY(a_call_may_store_base_before_it),
		WITH_MEMORY(the_first_call_of_the_vm_is_looked_at_from_its_begin),
		WITH_MEMORY(direct_calls_of_the_vm_are_told),
		WITH_MEMORY(the_call_that_leaves_a_trace_is_told),
		WITH_MEMORY(a_build_with_jit_L_clears_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
