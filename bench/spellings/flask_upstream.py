"""An upstream as people write it with Flask: `flask_upstream.py PORT`."""

import sys

from flask import Flask, request

app = Flask(__name__)
METHODS = ["GET", "POST", "PUT", "DELETE"]


@app.route("/files/private/<path:name>", methods=METHODS)
def private(name):
    return f"PRIVATE-HANDLER {request.method}\n"


@app.route("/files/<path:name>", methods=METHODS)
def files(name):
    return "files\n"


@app.route("/v1/chat/completions", methods=["POST"])
def chat():
    """Reads the body as JSON, whatever its type says."""
    body = request.get_json(force=True, silent=True)
    attacked = body is not None and "DROP TABLE" in str(body)
    return ("ATTACK-READ\n" if attacked else "harmless\n"), 200, {"content-type": "text/plain"}


if __name__ == "__main__":
    app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
