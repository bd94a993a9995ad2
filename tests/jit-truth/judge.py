# SPDX-License-Identifier: MIT
"""How right are the frames that ljspy sees in compiled code?

judge.py TRUTH SAMPLES [MISSES [MACHINE]]: compares each sample in the machine code of a trace with what
the instrumented LuaJIT says of that piece of code.
"""

import bisect
import sys
from collections import Counter

TRACE_SPACE = 16  # bytes that BC_JLOOP saves below a C frame
# arm64: where the VM's frame pointer leads, from its C frame (since September 2021, and before).
FRAME_RECORDS = 192, 0


class Trace:
    def __init__(self, position, number, address, size, spadjust):
        self.position = position  # in the file
        self.number, self.address, self.size, self.spadjust = number, address, size, spadjust
        self.offsets, self.frames, self.refs = [], [], []

    def frames_at(self, pc):
        return self.frames[bisect.bisect_right(self.offsets, pc - self.address) - 1]


class Truth:
    """All compiled traces, the latest first."""

    def __init__(self, path, machine):
        self.traces, self.machine = [], machine
        position = 0
        for line in open(path):
            position += len(line)
            kind, *rest = line.split()
            if kind == "T":
                number, address, size, spadjust = rest
                self.traces.append(Trace(position, int(number), int(address, 16), int(size, 16), int(spadjust)))
            elif kind == "C":
                trace = self.traces[-1]
                trace.offsets.append(int(rest[0], 16))
                trace.refs.append(int(rest[1]))
                trace.frames.append([tuple(map(int, f.split(":"))) for f in rest[2:] if f != "-"])
        self.traces.reverse()

    def find(self, pc, length):
        """The latest trace that contains pc, as of when the file had this length."""
        for trace in self.traces:
            if trace.position <= length and trace.address <= pc < trace.address + trace.size:
                return trace
        return None

    def place(self, registers, words):
        """The trace that the sample is in, or that called the code it is in, and the pc in that trace."""
        length, rip, rsp, cframe, running = registers
        trace = self.find(rip, length)
        if trace:
            return trace, rip
        if self.machine == "arm64":
            return self.calling(registers, words)
        for i, word in enumerate(words):
            trace = self.find(word - 1, length)
            # A return address from an earlier call of another trace may still be on the stack.
            if not trace or (running and trace.number != running):
                continue
            if rsp + 8 * (i + 1) + TRACE_SPACE + trace.spadjust == cframe:
                return trace, word - 1
        return None, None


    def calling(self, registers, words):
        """On arm64, what a trace calls saves the VM's frame pointer, and next to it its return address."""
        length, _, rsp, cframe, _ = registers
        found = set()
        for i, word in enumerate(words[:-1]):
            trace = self.find(words[i + 1] - 1, length)
            if trace and word in (cframe + at for at in FRAME_RECORDS):
                if rsp + 8 * i < cframe - TRACE_SPACE - trace.spadjust:
                    found.add((trace, words[i + 1] - 1))
        # Records of older calls may lie there, too.
        return found.pop() if len(found) == 1 else (None, None)


class Sample:
    def __init__(self, line):
        left, right = line.rstrip("\n").split("\t")
        numbers = [int(n, 16) for n in left.split()]
        self.registers, self.words = numbers[:5], numbers[5:]
        self.frames = []
        for frame in right.split():
            kind, firstline, line, certainty = frame.split(":")
            self.frames.append((kind, int(firstline), int(line), int(certainty)))


EXACT, NEAREST, FUNCTION = 0, 1, 2


def judge(truth, sample):
    """None if the sample is not in compiled code, else a set of verdicts."""
    trace, pc = truth.place(sample.registers, sample.words)
    if not trace:
        return None
    want = trace.frames_at(pc)
    # Compare Lua frames only, not native frames above them.
    got = [f for f in sample.frames if f[0] in "LjX"]
    verdicts = set()
    if not got or not want:
        return {"nothing"}
    if any(f[0] == "X" for f in got):
        verdicts.add("lost")
        return verdicts
    leaf, callers = got[0], got[1 : len(want)]
    if [f[1:3] for f in callers] == want[1:]:
        verdicts.add("callers")
    # The trace's start frame is the outermost compiled one. From there on, frames marked as
    # exact must be right.
    compiled = [f for f in got if f[0] == "j"]
    for said, true in zip(reversed(compiled), reversed(want)):
        if said[3] == EXACT and said[1:3] != true:
            verdicts.add("wrong leaf said exact" if said is leaf else "wrong caller said exact")
    if leaf[1] == want[0][0]:
        verdicts.add("function")
        if leaf[2] == want[0][1]:
            verdicts.add("line")
    if leaf[3] != EXACT:
        verdicts.add("marked")
    return verdicts


def tally(truth_path, samples_path, machine="x86_64"):
    truth = Truth(truth_path, machine)
    count, counts, misses = 0, Counter(), Counter()
    for line in open(samples_path):
        sample = Sample(line)
        verdicts = judge(truth, sample)
        if verdicts is None:
            continue
        count += 1
        counts.update(verdicts)
        if not {"callers", "line"} <= verdicts or any("wrong" in verdict for verdict in verdicts):
            trace, pc = truth.place(sample.registers, sample.words)
            got = " ".join("%s:%d:%d:%d" % f for f in sample.frames[:6])
            want = " ".join("%d:%d" % f for f in trace.frames_at(pc))
            misses[f"trace {trace.number} +{pc - trace.address:x}: {want} | {got}"] += 1
    return count, counts, misses


COLUMNS = "callers", "function", "line", "marked", "lost", "wrong leaf said exact", "wrong caller said exact"


def main():
    count, counts, misses = tally(*sys.argv[1:3], *sys.argv[4:])
    print(count, " ".join(f"{column} {100 * counts[column] / max(count, 1):.1f}" for column in COLUMNS))
    for miss, n in misses.most_common(int(sys.argv[3]) if len(sys.argv) > 3 else 0):
        print("   ", n, miss)


if __name__ == "__main__":
    main()
