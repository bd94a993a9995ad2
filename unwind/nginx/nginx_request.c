/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/nginx_request.h"

#include <string.h>

#include "unwind/nginx/connections.h"

enum {
	SIGNATURE = 0x50545448, /* ngx_http_request_t.signature: NGX_HTTP_MODULE, "HTTP" */
	LINE = 64,              /* texts are read to the end of such a line: the next one may be longer */
	STATUS_MAX = 999,
	MS_PER_SECOND = 1000,
	STATES_MAX = 64, /* peers asked for one request */
	STATE_BYTES_MAX = 256,
	CACHE_WORDS = 128, /* read of ngx_http_cache_t; its event begins at about the 70th */
	CACHE_BEFORE = 2,  /* words from the cache to upstream_states */
};

/* No user's memory on x86-64 and arm64 is beyond. */
static const uint64_t ADDRESSES_END = UINT64_C(1) << 56;

struct string {
	uint64_t length, data; /* ngx_str_t */
};

/* ngx_array_t */
struct array {
	uint64_t elts, nelts, size, nalloc;
};

/* The start of ngx_http_upstream_state_t. A time is -1 until it is known. */
struct upstream_state {
	uint64_t status, response_time, connect_time, header_time;
};

struct structure {
	uint8_t bytes[MEMBERS_BYTES_MAX];
};

static uint64_t word(const struct structure *structure, int32_t member)
{
	uint64_t value = 0;

	if (member != MEMBER_UNKNOWN)
		memcpy(&value, structure->bytes + member, sizeof(value));
	return value;
}

static struct string string_of(const struct structure *structure, int32_t member)
{
	struct string string = { 0 };

	if (member != MEMBER_UNKNOWN)
		memcpy(&string, structure->bytes + member, sizeof(string));
	return string;
}

/* The bytes of a text that fit, to the end of a line of memory. */
static struct memory_range text_range(const struct string *string, char *copy, size_t room)
{
	uint64_t length = string->data == 0 ? 0 : string->length;
	uint64_t end;

	if (length > room - LINE)
		length = room - LINE;
	end = (string->data + length + LINE - 1) & ~(uint64_t)(LINE - 1);
	if (length)
		length = end - string->data;
	return (struct memory_range){ .address = string->data, .copy = copy, .length = (size_t)length };
}

static void keep_text(const struct memory_range *range, const struct string *string, char *ret_text,
		      size_t room)
{
	size_t length = range->status == MEMORY_OK && string->length < range->length ? (size_t)string->length
			: range->status == MEMORY_OK                                 ? range->length
										     : 0;

	if (length >= room)
		length = room - 1;
	memcpy(ret_text, range->copy, length);
	ret_text[length] = '\0';
}

static void read_text(struct memory *memory, const struct string *string, char *ret_text, size_t room)
{
	char bytes[NGINX_URI_BYTES + LINE];
	struct memory_range range = text_range(string, bytes, room + LINE);

	memory_read_ranges(memory, &range, 1);
	keep_text(&range, string, ret_text, room);
}

static bool is_request(const struct structure *structure, size_t length)
{
	uint32_t signature;

	memcpy(&signature, structure->bytes, sizeof(signature));
	return length >= sizeof(signature) && signature == SIGNATURE;
}

/*
 * May a structure of nginx be there? What begins like a request may be text, such as the first line of a
 * response. To follow such text would cost a read that fails for each of its words.
 */
static bool may_be_structure(uint64_t address)
{
	return address != 0 && address % sizeof(uint64_t) == 0 && address < ADDRESSES_END;
}

/* Does the connection serve this request, or another one of the same main request? */
static bool leads_back(struct memory *memory, const struct request_members *members,
		       const struct nginx_request *request)
{
	uint32_t signature;
	uint64_t main;

	if (request->serves == request->address || request->serves == request->main)
		return true;
	return request->serves != 0 && memory_u32(memory, request->serves, &signature) &&
	       signature == SIGNATURE &&
	       memory_u64(memory, request->serves + (uint64_t)members->main, &main) && main == request->main;
}

