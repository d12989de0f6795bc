"""A kernel under shrinkfault, with a planted defect: it keeps element offsets in 16 bits.

    shrinkfault fuzz scripts/targets/pack_columns.toml
"""
import json
import sys
from array import array


def pack_columns(source, rows, cols, ld, unroll):
    """The kernel: packs `cols` columns of `rows` elements, rows `ld` elements apart, one column after the other."""
    packed = array("q")
    for column in range(cols):
        for first in range(0, rows, unroll):
            for row in range(first, min(first + unroll, rows)):
                packed.append(source[(row * ld + column) & 0xFFFF])  # the defect
    return packed


def run(case):
    params, seed = case["params"], case["seed"] % 2**32
    rows, cols, ld = params["rows"], params["cols"], params["ld"]
    unroll = case["knobs"].get("unroll", 1)  # a case need not name every knob
    if unroll > rows:
        return {"verdict": "refused", "detail": "the unroll is longer than a column"}
    # An element holds its offset and the seed, so that one that is read from elsewhere shows.
    source = array("q", range(seed, seed + (rows - 1) * ld + cols))
    packed = pack_columns(source, rows, cols, ld, unroll)
    right = [seed + row * ld + column for column in range(cols) for row in range(rows)]
    wrong = [i for i, (have, want) in enumerate(zip(packed, right)) if have != want]
    if not wrong:
        return {"verdict": "pass", "kernel": "pack_columns"}
    column, row = divmod(wrong[0], rows)
    return {"verdict": "wrong", "operand": "packed", "first": [column, row], "count": len(wrong), "compared": len(right),
            "kernel": "pack_columns"}


def say(line):
    print(json.dumps(line), flush=True)


say({"shrinkfault": 1})
for text in sys.stdin:
    case = json.loads(text)
    say({"id": case["id"], **run(case)})
