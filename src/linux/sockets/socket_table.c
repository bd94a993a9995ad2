/* SPDX-License-Identifier: MIT */
#include "src/linux/sockets/socket_table.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/linux/proc/proc_file.h"

enum {
	LINE_SIZE = 512,
	LINES_MAX = 20000, /* of a table that ljspy reads */
};

void socket_end_print(const struct socket_end *end, char ret_text[static SOCKET_END_SIZE])
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	bool is_mapped = end->family == AF_INET6 && memcmp(end->words, mapped, sizeof(mapped)) == 0;
	char address[INET6_ADDRSTRLEN] = "?";

	inet_ntop(is_mapped ? AF_INET : end->family, is_mapped ? &end->words[3] : end->words, address,
		  sizeof(address));
	if (end->family == AF_INET || is_mapped)
		snprintf(ret_text, SOCKET_END_SIZE, "%s:%u", address, (unsigned)end->port);
	else
		snprintf(ret_text, SOCKET_END_SIZE, "[%s]:%u", address, (unsigned)end->port);
}

/* "0100007F:0050": the words of the address as in memory, and the port. */
static bool parse_end(const char *address, unsigned int port, struct socket_end *ret_end)
{
	struct socket_end end = { .port = (uint16_t)port };
	size_t length = strlen(address);

	if (length != 8 && length != 8 * SOCKET_WORDS)
		return false;
	end.family = length == 8 ? AF_INET : AF_INET6;
	for (size_t i = 0; i < length / 8; i++)
		if (sscanf(address + 8 * i, "%8" SCNx32, &end.words[i]) != 1)
			return false;
	*ret_end = end;
	return true;
}

/* "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 ..." */
static bool parse_line(const char *line, struct socket_row *ret_row)
{
	char local[8 * SOCKET_WORDS + 1], remote[8 * SOCKET_WORDS + 1];
	unsigned int local_port, remote_port, state;
	struct socket_row row;

	if (sscanf(line,
		   " %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*[0-9A-Fa-f]:%" SCNx32
		   " %*s %*s %*u %*u %" SCNu64,
		   local, &local_port, remote, &remote_port, &state, &row.waiting, &row.inode) != 7 ||
	    !parse_end(local, local_port, &row.local) || !parse_end(remote, remote_port, &row.remote))
		return false;
	row.listens = state == SOCKET_STATE_LISTEN;
	*ret_row = row;
	return true;
}

void socket_table_walk(pid_t pid, const char *name, socket_table_take *take, void *context)
{
	int fd = proc_file_open(pid, name);
	FILE *table = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_SIZE];
	struct socket_row row;
	bool goes_on = true;

	if (!table) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (int i = 0; i < LINES_MAX && goes_on && fgets(line, sizeof(line), table); i++)
		goes_on = !parse_line(line, &row) || take(context, &row);
	fclose(table);
}
