"""Widths of lines, words that must not come back, paths that documents name, and where tests live."""

import posixpath
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import rust
from .violation import Violation

URL = re.compile(r"https?://\S+")
# `- [text](url)`, `[name]: url` or a bare URL, and nothing else.
LINK_ONLY = re.compile(r"\s*(?:[-*+]\s+|\d+\.\s+)?(?:\[[^\]]*\](?:\([^)]*\)|:\s*\S+)|<?https?://\S+>?)[.,;:]?\s*")
# A path of this repository in backticks, and the target of a relative link.
PATH = re.compile(r"`((?:crates|docs|scripts|bench|fuzz|profiles|examples)/[\w./-]*\w)`")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")


@dataclass(frozen=True)
class TextRules:
    """The tables; scripts/structure explains each."""

    widths: dict
    forbidden_words: dict
    generated: tuple = ()
    test_exceptions: dict = field(default_factory=dict)
    word_exceptions: dict = field(default_factory=dict)


@dataclass(frozen=True)
class WideLine:
    """A line that is too long."""

    file: str
    number: int
    width: int
    text: str

    def __str__(self):
        return f"{self.file}:{self.number}: {self.width} columns: {self.text.strip()}"


def list_files(root):
    """Files that git tracks, or would if added; without git, all files that are neither hidden nor built."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    else:
        paths = (path.relative_to(root) for path in root.rglob("*"))
        names = [path.as_posix() for path in paths if not is_hidden_or_built(path)]
    return sorted(name for name in set(names) if name and (root / name).is_file())


def is_hidden_or_built(path):
    return any(part.startswith(".") or part == "target" for part in path.parts)


def read_texts(root):
    """Every text file by name, without files that are not UTF-8."""
    texts = {}
    for name in list_files(root):
        try:
            texts[name] = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def check_texts(texts, rules):
    """All violations of widths, words and paths."""
    return [*check_widths(texts, rules), *check_words(texts, rules), *check_paths(texts)]


def check_widths(texts, rules):
    lines = {}
    for line in wide_lines(texts, rules):
        lines.setdefault(line.file, []).append(line)
    for file, found in lines.items():
        limit = rules.widths[Path(file).suffix]
        what = "comment line" if file.endswith(".rs") else "line"
        first = f"the first is {found[0].number} with {found[0].width}: {found[0].text.strip()[:60]}..."
        rule = f"{len(found)} {what}{'s' * (len(found) > 1)} wider than {limit} columns, {first}"
        yield Violation(file, rule, "wrap (all: --widths)")


def wide_lines(texts, rules):
    """Every line that is too long, in the order of files."""
    for file, text in texts.items():
        limit = rules.widths.get(Path(file).suffix)
        if limit is None or file.startswith(rules.generated):
            continue
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if len(line) > limit]
        if lines:
            counted = comment_numbers(text) if file.endswith(".rs") else set(prose_numbers(text, limit))
            yield from (WideLine(file, number, len(line), line) for number, line in lines if number in counted)


def comment_numbers(text):
    """In Rust only comments count: rustfmt wraps code, except for strings that it must not break."""
    return rust.comment_lines(text)


def prose_numbers(text, limit):
    """The lines of a Markdown file that could be wrapped: no table, no code, no link that would not fit anyway."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = mark[1] if fence is None else None
        elif fence is None and not is_unbreakable(line, limit):
            yield number


def is_unbreakable(line, limit):
    is_table = line.lstrip().startswith("|")
    return is_table or LINK_ONLY.fullmatch(line) is not None or any(len(url) > limit for url in URL.findall(line))


def check_words(texts, rules):
    patterns = [(re.compile(word, re.IGNORECASE), instead) for word, instead in rules.forbidden_words.items()]
    for file, text in texts.items():
        if file in rules.word_exceptions:
            continue
        for pattern, instead in patterns:
            found = list(pattern.finditer(text))
            if found:
                first = f"`{found[0][0]}` at line {rust.line_of(text, found[0].start())}"
                rule = f"{len(found)} forbidden word{'s' * (len(found) > 1)}, the first is {first} (FORBIDDEN_WORDS)"
                yield Violation(file, rule, f"write `{instead}`")


def check_paths(texts):
    """Documents that name a file or folder which does not exist."""
    folders = {parent.as_posix() for file in texts for parent in Path(file).parents}
    for file, text in texts.items():
        if not file.endswith(".md"):
            continue
        named = [(found.start(), found[1]) for found in PATH.finditer(text)]
        named += [(found.start(), resolve(file, found[1])) for found in LINK.finditer(text)]
        for start, path in sorted(named):
            # Pictures are not checked as text.
            if path not in texts and path.rstrip("/") not in folders and not is_picture(path):
                rule = f"line {rust.line_of(text, start)} names `{path}`, which does not exist"
                yield Violation(file, rule, "name the file as it is called now")


def is_picture(path):
    return path.startswith("docs/pictures/") and Path(path).is_file()


def resolve(file, link):
    """The path of a link, seen from the root of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), link))


def check_tests(root, rules):
    """One binary of integration tests for each crate."""
    for path in test_roots(root):
        file = path.relative_to(root).as_posix()
        if file in rules.test_exceptions:
            continue
        if path.name == "mod.rs":
            yield Violation(file, "test helpers beside tests/it", "move it to tests/it/support.rs")
        else:
            rule = "a binary of tests of its own, beside tests/it/main.rs"
            yield Violation(file, rule, "make it a module of tests/it, or say why not in TEST_EXCEPTIONS")
    for file in rules.test_exceptions:
        if not (root / file).is_file():
            yield Violation(file, "TEST_EXCEPTIONS has a row for it, and it does not exist", "remove the row")


def test_roots(root):
    """Files that Cargo would build as test binaries, and their helpers, other than tests/it/main.rs."""
    for folder in sorted(root.glob("crates/**/tests")):
        if (folder.parent / "Cargo.toml").is_file():
            found = [*folder.glob("*.rs"), *folder.glob("*/main.rs"), *folder.glob("*/mod.rs")]
            yield from sorted(path for path in found if path != folder / "it" / "main.rs")
