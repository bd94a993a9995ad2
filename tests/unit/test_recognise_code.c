/* SPDX-License-Identifier: MIT */
/*
 * Recognition of changed modules: code that contradicts itself or every known
 * layout is not guessed at, and no damage to a module makes recognition crash
 * or read beyond it. The module is that of a real LuaJIT, copied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/module/elf_image.h"
#include "live_luajit.h"

enum { IMAGE_MAX = 4 << 20, DAMAGES = 400, DAMAGED_BYTES = 8 };

/* A module in memory of our own, at the addresses it had. */
struct copied_module {
	struct memory memory;
	uint64_t base;
	size_t length;
	uint8_t *bytes;
	struct vm_code vm;
};

static void copied_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct copied_module *module = (const struct copied_module *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t offset = ranges[i].address - module->base;

		if (offset > module->length || ranges[i].length > module->length - offset) {
			ranges[i].status = MEMORY_UNMAPPED;
			continue;
		}
		memcpy(ranges[i].copy, module->bytes + offset, ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

/* Every segment that can be read; pages that cannot stay zero. */
static void copy_module(struct live_luajit *live, struct copied_module *module)
{
	struct elf_image image;

	assert_int_equal(elf_image_open(&live->memory, live->base, &image), ELF_IMAGE_OK);
	module->base = live->base;
	module->length = image.segments[image.segment_count - 1].end - live->base;
	assert_true(module->length < IMAGE_MAX);
	module->bytes = calloc(1, module->length);
	for (size_t i = 0; i < image.segment_count; i++) {
		const struct elf_segment *segment = &image.segments[i];

		memory_read(&live->memory, segment->begin, module->bytes + (segment->begin - live->base),
			    segment->end - segment->begin);
	}
}

static int set_up(void **state)
{
	static struct copied_module module = { .memory = { .read_ranges = copied_read } };
	struct live_luajit live;
	bool is_recognised;

	*state = NULL;
	if (!live_start(&live, "io.write('ready\\n') io.flush() io.read()"))
		return 0;
	is_recognised = live_recognise(&live);
	if (is_recognised) {
		copy_module(&live, &module);
		module.vm = live.vm;
		*state = &module;
	}
	live_stop(&live);
	return is_recognised ? 0 : -1;
}

static int tear_down(void **state)
{
	if (*state != NULL)
		free(((struct copied_module *)*state)->bytes);
	return 0;
}

static struct copied_module *module_or_skip(void **state)
{
	if (*state == NULL) {
		print_message("skipped: no LuaJIT at %s\n", live_executable());
		skip();
	}
	return *state;
}

static uint8_t *code_at(struct copied_module *module, uint64_t address)
{
	return module->bytes + (address - module->base);
}

static enum recognise_status recognise(struct copied_module *module, struct vm_code *ret_vm)
{
	return recognise_vm(&module->memory, EM_X86_64, module->base, NULL, NULL, ret_vm);
}

/* mov dword [r14 + displacement], ~state: set_vmstate. NULL when there is none from at on. */
static uint8_t *next_set_vmstate(struct copied_module *module, uint8_t *at, int32_t state)
{
	uint8_t *end = code_at(module, module->vm.end);
	int32_t value;

	for (; at + 11 <= end; at++) {
		memcpy(&value, at + 7, sizeof(value));
		if (at[0] == 0x41 && at[1] == 0xc7 && at[2] == 0x86 && value == ~state)
			return at;
	}
	return NULL;
}

static void move_vmstate(struct copied_module *module, uint8_t *instruction, int32_t by)
{
	int32_t displacement;

	(void)module;
	memcpy(&displacement, instruction + 3, sizeof(displacement));
	displacement += by;
	memcpy(instruction + 3, &displacement, sizeof(displacement));
}

static char trace_verdict[256];

static void note_trace_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	if (strcmp(probe, "trace objects") == 0)
		snprintf(trace_verdict, sizeof(trace_verdict), "%s", verdict);
}

/* Traces have to be looked at only where the code leaves a choice. */
static void a_layout_of_traces_is_open_if_there_are_others(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct vm_code vm;

	trace_verdict[0] = '\0';
	assert_int_equal(
		recognise_vm(&module->memory, EM_X86_64, module->base, note_trace_verdict, NULL, &vm),
		RECOGNISE_OK);
	assert_string_not_equal(trace_verdict, "");
	assert_int_equal(vm.traces_open,
			 strstr(trace_verdict, " or another ") != NULL || vm.layout.IR_KGC == LAYOUT_UNKNOWN);
}

/* What was asked of the module, and what came of it, in its order. */
static struct {
	char probe[32], verdict[128];
} verdicts[32];
static size_t verdict_count;

static void list_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	assert_in_range(verdict_count, 0, sizeof(verdicts) / sizeof(verdicts[0]) - 1);
	snprintf(verdicts[verdict_count].probe, sizeof(verdicts[0].probe), "%s", probe);
	snprintf(verdicts[verdict_count++].verdict, sizeof(verdicts[0].verdict), "%s", verdict);
}

