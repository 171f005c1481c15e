"""requestEscalation with additional: stay confined, and add exactly what is named."""

import os
import socket

from group import group
from questions import allow, choose
from world import STOCK

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


class Granting:
    """A run, and what may be added to it."""

    def __init__(self, t, command, settings=WORKSPACE_WRITE, world=None, folder=None):
        self.t, self.world = t, world or t.world(settings)
        self.c = t.open(self.world, folders=[folder or self.world.workspace])
        self.first = self.c.call("runCommand", {"command": command(self.world), "runId": "first"})

    def params(self, additional, **more):
        return {"runId": "first", "additional": additional, "justification": "it is needed", **more}

    def ask(self, additional, **more):
        seen = len(self.c.messages("confine/requestApproval"))
        pending = self.c.request("requestEscalation", self.params(additional, **more))
        return pending, self.c.message("confine/requestApproval", nth=seen)

    def grant(self, additional, **more):
        pending, asked = self.ask(additional, **more)
        allow(self.c, asked)
        return pending.result()

    def asked(self):
        return len(self.c.messages("confine/requestApproval"))


@group
def grants(t):
    """The narrowest step: hinted at, asked for, given, and nothing more."""
    def touch_all(world):
        os.mkdir(world.path("outside/sub"))
        for name in ("file", "other"):
            with open(world.path("outside/" + name), "w") as file:
                file.write("before\n")
        return "for f in sub/new file other; do echo x >> '%s'/$f; done; mv -f '%s/file' '%s/moved'; true" % ((world.outside,) * 3)

    g = Granting(t, touch_all)
    out = g.world.path("outside/")
    file, other = out + "file", out + "other"
    t.equal("without a grant all is denied", sorted(d["path"] for d in g.first["sandbox"]["denials"] if d["op"] != "rename")[:3], sorted([file, other, out + "sub/new"]))
    hint = g.first["escalation"].get("additional")
    t.check("the hint names what is narrower than a mode", hint and hint.get("write") and not hint.get("network"), g.first["escalation"])

    pending, asked = g.ask({"write": [file]}, newRunId="one-file")
    p = asked["params"]
    t.equal("the question: the same mode, and what is added", (p["kind"], p["mode"], p["wanted"]),
            ("escalation", "workspace-write", {"mode": "workspace-write", "additional": {"write": [file]}}))
    t.check("with a warning of its own", any(file in w for w in p["warnings"]) and file in p["text"], p["warnings"])
    choose(g.c, asked, "reject_once")
    t.equal("refused", pending.result()["status"], "refused")

    pending, asked = g.ask({"write": [file]}, newRunId="file", justification="once more")
    allow(g.c, asked)
    result = pending.result()
    t.equal("allowed, it stays confined", (result["sandbox"]["mode"], result["approval"]["outcome"]), ("workspace-write", "allowed-once"))
    t.equal("the hash is that of the question", result["policyHash"], asked["params"]["policyHash"])
    read = lambda path: open(path).read()  # noqa: E731
    t.equal("the file is written, and nothing else; it cannot be moved", (read(file), read(other), os.listdir(out + "sub"), os.path.exists(out + "moved")),
            ("before\nx\n", "before\n", [], False))
    t.check("what is not granted is denied still", other in [d.get("path") for d in result["sandbox"]["denials"]], result["sandbox"]["denials"])
    t.equal("once is once", g.c.call("runCommand", {"command": "echo x >> '%s'" % file})["sandbox"]["denied"], True)

    asked_before = g.asked()
    t.equal("what it had already needs no question", g.c.call("requestEscalation", g.params({"write": [file]}, runId="file")), result)
    t.equal("nor does reading what is not hidden", g.c.call("requestEscalation", g.params({"read": [file]}, runId="file")), result)
    t.equal("nor writing in the workspace", g.c.call("requestEscalation", g.params({"write": [g.world.workspace]}, runId="file")), result)
    t.equal("nobody was asked", g.asked(), asked_before)

    result = g.grant({"write": [out + "sub"]}, runId="file", newRunId="both")
    t.equal("a grant stays with what is asked for from it", (read(file), os.listdir(out + "sub"), read(other)), ("before\nx\nx\n", ["new"], "before\n"))
    result = g.grant({"write": [out]}, runId="both", newRunId="all")
    t.equal("a folder with everything in it", (os.path.exists(out + "moved"), read(other)), (True, "before\nx\n"))
    t.equal("then nothing is denied", (result["sandbox"]["denied"], "escalation" in result), (False, False))
    g.c.close()


