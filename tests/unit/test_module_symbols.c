/* SPDX-License-Identifier: MIT */
/* Which module's file a question about an address goes to. The files are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/symbols/symbol_files.h"
#include "unwind/symbols/symbols.h"

INSTEAD_OF(symbol_files_get);
INSTEAD_OF(symbol_files_release);
INSTEAD_OF(symbol_files_ask);
INSTEAD_OF(image_unwind_entry);

enum { MODULES = 3, STRIDE = 0x10000, EXTENT = 0x8000, FUNCTION = 0x4000 };

/* The files stand for themselves: the first is of the first module, and so on. */
static struct {
	char files[MODULES];
	size_t gets[MODULES], releases[MODULES];
	bool has_file, answers, has_entry;
	size_t asked; /* of the last question: which file */
	enum symbol_question question;
	uint64_t address;
	struct symbol_answer answer;
} made_up;

static struct symbol_files *all_files;

struct symbol_file_entry *__wrap_symbol_files_get(struct symbol_files *files,
						  const struct symbol_mapping *mapping)
{
	const size_t index = (mapping->module->begin - MADE_UP_AT) / STRIDE;

	assert_ptr_equal(files, all_files);
	assert_ptr_equal(mapping->live, &made_up_memory.memory);
	assert_in_range(index, 0, MODULES - 1);
	made_up.gets[index]++;
	return made_up.has_file ? (struct symbol_file_entry *)(void *)&made_up.files[index] : NULL;
}

void __wrap_symbol_files_release(struct symbol_file_entry *entry)
{
	if (entry)
		made_up.releases[(char *)entry - made_up.files]++;
}

bool __wrap_symbol_files_ask(struct symbol_files *files, struct symbol_file_entry *entry,
			     const struct symbol_mapping *mapping, enum symbol_question question,
			     uint64_t address, struct symbol_answer *ret_answer)
{
	assert_ptr_equal(files, all_files);
	assert_true(address >= mapping->module->begin && address < mapping->module->end);
	made_up.asked = (size_t)((char *)entry - made_up.files);
	made_up.question = question;
	made_up.address = address;
	*ret_answer = made_up.answer;
	return made_up.answers;
}

bool __wrap_image_unwind_entry(struct image *image, struct module *module, uint64_t address,
			       uint64_t *ret_entry, uint64_t *ret_begin)
{
	(void)image;
	(void)module;
	(void)address;
	*ret_entry = 1;
	*ret_begin = FUNCTION;
	return made_up.has_entry;
}

static struct image *image;
static struct symbols *symbols;
static struct symbol found[SYMBOL_INLINES_MAX];

static void set_modules(void)
{
	struct module *modules = calloc(MODULES, sizeof(*modules));

	assert_non_null(modules);
	for (size_t i = 0; i < MODULES; i++) {
		modules[i].begin = modules[i].base = MADE_UP_AT + i * STRIDE;
		modules[i].end = modules[i].begin + EXTENT;
	}
	image_set_modules(image, modules, MODULES);
}

static int begin(void **state)
{
	(void)state;
	memset(&made_up, 0, sizeof(made_up));
	made_up.has_file = made_up.answers = made_up.has_entry = true;
	image = image_new(made_up_memory_begin());
	all_files = symbol_files_new(NULL);
	symbols = symbols_new(image, &made_up_memory.memory, all_files);
	assert_non_null(symbols);
	set_modules();
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbols_free(symbols);
	symbols_free(NULL);
	symbol_files_free(all_files);
	image_free(image);
	return 0;
}

static uint64_t in_module(size_t index)
{
	return MADE_UP_AT + index * STRIDE + 0x100;
}

static void a_module_is_asked_about_its_own_addresses(void **state)
{
	(void)state;
	made_up.answer.count = 2;
	strcpy(made_up.answer.symbols[0].name, "inner");
	strcpy(made_up.answer.symbols[1].name, "outer");
	for (int round = 0; round < 2; round++) {
		for (size_t i = MODULES; i-- > 0;) {
			assert_int_equal(symbols_find(symbols, in_module(i), found), 2);
			assert_int_equal(made_up.asked, i);
			assert_int_equal(made_up.question, SYMBOL_FUNCTIONS);
			assert_int_equal(made_up.address, in_module(i));
			assert_string_equal(found[0].name, "inner");
			assert_string_equal(found[1].name, "outer");
			assert_int_equal(made_up.gets[i], 1);
		}
	}
	made_up.address = 0;
	assert_int_equal(symbols_find(symbols, MADE_UP_AT - 1, found), 0);
	assert_int_equal(symbols_find(symbols, in_module(0) + EXTENT, found), 0);
	assert_int_equal(made_up.address, 0);
	made_up.answers = false;
	assert_int_equal(symbols_find(symbols, in_module(0), found), 0);
}

