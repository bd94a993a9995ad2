/* SPDX-License-Identifier: MIT */
/*
 * request_members: where one build of nginx keeps what it knows of requests and connections.
 *
 * ljspy takes each offset from the program: from the data of a variable, or from the code of the
 * function that returns its value. lua-nginx-module's functions for the same property
 * (ngx_http_lua_ffi_...) have to read the same members.
 *
 * What is not searched for are beginnings of structures, which are the same since nginx 0.7:
 * ngx_connection_t (data, read, write, fd), ngx_event_t (data), ngx_str_t (len, data), ngx_array_t
 * (elts, nelts, size, nalloc); and since nginx 1.9.1 ngx_http_upstream_state_t (status,
 * response_time, connect_time, header_time), whose last member is peer.
 */
#ifndef LJSPY_REQUEST_MEMBERS_H
#define LJSPY_REQUEST_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"

enum {
	MEMBER_UNKNOWN = -1,
	MEMBERS_BYTES_MAX = 4096, /* request_bytes and connection_bytes are at most that */
};

struct request_members {
	bool known; /* those without a comment are known */
	/* of ngx_http_request_t */
	int32_t connection, main, uri, method_name, server /* headers_in.server, the host */;
	int32_t start_sec, start_msec;
	int32_t status, err_status; /* of headers_out; both or MEMBER_UNKNOWN */
	int32_t args;               /* or MEMBER_UNKNOWN, as all below */
	int32_t request_length, upstream_states;
	/* of ngx_connection_t */
	int32_t addr_text;
	int32_t number, requests, sent;
	/* How many bytes of each have all of these. */
	size_t request_bytes, connection_bytes;
	uint64_t cycle;       /* address of ngx_cycle, a pointer; 0 if unknown */
	uint64_t cached_time; /* address of ngx_cached_time, a pointer; 0 if unknown */
	uint64_t timers;      /* address of ngx_event_timer_rbtree; 0 if unknown */
	uint64_t loop_ms;     /* address of ngx_current_msec, which timers count by; 0 if unknown */
};

/*
 * Is the module at base an nginx? machine is e_machine of its ELF header: false for any but
 * MACHINE_OWN, whose code alone this can read.
 */
bool request_members_find(struct memory *memory, uint16_t machine, uint64_t base,
			  struct request_members *ret_members);

/*
 * Do the functions of lua-nginx-module in the module at base read the same members? False also if
 * it has none of them, or none whose code tells.
 */
bool request_members_agree(struct memory *memory, uint64_t base, const struct request_members *members);

#endif
