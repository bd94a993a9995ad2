#!/bin/sh
# SPDX-License-Identifier: MIT
# The only program of the emulated machine: looks at programs' heaps, and turns the machine off.
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs devtmpfs /dev
mkdir -p /tmp

# An emulated thread does not always stop in time.
account() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		show_heap account "$1" "$pause_us" 2>/dev/null && return
	done
}

look() {
	run-luajit "$@" >/tmp/said &
	target=$!
	until grep -q ready /tmp/said; do sleep 0.2; done
	for _ in 1 2 3; do
		echo "looked $1 $(account $target)"
	done
	echo "words $(ljspy heap --max-pause 5s -p $target | grep '^Read')"
	kill -9 $target
	wait $target
}

echo "kernel $(uname -r)"
pause_us=5000000
look busy_cache.lua 40
look growing.lua 40
look busy.lua
echo "all looked at"
poweroff -f
