"""Makes one tiny package for each package manager, and serves those of npm.

usage: python3 packages.py make FOLDER     makes them
       python3 packages.py serve FOLDER    a registry of npm on 127.0.0.1; prints its port
"""

import base64
import hashlib
import http.server
import io
import json
import os
import sys
import tarfile
import zipfile

NPM = {
    "day-words": 'exports.hello = "hello";\n',
    "day-local": "exports.mark = name => `&lt;${name}&gt;`;\n",
}
MODULE = "example.test/words"


def make(folder):
    def write(path, data):
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    for name, source in NPM.items():
        description = json.dumps({"name": name, "version": "1.0.0", "main": "index.js", "license": "MIT"})
        write("npm/%s-1.0.0.tgz" % name, tar({"package/package.json": description, "package/index.js": source}))

    mod = "module %s\n\ngo 1.21\n" % MODULE
    source = "// Package words holds words.\npackage words\n\n// Hello is a word.\nconst Hello = \"hello\"\n"
    inside = "%s@v1.0.0/" % MODULE
    for name, data in {"list": "v1.0.0\n", "v1.0.0.info": '{"Version": "v1.0.0"}', "v1.0.0.mod": mod,
                       "v1.0.0.zip": zipped({inside + "go.mod": mod, inside + "words.go": source})}.items():
        write("go/%s/@v/%s" % (MODULE, name), data)

    info = "day_words-1.0.0.dist-info/"
    write("wheels/day_words-1.0.0-py3-none-any.whl", zipped({
        "day_words.py": 'HELLO = "hello"\n', info + "METADATA": "Metadata-Version: 2.1\nName: day-words\nVersion: 1.0.0\n",
        info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "RECORD": "day_words.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n" % (info, info, info)}))

    crate = tar({"day-words-1.0.0/Cargo.toml": '[package]\nname = "day-words"\nversion = "1.0.0"\nedition = "2021"\n',
                 "day-words-1.0.0/src/lib.rs": 'pub const HELLO: &str = "hello";\n'})
    write("crates/day-words-1.0.0.crate", crate)
    write("crates/index/da/y-/day-words", json.dumps({
        "name": "day-words", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
        "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def serve(folder):
    class Registry(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/").split("/")[0]
            try:
                with open(os.path.join(folder, "npm", name + "-1.0.0.tgz"), "rb") as file:
                    archive = file.read()
            except OSError:
                return self.send_error(404)
            if self.path.endswith(".tgz"):
                return self.answer("application/octet-stream", archive)
            here = "http://127.0.0.1:%d/%s" % (self.server.server_port, name)
            dist = {"tarball": "%s/-/%s-1.0.0.tgz" % (here, name), "shasum": hashlib.sha1(archive).hexdigest(),
                    "integrity": "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()}
            self.answer("application/json", json.dumps({
                "name": name, "dist-tags": {"latest": "1.0.0"}, "time": dict.fromkeys(("created", "modified", "1.0.0"), "2024-01-01T00:00:00.000Z"),
                "versions": {"1.0.0": {"name": name, "version": "1.0.0", "dist": dist}}}).encode())

        def answer(self, kind, data):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    {"make": make, "serve": serve}[sys.argv[1]](sys.argv[2])
