/* SPDX-License-Identifier: MIT */
/*
 * call_numbers: system calls that the C library may be too old to name.
 *
 * Since Linux 5.1, a new call has the same number on every machine (asm-generic/unistd.h).
 */
#ifndef LJSPY_CALL_NUMBERS_H
#define LJSPY_CALL_NUMBERS_H

#include <sys/syscall.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#endif
