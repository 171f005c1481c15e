"""A client of confine, written from docs/protocol.md alone.

It checks whatever holds for every message of every connection as the messages
come: the schema, error codes, the order within a run, and what laws.py says.
"""

import threading

from laws import Laws
from wire import PATIENCE, Wire


class RpcError(Exception):
    """The server answered with an error."""

    def __init__(self, error):
        super().__init__("%s %s" % (error.get("code"), error.get("message")))
        self.code, self.message, self.data = error.get("code"), error.get("message", ""), error.get("data", {})


class Pending:
    """A request on its way. The reader fills it in under the lock of the client."""

    def __init__(self, client, id, method, params):
        self.client, self.id, self.method, self.params = client, id, method, params
        self.reply = None  # the response as it came

    def done(self):
        return self.reply is not None

    def result(self, patience=PATIENCE):
        self.client.await_that(lambda: self.done(), "an answer to %s" % self.method, patience)
        if "error" in self.reply:
            raise RpcError(self.reply["error"])
        return self.reply["result"]

    def error(self):
        """The error that must come."""
        try:
            result = self.result()
        except RpcError as error:
            return error
        raise AssertionError("%s was answered with %.300r instead of an error" % (self.method, result))

    def cancel(self):
        self.client.notify("$/cancelRequest", {"id": self.id})


class Client:
    """One connection. Use as a context: its end ends the server, whatever happened."""

    def __init__(self, schema, argv, env, cwd):
        self.schema = schema
        self.changed = threading.Condition()  # guards everything below
        self.log = []          # every message from the server, in order
        self.ended = False
        self.pending = {}      # requests without an answer, by id
        self.complaints = []   # broken laws
        self.answers = {"window/workDoneProgress/create": lambda request: None}
        self.laws = Laws(schema, self._complain)
        self.next_id = 0
        self.wire = Wire(argv, env, cwd, self._deliver, self._complain)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.end()

    # Sending.

    def request(self, method, params=None, id=None, valid=True):
        """Sends a request. valid=False: it is wrong on purpose."""
        pending = self.expect(method, params, id)
        message = {"jsonrpc": "2.0", "id": pending.id, "method": method}
        if params is not None:
            message["params"] = params
        if valid:
            self.laws.sent(message)
        self.wire.send(message)
        return pending

    def expect(self, method, params=None, id=None):
        """The answer to a request that the caller sends by itself."""
        with self.changed:
            if id is None:
                self.next_id += 1
                id = self.next_id
            pending = self.pending[id] = Pending(self, id, method, params)
        return pending

    def call(self, method, params=None, **options):
        return self.request(method, params, **options).result()

    def refusal(self, method, params=None):
        """The error that a request, wrong on purpose, is answered with."""
        return self.request(method, params, valid=False).error()

    def notify(self, method, params=None, valid=True):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if valid:
            self.laws.sent(message)
        self.wire.send(message)

    def reply(self, request, result):
        self.wire.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def reply_error(self, request, code, message="no"):
        self.wire.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})

    # Waiting.

    def await_that(self, condition, what, patience=PATIENCE):
        """Waits for condition(), which is called under the lock; returns its value."""
        with self.changed:
            value = self.changed.wait_for(lambda: condition() or self.ended, patience)
            value = condition()
        if not value:
            why = "the connection ended" if self.ended else "not seen in %d s" % patience
            raise TimeoutError("%s: %s; stderr: %r" % (why, what, self.wire.stderr[-300:]))
        return value

    def messages(self, method, match=lambda params: True):
        """Those that have come so far, oldest first."""
        with self.changed:
            return [m for m in self.log if m.get("method") == method and match(m.get("params", {}))]

    def message(self, method, match=lambda params: True, nth=0):
        """The nth message of this kind, which may be still to come."""
        self.await_that(lambda: len(self.messages(method, match)) > nth, method)
        return self.messages(method, match)[nth]

    # The life of a connection.

    def initialize(self, params):
        self.opened = self.call("initialize", params)
        self.notify("initialized", {})
        return self.opened

    def close(self):
        """shutdown and exit; the exit status."""
        self.call("shutdown")
        self.notify("exit")
        return self.wire.wait()

    # In the reading thread.

    def _complain(self, text):
        self.complaints.append(text)

    def _deliver(self, message):
        with self.changed:
            if message is None:
                self.ended = True
            else:
                self._take(message)
            self.changed.notify_all()
        if message and "method" in message and "id" in message and message["method"] in self.answers:
            self.reply(message, self.answers[message["method"]](message))

    def _take(self, message):
        self.log.append(message)
        if not isinstance(message, dict) or "method" in message:
            self.laws.came(message, None)
            return
        pending = self.pending.pop(message.get("id"), None) if message.get("id") is not None else None
        self.laws.came(message, pending)
        if pending is not None:
            pending.reply = message
