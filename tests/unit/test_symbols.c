/* SPDX-License-Identifier: MIT */
/* Names of native code, of this very process. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "unwind/symbols/demangle.h"
#include "unwind/symbols/symbol_files.h"
#include "unwind/symbols/symbols.h"

struct fixture {
	struct live_memory *live;
	struct maps *maps;
	struct image *image;
	struct symbol_files *files;
	struct symbols *symbols;
	struct symbol found[SYMBOL_INLINES_MAX];
};

static struct module module_of(const struct mapped_file *file, const char *path)
{
	return (struct module){
		.begin = file->begin,
		.end = file->end,
		.base = file->base,
		.inode = file->inode,
		.path = strdup(file->path),
		.file = path ? strdup(path) : NULL,
	};
}

/* All files are taken from file, or from where they are mapped if it is NULL. */
static void set_modules(struct fixture *fixture, const char *file)
{
	size_t count = maps_file_count(fixture->maps);
	struct module *modules = calloc(count + 1, sizeof(*modules));
	const struct mapping *vdso = maps_find_path(fixture->maps, "[vdso]");

	assert_non_null(modules);
	for (size_t i = 0; i < count; i++) {
		const struct mapped_file *mapped = maps_file_at(fixture->maps, i);

		modules[i] = module_of(mapped, file ? file : mapped->path);
	}
	if (vdso)
		modules[count++] = (struct module){
			.begin = vdso->begin, .end = vdso->end, .base = vdso->begin, .path = strdup("vdso")
		};
	image_set_modules(fixture->image, modules, count);
	symbols_reset(fixture->symbols);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	bool changed;

	assert_non_null(fixture);
	fixture->live = live_memory_new(getpid());
	fixture->maps = maps_new(getpid());
	assert_int_equal(maps_refresh(fixture->maps, &changed), 0);
	fixture->files = symbol_files_new(NULL);
	assert_non_null(fixture->files);
	fixture->image = image_new(live_memory_memory(fixture->live));
	fixture->symbols = symbols_new(fixture->image, live_memory_memory(fixture->live), fixture->files);
	set_modules(fixture, NULL);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	symbols_free(fixture->symbols);
	symbol_files_free(fixture->files);
	image_free(fixture->image);
	maps_free(fixture->maps);
	live_memory_free(fixture->live);
	free(fixture);
	return 0;
}

/* The outermost function's name at an address; "" if there is none. */
static const char *name_at(struct fixture *fixture, uint64_t address)
{
	size_t count = symbols_find(fixture->symbols, address, fixture->found);

	return count ? fixture->found[count - 1].name : "";
}

__attribute__((noinline)) static int known_function(int number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

static void local_functions_have_their_line(void **state)
{
	struct fixture *fixture = *state;

	assert_string_equal(name_at(fixture, (uintptr_t)known_function), "known_function");
	assert_string_equal(fixture->found[0].file, "test_symbols.c");
	assert_in_range(fixture->found[0].line, __LINE__ - 12, __LINE__ - 6);
}

extern const char inlined_place[] __attribute__((visibility("hidden")));

/* Lines of what is inlined into each other: the innermost's code, and the calls. */
enum { INNERMOST_LINE = __LINE__ + 4, MIDDLE_LINE = __LINE__ + 10, AROUND_LINE = __LINE__ + 19 };

__attribute__((always_inline)) static inline void innermost(void)
{
	__asm__ volatile(".globl inlined_place\n.hidden inlined_place\ninlined_place: nop");
}

__attribute__((always_inline)) static inline void middle(int *number)
{
	++*number;
	innermost();
}

__attribute__((noinline)) static int around(int number)
{
	__asm__ volatile("" : "+r"(number));
	{
		volatile int of_block = number; /* a scope that is no function */

		middle(&number);
		number += of_block - of_block;
	}
	return number;
}

static void inlined_functions_come_before_the_one_around(void **state)
{
	static const char *const names[] = { "innermost", "middle", "around" };
	static const uint32_t lines[] = { INNERMOST_LINE, MIDDLE_LINE, AROUND_LINE };
	struct fixture *fixture = *state;

	assert_int_equal(around(getpid()), getpid() + 1);
	assert_int_equal(symbols_find(fixture->symbols, (uintptr_t)inlined_place, fixture->found), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(fixture->found[i].name, names[i]);
		assert_string_equal(fixture->found[i].file, "test_symbols.c");
		assert_int_equal(fixture->found[i].line, lines[i]);
	}
}

/* A line of another file says nothing of the function. */
__attribute__((noinline)) static int function_with_foreign_line(int number)
{
	__asm__ volatile("" : "+r"(number));
#include "tests/unit/foreign_line.h"
	return number;
}

extern const char foreign_place[] __attribute__((visibility("hidden")));

static void a_line_of_another_file_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(function_with_foreign_line(getpid()), getpid());
	assert_string_equal(name_at(fixture, (uintptr_t)foreign_place), "function_with_foreign_line");
	assert_string_equal(fixture->found[0].file, "test_symbols.c");
	assert_int_equal(fixture->found[0].line, 0);
}

