"""confine/output, confine/exit, $/progress, and the streams of a result."""

import os

from group import group
from laws import piece
from wire import until
from world import FULL

WORKSPACE_WRITE = 'sandbox_mode = "workspace-write"\n'
PROGRESS = {**FULL, "window": {"workDoneProgress": True}}


def told(c, id, stream="stdout"):
    """The pieces of this stream; laws.py has checked their order already."""
    return [m["params"] for m in c.messages("confine/output", lambda p: p["runId"] == id and p["stream"] == stream)]


def joined(c, id, stream="stdout"):
    return b"".join(piece(p, c.complaints.append) for p in told(c, id, stream))


@group
def output(t):
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)

    def run(id, command, **params):
        return c.call("runCommand", {"command": command, "runId": id, **params})

    pending = c.request("runCommand", {"runId": "plain", "command": "wait_for() { while ! [ -e $1 ]; do sleep 0.01; done; }; "
                                                                    "echo ä; wait_for one; echo b >&2; wait_for two; echo c"})
    for nth, name in enumerate(["one", "two"]):
        c.message("confine/output", nth=nth)
        t.check("output comes while the command runs", not pending.done())
        open(world.path("workspace/" + name), "w").close()
    result = pending.result()
    t.equal("what came, in order", [(p["stream"], p["data"]) for p in (m["params"] for m in c.messages("confine/output"))],
            [("stdout", "ä\n"), ("stderr", "b\n"), ("stdout", "c\n")])
    t.equal("the whole in the result", (result["stdout"], result["stderr"]),
            ({"text": "ä\nc\n", "bytes": 5, "truncated": False}, {"text": "b\n", "bytes": 2, "truncated": False}))

    # Bytes that are no text.
    result = run("bytes", r"printf 'a\377b\n'")
    t.equal("base64 for what is no UTF-8", ["base64" in p for p in told(c, "bytes")], [True])
    t.equal("byte for byte", joined(c, "bytes"), b"a\xffb\n")
    t.check("text is valid UTF-8 all the same", result["stdout"]["text"].startswith("a") and result["stdout"]["text"].endswith("b\n"), result["stdout"])
    t.equal("bytes are counted, not characters", result["stdout"]["bytes"], 4)
    run("cut", "printf x; printf 'ä%.0s' {1..150000}")
    t.equal("no character is cut in two", (joined(c, "cut").decode(), any("base64" in p for p in told(c, "cut"))), ("x" + "ä" * 150000, False))
    run("half", r"printf 'a\303'")
    t.equal("unless there is no more of it", joined(c, "half"), b"a\xc3")
    result = run("all", "for i in {0..255}; do printf \"\\\\x$(printf %x $i)\"; done")
    t.equal("every byte", joined(c, "all"), bytes(range(256)))
    result = run("nul", r"printf 'a\0b'")
    t.equal("a NUL byte is a character", (joined(c, "nul"), result["stdout"]["text"]), (b"a\0b", "a\0b"))

    # Much of it.
    limits = c.call("capabilities", {})["limits"]
    result = run("long", "seq 300000")
    whole = "".join("%d\n" % n for n in range(1, 300001)).encode()
    t.equal("two megabytes, counted", result["stdout"]["bytes"], len(whole))
    stream = result["stdout"]
    t.check("text is the end of the stream", stream["truncated"] and whole.decode().endswith(stream["text"]) and len(stream["text"]) > 1000, stream["text"][:100])
    t.check("within its limit", len(stream["text"].encode()) <= limits["textBytes"], len(stream["text"]))
    told_of = [p.get("skipped", 0) for p in told(c, "long")]
    t.check("a client that reads misses nothing, or is told", sum(told_of) + len(joined(c, "long")) == len(whole), sum(told_of))
    again = run("again", "cat '%s'" % stream["spillPath"])
    t.equal("the session's next command reads the file with all of it", again["stdout"]["bytes"], len(whole))
    t.check("and a line says where it is", stream["spillPath"] in result["modelText"], result["modelText"][-300:])
    t.equal("modelText keeps the end", result["modelText"].count("\n300000"), 1)
    c.close()


