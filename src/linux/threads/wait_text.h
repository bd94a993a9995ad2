/* SPDX-License-Identifier: MIT */
/*
 * wait_text: what a sleeping thread waits for, in words.
 *
 * "read /etc/hosts", "connect 10.0.0.1:80", "DNS lookup at 10.0.0.53:53
 * (recvfrom)", "wait4 sh", "futex (lock)", "unknown". ljspy leaves out what it cannot
 * find out, and never guesses.
 */
#ifndef LJSPY_WAIT_TEXT_H
#define LJSPY_WAIT_TEXT_H

#include "src/linux/sockets/socket_peer.h"
#include "src/linux/threads/wait.h"

enum {
	WAIT_TEXT_SIZE = 320,
	WAIT_PATH_SIZE = 256, /* longer paths are cut */
};

/* The socket that a thread last waited for, kept as finding its peer takes a while. All zero at first. */
struct wait_socket {
	uint64_t inode;
	struct socket_peer peer;
};

/*
 * Describe the wait, and correct it if needed: a poll of a listening socket only waits
 * for events (WAIT_EVENTS). The text may contain any byte but NUL.
 */
void wait_describe(pid_t pid, struct memory *memory, const struct thread_call *call, struct wait *wait,
		   struct wait_socket *last, char ret_text[static WAIT_TEXT_SIZE]);

/* The same without the file, peer or child, for when there are too many different texts. */
void wait_describe_briefly(const struct thread_call *call, const struct wait *wait,
			   char ret_text[static WAIT_TEXT_SIZE]);

#endif
