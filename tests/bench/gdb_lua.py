# SPDX-License-Identifier: MIT
"""Sample Lua stacks with gdb instead: attach, walk the Lua stack, detach, repeat.

gdb runs this; its variable `arguments` is (pid, address of the global_State, seconds,
rate). For LuaJIT 2.1 with GC64 as in Debian 12. Writes JSON: how long each look
held the process, and the last stack.
"""

import json
import struct
import time

import gdb

pid, state, seconds, rate = arguments  # noqa: F821

# Offsets of lj_obj.h.
GCT, THREAD_GCT = 9, 6
THREAD_GLREF, THREAD_BASE, THREAD_STACK = 0x10, 0x20, 0x38
FUNCTION_FFID, FUNCTION_PC = 10, 0x20
PROTO_SIZE, PROTO_CHUNKNAME, PROTO_FIRSTLINE = 0x68, 0x40, 0x48
STRING_LENGTH, STRING_TEXT = 0x14, 0x18
POINTER = (1 << 47) - 1
FRAME_LUA, FRAME_DEPTH_MAX = 0, 200


def read(form, address):
    return struct.unpack("<" + form, gdb.selected_inferior().read_memory(address, struct.calcsize("<" + form)).tobytes())[0]


def find_thread():
    """The address of a coroutine that the global_State refers to."""
    for offset in range(0, 0x400, 8):
        candidate = read("Q", state + offset)
        try:
            if read("B", candidate + GCT) == THREAD_GCT and read("Q", candidate + THREAD_GLREF) == state:
                return candidate
        except gdb.MemoryError:
            pass
    raise SystemExit("no coroutine")


def name(function):
    if read("B", function + FUNCTION_FFID):
        return "builtin"
    proto = read("Q", function + FUNCTION_PC) - PROTO_SIZE
    string = read("Q", proto + PROTO_CHUNKNAME)
    text = gdb.selected_inferior().read_memory(string + STRING_TEXT, read("I", string + STRING_LENGTH)).tobytes()
    return f"{text.decode(errors='replace')}:{read('i', proto + PROTO_FIRSTLINE)}"


def backtrace(thread):
    frames, frame, bottom = [], read("Q", thread + THREAD_BASE) - 8, read("Q", thread + THREAD_STACK)
    while frame > bottom + 8 and len(frames) < FRAME_DEPTH_MAX:
        frames.append(name(read("Q", frame - 8) & POINTER))
        link = read("Q", frame)
        if link & 3 == FRAME_LUA:
            frame -= 8 * (2 + read("B", link - 3))  # operand A of the call
        else:
            frame -= link & ~7
    return frames


held, frames, thread = [], [], None
begin = time.monotonic()
while time.monotonic() < begin + seconds:
    due = begin + (len(held) + 1) / rate
    if due > time.monotonic():
        time.sleep(due - time.monotonic())
    stopped = time.monotonic()
    gdb.execute(f"attach {pid}", to_string=True)
    thread = thread or find_thread()
    frames = backtrace(thread)
    gdb.execute("detach", to_string=True)
    held.append((time.monotonic() - stopped) * 1e6)
print(json.dumps({"held_us": held, "frames": frames}))
