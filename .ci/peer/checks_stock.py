"""Editors that know nothing of the page: message requests, and commands."""

import os
import unicodedata

from group import group
from world import FULL, STOCK

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


def title(asked, word):
    return next(a["title"] for a in asked["params"]["actions"] if word in a["title"].lower())


@group
def stock_questions(t):
    """window/showMessageRequest."""
    world = t.world(WORKSPACE_WRITE)
    c, count = t.open(world, STOCK), [0]

    def ask():
        count[0] += 1
        file = world.path("outside/ran-%d" % count[0])
        pending = c.request("runCommand", {"command": "touch '%s'" % file, "sandboxPermissions": "danger-full-access", "justification": "why not"})
        return pending, c.message("window/showMessageRequest", nth=count[0] - 1), file

    for what, reply, outcome in [
            ("null", lambda q: None, ("refused",)), ("the first action", lambda q: {"title": q["params"]["actions"][0]["title"]}, ("refused", "rejected")),
            ("an unknown title", lambda q: {"title": "nonsense"}, ("refused",)), ("no title", lambda q: {}, ("refused",)),
            ("a text", lambda q: title(q, "allow this once"), ("refused",)), ("a title in capitals", lambda q: {"title": title(q, "allow this once").upper()}, ("refused",)),
            ("the action that allows", lambda q: {"title": title(q, "allow this once")}, ("completed", "allowed-once")),
            ("with fields of its own", lambda q: {"title": title(q, "allow this once"), "index": 0, "isCloseAffordance": True}, ("completed", "allowed-once"))]:
        pending, asked, file = ask()
        message = asked["params"]["message"]
        if what == "null":
            t.check("the message shows command, folder and justification", all(x in message for x in ("touch '%s'" % file, world.workspace, "why not")), message)
        c.reply(asked, reply(asked))
        result = pending.result()
        t.equal(what, ((result["status"], result["approval"]["outcome"])[:len(outcome)], os.path.exists(file)), (outcome, outcome[0] == "completed"))
    pending, asked, file = ask()
    pending.cancel()
    t.equal("a question that is cancelled", pending.result()["status"], "cancelled")
    t.equal("is cancelled by $/cancelRequest", c.message("$/cancelRequest")["params"], {"id": asked["id"]})
    c.reply(asked, {"title": title(asked, "allow this once")})
    c.call("runCommand", {"command": "true"})
    t.check("a late yes does nothing", not os.path.exists(file))
    foreign = {m["method"] for m in c.log if "method" in m and m["method"].startswith("confine/")}
    t.equal("nothing of the page is sent to it", foreign, set())
    c.close()


