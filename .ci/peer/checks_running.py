"""runCommand: its params, who may ask for what without a question, and how commands end."""

import os
import time

from group import group, lock_of, wait_free, wait_held

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'


def stdout(result):
    return result["stdout"]["text"]


@group
def command(t):
    """command, argv, runId, env, stdin, cwd."""
    world = t.world(WORKSPACE_WRITE, env={"AWS_SECRET_ACCESS_KEY": "secret", "LD_PRELOAD": "/nowhere.so", "CONFINE_SANDBOX_MODE": ""})
    del world.env["CONFINE_SANDBOX_MODE"]
    c = t.open(world)

    def run(**params):
        return c.call("runCommand", params)

    t.equal("command is given to bash", stdout(run(command="echo $BASH_VERSION | wc -w; echo \"$0\" \"$#\"")), "1\nbash 0\n")
    t.equal("argv needs no shell", stdout(run(argv=["printf", "%s|", "$HOME", "a b", "", "*"])), "$HOME|a b||*|")
    long = run(command="echo %s | wc -c" % ("x" * 300000))
    t.equal("a command of any length", stdout(long), "300001\n")
    t.equal("the stream of errors is told apart", run(command="echo a >&2; echo b")["stderr"]["text"], "a\n")
    for what, params in [("neither command nor argv", {}), ("an empty command", {"command": ""}), ("both", {"command": "true", "argv": ["true"]}), ("an empty argv", {"argv": []}),
                         ("a NUL byte in command", {"command": "echo \0"}), ("a NUL byte in argv", {"argv": ["echo", "\0"]})]:
        t.wrong_params(c, what, "runCommand", params)
    for what, params in [("command", {"command": 7}), ("argv", {"argv": "true"}), ("runId", {"command": "true", "runId": 7}), ("env", {"command": "true", "env": ["A=b"]}),
                         ("stdin", {"command": "true", "stdin": 1}), ("background", {"command": "true", "background": "no"}),
                         ("timeoutMs", {"command": "true", "timeoutMs": "1"}), ("timeoutMs", {"command": "true", "timeoutMs": 1.5}),
                         ("network", {"command": "true", "network": "no"}), ("mode", {"command": "true", "mode": "wide"}),
                         ("sandboxPermissions", {"command": "true", "sandboxPermissions": "wide", "justification": "x"}), ("cwd", {"command": "true", "cwd": 1})]:
        t.wrong_params(c, "%s is wrong: %r" % (what, params[what]), "runCommand", params, what)
    t.equal("nothing of that ran", c.call("confine/runs/list", {})["runs"][:1][0]["status"], "completed")

    # runId
    t.equal("a run id of 64 characters", run(command="true", runId="aZ_-09" + "x" * 58)["runId"], "aZ_-09" + "x" * 58)
    for id in ("x" * 65, "a b", "a/b", "ä", "a\n"):
        t.wrong_params(c, "the run id %r" % id[:10], "runCommand", {"command": "true", "runId": id}, "runId")
    t.wrong_params(c, "the id of a run that is known", "runCommand", {"command": "true", "runId": "aZ_-09" + "x" * 58}, "runId")
    chosen = [run(command="true")["runId"] for _ in range(3)]
    t.check("an empty text counts as left out", run(command="true", runId="", session="", cwd="")["runId"])
    t.equal("the server chooses fresh ids", len(set(chosen)), 3)

    # env
    result = run(command='echo "$GIVEN|$CONFINE_X|$AWS_SECRET_ACCESS_KEY|$LD_PRELOAD|$LANG"', env={"GIVEN": "a b", "CONFINE_X": "1"})
    t.equal("env is set, CONFINE_ and secrets are dropped", stdout(result), "a b||||C.UTF-8\n")
    t.check("droppedEnv names what was dropped", {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "CONFINE_X"} <= set(result["droppedEnv"]), result["droppedEnv"])
    for name in ("A=B", "", "A\0"):
        t.wrong_params(c, "a variable named %r" % name, "runCommand", {"command": "true", "env": {name: "x"}}, "env")

    # stdin and cwd
    t.equal("stdin is read", stdout(run(command="cat", stdin="a\0b\nä")), "a\0b\nä")
    t.equal("an empty stdin ends at once", stdout(run(command="cat; echo end", stdin="")), "end\n")
    t.equal("the default is /dev/null", stdout(run(command="readlink /proc/self/fd/0")), "/dev/null\n")
    t.equal("cwd is the workspace folder", stdout(run(command="pwd")), world.workspace + "\n")
    t.equal("cwd may be elsewhere", stdout(run(command="pwd", cwd=world.outside)), world.outside + "\n")
    t.wrong_params(c, "a relative cwd", "runCommand", {"command": "true", "cwd": "workspace"}, "cwd")

    # pty
    t.wrong_params(c, "pty", "runCommand", {"command": "true", "pty": True}, "pty")
    t.equal("no pty", run(command="test -t 1")["exitCode"], 1)
    c.close()


