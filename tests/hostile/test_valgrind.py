# SPDX-License-Identifier: MIT
"""valgrind finds no memory error, leak or open file in a real run."""

import re
import shutil

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

VALGRIND = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible", "--track-fds=yes")
# libunwind keeps a pipe, by which it validates addresses, until the process ends.
MAY_STAY_OPEN = re.compile(r"inherited from parent|libunwind")
OPEN = re.compile(r"Open [^\n]*\n(?:==\d+== {4}[^\n]*\n)*")
# A process that a thread forked keeps what the C library allocated for the thread.
OF_THREADS = """{
   threads that a fork has left behind
   Memcheck:Leak
   match-leak-kinds: possible
   fun:calloc
   ...
   fun:_dl_allocate_tls
}
"""


@pytest.mark.parametrize("command", [("record", "-d", "200ms", "-o"), ("dump",), ("info",)], ids=lambda c: c[0])
def test_memory_and_files(command, tmp_path):
    """valgrind checks each of ljspy's processes."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    output = [tmp_path / "profile.svg"] if command[-1] == "-o" else []
    suppressions = tmp_path / "suppressions"
    suppressions.write_text(OF_THREADS)
    through = (*VALGRIND, f"--suppressions={suppressions}", f"--log-file={tmp_path}/%p.valgrind")
    with ljspy.program("luajit", "coroutines", "off") as target:
        result = ljspy.run(*command, *output, "-p", target.pid, through=through)
    assert result.returncode == ljspy.OK, result.stderr
    logs = [log.read_text() for log in tmp_path.glob("*.valgrind")]
    # The process that reads symbols is killed, or ends at once without freeing anything.
    logs = [log for log in logs if not any("symbol_server.c" in block for block in OPEN.findall(log))]
    assert len(logs) >= 3, "front, guard and engine"
    for log in logs:
        assert not re.search(r"== (Invalid|Conditional jump|Use of uninit)|lost in loss record", log), log
    blocks = [block for log in logs for block in OPEN.findall(log)]
    assert blocks, "valgrind tells of files"
    for block in blocks:
        assert MAY_STAY_OPEN.search(block), block
