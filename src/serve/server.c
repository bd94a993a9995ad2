/* SPDX-License-Identifier: MIT */
#include "src/serve/server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "output/formats/format.h"
#include "output/recording/recording_reader.h"
#include "output/views/filter.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/sockets/own_address.h"
#include "src/program/message.h"
#include "src/program/output_file.h"
#include "src/serve/address.h"
#include "src/serve/clients.h"
#include "src/serve/heap_request.h"
#include "src/serve/metrics.h"

enum {
	IDLE_SECONDS = 15, /* a client that sends and reads nothing for so long is dropped */
	HEADERS_MAX = 16 << 10,
	STACK_BYTES = 8 << 20, /* for rendering; what is not used takes no memory */
	SECONDS_DIGITS = 4,
	MOMENT_MS = 10, /* at the end, answers have so many moments to be sent */
	MOMENTS_MAX = 50,
	PAGES = 8,
};

struct server {
	struct server_options options;
	struct MHD_Daemon *daemon;
	atomic_uint unanswered;        /* requests that have begun */
	atomic_int said_errors[PAGES]; /* why the last answer of each page failed; 0 if it did not */
	atomic_int said_metrics, said_health;
	struct clients clients;
};

/* What is served: paths with and without the prefix that collectors of profiles use. */
static const char prefix[] = "/debug/pprof";

struct page {
	const char *path;
	enum hub_mode mode;
	const char *format;
	enum weight_kind clock;
	unsigned int seconds; /* unless the client asks for another time */
	const char *type;
};

static const char type_pprof[] = "application/octet-stream", type_html[] = "text/html; charset=utf-8",
		  type_json[] = "application/json", type_text[] = "text/plain; charset=utf-8",
		  type_metrics[] = "text/plain; version=0.0.4; charset=utf-8";

static const struct page pages[PAGES] = {
	{ "/profile", HUB_CPU, "pprof", WEIGHT_CPU_TIME, 30, type_pprof },
	{ "/wall", HUB_WALL, "pprof", WEIGHT_WALL_TIME, 30, type_pprof },
	{ "/offcpu", HUB_WALL, "pprof", WEIGHT_OFF_CPU_TIME, 30, type_pprof },
	{ "/blocked", HUB_TURNS, "pprof", WEIGHT_WALL_TIME, 30, type_pprof },
	{ "/coroutines", HUB_COROUTINES, "pprof", WEIGHT_WALL_TIME, 10, type_pprof },
	{ "/flamegraph", HUB_CPU, "html", WEIGHT_CPU_TIME, 10, type_html },
	{ "/top", HUB_CPU, "json", WEIGHT_CPU_TIME, 5, type_json },
	{ "/heap", HUB_HEAP, "pprof", WEIGHT_CPU_TIME, 0, type_pprof },
};

/* One request. */
struct request {
	struct server *server;
	struct MHD_Connection *connection;
	const char *path;       /* without the prefix */
	atomic_int *said_error; /* of its page */
	bool is_head;           /* it asks for no content */
};

/*---- Answers ----*/

static enum MHD_Result send_response(const struct request *request, unsigned int status, const char *type,
				     struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "10");
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* A constant text. */
static enum MHD_Result send_text(const struct request *request, unsigned int status, const char *text)
{
	/* MHD only reads a persistent buffer. */
	return send_response(request, status, type_text,
			     MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							     MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_failed(const struct request *request)
{
	return send_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR,
			 "That failed; ljspy's messages may say why.\n");
}

/*
 * The same, and say it: once a page, for who asks may do so every few seconds. That others are answered does
 * not matter. error: a negative errno.
 */
static enum MHD_Result send_error(const struct request *request, int error)
{
	if (atomic_exchange(request->said_error, error) != error) {
		message_error_errno(-error, "answering %s", request->path);
		if (error == -EFBIG)
			message_note_file_limit();
	}
	return send_failed(request);
}

/* The whole file; closes it. */
static enum MHD_Result send_file(const struct request *request, const char *type, FILE *file)
{
	struct stat status;
	/* What could not be written before may not fail again. */
	int fd = -1, error = fflush(file) ? -errno : ferror(file) ? -EIO : 0;

	if (!error && (fstat(fileno(file), &status) || (fd = dup(fileno(file))) < 0))
		error = -errno;
	fclose(file);
	if (error)
		return send_error(request, error);
	*request->said_error = 0;
	return send_response(request, MHD_HTTP_OK, type,
			     MHD_create_response_from_fd((size_t)status.st_size, fd));
}

static enum MHD_Result send_failure(const struct request *request, enum hub_answer answer)
{
	switch (answer) {
	case HUB_BUSY:
		return send_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "There are too many captures.\n");
	case HUB_STOPPED: return send_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "ljspy ends.\n");
	case HUB_GONE: return MHD_NO;
	case HUB_DONE:
	case HUB_FAILED: break;
	}
	return send_failed(request);
}

