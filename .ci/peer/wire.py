"""The base protocol: frames on the pipes of one server process, nothing more."""

import json
import subprocess
import threading
import time

PATIENCE = 30.0  # seconds; no wait in here is meant to come near it


class Wire:
    """A server process and the frames from it, each parsed and with its time of arrival.

    deliver is called in the reading thread with each message, and with None at
    the end of the stream. What is wrong with the framing goes to complain.
    """

    def __init__(self, argv, env, cwd, deliver, complain):
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.deliver, self.complain = deliver, complain
        self.stderr = b""
        self.reading = threading.Event()  # cleared: the client does not read
        self.reading.set()
        self._send_lock = threading.Lock()  # guards stdin of the server
        self._threads = [threading.Thread(target=self._read, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()

    def send(self, message):
        self.send_body(json.dumps(message).encode())

    def send_body(self, body, header=None):
        head = b"Content-Length: %d\r\n\r\n" % len(body) if header is None else header
        self.send_bytes(head + body)

    def send_bytes(self, data):
        """Ignores a server that is gone: its exit status tells more."""
        with self._send_lock:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass

    def close_input(self):
        with self._send_lock:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass

    def wait(self):
        """The exit status, once everything that the server wrote is read."""
        status = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return status

    def end(self):
        """Makes sure that nothing is left of it."""
        self.reading.set()
        self.close_input()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.complain("the server outlives its standard input by 10 s")
            self.process.kill()
        self.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self):
        try:
            while True:
                body = self._frame()
                if body is None:
                    break
                self.deliver(json.loads(body.decode("utf-8")))
        except ValueError as error:  # of UTF-8 and JSON too
            self.complain("standard output is no frame: %s" % error)
            while self.process.stdout.read(65536):
                pass
        self.deliver(None)

    def _frame(self):
        length = None
        while True:
            self.reading.wait()
            line = self.process.stdout.readline()
            if line == b"" and length is None:
                return None
            if not line.endswith(b"\r\n"):
                raise ValueError("header line %r" % line[:200])
            if line == b"\r\n":
                break
            name, _, value = line[:-2].partition(b": ")
            if name != b"Content-Length" or not value.isdigit() or length is not None:
                raise ValueError("header line %r" % line[:200])
            length = int(value)
        if length is None:
            raise ValueError("a header without Content-Length")
        body = self.process.stdout.read(length)
        if len(body) != length:
            raise ValueError("a body of %d bytes ends after %d" % (length, len(body)))
        return body

    def _read_errors(self):
        for line in self.process.stderr:
            self.stderr = (self.stderr + line)[-8192:]


def until(condition, what, patience=PATIENCE):
    """Waits until condition() is true; for things outside of the connection only."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("not seen in %d s: %s" % (patience, what))
        time.sleep(0.01)
