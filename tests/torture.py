"""A program that breaks the protocol of docs/protocol.md in the way that its argument names."""
import ctypes
import json
import os
import signal
import sys
import time

HOW = sys.argv[1]
if "TORTURE_PID" in os.environ:
    # At once or not at all: the program may be killed at any time.
    unfinished = f"{os.environ['TORTURE_PID']}.{os.getpid()}"
    with open(unfinished, "w") as file:
        file.write(str(os.getpid()))
    os.rename(unfinished, os.environ["TORTURE_PID"])


def raw(text):
    os.write(1, text.encode())


def say(**line):
    raw(json.dumps(line) + "\n")


def flood(descriptor, seconds):
    """Writes lines that are no part of the protocol."""
    end, block = time.time() + seconds, b"all work and no play\n" * 3000
    while time.time() < end:
        os.write(descriptor, block)


def fork(escape):
    """Leaves a child that holds the pipes, and ends."""
    if os.fork() == 0:
        if escape:
            os.setsid()
        time.sleep(15)
        os._exit(0)
    os._exit(5)


def die(signum):
    os.kill(os.getpid(), signum)
    time.sleep(5)


def null(evidence, case):
    if evidence:
        say(id=case, evidence={"address": "0x10", "access": "r"})
    ctypes.string_at(16)


def ignore_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def text(line, code):
    sys.stderr.write(line + "\n")
    os._exit(code)


def last_words():
    raw('{"id":0,"verdict":"pa')
    os._exit(0)


def invalid_bytes(case):
    os.write(1, b"\xff\xfe\x00\n[1, 2]\n\n")
    say(id=case, verdict="pass")


def misbehave(case):
    {
        "ok": lambda: say(id=case, verdict="pass"),
        "members": lambda: (say(id=case, hint=1, launch={"Z": "0x7f00", "A": ["0x10"]}), say(id=case, verdict="pass", mood="good", detail=None)),
        "flood-stdout": lambda: (flood(1, 0.3), say(id=case, verdict="pass")),
        "flood-stderr": lambda: (flood(2, 0.3), say(id=case, verdict="pass")),
        "flood-stdout-forever": lambda: flood(1, 60),
        "flood-stderr-forever": lambda: flood(2, 60),
        "long-line": lambda: (raw("x" * (3 << 20)), time.sleep(60)),
        "invalid-bytes": lambda: invalid_bytes(case),
        "other-id": lambda: say(id=case + 1, verdict="pass"),
        "text-id": lambda: say(id=str(case), verdict="pass"),
        "no-id": lambda: say(verdict="pass"),
        "negative-id": lambda: say(id=-1, verdict="pass"),
        "number-verdict": lambda: say(id=case, verdict=7),
        "unknown-verdict": lambda: say(id=case, verdict="fine"),
        "hang-verdict": lambda: say(id=case, verdict="hang"),
        "unknown-operand": lambda: say(id=case, verdict="wrong", operand="Q"),
        "bad-address": lambda: say(id=case, verdict="fault", address="seven"),
        "bad-evidence": lambda: say(id=case, evidence={"access": "execute"}),
        "bad-launch": lambda: say(id=case, launch={"A": -4}),
        "no-json": lambda: raw("{oops\n"),
        "two-hellos": lambda: say(shrinkfault=1),
        "knobs-unasked": lambda: say(id=case, knobs={"a": [1]}),
        "twice": lambda: (say(id=case, verdict="pass"), say(id=case, verdict="pass")),
        "close-stdout": lambda: (os.close(1), time.sleep(60)),
        "silent": lambda: time.sleep(60),
        "ignore-sigterm": ignore_sigterm,
        "fork": lambda: fork(False),
        "fork-and-escape": lambda: fork(True),
        "exit-0": lambda: os._exit(0),
        "exit-3": lambda: text("the driver is out of tune", 3),
        "last-words": last_words,
        "abort": os.abort,
        "segv": lambda: null(False, case),
        "null": lambda: null(True, case),
        "rocm": lambda: text("Memory access fault by GPU node-1 (Agent handle: 0x5) on address 0x7f6459a00000. Reason: Unknown.", 134),
        "cuda": lambda: text("CUDA error: an illegal memory access was encountered", 1),
        "own-text": lambda: text("frobnicator: lane 3 left its lane", 1),
        "fault": lambda: say(id=case, verdict="fault", address="0x7f00", operand="A", detail="error 700"),
        "refused": lambda: say(id=case, verdict="refused", detail="not for me"),
        "skipped": lambda: say(id=case, verdict="skipped", state=True, detail="no memory now"),
        "die-unannounced": lambda: os._exit(9),
    }[HOW]()


if HOW == "no-hello":
    time.sleep(60)
if HOW == "chatter-no-hello":
    flood(1, 60)
if HOW == "exit-at-start":
    text("there is no such device", 3)
if HOW == "killed-at-start":
    die(signal.SIGABRT)
if HOW == "cannot-start":
    say(setup_failed="the device is on holiday")
    time.sleep(60)
if HOW == "answers-first":
    say(id=0, verdict="pass")
if HOW == "close-stdin":
    os.close(0)
say(shrinkfault=2 if HOW == "version-2" else 1)
if HOW == "close-stdin":
    time.sleep(60)

for line in sys.stdin:
    request = json.loads(line)
    if HOW == "die-unannounced" and request["params"]["n"] < 1000:
        say(id=request["id"], launch={"A": "0x7f0000000000"})
        say(id=request["id"], verdict="pass")
    else:
        misbehave(request["id"])
