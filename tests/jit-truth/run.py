"""make jit-truth: how right are frames in compiled code?

For each build of LuaJIT (from Debian's source packages, instrumented by
lj_truth.h) and each program, prints how many of the samples in compiled code
have the right callers, leaf function and line, and how many are marked as
approximate. Fails if more than stray samples are wrong without being marked.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import judge

HERE = Path(__file__).resolve().parent
SECONDS, RATE = 3, 500
WRONG_MAX = 1.0  # percent
PROGRAMS = ["nbody", "bank", "json", "heapsort", "mandelbrot", "strings"]
# Snapshots tell where their code begins since March 2021.
BUILDS = {
    "2022, GC64": ("luajit_2.1.0~beta3+git20220320+dfsg.orig.tar.gz", ""),
    "2022, GC32": ("luajit_2.1.0~beta3+git20220320+dfsg.orig.tar.gz", "-DLUAJIT_DISABLE_GC64"),
    "2017, GC64": ("luajit_2.1.0~beta3+dfsg.orig.tar.gz", "-DLUAJIT_ENABLE_GC64"),
    "2017, GC32": ("luajit_2.1.0~beta3+dfsg.orig.tar.gz", ""),
}


def apt(root, *arguments, **options):
    command = ["apt-get", "-q", "-o", f"Dir::Etc={root}/etc", "-o", f"Dir::State={root}/state"]
    command += ["-o", f"Dir::Cache={root}/cache", "-o", "APT::Sandbox::User=root"]
    return subprocess.run([*command, *arguments], stdout=subprocess.DEVNULL, **options)


def fetch(directory):
    """Source packages of this and the last release, from the mirror that apt is set up with."""
    root = directory / "apt"
    for part in "etc/sources.list.d", "state/lists/partial", "cache/archives/partial":
        (root / part).mkdir(parents=True, exist_ok=True)
    if Path("/etc/apt/apt.conf.d").is_dir():
        shutil.copytree("/etc/apt/apt.conf.d", root / "etc/apt.conf.d", dirs_exist_ok=True)
    for source in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = source.read_text()
        if "bookworm" in text:
            text = text.replace("Types: deb\n", "Types: deb-src\n")
            text = text.replace("bookworm-updates", "bullseye")
            (root / "etc/sources.list.d" / source.name).write_text(text)
    apt(root, "update", check=True)
    for version in "2.1.0~beta3+git20220320+dfsg-4.1+deb12u1", "2.1.0~beta3+dfsg-5.3":
        apt(root, "source", "--download-only", f"luajit={version}", cwd=directory)


def build(directory, name, archive, flags):
    tree = directory / name.replace(", ", "-")
    if (tree / "src/luajit").exists():
        return tree / "src/luajit"
    if not (directory / archive).exists():
        fetch(directory)
    if not (directory / archive).exists():
        return None
    shutil.rmtree(tree, ignore_errors=True)
    unpacked = directory / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", directory / archive, "-C", unpacked], check=True)
    # Some archives have a folder of their own around it all.
    (source,) = [path.parent for path in [unpacked / "src", *unpacked.glob("*/src")] if path.is_dir()]
    source.rename(tree)
    subprocess.run([HERE / "instrument.sh", tree], check=True)
    subprocess.run(["make", "-s", "-C", tree / "src", f"XCFLAGS={flags}", "luajit"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return tree / "src/luajit"


def sample(luajit, program, sampler, directory):
    truth, samples = directory / "truth", directory / "samples"
    truth.unlink(missing_ok=True)
    target = subprocess.Popen([luajit, HERE / f"programs/{program}.lua", str(SECONDS + 1)],
                              env={**os.environ, "LUAJIT_TRUTH": str(truth)})  # fmt: skip
    try:
        with open(samples, "w") as out:
            subprocess.run([sampler, str(target.pid), str(SECONDS), str(RATE), truth], stdout=out,
                           check=True, timeout=SECONDS + 30)  # fmt: skip
    finally:
        target.kill()
        target.wait()
    return judge.tally(truth, samples)


def main():
    sampler, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    failed = False
    print(f"{'build':12}{'program':12}{'samples':>8}" + "".join(f"{c:>22}" for c in judge.COLUMNS))
    for name, (archive, flags) in BUILDS.items():
        luajit = build(directory, name, archive, flags)
        if not luajit:
            print(f"{name:12}skipped: its source package is not to be had")
            continue
        for program in PROGRAMS:
            count, counts, _ = sample(luajit, program, sampler, directory)
            shares = [100 * counts[column] / max(count, 1) for column in judge.COLUMNS]
            print(f"{name:12}{program:12}{count:8}" + "".join(f"{share:22.1f}" for share in shares))
            failed |= count == 0 or shares[-1] > WRONG_MAX
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
