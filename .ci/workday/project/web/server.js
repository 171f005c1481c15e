const http = require("node:http");
const { page } = require("./page.js");

http.createServer((_, reply) => reply.setHeader("Content-Type", "text/html").end(page("day")))
  .listen(8765, "127.0.0.1", () => console.log("listening"));
