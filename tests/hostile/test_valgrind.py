"""What valgrind says of a real run: memory, and files left open."""

import re
import shutil

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

VALGRIND = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
            "--errors-for-leak-kinds=definite,indirect,possible", "--track-fds=yes", "--error-exitcode=99",
            "--child-silent-after-fork=yes")
# libunwind has a pipe that it asks about addresses, for as long as the process lives.
MAY_STAY_OPEN = re.compile(r"inherited from parent|libunwind")


@pytest.mark.parametrize("command", [("record", "-d", "1s", "-o"), ("dump",), ("info",)], ids=lambda c: c[0])
def test_memory_and_files(command, tmp_path):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    output = [tmp_path / "profile.svg"] if command[-1] == "-o" else []
    with ljspy.program("luajit", "coroutines", "off") as target:
        result = ljspy.run(*command, *output, "-p", target.pid, through=VALGRIND, timeout=120)
    assert result.returncode == ljspy.OK, result.stderr
    assert "== Invalid" not in result.stderr and "== Conditional jump" not in result.stderr
    blocks = re.findall(r"Open [^\n]*\n(?:==\d+== {4}[^\n]*\n)*", result.stderr)
    assert blocks, "valgrind tells of files"
    for block in blocks:
        assert MAY_STAY_OPEN.search(block), block
