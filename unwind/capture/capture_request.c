/* SPDX-License-Identifier: MIT */
/* lua-nginx-module: capture the request that a thread works for, and the threads that wait for it. */
#include "unwind/capture/capture_parts.h"

#include <string.h>

#include "unwind/lua/luajit.h"
#include "unwind/nginx/gateway.h"
#include "unwind/nginx/light_threads.h"

void capture_note_request(struct memory *memory, const struct request_layout *layout,
			  struct lua_thread *thread)
{
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	if (thread->layout->L_exdata >= 0 || !layout->known ||
	    !light_thread_request(memory, thread->layout, thread->address, &thread->global->request_hints,
				  &thread->exdata))
		return;
	if (request_context(memory, layout, thread->exdata, ranges, &context))
		light_thread_context(memory, layout, thread->layout, thread->exdata, &context,
				     thread->address, &thread->exdata2);
}

void capture_request(struct capture *capture, struct capture_hints *hints)
{
	const struct request_layout *layout = lua_image_request_layout(capture->lua);
	struct lua_thread *innermost = NULL;
	struct request_context context;

	capture->request_context = 0;
	capture->has_request_context = false;
	capture->request.address = 0;
	for (size_t i = 0; i < capture->thread_count; i++) {
		struct lua_thread *thread = &capture->threads[i];

		if (thread->cframe && (!innermost || thread->cframe < innermost->cframe))
			innermost = thread;
	}
	if (!innermost || !layout->known)
		return;
	capture_note_request(snapshot_memory(capture->snapshot), layout, innermost);
	capture->has_request_context = true;
	if (!request_context(snapshot_memory(capture->snapshot), layout, innermost->exdata, hints->request,
			     &context))
		return;
	capture->request_context = context.phase;
	if (nginx_request_read(snapshot_memory(capture->snapshot), lua_image_request_members(capture->lua),
			       innermost->exdata, &capture->request) &&
	    innermost->global->gateway)
		gateway_route(snapshot_memory(capture->snapshot), layout, innermost->layout,
			      innermost->global->gateway, &context, capture->request.matched);
}

/* List the words of the registers and the stack that may refer to requests, the innermost first. */
static void list_words(const struct capture *capture, const struct request_places *places,
		       struct request_words *words)
{
	enum { STACK_WORDS_MAX = CAPTURE_STACK_BYTES / sizeof(uint64_t) };
	const struct memory_range stack = { capture->registers.sp, NULL,
					    capture->stack_end - capture->registers.sp, MEMORY_OK };
	size_t count = stack.length / sizeof(uint64_t) < STACK_WORDS_MAX ? stack.length / sizeof(uint64_t)
									 : STACK_WORDS_MAX;
	const uint8_t *bytes = capture->stack_end > stack.address
				       ? snapshot_view(capture->snapshot, stack.address,
						       count * sizeof(uint64_t))
				       : NULL;
	uint64_t word;

	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number) && registers_get(&capture->registers, number, &word))
			request_words_add(places, words, word);
	for (size_t i = 0; bytes && i < count; i++) {
		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		request_words_add(places, words, word);
	}
}

/* A gateway may have matched the route of a request that no Lua works for any more. */
static void match_routes(struct capture *capture)
{
	const struct request_layout *layout = lua_image_request_layout(capture->lua);
	struct memory *memory = snapshot_memory(capture->snapshot);
	const struct global_state *global = lua_image_gateway(capture->lua);
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	for (size_t i = 0; global && i < capture->on_stack.count; i++) {
		struct nginx_request *request = &capture->on_stack.requests[i];

		if (request_context(memory, layout, request->address, ranges, &context))
			gateway_route(memory, layout, &global->vm->layout, global->gateway, &context,
				      request->matched);
	}
}

void capture_stack_requests(struct capture *capture, const struct capture_process *process,
			    const struct capture_hints *hints)
{
	const struct request_members *members = lua_image_request_members(capture->lua);
	const size_t reads = snapshot_read_count(capture->snapshot);
	struct request_words words;

	if (!process->places || capture->has_request_context)
		return;
	request_words_begin(&words);
	list_words(capture, process->places, &words);
	stack_requests_read(snapshot_memory(capture->snapshot), members, process->places, &words,
			    &capture->on_stack);
	/* At the first hold, which may be the only one, it is not known yet where requests are. */
	if (hints->sp == 0) {
		stack_requests_learn(process->live, members, process->places, &capture->on_stack);
		if (capture->on_stack.word_count)
			stack_requests_read(snapshot_memory(capture->snapshot), members, process->places,
					    &words, &capture->on_stack);
	}
	match_routes(capture);
	capture->request_reads = snapshot_read_count(capture->snapshot) - reads;
}

/* The captured thread at the address, added if it is new; NULL if there is none. */
static struct lua_thread *take_parked(struct capture *capture, struct global_state *global, uint64_t address)
{
	uint8_t bytes[LUA_STATE_BYTES_MAX];

	for (size_t i = 0; i < capture->thread_count; i++)
		if (capture->threads[i].address == address)
			return &capture->threads[i];
	if (address == 0 || address % SLOT_SIZE || capture->thread_count == CAPTURE_THREADS_MAX ||
	    memory_read(snapshot_memory(capture->snapshot), address, bytes,
			(size_t)global->vm->layout.L_size) != MEMORY_OK ||
	    !lua_thread_load(&capture->threads[capture->thread_count], global, address, bytes))
		return NULL;
	capture_note_request(snapshot_memory(capture->snapshot), lua_image_request_layout(capture->lua),
			     &capture->threads[capture->thread_count]);
	return &capture->threads[capture->thread_count++];
}

/* Find a thread's parent that has yielded and works for the same request; NULL if there is none. */
static struct lua_thread *link_parent(struct capture *capture, struct lua_thread *thread)
{
	struct lua_thread *parent;
	uint64_t address, coctx;

	if (thread->parent || !request_parent(snapshot_memory(capture->snapshot), thread->address,
					      thread->exdata2, &address, &coctx))
		return NULL;
	parent = take_parked(capture, thread->global, address);
	if (!parent || parent->exdata2 != coctx || parent->exdata != thread->exdata || parent->cframe != 0 ||
	    parent->status != LUA_YIELD)
		return NULL;
	thread->parent = address;
	return parent;
}

void capture_parents(struct capture *capture)
{
	size_t count = capture->thread_count;

	if (!lua_image_request_layout(capture->lua)->known)
		return;
	for (size_t i = 0; i < count; i++) {
		struct lua_thread *thread = &capture->threads[i];

		if (thread->exdata == 0)
			capture_note_request(snapshot_memory(capture->snapshot),
					     lua_image_request_layout(capture->lua), thread);
		while (thread && thread->exdata2)
			thread = link_parent(capture, thread);
	}
}
