"""The server's own process, as its user and its commands find it."""

import os

from group import group
from wire import until

# mode, CONFINE_NO_NEW_PRIVS, and whether a command can gain no privileges
PRIVILEGES = [
    ("read-only", None, 1),
    ("read-only", "0", 1),  # the sandbox sees to it, whatever the server does
    ("workspace-write", None, 1),
    ("danger-full-access", None, 0),
    ("danger-full-access", "", 0),
    ("danger-full-access", "0", 0),
    ("danger-full-access", "1", 1),
    ("danger-full-access", "ture", 1),  # a mistake protects
    ("external-sandbox", None, 1),
    ("external-sandbox", " ", 1),
    ("external-sandbox", "off", 0),
]


@group
def process(t):
    """Which commands can gain privileges, and that nobody can look into the server."""
    for mode, variable, held in PRIVILEGES:
        env = {} if variable is None else {"CONFINE_NO_NEW_PRIVS": variable}
        with t.world('sandbox_mode = "%s"\n' % mode, env=env).open() as c:
            what = "%s, CONFINE_NO_NEW_PRIVS %r" % (mode, variable)
            result = c.call("runCommand", {"command": "grep NoNewPrivs /proc/self/status; ulimit -Sc; ulimit -Hc"})
            t.equal("a command in " + what, result["stdout"]["text"], "NoNewPrivs:\t%d\n0\n0\n" % held)
            server = c.wire.process.pid
            t.equal("threads of a server in " + what, threads(server), {0 if variable == "0" else held})
            check_closed(t, "the server in " + what, server)
            check_closed(t, "the guardian of a server in " + what, guardian(server))


@group
def process_reloaded(t):
    """What the server gave up at its start does not come back with other settings."""
    world = t.world('sandbox_mode = "external-sandbox"\n')
    with world.open() as c:
        def ran():
            result = c.call("runCommand", {"command": "grep NoNewPrivs /proc/self/status"})
            return result["sandbox"]["mode"], result["stdout"]["text"]
        t.equal("privileges as it began", ran(), ("external-sandbox", "NoNewPrivs:\t1\n"))
        with open(world.path("config/confine/config.toml"), "w") as file:
            file.write('sandbox_mode = "danger-full-access"\n')
        until(lambda: ran()[0] == "danger-full-access", "the new mode")
        t.equal("privileges after the settings widened", ran()[1], "NoNewPrivs:\t1\n")


def threads(pid):
    """The flags of every thread."""
    flags = set()
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task)) as file:
            flags.update(int(line.split()[1]) for line in file if line.startswith("NoNewPrivs:"))
    return flags


def guardian(pid):
    """The process that cleans up after a server, among its children that come and go."""
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as file:
            children = file.read().split()
        for child in children:
            try:
                with open("/proc/%s/cmdline" % child) as file:
                    if "__guardian" in file.read():
                        return int(child)
            except (FileNotFoundError, ProcessLookupError):
                pass
    raise AssertionError("the server has no guardian")


def check_closed(t, what, pid):
    with open("/proc/%d/limits" % pid) as file:
        core = next(line.split()[4:6] for line in file if line.startswith("Max core file size"))
    t.equal("%s leaves no core file" % what, core, ["0", "0"])
    if os.geteuid() == 0:
        return  # who may look into everything
    until(lambda: not any(can_look(pid, name) for name in ("environ", "mem", "fd")), "%s cannot be looked into" % what)
    t.check("%s cannot be looked into" % what, True)


def can_look(pid, name):
    """A process that has only just begun may not have closed itself yet."""
    try:
        os.listdir("/proc/%d/fd" % pid) if name == "fd" else open("/proc/%d/%s" % (pid, name), "rb").close()
        return True
    except PermissionError:
        return False
