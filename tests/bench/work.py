"""A fixed amount of work, begun when a line comes: python3 work.py AMOUNT"""

import sys


def work(count):
    total = 0
    for i in range(count):
        total = (total + i * 3) % 1000003
    return total


sys.stdin.readline()
print(sum(work(1000) for _ in range(int(sys.argv[1]))))
print("done", flush=True)
