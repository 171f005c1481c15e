"""Connection: the lifecycle, the frames, the error codes, and how a connection ends."""

import json
import subprocess

from group import group, lock_of, wait_free, wait_held
from world import folder

EVERY_REQUEST = ["runCommand", "requestEscalation", "capabilities", "shutdown", "workspace/executeCommand",
                 "confine/runs/list", "confine/runs/read", "confine/runs/wait", "confine/runs/kill", "confine/runs/write", "confine/runs/resize",
                 "confine/approvals/list", "confine/approvals/revoke", "confine/explain", "confine/unknown"]


@group
def states(t):
    world = t.world('sandbox_mode = "workspace-write"\n')
    c = t.enter(world.client("serve", "--stdio"))
    for method in EVERY_REQUEST:
        t.error(c, "%s before initialize" % method, method, {}, -32002)
    c.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder(world.outside)], "removed": []}})
    c.notify("confine/unknown", {})
    c.initialize(world.params())
    t.equal("a notification before initialize is dropped", c.call("capabilities", {})["roots"], [world.workspace])
    t.error(c, "a second initialize", "initialize", world.params(), -32600)
    for method in ["confine/unknown", "unknown", "textDocument/hover", "$/unknown"]:
        t.error(c, "the unknown request %s" % method, method, {}, -32601)
    for method in ["confine/unknown", "$/unknown", "textDocument/didOpen", "$/setTrace"]:
        c.notify(method, {"value": "off"})
    t.equal("unknown notifications are ignored", c.call("confine/runs/list", {}), {"runs": []})
    c.call("shutdown")
    for method in EVERY_REQUEST + ["initialize"]:
        t.error(c, "%s after shutdown" % method, method, {}, -32600)
    c.notify("exit")
    t.equal("exit status after shutdown and exit", c.wire.wait(), 0)


@group
def ends(t):
    """The ways a connection ends: its status, and that nothing goes on."""
    for name, how, wanted in [
            ("exit without shutdown", lambda c: c.notify("exit"), False),
            ("the end of input without shutdown", lambda c: c.wire.close_input(), False),
            ("the end of input after shutdown", lambda c: (c.call("shutdown"), c.wire.close_input()), True)]:
        world = t.world('sandbox_mode = "workspace-write"\n')
        c = t.open(world)
        lock, held = lock_of(world)
        c.call("runCommand", {"command": lock + "sleep 600", "background": True})
        wait_held(held)
        how(c)
        status = c.wire.wait()
        t.check("exit status after %s" % name, (status == 0) == wanted, status)
        wait_free(held)
        t.check("%s ends what runs" % name, True)

    c = t.enter(t.world().client())
    c.notify("exit")
    t.check("exit before initialize ends the process", c.wire.wait() != 0)


@group
def parent(t):
    """processId: the server ends with it, and ignores one that it does not know."""
    world = t.world('sandbox_mode = "workspace-write"\n')
    owner = subprocess.Popen(["sleep", "600"])
    try:
        c = t.open(world, processId=owner.pid)
        lock, held = lock_of(world)
        pending = c.request("runCommand", {"command": lock + "sleep 600"})
        wait_held(held)
        t.check("it goes on while its parent does", not pending.done())
    finally:
        owner.kill()
        owner.wait()
    t.check("it ends with its parent, and not with 0", c.wire.wait() != 0)
    wait_free(held)
    t.check("the end of its parent ends what runs", True)

    c = t.open(t.world(), processId=(1 << 22) - 1)  # the largest there can be
    t.equal("a parent that does not exist is ignored", c.call("confine/runs/list", {}), {"runs": []})
    t.equal("and it ends as always", c.close(), 0)


