/* SPDX-License-Identifier: MIT */
/* What is pushed, to where and when: labels, containers, URLs, answers, waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/push/backoff.h"
#include "src/push/containers.h"
#include "src/push/credentials.h"
#include "src/push/endpoint.h"
#include "src/push/labels.h"
#include "src/push/mark.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "11112222-3333-4444-5555-666677778888"
#define POD_OF_SYSTEMD "11112222_3333_4444_5555_666677778888"

static const uint64_t second_ns = 1000000000;

static void test_the_first_value_of_a_label_stays(void **state)
{
	struct labels labels = { .count = 0 };

	(void)state;
	labels_add_text(&labels, "pod", NULL);
	labels_add_text(&labels, "pod", "");
	assert_null(labels_value(&labels, "pod"));
	labels_add_text(&labels, "pod", "a");
	labels_add_text(&labels, "pod", "b");
	assert_string_equal(labels_value(&labels, "pod"), "a");
	for (int i = 0; i < 2 * LABELS_MAX; i++)
		labels_add_text(&labels, (char[]){ 'a', (char)('a' + i), '\0' }, "x");
	assert_int_equal(labels.count, LABELS_MAX);
}

static void test_labels_are_made_harmless(void **state)
{
	struct labels labels = { .count = 0 };
	char lengthy[1000];

	(void)state;
	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	labels_add_text(&labels, "a.b-c", "1\n2=\x1b\xc3\xa9");
	assert_string_equal(labels_value(&labels, "a_b_c"), "1_2=___");
	labels_add_text(&labels, "__name__", "x");
	labels_add_text(&labels, "..x", "x");
	labels_add_text(&labels, "1x", "x");
	labels_add_text(&labels, lengthy, "x");
	labels_add_text(&labels, "", "x");
	assert_int_equal(labels.count, 1);
	labels_add_text(&labels, "long", lengthy);
	assert_int_equal(strlen(labels_value(&labels, "long")), LABEL_VALUE_SIZE - 1);
}

static void test_labels_survive_writing(void **state)
{
	struct labels labels = { .count = 0 }, read;
	char text[LABELS_TEXT_SIZE], again[LABELS_TEXT_SIZE];

	(void)state;
	labels_add_text(&labels, "service_name", "a = b, {c}");
	labels_add_text(&labels, "pod", "x");
	labels_write(&labels, text);
	labels_read(text, &read);
	labels_write(&read, again);
	assert_string_equal(text, "service_name=a = b, {c}\npod=x\n");
	assert_string_equal(text, again);
	labels_read("\n=\nx\na=\n__b=1\nc=\x01\nd=1", &read);
	labels_write(&read, again);
	assert_string_equal(again, "c=_\nd=1\n");
}

static void test_attributes_get_the_names_of_services(void **state)
{
	static const char text[] =
		"service.name=my%20shop,k8s.pod.name=p,,=x,y,team=a,bad%=%4,k8s.namespace.name=";
	struct labels some = { .count = 0 }, all = { .count = 0 };
	char written[LABELS_TEXT_SIZE];

	(void)state;
	labels_add_attributes(&some, text, false);
	labels_write(&some, written);
	assert_string_equal(written, "service_name=my shop\npod=p\n");
	labels_add_attributes(&all, text, true);
	labels_write(&all, written);
	assert_string_equal(written, "service_name=my shop\npod=p\nteam=a\nbad_=%4\n");
}

static void check_cgroup(const char *text, const char *container, const char *pod, const char *unit)
{
	struct cgroup_names names;

	cgroup_names_read(text, &names);
	assert_string_equal(names.container, container);
	assert_string_equal(names.pod_uid, pod);
	assert_string_equal(names.unit, unit);
}

static void test_cgroups_tell_containers(void **state)
{
	(void)state;
	check_cgroup("0::/system.slice/docker-" ID ".scope\n", ID, "", "");
	check_cgroup("12:cpu:/docker/" ID "\n1:name=systemd:/docker/" ID
		     "\n0::/system.slice/containerd.service\n",
		     ID, "", "");
	check_cgroup("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_OF_SYSTEMD
		     ".slice/cri-containerd-" ID ".scope\n",
		     ID, POD, "");
	check_cgroup("0::/kubepods/besteffort/pod" POD "/" ID "\n", ID, POD, "");
	check_cgroup("0::/../crio-" ID ".scope", ID, "", "");
	check_cgroup("0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "");
	check_cgroup("0::/system.slice/nginx.service\n", "", "", "nginx");
	check_cgroup("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.service", "", "",
		     "app-x");
	check_cgroup("0::/user.slice/session-1.scope\n", "", "", "");
}

static void test_cgroups_that_tell_nothing(void **state)
{
	(void)state;
	check_cgroup("", "", "", "");
	check_cgroup("\n:\n::\n0::", "", "", "");
	check_cgroup("0::/" ID "0", "", "", ""); /* a digit too many */
	check_cgroup("0::/podx1112222-3333-4444-5555-666677778888", "", "", "");
	check_cgroup("0::/.service/pod/.slice", "", "", "");
	check_cgroup("no colons " ID, "", "", "");
}

