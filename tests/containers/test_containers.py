"""From the host into a container, and from within one.

A container is a process in namespaces of its own, with a root of its own, and
with fewer capabilities: all of which unshare, mount and setpriv make as well.
"""

import os
import pathlib
import re
import shutil
import signal

import pytest

import ljspy
import stacks

pytestmark = [
    pytest.mark.usefixtures("built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a container of namespaces"),
]

RECORD = ["record", "-d", "1s", "-r", ljspy.HIGH_RATE, "-f", "folded", "-o", "-", "--native", "all"]
SOMEBODY = 1234


def is_right(result):
    """It shows the program, and names that only its file has."""
    assert result.returncode == ljspy.OK, result.stderr
    samples = stacks.parse_folded(result.stdout)
    assert ljspy.weight_of(samples, ljspy.has_frame("heavy")) > 0.9 * ljspy.weight_of(samples)
    assert "lua_cpcall [luajit" in result.stdout


def inside(pid):
    """The process that unshare started."""
    (child,) = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.fixture(params=["tmpfs", "overlay"])
def container(request, tmp_path):
    """LuaJIT at a path that leads nowhere outside: in a mount of its own, or in
    an overlay as root. Device and inode in /proc/PID/maps are then not those of
    the path."""
    program = ljspy.luajit("luajit").resolve()
    if request.param == "tmpfs":
        setup = f"mount -t tmpfs none /mnt; cp '{program}' /mnt/luajit"
        prefix = []
    else:
        setup = f"""
            mount -t tmpfs none '{tmp_path}'
            mkdir '{tmp_path}/upper' '{tmp_path}/work' '{tmp_path}/root'
            mount -t overlay -o lowerdir=/,upperdir='{tmp_path}/upper',workdir='{tmp_path}/work' none '{tmp_path}/root'
            cp '{program}' '{tmp_path}/root/mnt/luajit'
        """
        prefix = ["chroot", tmp_path / "root"]
    through = ljspy.in_namespaces(*ljspy.ALONE, setup=setup, argv=prefix)
    with ljspy.busy(program="/mnt/luajit", through=through) as target:
        yield inside(target.pid)


def test_from_the_host(container):
    is_right(ljspy.run(*RECORD, "-p", container))


def test_pid_inside_is_told(container):
    result = ljspy.run("info", "-p", container)
    assert result.returncode == ljspy.OK, result.stderr
    assert f"Process {container} (1 in its own pid namespace)" in result.stdout


@pytest.mark.parametrize("fate", ["deleted", "upgraded"])
def test_file_that_is_not_there_any_more(tmp_path, fate):
    program, other = tmp_path / "luajit", tmp_path / "other"
    shutil.copy(ljspy.luajit("luajit").resolve(), program)
    shutil.copy(ljspy.luajit("luajit2").resolve(), other)
    with ljspy.busy(program=program) as target:
        if fate == "deleted":
            program.unlink()
        else:
            other.rename(program)
        is_right(ljspy.run(*RECORD, "-p", target.pid))


def test_library_that_was_upgraded(tmp_path):
    """A mapping leads to it still."""
    directory = ljspy.PACKAGES / "libluajit-5.1-2/usr/lib/x86_64-linux-gnu"
    library, other = tmp_path / "libm.so.6", tmp_path / "other"
    found = re.search(r"/\S*/libm\.so\.6", pathlib.Path("/proc/self/maps").read_text() + "/lib/x86_64-linux-gnu/libm.so.6")
    shutil.copy(pathlib.Path(found[0]).resolve(), library)
    shutil.copy(next(directory.glob("libluajit-5.1.so.2.*")), other)
    code = 'ffi.cdef("double sqrt(double); double lgamma(double);")'
    preload = ["env", f"LD_PRELOAD={library}"]
    source = code + f'local m = ffi.load("{library}") jit.off() function heavy() for i = 1, 1e5 do m.lgamma(i + 0.5) end end'
    source += ' io.write("ready\\n") io.flush() while true do heavy() end'
    argv = [*preload, ljspy.luajit("luajit"), "-e", f'local ffi = require("ffi") {source}']
    with ljspy.Target(argv, cwd="/").wait_ready() as target:
        other.rename(library)
        result = ljspy.run(*RECORD, "-p", target.pid)
    assert result.returncode == ljspy.OK, result.stderr
    assert re.search(r"lgamma\S* \[libm", result.stdout)


@pytest.mark.parametrize("user", [ljspy.NOBODY, SOMEBODY], ids=["nobody", "somebody"])
def test_root_takes_on_the_user_of_its_target(user):
    with ljspy.busy(user=user) as target:
        is_right(ljspy.run(*RECORD, "-p", target.pid, through=ljspy.WITHOUT_CAPABILITY))


def starting(user, count=1):
    """Shell commands that start LuaJIT programs."""
    argv = " ".join([*ljspy.becoming(user), str(ljspy.luajit("luajit"))])
    return f"for i in $(seq {count}); do {argv} -e 'while true do end' & done; sleep 1"


def run_inside(*arguments, setup, user=None):
    """ljspy as root without the capability, or as USER, in a container where SETUP ran."""
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
    """Seen from outside of one pid namespace, but in a mount of /proc of one's own."""
    launch = f"unshare -p -f --kill-child '{ljspy.luajit('luajit')}' -e 'while true do end' &"
    through = ljspy.in_namespaces(*ljspy.ALONE, setup=f"{launch} {launch} sleep 1")
    result = ljspy.run("record", through=through, cwd="/")
    assert result.returncode == ljspy.USAGE
    assert result.stderr.count("(1 in its container)") == 2, result.stderr


def test_workers_of_a_tree_that_changed_their_user(tmp_path):
    """The master stays root, and cannot be had at the same time."""
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
    samples = stacks.parse_folded(result.stdout)
    assert ljspy.weight_of(samples, ljspy.has_frame("heavy")) > 0.9 * ljspy.weight_of(samples)
