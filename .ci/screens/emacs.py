"""What the stories told in Emacs share."""
import os
import pathlib

from screen import Screen, snippet


class Emacs(Screen):
    """Emacs in a terminal with the block of docs/editors.md that is called config."""

    def __init__(self, config, file):
        self.config = pathlib.Path(os.environ["HOME"]) / config
        self.config.write_text(snippet(config))
        # Debian's packages of Emacs are hidden by -Q, and warn about themselves.
        super().__init__("emacs", "-nw", "-q", "--eval", "(progn (setq inhibit-startup-screen t warning-minimum-level :emergency) (package-initialize))",
                         "-l", self.config, file, rows=30)
        self.shows(file)

    def __exit__(self, *problem):
        super().__exit__(*problem)
        self.config.unlink()

    def command(self, name):
        """Calls the command name, as M-x does."""
        self.press("M-x")
        self.shows("M-x")
        self.type(name)
        self.press("Enter")

    def run(self, name, command):
        """Lets the command name run a shell command that the sandbox refuses something."""
        self.command(name)
        self.shows("Run confined:")
        self.type(command)
        self.press("Enter")
        self.shows(r"exit code:? 1\b")

    def quit(self):
        """Leaves Emacs and returns its exit status."""
        self.press("C-x", "C-c")
        return self.ended()
