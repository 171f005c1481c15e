"""Questions: what is asked, every way to answer, and that only a clear yes is one."""

import datetime
import os

from group import group
from questions import allow, choose, option
from world import FULL, folder

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


class Asking:
    """Asks for commands that leave a file outside the workspace if they run."""

    def __init__(self, t, settings=WORKSPACE_WRITE, capabilities=FULL, **options):
        self.t, self.world, self.count = t, t.world(settings, **options), 0
        self.c = t.open(self.world, capabilities)

    def ask(self, **params):
        """A new command, its request, and the question about it."""
        self.count += 1
        self.file = self.world.path("outside/ran-%d" % self.count)
        seen = len(self.c.messages("confine/requestApproval"))
        pending = self.c.request("runCommand", {
            "command": "touch '%s'" % self.file, "sandboxPermissions": "danger-full-access", "justification": "because it is tried", **params})
        return pending, self.c.message("confine/requestApproval", nth=seen)

    def ran(self):
        return os.path.exists(self.file)


@group
def questions_shown(t):
    """What a question says."""
    a = Asking(t)
    pending, asked = a.ask(runId="shown", env={"NAME": "value"}, stdin="typed\n", cwd=a.world.outside)
    p = asked["params"]
    t.equal("what would run, and where", {n: p.get(n) for n in ("runId", "kind", "command", "stdin", "env", "cwd", "mode", "wanted", "justification", "evidence")},
            {"runId": "shown", "kind": "command", "command": "touch '%s'" % a.file, "stdin": "typed\\n", "env": ["NAME=value"], "cwd": a.world.outside,
             "mode": "workspace-write", "wanted": {"mode": "danger-full-access"}, "justification": "because it is tried", "evidence": []})
    t.check("title, id and warnings", p["title"] and p["id"] and p["warnings"], p)
    left = datetime.datetime.fromisoformat(p["expiresAt"].replace("Z", "+00:00")) - datetime.datetime.now(datetime.timezone.utc)
    t.check("ten minutes to answer", 500 < left.total_seconds() <= 600, left)
    t.check("text has it all", all(part in p["text"] for part in (p["command"], p["cwd"], p["justification"], "NAME=value", "typed\\n")), p["text"])
    t.check("nothing runs meanwhile", not a.ran() and not pending.done())
    allow(a.c, asked)
    result = pending.result()
    t.equal("the hash is that of the policy in force", result["policyHash"], p["policyHash"])
    t.equal("with the environment and input asked for", (result["exitCode"], a.ran(), result["sandbox"]), (0, True, {"mode": "danger-full-access", "denied": False}))

    # Nothing is hidden.
    tricky = "echo a\necho \x1b[2J\u202eb\u200b\u00ad\ufeff\U000e0041 \u2028'\r\t'"
    pending, asked = a.ask(command=tricky, justification="one\ntwo\u202e", env={"X": "a\nb"}, stdin="\x1b\n")
    p = asked["params"]
    t.equal("control and invisible characters are escapes", p["command"],
            "echo a\\necho \\u{1B}[2J\\u{202E}b\\u{200B}\\u{AD}\\u{FEFF}\\u{E0041} \\u{2028}'\\r\\t'")
    t.equal("in the justification, environment and input too", (p["justification"], p["env"], p["stdin"]),
            ("one\\ntwo\\u{202E}", ["X=a\\nb"], "\\u{1B}\\n"))
    choose(a.c, asked, "reject_once")
    pending.result()
    many = " ".join(str(n) for n in range(10000))
    pending, asked = a.ask(command="echo begin %s MIDDLE %s end" % (many, many))
    p = asked["params"]
    t.check("of a long command both ends are shown", p["command"].startswith("echo begin 0 1 2 3 ") and p["command"].endswith(" 9999 end")
            and "MIDDLE" not in p["command"] and 64 << 10 <= len(p["command"]) < (64 << 10) + 500, len(p["command"]))
    t.check("and a warning says so", len(p["warnings"]) > 1, p["warnings"])
    choose(a.c, asked, "reject_once")
    pending.result()
    pending, asked = a.ask(command="true%s; rm -r x" % (" " * 5000))
    p = asked["params"]
    t.check("padding is folded", p["command"].endswith("; rm -r x") and len(p["command"]) < 100, p["command"])
    choose(a.c, asked, "reject_once")
    pending.result()
    a.c.close()


