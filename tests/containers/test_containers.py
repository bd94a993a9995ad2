# SPDX-License-Identifier: MIT
"""Profile containers from the host and from inside.

A container is a process with its own namespaces, its own root and fewer capabilities.
unshare, mount and setpriv make the same.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import ljspy
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a container of namespaces"),
]

RECORD = ["record", "-d", "1s", "-r", ljspy.HIGH_RATE, "-f", "folded", "-o", "-", "--native", "all"]
SOMEBODY = 1234


LIBRARY = """
static __attribute__((noinline)) int hidden_work(int count)
{
	int sum = 0;
	for (int i = 0; i < count; i++)
		__asm__ volatile("" : "+r"(sum));
	return sum;
}

int work(int count)
{
	return hidden_work(count) + 1;
}
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A library with a function whose name is in the file but not in mapped memory."""
    path = tmp_path_factory.mktemp("library") / "libwork.so"
    argv = ["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-x", "c", "-", "-o", path]
    subprocess.run(argv, input=LIBRARY, text=True, check=True)
    return path


def calling(library):
    """Lua code for a program that works in the library."""
    return f"""
        jit.off()
        ffi.cdef("int work(int);")
        local library = ffi.load("{library}")
        collectgarbage("stop")
        local function call() return library.work(1e6) + 1 end
        io.write("ready\\n") io.flush()
        while true do local result = call() end
    """


def known(result):
    """The samples with a whole stack. Threads that slept when ljspy looked have none."""
    samples = stacks.parse_folded(result.stdout)
    return [sample for sample in samples if not any(stacks.is_lost(frame) for frame in sample.frames)]


def is_right(result):
    assert result.returncode == ljspy.OK, result.stderr
    samples = known(result)
    assert samples
    assert ljspy.weight_of(samples, ljspy.has_frame("call")) > 0.9 * ljspy.weight_of(samples)
    assert "hidden_work [libwork.so" in result.stdout


def inside(pid):
    """The process that unshare started."""
    (child,) = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.fixture(params=["tmpfs", "overlay"])
def container(request, tmp_path, library):
    """A program and a library at paths that do not exist outside: in a private mount, or
    in an overlay as root. Device and inode in /proc/PID/maps may then differ from
    those of the path."""
    program = ljspy.luajit("luajit").resolve()
    if request.param == "tmpfs":
        setup = f"mount -t tmpfs none /mnt; cp '{program}' '{library}' /mnt"
        prefix = []
    else:
        setup = f"""
            cp '{library}' /dev/shm/libwork-{os.getpid()}.so
            mount -t tmpfs none '{tmp_path}'
            mkdir '{tmp_path}/lower' '{tmp_path}/upper' '{tmp_path}/work' '{tmp_path}/root'
            mkdir '{tmp_path}/lower/mnt'
            cp '{program}' '{tmp_path}/lower/mnt'
            mv /dev/shm/libwork-{os.getpid()}.so '{tmp_path}/lower/mnt/libwork.so'
            mount -t overlay -o 'lowerdir={tmp_path}/lower:/,upperdir={tmp_path}/upper,workdir={tmp_path}/work' \
                none '{tmp_path}/root'
        """
        prefix = ["chroot", tmp_path / "root"]
    through = ljspy.in_namespaces(*ljspy.ALONE, setup=setup, argv=prefix)
    with ljspy.busy(calling("/mnt/libwork.so"), program=f"/mnt/{program.name}", through=through) as target:
        yield inside(target.pid)


def test_from_the_host(container):
    is_right(ljspy.run(*RECORD, "-p", container))


def test_pid_inside_is_told(container):
    result = ljspy.run("info", "-p", container)
    assert result.returncode == ljspy.OK, result.stderr
    assert f"Process {container} (1 in its own pid namespace)" in result.stdout


def test_target_with_a_root_of_its_own(tmp_path, library):
    """The target shares ljspy's mount namespace: paths in /proc/PID/maps begin at ljspy's root."""
    root = tmp_path / "root"
    files = [ljspy.luajit("luajit").resolve(), library]
    linked = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    files += [pathlib.Path(path) for path in set(re.findall(r"\s(/lib\S+) \(", linked))]
    for file in files:
        copy = root / str(file).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    with ljspy.busy(calling(library), program=files[0], through=["chroot", root]) as target:
        is_right(ljspy.run(*RECORD, "-p", target.pid))


@pytest.mark.parametrize("fate", ["deleted", "upgraded"])
@pytest.mark.parametrize("what", ["program", "library"])
def test_file_that_is_not_there_any_more(tmp_path, library, what, fate):
    program, other = tmp_path / "luajit", tmp_path / "other"
    copy = tmp_path / "libwork.so"
    shutil.copy(library, copy)
    shutil.copy(ljspy.luajit("luajit").resolve(), program)
    shutil.copy(ljspy.luajit("luajit2").resolve(), other)
    file = program if what == "program" else copy
    with ljspy.busy(calling(copy), program=program) as target:
        if fate == "deleted":
            file.unlink()
        else:
            other.rename(file)
        is_right(ljspy.run(*RECORD, "-p", target.pid))


@pytest.mark.parametrize("user", [ljspy.NOBODY, SOMEBODY], ids=["nobody", "somebody"])
def test_root_takes_on_the_user_of_its_target(user):
    with ljspy.busy(user=user) as target:
        result = ljspy.run(*RECORD, "-p", target.pid, through=ljspy.WITHOUT_CAPABILITY)
    assert result.returncode == ljspy.OK, result.stderr
    assert "heavy" in result.stdout


def starting(user, count=1):
    """Shell commands that start LuaJIT programs."""
    argv = " ".join([*ljspy.becoming(user), str(ljspy.luajit("luajit"))])
    return f"for i in $(seq {count}); do {argv} -e 'while true do end' & done; sleep 1"


def run_inside(*arguments, setup, user=None):
    """Run ljspy as root without the capability, or as USER, in a container after SETUP."""
    become = ljspy.becoming(user) if user is not None else ljspy.WITHOUT_CAPABILITY
    through = ljspy.in_namespaces(*ljspy.ALONE, setup=setup, argv=become)
    return ljspy.run(*arguments, through=through, cwd="/")


@pytest.mark.parametrize("user", [None, ljspy.NOBODY], ids=["root without capability", "nobody"])
def test_the_only_one_is_taken_at_once(user):
    result = run_inside(*RECORD, setup=starting(ljspy.NOBODY), user=user)
    assert result.returncode == ljspy.OK, result.stderr
    assert "main chunk" in result.stdout


@pytest.mark.parametrize("user", [None, ljspy.NOBODY], ids=["root without capability", "nobody"])
def test_several_are_listed(user):
    result = run_inside("record", setup=starting(ljspy.NOBODY, count=2), user=user)
    assert result.returncode == ljspy.USAGE
    lines = [line for line in result.stderr.splitlines() if " -p " in line]
    assert len(lines) == 2, result.stderr
    for line in lines:
        assert re.search(r"-p \d+ +nobody +\d+ % CPU +LuaJIT 2\.1 GC64 .*luajit -e while true do end$", line)


def test_list_tells_the_pid_inside():
    """ljspy is outside the targets' pid namespaces, with its own mount of /proc."""
    launch = f"unshare -p -f --kill-child '{ljspy.luajit('luajit')}' -e 'while true do end' &"
    through = ljspy.in_namespaces(*ljspy.ALONE, setup=f"{launch} {launch} sleep 1")
    result = ljspy.run("record", through=through, cwd="/")
    assert result.returncode == ljspy.USAGE
    assert result.stderr.count("(1 in its container)") == 2, result.stderr


