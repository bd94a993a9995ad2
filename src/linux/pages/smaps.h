/* SPDX-License-Identifier: MIT */
/*
 * smaps: how much of each mapping is in memory, from /proc/PID/smaps.
 *
 * The kernel counts in KiB. It rounds a mapping's share of shared pages down.
 */
#ifndef LJSPY_SMAPS_H
#define LJSPY_SMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/linux/proc/maps.h"

/* Bytes of one mapping, or of all. */
struct smaps_figures {
	uint64_t rss;
	uint64_t pss;     /* each page divided by the number of its users */
	uint64_t shared;  /* of rss: pages that others have, too */
	uint64_t swap;    /* not part of rss */
	uint64_t hugetlb; /* not part of rss */
};

struct smaps {
	struct maps *maps;
	struct smaps_figures *figures; /* one for each mapping, in order */
	struct smaps_figures total;
};

/* 0, or a negative errno (-ESRCH: gone, or without memory). Free with smaps_clear(). */
int smaps_read(pid_t tid, struct smaps *ret_smaps);
void smaps_clear(struct smaps *smaps);

/* For tests: the same from a text. 0 or -ENOMEM. */
int smaps_parse(const char *text, size_t length, struct smaps *ret_smaps);

/* Do both have the same mappings with the same figures? Shares of pages do not count. */
bool smaps_are_equal(const struct smaps *left, const struct smaps *right);

#endif