static void exported_names_have_no_version_and_are_the_plainest(void **state)
{
	assert_string_equal(name_at(*state, (uintptr_t)free), "free");
	assert_string_equal(name_at(*state, (uintptr_t)nanosleep), "nanosleep");
}

static void code_that_no_symbol_covers_has_no_name(void **state)
{
	struct fixture *fixture = *state;
	const struct module *module = image_find(fixture->image, (uintptr_t)known_function);

	assert_string_equal(name_at(fixture, module->base), "");
	assert_string_equal(name_at(fixture, 16), "");
}

static const char *name_by_file(struct symbol_file *file, uint64_t address)
{
	static struct symbol found[SYMBOL_INLINES_MAX];

	return symbol_file_find(file, address, found) ? found[0].name : "";
}

/* How many addresses of the file are told together with others. */
static size_t check_extents(struct symbol_file *file, uint64_t begin, uint64_t end)
{
	enum { STRIDE = 61, LOOKS_MAX = 3000 };
	uint64_t stride = (end - begin) / LOOKS_MAX > STRIDE ? (end - begin) / LOOKS_MAX | 1 : STRIDE;
	size_t shared = 0;

	for (uint64_t address = begin; address < end; address += stride) {
		struct symbol_extent extent = symbol_file_extent(file, address);
		const uint64_t others[] = { extent.begin, extent.begin + (extent.end - extent.begin) / 3,
					    extent.end - 1 };
		char name[SYMBOL_NAME_SIZE];

		assert_true(address >= extent.begin && address < extent.end);
		snprintf(name, sizeof(name), "%s", name_by_file(file, address));
		shared += extent.end - extent.begin > 1;
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			assert_string_equal(name_by_file(file, others[i]), name);
			if (extent.end - extent.begin > 1 && !*name)
				assert_true(symbol_file_covers(file, others[i]));
		}
	}
	return shared;
}

static void what_is_told_of_an_address_holds_for_all_of_its_extent(void **state)
{
	struct fixture *fixture = *state;
	size_t shared = 0;

	for (size_t i = 0; i < maps_file_count(fixture->maps); i++) {
		const struct mapped_file *mapped = maps_file_at(fixture->maps, i);
		struct symbol_source source = {
			.fd = mapped->executable ? open(mapped->path, O_RDONLY | O_CLOEXEC) : -1,
			.base = mapped->base,
			.end = mapped->end,
			.root = "",
			.path = mapped->path,
			.plain = true,
		};
		struct symbol_file *file = source.fd >= 0 ? symbol_file_open(&source) : NULL;

		if (file)
			shared += check_extents(file, mapped->begin, mapped->end);
		symbol_file_close(file);
	}
	assert_true(shared > 1000);
}

static void with_debug_info_each_address_is_told_by_itself(void **state)
{
	struct fixture *fixture = *state;
	const struct module *module = image_find(fixture->image, (uintptr_t)known_function);
	struct symbol_source source = {
		.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.base = module->base,
		.end = module->end,
		.root = "",
		.path = "/proc/self/exe",
	};
	struct symbol_file *file = symbol_file_open(&source);
	struct symbol_extent extent;

	assert_non_null(file);
	extent = symbol_file_extent(file, (uintptr_t)known_function);
	assert_int_equal(extent.begin, (uintptr_t)known_function);
	assert_int_equal(extent.end, extent.begin + 1);
	symbol_file_close(file);
}

static void functions_begin_where_unwind_tables_say(void **state)
{
	struct fixture *fixture = *state;
	uint64_t start;

	assert_true(symbols_function_start(fixture->symbols, (uintptr_t)nanosleep + 5, &start));
	assert_int_equal(start, (uintptr_t)nanosleep);
	assert_false(symbols_function_start(fixture->symbols, 16, &start));
}

static void the_vdso_is_read_from_memory(void **state)
{
	struct fixture *fixture = *state;
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	bool found = false;

	if (!vdso)
		skip();
	for (uint64_t at = vdso; at < vdso + 8192 && !found; at += 16)
		found = strcmp(name_at(fixture, at), "clock_gettime") == 0;
	assert_true(found);
}

