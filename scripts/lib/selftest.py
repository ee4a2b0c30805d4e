"""scripts/structure against trees in which one rule is broken at a time: each must be found and named, and no other."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import budget, modules
from .crates import CrateRules
from .text import TextRules

SCRIPT = Path(__file__).resolve().parent.parent / "structure"
# Spelled in pieces: the real check reads this file too.
BAD_WORD = "men" + "ded"

CRATE_RULES = CrateRules(
    uses={
        "load/measure": "",
        "load/engine": "measure coming?",
        "gateway/server": "",
        "mock": "",
        "proof/test-support": "",
        "proof/later?": "engine",
        "cli": "engine gateway-server",
    },
    tests_use={"load/engine": "mock"},
    any_test_uses="test-support",
    reach={"mock": "", "gateway": "gateway", "load": "load"},
    must_not_know={"load/measure": "tokio"},
)
TEXT_RULES = TextRules(
    widths={".rs": 100, ".md": 120},
    forbidden_words={rf"\b{BAD_WORD}\b": "fixed"},
    generated=("docs/reference/",),
    test_exceptions={"crates/mock/tests/alone.rs": "counts its own allocations"},
)


def manifest(package, dependencies="", dev="", name="plimsoll-"):
    head = f'[package]\nname = "{name}{package}"\nversion = "0.1.0"\nedition = "2024"\n'
    return f"{head}\n[dependencies]\n{dependencies}\n[dev-dependencies]\n{dev}"


def ours(package, folder):
    return f'plimsoll-{package} = {{ path = "../../{folder}" }}\n'


# Two files in one direction (run needs pace), a family (run and run/step), and everything that is no use of `Run`.
PACE = """//! Not [`Run`](crate::run::Run).
// Not crate::run::Run; /* nor crate::run::Run
/* not crate::run::Run /* nor */ crate::run::Run */
#[cfg(test)]
mod probe;
#[cfg(test)]
use crate::run::Run;

/// See [`crate::run::Run`].
pub struct Pace;

pub const QUOTE: char = '"';
pub const TEXT: &str = "crate::run::Run \\" crate::run::Run";
pub const RAW: &str = r#"use crate::run::Run; " "#;

pub fn name<'a>(text: &'a str) -> &'a str {
    #[cfg(test)]
    crate::run::Run::probe();
    text
}