@group
def grants_wrong(t):
    """-32602 without a question."""
    g = Granting(t, lambda world: "echo x > '%s/new'" % world.outside)
    world = g.world
    fifo, sock, link = world.path("outside/fifo"), world.path("outside/socket"), world.path("outside/link")
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(world.outside, os.O_PATH)
        listener.bind("/proc/self/fd/%d/socket" % folder)  # its path may be too long for a socket
        os.close(folder)
        os.symlink("/", link)
        wrong = [("nothing", {}), ("network that is false", {"network": False}), ("empty lists", {"write": [], "read": []}),
                 ("a relative path", {"write": ["outside/new"]}), ("an empty path", {"write": [""]}), ("a NUL byte", {"write": [world.outside + "/a\0b"]}),
                 ("17 paths", {"write": ["%s/%d" % (world.outside, n) for n in range(17)]}), ("a path of 5000 bytes", {"write": [world.outside + "/x" * 2500]}),
                 ("a text", "network"), ("write that is a text", {"write": world.outside}), ("network that is a text", {"network": "yes"})]
        for name, path in [("the root of the file system", "/"), ("the home folder", world.home), ("what lies above it", world.folder),
                           ("confine's settings", world.path("config/confine")), ("confine's state", world.path("state/confine")),
                           ("what holds them", world.path("state")), ("/proc", "/proc"), ("a file of /proc", "/proc/self/mem"), ("/sys", "/sys/kernel"),
                           ("/dev", "/dev/null"), ("a socket", sock), ("a FIFO", fifo), ("/run", "/run"), ("/tmp itself", "/tmp"),
                           ("the runtime folder", world.path("run")), ("a link to the root", link), ("dots that lead to the root", world.outside + "/../" * 20)]:
            wrong.append(("writing " + name, {"write": [path]}))
        for name, path in [("confine's state", world.path("state/confine")), ("a socket", sock), ("the runtime folder", world.path("run"))]:
            wrong.append(("reading " + name, {"read": [path]}))
        for what, additional in wrong:
            t.wrong_params(g.c, what, "requestEscalation", g.params(additional))
    t.wrong_params(g.c, "both mode and additional", "requestEscalation", g.params({"network": True}, sandboxPermissions="danger-full-access"), "additional")
    t.wrong_params(g.c, "neither", "requestEscalation", {"runId": "first", "justification": "x"})
    t.wrong_params(g.c, "no justification", "requestEscalation", {"runId": "first", "additional": {"network": True}}, "justification")
    t.wrong_params(g.c, "additional of runCommand is not known", "requestEscalation", g.params({"network": True}, runId="none"), "none")
    t.equal("nobody was asked", g.asked(), 0)
    g.c.close()

    c = t.open(t.world('sandbox_mode = "danger-full-access"\n'))
    result = c.call("runCommand", {"command": "true", "runId": "first"})
    t.equal("where nothing is confined there is nothing to add",
            c.call("requestEscalation", {"runId": "first", "additional": {"network": True}, "justification": "x"}), result)
    c.close()


@group
def grants_resolved(t):
    """Links, files that are not there yet, and what changes before the answer."""
    g = Granting(t, lambda world: "echo x > '%s/link/new'" % world.outside)
    out = g.world.path("outside/")
    os.mkdir(out + "real")
    os.symlink(out + "real", out + "link")
    pending, asked = g.ask({"write": [out + "link"]})
    t.equal("links are followed before the question", asked["params"]["wanted"]["additional"], {"write": [out + "real"]})
    os.remove(out + "link")
    os.mkdir(out + "link")
    allow(g.c, asked)
    pending.result()
    t.equal("and a link that leads elsewhere later opens nothing", (os.listdir(out + "real"), os.listdir(out + "link")), ([], []))

    pending, asked = g.ask({"write": [out + "a/b/c"]})
    t.equal("for what does not exist, the nearest folder that does", asked["params"]["wanted"]["additional"], {"write": [out.rstrip("/")]})
    t.check("is named in the question", any(out.rstrip("/") in w and "a/b/c" in w for w in asked["params"]["warnings"]), asked["params"]["warnings"])
    choose(g.c, asked, "reject_once")
    pending.result()

    os.mkdir(out + "changing")
    pending, asked = g.ask({"write": [out + "changing"]}, newRunId="changed")
    os.rename(out + "changing", out + "moved")
    os.mkdir(out + "changing")
    allow(g.c, asked)
    error = pending.error()
    t.equal("what is another folder by then", (error.code, error.data.get("code"), error.data.get("path")), (-32803, "GRANT_CHANGED", out + "changing"))
    t.equal("nothing ran", g.c.messages("confine/exit", lambda p: p["runId"] == "changed"), [])
    g.c.close()


