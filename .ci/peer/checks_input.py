"""Input that stays open, and terminals."""

import base64
import re

from group import group
from questions import allow, choose
from wire import until

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


def output(c, run):
    """All that a run printed on standard output so far."""
    return "".join(m["params"].get("data", "") for m in c.messages("confine/output", lambda p: p["runId"] == run))


def await_output(c, run, text):
    c.await_that(lambda: text in output(c, run), "%s to print %r, which printed %r" % (run, text, output(c, run)))


def listed(c, run):
    return next((r for r in c.call("confine/runs/list", {})["runs"] if r["runId"] == run), {"stdinOpen": False})


@group
def open_input(t):
    """stdinOpen and confine/runs/write."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    pending = c.request("runCommand", {"command": "read a; echo \"[$a]\"; cat; echo over", "stdin": "first ", "stdinOpen": True, "runId": "r"})
    until(lambda: listed(c, "r")["stdinOpen"], "the command to begin")
    t.equal("it is listed", (listed(c, "r")["stdinOpen"], listed(c, "r")["pty"]), (True, False))
    result = c.call("confine/runs/write", {"runId": "r", "data": "line é\n"})
    t.equal("bytes are counted", (result["runId"], result["taken"], result["open"]), ("r", 8, True))
    await_output(c, "r", "[first line é]\n")
    for i in range(200):
        c.request("confine/runs/write", {"runId": "r", "data": "%d " % i})
    c.call("confine/runs/write", {"runId": "r", "base64": base64.b64encode(b"\n").decode()})
    t.equal("what is written comes in its order", c.call("confine/runs/write", {"runId": "r", "close": True})["open"], False)
    result = pending.result()
    t.equal("and ends", (result["exitCode"], result["stdout"]["text"]), (0, "[first line é]\n" + "".join("%d " % i for i in range(200)) + "\nover\n"))
    t.failure(c, "writing after the end", "confine/runs/write", {"runId": "r", "data": "x"}, "INPUT_CLOSED")
    c.call("runCommand", {"command": "true", "runId": "plain"})
    for what, params in [("a run without open input", {"runId": "plain", "data": "x"}), ("no such run", {"runId": "none", "data": "x"}),
                         ("data and base64", {"runId": "r", "data": "x", "base64": "eA=="}), ("no base64", {"runId": "r", "base64": "?"})]:
        t.wrong_params(c, "write: " + what, "confine/runs/write", params)

    # Bounds. A command that reads nothing takes what a pipe holds, and no more than that and the queue.
    limit = c.call("capabilities", {})["limits"]["inputBytes"]
    pending = c.request("runCommand", {"command": "echo ready; sleep 600", "stdinOpen": True, "runId": "deaf"})
    await_output(c, "deaf", "ready")
    taken, last = 0, 1
    while last:
        last = c.call("confine/runs/write", {"runId": "deaf", "data": "€" * 100000})["taken"]
        taken += last
    last = c.call("confine/runs/write", {"runId": "deaf"})
    t.check("the queue is bounded, and says so", limit - 3 <= last["queued"] <= limit and taken <= limit + (1 << 20) and taken % 3 == 0, (taken, last, limit))
    c.call("confine/runs/kill", {"runId": "deaf"})
    pending.result()
    c.close()


@group
def terminals(t):
    """pty and confine/runs/resize."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    can = c.call("capabilities", {"wait": True})
    t.equal("a terminal is to be had", (can["pty"], can["stdinOpen"]), (True, True))
    result = c.call("runCommand", {"command": "tty; stty size; echo $TERM; echo error >&2; echo named > /dev/tty; env | grep -c -e ^NO_COLOR -e ^PAGER", "pty": {"columns": 101}})
    lines = result["stdout"]["text"].split("\r\n")
    t.check("tty has a name", re.fullmatch("/dev/pts/[0-9]+", lines[0]), lines)
    t.equal("size, TERM, one stream, and /dev/tty", lines[1:], ["24 101", "xterm-256color", "error", "named", "0", ""])
    t.equal("an agent reads it as text", result["modelText"], "\n".join(lines) + "[exit code: 1]")
    t.equal("nothing on stderr, and nothing denied", (result["stderr"]["bytes"], result["sandbox"]["denied"]), (0, False))

    pending = c.request("runCommand", {"argv": ["bash", "--norc", "-i"], "env": {"PS1": "$ "}, "pty": {}, "runId": "shell"})
    await_output(c, "shell", "$ ")
    c.call("confine/runs/write", {"runId": "shell", "data": "stty size; echo d''one\r"})
    await_output(c, "shell", "24 80\r\ndone\r\n")
    c.await_that(lambda: output(c, "shell").endswith("$ "), "the prompt")  # bash may lose what is typed before it, and a resize
    t.equal("resize answers null", c.call("confine/runs/resize", {"runId": "shell", "columns": 70, "rows": 20}), None)
    c.call("confine/runs/write", {"runId": "shell", "data": "stty size; sh -c 'echo in fr\"\"ont; exec sleep 600'\r"})
    await_output(c, "shell", "20 70\r\nin front\r\n")
    c.call("confine/runs/write", {"runId": "shell", "data": "\x1a"})  # stops the job
    await_output(c, "shell", "Stopped")
    c.call("confine/runs/write", {"runId": "shell", "data": "kill %1; echo we''nt\r"})
    await_output(c, "shell", "went\r\n")
    c.call("confine/runs/write", {"runId": "shell", "data": "exit 7\rexit 7\r"})  # the first is refused while the job has not ended
    t.equal("the shell ends", pending.result()["exitCode"], 7)
    t.equal("resizing what has ended does nothing", c.call("confine/runs/resize", {"runId": "shell", "columns": 1, "rows": 1}), None)

    pending = c.request("runCommand", {"command": "echo up; exec sleep 600", "pty": {}, "runId": "hung"})
    await_output(c, "hung", "up")
    c.call("confine/runs/kill", {"runId": "hung"})
    result = pending.result()
    t.equal("a killed run is hung up", (result["status"], result["signal"]), ("cancelled", "SIGHUP"))

    for what, params in [("true", True), ("no columns", {"columns": -1}), ("too many rows", {"rows": 10001})]:
        t.wrong_params(c, "pty: " + what, "runCommand", {"command": "true", "pty": params})
    c.call("runCommand", {"command": "true", "runId": "plain"})
    for params in ({"runId": "plain", "columns": 1, "rows": 1}, {"runId": "none", "columns": 1, "rows": 1}, {"runId": "shell", "columns": 0, "rows": 1}, {"runId": "shell"}):
        t.wrong_params(c, "resize %r" % params, "confine/runs/resize", params)
    c.close()


@group
def questions_about_input(t):
    """What a question says of input that is still to come."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    warned = []
    for run, params in [("none", {}), ("open", {"stdinOpen": True}), ("pty", {"pty": {}})]:
        pending = c.request("runCommand", dict({"command": "cat", "runId": run, "sandboxPermissions": "danger-full-access", "justification": "x", "stdin": "a\n"}, **params))
        asked = c.message("confine/requestApproval", lambda p: p["runId"] == run)
        warned.append([w for w in asked["params"]["warnings"] if "not shown here" in w])
        t.equal("%s: a yes for the session is offered" % run, "allow_always" in [o["kind"] for o in asked["params"]["options"]], run == "none")
        if run == "open":
            t.failure(c, "writing before the answer", "confine/runs/write", {"runId": run, "data": "x"}, "INPUT_CLOSED")
            allow(c, asked)
            await_output(c, run, "a\n")
            c.call("confine/runs/write", {"runId": run, "data": "b\n", "close": True})
            t.equal("then it takes input", pending.result()["stdout"]["text"], "a\nb\n")
        else:
            choose(c, asked, "reject_once")
            pending.result()
    t.equal("open input and a terminal are warned of", [len(w) for w in warned], [0, 1, 1])
    c.close()
