/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/scatter.h"
#include "output/heap_views/heap_nesting.h"
#include "output/heap_views/heap_words.h"
#include "output/heap_views/text_pool.h"
#include "output/labels/module_path.h"

enum { SLOTS_AT_FIRST = 1 << 12 };

/* Which of a table's keys read as one. */
enum { MANY_FIELDS = 1 << 0, MANY_INDEXES = 1 << 1 };

/* Nothing holds the object. */
enum { HELD_BY_NOTHING = HEAP_HOLD_COUNT };

/* Paths that read the same have equal keys. Numbers of texts are the graph's. */
struct key {
	uint32_t parent; /* a node of the tree */
	uint32_t text, detail;
	uint32_t what; /* a text */
	uint32_t hold; /* enum heap_hold, the kind if it is described, and KEY_MANY */
};

enum { KEY_MANY = 1 << 16, KEY_KIND_SHIFT = 8 };

/* What is known of a node only while the tree is made. */
struct extra {
	struct key key;
	uint32_t fields;        /* children by a string key */
	bool of_package_loaded; /* it is package.loaded */
	bool of_main_thread;    /* it is the main thread */
	bool keeps_names; /* package.loaded or _G: their string keys are told apart even if they are many */
};

struct maker {
	const struct heap_graph *graph;
	const struct heap_analysis *analysis;
	uint8_t *many; /* by node of the graph */
	uint32_t *of;  /* the tree's node of each */
	struct heap_path *nodes;
	struct extra *extras;
	uint32_t count;
	size_t node_size, extra_size;
	uint32_t *slots; /* an open hash table of nodes, 0 where a slot is free */
	size_t slot_count;
	struct text_pool texts;
};

/*---- Nodes by key ----*/

static size_t hash_of(const struct key *key)
{
	uint64_t hash = scatter((uint64_t)key->parent << 32 | key->text);

	hash = scatter(hash ^ ((uint64_t)key->detail << 32 | key->what));
	return scatter(hash ^ key->hold);
}