@group
def grants_protected(t):
    """What is protected, and files in read-only mode."""
    world = t.world(WORKSPACE_WRITE)
    g = Granting(t, lambda world: "git config user.name Peer && echo done", world=world, folder=world.worktree())
    t.check("the settings of a repository are protected", g.first["sandbox"]["denied"] and "done" not in g.first["stdout"]["text"], g.first["modelText"])
    hint = g.first["escalation"].get("additional")
    t.equal("the hint names what holds them", hint, {"write": [world.path("main/.git")]})
    result = g.grant(hint)
    t.equal("the hint can be sent as it is, and helps", (result["exitCode"], result["stdout"]["text"], result["sandbox"]["mode"]), (0, "done\n", "workspace-write"))
    g.c.close()

    g = Granting(t, lambda world: "echo x > yes; echo x > no; true", settings="")
    open(g.world.path("workspace/yes"), "w").close()
    result = g.grant({"write": [g.world.path("workspace/yes")]})
    t.equal("a file in read-only mode", (result["sandbox"]["mode"], os.path.getsize(g.world.path("workspace/yes")), os.path.exists(g.world.path("workspace/no"))),
            ("read-only", 2, False))
    g.c.close()


@group
def grants_network(t):
    """The network alone. It must not leave this machine, so a port of localhost has to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        g = Granting(t, lambda world: "exec 3<>/dev/tcp/127.0.0.1/%d && echo connected; echo x > '%s/new'" % (port, world.outside))
        t.equal("without a grant nobody is reached", "connected" in g.first["stdout"]["text"], False)
        pending, asked = g.ask({"network": True})
        t.equal("the question", asked["params"]["wanted"], {"mode": "workspace-write", "additional": {"network": True}})
        allow(g.c, asked)
        result = pending.result()
    t.equal("then it is", (result["stdout"]["text"], result["sandbox"]["facets"]["network"]["state"]), ("connected\n", "open"))
    t.equal("and nothing else", (result["sandbox"]["denied"], os.listdir(g.world.outside)), (True, []))
    if t.namespaces(g.c, "a connection that is observed"):
        refused = g.c.call("runCommand", {"command": "echo > /dev/tcp/192.0.2.1/9", "runId": "far"})
        t.equal("the hint for a connection", refused["escalation"].get("additional"), {"network": True})
    g.c.close()


@group
def grants_shown(t):
    """Paths that do not fit into text, and refusals of one step after the other."""
    g = Granting(t, lambda world: "echo x > '%s/new'" % world.outside)
    paths = [g.world.path("outside/%d-%s" % (n, "long" * 50)) for n in range(16)]
    for path in paths:
        os.mkdir(path)
    pending, asked = g.ask({"write": paths})
    p = asked["params"]
    t.equal("the question names all", p["wanted"]["additional"]["write"], paths)
    t.check("and says how much text has no room for", p.get("unshown", 0) >= sum(path not in p["text"] for path in paths) > 0, p.get("unshown"))
    choose(g.c, asked, "reject_once")
    pending.result()
    for path in paths[:5]:
        pending, asked = g.ask({"write": [path]})
        t.check("a question that fits says nothing of room", "unshown" not in asked["params"])
        choose(g.c, asked, "reject_once")
        pending.result()
    result = g.c.call("requestEscalation", g.params({"write": [paths[5]]}))
    t.equal("after six refusals in a row nobody is asked about the command", (result["status"], result["approval"]["by"], g.asked()), ("refused", "memory", 6))
    g.c.close()


@group
def grants_stock(t):
    """By a message: only if all of the paths fit into it whole."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world, STOCK)
    file = world.path("outside/file")
    c.call("runCommand", {"command": "echo x > '%s'" % file, "runId": "first"})
    pending = c.request("requestEscalation", {"runId": "first", "additional": {"write": [world.outside]}, "justification": "x"})
    asked = c.message("window/showMessageRequest")
    t.check("the message names the path", world.outside in asked["params"]["message"], asked["params"]["message"])
    c.reply(asked, {"title": next(a["title"] for a in asked["params"]["actions"] if "once" in a["title"])})
    t.equal("allowed, it runs", (pending.result()["exitCode"], os.path.exists(file)), (0, True))
    paths = [world.path("outside/%d-%s" % (n, "long" * 50)) for n in range(16)]
    for path in paths:
        os.mkdir(path)
    result = c.call("requestEscalation", {"runId": "first", "additional": {"write": paths}, "justification": "x"})
    t.equal("too many to show", (result["status"], result["approval"]["outcome"]), ("refused", "unavailable"))
    t.equal("nobody was asked", len(c.messages("window/showMessageRequest")), 1)
    c.close()
