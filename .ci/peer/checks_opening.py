"""Opening: what initialize negotiates, workspace folders, and what capabilities says."""

import os
import time

from group import group
from questions import allow
from world import GIT, STOCK, folder

ALL_COMMANDS = ["confine.server.run", "confine.server.escalate", "confine.server.kill", "confine.server.doctor"]


def announcing(confine):
    return {"experimental": {"confine": confine}}


@group
def initialize(t):
    world = t.world()
    c = t.enter(world.client())
    answer = c.call("initialize", world.params())
    t.equal("the name of the server", answer["serverInfo"]["name"], "confine")
    t.check("the version of the server", answer["serverInfo"].get("version"), answer)
    capabilities = answer["capabilities"]
    t.equal("the commands", capabilities["executeCommandProvider"]["commands"], ALL_COMMANDS)
    t.equal("workspace folders", capabilities["workspace"]["workspaceFolders"], {"supported": True, "changeNotifications": True})
    t.equal("the version of the protocol", capabilities["experimental"]["confine"]["protocolVersion"], 1)
    time.sleep(0.2)
    t.equal("nothing comes before initialized, save answers", len(c.log), 1)
    c.notify("initialized", {})
    c.message("confine/capabilitiesChanged", lambda p: p["state"] == "ready")
    t.check("capabilitiesChanged when probing is done", True)
    c.close()

    # As stock clients write it.
    c = t.enter(world.client())
    c.request("initialize", {"processId": None, "rootUri": None, "workspaceFolders": None, "capabilities": {},
                             "trace": "off", "locale": "en", "clientInfo": {"name": "peer"}}).result()
    c.notify("initialized")
    t.equal("null where LSP allows it", c.call("capabilities", {})["roots"], [])
    c.close()
    c = t.open(world, folders=[], rootUri="file://" + world.workspace)
    t.equal("rootUri alone is the folder", c.call("capabilities", {})["roots"], [world.workspace])
    c.close()
    c = t.open(world, rootUri="file://" + world.outside)
    t.equal("workspaceFolders come before rootUri", c.call("capabilities", {})["roots"], [world.workspace])
    c.close()


@group
def announcements(t):
    """What a client announces decides what it is sent."""
    settings = 'sandbox_mode = "workspace-write"\n'
    cases = [("a higher version", announcing({"protocolVersion": 7, "approval": True, "output": True}), True, True, True),
             ("version 1 and nothing else", announcing({"protocolVersion": 1}), True, False, False),
             ("approval without output", announcing({"protocolVersion": 1, "approval": True}), True, True, False),
             ("output without approval", announcing({"protocolVersion": 1, "output": True, "approval": False}), True, False, True),
             ("fields of a later version", announcing({"protocolVersion": 2, "approval": True, "output": True, "later": {}}), True, True, True),
             ("version 0", announcing({"protocolVersion": 0, "approval": True, "output": True}), False, False, False),
             ("no version", announcing({"approval": True, "output": True}), False, False, False),
             ("a version that is a text", announcing({"protocolVersion": "1", "approval": True, "output": True}), False, False, False),
             ("an announcement that is a text", announcing("yes"), False, False, False),
             ("experimental that is an array", {"experimental": ["confine"]}, False, False, False),
             ("experimental that is null", {"experimental": None}, False, False, False),
             ("nothing", STOCK, False, False, False)]
    for what, capabilities, known, approval, output in cases:
        world = t.world(settings)
        c = t.open(world, capabilities)
        t.equal("%s: the version answered" % what, c.opened["capabilities"]["experimental"]["confine"]["protocolVersion"], 1)
        pending = c.request("runCommand", {"command": "echo out", "sandboxPermissions": "danger-full-access", "justification": "to see"})
        question = "confine/requestApproval" if approval else "window/showMessageRequest"
        asked = c.message(question)
        c.reply(asked, None)
        t.equal("%s: asked by %s" % (what, question), pending.result()["status"], "refused")
        c.call("runCommand", {"command": "echo out"})
        t.equal("%s: confine/output" % what, bool(c.messages("confine/output")), output)
        t.equal("%s: confine/exit" % what, bool(c.messages("confine/exit")), known)
        c.close()


