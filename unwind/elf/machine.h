/* SPDX-License-Identifier: MIT */
/*
 * machine: which machine's processes this code reads.
 *
 * That is the machine that ljspy runs on. For core files of the other one, the same sources are compiled once
 * more with LJSPY_OTHER_MACHINE (core_stacks.h).
 */
#ifndef LJSPY_MACHINE_H
#define LJSPY_MACHINE_H

#if defined(__x86_64__) != defined(LJSPY_OTHER_MACHINE)
#define LJSPY_READS_X86_64
#else
#define LJSPY_READS_ARM64
#endif

#endif
