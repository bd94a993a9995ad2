/* SPDX-License-Identifier: MIT */
/* ljspy info: what it tells of processes, of their LuaJIT, and of what can be profiled; and how it ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/layout_text.h"
#include "luajit-layouts/module/dwarf_layout.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/process.h"
#include "src/survey/confirm_layout.h"
#include "src/targets/choose.h"
#include "src/targets/command_apart.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/ran_apart.h"
#include "tests/unit/run_command.h"

enum { PROCESSES = 3, TRACES = 8001 };

struct made_up {
	bool may_not, misfits, is_gone;
	int open_error, refresh_error;
	size_t modules, states, unsearched;
	size_t unread; /* files */
	bool has_unknown_layout, needs_confirming, is_unconfirmed;
	bool is_deleted;
	pid_t tracer, own;
	unsigned int opened, confirmed;
};

static struct {
	struct vm_code vm;
	struct global_state global;
	enum dwarf_layout_status dwarf;
	bool runs_other_lua;
} seen;

static struct options options;

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	assert_null(files);
	assert_int_equal(namer->native, NATIVE_FOLD);
	return of->open_error;
}

#include "tests/unit/looked_at.h"

#include "tests/unit/checked_each.h"

INSTEAD_OF(command_try_run);
int __wrap_command_try_run(struct command_try *try, void *(*read)(void *context), void *context)
{
	(void)try;
	assert_null(read(context));
	return 0;
}

INSTEAD_OF(confirm_process);
void __wrap_confirm_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context),
			    void *context)
{
	(void)may_go_on, (void)context;
	assert_ptr_equal(process, made_up(pid));
	made_up(pid)->confirmed++;
}

INSTEAD_OF(choose_explain);
void __wrap_choose_explain(pid_t pid, int error)
{
	fprintf(stderr, "%d: error %d\n", (int)pid, error);
}

INSTEAD_OF(choose_explain_other_lua);
bool __wrap_choose_explain_other_lua(pid_t pid)
{
	if (seen.runs_other_lua)
		fprintf(stderr, "%d: another Lua\n", (int)pid);
	return seen.runs_other_lua;
}

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	const struct made_up *of = made_up(pid);

	if (of->is_gone)
		return -ESRCH;
	*ret_process = (struct process){ .pid = pid,
					 .own_pid = of->own ? of->own : pid,
					 .tracer_pid = of->tracer,
					 .uid = 33,
					 .gid = 34,
					 .name = "worker",
					 .executable = strdup("/bin/wor\nker"),
					 .executable_deleted = of->is_deleted };
	return 0;
}

/*---- Its LuaJIT ----*/

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	assert_true(thorough);
	return ((struct made_up *)process)->refresh_error;
}

INSTEAD_OF(lua_process_module_count);
size_t __wrap_lua_process_module_count(const struct lua_process *process)
{
	return ((const struct made_up *)process)->modules;
}

INSTEAD_OF(lua_process_module);
struct lua_module __wrap_lua_process_module(const struct lua_process *process, size_t index)
{
	const struct made_up *of = (const struct made_up *)process;
	const bool is_unknown = of->has_unknown_layout && index == 0;

	return (struct lua_module){ .path = index ? "/lib/second.so" : "/lib/first.so",
				    .vm = is_unknown ? NULL : &seen.vm,
				    .base = 0x1000,
				    .is_unconfirmed = of->is_unconfirmed,
				    .verdict = "no match" };
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	return ((const struct made_up *)process)->states;
}

INSTEAD_OF(lua_process_global);
const struct global_state *__wrap_lua_process_global(const struct lua_process *process, size_t index)
{
	assert_true(index < ((const struct made_up *)process)->states);
	return &seen.global;
}

INSTEAD_OF(lua_process_needs_confirming);
bool __wrap_lua_process_needs_confirming(const struct lua_process *process)
{
	return ((const struct made_up *)process)->needs_confirming;
}

INSTEAD_OF(lua_process_unsearched_programs);
size_t __wrap_lua_process_unsearched_programs(const struct lua_process *process)
{
	return ((const struct made_up *)process)->unsearched;
}

INSTEAD_OF(lua_process_unread_file);
const char *__wrap_lua_process_unread_file(const struct lua_process *process, size_t *ret_count)
{
	*ret_count = ((const struct made_up *)process)->unread;
	return *ret_count ? "/lib/slow.so" : NULL;
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	return (struct memory *)process;
}

