"""What docs/protocol.md says of every message, whatever the conversation is about."""

import base64
import binascii

import questions
import results

# Error codes the page knows. -32800 to -32802 are missing on purpose.
CODES = {-32700, -32600, -32601, -32602, -32603, -32002, -32803}
FAILURES = {"SANDBOX_UNAVAILABLE", "PROGRAM_NOT_FOUND", "PROGRAM_NOT_EXECUTABLE", "BAD_WORKING_DIRECTORY",
            "ARGUMENT_LIST_TOO_LONG", "TOO_MANY_RUNS", "TOO_MANY_SESSIONS", "GRANT_CHANGED", "INPUT_CLOSED", "NO_TERMINAL", "NOT_RECORDED", "SERVER_BUSY"}
RUNNING_METHODS = {"runCommand", "requestEscalation"}
PIECE = 64 << 10  # most bytes in one confine/output


class Run:
    """What was told of one run."""

    def __init__(self):
        self.seq = 0
        self.offsets = {"stdout": 0, "stderr": 0}
        self.exit = None


class Laws:
    """Watches one connection. The client calls it under its lock."""

    def __init__(self, schema, complain):
        self.schema, self.complain = schema, complain
        self.initialized = False
        self.announced = {}       # experimental.confine of the client, if it can be read
        self.asked = set()        # ids of the server's requests
        self.runs = {}
        self.progress = {}        # token: kinds seen
        self.run_of_token = {}

    # What the client sends, as far as it is meant to be right.

    def sent(self, message):
        name = message["method"]
        method = self.schema.methods.get(name)
        if method is None:
            return
        params = message.get("params")
        if "params" in method:
            for error in self.schema.errors(method["params"], params, "params", strict=False):
                self.complain("the schema refuses our %s: %s" % (name, error))
        if name == "initialized":
            self.initialized = True
        if name == "initialize":
            self._announced(params)
        if name in RUNNING_METHODS:
            id = params.get("newRunId" if name == "requestEscalation" else "runId")
            self.runs.pop(id, None)  # the id of a run that was forgotten is free again
            if "workDoneToken" in params:
                self.run_of_token[params["workDoneToken"]] = id

    def _announced(self, params):
        experimental = params["capabilities"].get("experimental")
        if not self.schema.errors(self.schema.named("ClientExperimental"), experimental, strict=False):
            confine = experimental.get("confine", {})
            if confine.get("protocolVersion", 0) >= 1:
                self.announced = confine

    # What comes from the server.

    def came(self, message, pending):
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self.complain("no JSON-RPC 2.0: %.200r" % message)
        if "method" in message:
            self._call(message)
        else:
            self._response(message, pending)

    def _call(self, message):
        name, params = message["method"], message.get("params")
        if set(message) - {"jsonrpc", "id", "method", "params"}:
            self.complain("%s has more than JSON-RPC knows: %s" % (name, sorted(message)))
        if not self.initialized:
            self.complain("%s came before initialized was sent" % name)
        method = self.schema.methods.get(name)
        if method is None:
            return self.complain("the server sent the undescribed method %s" % name)
        if method["from"] not in ("server", "both"):
            self.complain("the server sent the client's method %s" % name)
        if (method["kind"] == "request") != ("id" in message):
            self.complain("%s is not the %s that it should be" % (name, method["kind"]))
        if "id" in message:
            if message["id"] in self.asked or not isinstance(message["id"], (int, str)):
                self.complain("%s has the id %r" % (name, message["id"]))
            self.asked.add(message["id"])
        errors = self.schema.errors(method.get("params", {}), params, "params")
        for error in errors:
            self.complain("%s: %s" % (name, error))
        if not errors and name in self.watched:
            self.watched[name](self, params)

    def _response(self, message, pending):
        if set(message) - {"jsonrpc", "id", "result", "error"} or ("result" in message) == ("error" in message):
            return self.complain("no response: %.200r" % message)
        if "error" in message:
            return self._error(message, pending)
        if pending is None:
            return self.complain("an answer to no request: %.200r" % message)
        method = self.schema.methods.get(pending.method)
        if method is None:
            return self.complain("a result for the undescribed method %s" % pending.method)
        errors = self.schema.errors(method["result"], message["result"], "result")
        if pending.method == "initialize" and not errors:
            errors = self.schema.errors(
                self.schema.named("ServerExperimental"), message["result"]["capabilities"].get("experimental"), "experimental")
        for error in errors:
            self.complain("%s: %s" % (pending.method, error))
        if not errors and method["result"] == self.schema.named("RunResult"):
            self._result(pending, message["result"])

    def _error(self, message, pending):
        error = message["error"]
        name = pending.method if pending else "no request"
        for wrong in self.schema.errors({"type": "object", "properties": {
                "code": {"type": "integer"}, "message": {"type": "string"}, "data": self.schema.named("FailureData")},
                "required": ["code", "message"]}, error, "error"):
            self.complain("%s: %s" % (name, wrong))
        code = error.get("code")
        if code not in CODES:
            self.complain("%s: error code %s: %s" % (name, code, error.get("message")))
        if pending is None and code not in (-32700, -32600):
            self.complain("an error for no request: %.200r" % message)
        if not error.get("message"):
            self.complain("%s: an error without a message" % name)
        if (code == -32803) != ("data" in error):
            self.complain("%s: error %s with data %r" % (name, code, error.get("data")))
        if code == -32803 and error.get("data", {}).get("code") not in FAILURES:
            self.complain("%s: unknown failure %r" % (name, error.get("data")))

    # Runs.

    def _output(self, params):
        run = self.runs.setdefault(params["runId"], Run())
        where = "output %d of %s" % (params["seq"], params["runId"])
        if not self.announced.get("output"):
            self.complain(where + " though no output was asked for")
        if run.exit is not None:
            self.complain(where + " after confine/exit")
        if params["seq"] != run.seq:
            self.complain("%s follows %d" % (where, run.seq - 1))
        run.seq = params["seq"] + 1
        data = piece(params, self.complain)
        if len(data) > PIECE:
            self.complain("%s holds %d bytes" % (where, len(data)))
        stream = params["stream"]
        expected = run.offsets[stream] + params.get("skipped", 0)
        if params["offset"] != expected:
            self.complain("%s is at %s %d, not %d" % (where, stream, params["offset"], expected))
        run.offsets[stream] = params["offset"] + len(data)

    def _exit(self, result):
        run = self.runs.setdefault(result["runId"], Run())
        if not self.announced:
            self.complain("confine/exit to a client that announced nothing")
        if run.exit is not None:
            self.complain("two confine/exit of %s" % result["runId"])
        run.exit = result
        for wrong in results.wrong(result):
            self.complain("confine/exit of %s: %s" % (result["runId"], wrong))
        if self.announced.get("output"):
            for stream in ("stdout", "stderr"):
                if run.offsets[stream] != result[stream]["bytes"]:
                    self.complain("%s of %s: %d bytes were told of, the result says %d"
                                  % (stream, result["runId"], run.offsets[stream], result[stream]["bytes"]))
        for token, id in self.run_of_token.items():
            if id == result["runId"] and "begin" in self.progress.get(token, []) and "end" not in self.progress[token]:
                self.complain("confine/exit of %s before the end of its progress" % id)

    def _result(self, pending, result):
        for wrong in results.wrong(result):
            self.complain("result of %s (%s): %s" % (result["runId"], pending.method, wrong))
        if not self.announced or result["status"] == "running":
            return
        told = self.runs.get(result["runId"], Run()).exit
        if told is None:
            self.complain("%s answered with the end of %s before confine/exit" % (pending.method, result["runId"]))
        elif told != result:
            self.complain("%s and confine/exit of %s differ: %s" % (pending.method, result["runId"], difference(told, result)))

    def _progress(self, params):
        value, kinds = params["value"], self.progress.setdefault(params["token"], [])
        kind = value.get("kind") if isinstance(value, dict) else None
        type = {"begin": "WorkDoneProgressBegin", "end": "WorkDoneProgressEnd"}.get(kind)
        wrong = ["kind %r" % kind] if type is None else self.schema.errors(self.schema.named(type), value, "value")
        if kind == "begin" and value.get("cancellable") is not True:
            wrong.append("it cannot be cancelled")
        kinds.append(kind)
        if kinds not in (["begin"], ["begin", "end"]):
            wrong.append("the kinds are %s" % kinds)
        for text in wrong:
            self.complain("$/progress %r: %s" % (params["token"], text))

    def _question(self, params):
        if not self.announced.get("approval"):
            self.complain("confine/requestApproval to a client that did not announce it")
        for text in questions.wrong(params):
            self.complain("the question about %s: %s" % (params["runId"], text))

    def _message_request(self, params):
        if self.announced.get("approval"):
            self.complain("window/showMessageRequest though approval was announced")
        titles = [action["title"] for action in params["actions"]]
        if params["type"] != 2 or not titles or len(set(titles)) != len(titles):
            self.complain("window/showMessageRequest of type %s with %s" % (params["type"], titles))

    def _changed(self, params):
        if not self.announced:
            self.complain("confine/capabilitiesChanged to a client that announced nothing")

    watched = {"confine/output": _output, "confine/exit": _exit, "$/progress": _progress,
               "confine/capabilitiesChanged": _changed, "confine/requestApproval": _question,
               "window/showMessageRequest": _message_request}


def piece(params, complain):
    """The bytes of a confine/output or of an answer to confine/runs/read."""
    if "data" in params and "base64" in params:
        complain("both data and base64: %.200r" % params)
    if "base64" not in params:
        return params.get("data", "").encode()
    try:
        data = base64.b64decode(params["base64"], validate=True)
    except binascii.Error as error:
        complain("base64 of %s: %s" % (params.get("runId"), error))
        return b""
    try:
        data.decode()
        complain("base64 for what is valid UTF-8: %.100r" % data)
    except UnicodeDecodeError:
        pass
    return data


def difference(a, b):
    """The fields in which two results differ."""
    return ", ".join("%s: %.100r / %.100r" % (name, a.get(name), b.get(name))
                     for name in sorted(set(a) | set(b)) if a.get(name) != b.get(name))
