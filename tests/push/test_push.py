# SPDX-License-Identifier: MIT
"""`ljspy record --push`: each recording gets to the service, once, whatever becomes of the service,
of ljspy and of the network meanwhile; and sampling does not notice."""

import base64
import contextlib
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import consumers
import ljspy
import profile_server

pytestmark = pytest.mark.usefixtures("built")

HERE = ljspy.ROOT / "tests/push"
RATE = 199
NEVER = ("--name", "no-such-program")
NOTHING_PUSHED = "ljspy pushed 0000000000 0000000000 0000000000\n"


def child_of(pid):
    return ljspy.children_of(pid)[0]


@contextlib.contextmanager
def pushing(directory, url, *options, stop=signal.SIGINT, status=ljspy.OK, every="1s", through=(), **more):
    """Run `ljspy record --push` while the block runs. Yields the process; its messages are in its
    attribute messages afterwards. Without a target, it pushes what the directory holds."""
    argv = [*through, ljspy.LJSPY, "record", "--every", every, "-r", RATE, "-o", directory, "--push", url, *options]
    if "-p" not in options:
        argv += NEVER
    with open(f"{directory}.messages", "w+", encoding="utf-8") as said:
        process = subprocess.Popen([str(a) for a in argv], stderr=said, **more)
        process.said = lambda: pathlib.Path(said.name).read_text(encoding="utf-8")
        try:
            yield process
            os.kill(child_of(process.pid) if through else process.pid, stop)
            process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()
        process.messages = process.said()
    assert process.returncode == status, process.messages


def takes(server, count, seconds=30):
    return ljspy.wait_until(lambda: len(server.profiles) >= count, seconds=seconds)


def total_of(profiles):
    """Samples and CPU time in them."""
    read = [profile_server.Pprof(profile.bytes) for profile in profiles]
    return sum(profile.count for profile in read), sum(profile.cpu_ns for profile in read)


def recordings(directory):
    return sorted(directory.glob("*.ljspy"))


def figures(directory):
    return json.loads(ljspy.run("report", directory, "-f", "json").stdout)["figures"]


def keys(profiles):
    """What tells profiles apart."""
    return {(profile_server.Pprof(p.bytes).time_ns, *sorted(p.labels.items())) for p in profiles}