@group
def folders(t):
    """workspace/didChangeWorkspaceFolders, and folders that are refused as roots."""
    world = t.world('sandbox_mode = "workspace-write"\n')
    file = world.path("file")
    open(file, "w").close()
    refused = {"that does not exist": world.path("missing"), "that is the root of the file system": "/",
               "that is the home folder": world.home, "above the home folder": world.folder,
               "that holds confine's state": world.path("state"), "that holds its settings": world.path("config"),
               "that is a file": file}
    c = t.enter(world.client())
    opened = c.call("initialize", world.params(folders=[world.workspace] + list(refused.values())))
    time.sleep(0.1)
    t.equal("refused folders are not told before initialized", len(c.log), 1)
    c.notify("initialized", {})
    first = {r["uri"]: r["reason"] for r in opened["capabilities"]["experimental"]["confine"].get("refusedRoots", [])}
    answer = c.call("capabilities", {})
    t.equal("the roots", answer["roots"], [world.workspace])
    skipped = c.call("runCommand", {"command": "true", "cwd": world.workspace})["sandbox"].get("skippedRoots", [])
    told = lambda path: c.messages("window/logMessage", lambda p: path in p["message"])  # noqa: E731
    for what, path in refused.items():
        uri = folder(path)["uri"]
        t.check("a folder %s is refused" % what, first.get(uri), first)
        t.check("a folder %s is in capabilities" % what, uri in [r["uri"] for r in answer["refusedRoots"]], answer["refusedRoots"])
        t.check("a folder %s is told" % what, told(path), c.log[-3:])
        t.check("a folder %s is in skippedRoots" % what, path in skipped, skipped)
    c.close()

    c = t.open(world)
    before = len(c.messages("confine/capabilitiesChanged"))
    write = {"command": "echo new > '%s/new'" % world.outside, "cwd": world.workspace}
    t.equal("what is no folder yet is not writable", c.call("runCommand", write)["sandbox"]["denied"], True)
    c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder(world.outside)], "removed": []}})
    t.equal("a folder that was added is writable", c.call("runCommand", write)["exitCode"], 0)
    c.message("confine/capabilitiesChanged", nth=before)
    t.check("capabilitiesChanged when folders change", True)
    t.wrong_params(c, "with two folders, cwd is required", "runCommand", {"command": "true"}, "cwd")
    c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder(world.outside)]}})
    t.equal("a folder that was removed is not", c.call("runCommand", write)["sandbox"]["denied"], True)
    link = world.path("link")
    os.symlink(world.outside, link)
    c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder(link)], "removed": []}})
    t.equal("roots are canonical", c.call("capabilities", {})["roots"], [world.workspace, world.outside])
    for uri in ("https://example.test/x", "untitled:x", "file://elsewhere.example.test" + world.home, "vscode-remote://host" + world.outside):
        c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder(uri)], "removed": []}})
        answer = c.call("capabilities", {})
        t.equal("%s is no root" % uri, answer["roots"], [world.workspace, world.outside])
        t.check("%s is refused" % uri, uri in [r["uri"] for r in answer["refusedRoots"]], answer["refusedRoots"])
        c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder(uri)]}})
    c.notify("workspace/didChangeWorkspaceFolders", {"nonsense": 1}, valid=False)
    c.notify("workspace/didChangeWorkspaceFolders", valid=False)
    t.equal("a change that cannot be read changes nothing", c.call("capabilities", {})["roots"], [world.workspace, world.outside])
    space = world.path("a b\u00e4")
    os.mkdir(space)
    c.notify("workspace/didChangeWorkspaceFolders", {"event": {
        "added": [{"uri": "file://" + world.path("a%20b%C3%A4"), "name": "x"}], "removed": [folder(world.workspace), folder(link)]}})
    t.equal("percent signs in a URI", c.call("capabilities", {})["roots"], [space])
    t.equal("with one folder, cwd is that", c.call("runCommand", {"command": "pwd"})["stdout"]["text"], space + "\n")
    c.close()


@group
def no_folder(t):
    world = t.world('sandbox_mode = "workspace-write"\n')
    c = t.open(world, folders=[])
    result = c.call("runCommand", {"command": "pwd; touch x"})
    t.equal("without a folder, cwd is the home folder", result["stdout"]["text"], world.home + "\n")
    t.equal("a configured workspace-write runs as read-only", result["sandbox"]["mode"], "read-only")
    t.equal("and writes nothing", (result["sandbox"]["denied"], os.listdir(world.home)), (True, []))
    t.wrong_params(c, "asking for workspace-write by mode", "runCommand", {"command": "true", "mode": "workspace-write"})
    t.wrong_params(c, "asking for workspace-write by sandboxPermissions", "runCommand",
                   {"command": "true", "sandboxPermissions": "workspace-write", "justification": "x"})
    t.check("workspace-write is not offered", "workspace-write" not in result["escalation"]["targets"], result["escalation"])
    pending = c.request("runCommand", {"command": "touch x", "sandboxPermissions": "danger-full-access", "justification": "x"})
    asked = c.message("confine/requestApproval")
    t.equal("what is in force is read-only", asked["params"]["mode"], "read-only")
    allow(c, asked)
    t.equal("what a person grants runs", (pending.result()["exitCode"], os.listdir(world.home)), (0, ["x"]))
    c.close()


