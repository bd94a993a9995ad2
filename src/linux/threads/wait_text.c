/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/wait_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"

/* A string in the target's memory, as far as it can be read; "" if it cannot. */
static void read_text(struct memory *memory, uint64_t address, char text[static WAIT_PATH_SIZE])
{
	size_t length = 0;
	uint8_t byte;

	while (length < WAIT_PATH_SIZE - 1 && memory_u8(memory, address + length, &byte) && byte)
		text[length++] = (char)byte;
	text[length] = '\0';
}

/* The peer whose address connect() or sendto() was given; false if there is none. */
static bool read_address(struct memory *memory, const struct thread_call *call, struct socket_peer *ret_peer)
{
	uint8_t bytes[sizeof(struct sockaddr_storage)];
	uint64_t address = 0, length = 0;

	if (call->number == SYS_connect) {
		address = call->arguments[1];
		length = call->arguments[2];
	} else if (call->number == SYS_sendto) {
		address = call->arguments[4];
		length = call->arguments[5];
	}
	if (address == 0 || length > sizeof(bytes) ||
	    memory_read(memory, address, bytes, (size_t)length) != MEMORY_OK)
		return false;
	socket_peer_read(bytes, (size_t)length, ret_peer);
	return ret_peer->known;
}

/* What the socket is connected to: by the call, or else as the kernel lists it, which last remembers. */
static struct socket_peer find_peer(pid_t pid, struct memory *memory, const struct thread_call *call,
				    uint64_t inode, struct wait_socket *last)
{
	struct socket_peer peer;

	if (read_address(memory, call, &peer))
		return peer;
	if (last->inode != inode || !last->peer.known)
		socket_peer_find(pid, inode, &last->peer);
	last->inode = inode;
	return last->peer;
}

static void describe_peer(struct wait *wait, const struct socket_peer *peer,
			  char ret_text[static WAIT_TEXT_SIZE])
{
	if (peer->listens && wait->kind == WAIT_POLL)
		wait->kind = WAIT_EVENTS;
	if (!peer->known)
		snprintf(ret_text, WAIT_TEXT_SIZE, "%s socket", wait->call);
	else if (peer->is_dns)
		snprintf(ret_text, WAIT_TEXT_SIZE, "DNS lookup at %s (%s)", peer->text, wait->call);
	else
		snprintf(ret_text, WAIT_TEXT_SIZE, "%s %s", wait->call, peer->text);
}

/* "/etc/hosts", "pipe:[123]", "socket:[123]", "anon_inode:[eventpoll]" */
static void describe_file(pid_t pid, struct memory *memory, const struct thread_call *call, struct wait *wait,
			  struct wait_socket *last, char ret_text[static WAIT_TEXT_SIZE])
{
	char path[sizeof("/proc//fd/") + 6 * sizeof(int)], target[WAIT_PATH_SIZE];
	struct socket_peer peer;
	uint64_t inode;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, wait->fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return;
	target[length] = '\0';
	if (sscanf(target, "socket:[%" SCNu64, &inode) == 1) {
		peer = find_peer(pid, memory, call, inode, last);
		describe_peer(wait, &peer, ret_text);
	} else if (strncmp(target, "pipe:", strlen("pipe:")) == 0) {
		snprintf(ret_text, WAIT_TEXT_SIZE, "%s pipe", wait->call);
	} else {
		snprintf(ret_text, WAIT_TEXT_SIZE, "%s %s", wait->call, target);
	}
}

/* Name the child that wait4() waits for, if that id is one here, too: in a container ids differ. */
static void describe_child(pid_t pid, const struct thread_call *call, const struct wait *wait,
			   char ret_text[static WAIT_TEXT_SIZE])
{
	pid_t child = call->number == SYS_wait4 ? (pid_t)call->arguments[0] : 0;
	struct process process;

	if (child <= 0 || process_parent(child) != pid || process_read(child, &process))
		return;
	snprintf(ret_text, WAIT_TEXT_SIZE, "%s %s", wait->call, process.name);
	process_clear(&process);
}

void wait_describe_briefly(const struct thread_call *call, const struct wait *wait,
			   char ret_text[static WAIT_TEXT_SIZE])
{
	if (!call->known)
		snprintf(ret_text, WAIT_TEXT_SIZE, "unknown");
	else if (call->number < 0)
		snprintf(ret_text, WAIT_TEXT_SIZE, "not in a system call");
	else if (!wait->call)
		snprintf(ret_text, WAIT_TEXT_SIZE, "system call %" PRId64, call->number);
	else
		snprintf(ret_text, WAIT_TEXT_SIZE, "%s%s", wait->call,
			 wait->kind == WAIT_LOCK        ? " (lock)"
			 : wait->kind == WAIT_CONDITION ? " (condition)"
							: "");
}

void wait_describe(pid_t pid, struct memory *memory, const struct thread_call *call, struct wait *wait,
		   struct wait_socket *last, char ret_text[static WAIT_TEXT_SIZE])
{
	char path[WAIT_PATH_SIZE];

	wait_describe_briefly(call, wait, ret_text);
	switch (wait->kind) {
	case WAIT_FILE:
	case WAIT_POLL: describe_file(pid, memory, call, wait, last, ret_text); break;
	case WAIT_PATH:
		read_text(memory, wait->path, path);
		if (*path)
			snprintf(ret_text, WAIT_TEXT_SIZE, "%s %s", wait->call, path);
		break;
	case WAIT_CHILD: describe_child(pid, call, wait, ret_text); break;
	case WAIT_UNKNOWN:
	case WAIT_EVENTS:
	case WAIT_TIME:
	case WAIT_CONDITION:
	case WAIT_LOCK:
	case WAIT_OTHER: break;
	}
}