@group
def questions_wanted(t):
    """What is asked for, measured from what is in force."""
    a = Asking(t)
    for what, params, mode, wanted in [
            ("a mode narrower than configured", {"mode": "read-only", "sandboxPermissions": "workspace-write"}, "read-only", {"mode": "workspace-write", "additional": {"write": [a.world.workspace]}}),
            ("the network as well", {"mode": "read-only", "sandboxPermissions": "workspace-write", "network": True}, "read-only",
             {"mode": "workspace-write", "additional": {"write": [a.world.workspace], "network": True}}),
            ("network where all is open", {"network": True}, "workspace-write", {"mode": "danger-full-access"})]:
        pending, asked = a.ask(**params)
        t.equal(what, (asked["params"]["mode"], asked["params"]["wanted"]), (mode, wanted))
        allow(a.c, asked)
        result = pending.result()
        confined = wanted["mode"] == "workspace-write"
        t.equal("%s: then it runs so" % what, (result["sandbox"]["mode"], result["sandbox"]["denied"], a.ran()), (wanted["mode"], confined, not confined))
        if "network" in params and confined:
            t.equal("the network is open then", result["sandbox"]["facets"]["network"]["state"], "open")
    a.c.close()


@group
def questions_answered(t):
    """Every answer. Whatever is not a clear yes is a refusal."""
    a = Asking(t)

    def answer(what, reply, outcome, by, status="refused"):
        pending, asked = a.ask()
        reply(asked)
        result = pending.result()
        got = result["status"], result["approval"]["outcome"], result["approval"]["by"], a.ran()
        t.equal(what, got, (status, outcome, by, status == "completed"))
        if what == "reject_once":
            t.equal("a refused run has the hash that was asked for", result["policyHash"], asked["params"]["policyHash"])
        return result

    def result(value):
        return lambda asked: a.c.reply(asked, value)

    answer("allow_once", lambda asked: allow(a.c, asked), "allowed-once", "person", "completed")
    answer("reject_once", lambda asked: choose(a.c, asked, "reject_once"), "rejected", "person")
    answer("cancelled", result({"outcome": {"outcome": "cancelled"}}), "cancelled", "person")
    yes = lambda asked: option(asked, "allow_once")["optionId"]  # noqa: E731
    for what, reply in [
            ("null", lambda q: None), ("true", lambda q: True), ("a text", lambda q: "allow-once"), ("an empty object", lambda q: {}),
            ("the option id alone", lambda q: {"optionId": yes(q)}), ("an outcome that is a text", lambda q: {"outcome": "selected", "optionId": yes(q)}),
            ("no option id", lambda q: {"outcome": {"outcome": "selected"}}), ("an unknown option", lambda q: {"outcome": {"outcome": "selected", "optionId": "nonsense"}}),
            ("the option in capitals", lambda q: {"outcome": {"outcome": "selected", "optionId": yes(q).upper()}}),
            ("the name of the option", lambda q: {"outcome": {"outcome": "selected", "optionId": option(q, "allow_once")["name"]}}),
            ("an unknown outcome", lambda q: {"outcome": {"outcome": "allowed", "optionId": yes(q)}}),
            ("an outcome in capitals", lambda q: {"outcome": {"outcome": "Selected", "optionId": yes(q)}}),
            ("cancelled with an option", lambda q: {"outcome": {"outcome": "cancelled", "optionId": yes(q)}}),
            ("an array", lambda q: [{"outcome": {"outcome": "selected", "optionId": yes(q)}}]),
            ("an option id that is an array", lambda q: {"outcome": {"outcome": "selected", "optionId": [yes(q)]}})]:
        answer(what, lambda asked: a.c.reply(asked, reply(asked)), "unavailable", "default")
    for code in (-32603, -32800, -32602, 1):
        answer("error %d" % code, lambda asked: a.c.reply_error(asked, code), "unavailable", "default")
    answer("a yes after all that", lambda asked: allow(a.c, asked), "allowed-once", "person", "completed")

    # A yes to another question is none to this.
    one, first = a.ask()
    file = a.file
    two, second = a.ask()
    a.c.reply(second, {"outcome": {"outcome": "cancelled"}})
    t.equal("two questions at once: the second is answered", two.result()["approval"]["outcome"], "cancelled")
    t.check("the first still waits", not one.done())
    allow(a.c, second)  # once more, and too late
    allow(a.c, first)
    t.equal("then the first", (one.result()["exitCode"], os.path.exists(file), a.ran()), (0, True, False))
    a.c.close()


