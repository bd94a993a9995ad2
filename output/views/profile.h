/* SPDX-License-Identifier: MIT */
/*
 * profile: samples merged into one tree of stacks, in memory.
 *
 * Frames merge if their function pointers are equal. A node's children are in
 * the order of first appearance. Stacks may be tens of thousands of frames
 * deep: walk the tree with profile_node_next(), never by recursion.
 */
#ifndef LJSPY_PROFILE_H
#define LJSPY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/sample.h"
#include "output/sample/weight.h"

struct profile_node {
	const struct function *function; /* NULL at the root */
	uint32_t line;                   /* 0 in the function view or if unknown */
	uint32_t depth;                  /* 0 at the root */
	enum frame_certainty certainty;  /* exact without by_certainty */
	bool compiled;                   /* all samples were in compiled code */
	uint64_t own_ns;                 /* weight of samples with this leaf */
	uint64_t total_ns;               /* own_ns and the weight of all callees */
	uint64_t compiled_ns;            /* part of total_ns with this frame in compiled code */
	uint64_t own_samples;
	uint64_t total_samples;
	uint64_t own_state_ns[VM_STATE_COUNT]; /* own_ns by state of the VM */
	struct profile_node *parent;
	struct profile_node *first_child;
	struct profile_node *next_sibling;
};

struct profile_options {
	enum weight_kind weight;
	bool by_line;      /* frames differ by line, not only by function */
	bool by_compiled;  /* frames differ by interpreted and compiled code */
	bool by_certainty; /* frames differ by certainty of their position */
	bool inverted;     /* leaves are at the root, with their callers on top */
};

/* What samples of one stack add to a profile. */
struct profile_sum {
	uint64_t ns; /* weight */
	uint64_t samples;
	uint64_t state_ns[VM_STATE_COUNT]; /* ns by state of the VM */
};

struct profile;

/* NULL when memory is short. Functions in samples must outlive the profile. */
struct profile *profile_new(const struct profile_options *options);
void profile_free(struct profile *profile);

/* Add a sample. 0, or -ENOMEM: then the profile is unchanged. */
int profile_add(struct profile *profile, const struct sample *sample);
/*
 * The same for the sum of samples with these frames, leaf first. *ret_leaf is
 * the node where the stack ends; it lives as long as the profile.
 */
int profile_add_sum(struct profile *profile, const struct frame *frames, size_t count,
		    const struct profile_sum *sum, const struct profile_node **ret_leaf);

/*
 * Add all of another profile, which must not be inverted and must have each
 * by_ option that this one has. 0, or -ENOMEM: then only a part was added.
 */
int profile_add_profile(struct profile *profile, const struct profile *from);

const struct profile_options *profile_options(const struct profile *profile);
const struct profile_node *profile_root(const struct profile *profile);
size_t profile_node_count(const struct profile *profile); /* the root excluded */
size_t profile_depth(const struct profile *profile);      /* of the deepest node */

/*
 * The child of parent, a node of profile, that is the same frame as child, a node of another
 * profile, which has each by_ option that this one has. NULL if there is none.
 */
const struct profile_node *profile_find_child(const struct profile *profile,
					      const struct profile_node *parent,
					      const struct profile_node *child);

/* The node after this one, callers before callees; NULL after the last. */
const struct profile_node *profile_node_next(const struct profile_node *node);

#endif