INSTEAD_OF(memory_u32);
bool __wrap_memory_u32(struct memory *memory, uint64_t address, uint32_t *ret_value)
{
	(void)memory;
	assert_int_equal(address, 0x7000 + 16 + 8);
	*ret_value = TRACES;
	return true;
}

INSTEAD_OF(recognise_vm);
enum recognise_status __wrap_recognise_vm(struct memory *memory, uint16_t machine, uint64_t base,
					  recognise_evidence *evidence, void *context, struct vm_code *ret_vm)
{
	(void)memory, (void)machine, (void)ret_vm;
	assert_int_equal(base, 0x1000);
	evidence(context, "probe", "ver\ndict");
	return RECOGNISE_UNKNOWN_LAYOUT;
}

INSTEAD_OF(dwarf_layout_read);
enum dwarf_layout_status __wrap_dwarf_layout_read(const char *path, struct layout *ret_layout)
{
	assert_string_equal(path, "debug.so");
	if (seen.dwarf == DWARF_LAYOUT_OK)
		*ret_layout = seen.vm.layout;
	return seen.dwarf;
}

INSTEAD_OF(layout_text_write);
void __wrap_layout_text_write(const struct layout *layout, FILE *file)
{
	fprintf(file, "<layout %s>\n", layout->name);
}

INSTEAD_OF(layout_text_compare);
void __wrap_layout_text_compare(const struct layout *here, const struct layout *there, const char *prefix,
				FILE *file)
{
	assert_ptr_equal(here, &seen.vm.layout);
	fprintf(file, "%scompared with %s\n", prefix, there->name);
}

/*---- The user ----*/

static int begin(void **state)
{
	static pid_t pids[PROCESSES];

	(void)state;
	memset(&seen, 0, sizeof(seen));
	looked_at_begin(NULL);
	seen.vm.layout = (struct layout){ .name = "2.1", .gc64 = true, .has_jit = true, .GG_J = 16 };
	seen.vm.layout.J_sizetrace = 8;
	seen.global = (struct global_state){ .g = 0x7000, .vm = &seen.vm };
	for (size_t i = 0; i < PROCESSES; i++) {
		pids[i] = FIRST + (pid_t)i;
		world[i] = (struct made_up){ .modules = 1, .states = 1 };
	}
	options = (struct options){ .command = COMMAND_INFO, .pids = pids, .pid_count = 1 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_no_look_is_open();
	return 0;
}

static enum exit_status look(void)
{
	return run_command(command_info, &options);
}

#define ASSERT_NOT_SHOWN(words) assert_null(strstr(shown, words))

static void a_process_and_its_luajit_are_told(void **state)
{
	(void)state;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(told, "");
	assert_string_equal(shown, "Process 100: [worker]\n"
				   "  user 33, group 34, executable /bin/wor\\nker\n"
				   "  LuaJIT in /lib/first.so\n"
				   "    layout 2.1: GC64, with JIT compiler\n"
				   "  1 Lua state\n"
				   "  can be profiled: ljspy record -p 100 -d 30s\n");
	assert_int_equal(world[0].confirmed, 1);
	world[0] = (struct made_up){ .modules = 2, .states = 2, .is_deleted = true, .own = 7 };
	seen.vm.layout.gc64 = seen.vm.layout.has_jit = false;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("Process 100 (7 in its own pid namespace): [worker]\n");
	ASSERT_SHOWN("ker (deleted)\n");
	ASSERT_SHOWN("LuaJIT in /lib/second.so\n    layout 2.1: 32-bit references, without JIT compiler\n");
	ASSERT_SHOWN("  2 Lua states\n");
}

static void who_wants_more_has_the_evidence_and_the_states(void **state)
{
	(void)state;
	options.verbose = true;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("LuaJIT in /lib/first.so\n    probe: ver\\ndict\n");
	ASSERT_SHOWN("    state 0x7000, room for 8000 traces\n");
	seen.vm.layout.has_jit = false;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("    state 0x7000\n");
}

static void a_layout_that_is_not_known_is_told(void **state)
{
	(void)state;
	world[0].has_unknown_layout = true;
	world[0].states = 0;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("    probe: ver\\ndict\n    its layout is not known: no match\n");
	ASSERT_SHOWN("  no Lua state was found\n");
	ASSERT_SHOWN("only its native code can be profiled");
	/* Another VM has one. */
	world[0].modules = 2;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("its layout is not known");
	ASSERT_SHOWN("layout 2.1");
	ASSERT_SHOWN("  no Lua state was found so far\n");
	ASSERT_SHOWN("  can be profiled: ");
}

static void what_stands_in_the_way_is_told(void **state)
{
	(void)state;
	world[0].tracer = 9;
	world[0].unsearched = 3;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("can be profiled only with --no-stop: process 9 traces it\n");
	ASSERT_SHOWN("  3 unpacked programs were not looked into");
	ASSERT_NOT_SHOWN("-d 30s");
	world[0].needs_confirming = world[0].is_unconfirmed = true;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("have not confirmed it so far: no match\n");
	ASSERT_SHOWN("Lua is not shown until the objects of a state have confirmed the layout\n");
	ASSERT_NOT_SHOWN("1 Lua state");
}

static void a_layout_that_is_given_is_the_evidence(void **state)
{
	static char layout;

	(void)state;
	options.layout = (struct given_layout *)&layout;
	layout_wanted = options.layout;
	options.verbose = true;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_int_equal(layouts_given, 1);
	ASSERT_SHOWN("    layout given: no match\n");
	ASSERT_NOT_SHOWN("probe");
	world[0].misfits = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
}

static void debug_info_has_a_layout_without_a_process(void **state)
{
	(void)state;
	options.dwarf = "debug.so";
	options.pid_count = 0;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	assert_string_equal(shown, "<layout 2.1>\n");
	options.pid_count = 1;
	assert_int_equal(look(), EXIT_ALL_GOOD);
	ASSERT_SHOWN("<layout 2.1>\nProcess 100");
	ASSERT_SHOWN("    debug info: compared with 2.1\n");
	/* There is the layout. */
	world[0].may_not = true;
	assert_int_equal(look(), EXIT_WITH_ERRORS);
	assert_string_equal(shown, "<layout 2.1>\n");
	world[0].may_not = false;
	seen.dwarf = DWARF_LAYOUT_NO_DEBUG_INFO;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	assert_non_null(strstr(told, "ljspy: debug.so: "));
}

static void a_process_without_luajit_is_told(void **state)
{
	(void)state;
	world[0].modules = 0;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_string_equal(shown, "");
	assert_string_equal(told, "ljspy: Process 100 does not run LuaJIT: none of its files holds LuaJIT's "
				  "interpreter.\n");
	world[0].unsearched = 2;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "does not run LuaJIT, as far as can be seen: none"));
	assert_non_null(strstr(told, "2 unpacked programs were not looked into"));
	seen.runs_other_lua = true;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "100: another Lua\n"));
	assert_null(strstr(told, "does not run LuaJIT"));
	world[0].unread = 4;
	assert_int_equal(look(), EXIT_NOTHING_DONE);
	assert_non_null(strstr(told, "It is not known whether process 100 runs LuaJIT.\n"));
	assert_non_null(strstr(told, "4 of its files could not be read, such as /lib/slow.so"));
	assert_null(strstr(told, "another Lua"));
}