static uint32_t *find_slot(const struct maker *maker, const struct key *key)
{
	size_t at = hash_of(key) & (maker->slot_count - 1);

	while (maker->slots[at] && memcmp(&maker->extras[maker->slots[at]].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (maker->slot_count - 1);
	return &maker->slots[at];
}

/* Keep the table at most half full. 0 or -ENOMEM. */
static int make_slots(struct maker *maker)
{
	size_t count = maker->slot_count ? 2 * maker->slot_count : SLOTS_AT_FIRST;
	uint32_t *slots;

	if (maker->slot_count && maker->count + 1 <= maker->slot_count / 2)
		return 0;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(maker->slots);
	maker->slots = slots;
	maker->slot_count = count;
	for (uint32_t i = 1; i < maker->count; i++)
		*find_slot(maker, &maker->extras[i].key) = i;
	return 0;
}

/* Room for one node more. 0 or -ENOMEM. */
static int make_room(struct maker *maker)
{
	struct heap_path *nodes;
	struct extra *extras;

	nodes = array_grow(maker->nodes, &maker->node_size, maker->count + 1, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	maker->nodes = nodes;
	extras = array_grow(maker->extras, &maker->extra_size, maker->count + 1, sizeof(*extras));
	if (!extras)
		return -ENOMEM;
	maker->extras = extras;
	return make_slots(maker);
}

/*---- Modules ----*/

/* The module that package.loaded has by this name, as files have it: "resty.core" is resty/core. */
static void module_by_name(const char *name, char ret_module[static MODULE_PATH_SIZE])
{
	char path[HEAP_TEXT_MAX + 1];

	snprintf(path, sizeof(path), "%s", name);
	for (char *at = path; *at; at++)
		if (*at == '.')
			*at = '/';
	module_path(&(struct function){ .file = path }, ret_module);
}

static int find_module(struct maker *maker, struct heap_path *node, const struct extra *parent,
		       const struct heap_edge *edge, const struct heap_node *object)
{
	char module[MODULE_PATH_SIZE];
	const char *file = heap_text(maker->graph, object->module);
	const char *name = edge ? heap_text(maker->graph, edge->text) : "";

	if (*file)
		module_path(&(struct function){ .file = file }, module);
	else if (parent->of_package_loaded && edge && edge->hold == HEAP_HOLDS_FIELD && *name &&
		 strcmp(name, "_G") != 0)
		module_by_name(name, module);
	else
		return 0;
	return text_pool_add(&maker->texts, module, &node->module);
}

/*---- Steps ----*/

static bool is_root(const struct heap_graph *graph, const struct heap_edge *edge, const char *name)
{
	return edge && edge->hold == HEAP_HOLDS_ROOT && strcmp(heap_text(graph, edge->text), name) == 0;
}

static void write_unheld(const struct heap_node *object, char ret_text[static HEAP_WORDS_SIZE])
{
	snprintf(ret_text, HEAP_WORDS_SIZE, "%s",
		 object->flags & HEAP_DEAD ? "dead, not swept yet" : "held weakly or by nothing");
}

/* Fill in the texts of a node. 0 or a negative errno. */
static int describe(struct maker *maker, struct heap_path *node, const struct extra *extra,
		    const struct heap_edge *edge, const struct heap_node *object)
{
	const struct heap_path *parent = &maker->nodes[node->parent];
	char step[HEAP_WORDS_SIZE] = "", what[HEAP_WORDS_SIZE] = "";
	struct heap_step words = {
		.edge = edge,
		.of = parent->what ? maker->texts.bytes + parent->what : NULL,
		.of_main_thread = maker->extras[node->parent].of_main_thread,
		.many = node->many,
		.of_package_loaded = maker->extras[node->parent].of_package_loaded,
	};
	int error;

	if (!edge)
		write_unheld(object, step);
	else if (edge->hold != HEAP_HOLDS_CLOSED)
		node->begins = heap_words_step(maker->graph, &words, step);
	node->begins = node->begins || node->parent == HEAP_PATHS_ROOT;
	if (extra->key.what && !is_root(maker->graph, edge, "main thread"))
		heap_words_what(maker->graph, object, what);
	if (!edge && !*what)
		snprintf(what, sizeof(what), "%s", heap_kind_plural((enum heap_kind)object->kind));
	error = text_pool_add(&maker->texts, step, &node->step);
	return error ? error : text_pool_add(&maker->texts, what, &node->what);
}

static enum heap_path_keys keys_of(const struct extra *parent, const struct heap_edge *edge)
{
	if (edge && edge->hold == HEAP_HOLDS_FIELD)
		return parent->keeps_names ? HEAP_KEYS_NONE : HEAP_KEYS_STRING;
	return edge && (edge->hold == HEAP_HOLDS_INDEX || edge->hold == HEAP_HOLDS_VALUE) ? HEAP_KEYS_OTHER
											  : HEAP_KEYS_NONE;
}

static int add_node(struct maker *maker, const struct key *key, const struct heap_edge *edge,
		    const struct heap_node *object, uint32_t *ret_node)
{
	struct extra extra = { .key = *key };
	struct heap_path node = {
		.parent = key->parent,
		.dominator = HEAP_NO_NODE,
		.kind = object->kind,
		.keys = (uint8_t)keys_of(&maker->extras[key->parent], edge),
		.many = key->hold & KEY_MANY,
		.unheld = !edge,
	};
	struct heap_path *parent;
	int error = make_room(maker);

	if (error)
		return error;
	parent = &maker->nodes[key->parent];
	node.depth = (uint16_t)(parent->depth + 1);
	node.module = parent->module;
	error = describe(maker, &node, &extra, edge, object);
	if (!error)
		error = find_module(maker, &node, &maker->extras[key->parent], edge, object);
	if (error)
		return error;
	extra.of_package_loaded = is_root(maker->graph, edge, "package.loaded");
	extra.of_main_thread = is_root(maker->graph, edge, "main thread");
	extra.keeps_names = extra.of_package_loaded ||
			    (edge && maker->extras[key->parent].of_package_loaded && node.begins);
	if (edge && edge->hold == HEAP_HOLDS_FIELD)
		maker->extras[key->parent].fields++;
	node.next_sibling = parent->first_child;
	parent->first_child = maker->count;
	maker->nodes[maker->count] = node;
	maker->extras[maker->count] = extra;
	*find_slot(maker, key) = maker->count;
	*ret_node = maker->count++;
	return 0;
}

/*---- Objects ----*/

static bool is_many(const struct maker *maker, uint32_t parent, uint32_t holder, const struct heap_edge *edge)
{
	const struct extra *extra = &maker->extras[parent];

	if (edge->hold == HEAP_HOLDS_FIELD)
		return (maker->many[holder] & MANY_FIELDS && !extra->keeps_names) ||
		       extra->fields >= HEAP_CHILDREN_MAX;
	return (edge->hold == HEAP_HOLDS_INDEX || edge->hold == HEAP_HOLDS_VALUE) &&
	       maker->many[holder] & MANY_INDEXES;
}

/* What tells objects of this kind apart that are held by the same; HEAP_TEXT_NONE: nothing. */
static uint32_t what_of(const struct maker *maker, const struct heap_node *object)
{
	return heap_kind_is_described((enum heap_kind)object->kind) && *heap_text(maker->graph, object->text)
		       ? object->text
		       : HEAP_TEXT_NONE;
}

static struct key key_of(const struct maker *maker, uint32_t parent, uint32_t holder,
			 const struct heap_edge *edge, const struct heap_node *object)
{
	struct key key = { .parent = parent, .text = edge->text, .hold = edge->hold };

	/* A path by numbers or by keys of other types reads the same: [*] */
	if (is_many(maker, parent, holder, edge)) {
		key.hold = (edge->hold == HEAP_HOLDS_FIELD ? HEAP_HOLDS_FIELD : HEAP_HOLDS_INDEX) | KEY_MANY;
		key.text = HEAP_TEXT_NONE;
	} else if (edge->hold == HEAP_HOLDS_INDEX || edge->hold == HEAP_HOLDS_LOCAL ||
		   edge->hold == HEAP_HOLDS_SLOT || edge->hold == HEAP_HOLDS_UPVALUE ||
		   edge->hold == HEAP_HOLDS_TRACE) {
		key.detail = edge->detail;
	}
	key.what = what_of(maker, object);
	if (key.what)
		key.hold |= (uint32_t)object->kind << KEY_KIND_SHIFT;
	return key;
}

/* Is this the step that led to the node itself? */
static bool repeats(const struct maker *maker, uint32_t node, const struct key *key)
{
	const struct key *last = &maker->extras[node].key;

	return node != HEAP_PATHS_ROOT && last->text == key->text && last->detail == key->detail &&
	       last->what == key->what && last->hold == key->hold;
}

/* The tree's node of an object that its holder's node and this edge lead to. 0 or a negative errno. */
static int step_to(struct maker *maker, uint32_t holder, const struct heap_edge *edge,
		   const struct heap_node *object, uint32_t *ret_node)
{
	uint32_t parent = maker->of[holder], found;
	struct key key = key_of(maker, parent, holder, edge, object);

	/* An upvalue and its value have one path. */
	if (edge->hold == HEAP_HOLDS_CLOSED && !key.what) {
		*ret_node = parent;
		return 0;
	}
	found = *find_slot(maker, &key);
	if (found) {
		*ret_node = found;
		return 0;
	}
	if (repeats(maker, parent, &key) || maker->nodes[parent].depth >= HEAP_DEPTH_MAX ||
	    maker->count >= HEAP_PATHS_MAX) {
		maker->nodes[parent].repeats = true;
		*ret_node = parent;
		return 0;
	}
	return add_node(maker, &key, edge, object, ret_node);
}

static int step_to_unheld(struct maker *maker, const struct heap_node *object, uint32_t *ret_node)
{
	struct key key = {
		.detail = object->flags & HEAP_DEAD,
		.hold = HELD_BY_NOTHING | (uint32_t)object->kind << KEY_KIND_SHIFT,
	};

	/* A full tree has a path for each kind only. */
	if (maker->count < HEAP_PATHS_MAX)
		key.what = what_of(maker, object);
	*ret_node = *find_slot(maker, &key);
	return *ret_node ? 0 : add_node(maker, &key, NULL, object, ret_node);
}

static int place_objects(struct maker *maker)
{
	const struct heap_graph *graph = maker->graph;
	const struct heap_analysis *analysis = maker->analysis;
	int error = 0;

	maker->of[HEAP_ROOT] = HEAP_PATHS_ROOT;
	for (uint32_t i = 1; i < analysis->reached && !error; i++) {
		uint32_t node = analysis->order[i];

		error = step_to(maker, analysis->holders[node], &graph->edges[analysis->edges[node]],
				&graph->nodes[node], &maker->of[node]);
	}
	for (uint32_t node = 1; node < graph->node_count && !error; node++)
		if (!heap_is_reached(analysis, node))
			error = step_to_unheld(maker, &graph->nodes[node], &maker->of[node]);
	return error;
}

/* The last node that is above or at both. */
static uint32_t common(const struct maker *maker, uint32_t left, uint32_t right)
{
	while (left != right) {
		if (maker->nodes[left].depth >= maker->nodes[right].depth)
			left = maker->nodes[left].parent;
		else
			right = maker->nodes[right].parent;
	}
	return left;
}

/* An object at its dominator's node has no dominator of its own there. */
static void add_dominator(struct maker *maker, uint32_t at, uint32_t dominator)
{
	struct heap_path *path = &maker->nodes[at];

	if (dominator != at)
		path->dominator = path->dominator == HEAP_NO_NODE ? dominator
								  : common(maker, path->dominator, dominator);
}

/* Does none of the other objects at its node retain it? */
static bool is_retained_apart(const struct maker *maker, uint32_t node)
{
	uint32_t dominator = maker->analysis->dominators[node];

	return dominator == HEAP_NO_NODE || maker->of[dominator] != maker->of[node];
}

/* What holds an object's dominator is at its own node or above, never below; see heap_paths.h. */
static void add_sums(struct maker *maker)
{
	const struct heap_graph *graph = maker->graph;
	const struct heap_analysis *analysis = maker->analysis;

	for (uint32_t node = 1; node < graph->node_count; node++) {
		struct heap_path *path = &maker->nodes[maker->of[node]];
		uint32_t dominator = analysis->dominators[node];

		path->own.bytes += graph->nodes[node].bytes;
		path->own.count++;
		if (is_retained_apart(maker, node))
			path->retained += analysis->retained[node];
		add_dominator(maker, maker->of[node],
			      dominator == HEAP_NO_NODE ? HEAP_PATHS_ROOT : maker->of[dominator]);
	}
	for (uint32_t i = maker->count; i-- > 0;) {
		struct heap_path *path = &maker->nodes[i], *parent = &maker->nodes[path->parent];

		path->total.bytes += path->own.bytes;
		path->total.count += path->own.count;
		if (i != HEAP_PATHS_ROOT) {
			parent->total.bytes += path->total.bytes;
			parent->total.count += path->total.count;
		}
	}
	maker->nodes[HEAP_PATHS_ROOT].retained = maker->nodes[HEAP_PATHS_ROOT].total.bytes;
}

/*---- Nodes that read the same ----*/

/* Does the path of a node have the same text as that of one above it? */
static bool reads_like(const struct maker *maker, uint32_t node, uint32_t above)
{
	const struct heap_path *lower = &maker->nodes[node], *upper = &maker->nodes[above];

	if (lower->what != upper->what)
		return false;
	while (lower->step == upper->step && lower->repeats == upper->repeats &&
	       lower->begins == upper->begins) {
		if (lower->begins)
			return true;
		lower = &maker->nodes[lower->parent];
		upper = &maker->nodes[upper->parent];
	}
	return false;
}

/* Nodes above each other that read the same are a group, which has the number of the first. Are there any? */
static bool find_alike(const struct maker *maker, uint32_t *groups)
{
	bool found = false;

	for (uint32_t node = 1; node < maker->count; node++) {
		uint32_t above = maker->nodes[node].parent;

		while (above != HEAP_PATHS_ROOT && !reads_like(maker, node, above))
			above = maker->nodes[above].parent;
		if (above == HEAP_PATHS_ROOT)
			continue;
		if (!groups[above])
			groups[above] = above;
		groups[node] = groups[above];
		found = true;
	}
	return found;
}

/* Set within of nodes by their groups. 0 or -ENOMEM. */
static int add_within(struct maker *maker, const uint32_t *groups)
{
	const uint32_t count = maker->graph->node_count;
	uint32_t *groups_of = calloc(count, sizeof(*groups_of));
	bool *nested;
	int error = -ENOMEM;

	for (uint32_t node = 1; groups_of && node < count; node++)
		groups_of[node] = groups[maker->of[node]];
	if (groups_of)
		error = heap_nesting_find(maker->graph, maker->analysis, groups_of, maker->count, &nested);
	free(groups_of);
	if (error)
		return error;
	for (uint32_t node = 1; node < count; node++)
		if (nested[node] && is_retained_apart(maker, node))
			maker->nodes[maker->of[node]].within += maker->analysis->retained[node];
	free(nested);
	return 0;
}

static int find_within(struct maker *maker)
{
	uint32_t *groups = calloc((size_t)maker->count + 1, sizeof(*groups));
	int error = groups ? 0 : -ENOMEM;

	if (!error && find_alike(maker, groups))
		error = add_within(maker, groups);
	free(groups);
	return error;
}

/*---- All ----*/

/* Which tables have many keys? */
static void find_many(struct maker *maker)
{
	const struct heap_graph *graph = maker->graph;

	for (uint32_t node = 0; node < graph->node_count; node++) {
		uint32_t fields = 0, indexes = 0;

		for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++) {
			fields += graph->edges[i].hold == HEAP_HOLDS_FIELD;
			indexes += graph->edges[i].hold == HEAP_HOLDS_INDEX ||
				   graph->edges[i].hold == HEAP_HOLDS_VALUE;
		}
		if (fields > HEAP_KEYS_MAX)
			maker->many[node] |= MANY_FIELDS;
		if (indexes > HEAP_INDEXES_MAX)
			maker->many[node] |= MANY_INDEXES;
	}
}

static int make(struct maker *maker)
{
	uint32_t count = maker->graph->node_count;
	int error = text_pool_init(&maker->texts);

	if (!error)
		error = make_room(maker);
	maker->many = calloc(count, sizeof(*maker->many));
	maker->of = calloc(count, sizeof(*maker->of));
	if (error || !maker->many || !maker->of)
		return -ENOMEM;
	maker->nodes[0] = (struct heap_path){ .kind = HEAP_KIND_ROOT, .begins = true };
	maker->extras[0] = (struct extra){ 0 };
	maker->count = 1;
	find_many(maker);
	error = place_objects(maker);
	if (error)
		return error;
	add_sums(maker);
	return find_within(maker);
}

int heap_paths_make(const struct heap_graph *graph, const struct heap_analysis *analysis,
		    struct heap_paths *ret_paths, uint32_t **ret_of)
{
	struct maker maker = { .graph = graph, .analysis = analysis };
	int error = make(&maker);

	free(maker.many);
	free(maker.extras);
	free(maker.slots);
	if (error || !ret_of)
		free(maker.of);
	if (error) {
		free(maker.nodes);
		text_pool_clear(&maker.texts);
		return error;
	}
	*ret_paths = (struct heap_paths){ .nodes = maker.nodes, .count = maker.count };
	ret_paths->texts = text_pool_take(&maker.texts, &ret_paths->texts_bytes);
	if (ret_of)
		*ret_of = maker.of;
	return 0;
}

void heap_paths_clear(struct heap_paths *paths)
{
	free(paths->nodes);
	free(paths->texts);
	*paths = (struct heap_paths){ 0 };
}

/*---- Text ----*/

bool heap_path_is_main_thread(const struct heap_paths *paths, uint32_t node)
{
	const struct heap_path *path = &paths->nodes[node];

	return path->kind == HEAP_KIND_THREAD && path->parent == HEAP_PATHS_ROOT &&
	       strcmp(heap_paths_text(paths, path->step), "main thread") == 0;
}

uint32_t heap_path_top(const struct heap_paths *paths, uint32_t node)
{
	while (paths->nodes[node].stays)
		node = paths->nodes[node].parent;
	return node;
}

static size_t append(char *text, size_t length, const char *more)
{
	size_t room = HEAP_PATH_SIZE - length, more_length = strnlen(more, room - 1);

	memcpy(text + length, more, more_length);
	text[length + more_length] = '\0';
	return length + more_length;
}

static size_t append_step(const struct heap_paths *paths, uint32_t node, char *text, size_t length)
{
	const struct heap_path *path = &paths->nodes[node];
	const char *step = heap_paths_text(paths, path->step);

	if (path->folded)
		step = path->keys == HEAP_KEYS_STRING ? HEAP_MANY_STRINGS : HEAP_MANY_OTHERS;
	length = append(text, length, step);
	/* Of paths that add up some may repeat and others not. */
	return path->repeats && (path->folded || !path->adds_up) ? append(text, length, "\u2026") : length;
}

static void append_what(const struct heap_paths *paths, uint32_t node, char *text, size_t length)
{
	if (!paths->nodes[node].what)
		return;
	length = append(text, length, length ? ": " : "");
	append(text, length, heap_paths_text(paths, paths->nodes[node].what));
}

static size_t append_steps(const struct heap_paths *paths, uint32_t node,
			   char ret_text[static HEAP_PATH_SIZE])
{
	uint32_t steps[HEAP_DEPTH_MAX + 1];
	size_t count = 0, length = 0;

	ret_text[0] = '\0';
	for (uint32_t at = node; at != HEAP_PATHS_ROOT; at = paths->nodes[at].parent) {
		if (!paths->nodes[at].stays)
			steps[count++] = at;
		if (paths->nodes[at].begins)
			break;
	}
	while (count > 0)
		length = append_step(paths, steps[--count], ret_text, length);
	return length;
}

const char *heap_path_text(const struct heap_paths *paths, uint32_t node,
			   char ret_text[static HEAP_PATH_SIZE])
{
	append_what(paths, node, ret_text, append_steps(paths, node, ret_text));
	return ret_text;
}

const char *heap_path_place(const struct heap_paths *paths, uint32_t node,
			    char ret_text[static HEAP_PATH_SIZE])
{
	append_steps(paths, node, ret_text);
	return ret_text;
}

const char *heap_step_text(const struct heap_paths *paths, uint32_t node,
			   char ret_text[static HEAP_PATH_SIZE])
{
	size_t length;

	ret_text[0] = '\0';
	length = append_step(paths, node, ret_text, 0);
	append_what(paths, node, ret_text, length);
	return ret_text;
}
