"""Groups of checks: each runs in a thread of its own, with clients that end with it."""

import contextlib
import fcntl
import traceback

from wire import until
from world import FULL

groups = []


def group(function):
    """Marks a function of one Group as something to run; its docstring is the part of the page."""
    groups.append(function)
    return function


class Group:
    """What a group of checks works with. Its lines are printed when it is over."""

    def __init__(self, kit, name):
        self.kit, self.name = kit, name
        self.lines, self.passed, self.failed = [], 0, 0
        self._clients = contextlib.ExitStack()
        self._opened = []

    def run(self, function):
        try:
            with self._clients:
                function(self)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)
            place = next((f for f in reversed(frame) if "checks_" in f.filename), frame[-1])
            self.check("the group reaches its end", False, "%s: %s, at %s:%d: %s" % (
                type(error).__name__, error, place.filename.rsplit("/", 1)[-1], place.lineno, place.line))
        complaints = [text for client in self._opened for text in client.complaints]
        self.check("every message obeys schema and page", not complaints,
                   "; ".join(complaints[:5]) + (" and %d more" % (len(complaints) - 5) if len(complaints) > 5 else ""))

    # Checking.

    def check(self, what, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        line = "%s %s: %s" % ("ok    " if ok else "failed", self.name, what)
        self.lines.append(line if ok else "%s: %.1500s" % (line, detail))
        return ok

    def equal(self, what, got, wanted):
        return self.check(what, got == wanted, "%.700r, not %.700r" % (got, wanted))

    def wrong_params(self, client, what, method, params, *words):
        """The request must be -32602, with words in its message."""
        self.error(client, what, method, params, -32602, *words)

    def error(self, client, what, method, params, code, *words):
        try:
            error = client.refusal(method, params)
        except AssertionError as answered:
            return self.check(what, False, str(answered))
        missing = [word for word in words if word not in error.message]
        return self.check(what, error.code == code and not missing, "%s; missing words: %s" % (error, missing))

    def failure(self, client, what, method, params, code, **data):
        """The request must be -32803 with this code and these fields in its data."""
        try:
            error = client.request(method, params).error()
        except AssertionError as answered:
            return self.check(what, False, str(answered))
        wanted = {"code": code, **data}
        got = {name: error.data.get(name) for name in wanted}
        self.check(what, error.code == -32803 and got == wanted, "%s with %s, not %s" % (error, error.data, wanted))
        return error

    def skip(self, what, why):
        self.lines.append("skipped %s: %s: %s" % (self.name, what, why))

    def namespaces(self, client, what):
        """Whether the host grants namespaces; if not, what depends on them is skipped."""
        answer = client.call("capabilities", {"wait": True})
        layers = next(p for p in answer["providers"] if p["provider"] == answer["provider"]).get("layers", [])
        if "namespaces" in layers or answer["provider"] == "bwrap":
            return True
        self.skip(what, "the host grants no namespaces")
        return False

    # Opening.

    def world(self, settings="", **options):
        return self.kit.world(settings, **options)

    def open(self, world, capabilities=FULL, folders=None, **params):
        """A client past initialized, ended with the group."""
        client = self.enter(world.client())
        client.initialize(world.params(capabilities, folders, **params))
        return client

    def enter(self, client):
        self._opened.append(client)
        return self._clients.enter_context(client)


def lock_of(world, name="lock"):
    """A command that holds a lock in the workspace until it ends, and a test whether it does.

    Confined processes have their own numbers, but a lock is seen by everybody.
    """
    path = world.path("workspace/" + name)
    open(path, "w").close()

    def held():
        with open(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                return True

    return "exec 9<'%s'; flock 9; " % path, held


def wait_held(held):
    until(held, "the command takes its lock")


def wait_free(held):
    until(lambda: not held(), "the command and what it started are gone")