static void files_are_released_when_modules_change(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODULES; i++)
		symbols_find(symbols, in_module(i), found);
	set_modules();
	symbols_reset(symbols);
	symbols_reset(symbols);
	for (size_t i = 0; i < MODULES; i++)
		assert_int_equal(made_up.releases[i], 1);
	symbols_find(symbols, in_module(1), found);
	assert_int_equal(made_up.gets[0], 1);
	assert_int_equal(made_up.gets[1], 2);
	symbols_reset(symbols);
	assert_int_equal(made_up.releases[0], 1);
	assert_int_equal(made_up.releases[1], 2);
}

static void a_module_without_a_file_is_looked_for_once(void **state)
{
	struct frame_rules rules;
	uint64_t start;

	(void)state;
	made_up.has_file = false;
	made_up.answer.count = 1;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(symbols_find(symbols, in_module(1), found), 0);
		assert_false(symbols_rules(symbols, in_module(1), &rules));
		assert_false(symbols_function_start(symbols, in_module(1), &start));
	}
	assert_int_equal(made_up.gets[1], 1);
	assert_int_equal(made_up.address, 0);
}

static void a_function_starts_where_a_table_and_the_file_say(void **state)
{
	uint64_t start = 1;

	(void)state;
	made_up.answer.count = 1;
	assert_true(symbols_function_start(symbols, in_module(2), &start));
	assert_int_equal(start, FUNCTION);
	assert_int_equal(made_up.question, SYMBOL_COVERED);
	assert_int_equal(made_up.asked, 2);
	start = 1;
	made_up.answer.count = 0;
	assert_false(symbols_function_start(symbols, in_module(2), &start));
	made_up.answer.count = 1;
	made_up.answers = false;
	assert_false(symbols_function_start(symbols, in_module(2), &start));
	made_up.answers = true;
	made_up.has_entry = false;
	assert_false(symbols_function_start(symbols, in_module(2), &start));
	made_up.has_entry = true;
	assert_false(symbols_function_start(symbols, MADE_UP_AT - 1, &start));
	assert_int_equal(start, 1);
}

static void rules_are_the_files(void **state)
{
	struct frame_rules rules = { .op_count = 7 };

	(void)state;
	frame_rules_of_call(&made_up.answer.rules);
	assert_false(symbols_rules(symbols, in_module(0), &rules));
	made_up.answer.count = 1;
	made_up.answers = false;
	assert_false(symbols_rules(symbols, in_module(0), &rules));
	assert_int_equal(rules.op_count, 7);
	made_up.answers = true;
	assert_true(symbols_rules(symbols, in_module(0), &rules));
	assert_int_equal(made_up.question, SYMBOL_RULES);
	assert_memory_equal(&rules, &made_up.answer.rules, sizeof(rules));
}

static void a_modules_name_is_the_last_part_of_its_path(void **state)
{
	static char paths[][16] = { "/usr/lib/a.so", "b.so", "/c/" };

	(void)state;
	assert_string_equal(module_name(&(struct module){ .path = paths[0] }), "a.so");
	assert_string_equal(module_name(&(struct module){ .path = paths[1] }), "b.so");
	assert_string_equal(module_name(&(struct module){ .path = paths[2] }), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_module_is_asked_about_its_own_addresses, begin, end),
		cmocka_unit_test_setup_teardown(files_are_released_when_modules_change, begin, end),
		cmocka_unit_test_setup_teardown(a_module_without_a_file_is_looked_for_once, begin, end),
		cmocka_unit_test_setup_teardown(a_function_starts_where_a_table_and_the_file_say, begin, end),
		cmocka_unit_test_setup_teardown(rules_are_the_files, begin, end),
		cmocka_unit_test_setup_teardown(a_modules_name_is_the_last_part_of_its_path, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
