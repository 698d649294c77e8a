"""Headless Chromium, driven through a pipe with its own protocol; the standard library is enough."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)
KEYS = {
    "Enter": 13,
    "Escape": 27,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Tab": 9,
}
PATIENCE = 60.0


def chromium() -> str | None:
    """The browser to use, if this machine has one."""
    return (
        os.environ.get("TORCHLENS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not the numbers 3 and 4, which the browser reads and writes."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


class Browser:
    """One browser with pages that are opened and closed one after the other."""

    def __init__(self, *, width: int = 1280, height: int = 800) -> None:
        program = chromium()
        assert program is not None, "no chromium on this machine"
        self._folder = tempfile.TemporaryDirectory(prefix="torchlens-chromium-", ignore_cleanup_errors=True)
        (to_read, self._out), (self._in, to_write) = _pipe(), _pipe()
        command = [program, *FLAGS, f"--user-data-dir={self._folder.name}", f"--window-size={width},{height}"]
        line = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", *command, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the browser that this object started."""
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(10)
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    # -- messages --------------------------------------------------------------------------------

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise OSError("the browser has ended")
            self._rest += chunk
        first, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(first))

    def open(self, address: str, *, dark: bool = False, width: int = 1280, height: int = 800) -> Page:
        """Open a page in a tab of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.size(width, height)
        page.dark(dark)
        page.go(address)
        return page


class Page:
    """One tab."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def dark(self, dark: bool) -> None:
        """Set what the reader prefers, without animations."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def go(self, address: str) -> None:
        """Load an address and wait until the page has drawn."""
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def reload(self) -> None:
        """Load the page again, as the reader does."""
        self.eval("document.documentElement.dataset.ready = ''")
        self.call("Page.reload")
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def eval(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.eval(f"!!({expression})"):
                    return
            except RuntimeError:
                pass
            time.sleep(0.02)
        raise TimeoutError(f"the page never came to {expression}")

    # -- as a person -----------------------------------------------------------------------------

    def _spot(self, selector: str) -> tuple[float, float]:
        found = self.eval(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "if (!e) return null; const r = e.getBoundingClientRect();"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        assert found, f"nothing matches {selector}"
        return float(found[0]), float(found[1])

    def hover(self, selector: str) -> None:
        """Move the mouse onto an element."""
        x, y = self._spot(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click an element in its middle."""
        x, y = self._spot(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key."""
        code: dict[str, Any] = {"key": key}
        if key in KEYS:
            code |= {"windowsVirtualKeyCode": KEYS[key]}
        elif len(key) == 1:
            code |= {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in code.items() if k != "text"})

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    # -- what came of it -------------------------------------------------------------------------

    def screenshot(self, path: Path | str | None = None) -> bytes:
        """A picture of the window as PNG."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return data

    def requests(self) -> list[str]:
        """Every address that the tab asked for."""
        return [
            event["params"]["request"]["url"][:200]
            for event in self._own()
            if event["method"] == "Network.requestWillBeSent"
        ]

    def problems(self) -> list[str]:
        """Uncaught exceptions and errors in the log."""
        found = []
        for event in self._own():
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
        return found

    def _own(self) -> list[dict[str, Any]]:
        return [e for e in self._browser.events if e.get("sessionId") == self._session and "method" in e]