@group
def stock_long(t):
    """What does not fit into a message is not asked about."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world, STOCK)
    file = world.path("outside/file")

    def params(middle, **more):
        return {"command": "touch '%s'; : %s; : MIDDLE; : %s; : end" % (file, middle, middle), "sandboxPermissions": "danger-full-access",
                "justification": "why " * 100, **more}

    asked = 0
    for what, request, fits in [("a short command", params("x"), True), ("a long command", params("x" * 15 + "y " * 500), False),
                                ("a long input", params("x", stdin="in " * 500), False), ("a long variable", params("x", env={"A": "b " * 500}), False),
                                ("many variables", params("x", env={"A%d" % n: "b c " * 10 for n in range(30)}), False),
                                ("a command with some room", params("x y " * 20), True)]:
        pending = c.request("runCommand", request)
        if fits:
            message = c.message("window/showMessageRequest", nth=asked)
            asked += 1
            t.check("%s is shown whole" % what, request["command"] in message["params"]["message"], message["params"]["message"])
            c.reply(message, None)
        result = pending.result()
        t.equal(what, (result["status"], result["approval"]["outcome"]), ("refused", "cancelled" if fits else "unavailable"))
        t.equal("%s: questions so far" % what, (len(c.messages("window/showMessageRequest")), os.path.exists(file)), (asked, False))
    c.close()


@group
def stock_commands(t):
    """workspace/executeCommand, for clients that can send nothing else."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world, STOCK)

    def execute(command, *arguments):
        return c.call("workspace/executeCommand", {"command": "confine.server." + command, "arguments": list(arguments)})["runId"]

    def ended(id):
        return c.call("confine/runs/wait", {"runId": id})

    id = execute("run", "echo from a text; printf '\\033[2Jesc'")
    result = ended(id)
    t.equal("run with a text", result["stdout"]["text"], "from a text\n\x1b[2Jesc")
    shown = c.message("window/showMessage")["params"]
    t.check("how it ended is shown, and nothing of the command", shown["message"] and "echo" not in shown["message"] and "from a text" not in shown["message"], shown)
    logged = c.message("window/logMessage", lambda p: "from a text" in p["message"])["params"]["message"]
    t.check("what came is logged, control characters visible", "esc" in logged and not any(unicodedata.category(x) == "Cc" and x != "\n" for x in logged), logged)
    t.equal("run with params", ended(execute("run", {"command": "exit 3", "runId": "mine"}))["exitCode"], 3)
    t.equal("their run id is the run's", ended("mine")["exitCode"], 3)
    execute("run", {"command": "sleep 600", "runId": "slow"})
    t.equal("it is answered at once", ended_now(c, "slow"), "running")
    t.equal("kill by a text", (execute("kill", "slow"), ended("slow")["status"]), ("slow", "cancelled"))
    execute("run", {"command": "sleep 600", "runId": "slower"})
    t.equal("kill by params", (execute("kill", {"runId": "slower"}), ended("slower")["status"]), ("slower", "cancelled"))

    # Escalation.
    file = world.path("outside/file")
    ended(execute("run", {"command": "echo x > '%s'" % file, "runId": "denied"}))
    id = execute("escalate", {"runId": "denied", "sandboxPermissions": "danger-full-access", "justification": "x", "newRunId": "wider"})
    t.equal("escalate answers with the new run", id, "wider")
    asked = c.message("window/showMessageRequest")
    c.reply(asked, {"title": title(asked, "allow this once")})
    t.equal("allowed, it runs", (ended("wider")["exitCode"], os.path.exists(file)), (0, True))
    pending = c.request("workspace/executeCommand", {"command": "confine.server.run", "arguments": [
        {"command": "touch '%s'" % world.path("outside/never"), "sandboxPermissions": "danger-full-access", "justification": "x", "runId": "turned-down"}]})
    t.equal("a run that must be asked about is answered at once", pending.result()["runId"], "turned-down")
    c.reply(c.message("window/showMessageRequest", nth=1), None)
    t.equal("and refused by null", ended("turned-down")["status"], "refused")
    told = c.message("window/showMessage", lambda p: "turned-down" in p["message"])["params"]["message"]
    t.check("nobody is sent to its output, of which there is none", "output" not in told, told)

    # What cannot begin, and what is wrong.
    result = ended(execute("run", {"argv": ["no-such-program"], "runId": "bad"}))
    t.equal("what cannot begin", (result["error"]["code"], result["error"]["data"]["code"]), (-32803, "PROGRAM_NOT_FOUND"))
    for what, params in [("an unknown command", {"command": "confine.server.unknown"}), ("run without argument", {"command": "confine.server.run"}),
                         ("a token that is none", {"command": "confine.server.run", "arguments": ["true"], "workDoneToken": {}}),
                         ("two arguments", {"command": "confine.server.run", "arguments": ["true", "true"]}),
                         ("wrong params", {"command": "confine.server.run", "arguments": [{"command": 7}]}),
                         ("an unknown run", {"command": "confine.server.kill", "arguments": ["none"]}),
                         ("an escalation of nothing", {"command": "confine.server.escalate", "arguments": [{"runId": "none", "sandboxPermissions": "danger-full-access", "justification": "x"}]}),
                         ("a mode that is wider", {"command": "confine.server.run", "arguments": [{"command": "true", "mode": "danger-full-access"}]})]:
        t.wrong_params(c, what, "workspace/executeCommand", params)

    before = len(c.messages("window/showMessage"))
    pending = c.request("workspace/executeCommand", {"command": "confine.server.doctor"})
    c.await_that(pending.done, "an answer to doctor")
    c.message("window/showMessage", nth=before)
    t.check("doctor is shown", True)
    c.close()


def ended_now(c, id):
    return c.call("confine/runs/wait", {"runId": id, "timeoutMs": 0})["status"]


@group
def announced_commands(t):
    """workspace/executeCommand by a client that knows the page: confine/exit tells the end."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world, FULL)
    answer = c.call("workspace/executeCommand", {"command": "confine.server.run", "arguments": [{"command": "echo x", "runId": "one"}], "workDoneToken": "token"})
    t.equal("answered with the id", answer, {"runId": "one"})
    t.equal("confine/exit tells the end", c.message("confine/exit")["params"]["stdout"]["text"], "x\n")
    t.equal("with progress", [m["params"]["value"]["kind"] for m in c.messages("$/progress", lambda p: p["token"] == "token")], ["begin", "end"])
    c.call("workspace/executeCommand", {"command": "confine.server.run", "arguments": [{"argv": ["no-such-program"], "runId": "bad"}]})
    told = c.message("confine/exit", lambda p: p["runId"] == "bad")["params"]
    t.equal("what cannot begin", (told["error"]["data"]["code"], told["modelText"][:7]), ("PROGRAM_NOT_FOUND", "Error: "))
    t.equal("nothing is shown", c.messages("window/showMessage"), [])
    c.close()
