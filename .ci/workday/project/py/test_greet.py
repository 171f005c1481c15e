import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent / "vendor"))

import greet  # noqa: E402


def test_greeting(tmp_path):
    (tmp_path / "name").write_text("day")
    assert greet.greeting((tmp_path / "name").read_text()) == "hello day"


def test_processes_and_threads():
    found = []
    thread = threading.Thread(target=lambda: found.append(subprocess.check_output(["printf", "hello"])))
    thread.start()
    thread.join()
    assert found == [b"hello"]
