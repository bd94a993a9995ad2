/* SPDX-License-Identifier: MIT */
/* What clients of `ljspy serve` are answered, by HTTP as it goes over a socket, and who is refused. */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "output/recording/recording_writer.h"
#include "src/linux/clocks/clock.h"
#include "src/program/output_file.h"
#include "src/serve/clients.h"
#include "src/serve/heap_request.h"
#include "src/serve/metrics.h"
#include "src/serve/server.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

enum { ANSWER_SIZE = 1 << 18, REQUEST_SIZE = 1024, MOMENTS_MAX = 10000, SECONDS_MAX = 20 };

/* The server's threads ask and note here. A check that fails has to do so in the test's own thread. */
static struct {
	enum hub_answer answer; /* of the hub, and of a heap */
	int error;              /* of a capture, a scratch file or the metrics */
	bool lacks_files, is_running;
	bool client_leaves; /* and the hub waits until it has */
	bool was_there;     /* the client, when the hub asked */
	bool is_slow;       /* a capture lasts until ljspy waits for answers */
	sem_t begun, may_end;
	char states[8]; /* of clients, as they were noted: Silent, Reads, Asks */
	unsigned int captures, reserved, heaps;
	struct hub_request wanted;
	char heap_format[16];
} seen;

static const int wanted_processes;
static const struct options options;
static char directory[32];
static struct server *server;
static struct sockaddr_un address;
static char answered[ANSWER_SIZE];
static size_t answered_bytes;

/*---- Instead of sampling ----*/

static void add_sample(struct recording_writer *writer, const struct sample *times, const char *name)
{
	const struct function function = { .kind = FRAME_LUA, .name = name, .file = "@a.lua" };
	struct frame frame = { .function = &function };
	struct sample sample = *times;

	sample.frames = &frame;
	sample.frame_count = 1;
	recording_writer_add(writer, &sample);
	recording_writer_forget_functions(writer);
}

static FILE *record(const struct session *session)
{
	const struct sample busy = { .thread_state = THREAD_RUNNING, .cpu_ns = 1000, .wall_ns = 1000 };
	const struct sample asleep = { .thread_state = THREAD_BLOCKED, .wall_ns = 1000 };
	const struct figures figures = { .samples = 2 };
	struct recording_writer *writer;
	FILE *file = tmpfile();

	recording_writer_new(file, session, &writer);
	add_sample(writer, &busy, "busy_one");
	add_sample(writer, &asleep, "sleeping_one");
	recording_writer_finish(writer, session, &figures);
	recording_writer_free(writer);
	rewind(file);
	return file;
}

/* A request's end may come after it. */
static bool is_there_still(const struct hub_request *request)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; seen.client_leaves && i < MOMENTS_MAX && request->is_there(request->client); i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	return request->is_there(request->client);
}

static void await(sem_t *semaphore)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECONDS_MAX;
	sem_timedwait(semaphore, &until);
}

/* By which ljspy waits for answers. */
INSTEAD_OF(nanosleep);
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	const struct timespec longer = { .tv_nsec = 100000000 };

	(void)time, (void)ret_rest;
	sem_post(&seen.may_end);
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &longer, NULL);
}

INSTEAD_OF(clients_note);
void __wrap_clients_note(struct clients *clients, struct client *client, enum client_state state)
{
	static const char letters[] = { [CLIENT_SILENT] = 'S', [CLIENT_READS] = 'R', [CLIENT_ASKS] = 'A' };
	const size_t length = strlen(seen.states);

	if (length + 1 < sizeof(seen.states))
		seen.states[length] = letters[state];
	__real_clients_note(clients, client, state);
}

INSTEAD_OF(hub_capture);
enum hub_answer __wrap_hub_capture(struct hub *hub, const struct hub_request *request,
				   struct hub_recording *ret_recording, int *ret_error)
{
	const struct session session = { .clock = request->mode == HUB_CPU ? WEIGHT_CPU_TIME
									   : WEIGHT_WALL_TIME,
					 .target = "made up",
					 .duration_ns = NS_PER_SECOND };

