/* SPDX-License-Identifier: MIT */
/* Another Lua than LuaJIT is known by the ident that its makers put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/errand.h"
#include "src/survey/puc_lua.h"

/* In this order in one piece of this program, which has no Lua. No other ident ends with a version. */
static const struct {
	char searched[24], cut[24], whole[40];
} idents = { "$LuaVersion: Lua ", "$LuaVersion: Lua 5", "$LuaVersion: Lua 5.4.6  Copyright" };

static void an_ident_is_found_behind_words_that_look_like_one(void **state)
{
	struct errands *errands = errands_new();
	char version[PUC_LUA_VERSION_MAX] = "";

	(void)state;
	assert_non_null(errands);
	assert_memory_equal(&idents, idents.searched, sizeof(idents)); /* none is left out */
	assert_true(puc_lua_find(getpid(), errands, version));
	assert_string_equal(version, "5.4");
	errands_free(errands);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ident_is_found_behind_words_that_look_like_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
