#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Build the packages of ljspy in Debian's releases, each in a root of its own.

everywhere.py TARBALL WORK PACKAGE...

TARBALL is what make tarball makes, PACKAGE what building needs. mmdebstrap lays the roots in
WORK, so this takes root. In each release

- the package is built of the sources alone, in two folders, and must be the same, byte by byte;
- it is installed, and records LuaJIT.

Besides, trixie compiles every file with musl, bookworm builds the package, the static binary and the image's files for arm64
by its cross compiler, which record LuaJIT in an emulated machine (arm64_machine.py), and this machine's rpmbuild builds
the spec. Exits with 1 if something of it fails.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/layouts")]

import arm64_machine  # noqa: E402, pylint: disable=wrong-import-position
import packages  # noqa: E402, pylint: disable=wrong-import-position

RELEASES = ("bullseye", "bookworm", "trixie", "sid")
TOOLS = ["build-essential", "debhelper", "luajit", "musl-tools"]
FOLDERS = ("build/a", "build/somewhere/else")
CROSS = "CC=aarch64-linux-gnu-gcc PKG_CONFIG=aarch64-linux-gnu-pkg-config WARNINGS="
CROSS_ROOT = "bookworm-arm64"
CROSS_TOOLS = ["build-essential", "crossbuild-essential-arm64", "debhelper", "libbz2-dev:arm64", "liblzma-dev:arm64"]
# Libraries are the other machine's; these run on this one.
NATIVE = {"gcc", "make", "protobuf-c-compiler", "uthash-dev"}
RECORDED = 'local t = os.clock() while os.clock() - t < 2 do string.rep("x", 100) end'
# The headers of the kernel and of libraries, without those of glibc.
HEADERS = """
    linux asm-generic capstone elfutils libiberty libunwind.h libunwind-common.h libunwind-dynamic.h libunwind-x86_64.h
    libelf.h gelf.h dwarf.h ncurses.h curses.h ncurses_dll.h unctrl.h jansson.h jansson_config.h protobuf-c zstd.h zlib.h
    zstd_errors.h zconf.h uthash.h curl microhttpd.h
"""
MUSL = f"""
mkdir -p /tmp/headers && cd /tmp/headers
for header in {' '.join(HEADERS.split())}; do
    for folder in /usr/include /usr/include/x86_64-linux-gnu; do
        if [ -e "$folder/$header" ]; then ln -sfn "$folder/$header" "$header"; fi
    done
done
ln -sfn /usr/include/x86_64-linux-gnu/asm asm
cd /{FOLDERS[0]}/ljspy
by_musl() {{
    make CC="musl-gcc -isystem /tmp/headers" WARNINGS=-Werror=implicit-function-declaration package_cflags= "$@"
}}
by_musl -j"$(nproc)" $(by_musl -s --eval='objects:;@echo $(own_objects) $(other_objects)' objects)
"""


def lay(root, suite, names, *options):
    """A root of the release with these packages, if there is none yet."""
    def make(work):
        command = ["mmdebstrap", "--mode=root", "--variant=apt", "--aptopt=Acquire::Check-Valid-Until \"false\"",
                   f"--include={','.join(names)}", *options, suite, work / "root", packages.mirror()]
        subprocess.run(["unshare", "-m", *command], check=True)
        return work / "root"

    return packages.made_once(root, make)


def inside(root, script):
    """Run a script in the root, with this machine's /proc and /dev."""
    here = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" sh -euc "$1"'
    subprocess.run(["unshare", "-m", "sh", "-c", here, root, script], check=True)


def unpack(tarball, root):
    for folder in FOLDERS:
        shutil.rmtree(root / folder, ignore_errors=True)
        (root / folder / "ljspy").mkdir(parents=True)
        subprocess.run(["tar", "-xzf", tarball, "-C", root / folder / "ljspy", "--strip-components=1"], check=True)


def build(root, folder, *options):
    """The packages that come of the sources in the folder."""
    inside(root, f"cd /{folder}/ljspy && cp -R contrib/debian debian && dpkg-buildpackage -us -uc -b {' '.join(options)}")
    return {path.name: path for path in sorted((root / folder).glob("*.deb"))}


def build_twice(root):
    first, second = (build(root, folder) for folder in FOLDERS)
    if len(first) != 2 or {name: path.read_bytes() for name, path in first.items()} != \
            {name: path.read_bytes() for name, path in second.items()}:
        raise ValueError(f"{sorted(first)} differ from folder to folder")
    return first


def release(tarball, work, names, suite):
    root = lay(work / suite, suite, [*names, *TOOLS])
    unpack(tarball, root)
    built = build_twice(root)
    package = next(path for name, path in built.items() if name.startswith("ljspy_"))
    inside(root, f"dpkg -i /{package.relative_to(root)} && ljspy --version && "
                 f"ljspy record -d 1s -f folded -o /recorded -- luajit -e '{RECORDED}'")
    if "main chunk" not in (root / "recorded").read_text():
        raise ValueError("nothing was recorded")


def cross(tarball, work, names):
    foreign = [name if name in NATIVE else f"{name}:arm64" for name in names]
    root = lay(work / CROSS_ROOT, "bookworm", [*foreign, *CROSS_TOOLS], "--architectures=amd64,arm64")
    unpack(tarball, root)
    built = build(root, FOLDERS[0], "-aarm64")
    package = next(path for name, path in built.items() if re.fullmatch(r"ljspy_.*_arm64\.deb", name))
    inside(root, f"cd /{FOLDERS[0]}/ljspy && make -j$(nproc) static {CROSS} && rm -rf /out && make install DESTDIR=/out {CROSS}")
    static = root / FOLDERS[0] / "ljspy/build/static-aarch64-linux-gnu-gcc/ljspy"
    if faults := arm64_machine.run(work / "arm64-machine", package, static, root / "out"):
        raise ValueError("; ".join(faults))


def rpm(tarball, work):
    command = ["rpmbuild", "-tb", "--nodeps", "--define", f"_topdir {work / 'rpm'}", tarball]
    subprocess.run(command, check=True)


def main(tarball, work, *names):
    tarball, work = pathlib.Path(tarball).resolve(), pathlib.Path(work).resolve()
    steps = {suite: lambda suite=suite: release(tarball, work, names, suite) for suite in RELEASES}
    steps["musl"] = lambda: inside(work / "trixie", f"rm -rf /{FOLDERS[0]}/ljspy/build; {MUSL}")
    steps["arm64"] = lambda: cross(tarball, work, names)
    steps["rpm"] = lambda: rpm(tarball, work)
    failed = []
    for name, step in steps.items():
        try:
            step()
        except (subprocess.CalledProcessError, ValueError, OSError) as reason:
            failed.append(name)
            print(f"{name}: {reason}", flush=True)
        else:
            print(f"{name}: built", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
