"""A headless Chromium to look at pages with, over the pipe of its DevTools protocol: nothing to install beside it.

Messages are JSON, each ended by a NUL byte, to file descriptor 3 of the browser and from its descriptor 4. What a page
complains of on its console, throws, or tries to fetch from elsewhere is kept in `complaints` and `fetched`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "chromium"]

SECONDS = 60  # to wait for an answer, on a slow machine
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync"),
    "--remote-debugging-pipe",
]


def chromium() -> str | None:
    """Where Chromium is, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A browser with one tab."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        command = [chromium(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        wired = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(wired, pass_fds=(theirs_in, theirs_out), **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._buffer, self._session = 0, b"", None
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        self.loaded = False
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a message of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            heard = self._hear(until)
            if heard.get("id") == self._number:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return heard["result"]
            self._note(heard)

    def _hear(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        whole, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(whole)

    def _note(self, heard: dict[str, Any]) -> None:
        said = heard.get("params", {})
        match heard.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(said["exceptionDetails"].get("exception", said).get("description", said)))
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "warning", "assert"):
                self.complaints.append(" ".join(str(one.get("value", one)) for one in said["args"]))
            case "Log.entryAdded" if said["entry"]["level"] in ("error", "warning"):
                self.complaints.append(said["entry"]["text"])
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"dialog: {said['message']}")
            case "Network.requestWillBeSent":
                self.fetched.append(said["request"]["url"])
            case "Page.loadEventFired":
                self.loaded = True

    # -- what a reader does ---------------------------------------------------------------------------------------

    def open(self, path: Path, query: str = "", *, width: int = 1280, height: int = 900, ready: str = "true") -> None:
        """Load a file and wait until `ready`, an expression in JavaScript, is true."""
        self.complaints, self.fetched, self.loaded = [], [], False
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.ask("Page.navigate", url=path.as_uri() + query)
        until = time.monotonic() + SECONDS
        while not self.loaded:
            self._note(self._hear(until))
        self.wait_for(ready)

    def do(self, script: str) -> Any:
        """The value of an expression in JavaScript."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, f"{script}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + SECONDS
        while not self.do(f"Boolean({script})"):
            assert time.monotonic() < until, f"never true: {script}; {self.complaints}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Click into the middle of an element, as a mouse does."""
        place = f"document.querySelector({json.dumps(selector)})"
        self.do(f"{place}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.do(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({place}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.ask("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press a key by its name and number, such as ``ArrowRight`` (39)."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def print(self, path: Path) -> None:
        """The page as a PDF, as it would be printed."""
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF")["data"]))

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser: it leaves when its pipe is closed."""
        os.close(self._to)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)
        self._profile.cleanup()
