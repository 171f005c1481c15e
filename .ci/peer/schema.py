"""Validates messages against docs/protocol.schema.json.

Only the keywords that the schema uses are known; any other one is an error when
the schema is loaded, so that nothing is ever taken for checked that was not.
"""

import json

KEYWORDS = {"$ref", "type", "properties", "required", "items", "enum", "additionalProperties", "propertyNames", "anyOf"}

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "null": lambda v: v is None,
}


class Schema:
    """The schema of the protocol: one entry per method, and named types."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.root = json.load(file)
        self.methods = self.root["methods"]
        self.commands = self.root["commands"]
        self.version = self.root["protocolVersion"]
        for name, node in self.root["$defs"].items():
            self._known(node, name)
        for name, method in self.methods.items():
            if set(method) - {"from", "kind", "params", "result"}:
                raise ValueError("method %s: unknown keys %s" % (name, sorted(method)))
            for part in ("params", "result"):
                self._known(method.get(part, {}), name + " " + part)

    def _known(self, node, where):
        unknown = set(node) - KEYWORDS
        if unknown:
            raise ValueError("%s: unknown keywords %s" % (where, sorted(unknown)))
        types = node.get("type", [])
        for name in types if isinstance(types, list) else [types]:
            if name not in TYPES:
                raise ValueError("%s: unknown type %r" % (where, name))
        for name, child in node.get("properties", {}).items():
            self._known(child, where + "." + name)
        for child in node.get("anyOf", []):
            self._known(child, where)
        for part in ("items", "additionalProperties", "propertyNames"):
            if not isinstance(node.get(part, False), bool):
                self._known(node[part], where + "." + part)
        if "$ref" in node:
            self._resolve(node["$ref"])

    def _resolve(self, ref):
        return self.root["$defs"][ref.removeprefix("#/$defs/")]

    def named(self, name):
        """The type of this name, for places where the schema says nothing."""
        return {"$ref": "#/$defs/" + name}

    def errors(self, node, value, where="", strict=True):
        """What is wrong with value. Strict: a property that is not described is wrong."""
        if "$ref" in node:
            node = self._resolve(node["$ref"])
        types = node.get("type")
        if types is not None:
            types = types if isinstance(types, list) else [types]
            if not any(TYPES[name](value) for name in types):
                return ["%s is %s, not %s" % (where or "it", _short(value), " or ".join(types))]
        if "enum" in node and value not in node["enum"]:
            return ["%s is %s, none of %s" % (where or "it", _short(value), node["enum"])]
        found = []
        if "anyOf" in node:
            tried = [self.errors(child, value, where, strict) for child in node["anyOf"]]
            if all(tried):
                found += tried[0]
        if isinstance(value, list) and "items" in node:
            for number, item in enumerate(value):
                found += self.errors(node["items"], item, "%s[%d]" % (where, number), strict)
        if isinstance(value, dict):
            found += self._object(node, value, where, strict)
        return found

    def _object(self, node, value, where, strict):
        found = []
        for name in node.get("required", []):
            if name not in value:
                found.append("%s has no %s" % (where or "it", name))
        properties = node.get("properties")
        others = node.get("additionalProperties", None if properties is not None else {})
        for name, item in value.items():
            here = where + "." + name
            found += self.errors(node.get("propertyNames", {}), name, here + " (its name)", strict)
            if properties and name in properties:
                found += self.errors(properties[name], item, here, strict)
            elif others is False or others is None and strict:
                found.append("%s is not described" % here)
            elif isinstance(others, dict):
                found += self.errors(others, item, here, strict)
        return found


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
