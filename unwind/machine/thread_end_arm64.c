/* SPDX-License-Identifier: MIT */
#include "unwind/machine/thread_end.h"

/* The return address is stored at the low end, alone or behind the frame pointer. */
const unsigned int thread_end_words = 2, program_end_words = 2;

/* mov x8, #__NR_exit; svc #0 */
const uint8_t thread_end_code[THREAD_END_BYTES] = { 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
