/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/request_members.h"

#include "unwind/elf/dynamic_symbol.h"
#include "unwind/elf/registers.h"
#include "unwind/members/member_loads.h"
#include "unwind/nginx/variables.h"

enum {
	WORD = sizeof(uint64_t),
	STRING_BYTES = 2 * WORD, /* ngx_str_t */
};

struct search {
	struct memory *memory;
	struct variables core, upstream;
	struct request_members members;
};

/* What the function behind a variable reads. No loads if there is no such variable. */
static void loads_of(struct search *search, const struct variables *variables, const char *name,
		     struct member_loads *ret_loads)
{
	const struct variable *variable = variables_named(variables, name);

	ret_loads->count = 0;
	if (variable && variable->get)
		member_loads_of(search->memory, variable->get, ret_loads);
}

/*
 * The first member of the request that the code reads; MEMBER_UNKNOWN if it reads none. What it reads
 * behind a pointer comes later than the pointer.
 */
static int32_t first_of(const struct member_loads *loads)
{
	return loads->count ? loads->loads[0].offsets[0] : MEMBER_UNKNOWN;
}

/*
 * The first member of the first argument with an ngx_str_t, of which the code reads both words; or unknown.
 */
static int32_t first_string(const struct member_loads *loads, size_t depth, const int32_t *path)
{
	for (size_t i = 0; i < loads->count; i++) {
		const struct member_load *load = &loads->loads[i];
		int32_t other[MEMBER_DEPTH_MAX];
		size_t step = 0;

		if (load->depth != depth || (load->bytes != WORD && load->bytes != STRING_BYTES))
			continue;
		while (step + 1 < depth && load->offsets[step] == path[step])
			other[step] = path[step], step++;
		if (step + 1 < depth)
			continue;
		other[step] = load->offsets[step] + WORD;
		if (load->bytes == STRING_BYTES || member_loads_have(loads, depth, other))
			return load->offsets[step];
		other[step] = load->offsets[step] - WORD;
		if (member_loads_have(loads, depth, other))
			return other[step];
	}
	return MEMBER_UNKNOWN;
}

/* The only member of a structure, to which a member of the request points, that the code reads. */
static int32_t only_behind(const struct member_loads *loads, int32_t pointer)
{
	int32_t found = MEMBER_UNKNOWN;

	for (size_t i = 0; i < loads->count; i++) {
		if (loads->loads[i].depth != 2 || loads->loads[i].offsets[0] != pointer)
			continue;
		if (found != MEMBER_UNKNOWN)
			return MEMBER_UNKNOWN;
		found = loads->loads[i].offsets[1];
	}
	return found;
}

/* $remote_addr: r->connection->addr_text */
static bool find_connection(struct search *search)
{
	struct member_loads loads;

	loads_of(search, &search->core, "remote_addr", &loads);
	search->members.connection = first_of(&loads);
	search->members.addr_text = first_string(&loads, 2, &search->members.connection);
	return search->members.addr_text != MEMBER_UNKNOWN;
}

/* $request_method: r->main->method_name */
static bool find_method(struct search *search)
{
	struct member_loads loads;

	loads_of(search, &search->core, "request_method", &loads);
	search->members.main = first_of(&loads);
	search->members.method_name = first_string(&loads, 2, &search->members.main);
	return search->members.method_name != MEMBER_UNKNOWN;
}

/* $request_time: the time less r->start_sec and r->start_msec, neighbours that $pipe does not read. */
static bool find_start(struct search *search)
{
	struct member_loads loads;

	loads_of(search, &search->core, "request_time", &loads);
	search->members.start_sec = first_string(&loads, 1, NULL);
	search->members.start_msec = search->members.start_sec + WORD;
	return search->members.start_sec != MEMBER_UNKNOWN;
}

/*
 * $status: r->err_status, else r->headers_out.status, else by r->http_version. Also reads r->pool.
 * The members are in the order pool, headers_out, http_version, err_status.
 */
static void read_status(const struct member_loads *loads, int32_t *ret_status, int32_t *ret_err_status)
{
	int32_t last = MEMBER_UNKNOWN, status = MEMBER_UNKNOWN;
	size_t count = 0;

	for (size_t i = 0; i < loads->count; i++) {
		const struct member_load *load = &loads->loads[i];

		if (load->depth != 1 || load->bytes != WORD)
			continue;
		if (last != MEMBER_UNKNOWN && load->offsets[0] < last && count == 0) {
			status = load->offsets[0];
			count = 1;
		} else if (count == 0) {
			last = load->offsets[0];
		}
	}
	if (status == MEMBER_UNKNOWN)
		return;
	*ret_status = status;
	*ret_err_status = last;
}

/* The member whose address is the data of a variable, an ngx_str_t of the request. */
static int32_t data_of(const struct search *search, const char *name)
{
	const struct variable *variable = variables_named(&search->core, name);
	const struct variable *uri = variables_named(&search->core, "uri");

	/* The same function returns all of these. */
	if (!variable || !uri || variable->get == 0 || variable->get != uri->get || variable->data == 0 ||
	    variable->data >= MEMBERS_BYTES_MAX)
		return MEMBER_UNKNOWN;
	return (int32_t)variable->data;
}

/* The last member of the request that the code reads; the one before it is the pool. */
static int32_t last_of(struct search *search, const char *name)
{
	struct member_loads loads;
	int32_t last = MEMBER_UNKNOWN;

	loads_of(search, &search->core, name, &loads);
	for (size_t i = 0; i < loads.count; i++)
		if (loads.loads[i].depth == 1)
			last = loads.loads[i].offsets[0];
	return last;
}

