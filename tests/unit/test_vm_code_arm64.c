/* SPDX-License-Identifier: MIT */
/*
 * What arm64 code of an interpreter tells of its build: each shape of instructions one thing, and what is
 * nearly the same shape nothing. The code is made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/module/vm_code_arm64.h"
#include "tests/unit/code_shapes.h"

enum { ROOM = 12 }; /* nothing is looked for closer to the ends of the code */

/*---- Shapes. J is at g + 0x300 ----*/

/* The dispatch sequence, and where its table is. */
static const struct code_line dispatch[] = {
	IS("\xb0\x46\x40\xb8"),  /* ldr w16, [x21], #4 */
	NOT("\xaf\x46\x40\xb8"), /* ldr w15, [x21], #4 */
	NOT("\x90\x46\x40\xb8"), /* ldr w16, [x20], #4 */
	IS("\xc9\x0e\x30\x8b"),  /* add x9, x22, w16, uxtb #3 */
	NOT("\xc8\x0e\x30\x8b"), /* add x8, x22, w16, uxtb #3 */
	NOT("\xa9\x0e\x30\x8b"), /* add x9, x21, w16, uxtb #3 */
	NOT("\xc9\x0e\x30\xcb"), /* sub x9, x22, w16, uxtb #3 */
	IS("\x1f\x20\x03\xd5"),  /* nop */
	IS("\x28\x81\x47\xf9"),  /* ldr x8, [x9, #0xf00] */
	NOT("\x27\x81\x47\xf9"), /* ldr x7, [x9, #0xf00] */
	NOT("\x08\x81\x47\xf9"), /* ldr x8, [x8, #0xf00] */
};

static const struct code_line vmstate[] = {
	IS("\xda\x02\x01\xb9"),  /* str w26, [x22, #0x100] */
	NOT("\xd9\x02\x01\xb9"), /* str w25, [x22, #0x100] */
	NOT("\xba\x02\x01\xb9"), /* str w26, [x21, #0x100] */
	NOT("\xda\x02\x41\xb9"), /* ldr w26, [x22, #0x100] */
	NOT("\xda\x6a\x21\xb8"), /* str w26, [x22, x1] */
};

static const struct code_line hook_test[] = {
	IS("\xc8\x06\x44\x39"),  /* ldrb w8, [x22, #0x101] */
	NOT("\xa8\x06\x44\x39"), /* ldrb w8, [x21, #0x101] */
	NOT("\xc8\x06\x42\x79"), /* ldrh w8, [x22, #0x102] */
	NOT("\xc8\x6a\x61\x38"), /* ldrb w8, [x22, x1] */
};

static const struct code_line gc_check[] = {
	IS("\xc0\x06\x41\xa9"),  /* ldp x0, x1, [x22, #0x10] */
	NOT("\xa0\x06\x41\xa9"), /* ldp x0, x1, [x21, #0x10] */
	NOT("\xc0\x06\x01\xa9"), /* stp x0, x1, [x22, #0x10] */
};

/* vm_cpcall */
static const struct code_line cpcall[] = {
	IS("\x1b\x1c\x40\xf9"),  /* ldr x27, [x0, #0x38] */
	IS("\xf1\x16\x40\xf9"),  /* ldr x17, [x23, #0x28] */
	IS("\xf6\x0a\x40\xf9"),  /* ldr x22, [x23, #0x10] */
	IS("\xfc\x2a\x40\xf9"),  /* ldr x28, [x23, #0x50] */
	IS("\x7b\x03\x11\xcb"),  /* sub x27, x27, x17 */
	NOT("\x7b\x03\x11\x8b"), /* add x27, x27, x17 */
	NOT("\x7a\x03\x11\xcb"), /* sub x26, x27, x17 */
	NOT("\x5b\x03\x11\xcb"), /* sub x27, x26, x17 */
	NOT("\x7b\x03\x12\xcb"), /* sub x27, x27, x18 */
	IS("\xfb\x0f\x00\xb9"),  /* str w27, [sp, #0xc] */
	IS("\xff\x0b\x00\xb9"),  /* str wzr, [sp, #8] */
	IS("\xfc\x13\x00\xf9"),  /* str x28, [sp, #0x20] */
	IS("\xd7\xba\x00\xf9"),  /* str x23, [x22, #0x170] */
};

