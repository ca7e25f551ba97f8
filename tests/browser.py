"""A real browser, driven over a pipe by the Chrome DevTools Protocol.

https://chromedevtools.github.io/devtools-protocol/; Chromium reads commands from file descriptor 3
and writes to 4, each message ended by a NUL byte.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
)


class Browser:
    """One page in a headless Chromium; `requests` lists every address that it asked."""

    def __init__(self, profile: Path) -> None:
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        line = f"exec {CHROMIUM} {FLAGS} --user-data-dir={shlex.quote(str(profile))}"
        self._process = subprocess.Popen(
            ["bash", "-c", f"{line} 3<&{commands} 4>&{answers}"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._number, self._session = b"", 0, ""
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        self._process.wait(20)
        os.close(self._in)

    def open(self, url: str, width: int = 1280, *, dark: bool = False) -> None:
        """Show a page in a window of that width, and wait until it is loaded."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def prefer(self, language: str) -> None:
        """Ask for pages in a language, as a browser does whose user chose it."""
        self._call("Network.setUserAgentOverride", userAgent="test", acceptLanguage=language)

    def english_texts(self) -> list[str]:
        """Return the texts of a page without Chinese, but for code, cells and the switch."""
        skipped = "script, noscript, style, code, td, option, [lang=en]"
        return self.run(
            "(() => { const texts = [], nodes = document.createTreeWalker(document.body, 4);"
            "while (nodes.nextNode()) { const node = nodes.currentNode;"
            f"if (!node.parentElement.closest('{skipped}') && /[a-z]{{3}}/i.test(node.data)"
            "&& !/[一-鿿]/.test(node.data)) texts.push(node.data.trim()); } return texts; })()"
        )

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))
