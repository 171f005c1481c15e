"""Runs: list, read by byte cursor, wait, kill, in the background and after their end."""

import datetime
import os
import re

from group import group, lock_of, wait_free, wait_held
from laws import piece
from questions import RFC3339, allow
from wire import until

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


@group
def background(t):
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    lock, held = lock_of(world)
    result = c.call("runCommand", {"command": "echo begun; " + lock + "while ! [ -e go ]; do sleep 0.01; done; echo ended; exit 3",
                                   "background": True, "runId": "back", "session": "s"})
    t.equal("background answers at once", (result["status"], result["runId"]), ("running", "back"))
    wait_held(held)
    c.message("confine/output", lambda p: p["runId"] == "back")
    now = c.call("confine/runs/wait", {"runId": "back", "timeoutMs": 0})
    t.equal("wait with 0 only asks", (now["status"], now["stdout"]["text"]), ("running", "begun\n"))
    now = c.call("confine/runs/wait", {"runId": "back", "timeoutMs": 100})
    t.equal("wait answers when its time is over", now["status"], "running")
    pending = c.request("confine/runs/wait", {"runId": "back"})
    c.call("confine/runs/list", {})
    pending.cancel()
    t.equal("a cancelled wait answers as it is", pending.result()["status"], "running")
    t.check("and the run goes on", held())
    pending = c.request("confine/runs/wait", {"runId": "back"})
    open(world.path("workspace/go"), "w").close()
    result = pending.result()
    t.equal("wait answers with the result", (result["status"], result["exitCode"], result["stdout"]["text"]), ("completed", 3, "begun\nended\n"))
    t.equal("confine/exit said the same", c.message("confine/exit", lambda p: p["runId"] == "back")["params"], result)
    t.equal("and again later", c.call("confine/runs/wait", {"runId": "back"}), result)
    for wrong in ({"runId": "none"}, {}, {"runId": "back", "timeoutMs": -1}):
        t.wrong_params(c, "wait for %s" % wrong, "confine/runs/wait", wrong)

    # What comes before the command begins is answered as ever.
    t.failure(c, "in the background, a program that is not found", "runCommand",
              {"argv": ["no-such-program"], "background": True}, "PROGRAM_NOT_FOUND", path="no-such-program")
    pending = c.request("runCommand", {"command": "sleep 600", "background": True, "runId": "asked",
                                       "sandboxPermissions": "danger-full-access", "justification": "x"})
    asked = c.message("confine/requestApproval")
    now = c.call("confine/runs/wait", {"runId": "asked", "timeoutMs": 0})
    t.check("a run that waits for an answer says so", now["modelText"].startswith("[not begun yet: asked "), now["modelText"])
    t.check("its request is not answered yet", not pending.done())
    allow(c, asked)
    result = pending.result()
    t.equal("it is when the command has begun", (result["status"], result["modelText"], result["approval"]["outcome"]),
            ("running", "[running as asked]", "allowed-once"))
    c.refusal("runCommand", {"argv": ["no-such-program"], "runId": "never"})
    t.wrong_params(c, "wait for a run whose own request failed", "confine/runs/wait", {"runId": "never"}, "never")
    c.close()


@group
def kill(t):
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    lock, held = lock_of(world)
    pending = c.request("runCommand", {"command": lock + "sleep 600", "runId": "victim"})
    wait_held(held)
    t.equal("kill", c.call("confine/runs/kill", {"runId": "victim"}), {"runId": "victim", "killed": True})
    result = pending.result()
    t.equal("the killed run was cancelled", (result["status"], result.get("signal")), ("cancelled", "SIGTERM"))
    wait_free(held)
    t.equal("kill once more", c.call("confine/runs/kill", {"runId": "victim"}), {"runId": "victim", "killed": False})
    pending = c.request("runCommand", {"command": "trap '' TERM; touch deaf; while :; do sleep 0.1; done", "runId": "deaf"})
    until(lambda: os.path.exists(world.path("workspace/deaf")), "the trap is set")
    c.call("confine/runs/kill", {"runId": "deaf"})
    result = pending.result()
    t.equal("a run that is deaf to TERM", (result["status"], result.get("signal")), ("cancelled", "SIGKILL"))
    pending = c.request("runCommand", {"command": "touch ran", "sandboxPermissions": "danger-full-access", "justification": "x", "runId": "asked"})
    asked = c.message("confine/requestApproval")
    t.equal("a run that waits for an answer", c.call("confine/runs/wait", {"runId": "asked", "timeoutMs": 0})["status"], "running")
    t.equal("can be killed", c.call("confine/runs/kill", {"runId": "asked"})["killed"], True)
    result = pending.result()
    t.equal("and does not begin", (result["status"], os.path.exists(world.path("workspace/ran"))), ("cancelled", False))
    t.equal("its question is withdrawn", c.message("confine/approvalWithdrawn")["params"], {"id": asked["params"]["id"], "reason": "cancelled"})
    for wrong in ({"runId": "none"}, {}):
        t.wrong_params(c, "kill of %s" % wrong, "confine/runs/kill", wrong)
    other = t.open(world)
    t.wrong_params(other, "kill on another connection", "confine/runs/kill", {"runId": "victim"}, "victim")
    t.equal("which lists nothing", other.call("confine/runs/list", {}), {"runs": []})
    other.close()
    c.close()


