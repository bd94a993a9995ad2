/* SPDX-License-Identifier: MIT */
#include "unwind/machine/thread_end.h"

/* The return address is above what they save. */
const unsigned int thread_end_words = 4, program_end_words = 6;

/* mov edi, eax; xor eax, eax; mov al, __NR_exit; syscall */
const uint8_t thread_end_code[THREAD_END_BYTES] = { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05 };
