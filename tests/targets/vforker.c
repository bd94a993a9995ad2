/* SPDX-License-Identifier: MIT */
/*
 * vforker: waits uninterruptibly for a vfork()ed child, which prints its id,
 * waits for a line and ends; then prints "done" and spins.
 */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char text[64];
	volatile unsigned long count = 0;
	pid_t child = vfork();

	if (child == 0) {
		int length = snprintf(text, sizeof(text), "ready\n%d\n", (int)getpid());

		if (write(STDOUT_FILENO, text, (size_t)length) < 0 ||
		    read(STDIN_FILENO, text, sizeof(text)) < 0)
			_exit(1);
		_exit(0);
	}
	puts("done");
	fflush(stdout);
	for (;;)
		count = count + 1;
}