static void test_logs_of_a_node_name_containers(void **state)
{
	struct labels labels = { .count = 0 };

	(void)state;
	assert_false(containers_read_log_name("", ID, &labels));
	assert_false(containers_read_log_name("__-.log", ID, &labels));
	assert_false(containers_read_log_name("web_prod-" ID ".log", ID, &labels));
	assert_false(containers_read_log_name("web_prod_nginx-" ID ".txt", ID, &labels));
	assert_false(containers_read_log_name("web_prod_nginx-1" ID ".log", ID, &labels));
	assert_int_equal(labels.count, 0);
	assert_true(containers_read_log_name("web-1_prod_nginx-a-" ID ".log", ID, &labels));
	assert_string_equal(labels_value(&labels, "pod"), "web-1");
	assert_string_equal(labels_value(&labels, "namespace"), "prod");
	assert_string_equal(labels_value(&labels, "container"), "nginx-a");
}

static void test_a_mark_survives_writing(void **state)
{
	const struct mark mark = { .done = 4294967295u, .current = 7, .parts = 0 };
	char text[MARK_TEXT_SIZE];
	struct mark read;

	(void)state;
	mark_write_text(&mark, text);
	assert_int_equal(strlen(text), MARK_LINE_LENGTH);
	assert_true(mark_read_text(text, strlen(text), &read));
	assert_memory_equal(&mark, &read, sizeof(mark));
	for (size_t i = 0; i < strlen(text); i++) {
		char changed[MARK_TEXT_SIZE];

		memcpy(changed, text, sizeof(changed));
		changed[i] = changed[i] == 'x' ? 'y' : 'x';
		assert_false(mark_read_text(changed, strlen(changed), &read));
		assert_false(mark_read_text(text, i, &read));
	}
}

static void test_a_mark_keeps_what_went_out_of_turn(void **state)
{
	struct mark mark = { .done = 3, .current = 4, .parts = 1, .ahead_count = MARK_AHEAD_MAX }, read;
	char text[MARK_TEXT_SIZE];

	(void)state;
	for (uint32_t i = 0; i < MARK_AHEAD_MAX; i++)
		mark.ahead[i] = 2 * i + 7;
	mark_write_text(&mark, text);
	assert_int_equal(strlen(text), MARK_TEXT_SIZE - 1);
	assert_true(mark_read_text(text, strlen(text), &read));
	assert_memory_equal(&mark, &read, sizeof(mark));
	assert_true(mark_read_text(text, MARK_LINE_LENGTH + 2 * MARK_AHEAD_LENGTH - 1, &read));
	assert_int_equal(read.ahead_count, 1);
	text[MARK_LINE_LENGTH + 2 * MARK_AHEAD_LENGTH + 1] = 'x';
	assert_true(mark_read_text(text, strlen(text), &read));
	assert_int_equal(read.ahead_count, 2);
	mark_finish(&read, 7);
	assert_int_equal(read.done, 7);
	assert_int_equal(read.current + read.parts, 0);
	assert_int_equal(read.ahead_count, 1);
	assert_true(mark_is_ahead(&read, 9) && !mark_is_ahead(&read, 7));
}

