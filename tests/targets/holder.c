/* SPDX-License-Identifier: MIT */
/*
 * Holds memory of known sizes: blocks of malloc() in the arenas of some threads, every
 * second one freed; large blocks; stacks with known parts in use. Says what malloc()
 * knows of it, then does nothing.
 *
 *	holder THREADS
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BLOCKS = 4000,
	BLOCK_BYTES = 1000, /* too much for what malloc() keeps by threads and sizes */
	LARGE_BLOCKS = 3,
	LARGE_BYTES = 4 << 20,
	STACK_BYTES = 256 << 10,
	MAPPED_BYTES = 2 << 20,
	UNTOUCHED_BYTES = 64 << 20,
};

static pthread_barrier_t filled;

static void hold_blocks(void)
{
	static __thread char *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		if (!blocks[i])
			abort();
		memset(blocks[i], 1, BLOCK_BYTES);
	}
	for (int i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
}

static void *run(void *context)
{
	volatile char used[STACK_BYTES];

	for (size_t i = 0; i < sizeof(used); i += 512)
		used[i] = (char)i;
	hold_blocks();
	pthread_barrier_wait(&filled);
	pause();
	return context;
}

static char *map(size_t length)
{
	char *mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		abort();
	return mapped;
}

/* What is read but never written has no memory of its own: the kernel's page of zeros stands for it. */
static void map_some(void)
{
	volatile char *untouched = map(UNTOUCHED_BYTES);

	memset(map(MAPPED_BYTES), 1, MAPPED_BYTES);
	for (size_t i = 0; i < UNTOUCHED_BYTES; i += 4096)
		(void)untouched[i];
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	char *large[LARGE_BLOCKS], buffer[BUFSIZ];
	struct mallinfo2 info;
	pthread_t thread;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* or printf() allocates one */
	pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, run, NULL))
			abort();
	hold_blocks();
	for (int i = 0; i < LARGE_BLOCKS; i++) {
		large[i] = malloc(LARGE_BYTES);
		if (!large[i])
			abort();
		memset(large[i], 1, LARGE_BYTES);
	}
	map_some();
	pthread_barrier_wait(&filled);
	info = mallinfo2();
	printf("arenas %zu free %zu large %zu stacks %zu mapped %d\nready\n", info.arena,
	       info.fordblks - info.fsmblks, info.hblkhd, (size_t)threads * STACK_BYTES, MAPPED_BYTES);
	fflush(stdout);
	pause();
	return large[0] == NULL;
}
