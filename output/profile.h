/*
 * profile: samples merged into one tree of stacks, in memory.
 *
 * Every output format is a view of a profile. Frames of a function merge by
 * function identity; a node's children are in the order of first appearance.
 */
#ifndef LJSPY_PROFILE_H
#define LJSPY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample.h"

struct profile_node {
	const struct function *function;	/* NULL at the root */
	uint32_t line;		/* 0 in the function view */
	bool compiled;		/* all of its samples were in compiled code */
	uint64_t own_ns;	/* weight of samples whose leaf this is */
	uint64_t total_ns;	/* own and everything called from here */
	uint64_t own_samples;
	uint64_t total_samples;
	struct profile_node *parent;
	struct profile_node *first_child;
	struct profile_node *next_sibling;
};

struct profile_options {
	bool by_line;		/* a frame is a function and line, not a function */
};

struct profile;

/* NULL when memory is short. Functions in samples must outlive the profile. */
struct profile *profile_new(const struct profile_options *options);
void profile_free(struct profile *profile);

/* 0, or -ENOMEM: then the profile is as before. */
int profile_add(struct profile *profile, const struct sample *sample);

const struct profile_node *profile_root(const struct profile *profile);
size_t profile_node_count(const struct profile *profile);	/* the root excluded */
size_t profile_depth(const struct profile *profile);	/* of the deepest node */

#endif
