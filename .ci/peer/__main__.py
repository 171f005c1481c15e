"""An independent client of confine, written from docs/protocol.md and its schema alone.

usage: python3 .ci/peer [-p PROVIDER] [-g GROUP]... [PATH/TO/confine]   (default: $CONFINE_BIN)

Speaks the whole protocol, validates every message that comes, and prints one line per
check. With CONFINE_HASTY_BIN, a confine that waits two seconds for an answer, also the
end of a question's time is seen.

What the page says of every message is in laws.py, of every run result in results.py, of
every question in questions.py; the rest is in checks_*.py, one file per chapter.

These statements cannot be checked from outside, or not in seconds:
- a missing processId is ignored because the client may live in another PID namespace (only
  that it is ignored)
- -32603, and an error of SANDBOX_UNAVAILABLE with started, runnerFailed, the marker of a
  runner that failed: a sandbox must break to be seen
- grants that depend on a folder end with it (only that questions do)
- capabilitiesChanged when a provider's state changes later
- how long ended runs are kept (an hour), and that fewer are if their commands are larger
  than 32 MiB
- skipped of confine/runs/read, which takes more output than is held
- planted, which needs protected files: see the tests of the sandbox
- denials are all that the sandbox refused, and made a difference: see the corpus
- nothing else ever waits for a slow client (only that the command does not)
- the outcome allowed-always, and deciding by limits: no setting gives them yet
- clients ignore what they do not know, which is said to clients
"""

import argparse
import concurrent.futures
import os
import sys
import time

sys.dont_write_bytecode = True

from group import Group, groups  # noqa: E402
from schema import Schema  # noqa: E402
from world import Kit  # noqa: E402

import checks_connection  # noqa: E402,F401
import checks_opening  # noqa: E402,F401
import checks_running  # noqa: E402,F401
import checks_output  # noqa: E402,F401
import checks_runs  # noqa: E402,F401
import checks_questions  # noqa: E402,F401
import checks_example  # noqa: E402,F401
import checks_escalation  # noqa: E402,F401
import checks_grants  # noqa: E402,F401
import checks_input  # noqa: E402,F401
import checks_approvals  # noqa: E402,F401
import checks_process  # noqa: E402,F401
import checks_stock  # noqa: E402,F401

WORKERS = 4  # most groups wait for something most of the time


def main():
    arguments = argparse.ArgumentParser(usage="python3 .ci/peer [-p PROVIDER] [-g GROUP]... [PATH/TO/confine]")
    arguments.add_argument("-g", action="append", metavar="GROUP", help="only groups whose name contains this")
    arguments.add_argument("-t", action="store_true", help="say how long each group took")
    arguments.add_argument("-p", metavar="PROVIDER", help="what confines commands, unless a check chooses itself")
    arguments.add_argument("program", nargs="?", default=os.environ.get("CONFINE_BIN"))
    options = arguments.parse_args()
    if not options.program:
        arguments.error("no program is given")
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    docs = os.path.join(top, "docs")
    schema = Schema(os.path.join(docs, "protocol.schema.json"))
    kit = Kit(os.path.abspath(options.program), schema, os.path.join(docs, "protocol.md"), options.p)
    chosen = [g for g in groups if not options.g or any(part in g.__name__ for part in options.g)]
    passed = failed = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run, kit, g) for g in chosen]):
                of, seconds = done.result()
                print("\n".join(of.lines), flush=True)
                if options.t:
                    print("       %s took %.1f s" % (of.name, seconds))
                passed, failed = passed + of.passed, failed + of.failed
    finally:
        kit.remove()
    print("%d passed, %d failed" % (passed, failed))
    return 0 if failed == 0 and passed > 0 else 1


def run(kit, function):
    of, started = Group(kit, function.__name__.replace("_", " ")), time.monotonic()
    of.run(function)
    return of, time.monotonic() - started


sys.exit(main())