@group
def failures(t):
    """-32803: the request was valid and could not be done."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    script = world.path("workspace/script")
    with open(script, "w") as file:
        file.write("echo no\n")
    t.failure(c, "a program that is not found", "runCommand", {"argv": ["no-such-program"]}, "PROGRAM_NOT_FOUND", path="no-such-program")
    t.failure(c, "a path that is not found", "runCommand", {"argv": ["/no/such"]}, "PROGRAM_NOT_FOUND", path="/no/such")
    t.failure(c, "a program that is not executable", "runCommand", {"argv": [script]}, "PROGRAM_NOT_EXECUTABLE", path=script)
    t.failure(c, "a folder that does not exist", "runCommand", {"command": "true", "cwd": "/no/such"}, "BAD_WORKING_DIRECTORY", path="/no/such")
    t.failure(c, "a folder that is a file", "runCommand", {"command": "true", "cwd": script}, "BAD_WORKING_DIRECTORY", path=script)
    t.failure(c, "an argument that is too long", "runCommand", {"argv": ["true", "x" * 200000]}, "ARGUMENT_LIST_TOO_LONG")
    t.failure(c, "a variable that is too long", "runCommand", {"command": "true", "env": {"X": "x" * 200000}}, "ARGUMENT_LIST_TOO_LONG")
    t.equal("a shell that finds no program exits with 127", c.call("runCommand", {"command": "no-such-program"})["exitCode"], 127)
    t.equal("none of them has a confine/exit", len(c.messages("confine/exit")), 1)
    c.close()


@group
def limits(t):
    """TOO_MANY_RUNS and TOO_MANY_SESSIONS."""
    c = t.open(t.world(WORKSPACE_WRITE))
    limit = c.call("capabilities", {})["limits"]
    runs = [c.request("runCommand", {"argv": ["sleep", "600"], "background": True}) for _ in range(limit["background"])]
    ids = [r.result()["runId"] for r in runs]
    t.failure(c, "more background runs than the limit", "runCommand", {"command": "true", "background": True}, "TOO_MANY_RUNS")
    t.equal("others still run", c.call("runCommand", {"command": "true"})["exitCode"], 0)
    c.call("confine/runs/kill", {"runId": ids[0]})
    c.call("confine/runs/wait", {"runId": ids[0]})
    t.equal("and another one when one has ended", c.call("runCommand", {"command": "true", "background": True})["status"], "running")
    c.close()

    # A command that cannot begin uses its session too, and costs little.
    c = t.open(t.world('sandbox_mode = "danger-full-access"\n'))
    codes = []
    for start in range(0, limit["sessions"] + 8, 32):
        batch = [c.request("runCommand", {"argv": ["/no/such"], "session": "s%d" % n}) for n in range(start, start + 32)]
        codes += [pending.error().data["code"] for pending in batch]
    wanted = ["PROGRAM_NOT_FOUND"] * limit["sessions"]
    t.equal("as many sessions as the limit", (codes[:len(wanted)] == wanted, set(codes[len(wanted):])), (True, {"TOO_MANY_SESSIONS"}))
    t.equal("a session that is known goes on", c.call("runCommand", {"command": "true", "session": "s0"})["exitCode"], 0)
    c.close()


@group
def busy(t):
    """SERVER_BUSY: too many requests at once."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    first = c.request("runCommand", {"command": "sleep 600", "runId": "long", "background": True})
    first.result()
    waits = [c.request("confine/runs/wait", {"runId": "long"}) for _ in range(1500)]
    pending = c.request("runCommand", {"command": "touch ran"})
    try:
        error = pending.error()
        t.equal("too many requests at once", (error.code, error.data.get("code")), (-32803, "SERVER_BUSY"))
    except AssertionError as answered:
        t.check("too many requests at once", False, answered)
    waits[0].cancel()
    t.equal("a cancelled one is answered all the same", waits[0].result()["status"], "running")
    t.equal("the command did not run", world.has("workspace/ran"), False)
    c.wire.close_input()
    c.wire.wait()


