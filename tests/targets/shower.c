/* SPDX-License-Identifier: MIT */
/* shower: prints its open descriptors, blocked and ignored signals; then fails with 7. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	sigset_t blocked;

	printf("fds");
	while ((entry = readdir(fds)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(fds))
			printf(" %s", entry->d_name);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	printf("\nblocked");
	for (int i = 1; i < 65; i++)
		if (sigismember(&blocked, i) == 1)
			printf(" %d", i);
	printf("\nSIGPIPE %s\n", signal(SIGPIPE, SIG_DFL) == SIG_IGN ? "ignored" : "deadly");
	printf("SIGXFSZ %s\n", signal(SIGXFSZ, SIG_DFL) == SIG_IGN ? "ignored" : "deadly");
	return 7;
}