/* The thread is kept in the C frame, and in the place of the PC. */
static const struct code_line saved_L[] = {
	IS("\x1b\x1c\x40\xf9"),  /* ldr x27, [x0, #0x38] */
	NOT("\x1a\x1c\x40\xf9"), /* ldr x26, [x0, #0x38] */
	NOT("\x3b\x1c\x40\xf9"), /* ldr x27, [x1, #0x38] */
	IS("\xe0\x0b\x00\xf9"),  /* str x0, [sp, #0x10] */
	NOT("\xe1\x0b\x00\xf9"), /* str x1, [sp, #0x10] */
	NOT("\x20\x08\x00\xf9"), /* str x0, [x1, #0x10] */
	IS("\x1f\x20\x03\xd5"),  /* nop */
	IS("\xe0\x0f\x00\xf9"),  /* str x0, [sp, #0x18] */
	NOT("\xe1\x0f\x00\xf9"), /* str x1, [sp, #0x18] */
	NOT("\x20\x0c\x00\xf9"), /* str x0, [x1, #0x18] */
};

/* vm_exit_handler */
static const struct code_line exits[] = {
	IS("\xc0\xf6\x07\xb9"),  /* str w0, [x22, #0x7f4] */
	NOT("\xc1\xf6\x07\xb9"), /* str w1, [x22, #0x7f4] */
	NOT("\xa0\xf6\x07\xb9"), /* str w0, [x21, #0x7f4] */
	IS("\xc1\xf2\x07\xb9"),  /* str w1, [x22, #0x7f0] */
	NOT("\xc0\xf2\x07\xb9"), /* str w0, [x22, #0x7f0] */
	NOT("\xa1\xf2\x07\xb9"), /* str w1, [x21, #0x7f0] */
	IS("\xd7\xb6\x01\xf9"),  /* str x23, [x22, #0x368] */
	NOT("\xd6\xb6\x01\xf9"), /* str x22, [x22, #0x368] */
	NOT("\xb7\xb6\x01\xf9"), /* str x23, [x21, #0x368] */
	IS("\xc0\x02\x0c\x91"),  /* add x0, x22, #0x300 */
	NOT("\xc1\x02\x0c\x91"), /* add x1, x22, #0x300 */
	NOT("\xa0\x02\x0c\x91"), /* add x0, x21, #0x300 */
	NOT("\xc0\x02\x0c\xd1"), /* sub x0, x22, #0x300 */
};

/* ... with J farther away. */
static const struct code_line exits_far[] = {
	IS("\xc0\x06\x14\xb9"), /* str w0, [x22, #0x1404] */
	IS("\xc1\x02\x14\xb9"), /* str w1, [x22, #0x1400] */
	IS("\xd7\x36\x08\xf9"), /* str x23, [x22, #0x1068] */
	IS("\xc0\x06\x40\x91"), /* add x0, x22, #0x1000 */
	IS("\x00\x40\x00\x91"), /* add x0, x0, #0x10 */
};

/* BC_JLOOP */
static const struct code_line jloop[] = {
	IS("\xc0\x82\x42\xf9"),  /* ldr x0, [x22, #0x500] */
	NOT("\xc1\x82\x42\xf9"), /* ldr x1, [x22, #0x500] */
	NOT("\xa0\x82\x42\xf9"), /* ldr x0, [x21, #0x500] */
	IS("\x1f\x20\x03\xd5"),  /* nop */
	IS("\x9b\x23\x40\xf9"),  /* ldr x27, [x28, #0x40] */
	NOT("\x9a\x23\x40\xf9"), /* ldr x26, [x28, #0x40] */
	NOT("\x7b\x23\x40\xf9"), /* ldr x27, [x27, #0x40] */
	IS("\xd3\xbe\x00\xf9"),  /* str x19, [x22, #0x178] */
	NOT("\xd2\xbe\x00\xf9"), /* str x18, [x22, #0x178] */
	NOT("\xb3\xbe\x00\xf9"), /* str x19, [x21, #0x178] */
	IS("\xd7\x4a\x01\xf9"),  /* str x23, [x22, #0x290] */
	NOT("\xd6\x4a\x01\xf9"), /* str x22, [x22, #0x290] */
	NOT("\xb7\x4a\x01\xf9"), /* str x23, [x21, #0x290] */
};