static unsigned int status_of(const struct request_members *members, const struct structure *request)
{
	uint64_t status = word(request, members->err_status);

	if (status == 0)
		status = word(request, members->status);
	return status <= STATUS_MAX ? (unsigned int)status : 0;
}

static void fill(const struct request_members *members, const struct structure *own,
		 const struct structure *main, const struct structure *connection,
		 struct nginx_request *request)
{
	uint64_t seconds = word(main, members->start_sec);

	request->serves = word(connection, 0);
	request->number = word(connection, members->number);
	request->ordinal = word(connection, members->requests);
	request->upstream_states = word(own, members->upstream_states);
	request->status = status_of(members, own);
	request->start_ms = seconds < UINT32_MAX * UINT64_C(16)
				    ? seconds * MS_PER_SECOND +
					      word(main, members->start_msec) % MS_PER_SECOND
				    : 0;
}

bool nginx_request_read(struct memory *memory, const struct request_members *members, uint64_t address,
			struct nginx_request *ret_request)
{
	struct structure own, main, connection;
	struct nginx_request request = { .address = address };
	char uri_bytes[NGINX_URI_BYTES + LINE], host_bytes[NGINX_HOST_BYTES + LINE];
	char method_bytes[NGINX_METHOD_BYTES + LINE];
	struct memory_range ranges[5];
	struct string uri, host, method;

	if (!members->known || address == 0 ||
	    memory_read(memory, address, own.bytes, members->request_bytes) != MEMORY_OK ||
	    !is_request(&own, members->request_bytes))
		return false;
	request.connection = word(&own, members->connection);
	request.main = word(&own, members->main);
	if (!may_be_structure(request.connection) || !may_be_structure(request.main))
		return false;
	uri = string_of(&own, members->uri);
	host = string_of(&own, members->server);
	ranges[0] = (struct memory_range){ .address = request.connection,
					   .copy = connection.bytes,
					   .length = members->connection_bytes };
	ranges[1] = (struct memory_range){ .address = request.main,
					   .copy = main.bytes,
					   .length = members->request_bytes };
	ranges[2] = text_range(&uri, uri_bytes, sizeof(uri_bytes));
	ranges[3] = text_range(&host, host_bytes, sizeof(host_bytes));
	/* Of a subrequest, the method is its own; the client's is shown. */
	method = string_of(&own, members->method_name);
	ranges[4] = request.main == address ? text_range(&method, method_bytes, sizeof(method_bytes))
					    : (struct memory_range){ 0 };
	memory_read_ranges(memory, ranges, sizeof(ranges) / sizeof(ranges[0]));
	if (ranges[0].status != MEMORY_OK || ranges[1].status != MEMORY_OK ||
	    !is_request(&main, members->request_bytes) || word(&main, members->main) != request.main ||
	    word(&main, members->connection) != request.connection)
		return false;
	fill(members, &own, &main, &connection, &request);
	/* The Lua module makes requests for timers, which no client has sent: those never began. */
	if (request.start_ms == 0 || !leads_back(memory, members, &request))
		return false;
	keep_text(&ranges[2], &uri, request.uri, sizeof(request.uri));
	keep_text(&ranges[3], &host, request.host, sizeof(request.host));
	if (request.main == address) {
		keep_text(&ranges[4], &method, request.method, sizeof(request.method));
	} else {
		method = string_of(&main, members->method_name);
		read_text(memory, &method, request.method, sizeof(request.method));
	}
	*ret_request = request;
	return true;
}

bool nginx_requests_are_same(const struct nginx_request *one, const struct nginx_request *other)
{
	return one->main == other->main && one->connection == other->connection &&
	       one->number == other->number && one->ordinal == other->ordinal &&
	       one->start_ms == other->start_ms;
}

void nginx_request_route(const struct nginx_request *request, char ret_route[static ROUTE_BYTES])
{
	if (request->matched[0])
		memcpy(ret_route, request->matched, ROUTE_BYTES);
	else
		route_of(request->uri, ret_route);
}

/*---- Details ----*/

/*
 * ngx_http_upstream_init_request() makes the array; if it is there already, it adds an element of zeros,
 * which divides one upstream's peers from the next one's. Then it resolves the name, if that is a variable's.
 * ngx_http_upstream_connect() adds an element for each peer.
 */
