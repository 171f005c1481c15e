"""A terminal on which a real editor runs, for the scripts beside this one.

Each script lives through the same story in one editor: a command that the sandbox
refuses something, the question whether it may have more, Enter, and a yes. What
the screen shows is read as a person would; what happened is read from the disk and
from the audit. The editor gets the very configuration that docs/editors.md shows.
Started by .ci/story, which makes the project and says where it is.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PATIENCE = 30  # seconds that an editor on a busy machine may take for one step

workspace = pathlib.Path(os.environ["STORY_WORKSPACE"])
outside = pathlib.Path(os.environ["STORY_OUTSIDE"])
passed = failed = 0


def check(what, ok):
    """Counts ok, and tells it."""
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print("ok  " if ok else "FAIL", what, flush=True)


def finish():
    """Ends the story with the line that .ci/story counts."""
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


def snippet(name):
    """The code of docs/editors.md whose block is called name: ```language name."""
    text = (DOCS / "editors.md").read_text()
    found = re.findall(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", text, re.S | re.M)
    assert len(found) == 1, f"docs/editors.md has {len(found)} blocks called {name}"
    return found[0]


def wait(what, holds):
    """Waits until holds() is true and returns what it returned."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := holds():
            return value
        time.sleep(0.02)
    raise TimeoutError(f"waited in vain for {what}")


def audit():
    """What the server has written down about questions, oldest first."""
    file = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "confine/audit.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def outcomes():
    """What became of each question, oldest first."""
    return [entry["outcome"] for entry in audit() if entry["event"] == "decided"]


class Screen:
    """A terminal with one program in it. Use as a context: the program has to end by itself."""

    def __init__(self, *command, columns=80, rows=24):
        self.folder = tempfile.mkdtemp()
        programs = pathlib.Path(self.folder) / "bin"
        programs.mkdir()
        (programs / "confine").symlink_to(os.environ["CONFINE_BIN"])
        environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "TERM": "xterm-256color", "SHELL": "/bin/sh"}
        environment.pop("TMUX", None)
        # The shell stays for a moment after the program, so that its last words can be read.
        line = " ".join(map(quote, command)) + f"; echo $? > {self.folder}/status"
        subprocess.run([*self._tmux(), "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), line],
                       check=True, cwd=workspace, env=environment)

    def _tmux(self):
        return ["tmux", "-S", f"{self.folder}/socket"]

    def _call(self, *arguments):
        return subprocess.run([*self._tmux(), *arguments], capture_output=True, text=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print("the screen at the end:\n" + self.text())
        self._call("kill-server")
        shutil.rmtree(self.folder)

    def text(self):
        """What the screen shows, without blanks at the ends of lines; Emacs' broken lines are joined."""
        lines = self._call("capture-pane", "-p").stdout.splitlines()
        return "\n".join(line.rstrip() for line in lines).replace("\\\n", "")

    def shows(self, pattern):
        """Waits until the screen matches pattern, and returns its text."""
        return wait(f"{pattern!r} on the screen", lambda: (text := self.text()) and re.search(pattern, text) and text)

    def reads(self, part):
        """Waits until a person reads part on the screen; says whether that came true."""
        try:
            return wait(f"{part!r} on the screen", lambda: contains(self.text(), part))
        except TimeoutError:
            print(self.text())
            return False

    def type(self, text):
        self._call("send-keys", "-l", "--", text)

    def press(self, *keys):
        self._call("send-keys", *keys)

    def ended(self):
        """Waits for the end of the program and returns its exit status."""
        return wait("the end of the editor", lambda: (file := pathlib.Path(self.folder, "status")).exists() and file.read_text().strip())


def quote(word):
    return "'" + str(word).replace("'", "'\\''") + "'"


def contains(text, part):
    """Whether a person reads part in text, however a terminal or a box breaks its lines."""
    return _squeezed(part) in _squeezed(text)


def _squeezed(text):
    return re.sub(r"[\s│]", "", text)