static enum recognise_status list_verdicts(struct copied_module *module)
{
	struct vm_code vm;

	verdict_count = 0;
	return recognise_vm(&module->memory, EM_X86_64, module->base, list_verdict, NULL, &vm);
}

/* The only verdict on this, and which it is. */
static size_t verdict_on(const char *probe)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < verdict_count; i++)
		if (strcmp(verdicts[i].probe, probe) == 0) {
			assert_int_equal(found, SIZE_MAX);
			found = i;
		}
	assert_int_not_equal(found, SIZE_MAX);
	return found;
}

static void each_part_of_a_layout_has_a_verdict(void **state)
{
	struct copied_module *module = module_or_skip(state);
	static const char *const parts[] = { "objects", "C frame", "global_State" };
	char where[64];
	size_t vm;

	assert_int_equal(list_verdicts(module), RECOGNISE_OK);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_null(strstr(verdicts[verdict_on(parts[i])].verdict, "no known layout"));
	vm = verdict_on("VM");
	snprintf(where, sizeof(where), "at 0x%" PRIx64 ", %" PRIu64 " bytes, found by its unwind entry",
		 module->vm.begin, module->vm.end - module->vm.begin);
	assert_string_equal(verdicts[vm].verdict, where);
}

static void a_copied_module_is_recognised_as_the_original(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct vm_code vm;

	assert_int_equal(recognise(module, &vm), RECOGNISE_OK);
	assert_int_equal(vm.begin, module->vm.begin);
	assert_int_equal(vm.end, module->vm.end);
	assert_null(layout_conflict(&vm.layout, &module->vm.layout));
}

static void code_that_contradicts_itself_is_not_guessed_at(void **state)
{
	struct copied_module *module = module_or_skip(state);
	uint8_t *instruction = next_set_vmstate(module, code_at(module, module->vm.begin), 1);
	struct vm_code vm = { .begin = 1 };

	assert_non_null(instruction);
	move_vmstate(module, instruction, 8);
	assert_int_equal(recognise(module, &vm), RECOGNISE_UNKNOWN_LAYOUT);
	assert_int_equal(vm.begin, module->vm.begin); /* where it is, is known */
	move_vmstate(module, instruction, -8);
	assert_int_equal(recognise(module, &vm), RECOGNISE_OK);
}

static void code_that_fits_no_known_layout_is_not_guessed_at(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct vm_code vm;

	for (int by = 1000; by >= -1000; by -= 2000) {
		for (int32_t vmstate = 0; vmstate < 8; vmstate++) {
			uint8_t *at = code_at(module, module->vm.begin);

			while ((at = next_set_vmstate(module, at, vmstate)) != NULL)
				move_vmstate(module, at++, by);
		}
		assert_int_equal(recognise(module, &vm), by > 0 ? RECOGNISE_UNKNOWN_LAYOUT : RECOGNISE_OK);
		if (by < 0)
			continue;
		/* What does not fit is the last verdict: it is the reason. */
		assert_int_equal(list_verdicts(module), RECOGNISE_UNKNOWN_LAYOUT);
		assert_int_equal(verdict_on("global_State"), verdict_count - 1);
		assert_non_null(strstr(verdicts[verdict_count - 1].verdict, "no known layout fits"));
		assert_null(strstr(verdicts[verdict_on("objects")].verdict, "no known layout"));
		assert_null(strstr(verdicts[verdict_on("C frame")].verdict, "no known layout"));
	}
}

/* Segments of one type become those of another. */
static void rename_segments(struct copied_module *module, Elf64_Word from, Elf64_Word to)
{
	const Elf64_Ehdr *header = (const void *)module->bytes;
	Elf64_Phdr *segments = (void *)(module->bytes + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == from)
			segments[i].p_type = to;
}