@group
def questions_remembered(t):
    """allow_always and what was refused before."""
    a = Asking(t)
    pending, asked = a.ask()
    t.check("an option that lasts says how long", option(asked, "allow_always").get("scope") and "session" in option(asked, "allow_always")["name"], asked["params"]["options"])
    choose(a.c, asked, "allow_always")
    result = pending.result()
    t.equal("allowed for the session", (result["approval"]["outcome"], result["approval"]["by"], a.ran()), ("allowed-session", "person", True))
    same = {"command": "touch '%s'" % a.file, "sandboxPermissions": "danger-full-access", "justification": "because it is tried"}
    os.remove(a.file)
    result = a.c.call("runCommand", same)
    t.equal("the same command again", (result["approval"]["by"], result["approval"]["outcome"], a.ran()), ("grant", "allowed-session", True))
    t.equal("was not asked about", len(a.c.messages("confine/requestApproval")), 1)
    def asked_again(**change):
        """Whether this is asked about; if so the question is dismissed, which nothing remembers."""
        seen = len(a.c.messages("confine/requestApproval"))
        pending = a.c.request("runCommand", {**same, **change})
        a.c.await_that(lambda: pending.done() or len(a.c.messages("confine/requestApproval")) > seen, "a question or an answer")
        if pending.done():
            return False
        a.c.reply(a.c.messages("confine/requestApproval")[seen], {"outcome": {"outcome": "cancelled"}})
        pending.result()
        return True

    other = {"a command with one more blank": {"command": same["command"] + " "}, "another folder": {"cwd": a.world.outside},
             "another environment": {"env": {"A": "b"}}, "another input": {"stdin": "x"}, "another session": {"session": "other"},
             "another policy": {"mode": "read-only", "sandboxPermissions": "workspace-write"}}
    for what, change in other.items():
        t.check("allowed for the session, not for %s" % what, asked_again(**change))
    t.check("but for another justification", not asked_again(justification="another"))

    pending, asked = a.ask()
    same["command"] = "touch '%s'" % a.file
    choose(a.c, asked, "reject_once")
    pending.result()
    result = a.c.call("runCommand", same)
    t.equal("what was refused is refused again", (result["status"], result["approval"]["outcome"], result["approval"]["by"]), ("refused", "rejected", "memory"))
    for what, change in {**other, "another justification": {"justification": "another"}}.items():
        t.check("refused, but asked again for %s" % what, asked_again(**change))
    t.check("and when the question was only dismissed", asked_again(justification="third"))
    t.check("three refusals or dismissals are the last word", not asked_again(justification="fourth"))
    a.c.close()


