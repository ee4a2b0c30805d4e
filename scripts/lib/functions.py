"""Parameters of Rust functions: a tuple that is taken apart is a struct without a name."""

from . import rust
from .violation import Violation


def check_tuple_parameters(texts, folders_left):
    """Functions whose parameters are tuple patterns, but below folders that are still to be cleaned."""
    for file, text in texts.items():
        if file.endswith(".rs") and not file.startswith(folders_left):
            for line, name in tuple_parameters(text):
                rule = f"line {line}: `{name}` takes a tuple apart in its parameters"
                yield Violation(file, rule, "make it a struct, or several parameters")


def tuple_parameters(text):
    """Line and name of each such function."""
    tokens = rust.Tokens(text)
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
