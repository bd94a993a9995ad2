/* SPDX-License-Identifier: MIT */
#include "src/push/endpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "output/labels/json_values.h"
#include "output/sample/text_ends.h"
#include "src/linux/sockets/own_address.h"

static const char push_path[] = "/push.v1.PusherService/Push";
static const uint64_t second_ns = 1000000000;

/*---- The URL ----*/

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

bool endpoint_read(const char *url, struct endpoint *ret_endpoint, const char **ret_wrong)
{
	const bool is_https = strncmp(url, "https://", 8) == 0;
	const char *host = is_https ? url + 8 : url + 7;
	struct endpoint endpoint = { .protocol = ENDPOINT_PUSH };
	size_t length = strlen(url);

	*ret_wrong = NULL;
	if (!is_https && strncmp(url, "http://", 7) != 0)
		*ret_wrong = "It is to begin with http:// or https://.";
	else if (length > ENDPOINT_URL_MAX || !is_clean(url) || strcspn(host, ":/") == 0)
		*ret_wrong = "It is too long, has no host, or has odd characters.";
	else if (strchr(url, '@'))
		*ret_wrong =
			"Everybody can read a command line: --push-credentials FILE names a file with them.";
	else if (strpbrk(url, "?#"))
		*ret_wrong = "ljspy adds the query itself.";
	if (*ret_wrong)
		return false;
	while (url[length - 1] == '/')
		length--;
	memcpy(endpoint.url, url, length);
	if (text_ends_with(endpoint.url, "/ingest"))
		endpoint.protocol = ENDPOINT_INGEST;
	else if (text_ends_with(endpoint.url, "/writeraw"))
		endpoint.protocol = ENDPOINT_WRITE_RAW;
	else if (!text_ends_with(endpoint.url, push_path))
		memcpy(endpoint.url + length, push_path, sizeof(push_path));
	endpoint.is_here = own_address(host);
	endpoint.is_secret_safe = is_https || endpoint.is_here;
	*ret_endpoint = endpoint;
	return true;
}

/*---- JSON ----*/

char *endpoint_base64(const char *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((length + 2) / 3 * 4 + 1), *at = text;

	for (size_t i = 0; text && i < length; i += 3) {
		uint32_t group = (uint32_t)(unsigned char)bytes[i] << 16;

		if (i + 1 < length)
			group |= (uint32_t)(unsigned char)bytes[i + 1] << 8;
		if (i + 2 < length)
			group |= (unsigned char)bytes[i + 2];
		*at++ = digits[group >> 18];
		*at++ = digits[group >> 12 & 63];
		*at++ = digits[group >> 6 & 63];
		*at++ = digits[group & 63];
		if (i + 1 >= length)
			at[-2] = '=';
		if (i + 2 >= length)
			at[-1] = '=';
	}
	if (text)
		*at = '\0';
	return text;
}

static json_t *labels_json(const struct push_profile *profile)
{
	json_t *labels = json_pack("[{s:s,s:s}]", "name", "__name__", "value", profile->kind);

	for (size_t i = 0; i < profile->labels.count; i++)
		labels = json_value_append(labels,
					   json_pack("{s:s,s:s}", "name", profile->labels.labels[i].name,
						     "value", profile->labels.labels[i].value));
	return labels;
}

static char *message_json(const struct endpoint *endpoint, const struct push_profile *profile)
{
	char *encoded = endpoint_base64(profile->bytes, profile->length), *text = NULL;
	json_t *labels = encoded ? labels_json(profile) : NULL, *message;

	if (endpoint->protocol == ENDPOINT_WRITE_RAW)
		labels = json_pack("{s:o}", "labels", labels);
	message = labels ? json_pack("{s:[{s:o,s:[{s:s}]}]}", "series", "labels", labels, "samples",
				     "rawProfile", encoded)
			 : NULL;
	if (message)
		text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	free(encoded);
	return text;
}

/*---- /ingest ----*/

static bool is_alphanumeric(char character)
{
	return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
	       (character >= 'a' && character <= 'z');
}

/* Its grammar has no way to escape what it is made of; the rest is escaped for a URL. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		char character = *text;

		if (strchr("{},=", *text))
			character = '_';
		if (is_alphanumeric(character) || strchr("-._~", character))
			fputc(character, out);
		else
			fprintf(out, "%%%02X", (unsigned int)(unsigned char)character);
	}
}

/* The name of an application may have these characters only; the label service_name has the whole. */
static void put_application(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(is_alphanumeric(*name) || strchr("-._/", *name) ? *name : '_', out);
}

static char *ingest_url(const struct endpoint *endpoint, const struct push_profile *profile)
{
	const char *service = labels_value(&profile->labels, "service_name");
	bool is_first = true;
	char *url = NULL;
	size_t length;
	FILE *out = open_memstream(&url, &length);

	if (!out)
		return NULL;
	fprintf(out, "%s?name=", endpoint->url);
	put_application(out, service ? service : "unknown");
	fputs("%7B", out);
	for (size_t i = 0; i < profile->labels.count; i++) {
		const struct label *label = &profile->labels.labels[i];

		fprintf(out, "%s%s%%3D", is_first ? "" : "%2C", label->name);
		put_escaped(out, label->value);
		is_first = false;
	}
	fprintf(out, "%%7D&from=%" PRIu64 "&until=%" PRIu64 "&sampleRate=%u&format=pprof&spyName=ljspy",
		profile->begin_unix_ns / second_ns, (profile->end_unix_ns + second_ns - 1) / second_ns,
		profile->rate_hz);
	if (fclose(out)) {
		free(url);
		return NULL;
	}
	return url;
}

/*---- Requests and answers ----*/

int endpoint_request(const struct endpoint *endpoint, const struct push_profile *profile,
		     struct endpoint_request *ret_request)
{
	struct endpoint_request request = { .content_type = "application/json" };

	if (endpoint->protocol == ENDPOINT_INGEST) {
		request.content_type = "application/octet-stream";
		request.url = ingest_url(endpoint, profile);
		request.body = malloc(profile->length ? profile->length : 1);
		request.length = profile->length;
		if (request.body)
			memcpy(request.body, profile->bytes, profile->length);
	} else {
		request.url = strdup(endpoint->url);
		request.body = message_json(endpoint, profile);
		request.length = request.body ? strlen(request.body) : 0;
	}
	if (!request.url || !request.body) {
		endpoint_request_clear(&request);
		return -ENOMEM;
	}
	*ret_request = request;
	return 0;
}

void endpoint_request_clear(struct endpoint_request *request)
{
	free(request->url);
	free(request->body);
	request->url = request->body = NULL;
}

enum endpoint_verdict endpoint_verdict(long http_status)
{
	if (http_status >= 200 && http_status < 300)
		return ENDPOINT_TAKEN;
	switch (http_status) {
	case 400: /* bad request, invalid argument: labels, too old */
	case 409:
	case 413: /* too large */
	case 422: return ENDPOINT_REFUSED;
	case 500: return ENDPOINT_FAILED;
	default: return ENDPOINT_LATER;
	}
}
