"""What makes Rust functions hard to read: parameters that are tuples taken apart, and steps hidden in `let` closures.

A tuple that is taken apart is a struct without a name; a closure that a `let` binds is most often a function without
one, or code that stands far from its only use.
"""

from dataclasses import dataclass, field

from . import modules, rust
from .violation import Violation


@dataclass
class ClosureCount:
    """The product's code of one crate: how many functions, and where a `let` binds a closure."""

    crate: str
    functions: int = 0
    closures: list = field(default_factory=list)


def check_closures(root, most_per_1000):
    """More `let` closures per 1,000 functions of all crates than `most_per_1000`."""
    counts = count_closures(root)
    share = per_1000(counts)
    if share > most_per_1000:
        rule = f"{share:.1f} closures per 1,000 functions are bound by `let`; at most {most_per_1000} may be"
        fix = "write them where they are used, or as functions; scripts/structure --closures lists them"
        yield Violation("crates", rule, fix)


def per_1000(counts):
    functions = sum(count.functions for count in counts)
    return 1000 * sum(len(count.closures) for count in counts) / max(functions, 1)


def count_closures(root):
    """One count for each crate."""
    return [count_crate(root, folder) for folder in modules.crate_folders(root)]


def count_crate(root, folder):
    count = ClosureCount(folder.relative_to(root).as_posix())
    files = {module.file for top in modules.crate_roots(folder) for module in modules.read_modules(folder, top)}
    for file in sorted(files):
        text = (folder / file).read_text(encoding="utf-8")
        tokens = rust.read_tokens(text)
        for index in product_code(tokens):
            if tokens[index] == "fn" and rust.is_word(tokens[index + 1]):
                count.functions += 1
            elif tokens[index] == "let" and (name := closure_name(tokens, index)):
                count.closures.append(f"{count.crate}/{file}:{rust.line_of(text, tokens.at[index])}: {name}")
    return count


def product_code(tokens, attributes=False):
    """The index of each token outside of test-only code; tokens of attributes only if `attributes`."""
    reader, index = rust.Reader(tokens), 0
    while index < len(tokens):
        if tokens[index] == "#" and tokens[index + 1] == "[":
            after, found = reader.attributes(index)
            tested = any(rust.is_test(attribute) for attribute in found)
            if attributes and not tested:
                yield from range(index, after)
            index = reader.item_end(reader.keyword(after)[0], len(tokens)) if tested else after
        else:
            yield index
            index += 1


def closure_name(tokens, index):
    """The name that the `let` at `index` gives to a closure, if it does."""
    index += 2 if tokens[index + 1] == "mut" else 1
    name, index = tokens[index], index + 1
    if tokens[index] == ":":
        index = tokens.find(index, len(tokens), {"=", ";"})
    value = index + 2 if tokens[index + 1] == "move" else index + 1
    return name if tokens[index] == "=" and tokens[value] == "|" else None


def check_tuple_parameters(texts):
    """Functions whose parameters are tuple patterns."""
    for file, text in texts.items():
        if file.endswith(".rs"):
            for line, name in tuple_parameters(text):
                rule = f"line {line}: `{name}` takes a tuple apart in its parameters"
                yield Violation(file, rule, "make it a struct, or several parameters")


def tuple_parameters(text):
    """Line and name of each such function."""
    tokens = rust.read_tokens(text)
    for index in range(len(tokens)):
        if tokens[index] == "fn" and rust.is_word(tokens[index + 1]):
            start = parameters(tokens, index + 2)
            if any(tokens[first] == "(" for first in first_tokens(tokens, start)):
                yield rust.line_of(text, tokens.at[index]), tokens[index + 1]


def parameters(tokens, index):
    """The bracket of the parameters, behind generics, which may have brackets of their own."""
    depth = 0
    while index < len(tokens):
        if tokens[index] == "(" and depth == 0:
            return index
        if tokens[index] == "<":
            depth += 1
        elif tokens[index] == ">" and tokens[index - 1] != "-":
            depth -= 1
        index = tokens.after(index)
    return index


def first_tokens(tokens, start):
    """The index of the first token of each parameter, behind attributes and references."""
    index, end, depth, first = start + 1, tokens.close.get(start, start), 0, True
    while index < end:
        token = tokens[index]
        if first and token == "#":
            index = tokens.after(index + 1)
            continue
        if first and token not in ("&", "mut"):
            yield index
            first = False
        if token == "<":
            depth += 1
        elif token == ">" and tokens[index - 1] != "-":
            depth -= 1
        first = first or (token == "," and depth == 0)
        index = tokens.after(index)
