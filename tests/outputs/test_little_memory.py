# SPDX-License-Identifier: MIT
"""Where ljspy lacks memory, it says that, and not that the target or the output is at fault."""

import pytest

import ljspy

pytestmark = pytest.mark.usefixtures("built")

LIMITS_MIB = range(32, 64, 2)


COMMANDS = (["heap"], ["memory"], ["record", "-d", "200ms", "-f", "text", "-o", "-"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_it_is_told_as_what_it_is(command, tmp_path):
    """How much suffices depends on the machine: from too little for anything to enough."""
    told = []
    with ljspy.busy() as target:
        for limit in LIMITS_MIB:
            done = ljspy.run(*command, "-p", target.pid, through=["prlimit", f"--as={limit << 20}"], cwd=tmp_path)
            told.append(done.stderr)
            if done.returncode == ljspy.OK:
                break
    print("\n".join(told))
    for wrong in ("closed meanwhile", "may not be traced", "Cannot allocate memory"):
        assert not any(wrong in text for text in told)
    if not any("not enough memory for ljspy" in text for text in told):
        pytest.skip("nothing between too little to begin and enough")