/* vm_exit_interp: the error is an argument. */
static const struct code_line exit_error[] = {
	IS("\xe1\x03\x00\x4b"),  /* neg w1, w0 */
	NOT("\xe2\x03\x00\x4b"), /* neg w2, w0 */
	NOT("\xe1\x03\x02\x4b"), /* neg w1, w2 */
	NOT("\xe1\x03\x20\x2a"), /* mvn w1, w0 */
	IS("\xe0\x03\x17\xaa"),  /* mov x0, x23 */
	NOT("\xe2\x03\x17\xaa"), /* mov x2, x23 */
	NOT("\xe0\x03\x16\xaa"), /* mov x0, x22 */
	IS("\x02\x00\x00\x94"),  /* bl .+8 */
	NOT("\x02\x00\x00\x14"), /* b .+8 */
};

static const struct code_line getmetatable[] = {
	IS("\xdc\x82\x41\xf9"),  /* ldr x28, [x22, #0x300] */
	NOT("\xdb\x82\x41\xf9"), /* ldr x27, [x22, #0x300] */
	NOT("\xbc\x82\x41\xf9"), /* ldr x28, [x21, #0x300] */
	IS("\x51\x00\x00\xb4"),  /* cbz x17, .+8 */
	NOT("\x50\x00\x00\xb4"), /* cbz x16, .+8 */
	NOT("\x51\x00\x00\xb5"), /* cbnz x17, .+8 */
};

static const struct code_line ffi_callback[] = {
	IS("\x55\xc1\x40\xf9"),  /* ldr x21, [x10, #0x180] */
	NOT("\x54\xc1\x40\xf9"), /* ldr x20, [x10, #0x180] */
	NOT("\x75\xc1\x40\xf9"), /* ldr x21, [x11, #0x180] */
	IS("\xf6\x03\x0a\xaa"),  /* mov x22, x10 */
	NOT("\xf5\x03\x0a\xaa"), /* mov x21, x10 */
	NOT("\x56\x05\x00\x91"), /* add x22, x10, #1 */
};

static const struct code_machine arm64 = { .dispatch = dispatch,
					   .dispatch_count = sizeof(dispatch) / sizeof(dispatch[0]),
					   .nothing = IS("\x1f\x20\x03\xd5"),
					   .room = ROOM,
					   .read = vm_code_arm64_read };

static const struct code_shape
	the_dispatch = { CODE_SHAPE(dispatch),
			 .told = { CODE_NUMBER(dispatches, CODE_DISPATCHES, CODE_DISPATCHES - 1, 0x0b) },
			 .may_be_apart = true, .needs_room = true },
	the_vmstate = { CODE_SHAPE(vmstate), .told = { CODE_FIELD(g_vmstate, 0x100, 1) },
			.needs_room = true },
	the_hook_test = { CODE_SHAPE(hook_test), .told = { CODE_FIELD(g_hookmask, 0x101, 1) },
			  .needs_room = true },
	the_gc_check = { CODE_SHAPE(gc_check), .told = { CODE_FIELD(g_gc_total, 0x10, 1) },
			 .needs_room = true },
	the_cpcall = { CODE_SHAPE(cpcall),
		       .told = { CODE_FIELD(L_stack, 0x38, 0x11), CODE_FIELD(L_top, 0x28, 0x12),
				 CODE_FIELD(L_glref, 0x10, 0x14), CODE_FIELD(L_cframe, 0x50, 0x18),
				 CODE_FIELD(CFRAME_NRES, 0xc, 0x30), CODE_FIELD(CFRAME_ERRF, 8, 0x50),
				 CODE_FIELD(CFRAME_PREV, 0x20, 0x90), CODE_FIELD(g_cur_L, 0x170, 0x110) },
		       .may_be_apart = true, .needs_room = true },
	the_saved_L = { CODE_SHAPE(saved_L),
			.told = { CODE_FIELD(CFRAME_L, 0x10, 0x03), CODE_FIELD(CFRAME_PC, 0x18, 0x0b) },
			.needs_room = true },
	the_exits = { CODE_SHAPE(exits),
		      .told = { CODE_FIELD(GG_J, 0x300, 0x0f), CODE_FIELD(J_exitno, 0x4f4, 0x0f),
				CODE_FIELD(J_parent, 0x4f0, 0x0f), CODE_FIELD(J_L, 0x68, 0x0f) },
		      .needs_room = true },
	the_exits_far = { CODE_SHAPE(exits_far),
			  .told = { CODE_FIELD(J_exitno, 0x3f4, 0x1f), CODE_FIELD(J_parent, 0x3f0, 0x1f),
				    CODE_FIELD(J_L, 0x58, 0x1f) } },
	the_jloop = { CODE_SHAPE(jloop),
		      .told = { CODE_FIELD(J_trace, 0x200, 0x1d), CODE_FIELD(GCtrace_mcode, 0x40, 0x1c),
				CODE_FIELD(g_jit_base, 0x178, 0x1c), CODE_FIELD(g_tmpbuf_L, 0x290, 0x1c),
				CODE_NUMBER(offsets.has_jit, true, false, 0x1d) },
		      .needs = { &the_exits }, .may_be_apart = true, .needs_room = true },
	the_exit_error = { CODE_SHAPE(exit_error),
			   .told = { CODE_NUMBER(exit_error_code, true, false, CODE_ALL) },
			   .needs_room = true },
	the_getmetatable = { CODE_SHAPE(getmetatable), .told = { CODE_FIELD(g_gcroot, 0x278, CODE_ALL) },
			     .needs_room = true },
	the_ffi_callback = { CODE_SHAPE(ffi_callback), .told = { CODE_FIELD(g_ctype_state, 0x180, CODE_ALL) },
			     .needs_room = true };

