"""The servers, each one thread on one core, which answer with fixed bytes: a server of our own that is not the limit and
nginx for HTTP/1.1, h2o for HTTP/2.

For HTTP/2, nginx sends every answer in a packet of its own and is busy long before any client; h2o answers what
came together together, six times as many.
"""

import os
import shutil
import socket
import subprocess
import time

from . import answers, measure
from .native import native

CORE = "0"
# A base path that ends with the dialect's endpoint is used as it is by plimsoll.
GET = "/get"
STATUS = "/status"
CHAT = "/chat/v1/chat/completions"
STREAM = "/stream/v1/chat/completions"
HELLO = "hello world, this is a constant answer"


class Server:
    """Use it in a `with` statement. Subclasses have a `name` and the method `command`, which writes the
    configuration too."""

    def __init__(self, folder):
        self.folder = folder
        self.ports = {"http": free_port(), "https": free_port()}

    def url(self, path, scheme="http"):
        return f"{scheme}://127.0.0.1:{self.ports[scheme]}{path}"

    def cpu(self):
        """Seconds of CPU used so far."""
        return measure.cpu(self.process.pid)

    def __enter__(self):
        certificate(self.folder)
        command = list(map(str, self.command()))
        if not shutil.which(command[0]):
            raise SystemExit(f"{self.name} is not installed, see bench/peers")
        self.process = subprocess.Popen(
            ["taskset", "-c", CORE, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(self.ports["http"], self.name)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Nginx(Server):
    name = "nginx"

    def command(self):
        file = self.folder / STREAM[1:]
        file.parent.mkdir(parents=True)
        file.write_text(answers.stream())
        config = self.folder / "nginx.conf"
        config.write_text(self.config())
        return ["nginx", "-p", self.folder, "-c", config]

    def config(self):
        folder, ports = self.folder, self.ports
        temporary = " ".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        chat = f"default_type application/json; return 200 '{answers.chat()}';"
        # A static file, which is too long for a constant, answers a POST when 405 is turned into 200.
        return f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/err;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; {temporary} open_file_cache max=10; root {folder};
  sendfile on; tcp_nopush on;
  ssl_protocols TLSv1.3; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
  server {{ listen 127.0.0.1:{ports["http"]}; listen 127.0.0.1:{ports["https"]} ssl;
    location {GET} {{ default_type text/plain; return 200 "{HELLO}"; }}
    location {STATUS} {{ stub_status; }}
    location /chat {{ {chat} }}
    location /stream {{ default_type text/event-stream; error_page 405 =200 $uri; }}
    location = /v1/models {{ default_type application/json; return 200 '{answers.models()}'; }}
    location = /v1/chat/completions {{ {chat} }}
    location = /health {{ default_type text/plain; return 200 "ok"; }}
  }} }}"""


class Constant(Server):
    """One read and one constant answer per request: an upper limit for a client that does not wait for its server."""

    name = "constant"

    def command(self):
        answer = {
            GET: ("text/plain", HELLO),
            CHAT: ("application/json", answers.chat()),
            STREAM: ("text/event-stream", answers.stream()),
        }
        command = [native("constant_server"), self.ports["http"]]
        for number, (path, (kind, body)) in enumerate(answer.items()):
            file = self.folder / f"answer{number}"
            file.write_bytes(
                f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
            )
            command += [path, file]
        return command


class H2o(Server):
    name = "h2o"

    def command(self):
        site = self.folder / "site"
        site.mkdir()
        (site / GET[1:]).write_text(HELLO)
        config = self.folder / "h2o.conf"
        config.write_text(f"""num-threads: 1
{"user: root" if os.getuid() == 0 else ""}
listen: {{host: 127.0.0.1, port: {self.ports["http"]}}}
hosts:
  default:
    listen:
      host: 127.0.0.1
      port: {self.ports["https"]}
      ssl: {{certificate-file: {self.folder}/cert.pem, key-file: {self.folder}/key.pem, ocsp-update-interval: 0}}
    paths:
      /: {{file.dir: {site}}}
""")
        return ["h2o", "-c", config]


def certificate(folder):
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = ["openssl", "req", *options.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(command, check=True, capture_output=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, name):
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"{name} does not listen: try its configuration by hand")
