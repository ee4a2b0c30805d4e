"""The tutorial and the README's example, followed word for word."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import plimsoll

ROOT = Path(__file__).resolve().parents[2]


def blocks(path: str, language: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{path} has no {language}"
    return found


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_the_tutorial_works_word_for_word(tmp_path: Path) -> None:
    script = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "\n".join(
        blocks("docs/guides/first-gateway.md", "bash")
    )
    # Other tests may have the ports of the page.
    script = script.replace("127.0.0.1:9000", f"127.0.0.1:{free_port()}").replace(
        "127.0.0.1:8080", f"127.0.0.1:{free_port()}"
    )
    path = f"{plimsoll.binary().parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("ttft p(50)<500ms", "FAIL", "report.html"):
        assert words in done.stdout, f"{words}: {done.stdout}{done.stderr}"


def test_the_python_of_the_readme_makes_a_table_and_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    (code,) = blocks("README.md", "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "python" / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "completed_per_s" in done.stdout
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_ends_with_a_table_and_a_plot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python" / "src"))
    notebook = nbformat.read(ROOT / "examples" / "sweep.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})], "a plot"
    tables = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    # A row for each of the five levels: in the view of the run, by level, and from the rows.
    whole = [table for table in tables if table.count("<tr>") >= 5]
    assert len([table for table in whole if "16 users" in table]) == 2, tables
    assert len([table for table in whole if "16:3s" in table]) == 1, tables