static const struct code_shape *const shapes[] = {
	&the_dispatch, &the_vmstate, &the_hook_test,  &the_gc_check,     &the_cpcall,       &the_saved_L,
	&the_exits,    &the_jloop,   &the_exit_error, &the_getmetatable, &the_ffi_callback,
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct code_bytes code;
static struct vm_code_evidence evidence;

static void add(const struct code_shape *shape)
{
	code_add_shape(&arm64, &code, shape, &(struct code_change){ 0 });
	code_add_nothing(&arm64, &code, arm64.room + 1);
}

static enum vm_code_status read_it(void)
{
	return code_read(&arm64, &code, &evidence);
}

static void each_shape_tells_its_fields_and_no_other_does(void **state)
{
	(void)state;
	code_expect_shapes(&arm64, shapes, SHAPES);
}

/* What is looked for around an instruction is so near, and the last of these is not. */
static void shapes_reach_so_far(void **state)
{
	/* Before an instruction of a shape, the one whose distance is bounded, and what it tells. */
	static const struct {
		const struct code_shape *shape;
		size_t at, distance, reach, told;
	} reaches[] = {
		{ &the_cpcall, 1, 4, ROOM, 0 },      { &the_cpcall, 8, 4, ROOM - 1, 7 },
		{ &the_saved_L, 3, 3, ROOM - 1, 1 }, { &the_exits, 3, 3, ROOM - 1, 0 },
		{ &the_jloop, 1, 2, ROOM - 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(reaches) / sizeof(reaches[0]); i++)
		for (size_t beyond = 0; beyond <= 1; beyond++) {
			const struct code_told *told = &reaches[i].shape->told[reaches[i].told];

			code_begin(&arm64, &code, CODE_DISPATCHES);
			for (size_t j = 0; j < CODE_NEEDS && reaches[i].shape->needs[j]; j++)
				add(reaches[i].shape->needs[j]);
			code_add_apart(&arm64, &code, reaches[i].shape, reaches[i].at,
				       reaches[i].reach - reaches[i].distance + beyond);
			code_add_nothing(&arm64, &code, ROOM + 1);
			assert_int_equal(read_it(), VM_CODE_OK);
			if (code_number(&evidence, told) != (beyond ? told->unknown : told->value))
				fail_msg("%s: number %zu, %zu beyond", reaches[i].shape->name,
					 reaches[i].told, beyond);
		}
}

/* Nothing is looked for closer to the ends. */
static void a_shape_has_room_before_and_behind_it(void **state)
{
	(void)state;
	for (size_t before = ROOM - 1; before <= ROOM; before++)
		for (size_t behind = ROOM; behind <= ROOM + 1; behind++) {
			code.length = 0;
			code_add_nothing(&arm64, &code, before);
			code_add_shape(&arm64, &code, &the_hook_test, &(struct code_change){ 0 });
			code_add_nothing(&arm64, &code, behind - 1);
			read_it();
			assert_int_equal(evidence.offsets.g_hookmask,
					 before == ROOM && behind == ROOM + 1 ? 0x101 : LAYOUT_UNKNOWN);
		}
}

static void an_interpreter_has_all_shapes(void **state)
{
	(void)state;
	code_begin(&arm64, &code, CODE_DISPATCHES - 1);
	for (size_t i = 0; i < SHAPES; i++)
		add(shapes[i]);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_true(evidence.offsets.gc64);
	assert_true(evidence.offsets.has_jit);
	assert_int_equal(evidence.offsets.GG_dispatch, 0xf00);
	assert_null(evidence.contradiction);
	for (size_t i = 0; i < SHAPES; i++)
		for (size_t j = 0; j < CODE_TOLD && shapes[i]->told[j].size; j++)
			assert_int_equal(code_number(&evidence, &shapes[i]->told[j]),
					 shapes[i]->told[j].value);
	/* Not each build has a compiler. */
	code_begin(&arm64, &code, CODE_DISPATCHES);
	code_add_nothing(&arm64, &code, ROOM + 1);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_false(evidence.offsets.has_jit);
}

static void a_vm_has_so_many_dispatches(void **state)
{
	(void)state;
	for (unsigned int count = VM_CODE_DISPATCHES_MIN - 1; count <= VM_CODE_DISPATCHES_MIN; count++) {
		code_begin(&arm64, &code, count);
		code_add_nothing(&arm64, &code, ROOM);
		assert_int_equal(read_it(), count < VM_CODE_DISPATCHES_MIN ? VM_CODE_NOT_A_VM : VM_CODE_OK);
		assert_int_equal(evidence.dispatches, count);
	}
}

static void a_far_structure_is_reached_by_two_instructions(void **state)
{
	(void)state;
	code_begin(&arm64, &code, CODE_DISPATCHES);
	add(&the_exits_far);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.offsets.GG_J, 0x1010);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(code_number(&evidence, &the_exits_far.told[i]), the_exits_far.told[i].value);
}

/* Without J, where the traces are is unknown: a distance from g says nothing. */
static void traces_are_told_from_j(void **state)
{
	(void)state;
	code_begin(&arm64, &code, CODE_DISPATCHES);
	add(&the_jloop);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.offsets.J_trace, LAYOUT_UNKNOWN);
	assert_int_equal(evidence.offsets.GCtrace_mcode, LAYOUT_UNKNOWN);
	assert_false(evidence.offsets.has_jit);
}