@group
def worktree(t):
    """A root that is a linked worktree can be committed in."""
    world = t.world('sandbox_mode = "workspace-write"\n')
    linked = world.worktree()
    c = t.open(world, folders=[linked])
    result = c.call("runCommand", {"argv": GIT + ["commit", "-q", "--allow-empty", "-m", "second"]})
    t.equal("a commit in a linked worktree", (result["exitCode"], result["modelText"]), (0, "(no output)"))
    result = c.call("runCommand", {"command": "echo x > '%s/new'" % world.path("main")})
    t.equal("its main worktree is not writable", result["sandbox"]["denied"], True)
    c.close()


@group
def capabilities(t):
    world = t.world('sandbox_mode = "workspace-write"\n')
    c = t.open(world)
    quick = c.call("capabilities", {})
    if quick["state"] == "probing":
        t.equal("no reports while probing", quick["providers"], [])
    answer = c.call("capabilities", {"wait": True})
    t.equal("wait answers when probing is done", answer["state"], "ready")
    t.equal("the version is that of initialize", answer["version"], c.opened["serverInfo"]["version"])
    t.equal("a provider", answer["provider"] in [p["provider"] for p in answer["providers"] if p["usable"]], True)
    t.check("what cannot be used says why", all(p.get("reason") for p in answer["providers"] if not p["usable"]), answer["providers"])
    t.check("what can be used was tried", all(p.get("checks") and p.get("facets") for p in answer["providers"] if p["usable"]), answer["providers"])
    settings = {s["key"]: s for s in answer["settings"]}
    t.equal("a setting of the file", settings["sandbox_mode"]["value"], "workspace-write")
    t.check("its origin", settings["sandbox_mode"]["origin"].startswith(world.path("config")), settings)
    t.equal("the origin of a default", settings["network_access"], {"key": "network_access", "value": False, "origin": "default"})
    limits = answer["limits"]
    t.equal("limits the page gives", {n: limits[n] for n in ("defaultTimeoutMs", "maxTimeoutMs", "chunkBytes", "unsentBytes", "finishedRuns", "finishedRunMs")},
            {"defaultTimeoutMs": 120000, "maxTimeoutMs": 600000, "chunkBytes": 65536, "unsentBytes": 1 << 20, "finishedRuns": 128, "finishedRunMs": 3600000})
    t.check("other limits are positive", limits["textBytes"] > 0 and limits["background"] > 0 and limits["sessions"] > 0, limits)
    t.equal("somebody can be asked", answer["canAsk"], True)
    tool(t, "ask", answer["tool"], True)
    t.wrong_params(c, "wait that is no boolean", "capabilities", {"wait": "yes"}, "wait")
    c.close()

    for settings in ('approval_policy = "never"\n', 'sandbox_mode = "danger-full-access"\n', 'sandbox_mode = "external-sandbox"\n'):
        c = t.open(t.world(settings))
        answer = c.call("capabilities", {"wait": True})
        tool(t, settings.strip(), answer["tool"], False)
        if "never" in settings:
            t.equal("under never, nobody can be asked", answer["canAsk"], False)
        c.close()

    # A client that cannot answer is found out by its first -32601.
    c = t.open(t.world())
    pending = c.request("runCommand", {"command": "true", "sandboxPermissions": "danger-full-access", "justification": "x"})
    c.reply_error(c.message("confine/requestApproval"), -32601)
    t.equal("-32601 is a refusal", pending.result()["status"], "refused")
    answer = c.call("capabilities", {})
    t.equal("then nobody can be asked", answer["canAsk"], False)
    tool(t, "after -32601", answer["tool"], False)
    again = c.call("runCommand", {"command": "true", "sandboxPermissions": "danger-full-access", "justification": "x"})
    t.equal("nor is anybody", (again["status"], len(c.messages("confine/requestApproval"))), ("refused", 1))
    denied = c.call("runCommand", {"command": "echo > '%s/x'" % c.call("capabilities", {})["roots"][0]})
    t.check("nor is an escalation offered", denied["sandbox"]["denied"] and "escalation" not in denied, denied)
    c.close()


def tool(t, what, tool, asks):
    """The shell tool for an agent."""
    plain = {"command", "description", "workdir", "timeoutMs", "run_in_background"}
    wanted = plain | ({"sandbox_permissions", "justification"} if asks else set())
    t.equal("%s: the tool's arguments" % what, set(tool["inputSchema"]["properties"]), wanted)
    t.equal("%s: each is mapped" % what, {a["name"] for a in tool["arguments"]}, wanted)
    fields = {a["name"]: a.get("field") for a in tool["arguments"]}
    known = {"command": "command", "description": None, "workdir": "cwd", "timeoutMs": "timeoutMs", "run_in_background": "background",
             "sandbox_permissions": "sandboxPermissions", "justification": "justification"}
    t.equal("%s: to fields of runCommand" % what, fields, {name: known[name] for name in wanted})
    t.check("%s: it names no mode" % what, "read-only" not in tool["description"] and "external-sandbox" not in tool["description"], tool["description"])
