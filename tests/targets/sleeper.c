/* SPDX-License-Identifier: MIT */
/*
 * sleeper [LIMIT]: waits in epoll_wait() for a line, then prints how often that was interrupted.
 * Each wait has a limit of so many milliseconds, if one is given.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), limit = argc > 1 ? atoi(argv[1]) : -1, interrupted = 0, got;

	epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
	puts("ready");
	fflush(stdout);
	while ((got = epoll_wait(epoll, &event, 1, limit)) < 0 && errno == EINTR)
		interrupted++;
	printf("%d\n", got == 1 ? interrupted : -1);
	return 0;
}