static void places_that_disagree_contradict(void **state)
{
	/* ldrb w8, [x22, #0x102]; ldp x0, x1, [x22, #0x18] */
	static const struct code_line other[] = { IS("\xc8\x0a\x44\x39"), IS("\xc0\x86\x41\xa9") };

	(void)state;
	code_begin(&arm64, &code, CODE_DISPATCHES);
	add(&the_hook_test);
	add(&the_hook_test);
	add(&the_gc_check);
	assert_int_equal(read_it(), VM_CODE_OK);
	for (size_t i = 0; i < 2; i++) {
		code_add(&code, &other[i]);
		code_add_nothing(&arm64, &code, ROOM);
		assert_int_equal(read_it(), VM_CODE_CONTRADICTION);
		/* The first one is named, and what was told first stays. */
		assert_string_equal(evidence.contradiction, "g_hookmask");
		assert_int_equal(evidence.offsets.g_hookmask, 0x101);
	}
}

static void a_dispatch_is_found_from_any_place_before_it(void **state)
{
	const uint8_t *begin;

	(void)state;
	code_begin(&arm64, &code, 2);
	begin = vm_code_arm64_dispatch(code.bytes, code.bytes + code.length);
	assert_ptr_equal(begin, code.bytes + (size_t)ROOM * 4);
	assert_ptr_equal(vm_code_arm64_dispatch(begin, begin + 8), begin);
	assert_null(vm_code_arm64_dispatch(begin, begin + 7));
	assert_ptr_equal(vm_code_arm64_dispatch(begin + 1, code.bytes + code.length), begin + 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_shape_tells_its_fields_and_no_other_does),
		cmocka_unit_test(shapes_reach_so_far),
		cmocka_unit_test(a_shape_has_room_before_and_behind_it),
		cmocka_unit_test(an_interpreter_has_all_shapes),
		cmocka_unit_test(a_vm_has_so_many_dispatches),
		cmocka_unit_test(a_far_structure_is_reached_by_two_instructions),
		cmocka_unit_test(traces_are_told_from_j),
		cmocka_unit_test(places_that_disagree_contradict),
		cmocka_unit_test(a_dispatch_is_found_from_any_place_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