static enum nginx_upstream_state state_of(const struct upstream_state *state, uint64_t peer)
{
	if (peer == 0 && state->status == 0 && state->response_time == 0 && state->connect_time == 0 &&
	    state->header_time == 0)
		return NGINX_UPSTREAM_RESOLVING;
	if (state->response_time != UINT64_MAX)
		return NGINX_UPSTREAM_DONE;
	if (state->connect_time == UINT64_MAX)
		return NGINX_UPSTREAM_CONNECTING;
	return state->header_time == UINT64_MAX ? NGINX_UPSTREAM_WAITING : NGINX_UPSTREAM_READING;
}

void nginx_request_upstream(struct memory *memory, const struct nginx_request *request,
			    struct nginx_upstream *ret_upstream)
{
	uint64_t address = request->upstream_states, last, peer;
	struct array states;
	struct upstream_state state;
	struct string name;

	memset(ret_upstream, 0, sizeof(*ret_upstream));
	if (address == 0 || memory_read(memory, address, &states, sizeof(states)) != MEMORY_OK ||
	    states.nelts > STATES_MAX || states.nelts > states.nalloc || states.elts == 0 ||
	    states.size <= sizeof(state) || states.size > STATE_BYTES_MAX)
		return;
	ret_upstream->state = NGINX_UPSTREAM_RESOLVING;
	if (states.nelts == 0)
		return;
	last = states.elts + (states.nelts - 1) * states.size;
	ret_upstream->state = NGINX_UPSTREAM_NONE;
	if (memory_read(memory, last, &state, sizeof(state)) != MEMORY_OK ||
	    !memory_u64(memory, last + states.size - sizeof(peer), &peer))
		return;
	ret_upstream->state = state_of(&state, peer);
	ret_upstream->status = state.status <= STATUS_MAX ? (unsigned int)state.status : 0;
	ret_upstream->tries = states.nelts;
	/* The last member. It has no peer before one is chosen. */
	if (peer != 0 && memory_read(memory, peer, &name, sizeof(name)) == MEMORY_OK)
		read_text(memory, &name, ret_upstream->peer, sizeof(ret_upstream->peer));
}

void nginx_request_details(struct memory *memory, const struct request_members *members,
			   const struct nginx_request *request, struct nginx_details *ret_details)
{
	struct structure own, connection;
	struct string text;

	memset(ret_details, 0, sizeof(*ret_details));
	if (memory_read(memory, request->address, own.bytes, members->request_bytes) != MEMORY_OK ||
	    memory_read(memory, request->connection, connection.bytes, members->connection_bytes) !=
		    MEMORY_OK)
		return;
	text = string_of(&connection, members->addr_text);
	read_text(memory, &text, ret_details->client, sizeof(ret_details->client));
	text = string_of(&own, members->args);
	read_text(memory, &text, ret_details->args, sizeof(ret_details->args));
	ret_details->received = word(&own, members->request_length);
	ret_details->sent = word(&connection, members->sent);
	nginx_request_upstream(memory, request, &ret_details->upstream);
}

/*
 * ngx_http_request_t has cache, upstream, upstream_states side by side. While the request waits, the event of
 * the ngx_http_cache_t has a time limit and the request as its data (ngx_http_file_cache_lock_wait(), 1.1.12
 * to 1.31).
 */
bool nginx_request_waits_for_cache(struct memory *memory, const struct request_members *members,
				   uint64_t address)
{
	uint64_t words[CACHE_WORDS], cache;

	if (members->upstream_states == MEMBER_UNKNOWN ||
	    !memory_u64(memory, address + (uint64_t)members->upstream_states - CACHE_BEFORE * sizeof(cache),
			&cache) ||
	    !may_be_structure(cache) || memory_read(memory, cache, words, sizeof(words)) != MEMORY_OK)
		return false;
	for (size_t i = 0; i + 1 < CACHE_WORDS; i++)
		if (words[i] == address && (words[i + 1] & EVENT_TIMER_SET) && !(words[i + 1] & EVENT_WRITE))
			return true;
	return false;
}