static void check_endpoint(const char *url, enum endpoint_protocol protocol, const char *whole)
{
	struct endpoint endpoint;
	const char *wrong;

	assert_true(endpoint_read(url, &endpoint, &wrong));
	assert_int_equal(endpoint.protocol, protocol);
	assert_string_equal(endpoint.url, whole);
}

static void test_a_url_tells_the_protocol(void **state)
{
	struct endpoint endpoint;
	const char *wrong;

	(void)state;
	check_endpoint("http://h:4040", ENDPOINT_PUSH, "http://h:4040/push.v1.PusherService/Push");
	check_endpoint("http://h:4040//", ENDPOINT_PUSH, "http://h:4040/push.v1.PusherService/Push");
	check_endpoint("https://h/push.v1.PusherService/Push/", ENDPOINT_PUSH,
		       "https://h/push.v1.PusherService/Push");
	check_endpoint("http://h/a/ingest", ENDPOINT_INGEST, "http://h/a/ingest");
	check_endpoint("http://h:7070/api/profiles/writeraw", ENDPOINT_WRITE_RAW,
		       "http://h:7070/api/profiles/writeraw");
	assert_true(endpoint_read("http://localhost:1", &endpoint, &wrong) && endpoint.is_secret_safe);
	assert_true(endpoint.is_here);
	assert_true(endpoint_read("https://h", &endpoint, &wrong) && endpoint.is_secret_safe);
	assert_false(endpoint.is_here);
	assert_true(endpoint_read("http://127.0.0.2/", &endpoint, &wrong) && endpoint.is_here);
	assert_true(endpoint_read("http://localhost.example", &endpoint, &wrong) && !endpoint.is_secret_safe);
	assert_false(endpoint_read("ftp://h", &endpoint, &wrong));
	assert_false(endpoint_read("http:///x", &endpoint, &wrong));
	assert_false(endpoint_read("http://a b", &endpoint, &wrong));
	assert_non_null(wrong);
}

static void test_an_older_service_has_the_labels_in_the_url(void **state)
{
	static char bytes[] = "profile";
	struct push_profile profile = { .bytes = bytes,
					.length = sizeof(bytes) - 1,
					.begin_unix_ns = 7 * UINT64_C(1000000000) + 5,
					.end_unix_ns = 9 * UINT64_C(1000000000) + 5,
					.rate_hz = 99 };
	struct endpoint_request request;
	struct endpoint endpoint;
	const char *wrong;

	(void)state;
	assert_true(endpoint_read("http://h/ingest", &endpoint, &wrong));
	labels_add_text(&profile.labels, "service_name", "aZ09/az.b_c-d e");
	labels_add_text(&profile.labels, "path", "AMZamz059-._~/ +");
	labels_add_text(&profile.labels, "set", "{a=b,c}");
	assert_int_equal(endpoint_request(&endpoint, &profile, &request), 0);
	assert_string_equal(request.url, "http://h/ingest?name=aZ09/az.b_c-d_e%7B"
					 "service_name%3DaZ09%2Faz.b_c-d%20e%2C"
					 "path%3DAMZamz059-._~%2F%20%2B%2C"
					 "set%3D_a_b_c_%7D"
					 "&from=7&until=10&sampleRate=99&format=pprof&spyName=ljspy");
	assert_string_equal(request.content_type, "application/octet-stream");
	assert_int_equal(request.length, profile.length);
	assert_memory_equal(request.body, bytes, profile.length);
	endpoint_request_clear(&request);
	/* Without a name of its own. */
	profile.labels.count = 0;
	assert_int_equal(endpoint_request(&endpoint, &profile, &request), 0);
	assert_non_null(strstr(request.url, "/ingest?name=unknown%7B%7D&from=7&"));
	endpoint_request_clear(&request);
}

