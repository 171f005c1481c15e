"""What docs/protocol.md says of every run result, also of its modelText."""

import re

FACETS = {"fileWrite", "fileRead", "network", "unixSockets", "processes", "metadata", "devices"}
OUTCOMES = {"allowed-once", "allowed-session", "allowed-always", "rejected", "cancelled", "timed-out", "unavailable"}
DECIDERS = {"person", "grant", "memory", "policy", "limits", "default"}
WIDTH = ["read-only", "workspace-write", "danger-full-access"]  # external-sandbox stands beside them
UNCONFINED = ("danger-full-access", "external-sandbox")
TEXT_BYTES = 1 << 20  # no stream in a result is longer, whatever the limit


def wrong(result):
    """Everything in this result that the page does not allow."""
    return [text for rule in (_status, _approval, _sandbox, _denials, _streams, _model_text) for text in rule(result)]


def began(result):
    """Whether the command ran, as far as a result of an ended run tells."""
    return "exitCode" in result or "signal" in result


def _status(result):
    status = result["status"]
    if "exitCode" in result and "signal" in result:
        yield "both exitCode and signal"
    if status == "completed" and not began(result) and "error" not in result:
        yield "completed without exitCode, signal or error"
    if status in ("running", "refused") and began(result):
        yield "%s with an end" % status
    if not began(result) and status != "running" and result["durationMs"] != 0:
        yield "it did not begin and took %d ms" % result["durationMs"]
    if result["durationMs"] < 0 or not 0 <= result["effectiveTimeoutMs"] <= 600000:
        yield "durationMs %d, effectiveTimeoutMs %d" % (result["durationMs"], result["effectiveTimeoutMs"])
    if not result["policyHash"]:
        yield "an empty policyHash"


def _approval(result):
    approval = result.get("approval")
    if result["status"] == "refused" and approval is None:
        yield "refused, and approval is missing"
    if approval is None:
        return
    if approval["outcome"] not in OUTCOMES or approval["by"] not in DECIDERS:
        yield "approval %s by %s" % (approval["outcome"], approval["by"])
    if (result["status"] == "refused") and approval["outcome"].startswith("allowed"):
        yield "refused, and the outcome is %s" % approval["outcome"]
    if not approval["outcome"].startswith("allowed") and began(result):
        yield "it ran, and the outcome is %s" % approval["outcome"]


def _sandbox(result):
    sandbox = result.get("sandbox")
    if sandbox is None:
        if result["status"] not in ("running",) and not began(result):
            yield "it did not run, and sandbox is missing"
        return
    ended = result["status"] != "running"
    bare = set(sandbox) == {"mode", "denied"} and not sandbox["denied"]
    if (sandbox["mode"] in UNCONFINED or ended and not began(result) and "error" not in result) and not bare:
        yield "sandbox says more than {mode, denied: false}: %s" % sorted(sandbox)
    if began(result) and sandbox["mode"] not in UNCONFINED:
        for name in ("provider", "layers", "enforcement", "facets"):
            if name not in sandbox:
                yield "it was confined, and sandbox has no %s" % name
    unknown = set(sandbox.get("facets", {})) - FACETS
    if unknown:
        yield "unknown facets %s" % sorted(unknown)
    for name, facet in sandbox.get("facets", {}).items():
        if facet["state"] != "enforced" and not facet.get("reason"):
            yield "facet %s is %s for no reason" % (name, facet["state"])


def _denials(result):
    sandbox = result.get("sandbox", {})
    for denial in sandbox.get("denials", []):
        if denial["count"] < 1 or not denial["op"]:
            yield "denial %r" % denial
        if "path" in denial and "address" in denial:
            yield "a denial of both a path and an address"
        if denial["evidence"] == "observed" and not {"errno", "pid"} <= set(denial):
            yield "an observed denial without errno or pid: %r" % denial
    if sandbox.get("denied") and sandbox.get("denials") and all(d.get("incidental") for d in sandbox["denials"]):
        yield "denied for incidental denials alone"
    yield from _observation(sandbox)
    escalation = result.get("escalation")
    if escalation is None:
        return
    if not sandbox.get("denied"):
        yield "escalation, and nothing was denied"
    widths = [WIDTH.index(mode) for mode in escalation["targets"] if mode in WIDTH]
    if len(widths) != len(escalation["targets"]) or widths != sorted(set(widths)):
        yield "escalation targets %s" % escalation["targets"]
    if not escalation["targets"] and not escalation.get("additional"):
        yield "escalation to nothing"
    if widths and sandbox.get("mode") in WIDTH and widths[0] <= WIDTH.index(sandbox["mode"]):
        yield "escalation from %s to %s" % (sandbox["mode"], escalation["targets"])


