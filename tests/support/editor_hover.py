"""What an editor shows for the names in a file: ``python -m tests.support.editor_hover PYTHON FILE``.

It talks to Pyright's language server, as an editor does, hovers over the name in front of each comment ``# shows: text``, and
ends with 1 if the text is not in what is shown.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any


class LanguageServer:
    """Pyright over standard input and output."""

    def __init__(self, python: Path, root: Path) -> None:
        command = [str(Path(sys.executable).with_name("pyright-langserver")), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ids = count(1)
        self._settings = {"python": {"pythonPath": str(python)}}
        self.request("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": WANTED})
        self.notify("initialized", {})

    def request(self, method: str, params: Any) -> Any:
        """The result of a request. What the server asks meanwhile is answered."""
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._received()
            if message.get("id") == number and "method" not in message:
                return message.get("result")
            if "id" in message:
                self._send({"id": message["id"], "result": self._answer(message)})

    def notify(self, method: str, params: Any) -> None:
        """Tell the server."""
        self._send({"method": method, "params": params})

    def close(self) -> None:
        """End the server."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self._process.wait()

    def _answer(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        return [self._settings.get(item.get("section"), {}) for item in message["params"]["items"]]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _received(self) -> Any:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self._process.stdout.read(length))


WANTED = {
    "workspace": {"configuration": True},
    "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
}


def main(python: Path, file: Path) -> int:
    """1 if a text is not shown."""
    source = file.read_text()
    server = LanguageServer(python, file.parent)
    document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": source}
    server.notify("textDocument/didOpen", {"textDocument": document})
    missing = hovers = 0
    for number, line in enumerate(source.splitlines()):
        wanted = re.search(r"(\w+)\W*# shows: (.*)", line)
        if wanted is not None:
            position = {"line": number, "character": wanted.start(1)}
            shown = server.request("textDocument/hover", {"textDocument": {"uri": file.as_uri()}, "position": position})
            text = "" if shown is None else shown["contents"]["value"]
            hovers += 1
            if wanted[2] not in " ".join(text.split()):
                missing += 1
                print(f"{file.name}:{number + 1}: {wanted[1]} shows {text!r}")
    server.close()
    print(f"{hovers - missing} of {hovers} names show their docstring in an editor")
    return 1 if missing or not hovers else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).resolve()))
