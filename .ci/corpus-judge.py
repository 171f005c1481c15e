"""Compares a run of the corpus with corpus-misses.txt, whose head says what it holds.

usage: corpus-judge.py LEVEL PATTERN CORPUS WORK
Prints how many passed, failed and were skipped; on stderr, which and why."""
import json
import os
import re
import sys

level, pattern, corpus, work = sys.argv[1:]


def say(text):
    print(text, file=sys.stderr)


def load_misses():
    """Returns the misses of this level: id -> facet."""
    misses = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus-misses.txt")) as f:
        for line in f:
            fields = line.split("#")[0].split(None, 3)
            if not fields:
                continue
            if len(fields) != 4:
                sys.exit("error: a miss has a level, an id, a facet and a reason: " + line)
            if level in fields[0].split(","):
                misses[fields[1]] = fields[2]
    return misses


def load_modes():
    """Returns the mode of each case that was to run."""
    modes = {}
    for name in "escapes.jsonl", "breakage.jsonl":
        with open(os.path.join(corpus, name)) as f:
            for line in f:
                case = json.loads(line)
                if re.search(pattern, case["id"]):
                    modes[case["id"]] = case.get("mode")
    return modes


def excused(case, facet, modes):
    """Says why a miss is none: no escape may succeed whose facet is enforced."""
    if facet in ("planted", "-"):
        return None if facet == "planted" or case.startswith("b-") else "an escape needs a facet"
    with open(os.path.join(work, "facets-%s.json" % modes[case])) as f:
        state = json.load(f)["sandbox"]["facets"][facet]["state"]
    return "%s is called enforced" % facet if state == "enforced" else None


misses, modes = load_misses(), load_modes()
with open(os.path.join(work, "corpus.json")) as f:
    results = json.load(f)["results"]
passed = failed = skipped = 0
for r in results:
    case, why = r["id"], "; ".join(r["why"])
    if r["status"] == "skip":
        skipped += 1
        say("skipped %s on level %s: %s" % (case, level, why))
    elif r["ok"] and case in misses:
        failed += 1
        say("STALE %s on level %s: it passes; remove it from the misses" % (case, level))
    elif r["ok"]:
        passed += 1
    elif case in misses:
        wrong = excused(case, misses[case], modes)
        if wrong:
            failed += 1
            say("NOT TRUE %s on level %s: it misses, and %s" % (case, level, wrong))
        else:
            passed += 1
    else:
        failed += 1
        say("REQUIRED %s on level %s: %s" % (case, level, why))
for case in sorted(set(misses) - set(modes)):
    failed += 1
    say("STALE %s on level %s: there is no such case" % (case, level))
print(passed, failed, skipped)
