/* SPDX-License-Identifier: MIT */
/*
 * execs first|second MS PROGRAM [ARGUMENT...]: runs PROGRAM, by the first thread or a second one, after that
 * thread has used so much CPU time. Prints the CPU time, in ms, that the process has used until then.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char **arguments;

static long used_ms(clockid_t clock)
{
	struct timespec used;

	clock_gettime(clock, &used);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void *work(void *unused)
{
	const long until_ms = atol(arguments[2]);
	volatile unsigned long count = 0;

	while (used_ms(CLOCK_THREAD_CPUTIME_ID) < until_ms)
		for (int i = 0; i < 100000; i++)
			count = count + 1;
	printf("before %ld\n", used_ms(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	execv(arguments[3], &arguments[3]);
	exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 4)
		return 1;
	arguments = argv;
	if (strcmp(argv[1], "first") == 0)
		work(NULL);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	return 1;
}
