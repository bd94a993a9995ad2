#!/bin/sh
# SPDX-License-Identifier: MIT
# The only program of the emulated machine: runs the tests' commands, and turns the machine off.
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs devtmpfs /dev
mkdir -p /tmp
echo "kernel $(uname -rm)"
. /commands
echo "all done"
poweroff -f
