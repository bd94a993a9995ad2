/* SPDX-License-Identifier: MIT */
/* zombie_leader: its first thread ends, a second one spins on. */
#include <pthread.h>
#include <stdio.h>

static volatile unsigned long count;

static void *spin(void *unused)
{
	for (;;)
		count = count + 1;
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spin, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	pthread_exit(NULL);
}
