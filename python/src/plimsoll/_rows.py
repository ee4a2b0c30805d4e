"""The rows of `results.jsonl`, or `results.jsonl.zst`, as tables, and as Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, overload

from plimsoll._errors import PlimsollError

if TYPE_CHECKING:
    import pandas
    import polars


def _types() -> dict[str, Any]:
    """The type of each key, so that a key which appears late, or never, has its column.

    A key that is not in `_rows.json` takes the type of its values. docs/reference/results.md says what each means.
    """
    import polars

    text = resources.files("plimsoll").joinpath("_rows.json").read_text(encoding="utf-8")
    named = {kind: getattr(polars, kind) for kind in ("String", "Int64", "Boolean", "Float64")}
    named["List"] = polars.List(polars.Float64)
    return {key: named[kind] for kind, keys in json.loads(text).items() for key in keys}


def scan(path: Path, models: Mapping[str, str]) -> polars.LazyFrame:
    """The rows, lazily, with the model of each row's target."""
    import polars

    types = _types()
    if path.stat().st_size == 0:
        return polars.LazyFrame(schema={**types, "model": polars.String})
    # The first rows say which keys there are beyond the known ones; headers and parts of times have keys of their own.
    found = polars.scan_ndjson(path, infer_schema_length=1000).collect_schema()
    rows = polars.scan_ndjson(path, schema={**found, **types})
    model = polars.col("target").replace_strict(models, default=None, return_dtype=polars.String)
    return rows.with_columns(polars.col("weight").fill_null(1.0), model.alias("model"))


def open_lines(path: Path) -> IO[str]:
    """The lines of a file of rows, decompressed if its name ends with `.zst`."""
    if path.suffix != ".zst":
        return path.open(encoding="utf-8")
    try:
        import zstandard
    except ImportError as error:
        raise PlimsollError("compressed rows need zstandard, or polars for `rows`: `pip install zstandard`") from error
    lines: IO[str] = zstandard.open(path, "rt", encoding="utf-8")
    return lines


class Table:
    """A method of records that returns them for the named library, or the installed one."""

    def __init__(self, method: Callable[[Any], list[dict[str, Any]]], of: Any = None) -> None:
        self._method, self._of = method, of
        self.__doc__ = method.__doc__

    def __get__(self, of: Any, _kind: type) -> Table:
        return Table(self._method, of)

    @overload
    def __call__(self, backend: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def __call__(self, backend: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def __call__(self, backend: Literal["records"]) -> list[dict[str, Any]]: ...
    @overload
    def __call__(self, backend: None = None) -> Any: ...
    def __call__(self, backend: str | None = None) -> Any:
        chosen, records = checked(backend), self._method(self._of)
        if chosen == "polars":
            import polars

            return polars.DataFrame(records, infer_schema_length=None)
        if chosen == "pandas":
            import pandas

            return pandas.DataFrame.from_records(records)
        return records


def installed() -> str:
    """The default library of tables."""
    import importlib.util

    for name in ("polars", "pandas"):
        if importlib.util.find_spec(name) is not None:
            return name
    return "records"


def checked(backend: str | None) -> str:
    """The library to use; an error names the supported ones."""
    chosen = backend or installed()
    if chosen not in ("polars", "pandas", "records"):
        raise ValueError(f"backend: {chosen!r} is not known; use 'polars', 'pandas' or 'records'")
    return chosen


def to_parquet(path: Path, models: Mapping[str, str], destination: Path) -> Path:
    """Writes the rows as Parquet (zstd), streaming: they need not fit into memory."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise PlimsollError("Parquet needs polars: `pip install 'plimsoll-load[polars]'`") from error
    scan(path, models).sink_parquet(destination, compression="zstd")
    return destination
