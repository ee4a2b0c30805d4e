"""A headless Chromium, through its DevTools protocol over a pipe: no driver, no library, no port.

Everything that the browser wants from the network, loopback too, goes to a proxy of ours that answers nothing and
notes what was asked. So no request can be missed.
"""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import socket
import subprocess
import threading
import time

# Addresses of Chromium's own services, which are not requests of the page.
OWN_SERVICES = ("google.com", "googleapis.com", "gvt1.com", "gstatic.com")
FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
    "--hide-scrollbars",
    "--proxy-bypass-list=<-loopback>",
    "--allow-file-access-from-files",
]
ANSWER_S = 180  # the longest time until the browser answers: axe-core needs some, and the machine may be busy


class BrowserError(Exception):
    pass


class Listener:
    """A proxy that answers every request with 200 and nothing, and notes its first line."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.asked = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            client.settimeout(5)
            try:
                line = client.recv(65536).split(b"\r\n")[0].decode("latin-1")
                self.asked.append(line)
                client.sendall(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\naccess-control-allow-origin: *\r\n"
                    b"connection: close\r\n\r\n"
                )
            except OSError:
                pass

    def of_pages(self):
        """Requests of pages; the browser also opens connections that it does not use."""

        def is_own(line):
            host = line.split(" ")[1].split("//")[-1].split("/")[0].split(":")[0] if " " in line else ""
            return host.endswith(OWN_SERVICES)

        return [line for line in self.asked if line and not is_own(line)]


def high(descriptor):
    """The same under a number that nobody expects."""
    same = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 100)
    os.close(descriptor)
    return same


class Browser:
    """One browser with one tab. Use it in a `with`."""

    def __init__(self, folder, program=None):
        self.listener = Listener()
        program = program or shutil.which("chromium") or shutil.which("chromium-headless-shell")
        if not program:
            raise BrowserError("no chromium is installed: apt-get install chromium")
        (to_browser, commands), (answers, from_browser) = os.pipe(), os.pipe()
        # The browser reads from its descriptor 3 and writes to 4; the shell puts ours there, from high numbers.
        to_browser, from_browser = high(to_browser), high(from_browser)
        flags = [*FLAGS, f"--proxy-server=http://127.0.0.1:{self.listener.port}", f"--user-data-dir={folder}/browser"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, program, *flags, "about:blank"],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        self.commands, self.answers = commands, answers
        self.buffer, self.numbers, self.events, self.session = b"", itertools.count(1), [], None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Audits", "DOM"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(timeout=10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.listener.socket.close()

    def read(self, deadline):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise BrowserError("the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        """Sends a command and gives its result; what happens meanwhile is noted in `events`."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        left = json.dumps(command).encode() + b"\0"
        while left:
            left = left[os.write(self.commands, left) :]
        deadline = time.monotonic() + ANSWER_S
        while True:
            message = self.read(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def open(self, path):
        """Opens a file and waits until it is loaded. Gives what happened from there on."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + ANSWER_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read(deadline))
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return list(self.events)

    def run(self, script):
        """The value of an expression in the page."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise BrowserError(json.dumps(done["exceptionDetails"])[:500])
        return done["result"].get("value")

    def width(self, pixels, height=900):
        """The page as a window of this width shows it."""
        self.send("Emulation.setDeviceMetricsOverride", width=pixels, height=height, deviceScaleFactor=1, mobile=False)

    def scripts(self, on):
        self.send("Emulation.setScriptExecutionDisabled", value=not on)

    def text(self):
        """The document as it stands, without a script."""
        root = self.send("DOM.getDocument", depth=0)["root"]
        return self.send("DOM.getOuterHTML", nodeId=root["nodeId"])["outerHTML"]

    def key(self, name):
        codes = {"Tab": 9, "Enter": 13}
        more = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name], **more
            )

    def pdf(self):
        return base64.b64decode(
            self.send("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
        )

    def screenshot(self, path, selector=None):
        """A picture of the page, or of one element."""
        clip = {}
        if selector:
            box = self.run(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                "return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height, scale: 1} })()"
            )
            clip = {"clip": box}
        picture = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)["data"]
        path.write_bytes(base64.b64decode(picture))