static void another_file_of_that_name_is_not_believed(void **state)
{
	struct fixture *fixture = *state;

	set_modules(fixture, "/proc/self/exe");
	/* What is mapped of the C library holds its exported symbols. */
	assert_string_equal(name_at(fixture, (uintptr_t)nanosleep), "nanosleep");
	set_modules(fixture, "/nonexistent");
	assert_string_equal(name_at(fixture, (uintptr_t)nanosleep), "nanosleep");
	assert_string_equal(name_at(fixture, (uintptr_t)known_function), "");
}

enum { SHIFT = 16 << 20 };

static void read_shifted(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct live_memory *live = live_memory_new(getpid());

	(void)memory;
	for (size_t i = 0; i < count; i++)
		ranges[i].status = memory_read(live_memory_memory(live), ranges[i].address - SHIFT,
					       ranges[i].copy, ranges[i].length);
	live_memory_free(live);
}

/* In two processes; who asks first has it opened. */
static void a_file_may_be_mapped_at_several_places(void **state)
{
	struct fixture *fixture = *state;
	struct memory shifted = { .read_ranges = read_shifted };
	struct image *image = image_new(&shifted);
	struct symbols *symbols = symbols_new(image, &shifted, fixture->files);
	const struct module *own = image_find(fixture->image, (uintptr_t)known_function);
	struct module *other = malloc(sizeof(*other));
	size_t count;

	assert_non_null(other);
	*other = (struct module){
		.begin = own->begin + SHIFT,
		.end = own->end + SHIFT,
		.base = own->base + SHIFT,
		.device = own->device,
		.inode = own->inode,
		.path = strdup(own->path),
		.file = strdup(own->file),
	};
	image_set_modules(image, other, 1);
	assert_string_equal(name_at(fixture, (uintptr_t)known_function), "known_function");
	count = symbols_find(symbols, (uintptr_t)known_function + SHIFT, fixture->found);
	assert_int_equal(count, 1);
	assert_string_equal(fixture->found[0].name, "known_function");
	symbols_free(symbols);
	image_free(image);
	assert_string_equal(name_at(fixture, (uintptr_t)free), "free");
}

static void mangled_names_are_read(void **state)
{
	char name[32];

	(void)state;
	assert_true(demangle("_ZN3foo3barEi", name, sizeof(name)));
	assert_string_equal(name, "foo::bar");
	assert_true(demangle("_RNvC7mycrate3foo", name, sizeof(name)));
	assert_non_null(strstr(name, "foo"));
	assert_false(demangle("sqrt", name, sizeof(name)));
	assert_false(demangle("_sqrt", name, sizeof(name)));
	assert_false(demangle("xZN3foo3barEi", name, sizeof(name)));
	assert_false(demangle("_ZN3foo", name, sizeof(name)));
	assert_false(demangle("", name, sizeof(name)));
	/* "global constructors keyed to foo", and "typeinfo for" what is not known. */
	assert_false(demangle("_GLOBAL__I_foo", name, sizeof(name)));
	assert_false(demangle("_ZTIT_", name, sizeof(name)));
}

/* The library hands out the first as a whole, the second in pieces. */
static void long_names_are_cut(void **state)
{
	static const struct {
		const char *mangled, *whole;
	} names[] = {
		{ "_ZN3foo40abcdefghijabcdefghijabcdefghijabcdefghij3barEv",
		  "foo::abcdefghijabcdefghijabcdefghijabcdefghij::bar" },
		{ "_RNvNtC7mycrate3foo3bar", "mycrate::foo::bar" },
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t size = 1; size <= strlen(names[i].whole) + 1; size++) {
			memset(name, '#', sizeof(name));
			assert_true(demangle(names[i].mangled, name, size));
			assert_int_equal(strlen(name), size - 1);
			assert_memory_equal(name, names[i].whole, size - 1);
			assert_int_equal(name[size], '#');
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(local_functions_have_their_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(inlined_functions_come_before_the_one_around, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_line_of_another_file_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(exported_names_have_no_version_and_are_the_plainest, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(code_that_no_symbol_covers_has_no_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_told_of_an_address_holds_for_all_of_its_extent,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_debug_info_each_address_is_told_by_itself, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(functions_begin_where_unwind_tables_say, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_vdso_is_read_from_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_of_that_name_is_not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_may_be_mapped_at_several_places, set_up, tear_down),
		cmocka_unit_test(mangled_names_are_read),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