#[cfg(all(test, unix))]
mod tests {
    use crate::run::Run;
}
"""
LONG_URL = "https://example.org/" + "x" * 120
CLEAN = {
    "Cargo.toml": '[workspace]\nresolver = "3"\nmembers = '
    '["crates/cli", "crates/gateway/*", "crates/load/*", "crates/mock", "crates/proof/*"]\n',
    "README.md": f"Short.\n\n| {'table ' * 30}|\n\n```\n{'code ' * 30}\n```\n\nSee {LONG_URL}\n- [link]({LONG_URL})\n",
    "docs/reference/keys.md": "generated " * 20,
    "crates/cli/Cargo.toml": manifest(
        "plimsoll",
        'plimsoll-engine = { path = "../load/engine" }\nplimsoll-gateway-server = { path = "../gateway/server" }\n',
        name="",
    ),
    "crates/cli/src/main.rs": "fn main() {}\n",
    "crates/gateway/server/Cargo.toml": manifest("gateway-server"),
    "crates/gateway/server/src/lib.rs": "",
    "crates/load/measure/Cargo.toml": manifest("measure", dev=ours("test-support", "proof/test-support")),
    "crates/load/measure/src/lib.rs": "",
    "crates/load/engine/Cargo.toml": manifest("engine", ours("measure", "load/measure"), ours("mock", "mock")),
    "crates/load/engine/src/lib.rs": "mod pace;\nmod run;\n\npub use pace::Pace;\npub use run::{Run, Step};\n",
    "crates/load/engine/src/pace.rs": PACE,
    "crates/load/engine/src/pace/probe.rs": "use crate::run::Run;\n",
    "crates/load/engine/src/run.rs": "mod step;\n\nuse crate::pace::Pace;\npub use step::Step;\n\n"
    "pub struct Run(Pace);\n\npub fn go(run: &Run) {\n    step::walk(run);\n}\n",
    "crates/load/engine/src/run/step.rs": "use super::Run;\n\npub struct Step;\n\npub fn walk(_: &Run) {}\n",
    "crates/load/engine/tests/it/main.rs": "mod support;\n",
    "crates/load/engine/tests/it/support.rs": f'const URL: &str = "// {"no comment " * 10}";\n',
    "crates/mock/Cargo.toml": manifest("mock"),
    "crates/mock/src/lib.rs": "",
    "crates/mock/tests/alone.rs": "",
    "crates/proof/test-support/Cargo.toml": manifest("test-support"),
    "crates/proof/test-support/src/lib.rs": "",
}

MEASURE = "crates/load/measure/Cargo.toml"
ENGINE = "crates/load/engine/Cargo.toml"
PACE_FILE = "crates/load/engine/src/pace.rs"
LATER = "crates/show/later.rs"
NORMAL = "[dependencies]\n"
DEV = "[dev-dependencies]\n"
CIRCLE = "crates/load/engine: 3 files need each other"


@dataclass(frozen=True)
class Case:
    """In `file`, `new` follows `after` (or stands at the end); each row of `expected` is in one violation.

    `more` are further files, made or written over.
    """

    name: str
    file: str
    new: str
    expected: tuple
    after: str = ""
    more: dict = field(default_factory=dict)
    crate_rules: CrateRules = CRATE_RULES
    text_rules: TextRules = TEXT_RULES


def circle(name, new, edge="src/pace.rs"):
    return Case(f"a circle by {name}", PACE_FILE, new, ((CIRCLE, edge),))


CASES = (
    Case(
        "a forbidden third-party crate",
        MEASURE,
        'tokio = "1"\n',
        (("plimsoll-measure must not know tokio", "MUST_NOT_KNOW"),),
        NORMAL,
    ),
    Case(
        "a crate that leaves its island",
        MEASURE,
        'plimsoll-mock = { path = "../../mock" }\n',
        (("must not depend on plimsoll-mock", "USES"), ("reaches plimsoll-mock in crates/mock", "REACH")),
        NORMAL,
    ),
    Case(
        "a test that leaves its island",
        MEASURE,
        'plimsoll-mock = { path = "../../mock" }\n',
        (("tests of plimsoll-measure must not use plimsoll-mock",), ("reaches plimsoll-mock", "REACH")),
        DEV,
    ),
    Case(
        "a folder that imports upwards",
        "crates/gateway/server/src/lib.rs",
        "mod http;\nmod routes;\n",
        (("`http` imports from `routes`", "allowed: base", "src/http.rs:1 -> src/routes.rs (Route)"),),
        more={
            "crates/gateway/server/src/http.rs": "use crate::routes::Route;\n\npub struct Body(Route);\n",
            "crates/gateway/server/src/routes.rs": "pub struct Route;\n",
        },
    ),
    Case(
        "a mock that is no island",
        "crates/mock/Cargo.toml",
        'plimsoll-measure = { path = "../load/measure" }\n',
        (("plimsoll-mock must not depend on plimsoll-measure",), ("reaches plimsoll-measure", "may reach nothing")),
        NORMAL,
    ),
    Case(
        "a build-dependency",
        "crates/gateway/server/Cargo.toml",
        "\n[build-dependencies]\n" + ours("engine", "load/engine"),
        (("plimsoll-gateway-server must not depend on plimsoll-engine",), ("reaches plimsoll-engine", "REACH")),
    ),
    Case(
        "a test helper as a normal dependency",
        "crates/cli/Cargo.toml",
        'plimsoll-test-support = { path = "../proof/test-support" }\n',
        (("plimsoll must not depend on plimsoll-test-support",),),
        NORMAL,
    ),
    Case(
        "a dependency that is gone",
        "README.md",
        "",
        (("USES lists plimsoll-measure, which plimsoll-mock no longer", "take it out of the row"),),
        crate_rules=replace(CRATE_RULES, uses={**CRATE_RULES.uses, "mock": "measure"}),
    ),
    Case(
        "a dev-dependency that is gone",
        "README.md",
        "",
        (("TESTS_USE lists plimsoll-mock, which tests of plimsoll-gateway-server no longer",),),
        crate_rules=replace(CRATE_RULES, tests_use={**CRATE_RULES.tests_use, "gateway/server": "mock"}),
    ),
    Case(
        "a row without a crate",
        "README.md",
        "",
        (("crates/load/gone", "USES has a row", "remove the row"), ("crates/load/lost", "MUST_NOT_KNOW has a row")),
        crate_rules=replace(
            CRATE_RULES, uses={**CRATE_RULES.uses, "load/gone": ""}, must_not_know={"load/lost": "tokio"}
        ),
    ),
    Case(
        "a crate without a row",
        "README.md",
        "",
        (("crates/mock", "without a row in USES"),),
        crate_rules=replace(CRATE_RULES, uses={key: row for key, row in CRATE_RULES.uses.items() if key != "mock"}),
    ),
    Case(
        "a crate that arrives as its row foretold, but for one dependency",
        "crates/proof/later/Cargo.toml",
        manifest("later", ours("engine", "load/engine") + ours("mock", "mock")),
        (("plimsoll-later must not depend on plimsoll-mock",),),
        more={"crates/proof/later/src/lib.rs": ""},
    ),
    Case("no member", "crates/show/page/Cargo.toml", manifest("page"), (("crates/show/page/Cargo.toml", "member"),)),
    Case("a wrong name", MEASURE, "-x", ((MEASURE, "`plimsoll-measure-x`", "`plimsoll-measure`"),), "plimsoll-measure"),
    Case("a broken manifest", MEASURE, "[", (("cargo metadata fails",),)),
    circle("use", "use crate::run::Run;\n", "src/pace.rs:26 -> src/run.rs (Run)"),
    circle("the crate's facade", "use crate::Run;\n", "src/pace.rs:26 -> src/run.rs (Run)"),
    circle("a module's facade", "use super::run::Step;\n", "src/pace.rs:26 -> src/run/step.rs (Step)"),
    circle("nested braces and `as`", "use crate::{run::{self, Run as Walk}};\n", "-> src/run.rs (Run)"),
    circle("a path", "fn f(_: &crate::run::Run) {}\n", "-> src/run.rs (Run)"),
    circle("a path through a module", "use super::run;\nfn f() { run::go(); }\n", "src/pace.rs:27 -> src/run.rs (go)"),
    circle("a glob", "use crate::run::*;\nfn f(_: &Run) {}\n", "-> src/run.rs (Run)"),
    circle("a re-export that is used", "pub use crate::Run;\nfn f(_: &Run) {}\n", "src/pace.rs:26 -> src/run.rs (Run)"),
    circle("use inside of a function", "fn f() { use crate::{run::{go as walk}}; }\n", "-> src/run.rs (go)"),
    circle("an inline module", "mod deep { use super::super::run::Run; }\n", "-> src/run.rs (Run)"),
    Case(
        "a circle of siblings without their parent",
        "crates/load/engine/src/run.rs",
        "mod one;\nmod two;\n",
        (("crates/load/engine: 2 files", "src/run/one.rs src/run/two.rs"),),
        more={
            "crates/load/engine/src/run/one.rs": "pub struct One(super::two::Two);\n",
            "crates/load/engine/src/run/two.rs": "pub struct Two(super::one::One);\n",
        },
    ),
    Case(
        "a circle with the crate's root",
        "crates/cli/src/main.rs",
        "mod page;\nstruct Page;\nfn show() { page::show(); }\n",
        (("crates/cli: 2 files", "src/main.rs", "src/page.rs:1 -> src/main.rs (Page)"),),
        more={"crates/cli/src/page.rs": "pub fn show() { let _ = crate::Page; }\n"},
    ),
    Case("a long comment", PACE_FILE, f"// {'x' * 98}\n", ((PACE_FILE, "1 comment line wider", "26 with 101"),)),
    Case("a long comment after code", PACE_FILE, f"fn f() {{}} // {'x' * 98}\n", ((PACE_FILE, "1 comment line"),)),
    Case("a long doc line", PACE_FILE, f"/// {'é' * 97}\n", ((PACE_FILE, "26 with 101"),)),
    Case("a long line of text", "README.md", "word " * 30 + "\n", (("README.md", "1 line wider than 120 columns"),)),
    Case("a tuple parameter", LATER, "fn f(a: u8, &(b, c): &(u8, u8)) {}\n", ((LATER, "line 1: `f` takes a tuple"),)),
    Case(
        "a tuple parameter behind generics and lifetimes",
        LATER,
        "impl A {\n    fn g<'a, F: Fn((u8, u8)) -> u8>(&'a self, f: F, (b, _): (u8, u8)) {}\n}\n",
        ((LATER, "line 2: `g` takes a tuple"),),
    ),
    Case("tuples that are no patterns", LATER, "fn f(pair: (u8, u8), g: impl Fn((u8, u8)), _: [(u8, u8); 2]) {}\n", ()),
    Case(
        "closures that a `let` binds",
        "crates/load/engine/src/run.rs",
        "fn f() {\n    let mut g: Box<dyn Fn(u8)> = move |a| a;\n}\n",
        (("crates", "closures per 1,000 functions are bound", "scripts/structure --closures"),),
    ),
    Case(
        "closures elsewhere, and `let` without one",
        "crates/load/engine/src/run.rs",
        "fn f() { let a = b | c; let Some(d) = e else { return }; g(|h| h); }\n"
        "#[cfg(test)]\nmod tests { fn f() { let g = || 1; } }\n",
        (),
    ),
    Case("a forbidden word", "README.md", f"It was {BAD_WORD.title()}.\n", (("README.md", "`fixed`"),)),
    Case("a path that is gone", "README.md", "see `crates/gone/src`\n", (("README.md", "names `crates/gone/src`"),)),
    Case("a link that is broken", "README.md", "[x](docs/gone.md#a)\n", (("README.md", "names `docs/gone.md`"),)),
    Case("a stray test", "crates/mock/tests/foo.rs", "", (("crates/mock/tests/foo.rs", "binary of tests of its own"),)),
    Case("a stray folder of tests", "crates/mock/tests/foo/main.rs", "", (("tests/foo/main.rs", "binary of tests"),)),
    Case("stray test helpers", "crates/mock/tests/common/mod.rs", "", (("tests/common/mod.rs", "support.rs"),)),
    Case(
        "a test exception that is gone",
        "README.md",
        "",
        (("crates/mock/tests/gone.rs", "TEST_EXCEPTIONS has a row"),),
        text_rules=replace(
            TEXT_RULES, test_exceptions={**TEXT_RULES.test_exceptions, "crates/mock/tests/gone.rs": "no reason"}
        ),
    ),
)


def run(root, check):
    """All cases on a small workspace, then some on a copy of the real one; returns the exit status."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="structure-") as folder:
        small = Path(folder) / "small"
        write(small, CLEAN)
        failures += [f"the clean tree: {violation}" for violation in check(small, CRATE_RULES, TEXT_RULES)]
        for case in CASES:
            failures += run_case(case, small, Path(folder) / "case", check)
        failures += run_budget(Path(folder) / "budget")
        failures += run_real(root, Path(folder) / "real")
    for failure in failures:
        print(failure)
    print(f"structure --self-test: {len(CASES) + 2} cases, {len(failures)} failures")
    return 1 if failures else 0


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def insert(folder, file, new, after=""):
    """Puts `new` behind the first `after`, or at the end; makes the file if need be."""
    path = folder / file
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    at = old.index(after) + len(after) if after else len(old)
    write(folder, {file: old[:at] + new + old[at:]})