static void one_of_several_that_fails_is_left_out(void **state)
{
	static const struct made_up others[] = {
		{ .may_not = true, .modules = 1 },      { .misfits = true, .modules = 1 },
		{ .open_error = -ESRCH, .modules = 1 }, { .refresh_error = -ESRCH, .modules = 1 },
		{ .is_gone = true, .modules = 1 },      { .modules = 0 },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		begin(state);
		options.pid_count = PROCESSES;
		world[1] = others[i];
		assert_int_equal(look(), EXIT_WITH_ERRORS);
		ASSERT_SHOWN("Process 100: ");
		ASSERT_NOT_SHOWN("Process 101: ");
		ASSERT_SHOWN("Process 102: ");
		assert_int_equal(told_times("101: error 3\n"), i >= 2 && i <= 4);
		end(state);
		world[0] = world[2] = others[i];
		assert_int_equal(look(), EXIT_NOTHING_DONE);
		assert_string_equal(shown, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_and_its_luajit_are_told, begin, end),
		cmocka_unit_test_setup_teardown(who_wants_more_has_the_evidence_and_the_states, begin, end),
		cmocka_unit_test_setup_teardown(a_layout_that_is_not_known_is_told, begin, end),
		cmocka_unit_test_setup_teardown(what_stands_in_the_way_is_told, begin, end),
		cmocka_unit_test_setup_teardown(a_layout_that_is_given_is_the_evidence, begin, end),
		cmocka_unit_test_setup_teardown(debug_info_has_a_layout_without_a_process, begin, end),
		cmocka_unit_test_setup_teardown(a_process_without_luajit_is_told, begin, end),
		cmocka_unit_test_setup_teardown(one_of_several_that_fails_is_left_out, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
