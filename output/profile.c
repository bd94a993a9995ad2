#include "output/profile.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/*
 * Children are found through one table for the whole tree, so that a node
 * with very many of them costs no more than one with few. The key has no
 * padding: it is hashed and compared as bytes.
 */
struct node_key {
	const struct profile_node *parent;
	const struct function *function;
	uint32_t line;
	uint32_t compiled;
};

struct node {
	struct profile_node node;	/* first: a node and its profile_node are one address */
	struct node *last_child;
	struct node_key key;
	UT_hash_handle hh;
};

struct profile {
	struct profile_options options;
	struct node root;
	struct node *nodes;	/* the table; all nodes but the root */
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
	struct node *node, *next;

	if (!profile)
		return;
	HASH_ITER(hh, profile->nodes, node, next) {
		HASH_DEL(profile->nodes, node);
		free(node);
	}
	free(profile);
}

static struct node_key node_key(const struct profile *profile, const struct node *parent,
				const struct frame *frame)
{
	return (struct node_key) {
		.parent = &parent->node,
		.function = frame->function,
		.line = profile->options.by_line ? frame->line : 0,
		.compiled = profile->options.by_compiled && frame->compiled,
	};
}

static struct node *add_node(struct profile *profile, struct node *parent,
			     const struct node_key *key)
{
	struct node *node = calloc(1, sizeof(*node));
	bool added = true;

	if (!node)
		return NULL;
	node->key = *key;
	node->node.function = key->function;
	node->node.line = key->line;
	node->node.depth = parent->node.depth + 1;
	node->node.compiled = true;
	node->node.parent = &parent->node;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
	HASH_ADD(hh, profile->nodes, key, sizeof(node->key), node);
	if (!added) {
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

/* A node without samples was made for a stack that then did not fit: take it and its line of descent out again. */
static void remove_new_nodes(struct profile *profile, struct node *leaf)
{
	while (leaf != &profile->root && leaf->node.total_samples == 0) {
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

static void add_weight(struct node *leaf, const struct sample *sample, uint64_t weight)
{
	struct profile_node *node = &leaf->node;

	node->own_ns += weight;
	node->own_samples++;
	for (size_t i = 0; i < sample->frame_count; i++, node = node->parent) {
		node->total_ns += weight;
		node->total_samples++;
		if (sample->frames[i].compiled)
			node->compiled_ns += weight;
		else
			node->compiled = false;
	}
	node->total_ns += weight;
	node->total_samples++;
}

int profile_add(struct profile *profile, const struct sample *sample)
{
	struct node *at = &profile->root;

	for (size_t i = sample->frame_count; i-- > 0;) {
		struct node_key key = node_key(profile, at, &sample->frames[i]);
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
	add_weight(at, sample, profile->options.weight == PROFILE_CPU_TIME ?
		   sample->cpu_ns : sample->wall_ns);
	if (sample->frame_count > profile->depth)
		profile->depth = sample->frame_count;
	return 0;
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

const struct profile_node *profile_node_next(const struct profile_node *node)
{
	if (node->first_child)
		return node->first_child;
	while (node && !node->next_sibling)
		node = node->parent;
	return node ? node->next_sibling : NULL;
}
