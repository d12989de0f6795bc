#!/usr/bin/env python3
"""Counts of the cases in event files of hunts on gemm: by verdict, type and transposes, knobs, and refusals by their text.

    scripts/device/summary.py EVENTS.jsonl...
"""

import collections
import json
import pathlib
import re
import sys


def events(path):
    with open(path) as lines:
        for line in lines:
            if line.startswith("{"):
                yield json.loads(line)


def summarise(path):
    verdicts, cells, refusals, knobs, kernels = (collections.Counter() for _ in range(5))
    findings, last = [], None
    for event in events(path):
        if event["event"] == "case":
            case, verdict = event["case"], event["verdict"]
            word, said = next(iter(verdict.items())) if isinstance(verdict, dict) else (verdict, None)
            params = case["params"]
            cell = (params["dtype"], params["transA"] + params["transB"])
            verdicts[word] += 1
            cells[cell, "ran" if word not in ("refused", "skipped") else word] += 1
            if word in ("refused", "skipped"):
                text = re.sub(r"\d+", "N", said["detail"])
                refusals[cell[0], text[:150]] += 1
            else:
                for name, value in case.get("knobs", {}).items():
                    knobs[name, str(value)] += 1
                if event.get("kernel"):
                    kernels[event["kernel"]] += 1
        elif event["event"] == "finding":
            findings.append(event["name"])
        elif event["event"] == "finished":
            last = event["summary"]
    print(f"== {pathlib.Path(path).stem}")
    print("verdicts:", ", ".join(f"{n} {word}" for word, n in verdicts.most_common()))
    if last:
        print(f"{last['seconds']:.0f} s, {last['remapped']} ranges remapped, {last['processes']} processes; coverage:", json.dumps(last["coverage"]))
        print("ended:", last["ended"], "- known:", json.dumps(last["known"]), "- not looked into:", last["not_shrunk"])
    types = sorted({cell[0] for cell, _ in cells})
    pairs = sorted({cell[1] for cell, _ in cells})
    print("cases that ran (refused) by type and transposes:")
    print("type", *pairs, sep="\t")
    for dtype in types:
        print(dtype, *(f"{cells[(dtype, p), 'ran']} ({cells[(dtype, p), 'refused']})" for p in pairs), sep="\t")
    print("knobs of cases that ran:", ", ".join(f"{k}={v}: {n}" for (k, v), n in sorted(knobs.items()) if k != "algo"))
    algos = sorted(n for (k, _), n in knobs.items() if k == "algo")
    if algos:
        print(f"algo: {len(algos)} values, {algos[0]} to {algos[-1]} cases each; {len(kernels)} configurations resolved")
    print("refusals:")
    for (dtype, text), n in refusals.most_common(25):
        print(f"  {n}\t{dtype}\t{text}")
    print("findings:", *findings, sep="\n  ")


for file in sys.argv[1:]:
    summarise(file)
