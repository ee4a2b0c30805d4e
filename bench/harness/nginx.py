"""The server: nginx with one process on one core, which answers with fixed bytes."""

import os
import socket
import subprocess
import time
from pathlib import Path

from . import answers

CORE = "0"
# A base path that ends with the dialect's endpoint is used as it is by plimsoll.
GET = "/get"
CHAT = "/chat/v1/chat/completions"
STREAM = "/stream/v1/chat/completions"
PLAIN, H2, TLS, H2_TLS = "plain", "h2", "tls", "h2 tls"
SCHEMES = {PLAIN: "http", H2: "http", TLS: "https", H2_TLS: "https"}
LISTEN = {PLAIN: "", H2: "http2", TLS: "ssl", H2_TLS: "ssl http2"}


class Nginx:
    """Use it in a `with` statement."""

    def __init__(self, folder):
        self.folder = folder
        self.ports = {kind: free_port() for kind in LISTEN}

    def url(self, path, kind=PLAIN):
        return f"{SCHEMES[kind]}://127.0.0.1:{self.ports[kind]}{path}"

    def cpu(self):
        """Seconds of CPU used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        for path, answer in ((CHAT, answers.chat()), (STREAM, answers.stream())):
            file = self.folder / path[1:]
            file.parent.mkdir(parents=True)
            file.write_text(answer)
        certificate(self.folder)
        config = self.folder / "nginx.conf"
        config.write_text(self.config())
        command = ["taskset", "-c", CORE, "nginx", "-p", self.folder, "-c", config]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(self.ports[PLAIN])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def config(self):
        folder = self.folder
        listen = " ".join(f"listen 127.0.0.1:{self.ports[kind]} {how};" for kind, how in LISTEN.items())
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        # A static file answers a POST when 405 is turned into 200.
        return f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/err;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; {temporary} open_file_cache max=10; root {folder};
  sendfile on; tcp_nopush on; http2_max_concurrent_streams 128;
  ssl_protocols TLSv1.3; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
  server {{ {listen}
    location {GET} {{ default_type text/plain; return 200 "hello world, this is a constant answer"; }}
    location /chat {{ default_type application/json; error_page 405 =200 $uri; }}
    location /stream {{ default_type text/event-stream; error_page 405 =200 $uri; }}
    location = /v1/models {{ default_type application/json; return 200 '{answers.models()}'; }}
    location = /v1/chat/completions {{ root {folder}/chat; default_type application/json; error_page 405 =200 $uri; }}
    location = /health {{ default_type text/plain; return 200 "ok"; }}
  }} }}"""


def certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(command, check=True, capture_output=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit("nginx does not listen: see that it is installed with http_v2 and ssl (bench/peers)")