/* Its code is gone, and then what says where it was, too. */
static void a_module_without_the_interpreter_is_said_to_be_one(void **state)
{
	struct copied_module *module = module_or_skip(state);
	const size_t length = (size_t)(module->vm.end - module->vm.begin);
	uint8_t *code = malloc(length);

	assert_non_null(code);
	memcpy(code, code_at(module, module->vm.begin), length);
	memset(code_at(module, module->vm.begin), 0x90, length);
	assert_int_equal(list_verdicts(module), RECOGNISE_NO_VM);
	assert_string_equal(verdicts[verdict_on("VM code")].verdict,
			    "does not dispatch as LuaJIT's interpreter does");
	rename_segments(module, PT_GNU_EH_FRAME, PT_HIOS);
	assert_int_equal(list_verdicts(module), RECOGNISE_NO_VM);
	assert_string_equal(verdicts[verdict_on("VM")].verdict, "no LuaJIT interpreter in this module");
	memcpy(code_at(module, module->vm.begin), code, length);
	assert_int_equal(list_verdicts(module), RECOGNISE_OK);
	assert_non_null(strstr(verdicts[verdict_on("VM")].verdict, "found by the dispatch sequence"));
	rename_segments(module, PT_HIOS, PT_GNU_EH_FRAME);
	free(code);
}

static void a_module_for_another_machine_is_said_to_be_one(void **state)
{
	struct copied_module *module = module_or_skip(state);
	Elf64_Ehdr header;
	struct vm_code vm;

	memcpy(&header, module->bytes, sizeof(header));
	header.e_machine = EM_AARCH64;
	memcpy(module->bytes, &header, sizeof(header));
	assert_int_equal(recognise(module, &vm), RECOGNISE_OTHER_MACHINE);
	assert_int_equal(list_verdicts(module), RECOGNISE_OTHER_MACHINE);
	assert_string_equal(verdicts[verdict_on("ELF image")].verdict, "for another machine (e_machine 183)");
	header.e_machine = EM_X86_64;
	memcpy(module->bytes, &header, sizeof(header));
}

static void what_is_no_module_is_unreadable(void **state)
{
	struct copied_module *module = module_or_skip(state);
	uint8_t first = module->bytes[0];
	struct vm_code vm;

	module->bytes[0] = 0;
	assert_int_equal(recognise(module, &vm), RECOGNISE_UNREADABLE);
	assert_int_equal(list_verdicts(module), RECOGNISE_UNREADABLE);
	assert_string_equal(verdicts[verdict_on("ELF image")].verdict, "not a sound ELF image");
	module->bytes[0] = first;
	assert_int_equal(recognise_vm(&module->memory, EM_X86_64, module->base - 4096, NULL, NULL, &vm),
			 RECOGNISE_UNREADABLE);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Whatever becomes of headers, unwind table or code: an answer, and no harm. */
static void a_damaged_module_does_no_harm(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct {
		size_t begin, length;
	} parts[] = {
		{ 0, sizeof(Elf64_Ehdr) + 14 * sizeof(Elf64_Phdr) },
		{ module->vm.begin - module->base, module->vm.end - module->vm.begin },
		{ 0, module->length },
	};
	uint8_t *original = malloc(module->length);
	uint32_t seed = 20170501;
	struct vm_code vm;

	memcpy(original, module->bytes, module->length);
	for (unsigned i = 0; i < DAMAGES; i++) {
		size_t part = i % (sizeof(parts) / sizeof(parts[0]));

		for (unsigned j = 0; j < DAMAGED_BYTES; j++)
			module->bytes[parts[part].begin + next_random(&seed) % parts[part].length] = (uint8_t)
				next_random(&seed);
		if (recognise(module, &vm) == RECOGNISE_OK)
			assert_true(vm.begin < vm.end);
		memcpy(module->bytes, original, module->length);
	}
	free(original);
	assert_int_equal(recognise(module, &vm), RECOGNISE_OK);
}

/*---- A layout that is given ----*/

static char last_verdict[256]; /* the reason, if it is refused */

static void note_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	(void)probe;
	snprintf(last_verdict, sizeof(last_verdict), "%s", verdict);
}

static enum recognise_status recognise_as(struct copied_module *module, const struct layout *given,
					  bool trusted, struct vm_code *ret_vm)
{
	const struct inquiry inquiry = { .memory = &module->memory, .evidence = note_verdict };

	*ret_vm = (struct vm_code){ .begin = 1 };
	return recognise_vm_as(&inquiry, EM_X86_64, module->base, given, trusted, ret_vm);
}

/* All that the tables and the code tell. */
static struct layout complete(struct copied_module *module)
{
	struct layout layout = module->vm.layout;