static void test_answers_decide(void **state)
{
	(void)state;
	assert_int_equal(endpoint_verdict(200), ENDPOINT_TAKEN);
	assert_int_equal(endpoint_verdict(204), ENDPOINT_TAKEN);
	assert_int_equal(endpoint_verdict(400), ENDPOINT_REFUSED);
	assert_int_equal(endpoint_verdict(413), ENDPOINT_REFUSED);
	assert_int_equal(endpoint_verdict(500), ENDPOINT_FAILED);
	for (size_t i = 0; i < 11; i++)
		assert_int_equal(
			endpoint_verdict((long[]){ 0, 100, 302, 401, 403, 404, 408, 429, 502, 503, 504 }[i]),
			ENDPOINT_LATER);
}

static void test_base64(void **state)
{
	static const char *const pairs[][2] = { { "", "" },
						{ "f", "Zg==" },
						{ "fo", "Zm8=" },
						{ "foo", "Zm9v" },
						{ "\xff\xfe\xfd", "//79" },
						{ "foobar", "Zm9vYmFy" } };

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *text = endpoint_base64(pairs[i][0], strlen(pairs[i][0]));

		assert_string_equal(text, pairs[i][1]);
		free(text);
	}
}

static void test_waits_grow_up_to_a_minute(void **state)
{
	(void)state;
	assert_int_equal(backoff_ns(1, 0, 0), second_ns);
	assert_int_equal(backoff_ns(3, 0, 0), 4 * second_ns);
	assert_int_equal(backoff_ns(7, 0, 0), backoff_ns(1000000, 0, 0));
	for (unsigned int failures = 1; failures < 10; failures++) {
		uint64_t longest = backoff_ns(failures, 0, 0), shortest = backoff_ns(failures, 0, UINT32_MAX);

		assert_true(longest <= 60 * second_ns && shortest < longest);
		assert_true(shortest >= longest / 4 * 3);
	}
	assert_int_equal(backoff_ns(1, 30, UINT32_MAX), 30 * second_ns);
}

static void test_credentials(void **state)
{
	struct credentials credentials;

	(void)state;
	assert_int_equal(credentials_read_text("", &credentials), 0);
	assert_int_equal(credentials_read_text("# x\n\nuser a:b c\r\ntenant 1\ntoken t", &credentials), 0);
	assert_string_equal(credentials.user, "a:b c");
	assert_string_equal(credentials.tenant, "1");
	assert_string_equal(credentials.token, "t");
	assert_int_equal(credentials_read_text("token a\ntoken b\n", &credentials), 2);
	assert_int_equal(credentials_read_text("token \n", &credentials), 1);
	assert_int_equal(credentials_read_text("\ntoken a\x01\n", &credentials), 2);
	assert_int_equal(credentials_read_text("password a\n", &credentials), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_value_of_a_label_stays),
		cmocka_unit_test(test_labels_are_made_harmless),
		cmocka_unit_test(test_labels_survive_writing),
		cmocka_unit_test(test_attributes_get_the_names_of_services),
		cmocka_unit_test(test_cgroups_tell_containers),
		cmocka_unit_test(test_cgroups_that_tell_nothing),
		cmocka_unit_test(test_logs_of_a_node_name_containers),
		cmocka_unit_test(test_a_mark_survives_writing),
		cmocka_unit_test(test_a_mark_keeps_what_went_out_of_turn),
		cmocka_unit_test(test_a_url_tells_the_protocol),
		cmocka_unit_test(test_an_older_service_has_the_labels_in_the_url),
		cmocka_unit_test(test_answers_decide),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_waits_grow_up_to_a_minute),
		cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
