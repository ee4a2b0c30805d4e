"""The line budget: product lines and sentences per crate, raw lines of `bench` and `scripts`.

A product line has code or an attribute that the program compiles: no blank, no comment, no test. A sentence is a string
literal of three words or more. `scripts/budget.json` has a limit for each count. Any commit may lower a limit, and the
check lowers one itself when the count undercuts it by 2 %. Raising one takes a new record in `docs/adr`, and the sum of
each kind never rises.
"""

import bisect
import json
import re
import subprocess

from . import functions, modules, rust
from .violation import Violation

FILE = "scripts/budget.json"
LOWERED_FROM = 0.02
KINDS = ("lines", "sentences", "raw")
DOCSTRING = re.compile(r'^\s*"""(.|\n)*?"""$', re.MULTILINE)


def check_budget(root):
    """Counts beyond their limit, limits that were raised without a record, and sums that rose."""
    limits = read_limits(root)
    if not limits:
        return []
    counts = count_all(root)
    found = [*beyond(limits, counts), *raised(root, limits)]
    lowered = {name: lower(limits.get(name, 0), count) for name, count in counts.items()}
    if not found and lowered != limits:
        write_limits(root, lowered)
    return found


def read_limits(root):
    path = root / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_limits(root, limits):
    (root / FILE).write_text(json.dumps(dict(sorted(limits.items())), indent=1) + "\n", encoding="utf-8")


def lower(limit, count):
    return count if count <= limit * (1 - LOWERED_FROM) else limit


def beyond(limits, counts):
    for name, count in counts.items():
        if count > limits.get(name, 0):
            rule = f"{name}: {count}, and the budget is {limits.get(name, 0)}"
            yield Violation(FILE, rule, "remove as much elsewhere in it, or raise the limit with a record in docs/adr")


def raised(root, limits):
    """Compares with the version of the budget before this one in the history of git."""
    before = previous(root, limits)
    if before is None:
        return
    commit, old = before
    for kind in KINDS:
        sums = [sum(value for name, value in each.items() if name.startswith(kind)) for each in (old, limits)]
        if sums[1] > sums[0]:
            yield Violation(FILE, f"the sum of {kind} rose from {sums[0]} to {sums[1]}", "lower other limits as much")
    higher = [name for name, value in limits.items() if value > old.get(name, 0)]
    if higher and not new_records(root, commit):
        yield Violation(FILE, f"raised without a record: {', '.join(higher)}", "add a file to docs/adr that says why")


def previous(root, limits):
    """The newest committed budget that differs from `limits`, with its commit."""
    for commit in git(root, "log", "--format=%H", "-n", "20", "--", FILE).split():
        text = git(root, "show", f"{commit}:{FILE}")
        if text and json.loads(text) != limits:
            return commit, json.loads(text)
    return None


def new_records(root, commit):
    committed = git(root, "diff", "--name-only", "--diff-filter=A", commit, "--", "docs/adr")
    return committed or git(root, "ls-files", "--others", "--exclude-standard", "docs/adr")


def git(root, *arguments):
    """Output of git; empty outside of a repository."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def count_all(root):
    """Every count by name: `lines load/engine`, `sentences load/engine`, `raw bench`, ..."""
    counts = {}
    for folder in modules.crate_folders(root):
        crate = folder.relative_to(root / "crates").as_posix()
        counts[f"lines {crate}"], counts[f"sentences {crate}"] = count_crate(folder)
    counts["lines python"] = sum(python_lines(path) for path in (root / "python/src").rglob("*.py"))
    for name in ("bench", "scripts"):
        counts[f"raw {name}"] = raw_lines(root, name)
    return counts


def count_crate(folder):
    """Product lines and sentences."""
    lines, sentences = 0, 0
    files = {module.file for top in modules.crate_roots(folder) for module in modules.read_modules(folder, top)}
    for file in sorted(files):
        text = (folder / file).read_text(encoding="utf-8")
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        tokens, occupied = rust.read_tokens(text), set()
        for index in functions.product_code(tokens, attributes=True):
            first = bisect.bisect_right(starts, tokens.at[index])
            occupied.update(range(first, first + tokens[index].count("\n") + 1))
        sentences += sum(is_sentence(tokens[index]) for index in functions.product_code(tokens))
        lines += len(occupied)
    return lines, sentences


def is_sentence(token):
    return token.startswith('"') and len(token[1:].split()) >= 3


def python_lines(path):
    """Without blank lines, comments and docstrings."""
    text = DOCSTRING.sub("", path.read_text(encoding="utf-8"))
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())


def raw_lines(root, name):
    files = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", name).split("\0")
    return sum((root / file).read_bytes().count(b"\n") for file in files if file != FILE and (root / file).is_file())