/*---- What is asked for ----*/

/* A client that closes its end goes away. */
static bool is_there(void *client)
{
	const struct request *request = client;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->connection,
								       MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd poll_fd = { .events = POLLRDHUP };

	if (!info)
		return false;
	poll_fd.fd = info->connect_fd;
	return poll(&poll_fd, 1, 0) <= 0 || !(poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* False if it is not from 1 to SERVER_SECONDS_MAX. */
static bool read_seconds(const struct request *request, unsigned int *ret_seconds)
{
	static const char key[] = "seconds";
	const char *text = NULL;
	size_t length = 0;
	unsigned long seconds;

	if (MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, key, strlen(key), &text,
					  &length) == MHD_NO)
		return true;
	/* An escaped NUL is part of the value. */
	if (!text || length == 0 || length > SECONDS_DIGITS || strspn(text, "0123456789") != length)
		return false;
	seconds = strtoul(text, NULL, 10);
	*ret_seconds = (unsigned int)seconds;
	return seconds >= 1 && seconds <= SERVER_SECONDS_MAX;
}

/*---- Rendering ----*/

static int render_from(struct hub_recording *recording, const struct page *page,
		       const struct options *options, FILE *out)
{
	struct functions *functions = functions_new();
	struct recording_reader *reader = NULL;
	struct filter_options filter_options = options->filter;
	struct filter *filter = NULL;
	struct session session = recording->session;
	int error = functions ? recording_reader_open(recording->stream, functions, &reader) : -ENOMEM;

	session.clock = page->clock;
	if (!error) {
		filter_options.time = filter_time_by(session.clock, recording->session.clock);
		filter = filter_new(recording_reader_samples(reader), functions, &filter_options);
		error = filter ? 0 : -ENOMEM;
	}
	if (!error) {
		struct figures figures = *recording_reader_figures(reader);
		const struct view view = {
			.weight = session.clock,
			.span = { .until_ns = session.duration_ns },
		};

		figures_set_rate(&figures, recording_reader_clocked_ns(reader));
		error = format_by_name(page->format)
				->write(out, filter_samples(filter), &session, &figures, &view);
	}
	filter_free(filter);
	recording_reader_close(reader);
	functions_free(functions);
	return error;
}

static enum MHD_Result send_capture(struct request *request, const struct page *page, unsigned int seconds)
{
	const struct hub_request wanted = {
		.mode = page->mode,
		.duration_ns = seconds * (uint64_t)NS_PER_SECOND,
		.is_there = is_there,
		.client = request,
	};
	struct hub_recording recording;
	FILE *out = NULL;
	int error = 0;
	enum hub_answer answer = hub_capture(request->server->options.hub, &wanted, &recording, &error);

	if (error)
		return send_error(request, error);
	if (answer != HUB_DONE)
		return send_failure(request, answer);
	error = output_file_scratch(&out);
	if (!error)
		error = render_from(&recording, page, request->server->options.options, out);
	error = output_file_error(error);
	fclose(recording.stream);
	if (!error)
		return send_file(request, page->type, out);
	if (out)
		fclose(out);
	return send_error(request, error);
}

static enum MHD_Result send_heap(struct request *request, const struct page *page)
{
	const struct hub_request wanted = { .mode = page->mode, .is_there = is_there, .client = request };
	struct hub *hub = request->server->options.hub;
	struct hub_capture *capture;
	FILE *out = NULL;
	enum hub_answer answer;
	int error = output_file_scratch(&out);

	if (error)
		return send_error(request, error);
	answer = hub_reserve(hub, &wanted, &capture);
	if (answer == HUB_DONE) {
		answer = heap_request_run(hub, request->server->options.options,
					  request->server->options.wanted, &wanted, page->format, out);
		hub_release(hub, capture);
	}
	if (answer == HUB_DONE)
		return send_file(request, page->type, out);
	fclose(out);
	return send_failure(request, answer);
}

static enum MHD_Result send_metrics(struct request *request)
{
	struct hub_totals *totals = malloc(sizeof(*totals));
	FILE *out = NULL;
	int error = totals ? output_file_scratch(&out) : -ENOMEM;

	if (error) {
		free(totals);
		return send_error(request, error);
	}
	hub_totals(request->server->options.hub, totals);
	error = metrics_write(out, totals);
	free(totals);
	if (!error)
		return send_file(request, type_metrics, out);
	fclose(out);
	return send_error(request, error);
}

static enum MHD_Result send_health(struct request *request)
{
	struct hub_totals *totals = malloc(sizeof(*totals));
	bool running;

	if (!totals)
		return send_error(request, -ENOMEM);
	hub_totals(request->server->options.hub, totals);
	running = totals->running;
	free(totals);
	*request->said_error = 0;
	return running ? send_text(request, MHD_HTTP_OK, "ok\n")
		       : send_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "ljspy takes no samples now.\n");
}

