/* SPDX-License-Identifier: MIT */
/*
 * scatter: gives different lower bits to numbers that are consecutive or share
 * their lower bits. Tables use it to choose a slot.
 */
#ifndef LJSPY_SCATTER_H
#define LJSPY_SCATTER_H

#include <stdint.h>

static inline uint64_t scatter(uint64_t number)
{
	number *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
	return number ^ number >> 32;
}

#endif