def test_workers_of_a_tree_that_changed_their_user(tmp_path):
    """The master stays root, so ljspy cannot trace it at the same time."""
    master = f"""
        local ffi = require("ffi")
        ffi.cdef("int fork(void); int setresuid(int, int, int); int setresgid(int, int, int);"
            .. "int setgroups(size_t, const int *); int prctl(int, long, long, long, long); int pause(void);")
        for i = 1, 2 do
            if ffi.C.fork() == 0 then
                ffi.C.setgroups(0, nil) ffi.C.setresgid({SOMEBODY}, {SOMEBODY}, {SOMEBODY})
                ffi.C.setresuid({SOMEBODY}, {SOMEBODY}, {SOMEBODY}) ffi.C.prctl(4, 1, 0, 0, 0)
                local function heavy() for i = 1, 1e5 do end end
                while true do heavy() end
            end
        end
        io.write("ready\\n") io.flush() ffi.C.pause()
    """
    with ljspy.Target([ljspy.luajit("luajit"), "-e", master]).wait_ready() as target:
        children = pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
        try:
            result = ljspy.run(*RECORD, "--tree", target.pid, through=ljspy.WITHOUT_CAPABILITY)
        finally:
            for child in children:
                os.kill(int(child), signal.SIGKILL)
    assert result.returncode == ljspy.WITH_ERRORS
    assert f"Process {target.pid} (luajit) belongs to user root" in result.stderr
    samples = known(result)
    assert samples
    assert ljspy.weight_of(samples, ljspy.has_frame("heavy")) > 0.9 * ljspy.weight_of(samples)