/*---- Requests ----*/

static const char index_page[] =
	"<!doctype html><title>ljspy</title><h1>ljspy</h1><ul>"
	"<li><a href=\"/flamegraph?seconds=10\">flamegraph</a>"
	"<li><a href=\"/top\">top</a> (JSON)"
	"<li><a href=\"/metrics\">metrics</a>"
	"<li><a href=\"/healthz\">healthz</a>"
	"<li>pprof: /debug/pprof/profile, wall, offcpu, blocked, coroutines, heap; ?seconds=30</ul>\n";

static enum MHD_Result send_index(const struct request *request)
{
	return send_response(request, MHD_HTTP_OK, type_html,
			     MHD_create_response_from_buffer(strlen(index_page),
							     (void *)(uintptr_t)index_page,
							     MHD_RESPMEM_PERSISTENT));
}

static ssize_t read_nothing(void *context, uint64_t position, char *buffer, size_t size)
{
	(void)context;
	(void)position;
	(void)buffer;
	(void)size;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* How long the content would be is not known. */
static enum MHD_Result send_head(const struct request *request, const char *type)
{
	return send_response(
		request, MHD_HTTP_OK, type,
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL));
}

static enum MHD_Result send_page(struct request *request, const struct page *page)
{
	unsigned int seconds = page->seconds;

	if (!read_seconds(request, &seconds))
		return send_text(request, MHD_HTTP_BAD_REQUEST, "seconds is a number from 1 to 300.\n");
	if (request->is_head)
		return send_head(request, page->type);
	return page->mode == HUB_HEAP ? send_heap(request, page) : send_capture(request, page, seconds);
}

static enum MHD_Result route(struct request *request, const char *path)
{
	if (strcmp(path, "/") == 0)
		return send_index(request);
	request->path = path;
	request->said_error = &request->server->said_metrics;
	if (strcmp(path, "/metrics") == 0)
		return send_metrics(request);
	request->said_error = &request->server->said_health;
	if (strcmp(path, "/healthz") == 0)
		return send_health(request);
	if (strncmp(path, prefix, strlen(prefix)) == 0 && path[strlen(prefix)] == '/')
		path += strlen(prefix);
	for (size_t i = 0; i < PAGES; i++) {
		if (strcmp(path, pages[i].path) != 0)
			continue;
		request->path = pages[i].path;
		request->said_error = &request->server->said_errors[i];
		return send_page(request, &pages[i]);
	}
	return send_text(request, MHD_HTTP_NOT_FOUND, "There is no such page; / lists them.\n");
}

static const char *header(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* Does not tell by its time how much of the token is right. */
static bool is_token(const char *given, const char *token)
{
	const size_t length = strlen(token);
	unsigned int difference = strlen(given) != length;

	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)given[difference & 1 ? 0 : i] ^ (unsigned char)token[i];
	return difference == 0;
}

static bool has_token(const struct request *request)
{
	static const char scheme[] = "Bearer ";
	const char *given = header(request, MHD_HTTP_HEADER_AUTHORIZATION);

	return given && strncmp(given, scheme, strlen(scheme)) == 0 &&
	       is_token(given + strlen(scheme), request->server->options.token);
}

/* Is the host of the request this machine's own name for itself? */
static bool is_for_this_host(const struct request *request)
{
	const char *host = header(request, MHD_HTTP_HEADER_HOST);

	return !host || own_address(host); /* HTTP/1.0 has none: no browser */
}

static bool says(const struct request *request, const char *name, const char *text)
{
	const char *given = header(request, name);

	return given && strcmp(given, text) == 0;
}

/*
 * Does a browser ask before its user has gone there, by a guess of its own or of a page? (Speculative
 * loading, WHATWG's HTML)
 */
static bool is_ahead_of_user(const struct request *request)
{
	const char *purpose = header(request, "Sec-Purpose");

	return (purpose && strncmp(purpose, "prefetch", strlen("prefetch")) == 0) ||
	       says(request, "Purpose", "prefetch");
}

/*
 * Does a page of another site, or of another server on this machine, have the browser ask: by a picture, a
 * frame or a script, say? It cannot read the answer, but captures pause sampling, and a heap holds its
 * process. A link that the user follows is all right. (Fetch Metadata, a W3C draft)
 */
