"""A day of ordinary work in confined commands, and what is left of it.

usage: python3 .ci/workday PROVIDER WORLD   (WORLD: see .ci/day, which makes it)

One server, one session: commands go on with what those before them left. None is
refused anything but those that are here to be refused.
"""

import hashlib
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peer"))

from client import Client  # noqa: E402
from schema import Schema  # noqa: E402
from world import FULL, folder  # noqa: E402
from wire import until  # noqa: E402

from picture import colours  # noqa: E402

BLUE = (0x1E, 0x6F, 0xD9)  # of project/web/page.js
CHROMIUM = "chromium --headless --no-sandbox --proxy-server=127.0.0.1:1"
YARN, BERRY = '"$TOOLS/yarn/bin/yarn.js"', '"$TOOLS/@yarnpkg/cli-dist/bin/yarn.js"'
REQUIRES = "node -p 'require(\"day-words\").hello'"

# What is not enforced even with namespaces; docs/security.md says why.
PARTIAL = {"unixSockets"}


class Day:
    """One workspace, one connection."""

    def __init__(self, provider, world):
        self.provider, self.world = provider, world
        self.passed = self.failed = 0
        self.workspace = os.path.join(world, "workspace " + provider)
        os.makedirs(self.workspace)
        self.origin = os.path.join(world, "origin-%s.git" % provider)
        shutil.copytree(os.path.join(world, "origin.git"), self.origin)
        settings = os.path.join(world, "settings-" + provider)
        os.makedirs(os.path.join(settings, "confine"))
        with open(os.path.join(settings, "confine", "config.toml"), "w") as file:
            file.write('sandbox_mode = "workspace-write"\nprovider = "%s"\n' % provider)
        state = os.path.join(world, "state-" + provider)
        os.makedirs(state)
        env = {**os.environ, "XDG_CONFIG_HOME": settings, "XDG_STATE_HOME": state}
        schema = Schema(os.path.join(world, "protocol.schema.json"))
        self.client = Client(schema, [os.environ["CONFINE_BIN"], "serve"], env, world)

    def check(self, what, ok, detail=""):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        print(("ok     %s: %s" if ok else "failed %s: %s: %.3000s") % ((self.provider, what) if ok else (self.provider, what, detail)), flush=True)

    def run(self, what, command, at="project", says="", planted=(), **params):
        """Runs a command that must go well and be refused nothing."""
        result = self.start(command, at, **params)
        sandbox = result["sandbox"]
        denials = [d for d in sandbox.get("denials", []) if not d.get("incidental")]
        lesser = {n for n, facet in sandbox["facets"].items() if facet["state"] != "enforced"}
        made = {os.path.relpath(p, self.workspace) for p in sandbox.get("planted", [])}
        problems = [text for bad, text in [
            (result.get("exitCode", 0) != 0 or "signal" in result, "it failed"),
            (sandbox["denied"] or denials, "it was denied %s" % denials),
            (lesser - PARTIAL - ({"fileWrite"} if planted else set()), "not enforced: %s" % lesser),
            (made != set(planted), "planted: %s" % made),
            (says not in result["stdout"]["text"], "it does not say %r" % says)] if bad]
        self.check(what, not problems, "%s: %s" % ("; ".join(problems), result["modelText"]))
        return result

    def refused(self, what, command, op, at="project"):
        """Runs a command that the sandbox must refuse one thing."""
        sandbox = self.start(command, at)["sandbox"]
        got = [d["op"] for d in sandbox.get("denials", []) if not d.get("incidental")]
        self.check(what, sandbox["denied"] and got == [op], sandbox.get("denials"))

    def start(self, command, at, **params):
        params = {"command": command, "cwd": os.path.join(self.workspace, at), "timeoutMs": 120000, **params}
        return self.client.request("runCommand", params).result(150)

    def host(self, *arguments, at="project"):
        """Runs a program as the person does."""
        return subprocess.run(arguments, cwd=os.path.join(self.workspace, at), check=True, capture_output=True, text=True).stdout


def live(day):
    day.run("clone", "git clone -q '%s' project" % day.origin, at="", planted=["project/.git"])
    day.run("branch and edit", "git switch -qc feature && sed -i 's/2, 3/20, 3/; s/got != 5/got != 23/' greet_test.go && git diff --stat", says="greet_test.go")
    build(day)
    install(day)
    serve(day)
    day.refused("writing outside is refused", "echo lost > '%s/outside/file'" % day.world, "create")
    day.refused("git's settings are refused", "git config core.pager 'sh -c true'", "rename")
    day.refused("a credential is refused", "cat ~/.cargo/credentials.toml", "read")
    day.refused("the network is refused", "curl -s --max-time 5 http://192.0.2.1/", "connect")
    history(day)


def build(day):
    day.run("go vet, go test with cgo", "go vet ./... && go test ./...", says="ok")
    day.run("go test again, from the session's cache", "go test ./...", says="(cached)")
    day.run("make -j4, from ccache", "make -sj4 -C c && c/greet && ccache --print-stats | awk '/cache_hit/ { n += $2 } END { print n, \"hits\" }'", says="hello day\n3 hits")
    day.run("cargo test", "cd rs && cargo test --offline -q", says="1 passed")
    day.run("pip and pytest", "cd py && python3 -m pip install -q --no-index --find-links wheels --target vendor day_words && pytest-3 -q", says="2 passed")
    day.run("sqlite3", "sqlite3 notes.db 'pragma journal_mode = wal; create table n(t); insert into n values (42); select t from n'", says="42")