	seen.captures += hub == (struct hub *)&seen;
	seen.wanted = *request;
	seen.was_there = is_there_still(request);
	sem_post(&seen.begun);
	if (seen.is_slow)
		await(&seen.may_end);
	if (seen.answer == HUB_FAILED)
		*ret_error = seen.error;
	if (seen.answer == HUB_DONE)
		*ret_recording = (struct hub_recording){ .stream = record(&session), .session = session };
	return seen.answer;
}

INSTEAD_OF(hub_reserve);
enum hub_answer __wrap_hub_reserve(struct hub *hub, const struct hub_request *request,
				   struct hub_capture **ret_capture)
{
	seen.wanted = *request;
	if (seen.answer != HUB_DONE)
		return seen.answer;
	seen.reserved++;
	*ret_capture = (struct hub_capture *)hub;
	return HUB_DONE;
}

INSTEAD_OF(hub_release);
void __wrap_hub_release(struct hub *hub, struct hub_capture *capture)
{
	seen.reserved -= capture == (struct hub_capture *)hub;
}

INSTEAD_OF(heap_request_run);
enum hub_answer __wrap_heap_request_run(struct hub *hub, const struct options *of,
					const struct wanted *wanted, const struct hub_request *request,
					const char *format, FILE *out)
{
	(void)hub, (void)request;
	seen.heaps += seen.reserved == 1 && of == &options && (const void *)wanted == &wanted_processes;
	snprintf(seen.heap_format, sizeof(seen.heap_format), "%s", format);
	fputs("a heap", out);
	return seen.error ? HUB_FAILED : HUB_DONE;
}

INSTEAD_OF(hub_totals);
void __wrap_hub_totals(struct hub *hub, struct hub_totals *ret_totals)
{
	(void)hub;
	memset(ret_totals, 0, sizeof(*ret_totals));
	ret_totals->running = seen.is_running;
}

INSTEAD_OF(metrics_write);
int __wrap_metrics_write(FILE *out, const struct hub_totals *totals)
{
	fprintf(out, "running %d\n", totals->running);
	return seen.error;
}

INSTEAD_OF(output_file_scratch);
int __wrap_output_file_scratch(FILE **ret_stream)
{
	return seen.lacks_files ? -EMFILE : __real_output_file_scratch(ret_stream);
}

/*---- A client ----*/

static void serve(bool is_unix, const char *token)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct server_options server_options = {
		.socket = fd,
		.is_unix = is_unix,
		.token = token,
		.options = &options,
		.wanted = (const struct wanted *)&wanted_processes,
		.hub = (struct hub *)&seen,
	};

	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(server_start(&server_options, &server), 0);
}

static void stop(void)
{
	server_stop(server);
	assert_int_equal(unlink(address.sun_path), 0);
}

