#!/usr/bin/env python3
"""Hunts on BLAS libraries, routine by routine, and prints a table.

    scripts/campaign_cpu.py --out FOLDER [--cases N] [--seed N] [--routines gemm,gemv] [--profiles strided,packed] TARGET...

A TARGET is the file of a library, or a name such as cblas,core=Haswell@/path/to/library. Each hunt has a folder of its own
under FOLDER, with its findings and events. Rows are printed as the hunts end, then counts of the cases that ran by routine,
choice (transposes, types ...), operand and placement. A hunt whose folder holds its end is not run again, so an interrupted
campaign goes on where it stopped. Needs: cargo, or the program named with --program.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROUTINES = "gemm gemmt symm syrk syr2k trmm trsm gemv ger axpy copy swap scal rot dot asum nrm2 iamax".split()
VERDICTS = "pass fault wrong hang crash refused skipped".split()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--routines", default=",".join(ROUTINES))
    parser.add_argument("--profiles", default="strided,packed")
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    return parser.parse_args()


def built():
    root = pathlib.Path(__file__).resolve().parent.parent
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=root, check=True)
    return root / "target/release/shrinkfault"


def split(target):
    """Settings and file of a target."""
    settings, _, file = target.rpartition("@")
    return settings or "cblas", os.path.abspath(file)


def hunt(options, target, routine, profile):
    """Folder of the events of one hunt, which runs unless it has run."""
    settings, file = split(target)
    build = pathlib.Path(file)
    name = f"{build.parent.name}-{build.name}-{settings}-{routine}-{profile}".replace("/", "-")
    folder = options.out / name
    events = folder / "events.jsonl"
    if summary(events) is None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [options.program, *(["gemm"] if routine == "gemm" else ["blas", routine])]
        command += ["--target", f"{settings}@{file}", "--profile", profile, "--seed", str(options.seed)]
        command += ["--cases", str(options.cases), "--keep-going", "--json", "--out", folder / "out"]
        with open(events, "w") as out, open(folder / "stderr", "w") as errors:
            subprocess.run(command, stdout=out, stderr=errors)
    return folder


def summary(events):
    """Start and end of a hunt as it told them; None where it has not ended."""
    if not events.exists():
        return None
    title = None
    for line in open(events):
        event = json.loads(line)
        if event["event"] == "started":
            title = event["title"]
        if event["event"] == "finished":
            return title, event["summary"]
    return None


def choices(events, counts, routine):
    """Counts the values of choices among the cases of one hunt."""
    for line in open(events):
        event = json.loads(line)
        if event["event"] != "case" or next(iter(event["verdict"])) in ("refused", "skipped"):
            continue
        case = event["case"]
        counts[routine, "placement", case["placement"].split("+")[0].split("/")[0]] += 1
        for name, value in case["params"].items():
            if not isinstance(value, int) or isinstance(value, bool):
                counts[routine, name, str(value).lower()] += 1


def main():
    options = arguments()
    options.program = (options.program or built()).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    counts = collections.Counter()
    print("| library | target | routine | profile | cases | " + " | ".join(VERDICTS) + " | cases/s | findings |")
    print("|---" * (len(VERDICTS) + 7) + "|")
    for target in options.targets:
        for routine in options.routines.split(","):
            for profile in options.profiles.split(","):
                folder = hunt(options, target, routine, profile)
                found = summary(folder / "events.jsonl")
                settings, file = split(target)
                head = f"| {os.path.basename(file)} | {settings} | {routine} | {profile} |"
                if found is None:
                    why = (folder / "stderr").read_text().strip().splitlines()
                    print(f"{head} not run: {why[-1] if why else 'no message'} |", flush=True)
                    continue
                tally = found[1]["tally"]
                cases = sum(tally.values())
                row = " | ".join(str(tally[v]) for v in VERDICTS)
                findings = ", ".join(found[1]["findings"]) or "none"
                print(f"{head} {cases} | {row} | {cases / found[1]['seconds']:.0f} | {findings} |", flush=True)
                choices(folder / "events.jsonl", counts, routine)
    print()
    print("| routine | choice | cases |")
    print("|---|---|---|")
    for routine in options.routines.split(","):
        names = sorted({name for r, name, _ in counts if r == routine})
        for name in names:
            values = sorted((value, n) for (r, c, value), n in counts.items() if (r, c) == (routine, name))
            print(f"| {routine} | {name} | " + ", ".join(f"{value} {n}" for value, n in values) + " |")


if __name__ == "__main__":
    sys.exit(main())
