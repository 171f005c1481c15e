"""requestEscalation, and the denials that make it worth asking."""

import os
import subprocess

from group import group
from questions import allow, choose
from world import GIT

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


def questions_of(c):
    return c.messages("confine/requestApproval")


@group
def denials(t):
    """What was refused: told as a fact, and only if the sandbox refused it."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    file = world.path("outside/file")
    result = c.call("runCommand", {"command": "echo x > '%s'" % file})
    sandbox = result["sandbox"]
    t.equal("a write outside", (sandbox["denied"], os.path.exists(file)), (True, False))
    t.check("which file, and how", any(d.get("path") == file and d["op"] and d.get("errno") for d in sandbox["denials"]), sandbox["denials"])
    t.equal("escalation names what is wider", result["escalation"]["targets"], ["danger-full-access"])
    result = c.call("runCommand", {"command": "echo x > f", "mode": "read-only"})
    t.equal("the narrowest first", result["escalation"]["targets"], ["workspace-write", "danger-full-access"])
    if t.namespaces(c, "a connection that is observed"):
        result = c.call("runCommand", {"command": "echo > /dev/tcp/192.0.2.1/9"})
        t.equal("only a connection", (result["sandbox"]["denied"], "[sandbox: network access denied under workspace-write mode]" in result["modelText"]), (True, True))
    observed(t, c, world)
    for what, command in [("success", "true"), ("a file that is not there", "cat /no/such"), ("a failing test", "false"), ("a program that is not there", "no-such-program")]:
        result = c.call("runCommand", {"command": command})
        t.equal("no denial: %s" % what, (result["sandbox"]["denied"], "denials" in result["sandbox"], "escalation" in result), (False, False, False))
    c.close()


def observed(t, c, world):
    """Denials as facts, where the calls of a command are watched."""
    result = c.call("runCommand", {"command": "true"})
    if result["sandbox"].get("observation", {}).get("state", "none") == "none":
        return
    swallow = "for i in 1 2 3; do echo x > '%s'; done 2>/dev/null; true" % world.path("outside/swallowed")
    result = c.call("runCommand", {"command": swallow})
    found = [d for d in result["sandbox"].get("denials", []) if d.get("path") == world.path("outside/swallowed")]
    t.equal("a denial that the command swallowed, folded", [(d["evidence"], d["count"], d["exe"]) for d in found], [("observed", 3, "bash")])
    t.equal("it made a difference all the same", (result["exitCode"], result["sandbox"]["denied"]), (0, True))
    subprocess.run(GIT + ["init", "-q"], cwd=world.workspace, env=world.env, check=True)
    result = c.call("runCommand", {"command": "git status -s", "mode": "read-only"})
    t.equal("what a program does without makes no difference", (result["sandbox"]["denied"], [d.get("incidental") for d in result["sandbox"].get("denials", [])], "escalation" in result),
            (False, [True], False))
    open(world.path("workspace/f"), "w").close()
    for what, command in [("unless it does not", "git add f"), ("nor if its end is hidden", "git add f || true")]:
        result = c.call("runCommand", {"command": command, "mode": "read-only"})
        t.equal(what, (result["exitCode"] == 0, result["sandbox"]["denied"], [(d.get("path"), d.get("incidental")) for d in result["sandbox"].get("denials", [])]),
                ("|| true" in command, True, [(world.path("workspace/.git/index.lock"), None)]))
    result = c.call("runCommand", {"command": "echo 'x: Permission denied' >&2; exit 1"})
    t.equal("a text is no denial", (result["sandbox"]["denied"], "denials" in result["sandbox"]), (False, False))


REQUEST = {"runId": "first", "sandboxPermissions": "danger-full-access", "justification": "it goes beside"}


def writes_outside(world):
    """A command that writes its environment, input and folder outside; the file, and the folder to run it in."""
    file, sub = world.path("outside/file"), world.path("workspace/sub")
    os.mkdir(sub)
    return 'echo "$GIVEN" > "%s" && cat >> "%s" && pwd >> "%s"' % (file, file, file), file, sub


@group
def escalation(t):
    """What is wrong, what needs no question, and a refusal."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    command, file, sub = writes_outside(world)
    first = c.call("runCommand", {"command": command, "runId": "first", "env": {"GIVEN": "given"}, "stdin": "typed\n", "cwd": sub,
                                  "timeoutMs": 7000, "session": "s"})
    t.equal("the first run is denied", first["sandbox"]["denied"], True)
    # What is wrong.
    for what, change in [("an unknown run", {"runId": "none"}), ("no run", {"runId": None}), ("no justification", {"justification": None}),
                         ("an empty justification", {"justification": ""}), ("no mode", {"sandboxPermissions": None}),
                         ("an unknown mode", {"sandboxPermissions": "wide"}), ("a mode that is never wider", {"sandboxPermissions": "read-only"}), ("an id that is known", {"newRunId": "first"}),
                         ("an id that is none", {"newRunId": "a b"})]:
        params = {k: v for k, v in {**REQUEST, **change}.items() if v is not None}
        t.wrong_params(c, what, "requestEscalation", params)
    c.call("runCommand", {"command": "sleep 600", "background": True, "runId": "going"})
    t.wrong_params(c, "a run that is going on", "requestEscalation", {**REQUEST, "runId": "going"}, "going")
    other = t.open(world)
    t.wrong_params(other, "a run of another connection", "requestEscalation", REQUEST, "first")
    other.close()
    t.equal("nobody was asked", questions_of(c), [])
    t.equal("no wider gives the first result", c.call("requestEscalation", {**REQUEST, "sandboxPermissions": "workspace-write"}), first)
    t.equal("and nobody was asked", questions_of(c), [])

    # Refused.
    pending = c.request("requestEscalation", {**REQUEST, "newRunId": "second"})
    asked = c.message("confine/requestApproval")
    p = asked["params"]
    t.equal("the question", {n: p.get(n) for n in ("kind", "runId", "mode", "wanted", "cwd", "justification", "stdin", "env")},
            {"kind": "escalation", "runId": "second", "mode": "workspace-write", "wanted": {"mode": "danger-full-access"}, "cwd": sub,
             "justification": "it goes beside", "stdin": "typed\\n", "env": ["GIVEN=given"]})
    t.check("shows what was denied", any(d.get("path") == file for d in p["evidence"]), p["evidence"])
    choose(c, asked, "reject_once")
    result = pending.result()
    t.equal("refused", (result["runId"], result["status"], result["approval"]["outcome"], os.path.exists(file)), ("second", "refused", "rejected", False))
    t.wrong_params(c, "a run that never ran", "requestEscalation", {**REQUEST, "runId": "second"}, "second")
    again = c.call("requestEscalation", {**REQUEST, "newRunId": "third"})
    t.equal("what was refused is refused again", (again["status"], again["approval"]["by"], len(questions_of(c))), ("refused", "memory", 1))
    c.close()


