"""Answers to questions."""

import re
import unicodedata

RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"


def option(asked, kind):
    return next(o for o in asked["params"]["options"] if o["kind"] == kind)


def choose(c, asked, kind):
    c.reply(asked, {"outcome": {"outcome": "selected", "optionId": option(asked, kind)["optionId"]}})


def allow(c, asked):
    """Says yes to a question, for this once."""
    choose(c, asked, "allow_once")


def wrong(params):
    """What the page does not allow in a confine/requestApproval."""
    options = params["options"]
    if params["kind"] not in ("command", "escalation"):
        yield "kind %s" % params["kind"]
    if not options or not options[0]["kind"].startswith("reject"):
        yield "the first option does not refuse"
    if {o["kind"] for o in options} - {"allow_once", "allow_always", "reject_once", "reject_always"}:
        yield "kinds of options"
    for field in ("name", "optionId"):
        if len({o[field] for o in options}) != len(options):
            yield "%s is not unique" % field
    default = [o for o in options if o["optionId"] == params["defaultOptionId"]]
    if len(default) != 1 or not default[0]["kind"].startswith("reject"):
        yield "the default does not refuse"
    if not re.fullmatch(RFC3339, params["expiresAt"]):
        yield "expiresAt %s" % params["expiresAt"]
    if not params["wanted"]:
        yield "nothing is wanted"
    for field, text in texts(params):
        if hidden(text) or "\n" in text and field != "text":
            yield "%s holds what is not seen: %.100r" % (field, text)
    # A text that lacks something a yes depends on says so.
    for field in ("command", "cwd", "reason"):
        if not params[field]:
            yield "no %s" % field
    if not params.get("unshown"):
        for text in wanted(params):
            if text not in params["text"]:
                yield "text lacks %s: %s" % (text, params["text"])


def wanted(params):
    """What would run, and what a yes would open."""
    more = params["wanted"].get("additional", {})
    return [params["command"], params["cwd"], params.get("stdin", ""), *params.get("env", []), *more.get("write", []), *more.get("read", [])]


def texts(params):
    """Every text in a question, with the name of its field."""
    for field, value in params.items():
        for text in value if isinstance(value, list) else [value]:
            for part in text.values() if isinstance(text, dict) else [text]:
                if isinstance(part, str):
                    yield field, part


def hidden(text):
    """Whether there are characters that a person does not see, or that move others."""
    return any(unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for ch in text if ch != "\n")
