/* SPDX-License-Identifier: MIT */
/* A look at a process that is seized meanwhile: whether there is one, and that nothing of it stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/proc/process.h"
#include "src/survey/confirm_layout.h"
#include "src/survey/traced_lua.h"
#include "src/survey/traced_process.h"
#include "tests/unit/instead_of.h"

enum { PROCESSES = 1 };

struct made_up {
	unsigned int opened, seized;
	bool is_gone, is_read, is_confirmed;
	int open_error, seize_error, refresh_error, lacks, look_error;
	unsigned int looks;
};

static int look_at(struct made_up *of, const struct known_files *files, const struct namer_options *namer)
{
	(void)files, (void)namer;
	return of->open_error;
}

#include "tests/unit/looked_at.h"

static char hold, layout, files, functions;

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	if (made_up(pid)->is_gone)
		return -ESRCH;
	*ret_process = (struct process){ .pid = pid, .name = "luajit", .command = strdup("luajit") };
	return 0;
}

INSTEAD_OF(lua_process_files);
struct known_files *__wrap_lua_process_files(const struct lua_process *process)
{
	assert_non_null(process);
	return (struct known_files *)&files;
}

/* What began in vain is to be ended, too. */
INSTEAD_OF(traced_process_begin);
int __wrap_traced_process_begin(struct traced_process *traced, pid_t pid, const struct known_files *of)
{
	assert_ptr_equal(of, &files);
	made_up(pid)->seized++;
	if (!made_up(pid)->seize_error)
		traced->hold = (struct hold *)&hold;
	return made_up(pid)->seize_error;
}

INSTEAD_OF(traced_process_end);
void __wrap_traced_process_end(struct traced_process *traced)
{
	(void)traced;
	assert_int_equal(world[0].opened, 1);
	world[0].seized--;
}

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	struct made_up *of = (struct made_up *)process;

	assert_true(thorough);
	assert_int_equal(layouts_given, 1);
	of->is_read = true;
	return of->refresh_error;
}

INSTEAD_OF(lua_process_lacks_luajit);
int __wrap_lua_process_lacks_luajit(const struct lua_process *process)
{
	const struct made_up *of = (const struct made_up *)process;

	assert_true(of->is_read);
	return of->lacks;
}

INSTEAD_OF(confirm_while_held);
void __wrap_confirm_while_held(struct lua_process *process, struct hold *of)
{
	assert_ptr_equal(of, &hold);
	((struct made_up *)process)->is_confirmed = true;
}

static int note_look(void *context, struct lua_process *process, struct hold *of, const char *name)
{
	struct made_up *at = (struct made_up *)process;

	assert_ptr_equal(context, world);
	assert_ptr_equal(of, &hold);
	assert_string_equal(name, "luajit");
	assert_true(at->is_confirmed);
	assert_int_equal(at->opened, 1);
	assert_int_equal(at->seized, 1);
	at->looks++;
	return at->look_error;
}

static int look(void)
{
	const struct traced_lua traced = {
		.functions = (struct functions *)&functions,
		.layout = (struct given_layout *)&layout,
		.look = note_look,
		.context = world,
	};
	int error;

	layouts_given = 0;
	error = traced_lua_look(&traced, FIRST);
	assert_no_look_is_open();
	assert_int_equal(world[0].seized, 0);
	return error;
}

static int begin(void **state)
{
	(void)state;
	looked_at_begin((struct given_layout *)&layout);
	return 0;
}

static void a_process_is_looked_at_once_its_layout_is_confirmed(void **state)
{
	(void)state;
	assert_int_equal(look(), 0);
	assert_int_equal(world[0].looks, 1);
	world[0].look_error = -ENOMEM;
	assert_int_equal(look(), -ENOMEM);
	assert_int_equal(world[0].looks, 2);
}

static void what_cannot_be_looked_at_is_told(void **state)
{
	static const struct {
		size_t field;
		int error;
	} cases[] = {
		{ offsetof(struct made_up, open_error), -EACCES },
		{ offsetof(struct made_up, seize_error), -EPERM },
		{ offsetof(struct made_up, refresh_error), -EIO },
		{ offsetof(struct made_up, lacks), -ENOEXEC },
		{ offsetof(struct made_up, lacks), -ENODATA },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(state);
		memcpy((char *)&world[0] + cases[i].field, &cases[i].error, sizeof(cases[i].error));
		assert_int_equal(look(), cases[i].error);
		assert_int_equal(world[0].looks, 0);
	}
	begin(state);
	world[0].is_gone = true;
	assert_int_equal(look(), -ESRCH);
	assert_int_equal(world[0].looks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_is_looked_at_once_its_layout_is_confirmed, begin),
		cmocka_unit_test_setup(what_cannot_be_looked_at_is_told, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
