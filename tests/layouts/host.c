/* SPDX-License-Identifier: MIT */
/*
 * host LIBRARY [SCRIPT [ARG...]]: a program that is not LuaJIT's own and maps it.
 * Runs SCRIPT in a state of LIBRARY, a libluajit; without SCRIPT it opens no
 * state, maps two gigabytes it never touches, says so, and sleeps.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SPARSE_BYTES = 0x7fffffff };

typedef struct lua_State lua_State;

static void *look_up(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (symbol == NULL)
		fprintf(stderr, "%s\n", dlerror());
	return symbol;
}

/* arguments: the script and what follows it, up to NULL. */
static int run(void *library, char **arguments)
{
	lua_State *(*newstate)(void) = (lua_State * (*)(void)) look_up(library, "luaL_newstate");
	void (*openlibs)(lua_State *) = (void (*)(lua_State *))look_up(library, "luaL_openlibs");
	int (*loadfile)(lua_State *,
			const char *) = (int (*)(lua_State *, const char *))look_up(library, "luaL_loadfile");
	int (*loadstring)(lua_State *, const char *) = (int (*)(lua_State *, const char *))look_up(
		library, "luaL_loadstring");
	void (*pushstring)(lua_State *, const char *) = (void (*)(lua_State *, const char *))look_up(
		library, "lua_pushstring");
	int (*pcall)(lua_State *, int, int, int) = (int (*)(lua_State *, int, int, int))look_up(library,
												"lua_pcall");
	lua_State *L;
	int count = 0;

	if (newstate == NULL || openlibs == NULL || loadfile == NULL || loadstring == NULL ||
	    pushstring == NULL || pcall == NULL)
		return 1;
	L = newstate();
	openlibs(L);
	if (loadstring(L, "arg = { ... }") != 0)
		return 1;
	for (; arguments[1 + count] != NULL; count++)
		pushstring(L, arguments[1 + count]);
	if (pcall(L, count, 0, 0) != 0)
		return 1;
	return loadfile(L, arguments[0]) != 0 || pcall(L, 0, 0, 0) != 0;
}

int main(int argc, char **argv)
{
	void *library;

	if (argc < 2)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (argc > 2)
		return run(library, argv + 2);
	if (mmap(NULL, SPARSE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		 0) == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