@group
def questions_withdrawn(t):
    """Questions that need no answer any more, and answers that come all the same."""
    a = Asking(t)
    pending, asked = a.ask(runId="cancelled")
    pending.cancel()
    result = pending.result()
    t.equal("a run cancelled while it is asked about", (result["status"], result["approval"]["outcome"] if "approval" in result else None), ("cancelled", "cancelled"))
    t.equal("the question is withdrawn", a.c.message("confine/approvalWithdrawn")["params"], {"id": asked["params"]["id"], "reason": "cancelled"})
    t.equal("and cancelled", a.c.message("$/cancelRequest")["params"], {"id": asked["id"]})
    allow(a.c, asked)
    pending, other = a.ask()
    t.check("a late yes does nothing", not os.path.exists(a.world.path("outside/ran-1")) and other["params"]["id"] != asked["params"]["id"])
    choose(a.c, other, "reject_once")
    pending.result()

    # Folders.
    outside = folder(a.world.outside)
    a.c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [outside], "removed": []}})
    pending, asked = a.ask(cwd=a.world.outside, sandboxPermissions="workspace-write", mode="read-only")
    a.c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [outside]}})
    a.c.message("confine/approvalWithdrawn", lambda p: p["id"] == asked["params"]["id"])
    t.check("removing a folder withdraws questions about it", True)
    allow(a.c, asked)
    t.equal("its command does not run", (pending.result()["status"] != "completed", a.ran()), (True, False))

    # The folder of the command is another one by the time of the answer.
    real, link = a.world.path("workspace/real"), a.world.path("workspace/link")
    os.mkdir(real)
    os.symlink(real, link)
    pending, asked = a.ask(cwd=link)
    t.equal("links in cwd are resolved", asked["params"]["cwd"], real)
    os.rename(real, real + "-moved")
    os.mkdir(real)
    allow(a.c, asked)
    t.equal("a folder that was exchanged", pending.error().data.get("code"), "BAD_WORKING_DIRECTORY")
    t.check("nothing ran there", not a.ran())

    pending, asked = a.ask()
    a.c.wire.close_input()
    a.c.wire.wait()
    t.check("a closed editor is no yes", not a.ran())


@group
def questions_expired(t):
    """No answer in time. Needs a confine that waits two seconds only."""
    program = os.environ.get("CONFINE_HASTY_BIN")
    if not program:
        t.skip("no answer in time", "CONFINE_HASTY_BIN is not set")
        return
    a = Asking(t, program=program)
    pending, asked = a.ask()
    result = pending.result()
    t.equal("no answer is a refusal", (result["status"], result["approval"]["outcome"], result["approval"]["by"], a.ran()), ("refused", "timed-out", "default", False))
    t.equal("the question is withdrawn", a.c.message("confine/approvalWithdrawn")["params"], {"id": asked["params"]["id"], "reason": "expired"})
    t.equal("and cancelled", a.c.message("$/cancelRequest")["params"], {"id": asked["id"]})
    allow(a.c, asked)
    t.equal("a late yes does nothing", (a.c.call("runCommand", {"command": "true"})["exitCode"], a.ran()), (0, False))
    a.c.close()


@group
def questions_never(t):
    """approval_policy = "never"."""
    world = t.world(WORKSPACE_WRITE + 'approval_policy = "never"\n')
    c = t.open(world)
    result = c.call("runCommand", {"command": "touch ran", "sandboxPermissions": "danger-full-access", "justification": "x"})
    t.equal("is a refusal without a question", (result["status"], result["approval"]["by"], world.has("workspace/ran")), ("refused", "policy", False))
    t.equal("nobody was asked", c.messages("confine/requestApproval"), [])
    t.equal("what is allowed runs", c.call("runCommand", {"command": "touch ran"})["exitCode"], 0)
    denied = c.call("runCommand", {"command": "echo > '%s/x'" % world.outside, "runId": "denied"})
    t.check("no escalation is offered", denied["sandbox"]["denied"] and "escalation" not in denied, denied)
    result = c.call("requestEscalation", {"runId": "denied", "sandboxPermissions": "danger-full-access", "justification": "x"})
    t.equal("and none given", (result["status"], result["approval"]["by"]), ("refused", "policy"))
    c.close()
