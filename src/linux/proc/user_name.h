/* SPDX-License-Identifier: MIT */
/*
 * user_name: the name of a user on this machine.
 */
#ifndef LJSPY_USER_NAME_H
#define LJSPY_USER_NAME_H

#include <sys/types.h>

enum { USER_NAME_SIZE = 64 };

/*
 * The name in /etc/passwd, else the number. getpwuid() may load libraries, which a
 * static program cannot do.
 */
void user_name(uid_t uid, char ret_name[static USER_NAME_SIZE]);

#endif