static int begin(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	sem_init(&seen.begun, 0, 0);
	sem_init(&seen.may_end, 0, 0);
	strcpy(directory, "/tmp/ljspy-test-XXXXXX");
	assert_non_null(mkdtemp(directory));
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
	serve(false, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	stop();
	assert_int_equal(seen.reserved, 0);
	assert_int_equal(rmdir(directory), 0);
	return 0;
}

static int connect_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void send_request(int fd, const char *method, const char *path, const char *headers)
{
	const int length = dprintf(fd, "%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", method, path,
				   headers);

	assert_true(length > 0);
}

/* The whole answer. Its status; 0 if there is none. Closes the descriptor. */
static int read_answer(int fd)
{
	size_t count = 0;
	ssize_t added;
	int status;

	while ((added = read(fd, answered + count, sizeof(answered) - 1 - count)) > 0)
		count += (size_t)added;
	close(fd);
	answered[count] = '\0';
	answered_bytes = count;
	return sscanf(answered, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

static int ask(const char *method, const char *path, const char *headers)
{
	int fd = connect_client(), status;

	told_begin();
	send_request(fd, method, path, headers);
	if (seen.client_leaves)
		shutdown(fd, SHUT_WR);
	status = read_answer(fd);
	told_end();
	return status;
}

static int get(const char *path)
{
	return ask("GET", path, "Host: localhost:6060\r\n");
}

static int get_with(const char *headers)
{
	char all[REQUEST_SIZE];

	snprintf(all, sizeof(all), "Host: localhost\r\n%s", headers);
	return ask("GET", "/healthz", all);
}

static bool has(const char *text)
{
	return strstr(answered, text) != NULL;
}

/* In pprof's format, as gzip packs it. */
static bool profile_has(const char *text)
{
	static char unpacked[ANSWER_SIZE];
	char *body = strstr(answered, "\r\n\r\n") + 4;
	z_stream stream = { .next_in = (unsigned char *)body,
			    .avail_in = (unsigned int)(answered_bytes - (size_t)(body - answered)),
			    .next_out = (unsigned char *)unpacked,
			    .avail_out = sizeof(unpacked) };

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	return memmem(unpacked, stream.total_out, text, strlen(text)) != NULL;
}

/*---- Pages ----*/

static void each_page_has_its_capture(void **state)
{
	static const struct {
		const char *path, *type;
		enum hub_mode mode;
		unsigned int seconds;
	} pages[] = {
		{ "/profile", "application/octet-stream", HUB_CPU, 30 },
		{ "/debug/pprof/profile", "application/octet-stream", HUB_CPU, 30 },
		{ "/debug/pprof/wall", "application/octet-stream", HUB_WALL, 30 },
		{ "/debug/pprof/offcpu", "application/octet-stream", HUB_WALL, 30 },
		{ "/debug/pprof/blocked", "application/octet-stream", HUB_TURNS, 30 },
		{ "/debug/pprof/coroutines", "application/octet-stream", HUB_COROUTINES, 10 },
		{ "/flamegraph", "text/html; charset=utf-8", HUB_CPU, 10 },
		{ "/top", "application/json", HUB_CPU, 5 },
	};
	char type[64];

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		assert_int_equal(get(pages[i].path), 200);
		snprintf(type, sizeof(type), "Content-Type: %s\r\n", pages[i].type);
		assert_true(has(type));
		assert_true(has("Cache-Control: no-store"));
		assert_true(has("nosniff"));
		assert_int_equal(seen.captures, i + 1);
		assert_int_equal(seen.wanted.mode, pages[i].mode);
		assert_int_equal(seen.wanted.duration_ns, pages[i].seconds * (uint64_t)NS_PER_SECOND);
		assert_true(seen.was_there);
	}
	/* What was recorded is in it. */
	assert_true(has("busy_one"));
	assert_string_equal(told, "");
}

static void each_clock_has_its_samples(void **state)
{
	(void)state;
	assert_int_equal(get("/wall"), 200);
	assert_true(profile_has("busy_one") && profile_has("sleeping_one"));
	assert_int_equal(get("/offcpu"), 200);
	assert_true(profile_has("sleeping_one"));
	assert_false(profile_has("busy_one"));
}

static void a_client_may_ask_for_another_time(void **state)
{
	static const char *const wrong[] = { "0", "301", "", "-1", "1x", "00010", "1%00", "99999" };
	char path[64];

	(void)state;
	assert_int_equal(get("/top?seconds=1"), 200);
	assert_int_equal(seen.wanted.duration_ns, NS_PER_SECOND);
	assert_int_equal(get("/profile?seconds=300"), 200);
	assert_int_equal(seen.wanted.duration_ns, 300 * (uint64_t)NS_PER_SECOND);
	assert_int_equal(seen.captures, 2);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(path, sizeof(path), "/profile?seconds=%s", wrong[i]);
		assert_int_equal(get(path), 400);
		assert_true(has("seconds is a number from 1 to 300."));
	}
	assert_int_equal(seen.captures, 2);
}

static void a_heap_is_read_while_it_is_reserved(void **state)
{
	(void)state;
	assert_int_equal(get("/debug/pprof/heap"), 200);
	assert_true(has("a heap"));
	assert_int_equal(seen.heaps, 1);
	assert_string_equal(seen.heap_format, "pprof");
	assert_int_equal(seen.wanted.mode, HUB_HEAP);
	assert_int_equal(seen.wanted.duration_ns, 0);
	seen.error = -EIO;
	assert_int_equal(get("/heap"), 500);
	assert_int_equal(seen.reserved, 0);
	seen.answer = HUB_BUSY;
	assert_int_equal(get("/heap"), 503);
	assert_int_equal(seen.heaps, 2);
}

static void health_is_whether_it_samples(void **state)
{
	(void)state;
	seen.is_running = true;
	assert_int_equal(get("/healthz"), 200);
	assert_true(has("ok\n"));
	assert_int_equal(get("/metrics"), 200);
	assert_true(has("version=0.0.4"));
	assert_true(has("running 1\n"));
	seen.is_running = false;
	assert_int_equal(get("/healthz"), 503);
	assert_true(has("ljspy takes no samples now."));
	assert_int_equal(seen.captures, 0);
}

static void what_there_is_not(void **state)
{
	static const char *const paths[] = { "/nothing",        "/debug/pprof",
					     "/debug/pprofile", "/debug/pprof/metrics/",
					     "/profile/",       "/debug/pprof/debug/pprof/profile" };

	(void)state;
	assert_int_equal(get("/"), 200);
	assert_true(has("<title>ljspy</title>"));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(get(paths[i]), 404);
		assert_true(has("There is no such page; / lists them."));
	}
	assert_int_equal(seen.captures, 0);
}

