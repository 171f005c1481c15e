"""Approvals: what still counts, and its end."""

import re

from group import group
from questions import RFC3339, choose

SETTINGS = """sandbox_mode = "workspace-write"

[[rules]]
decision = "deny"
command = ["rm", "-rf"]
reason = "too much"
"""


@group
def approvals(t):
    world = t.world(SETTINGS)
    c = t.open(world)

    def ask(command, kind=None, session=""):
        seen = len(c.messages("confine/requestApproval"))
        pending = c.request("runCommand", {"command": command, "session": session, "sandboxPermissions": "danger-full-access", "justification": "because"})
        if kind is None:
            return pending.result()
        asked = c.message("confine/requestApproval", nth=seen)
        choose(c, asked, kind)
        return asked["params"], pending.result()

    rules = c.call("confine/approvals/list", {})["approvals"]
    t.equal("only the rule stands", [(a["source"], a["decision"], a["command"], a["reason"], a["scope"], a["revocable"]) for a in rules],
            [("rule", "deny", "rm -rf", "too much", "settings", False)])
    t.check("and where", rules[0]["origin"].endswith("config.toml:3"), rules[0]["origin"])
    yes, _ = ask("echo yes", "allow_always", "s")
    no, _ = ask("echo no", "reject_once")
    ask("echo once", "allow_once")
    listed = {a["id"]: a for a in c.call("confine/approvals/list", {})["approvals"]}
    t.equal("the answers that still count", set(listed), {rules[0]["id"], yes["id"], no["id"]})
    a = listed[yes["id"]]
    t.equal("the yes", (a["source"], a["decision"], a["scope"], a["session"], a["command"], a["cwd"], a["wanted"], a["outcome"], a["policyHash"], a["revocable"]),
            ("person", "allow", "session", "s", "echo yes", world.workspace, yes["wanted"], "allowed-session", yes["policyHash"], True))
    t.check("when and what", re.fullmatch(RFC3339, a["at"]) and "danger-full-access" in a["text"] and a["warnings"], a)
    a = listed[no["id"]]
    t.equal("the no", (a["decision"], a.get("session"), a["outcome"]), ("deny", None, "rejected"))
    t.equal("of one session", [a["id"] for a in c.call("confine/approvals/list", {"session": "s"})["approvals"]], [yes["id"], rules[0]["id"]])
    t.equal("they count", (ask("echo yes", session="s")["approval"]["by"], ask("echo no")["approval"]["by"]), ("grant", "memory"))

    t.equal("revoke answers null", c.call("confine/approvals/revoke", {"id": yes["id"]}), None)
    c.call("confine/approvals/revoke", {"id": no["id"]})
    t.equal("both are asked about again", (ask("echo yes", "allow_once", "s")[1]["status"], ask("echo no", "allow_once")[1]["status"]), ("completed", "completed"))
    error = c.refusal("confine/approvals/revoke", {"id": rules[0]["id"]})
    t.check("a rule says where it stands", error.code == -32602 and rules[0]["origin"] in error.message, error)
    for id in (yes["id"], "none", ""):
        t.wrong_params(c, "revoking %r" % id, "confine/approvals/revoke", {"id": id})
    c.close()