static bool is_from_other_page(const struct request *request)
{
	static const char site[] = "Sec-Fetch-Site";
	const bool is_followed = says(request, "Sec-Fetch-Mode", "navigate") &&
				 says(request, "Sec-Fetch-Dest", "document") &&
				 says(request, "Sec-Fetch-User", "?1");

	return header(request, site) && !says(request, site, "same-origin") && !says(request, site, "none") &&
	       !is_followed;
}

/* The status with which to refuse the request, and why; MHD_HTTP_OK if there is no reason. */
static unsigned int refusal(const struct request *request, const char **ret_why)
{
	const struct server_options *options = &request->server->options;

	if (options->token) {
		*ret_why = "A token is needed.\n";
		return has_token(request) ? MHD_HTTP_OK : MHD_HTTP_UNAUTHORIZED;
	}
	*ret_why = "This host is not served without a token.\n";
	if (!options->is_unix && !is_for_this_host(request))
		return MHD_HTTP_FORBIDDEN;
	*ret_why =
		"Without a token, browsers get an answer where their user goes, by a link say, and no page of another site.\n";
	return is_ahead_of_user(request) || is_from_other_page(request) ? MHD_HTTP_FORBIDDEN : MHD_HTTP_OK;
}

/*---- Clients ----*/

static enum MHD_Result admit(void *context, const struct sockaddr *address, socklen_t length)
{
	struct server *server = context;

	(void)address;
	(void)length;
	return clients_admit(&server->clients) ? MHD_YES : MHD_NO;
}

/* *client is NULL for one without a place. */
static void note_connection(void *context, struct MHD_Connection *connection, void **client,
			    enum MHD_ConnectionNotificationCode what)
{
	struct server *server = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*client = clients_add(
			&server->clients,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
	else if (*client)
		clients_remove(&server->clients, *client);
}

static void note_client(struct server *server, struct MHD_Connection *connection, enum client_state state)
{
	struct client *client =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	if (client)
		clients_note(&server->clients, client, state);
}

/*---- The answer ----*/

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	static const char seen[] = "";
	struct server *server = context;
	struct request request = {
		.server = server,
		.connection = connection,
		.is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0,
	};
	enum MHD_Result result;
	unsigned int status;
	const char *why;

	(void)version;
	(void)upload;
	/* The first call comes before the body. */
	if (!*state) {
		*state = (void *)(uintptr_t)seen;
		server->unanswered++;
		if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || request.is_head)
			return MHD_YES;
		return send_text(&request, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET is answered.\n");
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_NO; /* a body: close the connection */
	}
	note_client(server, connection, CLIENT_ASKS);
	status = refusal(&request, &why);
	result = status == MHD_HTTP_OK ? route(&request, path) : send_text(&request, status, why);
	note_client(server, connection, CLIENT_READS);
	return result;
}

/*---- The server ----*/

static void note_answered(void *context, struct MHD_Connection *connection, void **state,
			  enum MHD_RequestTerminationCode code)
{
	struct server *server = context;

	(void)code;
	note_client(server, connection, CLIENT_SILENT);
	if (*state)
		server->unanswered--;
}

/* What clients do wrong is theirs: it would fill ljspy's log. */
static void ignore_message(void *context, const char *format, va_list arguments)
{
	(void)context;
	(void)format;
	(void)arguments;
}

int server_start(const struct server_options *options, struct server **ret_server)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->options = *options;
	clients_begin(&server->clients);
	server->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ERROR_LOG, 0, admit,
		server, answer, server, MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL,
		MHD_OPTION_NOTIFY_COMPLETED, note_answered, server, MHD_OPTION_NOTIFY_CONNECTION,
		note_connection, server, MHD_OPTION_LISTEN_SOCKET, options->socket,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)(CLIENTS_MAX + CLIENTS_LEAVING_MAX),
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEADERS_MAX, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
	if (!server->daemon) {
		clients_end(&server->clients);
		free(server);
		return errno ? -errno : -EINVAL;
	}
	*ret_server = server;
	return 0;
}

/* To stop closes connections, though an answer may be on its way. */
static void await_answers(const struct server *server)
{
	const struct timespec moment = { .tv_nsec = MOMENT_MS * 1000 * 1000 };

	for (int i = 0; i < MOMENTS_MAX && server->unanswered; i++)
		nanosleep(&moment, NULL);
}

void server_stop(struct server *server)
{
	await_answers(server);
	MHD_stop_daemon(server->daemon);
	clients_end(&server->clients);
	free(server);
}
