/* SPDX-License-Identifier: MIT */
#include "src/push/http.h"

#ifdef LJSPY_STATIC

struct http *http_new(const char *ca_file, http_asks *gives_up, void *context)
{
	(void)ca_file;
	(void)gives_up;
	(void)context;
	return NULL;
}

void http_free(struct http *http)
{
	(void)http;
}

void http_post(struct http *http, const struct http_post *post, struct http_answer *ret_answer)
{
	(void)http;
	(void)post;
	*ret_answer = (struct http_answer){ 0 };
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "src/options/command.h"

enum {
	CONNECT_SECONDS = 10,
	STALL_SECONDS = 20, /* without a byte */
	WHOLE_SECONDS = 120,
	STATUS_MIN = 200, /* below that, another answer follows */
	STATUSES_MAX = 1000,
};

struct http {
	CURL *curl;
	http_asks *gives_up;
	void *context;
	char said[HTTP_MESSAGE_SIZE]; /* the body's beginning */
	size_t said_length;
	char error[CURL_ERROR_SIZE];
};

/* libcurl takes fewer bytes than it gave for an error; so what is too much is dropped. */
static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http *http = context;
	size_t length = size * count, room = sizeof(http->said) - 1 - http->said_length;

	if (room > length)
		room = length;
	memcpy(http->said + http->said_length, bytes, room);
	http->said_length += room;
	return length;
}

static int ask(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	const struct http *http = context;

	(void)down_all;
	(void)down;
	(void)up_all;
	(void)up;
	return http->gives_up(http->context);
}

struct http *http_new(const char *ca_file, http_asks *gives_up, void *context)
{
	struct http *http = calloc(1, sizeof(*http));

	if (http && curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		http->curl = curl_easy_init();
	if (!http || !http->curl) {
		free(http);
		return NULL;
	}
	http->gives_up = gives_up;
	http->context = context;
	curl_easy_setopt(http->curl, CURLOPT_ERRORBUFFER, http->error);
	curl_easy_setopt(http->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(http->curl, CURLOPT_WRITEDATA, http);
	curl_easy_setopt(http->curl, CURLOPT_XFERINFOFUNCTION, ask);
	curl_easy_setopt(http->curl, CURLOPT_XFERINFODATA, http);
	curl_easy_setopt(http->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(http->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(http->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(http->curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
	curl_easy_setopt(http->curl, CURLOPT_TIMEOUT, (long)WHOLE_SECONDS);
	curl_easy_setopt(http->curl, CURLOPT_USERAGENT, "ljspy/" LJSPY_VERSION);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Otherwise it waits for a name server that does not answer, even after it was told to give up. */
	curl_easy_setopt(http->curl, CURLOPT_QUICK_EXIT, 1L);
#endif
	if (ca_file)
		curl_easy_setopt(http->curl, CURLOPT_CAINFO, ca_file);
	return http;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	curl_global_cleanup();
	free(http);
}

/* Add "NAME: VALUE" to a list, which is unchanged when memory is short or there is no value. */
static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
	char line[CREDENTIAL_SIZE + 64];
	struct curl_slist *longer;

	if (!*value)
		return list;
	snprintf(line, sizeof(line), "%s: %s", name, value);
	longer = curl_slist_append(list, line);
	explicit_bzero(line, sizeof(line));
	return longer ? longer : list;
}

static struct curl_slist *headers_of(const struct http_post *post)
{
	char bearer[CREDENTIAL_SIZE + 8] = "";
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	if (*post->credentials->token)
		snprintf(bearer, sizeof(bearer), "Bearer %s", post->credentials->token);
	list = add_header(list, "Content-Type", post->content_type);
	list = add_header(list, "X-Scope-OrgID", post->credentials->tenant);
	list = add_header(list, "Authorization", bearer);
	explicit_bzero(bearer, sizeof(bearer));
	return list;
}

/* What the server or libcurl says. */
static const char *words(const struct http *http, CURLcode code, const struct http_answer *answer)
{
	if (code == CURLE_OK || answer->status)
		return http->said;
	return *http->error ? http->error : curl_easy_strerror(code);
}

/* A status, or a number of libcurl's behind them. */
static unsigned int cause_of(CURLcode code, long status)
{
	const unsigned int cause = status ? (unsigned int)status : STATUSES_MAX + code;

	return cause < HTTP_CAUSES_MAX ? cause : HTTP_CAUSES_MAX - 1;
}

static void read_answer(struct http *http, CURLcode code, struct http_answer *ret_answer)
{
	struct http_answer answer = { 0 };
	const char *elsewhere = NULL;
	curl_off_t wait = 0;

	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &answer.status);
	curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &wait);
	if (wait > 0)
		answer.retry_after_s = wait > HTTP_RETRY_AFTER_MAX_S ? HTTP_RETRY_AFTER_MAX_S
								     : (unsigned int)wait;
	/*
	 * Whether a profile is taken is clear once its status is, though the rest of the answer may never
	 * come.
	 */
	if (code != CURLE_OK && answer.status < STATUS_MIN)
		answer.status = 0;
	answer.cause = cause_of(code, answer.status);
	curl_easy_getinfo(http->curl, CURLINFO_REDIRECT_URL, &elsewhere);
	if (elsewhere) /* that is for the user to decide: profiles and credentials go there then */
		snprintf(answer.message, sizeof(answer.message), "it is at %s", elsewhere);
	else
		snprintf(answer.message, sizeof(answer.message), "%s", words(http, code, &answer));
	answer.message[strcspn(answer.message, "\r\n")] = '\0';
	*ret_answer = answer;
}

void http_post(struct http *http, const struct http_post *post, struct http_answer *ret_answer)
{
	const char *user = post->credentials->user;
	struct curl_slist *headers = headers_of(post);
	CURLcode code;

	memset(http->said, 0, sizeof(http->said));
	http->said_length = 0;
	*http->error = '\0';
	curl_easy_setopt(http->curl, CURLOPT_URL, post->url);
	/* NULL: as the environment says. */
	curl_easy_setopt(http->curl, CURLOPT_PROXY, post->is_direct ? "" : NULL);
	curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(http->curl, CURLOPT_USERPWD, *user ? user : NULL);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->length);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, post->body);
	code = curl_easy_perform(http->curl);
	read_answer(http, code, ret_answer);
	curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
}

#endif
