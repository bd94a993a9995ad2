/* SPDX-License-Identifier: MIT */
/*
 * make_image walk|recognise FOLDER NAME COUNT LUAJIT ARGUMENT...
 *
 * Starts a LuaJIT program, holds it at COUNT moments and writes what ljspy
 * reads of it then, as FOLDER/NAME-0.image and so on; see image.h. All that
 * the fuzz target of that name does, is done here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zstd.h>

#include "luajit-layouts/layout_text.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/maps.h"
#include "tests/exactness/target.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/reading.h"

enum { RANGES_MAX = 1 << 20, START_NS = 300 * 1000 * 1000, APART_NS = 37 * 1000 * 1000 };

/* Where something was read. */
struct interval {
	uint64_t begin, end;
};

struct recorder {
	struct memory memory;
	struct memory *live;
	struct interval *intervals;
	size_t count;
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "make_image: %s: %s\n", what, strerror(error));
	exit(1);
}

/*---- What is read ----*/

static void record_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct recorder *recorder = (struct recorder *)memory;

	memory_read_ranges(recorder->live, ranges, count);
	for (size_t i = 0; i < count && recorder->count < RANGES_MAX; i++)
		if (ranges[i].status == MEMORY_OK && ranges[i].length)
			recorder->intervals[recorder->count++] = (struct interval){
				ranges[i].address & ~UINT64_C(7),
				(ranges[i].address + ranges[i].length + 7) & ~UINT64_C(7),
			};
}

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void unite(struct recorder *recorder)
{
	size_t united = 0;

	qsort(recorder->intervals, recorder->count, sizeof(recorder->intervals[0]), compare_intervals);
	for (size_t i = 0; i < recorder->count; i++) {
		const struct interval *interval = &recorder->intervals[i];
		struct interval *last = united ? &recorder->intervals[united - 1] : NULL;

		if (last && interval->begin <= last->end)
			last->end = interval->end > last->end ? interval->end : last->end;
		else
			recorder->intervals[united++] = *interval;
	}
	recorder->count = united;
}

/*---- Writing ----*/

static void write_ranges(struct recorder *recorder, FILE *out)
{
	unite(recorder);
	for (size_t i = 0; i < recorder->count; i++) {
		const struct interval *interval = &recorder->intervals[i];
		size_t length = (size_t)(interval->end - interval->begin);
		uint8_t *bytes = malloc(length);

		if (bytes && memory_read(recorder->live, interval->begin, bytes, length) == MEMORY_OK) {
			fprintf(out, "range %" PRIx64 " %zu\n", interval->begin, length);
			fwrite(bytes, 1, length, out);
		}
		free(bytes);
	}
}

static void write_registers(const struct registers *r, FILE *out)
{
	const uint64_t values[] = {
		r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->sp,    r->r8,          r->r9,
		r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->pc,  r->flags, r->call_number,
	};

	fprintf(out, "registers");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		fprintf(out, " %" PRIx64, values[i]);
	fprintf(out, "\n");
}

static void write_layout(const struct layout *layout, FILE *out)
{
	char *text = NULL;
	size_t length = 0;
	FILE *lines = open_memstream(&text, &length);

	if (!lines)
		fail("writing", errno);
	layout_text_write(layout, lines);
	fclose(lines);
	fprintf(out, "layout %zu\n", length);
	fwrite(text, 1, length, out);
	free(text);
}

static void write_image(const struct memory_image *image, struct recorder *recorder, FILE *out)
{
	const struct vm_code *vm = &image->vm;

	fprintf(out, "vm %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\ng %" PRIx64 "\n", vm->begin,
		vm->end, vm->ffi_call, vm->ffi_call_end, image->g);
	write_registers(&image->registers, out);
	for (size_t i = 0; i < image->module_count; i++)
		fprintf(out, "module %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", image->modules[i].begin,
			image->modules[i].end, image->modules[i].base);
	write_layout(&vm->layout, out);
	write_ranges(recorder, out);
}

static void pack(const char *text, size_t length, const char *path)
{
	size_t room = ZSTD_compressBound(length), packed;
	char *bytes = malloc(room);
	FILE *file = fopen(path, "w");

	if (!bytes || !file)
		fail(path, errno);
	packed = ZSTD_compress(bytes, room, text, length, 19);
	if (ZSTD_isError(packed) || fwrite(bytes, 1, packed, file) != packed || fclose(file))
		fail(path, EIO);
	free(bytes);
}

/*---- The target ----*/

static void find_modules(pid_t pid, struct lua_process *process, struct memory_image *image)
{
	struct maps *maps = maps_new(pid);
	bool changed;

	image->vm = *lua_process_global(process, 0)->vm;
	image->g = lua_process_global(process, 0)->g;
	if (!maps || maps_refresh(maps, &changed))
		fail("mappings", EIO);
	for (size_t i = 0; i < maps_file_count(maps) && image->module_count < MODULES_MAX; i++) {
		const struct mapped_file *file = maps_file_at(maps, i);

		if (file->executable)
			image->modules[image->module_count++] = (struct module){ .begin = file->begin,
										 .end = file->end,
										 .base = file->base };
	}
	maps_free(maps);
}

static void record(const struct target *target, bool recognise, const char *path)
{
	static struct memory_image image;
	struct namer_options options = { .native = NATIVE_NONE };
	struct functions *functions = functions_new();
	struct recorder recorder = { .memory.read_ranges = record_ranges };
	struct lua_process *process;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int error = lua_process_open(target->pid, functions, NULL, &options, &process);

	memset(&image, 0, sizeof(image));
	if (!error)
		error = lua_process_refresh(process, true);
	if (error || lua_process_global_count(process) != 1)
		fail("the target", error ? -error : ENOENT);
	find_modules(target->pid, process, &image);
	if (target_registers(target, &image.registers))
		fail("registers", EIO);
	recorder.live = lua_process_memory(process);
	recorder.intervals = calloc(RANGES_MAX, sizeof(recorder.intervals[0]));
	if (!recorder.intervals || !out)
		fail("recording", ENOMEM);
	if (recognise)
		reading_recognise(&image, &recorder.memory);
	else
		reading_walk(&image, &recorder.memory, true);
	write_image(&image, &recorder, out);
	fclose(out);
	pack(text, length, path);
	printf("%s: %zu bytes of memory in %zu ranges\n", path, length, recorder.count);
	free(text);
	free(recorder.intervals);
	lua_process_close(process);
	functions_free(functions);
}

int main(int argc, char *argv[])
{
	unsigned long count = argc > 5 ? strtoul(argv[4], NULL, 10) : 0;
	struct target target;
	int error;

	if (count == 0) {
		fprintf(stderr, "usage: make_image walk|recognise FOLDER NAME COUNT LUAJIT ARGUMENT...\n");
		return 64;
	}
	error = target_start(&target, argv + 5);
	if (error)
		fail(argv[5], -error);
	nanosleep(&(struct timespec){ 0, START_NS }, NULL);
	error = target_hold(&target);
	for (unsigned long i = 0; i < count && !error; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s-%lu.image", argv[2], argv[3], i);
		error = target_run(&target, APART_NS + (long)i * 1000003);
		if (!error)
			error = target_stop(&target);
		if (!error)
			record(&target, strcmp(argv[1], "recognise") == 0, path);
	}
	target_end(&target);
	if (error)
		fail(argv[5], -error);
	return 0;
}
