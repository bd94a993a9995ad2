/* SPDX-License-Identifier: MIT */
/*
 * wait_text: what a sleeping thread waits for, in words.
 *
 * "read /etc/hosts", "connect 10.0.0.1:80", "DNS lookup at 10.0.0.53:53
 * (recvfrom)", "wait4 sh", "futex (lock)", "unknown". What cannot be found
 * out is left away, never guessed.
 */
#ifndef LJSPY_WAIT_TEXT_H
#define LJSPY_WAIT_TEXT_H

#include "src/linux/proc/socket_peer.h"
#include "src/linux/threads/wait.h"

enum {
	WAIT_TEXT_SIZE = 320,
	WAIT_PATH_SIZE = 256,	/* of longer paths, the beginning */
};

/* The socket that a thread waited for last: to find whose it is takes a while. All zero at first. */
struct wait_socket {
	uint64_t inode;
	struct socket_peer peer;
};

/*
 * May correct the wait: a poll of nothing but a socket that listens waits for
 * whatever comes. The text may hold any byte but NUL.
 */
void wait_describe(pid_t pid, struct memory *memory, const struct thread_call *call,
		   struct wait *wait, struct wait_socket *last, char ret_text[static WAIT_TEXT_SIZE]);

/* The same without what it is about, for when there are too many of those. */
void wait_describe_briefly(const struct thread_call *call, const struct wait *wait,
			   char ret_text[static WAIT_TEXT_SIZE]);

#endif