@group
def listing(t):
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    c.call("runCommand", {"command": "exit 3", "runId": "one", "session": "s"})
    c.call("runCommand", {"argv": ["echo", "x"], "runId": "two", "mode": "read-only"})
    c.call("runCommand", {"command": "sleep 600", "runId": "three", "background": True})
    c.call("runCommand", {"command": "# " + "x" * 9998, "runId": "four"})
    c.call("runCommand", {"command": "sleep 600", "runId": "five", "background": True})
    runs = c.call("confine/runs/list", {})["runs"]
    t.equal("running ones first, newest first", [r["runId"] for r in runs], ["five", "three", "four", "two", "one"])
    five, _, four, two, one = runs
    t.equal("one that ended", {n: one.get(n) for n in ("session", "status", "command", "argv", "bytes", "cwd", "mode", "background", "exitCode", "signal", "timedOut")},
            {"session": "s", "status": "completed", "command": "exit 3", "argv": None, "bytes": 6, "cwd": world.workspace,
             "mode": "workspace-write", "background": False, "exitCode": 3, "signal": None, "timedOut": False})
    t.equal("one with argv", (two["argv"], "command" in two, two["mode"], "session" in two), (["echo", "x"], False, "read-only", False))
    t.equal("one that runs", (five["status"], five["background"], "exitCode" in five), ("running", True, False))
    t.equal("the first 4 KiB of the command", (four["command"], four["bytes"]), (("# " + "x" * 9998)[:4096], 10000))
    t.check("startedAt", all(re.fullmatch(RFC3339, r["startedAt"]) for r in runs), one["startedAt"])
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(one["startedAt"].replace("Z", "+00:00"))
    t.check("is the time of the request", abs(age.total_seconds()) < 60, age)
    t.equal("one session", [r["runId"] for r in c.call("confine/runs/list", {"session": "s"})["runs"]], ["one"])
    t.equal("an unknown session", c.call("confine/runs/list", {"session": "unknown"})["runs"], [])
    t.wrong_params(c, "a session that is a number", "confine/runs/list", {"session": 1}, "session")

    for number in range(0, 140, 20):
        for pending in [c.request("runCommand", {"argv": ["true"], "runId": "n%d" % n}) for n in range(number, number + 20)]:
            pending.result()
    runs = c.call("confine/runs/list", {})["runs"]
    t.equal("128 ended runs are kept, beside the running ones", (len(runs), [r["runId"] for r in runs[:2]]), (130, ["five", "three"]))
    t.wrong_params(c, "an older one is forgotten", "confine/runs/wait", {"runId": "one"}, "one")
    t.equal("its id is free again", c.call("runCommand", {"command": "true", "runId": "one"})["runId"], "one")
    c.close()


@group
def reading(t):
    """confine/runs/read: byte cursors, without loss or repetition."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)

    def read(id, **params):
        return c.call("confine/runs/read", {"runId": id, **params})

    c.call("runCommand", {"command": r"printf 'a\303\244b\377c'; printf err >&2", "runId": "small"})
    whole = b"a\xc3\xa4b\xffc"
    t.equal("the whole stream", read("small"),
            {"runId": "small", "stream": "stdout", "status": "completed", "offset": 0, "base64": "YcOkYv9j", "nextOffset": 6, "totalBytes": 6, "eof": True})
    t.equal("the other stream", (read("small", stream="stderr")["data"], read("small", stream="stderr")["stream"]), ("err", "stderr"))
    got, offset, ends = b"", 0, []
    while not ends or not ends[-1]:
        part = read("small", offset=offset, maxBytes=2)
        got, offset = got + piece(part, c.complaints.append), part["nextOffset"]
        ends.append(part["eof"])
        if len(ends) > 9:
            break
    t.equal("two bytes at a time, a character cut in two", (got, ends), (whole, [False, False, True]))
    end = read("small", offset=6)
    t.equal("at the end", (end["offset"], end["nextOffset"], end["eof"], "data" in end, "base64" in end), (6, 6, True, False, False))
    beyond = read("small", offset=600)
    t.equal("beyond the end", (beyond["eof"], beyond["totalBytes"]), (True, 6))
    for name, wrong in (("offset", -1), ("offset", "0"), ("maxBytes", -1), ("stream", "stdin"), ("runId", "none")):
        t.wrong_params(c, "%s %r" % (name, wrong), "confine/runs/read", {"runId": "small", name: wrong}, name if name != "runId" else "none")

    # While it runs.
    c.call("runCommand", {"command": "for i in 1 2 3; do echo $i; while ! [ -e go$i ]; do sleep 0.01; done; done", "background": True, "runId": "live"})
    got, offset = "", 0
    for number in "123":
        c.message("confine/output", lambda p: p["runId"] == "live" and number in p.get("data", ""))
        part = read("live", offset=offset)
        t.equal("line %s while it runs" % number, (part["data"], part["status"], part["eof"]), (number + "\n", "running", False))
        offset = part["nextOffset"]
        open(world.path("workspace/go" + number), "w").close()
    c.call("confine/runs/wait", {"runId": "live"})
    part = read("live", offset=offset)
    t.equal("and its end", ("data" in part, part["status"], part["eof"]), (False, "completed", True))

    c.call("runCommand", {"command": "seq 300000", "runId": "long"})
    whole = "".join("%d\n" % n for n in range(1, 300001)).encode()
    got, offset, sizes = b"", 0, []
    while True:
        part = read("long", offset=offset, **({"maxBytes": 10**9} if offset else {}))
        got, offset = got + piece(part, c.complaints.append), part["nextOffset"]
        sizes.append(part["nextOffset"] - part["offset"])
        if part["eof"] or not sizes[-1]:
            break
    t.check("two megabytes, byte for byte", got == whole, "%d bytes of %d" % (len(got), len(whole)))
    t.equal("64 KiB unless asked for, 1 MiB at most", sizes[:2], [65536, 1 << 20])
    c.close()
