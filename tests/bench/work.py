# SPDX-License-Identifier: MIT
"""Work in equal pieces of a few tenths of a millisecond, once a line has come. Writes a
byte after each."""

import os
import sys


def work(count):
    total = 0
    for i in range(count):
        total = (total + i * 3) % 1000003
    return total


sys.stdin.readline()
while True:
    work(10000)
    os.write(1, b".")