@group
def concurrency(t):
    world = t.world('sandbox_mode = "workspace-write"\n')
    c = t.open(world)
    lock, held = lock_of(world)
    slow = c.request("runCommand", {"command": lock + "while ! [ -e go ]; do sleep 0.01; done"})
    wait_held(held)
    fast = [c.request("runCommand", {"command": "echo %d; echo %d >&2" % (n, -n), "runId": "many-%d" % n}) for n in range(40)]
    answers = [f.result() for f in fast]
    t.check("a slow request holds nobody up", not slow.done())
    t.equal("forty runs at once are not mixed up",
            [(a["runId"], a["stdout"]["text"], a["stderr"]["text"]) for a in answers],
            [("many-%d" % n, "%d\n" % n, "%d\n" % -n) for n in range(40)])
    told = {n: "".join(m["params"]["data"] for m in c.messages("confine/output", lambda p: p["runId"] == "many-%d" % n and p["stream"] == "stdout"))
            for n in range(40)}
    t.equal("nor is what was told of them", told, {n: "%d\n" % n for n in range(40)})
    open(world.path("workspace/go"), "w").close()
    t.equal("the slow one is answered in the end", slow.result()["exitCode"], 0)

    # Notifications take effect in the order of the wire.
    added = {"event": {"added": [folder(world.outside)], "removed": []}}
    removed = {"event": {"added": [], "removed": [folder(world.outside)]}}
    seen = []
    for _ in range(10):
        for event in (added, removed):
            c.notify("workspace/didChangeWorkspaceFolders", event)
            seen.append(world.outside in c.call("capabilities", {})["roots"])
    t.equal("a request sees the notifications before it", seen, [True, False] * 10)
    c.close()


@group
def ids(t):
    c = t.open(t.world())
    for id in ["a string", "", "7", 7, 0, -1, 2**31, "\u00e4\u2028"]:
        t.equal("the id %r comes back as it was" % id, c.call("confine/runs/list", {}, id=id), {"runs": []})
    first = c.request("runCommand", {"command": "sleep 600"}, id="1")
    second = c.request("runCommand", {"command": "sleep 600"}, id=1)
    second.cancel()
    t.equal("1 and \"1\" are two requests", second.result()["status"], "cancelled")
    t.check("and only one was cancelled", not first.done())
    first.cancel()
    t.equal("a cancelled request is answered with a result", first.result()["status"], "cancelled")
    c.notify("$/cancelRequest", {"id": "nobody"})
    c.notify("$/cancelRequest", {"id": 1})
    c.close()


@group
def messages(t):
    """-32700 and -32600: what is no JSON, and what is no request. The connection goes on."""
    c = t.open(t.world())
    for what, body in [("no JSON", b"{nonsense"), ("an empty body", b""), ("half a message", b'{"jsonrpc":"2.0","id":1'),
                       ("a text that is no UTF-8", b'{"jsonrpc":"2.0","method":"\xff","id":1}'),
                       ("two messages in one", b'{"jsonrpc":"2.0","method":"a"}{}')]:
        answered_to_nobody(t, c, what, -32700, lambda: c.wire.send_body(body))
    for what, message in [("a number", 7), ("null", None), ("a text", "runCommand"), ("an empty object", {}), ("an empty batch", []),
                          ("a batch", [{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}]),
                          ("an id that is true", {"jsonrpc": "2.0", "id": True, "method": "shutdown"}),
                          ("an id that is an object", {"jsonrpc": "2.0", "id": {}, "method": "shutdown"})]:
        answered_to_nobody(t, c, what, -32600, lambda: c.wire.send(message))
    for what, fields, code in [("a method that is a number", {"method": 7}, -32600), ("neither method nor result", {}, -32600),
                               ("a version that is another", {"jsonrpc": "1.0", "method": "capabilities"}, -32600),
                               ("a version that is a number", {"jsonrpc": 2.0, "method": "capabilities"}, -32600),
                               ("params that are a number", {"method": "capabilities", "params": 7}, -32602),
                               ("params that are an array", {"method": "capabilities", "params": [1]}, -32602)]:
        pending = c.expect("capabilities")
        c.wire.send({"jsonrpc": "2.0", "id": pending.id, **fields})
        t.equal(what, pending.error().code, code)
    pending = c.expect("capabilities")
    c.wire.send({"id": pending.id, "method": "capabilities"})
    t.equal("no version", pending.error().code, -32600)
    answered_to_nobody(t, c, "a notification without a version", -32600, lambda: c.wire.send({"method": "initialized"}))
    c.wire.send({"jsonrpc": "2.0", "id": "nobody", "result": None})  # an answer to a request that never was
    t.equal("params that are left out", c.request("capabilities", valid=False).result()["protocolVersion"], 1)

    running = c.request("runCommand", {"command": "sleep 600"}, id="twice")
    again = {"jsonrpc": "2.0", "id": "twice", "method": "runCommand", "params": {"command": "true"}}
    answered_to_nobody(t, c, "an id that is in use", -32600, lambda: c.wire.send(again))
    running.cancel()
    t.equal("the request that has it is answered", running.result()["status"], "cancelled")
    t.equal("then it can be used again", c.call("runCommand", {"command": "true"}, id="twice")["exitCode"], 0)

    big = c.request("runCommand", {"command": "true", "stdin": "x" * (32 << 20)}).error()
    t.check("a message of more than 32 MiB", big.code == -32600, big)
    wide = c.call("runCommand", {"argv": ["wc", "-c"], "stdin": "x" * (4 << 20)})
    t.equal("a message of 4 MiB", wide["stdout"]["text"], "%d\n" % (4 << 20))
    t.equal("it ends as always", c.close(), 0)


