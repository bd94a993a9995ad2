/*
 * A real LuaJIT process is recognised from its memory alone, and the layout
 * found agrees with the objects that the process holds.
 *
 * LJSPY_TEST_LUAJIT names the executables to try, separated by colons;
 * without it, luajit from PATH.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luajit-layouts/recognise.h"

enum { STATES_MAX = 4, GCT_STRING = 4, GCT_THREAD = 6, GCT_PROTO = 7, GCT_FUNCTION = 8 };

struct process_memory {
	struct memory memory;
	pid_t pid;
};

struct target {
	struct process_memory process;
	uint64_t base;		/* of the module that holds the VM */
	uint64_t g[STATES_MAX];
	size_t states;
	struct vm_code vm;
};

static void read_process(struct memory *memory, struct memory_range *ranges, size_t count)
{
	pid_t pid = ((struct process_memory *)memory)->pid;

	for (size_t i = 0; i < count; i++) {
		struct iovec local = { ranges[i].copy, ranges[i].length };
		struct iovec remote = { (void *)(uintptr_t)ranges[i].address, ranges[i].length };

		ranges[i].status = process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
			(ssize_t)ranges[i].length ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

static void print_evidence(void *context, const char *probe, const char *verdict)
{
	(void)context;
	printf("#   %s: %s\n", probe, verdict);
}

/* A program that says when it runs, then keeps busy in several functions. */
static const char program[] =
	"local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
	"function spin() while true do leaf(1000) end end\n"
	"io.write('ready\\n') io.flush() spin()\n";

static pid_t start_luajit(const char *path)
{
	char line[16] = "";
	int out[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		alarm(30);
		dup2(out[1], STDOUT_FILENO);
		execlp(path, path, "-e", program, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], line, sizeof(line) - 1) <= 0) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(out[0]);
	return pid;
}

static void stop_luajit(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return fopen(path, "r");
}

/* The mapped modules one after the other, until one holds a VM. */
static enum recognise_status find_vm(struct target *target)
{
	enum recognise_status status = RECOGNISE_NO_VM;
	FILE *maps = open_maps(target->process.pid);
	uint64_t begin, end, offset;
	char line[512];

	while (status != RECOGNISE_OK && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &begin, &end, &offset) == 3 &&
		    offset == 0 && strstr(line, " /") != NULL) {
			target->base = begin;
			printf("# %s", line);
			status = recognise_vm(&target->process.memory, begin, print_evidence, NULL,
					      &target->vm);
		}
	}
	fclose(maps);
	return status;
}

static void find_states(struct target *target)
{
	FILE *maps = open_maps(target->process.pid);
	uint64_t begin, end;
	char line[512], flags[8];

	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, flags) == 3 &&
		    flags[0] == 'r' && flags[1] == 'w' && target->states < STATES_MAX)
			target->states += recognise_states(&target->process.memory, &target->vm, begin, end,
							   &target->g[target->states],
							   STATES_MAX - target->states);
	}
	fclose(maps);
}

static uint64_t reference(struct target *target, uint64_t address)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;

	if (target->vm.layout.gc64)
		assert_true(memory_u64(&target->process.memory, address, &wide));
	else
		assert_true(memory_u32(&target->process.memory, address, &narrow));
	return wide + narrow;
}

static uint8_t gct(struct target *target, uint64_t object)
{
	uint8_t value = 0;

	assert_true(memory_u8(&target->process.memory,
			      object + (uint64_t)target->vm.layout.GChead_gct, &value));
	return value;
}

/* Wherever gc.root leads, every prototype is sound by the layout's offsets. */
static unsigned check_prototypes(struct target *target)
{
	const struct layout *layout = &target->vm.layout;
	struct memory *memory = &target->process.memory;
	uint64_t object = reference(target, target->g[0] + (uint64_t)layout->g_gc_root);
	unsigned count = 0;

	for (unsigned steps = 0; object != 0 && steps < 100000; steps++) {
		if (gct(target, object) == GCT_PROTO) {
			uint64_t name = reference(target, object + (uint64_t)layout->GCproto_chunkname);
			uint32_t sizebc = 0, sizept = 0, length = 0;
			uint8_t end = 1;

			assert_true(memory_u32(memory, object + (uint64_t)layout->GCproto_sizebc, &sizebc));
			assert_true(memory_u32(memory, object + (uint64_t)layout->GCproto_sizept, &sizept));
			assert_true(sizebc > 0 && (uint64_t)layout->GCproto_size + sizebc * 4 <= sizept);
			assert_int_equal(gct(target, name), GCT_STRING);
			assert_true(memory_u32(memory, name + (uint64_t)layout->GCstr_len, &length));
			assert_true(length < 1 << 16);
			assert_true(memory_u8(memory, name + (uint64_t)layout->GCstr_size + length, &end));
			assert_int_equal(end, 0);
			count++;
		}
		object = reference(target, object + (uint64_t)layout->GChead_nextgc);
	}
	return count;
}

static void check_state(struct target *target)
{
	const struct layout *layout = &target->vm.layout;
	uint64_t g = target->g[0];
	uint64_t L = reference(target, g + (uint64_t)layout->g_mainthref);
	uint64_t stack = reference(target, L + (uint64_t)layout->L_stack);
	uint64_t base = 0;

	assert_int_equal(gct(target, L), GCT_THREAD);
	assert_int_equal(reference(target, L + (uint64_t)layout->L_glref), g);
	if (layout->g_cur_L != LAYOUT_ABSENT)
		assert_int_equal(reference(target, g + (uint64_t)layout->g_cur_L), L);
	base = reference(target, L + (uint64_t)layout->L_base);
	assert_true(base > stack && base < reference(target, L + (uint64_t)layout->L_maxstack));
	assert_true(check_prototypes(target) >= 3);
}

static void check_executable(const char *path)
{
	struct target target = { .process = { .memory = { read_process } } };

	target.process.pid = start_luajit(path);
	if (target.process.pid < 0) {
		print_message("skipped: %s cannot be run\n", path);
		skip();
	}
	assert_int_equal(find_vm(&target), RECOGNISE_OK);
	find_states(&target);
	assert_int_equal(target.states, 1);
	check_state(&target);
	kill(target.process.pid, SIGSTOP);
	assert_int_equal(waitpid(target.process.pid, NULL, WUNTRACED), target.process.pid);
	assert_int_equal(recognise_settle(&target.process.memory, &target.vm, target.g[0],
					  print_evidence, NULL), RECOGNISE_OK);
	stop_luajit(target.process.pid);
}

static void a_running_luajit_is_recognised(void **state)
{
	const char *paths = getenv("LJSPY_TEST_LUAJIT");
	char *list = strdup(paths == NULL ? "luajit" : paths);

	(void)state;
	for (char *path = strtok(list, ":"); path != NULL; path = strtok(NULL, ":"))
		check_executable(path);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_running_luajit_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
