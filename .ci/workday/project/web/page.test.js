const assert = require("node:assert");
const http = require("node:http");
const test = require("node:test");
const { page } = require("./page.js");

test("the page greets", () => assert.match(page("day"), /hello &lt;day&gt;$/));

test("it is served", async () => {
  const server = http.createServer((_, reply) => reply.end(page("you"))).listen(0, "127.0.0.1");
  await new Promise(done => server.once("listening", done));
  const reply = await fetch(`http://127.0.0.1:${server.address().port}/`);
  assert.match(await reply.text(), /&lt;you&gt;$/);
  server.closeAllConnections();
  server.close();
});
