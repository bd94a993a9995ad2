/* SPDX-License-Identifier: MIT */
/* deep_begin() starts a thread that sleeps in so many calls of deep(), and calls as many itself. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { FRAME_BYTES = 400 };

int deep(int n);
int deep_begin(int n);

__attribute__((noinline)) int deep(int n)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = (char)n;
	if (n == 1)
		return pause();
	return deep(n - 1) + frame[0];
}

static void *deep_thread(void *argument)
{
	return (void *)(intptr_t)deep((int)(intptr_t)argument);
}

int deep_begin(int n)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, deep_thread, (void *)(intptr_t)n) + deep(n);
}