@group
def slow_reader(t):
    """A client that stops reading: pieces are left out and counted, nothing waits for it."""
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    c.call("runCommand", {"command": "true"})
    c.wire.reading.clear()
    c.request("capabilities", {})  # wakes the reading thread, so that it stops
    pending = c.request("runCommand", {"command": "head -c 8000000 /dev/zero | tr '\\0' x; touch done; echo end", "runId": "fast"})
    until(lambda: os.path.exists(world.path("workspace/done")), "the command has written all")
    t.check("a command does not wait for a slow client", not pending.done())
    c.wire.reading.set()
    result = pending.result()
    t.equal("all is counted", result["stdout"]["bytes"], 8000004)
    skipped = sum(p.get("skipped", 0) for p in told(c, "fast"))
    t.check("pieces were left out, and said so", skipped > 4000000, skipped)
    first = next(p for p in told(c, "fast") if p.get("skipped"))
    hole = first["offset"] - first["skipped"]
    read = c.call("confine/runs/read", {"runId": "fast", "offset": hole, "maxBytes": 100})
    t.equal("what was left out can be read", (read["offset"], read.get("data")), (hole, "x" * 100))
    c.close()


@group
def progress(t):
    world = t.world(WORKSPACE_WRITE)
    c = t.open(world)
    c.call("runCommand", {"command": "echo x", "workDoneToken": "mine", "runId": "with-token"})
    kinds = [m["params"]["value"]["kind"] for m in c.messages("$/progress", lambda p: p["token"] == "mine")]
    t.equal("progress with a token of the client", kinds, ["begin", "end"])
    c.call("runCommand", {"command": "echo x", "workDoneToken": 7})
    t.equal("a token may be a number", len(c.messages("$/progress", lambda p: p["token"] == 7)), 2)
    for token in ({}, [], True, 1.5):
        t.wrong_params(c, "a token that is %r" % token, "runCommand", {"command": "echo x", "workDoneToken": token}, "workDoneToken")
    order = [m.get("method") for m in c.log if m.get("params", {}).get("runId") == "with-token" or m.get("params", {}).get("token") == "mine"]
    t.equal("the order of its end", (order[-2:], order.count("confine/output")), (["$/progress", "confine/exit"], 1))
    pending = c.request("runCommand", {"command": "sleep 600", "workDoneToken": "stop"})
    c.message("$/progress", lambda p: p["token"] == "stop")
    c.notify("window/workDoneProgress/cancel", {"token": "unknown"})
    c.notify("window/workDoneProgress/cancel", {"token": "stop"})
    t.equal("window/workDoneProgress/cancel cancels the run", pending.result()["status"], "cancelled")
    c.call("runCommand", {"command": "sleep 1.3"})
    t.equal("without a token and the client's word there is no progress", c.messages("window/workDoneProgress/create"), [])
    c.close()


@group
def created_progress(t):
    """Progress that the server begins by itself, when a run has lasted a second."""
    c = t.open(t.world(), PROGRESS)
    pending = c.request("runCommand", {"command": "sleep 600", "runId": "slow"})
    created = c.message("window/workDoneProgress/create")
    token = created["params"]["token"]
    begun = c.message("$/progress", lambda p: p["token"] == token)["params"]["value"]
    t.check("the server creates progress", begun["kind"] == "begin" and begun["title"], begun)
    c.notify("window/workDoneProgress/cancel", {"token": token})
    t.equal("and hears of its cancellation", pending.result()["status"], "cancelled")
    t.equal("it has an end", len(c.messages("$/progress", lambda p: p["token"] == token and p["value"]["kind"] == "end")), 1)
    c.call("runCommand", {"command": "sleep 0.1"})
    t.equal("a short run has none", len(c.messages("window/workDoneProgress/create")), 1)
    c.close()

    c = t.open(t.world(), PROGRESS)
    del c.answers["window/workDoneProgress/create"]
    pending = c.request("runCommand", {"command": "sleep 1.5"})
    c.reply_error(c.message("window/workDoneProgress/create"), -32601)
    t.equal("a client that cannot create it", pending.result()["exitCode"], 0)
    t.equal("is shown none", c.messages("$/progress"), [])
    c.close()
