/* SPDX-License-Identifier: MIT */
#include "output/views/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

/*
 * One table finds the children in the whole tree, so a node with very many
 * children costs no more than one with few. The key has no padding, because it
 * is hashed and compared as bytes.
 */
struct node_key {
	const struct profile_node *parent;
	const struct function *function;
	uint32_t line;
	uint16_t compiled;
	uint16_t certainty;
};

struct node {
	struct profile_node node; /* first: a node and its profile_node are one address */
	struct node *last_child;
	struct node_key key;
	UT_hash_handle hh;
};

struct profile {
	struct profile_options options;
	struct node root;
	struct node *nodes; /* the table; all nodes but the root */
	size_t depth;
};

struct profile *profile_new(const struct profile_options *options)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->options = *options;
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	HASH_FREE_ALL(profile->nodes);
	free(profile);
}

static struct node_key node_key(const struct profile *profile, const struct node *parent,
				const struct frame *frame)
{
	return (struct node_key){
		.parent = &parent->node,
		.function = frame->function,
		.line = profile->options.by_line ? frame->line : 0,
		.compiled = profile->options.by_compiled && frame->compiled,
		.certainty = profile->options.by_certainty ? (uint16_t)frame->certainty : 0,
	};
}

static struct node *add_node(struct profile *profile, struct node *parent, const struct node_key *key)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->key = *key;
	node->node.function = key->function;
	node->node.line = key->line;
	node->node.certainty = (enum frame_certainty)key->certainty;
	node->node.depth = parent->node.depth + 1;
	node->node.compiled = true;
	node->node.parent = &parent->node;
	HASH_ADD(hh, profile->nodes, key, sizeof(node->key), node);
	if (!hash_added(&node->hh)) {
		free(node);
		return NULL;
	}
	if (parent->last_child)
		parent->last_child->node.next_sibling = &node->node;
	else
		parent->node.first_child = &node->node;
	parent->last_child = node;
	return node;
}

/* After an error, remove the new nodes of the failed stack, which have no samples: leaf and its callers. */
static void remove_new_nodes(struct profile *profile, struct node *leaf)
{
	while (profile->nodes && leaf != &profile->root && leaf->node.total_samples == 0) {
		struct node *parent = (struct node *)leaf->node.parent;
		struct profile_node *last = NULL;

		if (parent->node.first_child == &leaf->node) {
			parent->node.first_child = NULL;
		} else {
			for (last = parent->node.first_child; last && last->next_sibling != &leaf->node;)
				last = last->next_sibling;
			if (last)
				last->next_sibling = NULL;
		}
		parent->last_child = (struct node *)last;
		HASH_DEL(profile->nodes, leaf);
		free(leaf);
		leaf = parent;
	}
}

/* The frame at this distance from the tree's root. frames are leaf first. */
static const struct frame *frame_at(const struct profile *profile, const struct frame *frames, size_t count,
				    size_t depth)
{
	return &frames[profile->options.inverted ? depth : count - 1 - depth];
}

static void add_weight(struct profile_node *node, const struct profile_sum *sum, bool compiled)
{
	node->total_ns += sum->ns;
	node->total_samples += sum->samples;
	if (compiled)
		node->compiled_ns += sum->ns;
	else
		node->compiled = false;
}

static void add_own_weight(struct profile_node *node, const struct profile_sum *sum)
{
	node->own_ns += sum->ns;
	node->own_samples += sum->samples;
	for (int state = 0; state < VM_STATE_COUNT; state++)
		node->own_state_ns[state] += sum->state_ns[state];
}

int profile_add_sum(struct profile *profile, const struct frame *frames, size_t count,
		    const struct profile_sum *sum, const struct profile_node **ret_leaf)
{
	struct node *at = &profile->root;
	struct profile_node *node;

	for (size_t depth = 0; depth < count; depth++) {
		struct node_key key = node_key(profile, at, frame_at(profile, frames, count, depth));
		struct node *child;

		HASH_FIND(hh, profile->nodes, &key, sizeof(key), child);
		if (!child)
			child = add_node(profile, at, &key);
		if (!child) {
			remove_new_nodes(profile, at);
			return -ENOMEM;
		}
		at = child;
	}
	node = &at->node;
	add_own_weight(node, sum);
	for (size_t depth = count; depth-- > 0; node = node->parent)
		add_weight(node, sum, frame_at(profile, frames, count, depth)->compiled);
	add_weight(node, sum, false);
	if (count > profile->depth)
		profile->depth = count;
	*ret_leaf = &at->node;
	return 0;
}

int profile_add(struct profile *profile, const struct sample *sample)
{
	const struct profile_node *leaf;
	struct profile_sum sum = {
		.ns = weight_of(profile->options.weight, sample),
		.samples = 1,
	};

	sum.state_ns[sample->vm_state] = sum.ns;
	return profile_add_sum(profile, sample->frames, sample->frame_count, &sum, &leaf);
}

/* List the frames of the stack that ends at node, leaf first. frames has room for the deepest stack. */
static size_t list_frames(const struct profile_node *node, struct frame *frames)
{
	size_t count = 0;

	for (; node->parent; node = node->parent)
		frames[count++] = (struct frame){
			.function = node->function,
			.line = node->line,
			.certainty = node->certainty,
			.compiled = node->compiled,
		};
	return count;
}

int profile_add_profile(struct profile *profile, const struct profile *from)
{
	struct frame *frames = calloc(from->depth + 1, sizeof(*frames));
	int error = frames ? 0 : -ENOMEM;

	for (const struct profile_node *node = profile_root(from); node && error == 0;
	     node = profile_node_next(node)) {
		struct profile_sum sum = { .ns = node->own_ns, .samples = node->own_samples };
		const struct profile_node *leaf;

		if (node->own_samples == 0)
			continue;
		memcpy(sum.state_ns, node->own_state_ns, sizeof(sum.state_ns));
		error = profile_add_sum(profile, frames, list_frames(node, frames), &sum, &leaf);
	}
	free(frames);
	return error;
}

const struct profile_options *profile_options(const struct profile *profile)
{
	return &profile->options;
}

const struct profile_node *profile_root(const struct profile *profile)
{
	return &profile->root.node;
}

size_t profile_node_count(const struct profile *profile)
{
	return HASH_COUNT(profile->nodes);
}

size_t profile_depth(const struct profile *profile)
{
	return profile->depth;
}

const struct profile_node *profile_find_child(const struct profile *profile,
					      const struct profile_node *parent,
					      const struct profile_node *child)
{
	const struct frame frame = {
		.function = child->function,
		.line = child->line,
		.certainty = child->certainty,
		.compiled = child->compiled,
	};
	struct node_key key = node_key(profile, (const struct node *)parent, &frame);
	struct node *found;

	HASH_FIND(hh, profile->nodes, &key, sizeof(key), found);
	return found ? &found->node : NULL;
}

const struct profile_node *profile_node_next(const struct profile_node *node)
{
	if (node->first_child)
		return node->first_child;
	while (node && !node->next_sibling)
		node = node->parent;
	return node ? node->next_sibling : NULL;
}
