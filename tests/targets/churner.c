/* SPDX-License-Identifier: MIT */
/*
 * churner PER_SECOND: starts and ends that many threads per second, each of
 * which computes and sleeps for a moment, until it is given a line; then prints
 * how many.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *compute(void *unused)
{
	const struct timespec moment = { 0, 3000000 };
	volatile unsigned long count = 0;

	for (int i = 0; i < 100000; i++)
		count = count + 1;
	nanosleep(&moment, NULL);
	return unused;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	long period_ns = 1000000000 / (argc > 1 ? atoi(argv[1]) : 1000);
	struct timespec next;
	int started = 0;

	puts("ready");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (poll(&input, 1, 0) == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, compute, NULL))
			return 1;
		pthread_detach(thread);
		started++;
		next.tv_nsec += period_ns;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("%d\n", started);
	return 0;
}