	/* What only a state tells. */
	layout.L_exdata = layout.L_exdata2 = LAYOUT_ABSENT;
	layout.L_size = 96;
	layout.IR_KGC = 23;
	for (size_t i = 0; i < layout_field_count; i++) {
		int32_t *offset = layout_offset_in(&layout, &layout_fields[i]);

		if (*offset == LAYOUT_UNKNOWN)
			*offset = 8;
	}
	layout.GCtrace_size = module->vm.layout.GCtrace_size;
	return layout;
}

static void a_layout_given_is_completed_by_the_code_and_the_tables(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct layout given = complete(module);
	struct vm_code vm;

	assert_int_equal(recognise_as(module, &given, false, &vm), RECOGNISE_OK);
	assert_int_equal(vm.begin, module->vm.begin);
	assert_false(vm.traces_open);
	assert_false(vm.bytecode_open);
	given.g_vmstate = given.g_strmask = given.J_exitno = given.CFRAME_PC = LAYOUT_UNKNOWN;
	assert_int_equal(recognise_as(module, &given, false, &vm), RECOGNISE_OK);
	assert_int_equal(vm.layout.g_vmstate, module->vm.layout.g_vmstate);
	assert_int_equal(vm.layout.g_strmask, module->vm.layout.g_strmask);
	assert_int_equal(vm.layout.J_exitno, module->vm.layout.J_exitno);
	assert_int_equal(vm.layout.CFRAME_PC, module->vm.layout.CFRAME_PC);
	/* Only a state tells this. */
	given.L_exdata = LAYOUT_UNKNOWN;
	assert_int_equal(recognise_as(module, &given, false, &vm), RECOGNISE_UNKNOWN_LAYOUT);
	assert_string_equal(last_verdict, "it lacks L.exdata");
}

/* Unless it is trusted. */
static void a_layout_given_must_not_contradict_the_code(void **state)
{
	static const char *const reasons[] = { "the width of references", "the JIT compiler",
					       "the numbers of bytecodes", "g.vmstate" };
	struct copied_module *module = module_or_skip(state);
	char expected[256];
	struct vm_code vm;

	for (int i = 0; i < 4; i++) {
		struct layout given = complete(module);

		switch (i) {
		case 0: given.gc64 = !given.gc64; break;
		case 1: given.has_jit = !given.has_jit; break;
		case 2: given.bytecode = given.bytecode == BYTECODE_V20 ? BYTECODE_V21 : BYTECODE_V20; break;
		default: given.g_vmstate += 8; break;
		}
		assert_int_equal(recognise_as(module, &given, false, &vm), RECOGNISE_UNKNOWN_LAYOUT);
		snprintf(expected, sizeof(expected), "the code contradicts it at %s", reasons[i]);
		assert_string_equal(last_verdict, expected);
		assert_int_equal(vm.begin, module->vm.begin); /* where it is, is known */
		assert_int_equal(recognise_as(module, &given, true, &vm), RECOGNISE_OK);
		assert_int_equal(vm.layout.g_vmstate, given.g_vmstate);
		assert_int_equal(vm.layout.bytecode, given.bytecode);
	}
}

static void a_layout_given_that_cannot_be_right_is_refused(void **state)
{
	struct copied_module *module = module_or_skip(state);
	struct layout given = complete(module);
	struct vm_code vm;

	given.GCtrace_size = LAYOUT_TRACE_HEADER_MAX + 100;
	assert_int_equal(recognise_as(module, &given, true, &vm), RECOGNISE_UNKNOWN_LAYOUT);
	assert_non_null(strstr(last_verdict, "cannot be right"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copied_module_is_recognised_as_the_original),
		cmocka_unit_test(each_part_of_a_layout_has_a_verdict),
		cmocka_unit_test(a_layout_of_traces_is_open_if_there_are_others),
		cmocka_unit_test(code_that_contradicts_itself_is_not_guessed_at),
		cmocka_unit_test(code_that_fits_no_known_layout_is_not_guessed_at),
		cmocka_unit_test(a_module_without_the_interpreter_is_said_to_be_one),
		cmocka_unit_test(a_module_for_another_machine_is_said_to_be_one),
		cmocka_unit_test(what_is_no_module_is_unreadable),
		cmocka_unit_test(a_damaged_module_does_no_harm),
		cmocka_unit_test(a_layout_given_is_completed_by_the_code_and_the_tables),
		cmocka_unit_test(a_layout_given_must_not_contradict_the_code),
		cmocka_unit_test(a_layout_given_that_cannot_be_right_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
