/* SPDX-License-Identifier: MIT */
/*
 * profile: samples merged into one tree of stacks, in memory.
 *
 * Every output format is a view of a profile. Frames of a function merge by
 * function identity; a node's children are in the order of first appearance.
 * Stacks may be tens of thousands of frames deep: walk the tree with
 * profile_node_next(), never by recursion.
 */
#ifndef LJSPY_PROFILE_H
#define LJSPY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/sample.h"
#include "output/sample/weight.h"

struct profile_node {
	const struct function *function;	/* NULL at the root */
	uint32_t line;		/* 0 in the function view, or unknown */
	uint32_t depth;		/* 0 at the root */
	enum frame_certainty certainty;	/* exact unless told apart */
	bool compiled;		/* all of its samples were in compiled code */
	uint64_t own_ns;	/* weight of samples whose leaf this is */
	uint64_t total_ns;	/* own and everything called from here */
	uint64_t compiled_ns;	/* of total_ns, while this frame was compiled code */
	uint64_t own_samples;
	uint64_t total_samples;
	uint64_t own_state_ns[VM_STATE_COUNT];	/* own_ns, by what the VM was doing */
	struct profile_node *parent;
	struct profile_node *first_child;
	struct profile_node *next_sibling;
};

struct profile_options {
	enum weight_kind weight;
	bool by_line;		/* a frame is a function and line, not a function */
	bool by_compiled;	/* interpreted and compiled code are different frames */
	bool by_certainty;	/* and so are positions that are known for sure and others */
	bool inverted;		/* leaves at the root: their callers lie on them */
};

/* What samples of one stack add to it. */
struct profile_sum {
	uint64_t ns;		/* weight */
	uint64_t samples;
	uint64_t state_ns[VM_STATE_COUNT];	/* ns, by what the VM was doing */
};

struct profile;

/* NULL when memory is short. Functions in samples must outlive the profile. */
struct profile *profile_new(const struct profile_options *options);
void profile_free(struct profile *profile);

/* 0, or -ENOMEM: then the profile is as before. */
int profile_add(struct profile *profile, const struct sample *sample);
/* The same of samples with these frames, leaf first, which end at a node that lives as long as the profile. */
int profile_add_sum(struct profile *profile, const struct frame *frames, size_t count,
		    const struct profile_sum *sum, const struct profile_node **ret_leaf);

/*
 * Add all that is in another profile, which is not inverted and tells apart
 * all that this one does. 0, or -ENOMEM: then a part of it was added.
 */
int profile_add_profile(struct profile *profile, const struct profile *from);

const struct profile_options *profile_options(const struct profile *profile);
const struct profile_node *profile_root(const struct profile *profile);
size_t profile_node_count(const struct profile *profile);	/* the root excluded */
size_t profile_depth(const struct profile *profile);	/* of the deepest node */

/* Where in another profile with the same options this child of parent is; NULL if it is not there. */
const struct profile_node *profile_find_child(const struct profile *profile,
					      const struct profile_node *parent,
					      const struct profile_node *child);

/* The node after this one, callers before callees; NULL after the last. */
const struct profile_node *profile_node_next(const struct profile_node *node);

#endif