static void a_head_takes_no_capture(void **state)
{
	(void)state;
	assert_int_equal(ask("HEAD", "/profile", "Host: localhost\r\n"), 200);
	assert_true(has("application/octet-stream"));
	assert_int_equal(ask("HEAD", "/heap", "Host: localhost\r\n"), 200);
	assert_int_equal(ask("HEAD", "/profile?seconds=0", "Host: localhost\r\n"), 400);
	assert_int_equal(seen.captures + seen.heaps, 0);
}

static void only_gets_are_answered(void **state)
{
	(void)state;
	assert_int_equal(ask("POST", "/profile", "Host: localhost\r\nContent-Length: 0\r\n"), 405);
	assert_true(has("Allow: GET, HEAD"));
	assert_int_equal(ask("DELETE", "/profile", "Host: localhost\r\n"), 405);
	/* Nor one with a body. */
	assert_int_equal(ask("GET", "/profile", "Host: localhost\r\nContent-Length: 4\r\n\r\nbody"), 0);
	assert_int_equal(seen.captures, 0);
}

/*---- Clients ----*/

static void a_client_that_leaves_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(get("/profile"), 200);
	assert_true(seen.was_there);
	seen.client_leaves = true;
	get("/profile");
	assert_int_equal(seen.captures, 2);
	assert_false(seen.was_there);
}

static void what_a_client_does_is_noted(void **state)
{
	(void)state;
	get("/profile");
	stop(); /* its thread has ended */
	assert_string_equal(seen.states, "ARS");
	serve(false, NULL);
}

static void an_answer_that_is_begun_comes_though_ljspy_ends(void **state)
{
	int fd = connect_client();

	(void)state;
	seen.is_slow = true;
	send_request(fd, "GET", "/top", "Host: localhost\r\n");
	await(&seen.begun);
	stop();
	assert_int_equal(read_answer(fd), 200);
	assert_true(has("busy_one"));
	serve(false, NULL);
}

/*---- What fails ----*/

static void the_hub_may_have_no_capture(void **state)
{
	(void)state;
	seen.answer = HUB_BUSY;
	assert_int_equal(get("/profile"), 503);
	assert_true(has("There are too many captures."));
	assert_true(has("Retry-After: 10"));
	seen.answer = HUB_STOPPED;
	assert_int_equal(get("/profile"), 503);
	assert_true(has("ljspy ends."));
	seen.answer = HUB_GONE;
	assert_int_equal(get("/profile"), 0);
	assert_string_equal(told, "");
}

static void why_a_page_fails_is_told_once(void **state)
{
	(void)state;
	seen.answer = HUB_FAILED;
	seen.error = -ENOSPC;
	assert_int_equal(get("/profile"), 500);
	assert_true(has("ljspy's messages may say why"));
	assert_int_equal(told_times("answering /profile: No space left on device"), 1);
	assert_int_equal(get("/debug/pprof/profile"), 500);
	assert_string_equal(told, "");
	/* Another page, or another reason. */
	get("/top");
	assert_int_equal(told_times("answering /top"), 1);
	seen.error = -EFBIG;
	get("/profile");
	assert_int_equal(told_times("answering /profile"), 1);
	/* And again once it has been right. */
	seen.answer = HUB_DONE;
	assert_int_equal(get("/profile"), 200);
	seen.answer = HUB_FAILED;
	get("/profile");
	assert_int_equal(told_times("answering /profile"), 1);
}

