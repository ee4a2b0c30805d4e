"""Which source file of a crate needs which other, and the circles among them.

A path is followed to the file that defines its item: through imports, globs and re-exports, so that a facade is no
detour. A re-export alone is no use, and neither is a `mod` line. What this cannot see: methods (an `impl` far from its
type), paths inside of strings, items that a macro makes (they count as defined where the macro is called).
"""

from collections import defaultdict
from dataclasses import dataclass, field

from . import rust
from .violation import Violation

PROGRAM = "scripts/structure"
# Maximum number of edges of a circle that are printed by default.
SHOWN = 12
# A parent and its child may need each other, so an edge between them is the last to be cut.
KIN_WEIGHT = 100


@dataclass(frozen=True)
class Item:
    """Where a name is defined."""

    file: str
    name: str


@dataclass
class Graph:
    """`edges[a][b]`: the names of b that a needs, each with the line of its first use."""

    crate: str
    place: dict = field(default_factory=dict)
    edges: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))

    def targets(self, file, within):
        return [target for target in self.edges.get(file, ()) if target in within]

    def kin(self, one, other):
        """One is the other's ancestor."""
        shorter, longer = sorted((self.place[one], self.place[other]), key=len)
        return longer[: len(shorter)] == shorter


def check_modules(root, folder_rules):
    """All violations of the crates below `root`/crates. `folder_rules`: crate -> folder -> the folders that it may import."""
    violations = []
    for folder in crate_folders(root):
        graph = read_graph(root, folder)
        rules = folder_rules.get(graph.crate.removeprefix("crates/"), {})
        violations += [*circles(graph), *check_folders(graph, rules)]
    return violations


def check_folders(graph, rules):
    """A violation for each import from a folder that the rules do not allow."""
    for source, target in all_edges(graph):
        importer, imported = folder_of(graph, source), folder_of(graph, target)
        if importer in (imported, None) or importer not in rules or imported in rules[importer].split():
            continue
        allowed = rules[importer] or "none"
        rule = f"`{importer}` imports from `{imported or 'the root'}`; allowed: {allowed}"
        yield Violation(graph.crate, rule, "move what both need down", (describe(graph, source, target),))


def folder_of(graph, file):
    """The top module of a file; None for the root of the crate."""
    return next(iter(graph.place[file]), None)


def crate_folders(root):
    manifests = sorted(root.glob("crates/**/Cargo.toml"))
    return [path.parent for path in manifests if (path.parent / "src").is_dir()]


def read_graph(root, folder):
    """The graph of one crate; files are named from its folder on."""
    graph = Graph(folder.relative_to(root).as_posix())
    for top in crate_roots(folder):
        modules = list(read_modules(folder, top))
        for module in modules:
            graph.place.setdefault(module.file, module.path)
        resolver = Resolver(modules[0])
        for module in modules:
            add_edges(graph, module, resolver)
    for file, targets in graph.edges.items():
        number_lines(targets, (folder / file).read_text(encoding="utf-8"))
    return graph


def crate_roots(folder):
    candidates = [folder / "src/lib.rs", folder / "src/main.rs", *sorted(folder.glob("src/bin/*.rs"))]
    return [path for path in candidates if path.is_file()]


def read_modules(folder, top):
    """Yields the root module and everything that it declares."""
    waiting = [(rust.Module((), top.relative_to(folder).as_posix()), top.parent)]
    while waiting:
        module, home = waiting.pop()
        rust.parse_file((folder / module.file).read_text(encoding="utf-8"), module)
        for inner in [module, *inline_modules(module)]:
            yield inner
            for child, path in inner.declared:
                file, child_home = find_file(home, inner.path[len(module.path) :], child.path[-1], path)
                if file is not None:
                    child.file = file.relative_to(folder).as_posix()
                    waiting.append((child, child_home))


def inline_modules(module):
    files = {id(child) for child, _ in module.declared}
    for child in module.children.values():
        if id(child) not in files:
            yield child
            yield from inline_modules(child)


