/* SPDX-License-Identifier: MIT */
/*
 * heeds: the options that a format heeds, of those that others have no use for.
 */
#ifndef LJSPY_HEEDS_H
#define LJSPY_HEEDS_H

enum heeds {
	HEEDS_INVERTED = 1,
	HEEDS_MIN_PERCENT = 1 << 1,
	HEEDS_ANNOTATE = 1 << 2,
	HEEDS_SOURCE = 1 << 3, /* the lines of source files: see struct view */
	HEEDS_COUNT = 1 << 4,  /* of heaps: measured so */
	HEEDS_RETAINED = 1 << 5,
	HEEDS_GROUP = 1 << 6, /* of heaps */
};

#endif