def install(day):
    day.run("npm ci, offline", "cd web && npm ci --offline --prefer-offline && npm test", says="pass 2")
    day.run("pnpm", 'cd pnpm && "$TOOLS/.bin/pnpm" install --offline --frozen-lockfile && ' + REQUIRES, says="hello")
    day.run("yarn 1", "cd yarn && node %s install --offline --frozen-lockfile && %s" % (YARN, REQUIRES), says="hello")
    day.run("yarn 4", "cd berry && node %s install --immutable && %s" % (BERRY, REQUIRES), says="hello")


def serve(day):
    """A server in the background, and who uses it in later runs of the session."""
    server = day.start("exec node web/server.js", "project", background=True)["runId"]
    day.client.message("confine/output", lambda p: p["runId"] == server and "listening" in p.get("data", ""))
    day.run("curl reaches the server of another run", "curl -fsS http://127.0.0.1:8765/", says="hello &lt;day&gt;")
    day.run("Chromium renders its page", CHROMIUM + " --window-size=400,200 --screenshot=shot.png http://127.0.0.1:8765/")
    size, found = colours(os.path.join(day.workspace, "project", "shot.png"))
    day.check("its picture shows the page", size == (400, 200) and found[BLUE] > 40000 and len(found) > 3, "%s, %s" % (size, found.most_common(3)))
    day.client.call("confine/runs/kill", {"runId": server})
    ended = day.client.call("confine/runs/wait", {"runId": server})
    day.check("the server is refused nothing", not ended["sandbox"].get("denials"), ended["sandbox"].get("denials"))


def history(day):
    """Commits, a rebase on what somebody else pushed meanwhile, and a worktree."""
    day.run("commit", "git add -A && git commit -qm 'Add more' && git status --porcelain")
    subprocess.run(["git", "clone", "-q", day.origin, "other"], cwd=day.world, check=True)
    day.host("git", "commit", "-q", "--allow-empty", "-m", "Meanwhile", at="../other")
    day.host("git", "push", "-q", "origin", "HEAD", at="../other")
    shutil.rmtree(os.path.join(day.world, "other"))
    day.run("fetch and rebase", "git fetch -q && git rebase -q origin/main && git log --format=%s", says="Add more\nMeanwhile\nBegin\n")
    day.run("stash", "echo >> README && git add README && git stash -q && git stash pop -q && git rm -qf README")
    day.run("worktree", "git worktree add -q ../tree -b side && cd ../tree && echo more > more && git add more && git commit -qm More && go test ./...", says="ok", planted=["tree/.git"])
    day.run("merge", "git merge -q side && git log -1 --format=%s", says="More")


def after(day):
    """What the person finds."""
    day.host("git", "fsck", "--strict")
    day.check("the repository is whole and clean", day.host("git", "status", "--porcelain") == "" and "More" in day.host("git", "log", "-1", "--format=%s"))
    ignored = day.host("git", "ls-files", "--others", "--ignored", "--exclude-standard", "--directory").split()
    day.check("the workspace holds what commands made", sorted(ignored) == [
        "berry/node_modules/", "c/greet", "c/greet.o", "c/hello.o", "c/name.o", "notes.db", "pnpm/node_modules/", "py/.pytest_cache/",
        "py/__pycache__/", "py/vendor/", "rs/target/", "shot.png", "web/node_modules/", "yarn/node_modules/"], ignored)
    day.check("and nothing else", sorted(os.listdir(day.workspace)) == ["project", "tree"], os.listdir(day.workspace))


def content(top):
    """All that can be told of the files below a folder, but when they were read."""
    found = {}
    for path, folders, files in os.walk(top):
        for name in ["."] + folders + files:
            name = os.path.join(path, name)
            info = os.lstat(name)
            data = os.readlink(name) if os.path.islink(name) else ""
            if os.path.isfile(name) and not data:
                with open(name, "rb") as file:
                    data = hashlib.sha256(file.read()).hexdigest()
            found[name] = (info.st_mode, info.st_uid, info.st_size, info.st_mtime_ns, info.st_ino, data)
    return found


def main():
    provider, world = sys.argv[1:]
    home, outside = os.environ["HOME"], os.path.join(world, "outside")
    before = content(home)
    day = Day(provider, world)
    with day.client:
        day.client.initialize({"processId": os.getpid(), "capabilities": FULL, "workspaceFolders": [folder(day.workspace.replace(" ", "%20"))]})
        live(day)
        day.client.close()
    day.check("every message obeys schema and page", not day.client.complaints, day.client.complaints[:5])
    after(day)
    now = content(home)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    day.check("the home folder with its %d files is as it was" % len(now), not changed, changed[:20])
    day.check("nothing was written outside", not os.listdir(outside), os.listdir(outside))
    print("%d passed, %d failed" % (day.passed, day.failed))
    return 0 if day.failed == 0 and day.passed > 0 else 1


sys.exit(main())
