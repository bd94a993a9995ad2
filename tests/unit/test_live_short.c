/* SPDX-License-Identifier: MIT */
/* What is said of a process that runs LuaJIT while memory is short: never that it has none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/live_process.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(strdup);
char *__wrap_strdup(const char *text)
{
	return allocation_fails() ? NULL : __real_strdup(text);
}

enum { ENOUGH = 150 };

/* With one allocation that fails. False once there were not so many. */
static bool look(pid_t pid, size_t before)
{
	const struct namer_options namer = { .native = NATIVE_FOLD };
	struct functions *functions = functions_new();
	struct lua_process *process = NULL;
	bool failed;
	int error;

	assert_non_null(functions);
	allocation_fails_after(before);
	error = lua_process_open(pid, functions, NULL, &namer, &process);
	if (!error)
		error = lua_process_refresh(process, true);
	failed = allocation_failed();
	if (!error)
		assert_int_not_equal(lua_process_lacks_luajit(process), -ENOEXEC);
	/* The next look makes it good. */
	if (process && error == -ENOMEM) {
		assert_int_equal(lua_process_refresh(process, true), 0);
		assert_int_not_equal(lua_process_lacks_luajit(process), -ENOEXEC);
	}
	lua_process_close(process);
	functions_free(functions);
	return failed;
}

static void memory_that_is_short_is_no_sign_of_another_program(void **state)
{
	struct live live;

	(void)state;
	live_begin(&live, "io.write('ready') io.flush() io.read('*l')", 0, 1);
	for (size_t before = 0; before < ENOUGH && look(live.target.pid, before); before++)
		;
	live_end(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_is_short_is_no_sign_of_another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