def run_case(case, small, folder, check):
    shutil.copytree(small, folder)
    insert(folder, case.file, case.new, case.after)
    write(folder, case.more)
    found = [str(violation) for violation in check(folder, case.crate_rules, case.text_rules)]
    shutil.rmtree(folder)
    return compare(case.name, case.expected, found)


def compare(name, expected, found):
    """Every row of `expected` matches one violation, and no others exist."""
    for row in expected:
        named = next((violation for violation in found if all(part in violation for part in row)), None)
        if named is None:
            yield f"{name}: not found: {' ... '.join(row)}; found: {found}"
        else:
            found.remove(named)
    yield from (f"{name}: unexpected: {violation}" for violation in found)


# Three product lines, one sentence; the limits that a check leaves alone.
COUNTED = """// A comment.
#[derive(Debug)]

pub struct Counted;
pub const TEXT: &str = "a sentence, not two words";

#[cfg(test)]
mod tests {}
"""
FITTING = {"lines x": 3, "sentences x": 1, "lines python": 0, "raw bench": 0, "raw scripts": 2}


def run_budget(root):
    """The budget in a repository of its own: each row is a change of the limits, and the violations that it makes."""
    write(root, {"crates/x/Cargo.toml": manifest("x"), "crates/x/src/lib.rs": COUNTED, "scripts/x": "1\n2\n"})
    budget.write_limits(root, FITTING)
    for command in ("init -q", "add .", "-c user.name=x -c user.email=x@localhost commit -q -m x"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    record = {"docs/adr/0001-x.md": "why\n"}
    rows = (
        ("limits that fit", {}, {}, ()),
        ("a count beyond its limit", {"lines x": 2}, {}, (("lines x: 3", "is 2"),)),
        ("a sum that rose", {"lines x": 9}, {}, (("sum of lines rose from 3 to 9",), ("without a record: lines x",))),
        ("a sum that rose, with a record", {"lines x": 9}, record, (("sum of lines rose from 3 to 9",),)),
    )
    for name, limits, more, expected in rows:
        write(root, more)
        budget.write_limits(root, {**FITTING, **limits})
        yield from compare(f"budget: {name}", expected, [str(found) for found in budget.check_budget(root)])
    budget.write_limits(root, FITTING)
    write(root, {"crates/x/src/lib.rs": COUNTED.replace(", not two words", "")})
    yield from compare("budget: a limit that is undercut", (), [str(found) for found in budget.check_budget(root)])
    if budget.read_limits(root) != {**FITTING, "sentences x": 0}:
        yield "budget: a limit that is undercut: not lowered"


def run_real(root, copy):
    """The script itself, with the real tables, on a copy of the real tree."""
    copy_sources(root, copy)
    before = run_script(copy)[1]
    needing, needed = plant_circle(copy)
    insert(copy, MEASURE, "tokio.workspace = true\nplimsoll-mock.workspace = true\n", NORMAL)
    insert(copy, "crates/load/schedule/Cargo.toml", "-x", 'name = "plimsoll-schedule')
    insert(copy, "crates/load/measure/src/lib.rs", f"// {BAD_WORD} {'x' * 100}\n")
    insert(copy, "crates/load/measure/tests/foo.rs", "")
    status, after = run_script(copy)
    expected = (
        ("plimsoll-measure must not know tokio",),
        ("plimsoll-measure must not depend on plimsoll-mock",),
        ("plimsoll-measure reaches plimsoll-mock",),
        ("`plimsoll-schedule-x`", "`plimsoll-schedule`"),
        ("in a circle", needing, needed),
        ("crates/load/measure/src/lib.rs", "wider than 100 columns"),
        ("crates/load/measure/src/lib.rs", "forbidden word", BAD_WORD),
        ("crates/load/measure/tests/foo.rs", "binary of tests of its own"),
    )
    fresh = [line for line in after if line not in before]
    missing = [row for row in expected if not any(all(part in line for part in row) for line in fresh)]
    failures = [f"the real tree: not found: {' ... '.join(row)}" for row in missing]
    return failures if status == 1 else [*failures, f"the real tree: exit status {status} instead of 1"]


def copy_sources(root, copy):
    """The manifests and Rust files, which is all that the checks of crates and modules read."""
    for path in [root / "Cargo.toml", *root.glob("crates/**/Cargo.toml"), *root.glob("crates/**/*.rs")]:
        target = copy / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def run_script(root):
    answer = subprocess.run([SCRIPT, "--root", root], capture_output=True, text=True, check=False)
    return answer.returncode, answer.stdout.splitlines()


def plant_circle(root):
    """Turns the first edge that lies in no circle into one; returns its files."""
    for folder in modules.crate_folders(root):
        graph = modules.read_graph(root, folder)
        for needing, needed in modules.edges_outside_circles(graph):
            path = "::".join(("crate", *graph.place[needing]))
            insert(folder, needing, "\npub struct Planted;\n")
            insert(folder, needed, f"\npub fn planted(_: {path}::Planted) {{}}\n")
            return needing, needed
    raise LookupError("no crate has an edge outside of circles")
