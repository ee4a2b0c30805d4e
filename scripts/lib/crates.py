"""Which crate depends on which: what Cargo knows, against the tables at the top of scripts/structure."""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .violation import Violation


@dataclass(frozen=True)
class CrateRules:
    """The tables; scripts/structure explains each. Words of a row are separated by spaces."""

    uses: dict
    tests_use: dict = field(default_factory=dict)
    any_test_uses: str = ""
    reach: dict = field(default_factory=dict)
    must_not_know: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Crate:
    """A package of the workspace, with its dependencies by purpose."""

    folder: str
    package: str
    normal: frozenset
    dev: frozenset

    @property
    def manifest(self):
        return f"crates/{self.folder}/Cargo.toml"


@dataclass(frozen=True)
class Row:
    """A row of USES or TESTS_USE: required dependencies, and optional ones (marked with `?`)."""

    must: frozenset
    may: frozenset

    @classmethod
    def parse(cls, text):
        words = text.split()
        packages = [package_of_word(word.removesuffix("?")) for word in words]
        marked = {package for word, package in zip(words, packages) if word.endswith("?")}
        return cls(frozenset(packages) - marked, frozenset(packages))


def package_of_word(word):
    """The tables leave out what all packages have in common."""
    return f"plimsoll-{word}"


def package_of_folder(folder):
    """The name that a crate's folder demands."""
    if folder == "cli":
        return "plimsoll"
    group, _, leaf = folder.replace("_", "-").rpartition("/")
    return f"plimsoll-gateway-{leaf}" if group == "gateway" else f"plimsoll-{leaf}"


def is_ours(package):
    return package == "plimsoll" or package.startswith("plimsoll-")


def names(packages):
    return ", ".join(sorted(packages))


def read_crates(root):
    """The workspace as Cargo sees it; nothing is resolved, built or downloaded."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr.strip().replace("\n", " "))
    return [read_crate(package, root) for package in json.loads(answer.stdout)["packages"]]


def read_crate(package, root):
    folder = Path(package["manifest_path"]).parent.relative_to(root.resolve()).as_posix()
    kinds = {kind: set() for kind in ("normal", "build", "dev")}
    for dependency in package["dependencies"]:
        kinds[dependency["kind"] or "normal"].add(dependency["name"])
    normal = frozenset(kinds["normal"] | kinds["build"])
    return Crate(folder.removeprefix("crates/"), package["name"], normal, frozenset(kinds["dev"]))


def check_crates(root, rules):
    """All violations of the crates below `root`."""
    try:
        crates = sorted(read_crates(root), key=lambda crate: crate.folder)
    except (OSError, RuntimeError) as error:
        return [Violation("Cargo.toml", f"cargo metadata fails: {error}", "make the manifests readable for Cargo")]
    found = [*check_members(root, crates), *check_rows(crates, rules)]
    groups = {crate.package: crate.folder.partition("/")[0] for crate in crates}
    for crate in crates:
        found += [*check_name(crate), *check_uses(crate, rules), *check_tests(crate, rules)]
        found += [*check_reach(crate, rules, groups), *check_knowledge(crate, rules)]
    return found


def check_members(root, crates):
    members = {crate.manifest for crate in crates}
    for manifest in sorted(root.glob("crates/**/Cargo.toml")):
        path = manifest.relative_to(root).as_posix()
        if path not in members:
            yield Violation(path, "not a member of the workspace", "add it to `members` in Cargo.toml")


def check_rows(crates, rules):
    """No crate without a row, no row without a crate."""
    folders = {crate.folder for crate in crates}
    rows = {folder.removesuffix("?") for folder in rules.uses}
    for folder in sorted(folders - rows):
        yield Violation(f"crates/{folder}", "crate without a row in USES", f'add "{folder}" and what it may depend on')
    tables = {"USES": rules.uses, "TESTS_USE": rules.tests_use, "MUST_NOT_KNOW": rules.must_not_know}
    for table, keys in tables.items():
        for folder in keys:
            if folder not in folders and not is_planned(folder, rules):
                rule = f"{table} has a row for it, and it does not exist"
                yield Violation(f"crates/{folder}", rule, "remove the row")


def is_planned(folder, rules):
    return folder.removesuffix("?") + "?" in rules.uses


def check_name(crate):
    wanted = package_of_folder(crate.folder)
    if crate.package != wanted:
        rule = f"package `{crate.package}` is not named after its folder"
        yield Violation(crate.manifest, rule, f"call it `{wanted}`")


def uses_row(crate, rules):
    return rules.uses.get(crate.folder, rules.uses.get(crate.folder + "?"))


def check_uses(crate, rules):
    text = uses_row(crate, rules)
    if text is None:
        return
    row = Row.parse(text)
    ours = set(filter(is_ours, crate.normal))
    for package in sorted(ours - row.may):
        rule = f"{crate.package} must not depend on {package} (USES)"
        yield Violation(crate.manifest, rule, "remove the dependency; if the design changed, extend the row")
    gone = row.must - ours
    if gone:
        rule = f"USES lists {names(gone)}, which {crate.package} no longer depends on"
        yield Violation(crate.manifest, rule, "take it out of the row")


def check_tests(crate, rules):
    row = Row.parse(rules.tests_use.get(crate.folder, ""))
    normal = Row.parse(uses_row(crate, rules) or "")
    ours = set(filter(is_ours, crate.dev))
    for package in sorted(ours - row.may - normal.may - Row.parse(rules.any_test_uses).may):
        rule = f"tests of {crate.package} must not use {package} (TESTS_USE)"
        yield Violation(crate.manifest, rule, "remove the dev-dependency; if the design changed, extend the row")
    gone = row.must - ours
    if gone:
        rule = f"TESTS_USE lists {names(gone)}, which tests of {crate.package} no longer use"
        yield Violation(crate.manifest, rule, "take it out of the row")


def check_reach(crate, rules, groups):
    """The islands, which hold whatever the other tables say."""
    group = crate.folder.partition("/")[0]
    if group not in rules.reach:
        return
    allowed = rules.reach[group].split()
    excepted = Row.parse(rules.any_test_uses).may | Row.parse(rules.tests_use.get(crate.folder, "")).may
    for package in sorted(filter(is_ours, crate.normal | (crate.dev - excepted))):
        reached = groups.get(package)
        if reached is not None and reached not in allowed:
            rule = f"{crate.package} reaches {package} in crates/{reached}, off its island (REACH)"
            yield Violation(crate.manifest, rule, f"crates/{group} may reach {' '.join(allowed) or 'nothing of ours'}")


def check_knowledge(crate, rules):
    """Third-party crates that MUST_NOT_KNOW forbids."""
    forbidden = set(rules.must_not_know.get(crate.folder, "").split())
    for package in sorted(crate.normal & forbidden):
        rule = f"{crate.package} must not know {package} (MUST_NOT_KNOW)"
        yield Violation(crate.manifest, rule, "move what needs it to the crate whose job it is")
