/* SPDX-License-Identifier: MIT */
/*
 * spinner THREADS: that many threads, the first included, which never sleep.
 * The others have a name that looks like the end of one in /proc/PID/stat.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long count;

static void *spin(void *unused)
{
	pthread_setname_np(pthread_self(), "spin) S 1");
	for (;;)
		count = count + 1;
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, spin, NULL))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		count = count + 1;
}