static void files_may_be_short(void **state)
{
	static const char *const paths[] = { "/profile", "/heap", "/metrics" };

	(void)state;
	seen.lacks_files = true;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(get(paths[i]), 500);
		assert_int_equal(told_times(paths[i]), 1);
	}
	assert_int_equal(seen.heaps, 0);
	seen.lacks_files = false;
	seen.error = -ENOSPC;
	assert_int_equal(get("/metrics"), 500);
	assert_int_equal(told_times("answering /metrics: No space left on device"), 1);
}

/*---- Who is refused ----*/

static void only_this_hosts_names_are_served(void **state)
{
	(void)state;
	seen.is_running = true;
	assert_int_equal(ask("GET", "/healthz", "Host: 127.0.0.1:6060\r\n"), 200);
	assert_int_equal(ask("GET", "/healthz", "Host: evil.example\r\n"), 403);
	assert_true(has("This host is not served without a token."));
	/* Who can open a Unix socket is here. */
	stop();
	serve(true, NULL);
	assert_int_equal(ask("GET", "/healthz", "Host: evil.example\r\n"), 200);
}

static void a_token_is_needed_if_there_is_one(void **state)
{
	static const char *const wrong[] = { "",
					     "Authorization: Bearer abcd\r\n",
					     "Authorization: Bearer ab\r\n",
					     "Authorization: Bearer abx\r\n",
					     "Authorization: Bearer \r\n",
					     "Authorization: Basic abc\r\n",
					     "Authorization: abc\r\n",
					     "Authorization: Bearer xbc\r\n" };

	(void)state;
	stop();
	serve(false, "abc");
	seen.is_running = true;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(get_with(wrong[i]), 401);
		assert_true(has("WWW-Authenticate: Bearer"));
	}
	assert_int_equal(get_with("Authorization: Bearer abc\r\n"), 200);
	/* Who has it may come from anywhere. */
	assert_int_equal(
		ask("GET", "/healthz",
		    "Host: far.example\r\nAuthorization: Bearer abc\r\nSec-Fetch-Site: cross-site\r\n"),
		200);
}

static void pages_of_others_get_nothing(void **state)
{
	static const char followed[] = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
				       "Sec-Fetch-Dest: document\r\nSec-Fetch-User: ?1\r\n";
	static const char *const refused[] = {
		"Sec-Fetch-Site: cross-site\r\n",
		"Sec-Fetch-Site: same-site\r\n",
		/* a frame, a script's doing, and a page that goes on by itself */
		"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"
		"Sec-Fetch-User: ?1\r\n",
		"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: document\r\n"
		"Sec-Fetch-User: ?1\r\n",
		"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
		"Sec-Purpose: prefetch\r\n",
		"Sec-Purpose: prefetch;prerender\r\n",
		"Purpose: prefetch\r\n",
	};

	(void)state;
	seen.is_running = true;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(get_with(refused[i]), 403);
		assert_true(has("no page of another site"));
	}
	assert_int_equal(get_with(followed), 200);
	assert_int_equal(get_with("Sec-Fetch-Site: same-origin\r\n"), 200);
	assert_int_equal(get_with("Sec-Fetch-Site: none\r\n"), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_page_has_its_capture),
		TEST(each_clock_has_its_samples),
		TEST(a_client_may_ask_for_another_time),
		TEST(a_heap_is_read_while_it_is_reserved),
		TEST(health_is_whether_it_samples),
		TEST(what_there_is_not),
		TEST(a_head_takes_no_capture),
		TEST(only_gets_are_answered),
		TEST(a_client_that_leaves_is_not_there),
		TEST(what_a_client_does_is_noted),
		TEST(an_answer_that_is_begun_comes_though_ljspy_ends),
		TEST(the_hub_may_have_no_capture),
		TEST(why_a_page_fails_is_told_once),
		TEST(files_may_be_short),
		TEST(only_this_hosts_names_are_served),
		TEST(a_token_is_needed_if_there_is_one),
		TEST(pages_of_others_get_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
