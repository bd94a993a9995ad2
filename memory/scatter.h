/* SPDX-License-Identifier: MIT */
/*
 * scatter: numbers that follow each other, or have their lower bits in common,
 * become ones whose lower bits differ. For places in tables.
 */
#ifndef LJSPY_SCATTER_H
#define LJSPY_SCATTER_H

#include <stdint.h>

static inline uint64_t scatter(uint64_t number)
{
	number *= UINT64_C(0x9e3779b97f4a7c15);	/* 2^64 / golden ratio */
	return number ^ number >> 32;
}

#endif