def _observation(sandbox):
    observation = sandbox.get("observation")
    if observation is None:
        return
    if (observation["state"] == "full") == bool(observation.get("reason")):
        yield "observation %s for the reason %r" % (observation["state"], observation.get("reason"))
    if observation["state"] == "full" and observation.get("omitted"):
        yield "a full observation that omits %d" % observation["omitted"]
    if observation["state"] == "none" and any(d["evidence"] == "observed" for d in sandbox.get("denials", [])):
        yield "nobody looked, and a denial was observed"


def _streams(result):
    for name in ("stdout", "stderr"):
        stream = result[name]
        length = len(stream["text"].encode())
        if length > TEXT_BYTES:
            yield "%s has %d bytes of text" % (name, length)
        if not stream["truncated"] and "\ufffd" not in stream["text"] and length != stream["bytes"]:
            yield "%s is whole and has %d bytes of %d" % (name, length, stream["bytes"])
        if stream["truncated"] and stream["bytes"] <= length:
            yield "%s is cut and has %d bytes of %d" % (name, length, stream["bytes"])


# The lines after the output, in their order. Each: its pattern, and whether it applies (None: may or may not).
def _marks(result):
    sandbox = result.get("sandbox", {})
    mode = re.escape(sandbox.get("mode", "?"))
    ended = result["status"] != "running"
    # While the run goes on, what is known of denials is not final.
    yield r"\[sandbox: (file|network) access denied under %s mode\]" % mode, sandbox.get("denied", False)
    yield r"\[sandbox: the sandbox runner itself failed under %s mode .*\]" % mode, sandbox.get("runnerFailed", False)
    yield r"\[sandbox: escalation available — .*\]", bool(result.get("escalation", {}).get("targets"))
    yield r"\[sandbox: made or changed by this command, .*: .*\]", bool(sandbox.get("planted"))
    yield r"\[timed out after %dms\]" % result["effectiveTimeoutMs"], result["timedOut"]
    yield r"\[cancelled\]", result["status"] == "cancelled"
    yield r"\[killed by signal: %s\]" % re.escape(result.get("signal", "?")), "signal" in result
    yield r"\[exit code: %d\]" % result.get("exitCode", 0), result.get("exitCode", 0) != 0
    id = re.escape(result["runId"])
    yield r"(\[running as %s\]|\[not begun yet: %s waits for an answer or its start\])" % (id, id), not ended


def _model_text(result):
    text = result["modelText"]
    if text.startswith("Error: "):
        if began(result) or result["status"] == "running":
            yield "modelText is %.100r of a command that ran" % text
        return
    if result["status"] == "refused" or "error" in result and not result.get("sandbox", {}).get("runnerFailed"):
        yield "modelText of what did not run is %.100r" % text
    lines = text.split("\n")
    for pattern, applies in reversed(list(_marks(result))):
        if lines and re.fullmatch(pattern, lines[-1]):
            if not applies:
                yield "modelText says %r" % lines[-1]
            lines.pop()
        elif applies:
            yield "modelText lacks %s, or has it in another place: %.300r" % (pattern, text[-300:])
    body = "\n".join(lines)
    yield from _body(result, body)


def _body(result, body):
    out, err = result["stdout"], result["stderr"]
    if out["truncated"] or err["truncated"]:
        for stream in (out, err):
            if stream["text"].rstrip("\n") not in body:
                yield "modelText lacks a stream"
            if stream["truncated"] and "spillPath" in stream and stream["spillPath"] not in body:
                yield "modelText does not say where the whole stream is"
        return
    expected = out["text"].rstrip("\n")
    if err["text"].rstrip("\n"):
        expected += ("\n" if expected else "") + "[stderr]\n" + err["text"].rstrip("\n")
    if not expected and result["status"] != "running":
        expected = "(no output)"
    if body.rstrip("\n") == expected:
        return
    # Nothing in a result says that the run had a terminal, of which modelText is what the screen showed.
    screen = _screen(out["text"])
    if screen is None:
        if re.search(r"[\x00-\x08\x0b-\x1f]", body):
            yield "modelText of a terminal holds a control character: %.200r" % body
    elif body.rstrip("\n") != screen.rstrip("\n"):
        yield "modelText holds %.200r, not %.200r" % (body, expected)


def _screen(text):
    """What a terminal shows of a text, or None where that takes more than leaving out control sequences."""
    text = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(\x07|\x1b\\)|[=>78])", "", text)
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return None if re.search(r"[\x00-\x08\x0b-\x1f]", "".join(lines)) else "\n".join(lines)