@group
def unavailable(t):
    """SANDBOX_UNAVAILABLE: a provider that cannot be used, and nothing is asked."""
    world = t.world('sandbox_mode = "workspace-write"\nprovider = "seatbelt"\n')
    c = t.open(world)
    answer = c.call("capabilities", {"wait": True})
    t.equal("the provider is none", answer["provider"], "none")
    error = t.failure(c, "a confined mode", "runCommand", {"command": "touch ran"}, "SANDBOX_UNAVAILABLE",
                      name="SandboxUnavailableError", mode="workspace-write")
    t.check("it says what failed, and what to do", error.data.get("detail") and error.data.get("remedies"), error.data)
    t.check("the sentence that agents know", "workspace-write" in error.message and "sandbox" in error.message, error.message)
    t.failure(c, "a narrower mode", "runCommand", {"command": "touch ran", "mode": "read-only"}, "SANDBOX_UNAVAILABLE", mode="read-only")
    pending = c.request("runCommand", {"command": "touch ran", "mode": "read-only", "sandboxPermissions": "workspace-write", "justification": "x"})
    t.equal("a wider confined mode, without a question", (pending.error().data["code"], c.messages("confine/requestApproval")), ("SANDBOX_UNAVAILABLE", []))
    t.failure(c, "in the background too", "runCommand", {"command": "touch ran", "background": True}, "SANDBOX_UNAVAILABLE")
    t.equal("nothing ran", world.has("workspace/ran"), False)
    pending = c.request("runCommand", {"command": "touch ran", "sandboxPermissions": "danger-full-access", "justification": "x"})
    asked = c.message("confine/requestApproval")
    yes = next(o for o in asked["params"]["options"] if o["kind"] == "allow_once")
    c.reply(asked, {"outcome": {"outcome": "selected", "optionId": yes["optionId"]}})
    t.equal("unconfined by the person's word", (pending.result()["exitCode"], world.has("workspace/ran")), (0, True))
    c.close()


