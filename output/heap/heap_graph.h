/* SPDX-License-Identifier: MIT */
/*
 * heap_graph: what one global_State holds, and what holds what.
 *
 * Nodes are objects, edges are references. Node 0 is the root; its edges are what the
 * collector's mark phase starts from (the registry, the main thread, metatables of basic
 * types, ...), and its size is 0. Memory that the VM holds without an object (the string
 * table, buffers, ...) is a node of kind HEAP_VM below the root. A graph is built once,
 * node by node: first a node, then its edges. It knows addresses only of what was added.
 *
 * Texts are bytes of the target: of any content but NUL, cut at HEAP_TEXT_MAX, not escaped.
 */
#ifndef LJSPY_HEAP_GRAPH_H
#define LJSPY_HEAP_GRAPH_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HEAP_ROOT = 0,      /* a node */
	HEAP_TEXT_NONE = 0, /* a text: none */
	HEAP_TEXT_MAX = 256,
};

/* No node and no edge of a graph has these numbers. */
enum { HEAP_NO_EDGE = UINT32_MAX, HEAP_NO_NODE = UINT32_MAX };

/* LuaJIT's types of objects (~LJ_T*), and two that are no objects. */
enum heap_kind {
	HEAP_KIND_ROOT,
	HEAP_KIND_STRING,
	HEAP_KIND_UPVALUE,
	HEAP_KIND_THREAD,
	HEAP_KIND_PROTO,
	HEAP_KIND_FUNCTION,
	HEAP_KIND_TRACE,
	HEAP_KIND_CDATA,
	HEAP_KIND_TABLE,
	HEAP_KIND_USERDATA,
	HEAP_KIND_VM, /* memory of the VM that is no object; its text says which */
	HEAP_KIND_COUNT
};

enum heap_flag {
	HEAP_DEAD = 1 << 0,      /* the collector found it dead and has not swept it yet */
	HEAP_FINALIZER = 1 << 1, /* has a finalizer (__gc, ffi.gc) */
	HEAP_WEAK = 1 << 2,      /* a table with __mode */
};

struct heap_node {
	uint64_t address; /* of the object; 0: none */
	uint64_t bytes;   /* what the allocator was asked for */
	/*
	 * What it is, HEAP_TEXT_NONE if that is not known: a function or prototype its
	 * definition, "render page.lua:58"; a function in C that has upvalues what its frame reads in
	 * stacks, others in C have none; a cdata its C type; a string its contents, if the user
	 * asked for them; a thread the first function on its stack, wherever it stands: the one
	 * that it was made for, but after a tail call, or where a host calls one function after
	 * another. The main thread, and one whose first function is in C, have none.
	 */
	uint32_t text;
	uint32_t module;     /* a function, prototype or thread: the file it belongs to, as LuaJIT names it */
	uint32_t first_edge; /* its edges go on to the next node's first */
	union {
		uint32_t slots; /* a table's array slots and hash nodes; a buffer's bytes */
		/* A thread's: a text, where it stands. None: unknown, or its text has it (old files). */
		uint32_t place;
	};
	uint32_t used; /* how many of the slots are */
	uint8_t kind;  /* enum heap_kind */
	uint8_t flags; /* enum heap_flag */
};

/* How a node holds another. text, number and detail mean: */
enum heap_hold {
	HEAP_HOLDS_ROOT,      /* text: what is held, "registry", "metatable of strings", "package.loaded" */
	HEAP_HOLDS_FIELD,     /* text: the string key of a table's value */
	HEAP_HOLDS_INDEX,     /* number: the numeric key of a table's value, if it is an integer that fits */
	HEAP_HOLDS_VALUE,     /* text: a key of another type, "true", "1.5", "table", "function" */
	HEAP_HOLDS_KEY,       /* the table holds the node as a key */
	HEAP_HOLDS_METATABLE, /* */
	HEAP_HOLDS_ENVIRONMENT, /* of a function, thread or userdata */
	HEAP_HOLDS_UPVALUE,     /* text: the upvalue's name; number: which */
	HEAP_HOLDS_CLOSED,      /* an upvalue its value */
	HEAP_HOLDS_LOCAL,       /* a thread's frame; text: the local's name; detail: "render page.lua:60" */
	HEAP_HOLDS_SLOT,        /* a thread's frame, not a local; detail as above */
	HEAP_HOLDS_PROTO,       /* a function or prototype */
	HEAP_HOLDS_CONSTANT,    /* of a prototype or trace; its names of variables and its chunkname, too */
	HEAP_HOLDS_TRACE,       /* of a prototype, or a trace linked from a trace; number: of the trace */
	HEAP_HOLDS_OTHER,       /* text: how; "finalizer", "buffer", "callback" */
	HEAP_HOLD_COUNT
};

struct heap_edge {
	uint32_t to;   /* a node */
	uint32_t text; /* see enum heap_hold */
	union {
		uint32_t detail; /* a text */
		int32_t number;
	};
	uint8_t hold; /* enum heap_hold */
	bool weak;    /* the collector does not follow it */
};

struct heap_graph {
	struct heap_node *nodes; /* node_count, and one more that ends the last node's edges */
	struct heap_edge *edges;
	char *texts; /* each ends with NUL; a text is an offset into it, at 0 is "" */
	uint32_t node_count, edge_count, texts_bytes;
};

static inline const char *heap_text(const struct heap_graph *graph, uint32_t text)
{
	return graph->texts + text;
}

/* Where a thread stands; "" if that is unknown. */
static inline const char *heap_place(const struct heap_graph *graph, const struct heap_node *thread)
{
	return heap_text(graph, thread->place ? thread->place : thread->text);
}

/* Is this key of a table one that the source can write as a name? */
static inline bool heap_is_identifier(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

#endif
