/* SPDX-License-Identifier: MIT */
/*
 * user_name: what a user is called on this machine.
 */
#ifndef LJSPY_USER_NAME_H
#define LJSPY_USER_NAME_H

#include <sys/types.h>

enum { USER_NAME_SIZE = 64 };

/*
 * As /etc/passwd has it, else the number. getpwuid() may load libraries, which
 * a static program cannot.
 */
void user_name(uid_t uid, char ret_name[static USER_NAME_SIZE]);

#endif