@group
def unrecorded(t):
    """NOT_RECORDED: without a record of the decision the command does not run."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    c.call("capabilities", {"wait": True})
    audit = world.path("state/confine/audit.jsonl")
    if os.path.exists(audit):
        os.remove(audit)
    os.mkdir(audit)
    pending = c.request("runCommand", {"command": "touch ran", "sandboxPermissions": "danger-full-access", "justification": "x"})
    c.await_that(lambda: pending.done() or c.messages("confine/requestApproval"), "a question or an answer")
    for asked in c.messages("confine/requestApproval"):
        yes = next(o for o in asked["params"]["options"] if o["kind"] == "allow_once")
        c.reply(asked, {"outcome": {"outcome": "selected", "optionId": yes["optionId"]}})
    error = pending.error()
    t.equal("an audit file that cannot be written", (error.code, error.data["code"], bool(error.data.get("detail"))), (-32803, "NOT_RECORDED", True))
    t.equal("the command did not run", world.has("workspace/ran"), False)
    c.close()


@group
def widths(t):
    """Who asks for what: what is free, and what is refused without a question."""
    full, outside = "danger-full-access", {"sandboxPermissions": "danger-full-access"}
    c = t.open(t.world(WORKSPACE_WRITE))
    result = c.call("runCommand", {"command": "touch x", "mode": "read-only"})
    t.equal("narrower is free", (result["sandbox"]["mode"], result["sandbox"]["denied"]), ("read-only", True))
    t.equal("no network is free", c.call("runCommand", {"command": "true", "network": False})["exitCode"], 0)
    t.wrong_params(c, "wider by mode alone", "runCommand", {"command": "true", "mode": full}, "mode")
    t.wrong_params(c, "beside by mode alone", "runCommand", {"command": "true", "mode": "external-sandbox"}, "mode")
    t.wrong_params(c, "wider by network alone", "runCommand", {"command": "true", "network": True}, "network")
    t.wrong_params(c, "no justification", "runCommand", {"command": "true", **outside}, "justification")
    t.wrong_params(c, "an empty justification", "runCommand", {"command": "true", "justification": " ", **outside}, "justification")
    for wanted in ("read-only", "external-sandbox"):
        t.wrong_params(c, "sandboxPermissions %s" % wanted, "runCommand", {"command": "true", "sandboxPermissions": wanted, "justification": "x"}, "sandboxPermissions")
    result = c.call("runCommand", {"command": "touch x", "sandboxPermissions": "workspace-write", "justification": "x"})
    t.equal("sandboxPermissions that are nothing wider are ignored",
            (result["exitCode"], result["sandbox"]["mode"], "approval" in result), (0, "workspace-write", False))
    t.equal("nobody was asked", c.messages("confine/requestApproval"), [])
    c.close()

    world = t.world('sandbox_mode = "danger-full-access"\n')
    c = t.open(world)
    outside = world.path("outside/x")
    result = c.call("runCommand", {"command": "touch '%s'" % outside})
    t.equal("danger-full-access confines nothing", (result["exitCode"], os.path.exists(outside)), (0, True))
    t.equal("and says so", result["sandbox"], {"mode": full, "denied": False})
    t.wrong_params(c, "no network where nothing is confined", "runCommand", {"command": "true", "network": False}, "network")
    t.equal("network where nothing is confined", c.call("runCommand", {"command": "true", "network": True})["exitCode"], 0)
    t.equal("narrower is free here too", c.call("runCommand", {"command": "touch '%s'" % outside, "mode": "read-only"})["sandbox"]["denied"], True)
    t.equal("and without network", c.call("runCommand", {"command": "true", "mode": "read-only", "network": False})["exitCode"], 0)
    refused = c.call("runCommand", {"command": "cat /no/such; exit 13"})
    t.equal("a failure there is no denial", ("escalation" in refused, refused["exitCode"]), (False, 13))
    answer = c.call("runCommand", {"command": "true", "background": True, "runId": "back"})
    t.check("sandbox is left out of its background runs", "sandbox" not in answer, answer)
    told = c.message("confine/exit", lambda p: p["runId"] == "back")["params"]
    t.check("at their end too", "sandbox" not in told, told.get("sandbox"))
    c.close()

    c = t.open(t.world('sandbox_mode = "external-sandbox"\n'))
    t.equal("external-sandbox confines nothing", c.call("runCommand", {"command": "true"})["sandbox"], {"mode": "external-sandbox", "denied": False})
    for mode in ("read-only", "workspace-write"):
        t.equal("%s is narrower" % mode, c.call("runCommand", {"command": "true", "mode": mode})["sandbox"]["mode"], mode)
    t.wrong_params(c, "danger-full-access is not", "runCommand", {"command": "true", "mode": full}, "mode")
    c.close()

    c = t.open(t.world(WORKSPACE_WRITE + "network_access = true\n"))
    t.equal("a configured network is free", c.call("runCommand", {"command": "true", "network": True})["exitCode"], 0)
    c.close()


@group
def sessions(t):
    world = t.world(WORKSPACE_WRITE)
    c, other = t.open(world), t.open(world)

    def run(command, client="first", **params):
        return {"first": c, "other": other}[client].call("runCommand", {"command": command, **params})

    run("true", session="one")
    run("true", session="one")
    t.wrong_params(c, "a key of 257 bytes", "runCommand", {"command": "true", "session": "ä" * 128 + "x"}, "session")
    t.equal("a key of 256 bytes", run("true", session="ä" * 128)["exitCode"], 0)
    listed = c.call("confine/runs/list", {"session": "one"})["runs"]
    t.equal("runs of one session", ([r["session"] for r in listed], len(listed)), (["one"] * 2, 2))

    if t.namespaces(c, "a /tmp and a network for each session"):
        own_files(t, run)
        own_network(t, c, world)
    c.close()
    other.close()


def own_files(t, run):
    mark = "/tmp/peer-mark"
    run("echo one > %s" % mark, session="one")
    run("echo connection > %s" % mark)
    t.equal("a session has a /tmp of its own", stdout(run("cat %s" % mark, session="one")), "one\n")
    t.equal("the connection too", stdout(run("cat %s" % mark)), "connection\n")
    t.equal("another session does not see it", run("cat %s" % mark, session="two")["exitCode"], 1)
    t.equal("nor the same key on another connection", run("cat %s" % mark, client="other", session="one")["exitCode"], 1)
    t.check("nor the host", not os.path.exists(mark))
    key = "../../" + "k" * 249
    t.equal("a key is opaque", stdout(run("echo x > %s; cat %s" % (mark, mark), session=key)), "x\n")


def own_network(t, c, world):
    """A server in the background answers the next run of its session, and no other."""
    listen = ("import socket\ns = socket.create_server(('127.0.0.1', 47113))\nopen('listens', 'w').close()\n"
              "while True:\n  a, _ = s.accept()\n  a.sendall(b'hello')\n  a.close()\n")
    connect = "import socket\nprint(socket.create_connection(('127.0.0.1', 47113), 5).recv(5).decode())"
    c.call("runCommand", {"argv": ["python3", "-c", listen], "background": True, "session": "one", "runId": "server"})
    end = time.monotonic() + 20
    while not os.path.exists(world.path("workspace/listens")) and time.monotonic() < end:
        time.sleep(0.01)
    t.equal("a session shares its network", stdout(c.call("runCommand", {"argv": ["python3", "-c", connect], "session": "one"})), "hello\n")
    t.check("another does not", c.call("runCommand", {"argv": ["python3", "-c", connect], "session": "two"})["exitCode"] != 0)


@group
def endings(t):
    """Exit, signal, timeout, cancellation, shutdown."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)

    def run(**params):
        return c.call("runCommand", params)

    t.equal("an exit code", run(command="exit 42")["exitCode"], 42)
    result = run(command="kill -SEGV $$")
    t.equal("a signal", (result["status"], result.get("signal"), "exitCode" in result), ("completed", "SIGSEGV", False))
    t.equal("by default two minutes", run(command="true")["effectiveTimeoutMs"], 120000)
    t.equal("at most ten", run(command="true", timeoutMs=10**9)["effectiveTimeoutMs"], 600000)
    t.equal("a background run has no end", run(command="true", background=True)["effectiveTimeoutMs"], 0)
    t.equal("unless given", run(command="true", background=True, timeoutMs=5000)["effectiveTimeoutMs"], 5000)
    for wrong in (0, -1):
        t.wrong_params(c, "timeoutMs %d" % wrong, "runCommand", {"command": "true", "timeoutMs": wrong}, "timeoutMs")

    lock, held = lock_of(world)
    result = run(command="echo begun; " + lock + "sleep 600 & sleep 600", timeoutMs=1500)
    t.equal("timed out", (result["timedOut"], result["status"], result["effectiveTimeoutMs"], stdout(result)), (True, "completed", 1500, "begun\n"))
    t.check("not before its time, and soon after", 1500 <= result["durationMs"] < 15000, result["durationMs"])
    wait_free(held)
    t.check("and nothing of it goes on", True)
    result = run(command="trap 'exit 7' TERM; sleep 600 & wait", timeoutMs=1500)
    t.equal("it may still exit by itself", (result["timedOut"], result.get("exitCode")), (True, 7))
    result = run(command="sleep 600 & echo left", timeoutMs=60000)
    t.equal("what is left behind holds nothing up", (result["exitCode"], result["timedOut"]), (0, False))

    pending = c.request("runCommand", {"command": "echo begun; " + lock + "sleep 600"})
    wait_held(held)
    pending.cancel()
    result = pending.result()
    t.equal("cancelled", (result["status"], stdout(result), result["timedOut"]), ("cancelled", "begun\n", False))
    wait_free(held)
    pending = c.request("runCommand", {"command": "sleep 600"})
    pending.cancel()
    t.equal("cancelled at once", pending.result()["status"], "cancelled")
    pending.cancel()
    t.equal("cancelled once more, in vain", run(command="true")["status"], "completed")

    pending = c.request("runCommand", {"command": lock + "sleep 600"})
    background = run(command="sleep 600", background=True)
    wait_held(held)
    t.equal("shutdown answers null", c.call("shutdown"), None)
    t.check("when the runs have ended", not held() and pending.done())
    t.equal("they were cancelled", pending.result()["status"], "cancelled")
    told = c.messages("confine/exit", lambda p: p["runId"] == background["runId"])
    t.equal("in the background too", [m["params"]["status"] for m in told], ["cancelled"])
    c.notify("exit")
    t.equal("exit status", c.wire.wait(), 0)