@group
def escalation_allowed(t):
    """The same command once more, and wider."""
    world = t.world(WORKSPACE_WRITE)
    command, file, sub = writes_outside(world)
    c = t.open(world)
    params = {"command": command, "runId": "first", "env": {"GIVEN": "given"}, "stdin": "typed\n", "cwd": sub, "timeoutMs": 7000, "session": "s"}
    c.call("runCommand", params)
    pending = c.request("requestEscalation", {**REQUEST, "newRunId": "second", "workDoneToken": "token"})
    allow(c, c.message("confine/requestApproval"))
    result = pending.result()
    t.equal("allowed", (result["runId"], result["exitCode"], result["approval"]["outcome"], result["sandbox"]["mode"]),
            ("second", 0, "allowed-once", "danger-full-access"))
    with open(file) as written:
        t.equal("the same command, environment, input and folder", written.read(), "given\ntyped\n%s\n" % sub)
    t.equal("the same timeout", result["effectiveTimeoutMs"], 7000)
    t.equal("the same session", [r["session"] for r in c.call("confine/runs/list", {})["runs"]], ["s", "s"])
    t.equal("with progress", [m["params"]["value"]["kind"] for m in c.messages("$/progress")], ["begin", "end"])
    pending = c.request("requestEscalation", REQUEST)
    asked = c.message("confine/requestApproval", nth=1)
    t.check("once is once: it is asked again, with an id of the server", asked["params"]["runId"] not in ("first", "second", ""), asked["params"]["runId"])
    pending.cancel()
    t.equal("cancelled while asked", pending.result()["status"], "cancelled")
    c.close()


@group
def escalation_once(t):
    """From read-only to workspace-write: wider, and confined all the same. In the background too."""
    world = t.world()
    c = t.open(world)
    outside = world.path("outside/no")
    c.call("runCommand", {"command": "echo x > yes; echo x > '%s'" % outside, "runId": "first"})
    pending = c.request("requestEscalation", {"runId": "first", "sandboxPermissions": "workspace-write", "justification": "x"})
    allow(c, c.message("confine/requestApproval"))
    result = pending.result()
    t.equal("workspace-write for once", (result["sandbox"]["mode"], world.has("workspace/yes"), os.path.exists(outside)), ("workspace-write", True, False))
    t.equal("the next run is read-only again", c.call("runCommand", {"command": "touch more"})["sandbox"]["mode"], "read-only")
    c.call("runCommand", {"command": "touch back; sleep 0.2", "runId": "b", "background": True})
    c.message("confine/exit", lambda p: p["runId"] == "b")
    pending = c.request("requestEscalation", {"runId": "b", "sandboxPermissions": "workspace-write", "justification": "x", "newRunId": "b2"})
    allow(c, c.message("confine/requestApproval", nth=1))
    t.equal("a background run again in the background", pending.result()["status"], "running")
    t.equal("and wider", c.call("confine/runs/wait", {"runId": "b2"})["exitCode"], 0)
    c.close()
