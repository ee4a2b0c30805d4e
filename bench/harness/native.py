"""Programs in C or Go that benchmarks use."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "validity" / "native"


@functools.cache
def native(name):
    """Compiles a program of validity/native, once a process, and gives its path."""
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-native-"))
    source = next(SOURCES.glob(f"{name}.*"))
    command = (
        ["gcc", "-O2", "-o", folder / name, source]
        if source.suffix == ".c"
        else ["go", "build", "-o", folder / name, source]
    )
    subprocess.run(list(map(str, command)), check=True, env={**os.environ, "GO111MODULE": "off"})
    return folder / name