def find_file(home, inline, name, path):
    """The file of `mod name;`, and the folder of its own children."""
    home = home.joinpath(*inline)
    candidates = [(home / f"{name}.rs", home / name), (home / name / "mod.rs", home / name)]
    if path is not None:
        candidates = [(home / path, (home / path).parent)]
    return next((pair for pair in candidates if pair[0].is_file()), (None, None))


class Resolver:
    """Resolves paths within one crate. Results are sets of `Item`s and `Module`s, empty for other crates."""

    def __init__(self, root):
        self.root = root
        self.open = set()
        self.known = {}

    def resolve(self, module, path):
        """Items and modules that `path` names inside of `module`."""
        found, rest = self.head(module, path)
        for name in rest:
            found = [deeper for target in found for deeper in self.step(target, name)]
        return found

    def head(self, module, path):
        first, rest = path[0], path[1:]
        if first == "crate":
            return [self.root], rest
        if first in ("self", "super"):
            while first in ("self", "super"):
                module = module.parent or module if first == "super" else module
                first, rest = (rest[0], rest[1:]) if rest and rest[0] == "super" else ("", rest)
            return [module], rest
        return self.lookup(module, first), rest

    def step(self, target, name):
        """Resolves a name inside of earlier results. An unknown name counts as a module's own: a macro may make it."""
        if isinstance(target, Item):
            return [target]
        known = self.names(target, name)
        return [Item(target.file, name)] if known is None else known

    def lookup(self, module, name):
        return self.names(module, name) or []

    def names(self, module, name):
        """Meaning of `name` in `module`; None if it is unknown, an empty list if it belongs to another crate."""
        key = (module.path, name)
        if key in self.known:
            return self.known[key]
        if key in self.open:
            return None
        self.open.add(key)
        found = self.search(module, name)
        self.open.discard(key)
        if not self.open:
            # Within another search a name may be missing only because globs lead back to where it started.
            self.known[key] = found
        return found

    def search(self, module, name):
        found = []
        if name in module.items:
            found.append(Item(module.file, name))
        if name in module.children:
            found.append(module.children[name])
        imported = [item for item in module.imports if item.name == name]
        for item in imported:
            if item.path != (name,):
                found += self.resolve(module, item.path)
        if found or imported:
            return found
        return self.search_globs(module, name)

    def search_globs(self, module, name):
        for glob in module.globs:
            for target in self.resolve(module, glob.path):
                known = self.names(target, name) if not isinstance(target, Item) else None
                if known:
                    return known
        return None


def add_edges(graph, module, resolver):
    """Everything that one module needs. A module itself is not counted, only the items used from it."""
    for used in module.imports:
        if not used.public or used.name in module.words:
            add_items(graph, module, resolver.resolve(module, used.path), used.at)
    for path, at in module.paths:
        add_items(graph, module, resolver.resolve(module, path), at)
    if module.globs:
        for word, at in module.words.items():
            add_items(graph, module, resolver.lookup(module, word), at)
    for glob in module.globs:
        if not glob.public:
            add_items(graph, module, resolver.resolve(module, glob.path), glob.at)


def add_items(graph, module, found, at):
    for item in found:
        if isinstance(item, Item) and item.file != module.file:
            names = graph.edges[module.file][item.file]
            names[item.name] = min(at, names.get(item.name, at))


def number_lines(targets, text):
    """Offsets become line numbers."""
    for names in targets.values():
        for name, at in names.items():
            names[name] = rust.line_of(text, at)


def components(files, targets):
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in files:
        work = [] if start in index else [(start, None)]
        while work:
            file, rest = work.pop()
            if rest is None:
                index[file] = low[file] = len(index)
                stack.append(file)
                on_stack.add(file)
                rest = iter(targets(file))
            for target in rest:
                if target not in index:
                    work += [(file, rest), (target, None)]
                    break
                if target in on_stack:
                    low[file] = min(low[file], index[target])
            else:
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[file])
                if low[file] == index[file]:
                    cut = stack.index(file)
                    found.append(sorted(stack[cut:]))
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return found


