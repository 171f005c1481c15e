"""The example of the page, word for word."""

import json
import os
import re

from group import group


@group
def example(t):
    world = t.world('sandbox_mode = "workspace-write"\n')
    c = t.enter(world.client())
    came = 0  # messages of the log that lie behind us
    for arrow, message in conversation(t.kit.page, world):
        if arrow == "→":
            send(c, message)
            continue
        try:
            came = c.await_that(lambda: next((n + 1 for n, m in enumerate(c.log) if n >= came and holds(m, message)), 0), "what the page shows")
            t.check("← %.70s" % json.dumps(message), True)
        except TimeoutError as error:
            t.check("← %.70s" % json.dumps(message), False, "%s; since then came %s" % (error, c.log[came:]))
            return
    t.equal("the end", (c.wire.wait(), os.listdir(world.outside)), (0, ["new"]))


def conversation(page, world):
    """The lines of the example, with folders of this world for those of the page."""
    with open(page, encoding="utf-8") as file:
        block = re.search(r"^## An example\n.*?^```\n(.*?)^```\n", file.read(), re.M | re.S)[1]
    block = block.replace("/reports", world.outside).replace("/project", world.workspace).replace("4711", str(os.getpid()))
    for line in re.sub(r"\n +", " ", block).splitlines():
        yield line[0], json.loads(line[1:])


def send(c, message):
    """As the page shows it, but for jsonrpc, which it leaves out."""
    if "id" in message and "method" in message:
        c.request(message["method"], message.get("params"), id=message["id"])
    elif "method" in message:
        c.notify(message["method"], message.get("params"))
    else:
        c.reply(message, message["result"])


def holds(value, shown):
    """Whether value is what is shown, and perhaps more fields."""
    if isinstance(shown, dict):
        return isinstance(value, dict) and all(name in value and holds(value[name], part) for name, part in shown.items())
    if isinstance(shown, list):
        return isinstance(value, list) and len(value) == len(shown) and all(map(holds, value, shown))
    return value == shown
