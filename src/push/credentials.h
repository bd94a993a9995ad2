/* SPDX-License-Identifier: MIT */
/*
 * credentials: who ljspy is to a server, from a file, for a command line can be read by everybody.
 *
 *	# a comment
 *	user NAME:PASSWORD	HTTP's basic authentication, or
 *	token TOKEN		a bearer token
 *	tenant ID		X-Scope-OrgID, of Pyroscope with several tenants
 */
#ifndef LJSPY_CREDENTIALS_H
#define LJSPY_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

enum { CREDENTIALS_FILE_MAX = 1 << 14, CREDENTIAL_SIZE = 4096 };

/* Each is "" if it is not given. */
struct credentials {
	char user[CREDENTIAL_SIZE];
	char token[CREDENTIAL_SIZE];
	char tenant[CREDENTIAL_SIZE];
};

/* 0, or the number of the first line that is wrong; such as one with control characters. */
int credentials_read_text(const char *text, struct credentials *ret_credentials);

/* 0; a negative errno; or the number of the first line that is wrong. */
int credentials_read(const char *path, struct credentials *ret_credentials);

#endif
