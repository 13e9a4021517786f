"""A headless Chromium, driven over its DevTools protocol: the page as a user sees it."""
import base64
import itertools
import json
import pathlib
import shutil
import subprocess

from websockets.sync.client import connect

from .wait import until

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def program():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Session:
    """A connection to the browser or to one of its pages; what the page complains about is in `problems`."""

    def __init__(self, url):
        self._socket = connect(url, max_size=None, open_timeout=20)
        self._numbers = itertools.count(1)
        self.problems = []  # console errors, exceptions, what the page's policy refused

    def call(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def _note(self, message):
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(what["exceptionDetails"])[:500])
        if kind == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.problems.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))
        if kind == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
            self.problems.append(json.dumps(what["args"])[:500])

    def close(self):
        self._socket.close()


class Chromium:
    """The browser's process. A start takes more processor time than most tests, so that the tests of a file share one."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self._process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0",
             "--hide-scrollbars", "--user-data-dir=%s" % folder, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = folder / "DevToolsActivePort"
        until(lambda: port_file.exists() and port_file.read_text().count("\n"), 60, "the browser")
        port, path = port_file.read_text().split()
        self.base = "ws://127.0.0.1:" + port
        self.session = Session(self.base + path)

    def stop(self):
        self.session.close()
        self._process.terminate()
        self._process.wait(20)


class Browser(Session):
    """A window with a context of its own: it shares no cache, no storage and no connection with another one."""

    def __init__(self, chromium, width=1280, height=800):
        self._chromium = chromium.session
        self._context = self._chromium.call("Target.createBrowserContext")["browserContextId"]
        target = self._chromium.call("Target.createTarget", url="about:blank", browserContextId=self._context, width=width, height=height)["targetId"]
        super().__init__("%s/devtools/page/%s" % (chromium.base, target))
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def go(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """Returns the value of a JavaScript expression; awaits a promise."""
        response = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in response, response
        return response["result"].get("value")

    def see(self, script, seconds=15):
        return until(lambda: self.run(script), seconds, script)

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text and kind == "keyDown" else {}))

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.run("(() => { const b = document.querySelector(%s).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
                        % json.dumps(selector))
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def dark(self, on=True):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def stop(self):
        self.close()
        self._chromium.call("Target.disposeBrowserContext", browserContextId=self._context)