def is_family(graph, files):
    """One module and its descendants, with that module among them. The crate's root is nobody's parent here."""
    top = min((graph.place[file] for file in files), key=len)
    return top != () and all(graph.place[file][: len(top)] == top for file in files)


def forbidden_circles(graph, targets=None, files=None):
    """The components of more than one file that are not a family, largest first."""
    files = sorted(graph.place) if files is None else files
    targets = targets or (lambda file: graph.targets(file, graph.place))
    found = [part for part in components(files, targets) if len(part) > 1 and not is_family(graph, part)]
    return sorted(found, key=len, reverse=True)


def circles(graph):
    """A violation for each forbidden circle, with the edges that a developer would look at first."""
    for files in forbidden_circles(graph):
        cuts = smallest_cut(graph, files)
        edges = [*cuts, *sorted(set(inner_edges(graph, files)) - set(cuts))]
        rule = f"{len(files)} files need each other in a circle of {len(edges)} edges: {' '.join(files)}"
        fix = f"cut {len(cuts)} of them, for example those marked ({PROGRAM} --cycles {graph.crate} prints all)"
        shown = [f"{'cut' if edge in cuts else '   '} {describe(graph, *edge)}" for edge in edges[:SHOWN]]
        more = [f"... and {len(edges) - SHOWN} more"] if len(edges) > SHOWN else []
        yield Violation(graph.crate, rule, fix, (*shown, *more))


def inner_edges(graph, files):
    return [(source, target) for source in files for target in graph.targets(source, set(files))]


def describe(graph, source, target):
    names = sorted(graph.edges[source][target].items(), key=lambda pair: pair[1])
    return f"{source}:{names[0][1]} -> {target} ({', '.join(name for name, _ in names)})"


def smallest_cut(graph, files):
    """Few and light edges without which the circle is none: those against an order of the files (Eades, Lin, Smyth).

    The weight of an edge is the number of its names. Of the edges against the order, those are put back that close no
    circle by themselves.
    """
    weight = {edge: edge_weight(graph, *edge) for edge in inner_edges(graph, files)}
    rank = {file: at for at, file in enumerate(order(files, weight))}
    cut = {edge for edge in weight if rank[edge[0]] > rank[edge[1]]}
    for edge in sorted(cut, key=weight.get, reverse=True):
        kept = (set(weight) - cut) | {edge}
        if not forbidden_circles(graph, lambda file, kept=kept: [b for a, b in kept if a == file], files):
            cut.discard(edge)
    return sorted(cut, key=lambda edge: (weight[edge], edge))


def edge_weight(graph, source, target):
    return KIN_WEIGHT if graph.kin(source, target) else len(graph.edges[source][target])


def order(files, weight):
    """Files that others need least stand first."""
    left, first, last = set(files), [], []
    while left:
        out = {file: sum(w for (a, b), w in weight.items() if a == file and b in left) for file in left}
        into = {file: sum(w for (a, b), w in weight.items() if b == file and a in left) for file in left}
        sinks = sorted(file for file in left if not out[file])
        best = sinks[0] if sinks else min(left, key=lambda file: (into[file] != 0, into[file] - out[file], file))
        (last if sinks else first).append(best)
        left.discard(best)
    return first + last[::-1]


def circle_edges(graph):
    """A mark for every pair of files within one circle: `!` if it is forbidden, `~` if it is a family."""
    marks = {}
    for part in components(sorted(graph.place), lambda file: graph.targets(file, graph.place)):
        if len(part) > 1:
            mark = "~" if is_family(graph, part) else "!"
            marks |= {(source, target): mark for source in part for target in part}
    return marks


def all_edges(graph):
    return sorted((source, target) for source in graph.edges for target in graph.edges[source])


def list_edges(graph):
    """All edges of a crate as lines, with their marks."""
    marks = circle_edges(graph)
    return [f"{marks.get(edge, ' ')} {describe(graph, *edge)}" for edge in all_edges(graph)]


def edges_outside_circles(graph):
    """Edges between files that are not each other's ancestors, and in no circle; without those of the crate's root."""
    marks = circle_edges(graph)
    return [edge for edge in all_edges(graph) if edge not in marks and not graph.kin(*edge)]
