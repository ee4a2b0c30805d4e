"""Reads Rust source as far as needed: comments, and which names a module defines, imports and mentions."""

import bisect
import functools
import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""\s*(?:
      (?P<line>//[^\n]*)
    | (?P<block>/\*)
    | (?:br|cr|r)(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    | [bc]?"(?P<string>(?:\\.|[^"\\])*)"
    | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x[0-9A-Fa-f]{2}|.)|[^\\'\n])')
    | (?P<lifetime>'\w+)
    | (?:r\#)?(?P<token>[^\W\d]\w*|\d\w*|::|\.\.|\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
BLOCK_EDGE = re.compile(r"/\*|\*/")
OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = set(OPEN.values())
# Before the keyword of an item. `const` is one only where a function follows.
MODIFIERS = {"unsafe", "async", "default", "safe"}
NAMED_ITEMS = {"fn", "struct", "enum", "union", "trait", "type", "const", "static"}
ENDS_WITH_SEMICOLON = {"use", "type", "const", "static", "extern"}
KEYWORD_HEADS = {"crate", "self", "super"}


@dataclass
class Import:
    """`use a::b as name`; the name is None for `as _`."""

    path: tuple
    name: str | None
    public: bool
    at: int


@dataclass
class Module:
    """A module, in a file of its own or inline. Offsets are places in the text of its file."""

    path: tuple
    file: str
    parent: "Module | None" = None
    children: dict = field(default_factory=dict)
    items: set = field(default_factory=set)
    imports: list = field(default_factory=list)
    globs: list = field(default_factory=list)
    # Paths of two or more segments in code, and words that could be a name of this module.
    paths: list = field(default_factory=list)
    words: dict = field(default_factory=dict)
    # Modules declared here that have files of their own: (module, value of #[path] or None).
    declared: list = field(default_factory=list)


def scan(text):
    """Yields (kind, value, offset), without white space. Comments are `comment` with their whole text."""
    at, end = 0, len(text)
    while at < end:
        match = TOKEN.match(text, at)
        if match is None:
            return
        kind, at = match.lastgroup, match.end()
        if kind == "block":
            at = block_end(text, match.start("block"))
            yield "comment", text[match.start("block") : at], match.start("block")
        elif kind == "line":
            yield "comment", match["line"], match.start("line")
        elif kind == "token":
            yield "token", match["token"], match.start("token")
        elif kind in ("raw", "string", "hashes"):
            yield "string", match["raw"] or match["string"] or "", match.start(kind)


def block_end(text, at):
    """Block comments nest."""
    depth = 0
    for edge in BLOCK_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


@functools.cache
def read_tokens(text):
    """The tokens of a file's text, which several checks read."""
    return Tokens(text)


class Tokens:
    """A file's tokens and which bracket closes which. A string is its content after a `"`."""

    def __init__(self, text):
        self.text, self.at = [], []
        for kind, value, at in scan(text):
            if kind != "comment":
                self.text.append('"' + value if kind == "string" else value)
                self.at.append(at)
        self.close = self.match_brackets()

    def __len__(self):
        return len(self.text)

    def __getitem__(self, index):
        return self.text[index] if index < len(self.text) else ""

    def match_brackets(self):
        close, open_brackets = {}, []
        for index, token in enumerate(self.text):
            if token in OPEN:
                open_brackets.append(index)
            elif token in CLOSE and open_brackets:
                close[open_brackets.pop()] = index
        return close

    def after(self, index):
        """The token after this one, or after the bracket that it opens."""
        return self.close.get(index, index) + 1

    def find(self, index, end, wanted):
        """The first of the `wanted` tokens that no bracket encloses."""
        while index < end and self.text[index] not in wanted:
            index = self.after(index)
        return index


def is_word(token):
    return token[:1].isidentifier()


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def comment_lines(text):
    """The numbers of the lines that hold a comment or a part of one."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = set()
    for kind, value, at in scan(text):
        if kind == "comment":
            first = bisect.bisect_right(starts, at)
            lines.update(range(first, first + value.count("\n") + 1))
    return lines


def parse_file(text, module):
    """Fills `module` from the file, without test-only code."""
    tokens = read_tokens(text)
    Reader(tokens).items(0, len(tokens), module)


class Reader:
    """Walks tokens: items at the level of modules, and paths inside of them."""

    def __init__(self, tokens):
        self.tokens = tokens

    def items(self, index, end, module):
        while index < end:
            index = self.item(index, end, module)

    def item(self, index, end, module):
        """One item with its attributes; returns the index after it."""
        if self.tokens[index] == "#" and self.tokens[index + 1] == "!":
            stop = self.tokens.after(index + 2)
            return end if is_test(self.tokens.text[index + 3 : stop - 1]) else stop
        start = index
        index, attributes = self.attributes(index)
        if any(is_test(attribute) for attribute in attributes):
            return self.item_end(self.keyword(index)[0], end)
        self.code(start, index, module)
        index, public = self.keyword(index)
        if index >= end:
            return end
        word, stop = self.tokens[index], self.item_end(index, end)
        if word == "use":
            self.use(index + 1, (), module, public)
        elif word == "mod":
            self.module(index, stop, module, attributes)
        else:
            self.define(index, module)
            self.code(index, stop, module)
        return stop

    def attributes(self, index):
        """The attributes from here on, each as the list of its tokens."""
        found = []
        while self.tokens[index] == "#" and self.tokens[index + 1] == "[":
            stop = self.tokens.after(index + 1)
            found.append(self.tokens.text[index + 2 : stop - 1])
            index = stop
        return index, found

    def keyword(self, index):
        """Skips visibility and modifiers; also says whether there was a visibility."""
        public = self.tokens[index] == "pub"
        if public:
            index = self.after_visibility(index)
        while self.is_modifier(index):
            index += 2 if self.tokens[index + 1].startswith('"') else 1
        return index, public

    def after_visibility(self, index):
        restricted = self.tokens[index + 1] == "(" and self.tokens[index + 2] in KEYWORD_HEADS | {"in"}
        return self.tokens.after(index + 1) if restricted else index + 1

    def is_modifier(self, index):
        token, following = self.tokens[index], self.tokens[index + 1]
        if token == "const":
            return following in MODIFIERS | {"fn", "extern"}
        if token == "extern":
            return following == "fn" or following.startswith('"') and self.tokens[index + 2] == "fn"
        return token in MODIFIERS and (is_word(following) or following == "{")

    def item_end(self, index, end):
        """The index after the item (or statement, field, arm) whose first token is at `index`."""
        word = self.tokens[index]
        if word in ENDS_WITH_SEMICOLON:
            return min(self.tokens.find(index, end, {";"}) + 1, end)
        wanted = {";", "{"} if is_word(word) and self.starts_item(index) else {";", ",", "{"}
        stop = self.tokens.find(index, end, wanted)
        return min(self.tokens.after(stop), end)

    def starts_item(self, index):
        return self.tokens[index] in NAMED_ITEMS | {"impl", "mod", "macro_rules"}

    def define(self, index, module):
        word, name = self.tokens[index], self.tokens[index + 1]
        if word == "macro_rules":
            module.items.add(self.tokens[index + 2])
        elif word in NAMED_ITEMS:
            module.items.add(self.tokens[index + 2] if name == "mut" else name)

    def module(self, index, stop, parent, attributes):
        name = self.tokens[index + 1]
        module = Module((*parent.path, name), parent.file, parent)
        parent.children[name] = module
        if self.tokens[index + 2] == "{":
            self.items(index + 3, stop - 1, module)
        else:
            path = next((attribute[2][1:] for attribute in attributes if attribute[:2] == ["path", "="]), None)
            parent.declared.append((module, path))

    def use(self, index, prefix, module, public):
        """One tree of a `use`; returns the index of the `,`, `;` or `}` after it."""
        at, path = self.tokens.at[index], list(prefix)
        if self.tokens[index] == "::":
            path.append("::")
        while True:
            token = self.tokens[index]
            if token == "{":
                return self.use_group(index, tuple(path), module, public)
            if token == "*":
                module.globs.append(Import(tuple(path), None, public, at))
                return index + 1
            if token != "::":
                path.append(token)
            index += 1
            if token != "::" and self.tokens[index] != "::":
                break
        if path[-1] == "self" and len(path) > 1:
            path.pop()
        name = path[-1]
        if self.tokens[index] == "as":
            name, index = self.tokens[index + 1], index + 2
        module.imports.append(Import(tuple(path), None if name == "_" else name, public, at))
        return index

    def use_group(self, index, prefix, module, public):
        stop, index = self.tokens.close[index], index + 1
        while index < stop:
            index = self.use(index, prefix, module, public) + 1
        return stop + 1

    def code(self, index, end, module):
        """Notes the paths and words between two indices, and imports inside of functions."""
        while index < end:
            token = self.tokens[index]
            if token == "#" and self.tokens[index + 1] == "[":
                index = self.attributed_code(index, end)
            elif token == "use" and self.begins_statement(index):
                index = self.use(index + 1, (), module, public=False)
            elif token == "pub":
                index = self.after_visibility(index)
            elif is_word(token):
                index = self.path(index, module)
            else:
                index += 1

    def attributed_code(self, index, end):
        """Inside of an attribute that is code, or behind what only tests compile."""
        after, attributes = self.attributes(index)
        if any(is_test(attribute) for attribute in attributes):
            return self.item_end(self.keyword(after)[0], end)
        return index + 2

    def begins_statement(self, index):
        return index > 0 and self.tokens[index - 1] in {"{", "}", ";", "]"}

    def path(self, index, module):
        tokens, start = self.tokens, index
        before = tokens[start - 1] if start > 0 else ""
        while tokens[index + 1] == "::" and is_word(tokens[index + 2]):
            index += 2
        if before in {"::", "."}:
            return index + 1
        path = tuple(tokens.text[start : index + 1 : 2])
        if len(path) > 1:
            module.paths.append((path, tokens.at[start]))
        if len(path) > 1 or tokens[index + 1] != ":":
            module.words.setdefault(path[0], tokens.at[start])
        return index + 1


def is_test(attribute):
    """Whether `cfg(test)`, alone or as one of `all(...)`, keeps the item out of the program."""
    if attribute[:2] != ["cfg", "("]:
        return False
    inside = attribute[2:-1]
    if inside[:2] == ["all", "("]:
        inside = inside[2:-1]
        depths = [sum((token == "(") - (token == ")") for token in inside[:at]) for at in range(len(inside))]
        return any(token == "test" and depth == 0 for token, depth in zip(inside, depths))
    return inside == ["test"]