@pytest.fixture(scope="module")
def server():
    with profile_server.serving() as running:
        yield running


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """An archive of two services, recorded while a server took each recording: the directory, the
    server's profiles, ljspy's messages."""
    directory = tmp_path_factory.mktemp("push") / "kept"
    environment = os.environ | {"OTEL_RESOURCE_ATTRIBUTES": "service.name=shop%20front,k8s.pod.name=shop-1,secret=x"}
    own = os.environ | {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test,team=a b", "NODE_NAME": "node7"}
    with profile_server.serving() as server, ljspy.busy() as plain:
        argv = [ljspy.luajit("luajit"), "-e", "while true do for i = 1, 1e5 do end end"]
        with ljspy.Target(argv, env=environment) as shop:
            with pushing(directory, server.url, "-p", f"{plain.pid},{shop.pid}", env=own) as process:
                assert takes(server, 6)
        return directory, server.profiles, process.messages


@pytest.fixture
def archive(live, tmp_path):
    """A copy of that archive of which nothing is pushed yet; and how many profiles it is."""
    directory = tmp_path / "kept"
    shutil.copytree(live[0], directory)
    (directory / "pushed").write_text(NOTHING_PUSHED)
    return directory


@pytest.fixture
def count(live):
    return len(live[1])


def test_each_sample_of_each_interval_is_pushed_once(live):
    directory, profiles, messages = live
    samples, cpu_ns = total_of(profiles)
    assert samples == figures(directory)["samples"] > 0
    assert cpu_ns > 0
    assert f"Pushed {len(profiles)} profiles" in messages
    assert (directory / "pushed").read_text().split()[2] == recordings(directory)[-1].stem[-6:].zfill(10)
    times = [profile_server.Pprof(p.bytes).time_ns for p in profiles if p.labels["service_name"] == "luajit"]
    assert times == sorted(set(times))


def test_profiles_have_the_labels_that_services_expect(live):
    _, profiles, _ = live
    own = {"__name__": "process_cpu", "env": "test", "team": "a b", "node": "node7", "instance": "node7"}
    expected = ({"service_name": "luajit"} | own, {"service_name": "shop front", "pod": "shop-1"} | own)
    assert all(profile.labels in expected for profile in profiles)
    assert {profile.labels["service_name"] for profile in profiles} == {"luajit", "shop front"}
    for profile in profiles:
        read = profile_server.Pprof(profile.bytes)
        assert read.types == [("samples", "count"), ("cpu", "nanoseconds")]
        assert read.labels <= {"process", "state", "vm_state", "phase"}
        assert 0 < read.duration_ns <= 1_100_000_000 * 5 and read.period == 10**9 // RATE
    busy = [profile_server.Pprof(p.bytes) for p in profiles if p.labels["service_name"] == "luajit"]
    assert any(any(name.endswith(".heavy:4") for name in read.functions) for read in busy)
    assert not any(any("heavy" in name for name in profile_server.Pprof(p.bytes).functions)
                   for p in profiles if p.labels["service_name"] != "luajit")


def test_pyroscopes_and_parcas_own_code_reads_the_requests(archive, server, count):
    pyroscope, parca = consumers.consumer("pyroscope"), consumers.consumer("parca")
    found = {}
    for path in (profile_server.PUSH, profile_server.INGEST, profile_server.WRITE_RAW):
        (archive / "pushed").write_text(NOTHING_PUSHED)
        before = len(server.profiles)
        with pushing(archive, server.url + path):
            assert takes(server, before + count)
        found[path] = server.profiles[before:]

    def decoded(profile, *argv):
        text = subprocess.run(argv, input=profile.body, capture_output=True, check=True, timeout=60).stdout.decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    shop = {path: next(p for p in profiles if p.labels["service_name"].startswith("shop"))
            for path, profiles in found.items()}
    push = shop[profile_server.PUSH]
    assert decoded(push, pyroscope / "decode", "push") == push.labels | {"bytes": str(len(push.bytes))}
    raw = shop[profile_server.WRITE_RAW]
    packages = parca / "node_modules"
    assert decoded(raw, "node", HERE / "decode.cjs", packages) == raw.labels | {"bytes": str(len(raw.bytes))}
    old = shop[profile_server.INGEST]
    read = decoded(old, pyroscope / "decode", "ingest", old.query["name"])
    assert read.pop("__name__") == "shop_front" == old.labels["service"]
    assert read | {"service": "shop_front"} == old.labels


def test_all_protocols_carry_the_same(archive, server, live):
    _, profiles, _ = live
    for path in (profile_server.PUSH, profile_server.INGEST, profile_server.WRITE_RAW):
        (archive / "pushed").write_text(NOTHING_PUSHED)
        before = len(server.profiles)
        with pushing(archive, server.url + path) as process:
            assert takes(server, before + len(profiles))
        pushed = server.profiles[before:]
        assert total_of(pushed) == total_of(profiles)
        if path == profile_server.INGEST:
            one = pushed[0].query
            assert int(one["from"]) < int(one["until"]) and one["format"] == "pprof" and one["spyName"] == "ljspy"
            assert int(one["sampleRate"]) == RATE
        assert str(len(profiles)) in process.messages


def test_a_server_that_goes_and_returns_gets_each_profile_once(archive, count):
    server = profile_server.Server()
    server.stop()
    with pushing(archive, server.url) as process:
        assert ljspy.wait_until(lambda: "profiles wait in" in process.said(), seconds=30)
        server.status = 503
        server.start()
        assert ljspy.wait_until(lambda: server.refused, seconds=30)
        server.status = 200
        assert takes(server, count)
    server.stop()
    assert len(server.profiles) == count == len(keys(server.profiles))
    assert process.messages.count("profiles wait in") == 2  # each reason once
    assert process.messages.count("takes profiles again") == 1


def test_a_kill_of_ljspy_loses_nothing(archive, server, count):
    before = len(server.profiles)
    server.status = 500
    try:
        with pushing(archive, server.url, stop=signal.SIGKILL, status=-signal.SIGKILL):
            refused = len(server.refused)
            assert ljspy.wait_until(lambda: len(server.refused) > refused, seconds=30)
    finally:
        server.status = 200
    with pushing(archive, server.url):
        assert takes(server, before + count)
    assert len(keys(server.profiles[before:])) == count


def test_a_kill_of_the_process_that_pushes_loses_nothing(tmp_path):
    directory = tmp_path / "kept"
    with profile_server.serving() as server, ljspy.busy() as target:
        with pushing(directory, server.url, "-p", target.pid) as process:
            assert takes(server, 2)
            keeper, = (child for child in ljspy.children_of(process.pid)
                       if pathlib.Path(f"/proc/{child}/comm").read_text() == "ljspy-push\n")
            os.kill(child_of(keeper), signal.SIGKILL)
            assert takes(server, len(server.profiles) + 3)
        assert len(keys(server.profiles)) == len(recordings(directory))
    assert process.messages.count("was killed; another one goes on") == 1


def test_a_hung_server_does_not_delay_sampling(tmp_path):
    directory = tmp_path / "kept"
    with profile_server.serving() as server, ljspy.busy() as target:
        server.going_on.clear()
        with pushing(directory, server.url, "-p", target.pid) as process:
            assert ljspy.wait_until(lambda: server.waiting, seconds=30)
            written = len(recordings(directory))
            assert ljspy.wait_until(lambda: len(recordings(directory)) >= written + 3, seconds=30)
            assert server.waiting == 1 and not server.profiles
            server.going_on.set()
        each = [json.loads(ljspy.run("report", path, "-f", "json").stdout)["figures"] for path in recordings(directory)]
        assert all(one["samples"] > 0 for one in each[1:-1])
        assert sum(one["dropped"] for one in each) == 0
        assert total_of(server.profiles)[0] == sum(one["samples"] for one in each), process.messages


def test_a_hung_server_is_not_tried_again_at_the_end(archive):
    with profile_server.serving() as server:
        server.going_on.clear()
        with pushing(archive, server.url) as process:
            assert ljspy.wait_until(lambda: server.waiting, seconds=30)
        assert server.waiting == 1
    assert process.messages.index("no answer before the end: profiles wait in") < process.messages.index("recordings wait")


def test_a_server_that_fails_now_and_then_is_not_worth_a_word(archive, count):
    with profile_server.serving() as server:
        server.fails_with = lambda profile: len(server.refused) <= len(server.profiles)
        with pushing(archive, server.url) as process:
            assert takes(server, count)
            server.fails_with = lambda profile: False
        assert len(server.refused) >= count
    assert "wait in" not in process.messages and "again" not in process.messages


def test_where_a_server_sends_it_is_said_and_not_followed(archive):
    with profile_server.serving() as server, profile_server.serving() as other:
        server.status, server.headers = 308, {"Location": other.url + "/there"}
        with pushing(archive, server.url) as process:
            assert ljspy.wait_until(lambda: "wait in" in process.said(), seconds=30)
        assert f"answers 308 (it is at {other.url}/there)" in process.messages
        assert not server.profiles + other.profiles + other.refused


def test_what_a_server_has_taken_is_not_sent_again_though_its_answer_breaks_off(archive, count):
    with profile_server.serving() as server:
        server.breaks_off = True
        with pushing(archive, server.url) as process:
            assert takes(server, count)
    assert len(server.profiles) == count == len(keys(server.profiles))
    assert "wait in" not in process.messages


def test_what_is_refused_is_said_once_and_left_out(archive, count):
    with profile_server.serving() as server:
        server.status, server.message = 413, b'{"message":"too \x1b[31m large"}'
        with pushing(archive, server.url, status=ljspy.WITH_ERRORS) as process:
            assert ljspy.wait_until(lambda: len(server.refused) >= count - 2, seconds=30)
            server.status = 200
            assert takes(server, 1)
    assert process.messages.count("413") == 1 and "\x1b" not in process.messages
    refused = int(re.search(r"(\d+) profiles were refused", process.messages)[1])
    assert refused + len(server.profiles) == count


def test_a_profile_with_which_a_server_fails_holds_up_no_other(archive, live, count):
    times = [profile_server.Pprof(profile.bytes).time_ns for profile in live[1]]
    oldest = sorted(time for time in set(times) if times.count(time) > 1)[:1]  # of both services
    with profile_server.serving() as server:
        server.fails_with = lambda profile: profile_server.Pprof(profile.bytes).time_ns in oldest
        bad = sum(map(server.fails_with, live[1]))
        assert 2 <= bad < count
        with pushing(archive, server.url, status=ljspy.WITH_ERRORS) as process:
            assert takes(server, count - bad)
    assert len(server.profiles) == count - bad == len(keys(server.profiles))
    assert len(keys(server.refused)) == bad and f"{bad} profiles were refused" in process.messages
    assert process.messages.count("refuses a profile: 500") == 1


def test_many_profiles_with_which_a_server_fails_are_not_tried_as_often_as_one(archive, live):
    """So a server that is back after hours gets to those that it takes. The first have the time of one recording."""
    def began(path):
        return json.loads(ljspy.run("report", path, "-f", "json").stdout)["session"]["start_unix_ns"]

    def time_of(profile):
        return profile_server.Pprof(profile.bytes).time_ns

    old, new = [path for path in recordings(archive) if began(path) in set(map(time_of, live[1]))][:2]
    kept = [(began(path), path.read_bytes()) for path in (old, new)]
    for path in recordings(archive):
        path.unlink()
    for number, (_, data) in enumerate([kept[0]] * 8 + [kept[1]] * 8, 1):
        (archive / f"{old.stem[:-6]}{number:06}.ljspy").write_bytes(data)
    bad, good = (8 * sum(time_of(profile) == time for profile in live[1]) for time, _ in kept)
    with profile_server.serving() as server:
        server.fails_with = lambda profile: time_of(profile) == kept[0][0]
        with pushing(archive, server.url, status=ljspy.WITH_ERRORS) as process:
            assert takes(server, good, seconds=60)
    assert f"{bad} profiles were refused" in process.messages and len(server.profiles) == good
    assert len(server.refused) == 5 + 2 * (bad - 1)


def test_a_server_that_fails_with_all_profiles_gets_each_once_it_is_mended(archive, count):
    with profile_server.serving() as server:
        server.status = 500
        with pushing(archive, server.url):
            assert ljspy.wait_until(lambda: len(keys(server.refused)) == 2, seconds=60)  # the oldest, and the newest
            server.status = 200
            assert takes(server, count)
    assert len(server.profiles) == count == len(keys(server.profiles))


def test_what_went_out_of_turn_is_not_sent_again_after_a_restart(archive):
    last = int(recordings(archive)[-1].stem[-6:])
    with profile_server.serving() as server:
        server.status = 500
        with pushing(archive, server.url, status=ljspy.WITH_ERRORS):
            assert ljspy.wait_until(lambda: server.refused, seconds=30)
            due = keys(server.refused)
            server.fails_with = lambda profile: server.profiles or keys([profile]) <= due
            server.status = 200
            assert takes(server, 1)
        server.fails_with = lambda profile: False
        with pushing(archive, server.url):
            assert ljspy.wait_until(lambda: int((archive / "pushed").read_text().split()[2]) >= last, seconds=30)
    assert len(server.profiles) == len(keys(server.profiles)) > 2


def test_credentials_come_from_a_file_that_may_change(archive, tmp_path, count):
    file = tmp_path / "credentials"
    file.write_text("# mine\nuser me:wrong\ntenant team-1\n")
    with profile_server.serving() as server:
        server.needs = "Basic " + base64.b64encode(b"me:se cret:x").decode()
        with pushing(archive, server.url, "--push-credentials", file) as process:
            assert ljspy.wait_until(lambda: "--push-credentials FILE" in process.said(), seconds=30)
            file.write_text("user me:se cret:x\ntenant team-1\n")
            assert takes(server, count)
            assert "cret" not in pathlib.Path(f"/proc/{process.pid}/cmdline").read_text()
            file.write_text("token 0123456789\n")
    assert process.messages.count("401") == 1 and "cret" not in process.messages
    assert all(profile.headers["X-Scope-OrgID"] == "team-1" for profile in server.profiles)
    assert not any(b"cret" in path.read_bytes() for path in archive.iterdir())


def test_each_reason_is_said_that_a_server_takes_nothing(archive, count):
    with profile_server.serving() as server:
        server.stop()
        with pushing(archive, server.url) as process:
            assert ljspy.wait_until(lambda: "wait in" in process.said(), seconds=30)
            server.needs = "Bearer 0123456789"
            server.start()
            assert ljspy.wait_until(lambda: len(server.refused) > 1, seconds=30)
            server.needs = None
            assert takes(server, count)
    assert process.messages.count("wait in") == 2 and process.messages.count("answers 401") == 1
    assert "--push-credentials FILE" in process.messages


def test_a_token_and_the_servers_wait(archive, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("token 0123456789\n")
    with profile_server.serving() as server:
        server.status, server.headers = 429, {"Retry-After": "30"}
        with pushing(archive, server.url, "--push-credentials", file):
            assert ljspy.wait_until(lambda: server.refused, seconds=30)
            time.sleep(2.5)  # by itself it tries again after a second
            assert len(server.refused) == 1
            assert server.refused[0].headers["Authorization"] == "Bearer 0123456789"


def test_what_stays_on_this_machine_goes_by_no_proxy(archive, tmp_path, count):
    file = tmp_path / "credentials"
    file.write_text("token 0123456789\n")
    with profile_server.serving() as server, profile_server.serving() as proxy:
        environment = os.environ | {name: proxy.url for name in ("http_proxy", "https_proxy", "all_proxy")}
        environment |= {name: "" for name in ("no_proxy", "NO_PROXY")}
        with pushing(archive, server.url, "--push-credentials", file, env=environment):
            assert ljspy.wait_until(lambda: len(server.profiles + proxy.profiles + proxy.refused) >= count, seconds=30)
        assert len(server.profiles) == count and not proxy.profiles + proxy.refused


def test_tls_trusts_the_given_certificates_only(archive, tmp_path, count):
    certificate = tmp_path / "server.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate, "-out", tmp_path / "ca.pem"],
                   check=True, capture_output=True)
    with open(certificate, "a", encoding="ascii") as both:
        both.write((tmp_path / "ca.pem").read_text())
    with profile_server.serving(certificate=certificate) as server:
        with pushing(archive, server.url) as process:
            assert ljspy.wait_until(lambda: "profiles wait in" in process.said(), seconds=30)
            assert "certificate" in process.said() and not server.profiles + server.refused
        with pushing(archive, server.url, "--push-ca", tmp_path / "ca.pem"):
            assert takes(server, count)


def test_what_comes_after_the_directory_was_removed_is_pushed(server, tmp_path):
    directory, before = tmp_path / "kept", len(server.profiles)
    with ljspy.busy() as target, pushing(directory, server.url, "-p", target.pid, status=ljspy.WITH_ERRORS):
        assert takes(server, before + 2)
        inode = directory.stat().st_ino
        while directory.exists() and directory.stat().st_ino == inode:
            shutil.rmtree(directory, ignore_errors=True)
        assert ljspy.wait_until(lambda: directory.exists() and (directory / "pushed").exists(), seconds=30)
        assert takes(server, len(server.profiles) + 3)
    assert len({profile.bytes for profile in server.profiles[before:]}) == len(server.profiles[before:])


def test_what_was_moved_away_is_pushed_and_what_comes_after(server, tmp_path):
    directory, before = tmp_path / "kept", len(server.profiles)
    with ljspy.busy() as target, pushing(directory, server.url, "-p", target.pid):
        assert takes(server, before + 2)
        directory.rename(tmp_path / "incident")
        assert ljspy.wait_until(lambda: (directory / "pushed").exists(), seconds=30)
        assert takes(server, len(server.profiles) + 3)
    whole = json.loads(ljspy.run("report", tmp_path / "incident", directory, "-f", "json").stdout)["figures"]
    assert total_of(server.profiles[before:])[0] == whole["samples"]


def test_nothing_is_left_where_nothing_was_recorded(tmp_path):
    """On one CPU, ljspy ends before the process that pushes has looked, or while it does."""
    for name in ("there", *(f"made{i}" for i in range(10))):
        if name == "there":
            (tmp_path / name).mkdir()
        result = ljspy.run("record", "--every", "1m", "-o", tmp_path / name, "--push", "http://127.0.0.1:1",
                           "--", "/nonexistent", through=["taskset", "-c", min(os.sched_getaffinity(0))])
        assert result.returncode == ljspy.NOTHING_PROFILED
        assert "Pushed 0 profiles" in result.stderr and "warning" not in result.stderr, result.stderr
    assert os.listdir(tmp_path) == ["there"]
    assert not os.listdir(tmp_path / "there")


def test_there_is_a_mark_from_the_first_recording_on(server, tmp_path):
    """Else what a kill leaves of it would never be pushed."""
    directory = tmp_path / "kept"
    with ljspy.busy() as target, pushing(directory, server.url, "-p", target.pid, every="1h"):
        assert ljspy.wait_until(lambda: (directory / "pushed").exists(), seconds=30)
        assert len(recordings(directory)) == 1


def test_bounds_hold_while_the_server_is_away(archive, server):
    newest = recordings(archive)[-1]
    number = int(newest.stem[-6:])
    for i in range(1, 4):
        shutil.copy(newest, archive / f"{newest.stem[:-6]}{number + i:06}.ljspy")
    server.status = 500
    try:
        with pushing(archive, server.url, "--keep", "1s", status=ljspy.WITH_ERRORS) as process:
            assert ljspy.wait_until(lambda: "deleted before they could be pushed" in process.said() or
                                    len(recordings(archive)) <= 4, seconds=30)
    finally:
        server.status = 200
    assert re.search(r"\d+ recordings were deleted before", process.messages)


def test_labels_of_a_pod(live, tmp_path):
    """The cgroup says which container a process is, and the node's logs say which pod that is."""
    container, uid = "0123456789abcdef" * 4, "11112222-3333-4444-5555-666677778888"
    log = f"web-7d9f_prod_nginx-{container}.log"
    cgroup = tmp_path / "cgroup"
    cgroup.write_text(f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-containerd-{container}.scope\n")
    directory = tmp_path / "kept"
    with profile_server.serving() as server, ljspy.busy() as target:
        setup = f"mount --bind {cgroup} /proc/{target.pid}/cgroup && mount -t tmpfs none /var/log " \
                f"&& mkdir /var/log/containers && ln -s nowhere /var/log/containers/{log}"
        if subprocess.run(ljspy.in_namespaces("-m", setup=setup, argv=["true"]), capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here")
        argv = [ljspy.LJSPY, "record", "--every", "1s", "-o", directory, "-p", target.pid, "--push", server.url]
        environment = os.environ | {"POD_NAME": "ljspy-x", "POD_NAMESPACE": "monitoring"}
        with subprocess.Popen(ljspy.in_namespaces("-m", setup=setup, argv=argv), env=environment,
                              stderr=subprocess.DEVNULL) as process:
            assert takes(server, 1)
            process.send_signal(signal.SIGINT)
    labels = server.profiles[0].labels
    assert labels.pop("instance")
    assert labels == {"__name__": "process_cpu", "service_name": "nginx", "namespace": "prod", "pod": "web-7d9f",
                      "container": "nginx", "container_id": container[:12]}


@pytest.mark.parametrize("mark", ["", "x", "x" + NOTHING_PUSHED, NOTHING_PUSHED.replace("0000000000", "9999999999"),
                                  NOTHING_PUSHED.replace(" 0", " -", 1), None])
def test_a_mark_that_is_none_does_no_harm(archive, server, mark, tmp_path):
    before = len(server.profiles)
    (archive / "pushed").unlink()
    if mark is None:
        os.mkfifo(archive / "pushed")
    else:
        (archive / "pushed").write_text(mark)
    for path in recordings(archive)[1:]:
        path.write_bytes(path.read_bytes()[:100])
    with pushing(archive, server.url) as process:
        if mark is None:
            assert ljspy.wait_until(lambda: "profiles wait in" in process.said(), seconds=30)
        else:
            assert ljspy.wait_until(lambda: (archive / "pushed").read_text() != mark, seconds=30)
    assert ("cannot be read" in process.messages) == (mark not in ("", None))
    assert len(server.profiles) == before


def test_recordings_that_are_none_are_left_out(archive, server, count, tmp_path):
    before, files = len(server.profiles), recordings(archive)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    number = int(files[-1].stem[-6:])
    names = [archive / f"{files[-1].stem[:-6]}{number + i:06}.ljspy" for i in range(1, 6)]
    names[0].write_bytes(b"")
    names[1].write_bytes(os.urandom(5000))
    os.mkfifo(names[2])
    names[3].symlink_to(secret)
    shutil.copy(files[len(files) // 2], names[4])
    with pushing(archive, server.url, status=ljspy.WITH_ERRORS) as process:
        assert takes(server, before + count + 1)
    assert process.messages.count("cannot be pushed") == 1
    assert re.search(r"2 recordings or profiles could not be read", process.messages)


@pytest.mark.parametrize("arguments, said", [
    (["--push", "http://localhost"], "--every so often"),
    (["--every", "1m", "-o", "x", "--push", "localhost:4040"], "http://"),
    (["--every", "1m", "-o", "x", "--push", "http://me:secret@localhost"], "--push-credentials"),
    (["--every", "1m", "-o", "x", "--push", "http://localhost/ingest?name=x"], "query"),
    (["--every", "1m", "-o", "x", "--push", "http://"], "no host"),
    (["--every", "1m", "-o", "x", "--push", "http://localhost", "--push-ca", "/nowhere"], "/nowhere"),
    (["--every", "1m", "-o", "x", "--push-ca", "/nowhere"], "for --push"),
    (["--every", "1m", "-o", "x", "--push", "http://localhost", "--push-credentials", "/dev/null/x"], "/dev/null/x"),
    (["--every", "1m", "-o", "x", "--push", "http://localhost", "--push-credentials", "/etc/passwd"], "line 1"),
])
def test_what_cannot_be_pushed_is_said_first(arguments, said, tmp_path):
    result = ljspy.run("record", "-p", os.getpid(), *arguments, cwd=tmp_path)
    assert result.returncode == ljspy.USAGE
    assert said in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_mark_that_cannot_be_cut_is_said_once(archive, server, count, tmp_path):
    """All is pushed, but after a restart it might be again."""
    before = len(server.profiles)
    faulty = [ljspy.helper("faulty"), "truncate", 1, 1_000_000_000, errno.EIO, tmp_path / "counts"]
    with pushing(archive, server.url, through=faulty) as process:
        assert takes(server, before + count)
        assert ljspy.wait_until(lambda: "may be pushed twice" in process.said())
    assert len(server.profiles) == before + count
    assert process.messages.count("after a restart, profiles may be pushed twice") == 1
    assert int((tmp_path / "counts").read_text().split()[1]) > 0
