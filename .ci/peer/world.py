"""A small world for each server: a workspace, a home, settings, and nothing of the machine's own."""

import os
import shutil
import subprocess
import tempfile
import threading

from client import Client

FULL = {"experimental": {"confine": {"protocolVersion": 1, "approval": True, "output": True}}}
GIT = ["git", "-c", "user.name=Peer", "-c", "user.email=peer@example.test"]
STOCK = {}  # the capabilities of a client that knows nothing of the page


class Kit:
    """What every world is made with: the program, the schema, and a folder that goes away."""

    def __init__(self, program, schema, page, provider=None):
        self.program, self.schema, self.page, self.provider = program, schema, page, provider
        # Not below /tmp, of which a session has its own.
        folder = os.environ.get("TMPDIR") or os.path.expanduser("~/.cache")
        os.makedirs(folder, exist_ok=True)
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="peer.", dir=folder))
        self._lock = threading.Lock()  # guards count
        self._count = 0

    def world(self, settings="", program=None, env=None):
        with self._lock:
            self._count += 1
            folder = os.path.join(self.base, "w%d" % self._count)
        if self.provider and "provider" not in settings:
            settings += 'provider = "%s"\n' % self.provider
        return World(self.schema, program or self.program, folder, settings, env or {})

    def remove(self):
        shutil.rmtree(self.base)


class World:
    """Folders and environment of one server, and the clients that it gets."""

    def __init__(self, schema, program, folder, settings, env):
        self.schema, self.program, self.folder = schema, program, folder
        for name in ("workspace", "outside", "home", "config/confine", "data", "state", "cache", "run", "tmp"):
            os.makedirs(self.path(name))
        os.chmod(self.path("run"), 0o700)
        self.workspace, self.outside, self.home = self.path("workspace"), self.path("outside"), self.path("home")
        if settings:
            with open(self.path("config/confine/config.toml"), "w") as file:
                file.write(settings)
        self.env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": self.home, "TMPDIR": self.path("tmp"),
                    "XDG_CONFIG_HOME": self.path("config"), "XDG_DATA_HOME": self.path("data"),
                    "XDG_STATE_HOME": self.path("state"), "XDG_CACHE_HOME": self.path("cache"),
                    "XDG_RUNTIME_DIR": self.path("run"), **env}

    def path(self, name):
        return os.path.join(self.folder, name)

    def has(self, name):
        """Whether a command has left this file. A workspace may hold what confine puts there during a run."""
        return os.path.exists(self.path(name))

    def worktree(self):
        """Makes a repository main with a linked worktree, whose path is returned."""
        for arguments in (["init", "-q", "-b", "main", "main"], ["-C", "main", "commit", "-q", "--allow-empty", "-m", "first"],
                          ["-C", "main", "worktree", "add", "-q", "../linked"]):
            subprocess.run(GIT + arguments, cwd=self.folder, env=self.env, check=True)
        return self.path("linked")

    def client(self, *arguments):
        """A server that has been told nothing yet."""
        return Client(self.schema, [self.program, *(arguments or ("serve",))], self.env, self.folder)

    def open(self, capabilities=FULL, folders=None, **params):
        """A client past initialized, by default with the workspace as its only folder."""
        client = self.client()
        client.initialize(self.params(capabilities, folders, **params))
        return client

    def params(self, capabilities=FULL, folders=None, **params):
        """The params of initialize."""
        folders = [self.workspace] if folders is None else folders
        return {"processId": os.getpid(), "capabilities": capabilities,
                "workspaceFolders": [folder(f) for f in folders], **params}


def folder(path):
    """A workspace folder of the wire; path may be a URI."""
    uri = path if "://" in path or path.startswith("untitled:") else "file://" + path
    return {"uri": uri, "name": path.rsplit("/", 1)[-1]}