def answered_to_nobody(t, c, what, code, send):
    """What send sends is answered with this error and the id null."""
    def errors():
        return [m["error"]["code"] for m in c.log if "error" in m and m.get("id", 0) is None]
    before = len(errors())
    send()
    try:
        c.await_that(lambda: len(errors()) > before, "an error")
        t.equal(what, errors()[before:], [code])
    except TimeoutError as error:
        t.check(what, False, error)


@group
def frames(t):
    """The base protocol of LSP: headers as clients write them, and headers that make no sense."""
    body = json.dumps({"jsonrpc": "2.0", "id": 99, "method": "confine/runs/list", "params": {}}).encode()

    def heard(what, send):
        pending = c.expect("confine/runs/list", id=99)
        send()
        t.equal(what, pending.result(), {"runs": []})

    c = t.open(t.world())
    for what, header in [("a Content-Type", b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n"),
                         ("lower case", b"content-length: %d\r\n\r\n"), ("no blank after the colon", b"Content-Length:%d\r\n\r\n")]:
        heard("a header with " + what, lambda: c.wire.send_body(body, header % len(body)))
    heard("byte by byte", lambda: [c.wire.send_bytes(bytes([b])) for b in b"Content-Length: %d\r\n\r\n" % len(body) + body])

    for what, data in [("no number", b"Content-Length: many\r\n\r\n{}"), ("a negative length", b"Content-Length: -1\r\n\r\n{}"),
                       ("no Content-Length", b"X-Header: 1\r\n\r\n{}"), ("two lengths", b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
                       ("a length beyond all numbers", b"Content-Length: 99999999999999999999\r\n\r\n{}"),
                       ("a length of a terabyte", b"Content-Length: 1099511627776\r\n\r\n{}"),
                       ("a name and 300,000 bytes", b"X-Header: " + b"x" * 300000 + b"\r\n\r\n")]:
        answered_to_nobody(t, c, "a header with " + what, -32700, lambda: c.wire.send_bytes(data))
        heard("and then a message after " + what, lambda: c.wire.send_bytes(b"\r\n" + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    t.equal("it ends as always", c.close(), 0)

    c = t.open(t.world())
    c.wire.send_bytes(b"Content-Length: 100\r\n\r\n{}")
    c.wire.close_input()
    t.check("the end of input within a message is an end without shutdown", c.wire.wait() != 0)