static void find_optional(struct search *search)
{
	struct request_members *members = &search->members;
	struct member_loads loads;

	members->args = data_of(search, "args");
	loads_of(search, &search->core, "status", &loads);
	read_status(&loads, &members->status, &members->err_status);
	/* The start of the request lies between the two. */
	if (members->status > members->start_sec || members->err_status < members->start_sec)
		members->status = members->err_status = MEMBER_UNKNOWN;
	members->request_length = last_of(search, "request_length");
	loads_of(search, &search->core, "connection", &loads);
	members->number = only_behind(&loads, members->connection);
	loads_of(search, &search->core, "connection_requests", &loads);
	members->requests = only_behind(&loads, members->connection);
	loads_of(search, &search->core, "bytes_sent", &loads);
	members->sent = only_behind(&loads, members->connection);
	loads_of(search, &search->upstream, "upstream_addr", &loads);
	members->upstream_states = first_of(&loads);
}

static void include(size_t *bytes, int32_t member, size_t length)
{
	if (member != MEMBER_UNKNOWN && (size_t)member + length > *bytes)
		*bytes = (size_t)member + length;
}

static bool measure(struct request_members *members)
{
	const int32_t of_request[] = {
		members->connection,
		members->main,
		members->uri,
		members->method_name,
		members->server,
		members->start_msec,
		members->status,
		members->err_status,
		members->args,
		members->request_length,
		members->upstream_states,
	};
	const int32_t of_connection[] = { members->addr_text, members->number, members->requests,
					  members->sent };

	for (size_t i = 0; i < sizeof(of_request) / sizeof(of_request[0]); i++)
		include(&members->request_bytes, of_request[i], STRING_BYTES);
	for (size_t i = 0; i < sizeof(of_connection) / sizeof(of_connection[0]); i++)
		include(&members->connection_bytes, of_connection[i], STRING_BYTES);
	return members->request_bytes <= MEMBERS_BYTES_MAX && members->connection_bytes <= MEMBERS_BYTES_MAX;
}

bool request_members_find(struct memory *memory, uint16_t machine, uint64_t base,
			  struct request_members *ret_members)
{
	struct search search = {
		.memory = memory,
		.members = { .known = true, .status = MEMBER_UNKNOWN, .err_status = MEMBER_UNKNOWN },
	};
	struct member_loads loads;
	struct elf_image image;

	if (machine != MACHINE_OWN || elf_image_open(memory, base, &image) != ELF_IMAGE_OK ||
	    !variables_find(memory, &image, "http_host", "request_time", &search.core))
		return false;
	variables_find(memory, &image, "upstream_addr", "upstream_header_time", &search.upstream);
	search.members.uri = data_of(&search, "uri");
	/* $host: r->headers_in.server, else the server's name from its configuration */
	loads_of(&search, &search.core, "host", &loads);
	search.members.server = first_string(&loads, 1, NULL);
	if (search.members.uri == MEMBER_UNKNOWN || search.members.server == MEMBER_UNKNOWN ||
	    !find_connection(&search) || !find_method(&search) || !find_start(&search))
		return false;
	find_optional(&search);
	if (!measure(&search.members))
		return false;
	dynamic_symbol_find(memory, base, "ngx_cycle", &search.members.cycle);
	dynamic_symbol_find(memory, base, "ngx_cached_time", &search.members.cached_time);
	dynamic_symbol_find(memory, base, "ngx_event_timer_rbtree", &search.members.timers);
	dynamic_symbol_find(memory, base, "ngx_current_msec", &search.members.loop_ms);
	*ret_members = search.members;
	return true;
}

/*---- What lua-nginx-module's functions read ----*/

static bool ffi_loads(struct memory *memory, uint64_t base, const char *name, struct member_loads *ret_loads)
{
	uint64_t function;

	return dynamic_symbol_find(memory, base, name, &function) &&
	       member_loads_of(memory, function, ret_loads) && ret_loads->count > 0;
}

bool request_members_agree(struct memory *memory, uint64_t base, const struct request_members *members)
{
	struct member_loads loads;
	int32_t status = MEMBER_UNKNOWN, err_status = MEMBER_UNKNOWN;
	bool is_confirmed;

	/* It reads r->connection->fd and compares r->main. */
	is_confirmed = ffi_loads(memory, base, "ngx_http_lua_ffi_is_subrequest", &loads);
	if (is_confirmed && (!member_loads_have(&loads, 1, &members->connection) ||
			     !member_loads_have(&loads, 1, &members->main)))
		return false;
	if (ffi_loads(memory, base, "ngx_http_lua_ffi_req_get_method_name", &loads) &&
	    !member_loads_have(&loads, 1, &members->method_name))
		return false;
	if (members->args != MEMBER_UNKNOWN &&
	    ffi_loads(memory, base, "ngx_http_lua_ffi_req_get_uri_args_count", &loads) &&
	    !member_loads_have(&loads, 1, &members->args))
		return false;
	if (members->status != MEMBER_UNKNOWN &&
	    ffi_loads(memory, base, "ngx_http_lua_ffi_get_resp_status", &loads)) {
		read_status(&loads, &status, &err_status);
		if (!member_loads_have(&loads, 1, &members->status) ||
		    !member_loads_have(&loads, 1, &members->err_status))
			return false;
	}
	return is_confirmed;
}
