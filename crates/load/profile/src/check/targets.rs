//! Checks the targets of runs and comparisons.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_plan::{ADDED, TargetUrl, UrlFault, names_credential};
use plimsoll_schedule::PairMode;

use super::{ProfileCheck, Purpose, top};
use crate::path::{self, ConfigPath};
use crate::source::is_plain;
use crate::spec::{ProfileFile, RoleFile, TargetFile};

const NOT_A_NAME: &str = "is not the name of a header";
const NAME_FIX: &str = "write letters, digits and `-`, without spaces and colons";
const NOT_A_VALUE: &str = "has a line break or another character that headers cannot contain";

/// Maximum number of targets in a comparison, excluding its control.
const MAX_TARGETS: usize = 32;

/// The URLs of a profile's targets.
#[derive(Debug)]
pub(crate) struct CheckedTargets {
    /// URL of the only target, or of the reference.
    pub(crate) main: TargetUrl,
    /// URLs of all targets of a comparison, in the profile's order; empty otherwise.
    pub(crate) compared: Vec<TargetUrl>,
}

/// Whether a plan compares several targets.
pub(crate) fn compares(file: &ProfileFile, purpose: Purpose) -> bool {
    match purpose {
        Purpose::Versus => true,
        Purpose::Check | Purpose::Show => file.target.is_none() && !file.targets.is_empty(),
        Purpose::Run => false,
    }
}

/// Position of the reference, with which the others are compared.
pub(crate) fn reference(file: &ProfileFile) -> usize {
    let (mut targets, reference) = (file.targets.iter(), file.versus.reference.as_ref());
    let named = targets.clone().position(|target| Some(&target.name) == reference);
    named.or_else(|| targets.position(|target| target.role == RoleFile::Direct)).unwrap_or(0)
}

impl ProfileCheck<'_> {
    pub(super) fn check_targets(&mut self) -> Option<CheckedTargets> {
        if !self.file.targets.is_empty() {
            self.check_names_of_targets();
            self.check_versus();
        }
        if compares(self.file, self.purpose) {
            let compared = self.check_compared()?;
            let main = compared.get(reference(self.file))?.clone();
            return Some(CheckedTargets { main, compared });
        }
        let Some(target) = &self.file.target else {
            let fix = if self.file.targets.is_empty() {
                "write `target: http://127.0.0.1:9000`, or give --target URL"
            } else {
                "compare its `targets` with `plimsoll versus`, or give --target URL"
            };
            self.report(top("target"), "is missing", fix);
            return None;
        };
        let main = self.check_url(top("target"), target)?;
        Some(CheckedTargets { main, compared: Vec::new() })
    }

    fn check_url(&mut self, path: ConfigPath, text: &str) -> Option<TargetUrl> {
        let url = text.parse();
        url.map_err(|fault: UrlFault| self.report(path, fault.to_string(), fault.fix())).ok()
    }

    /// The URLs of a comparison's targets.
    fn check_compared(&mut self) -> Option<Vec<TargetUrl>> {
        let (file, path) = (self.file, top("targets"));
        let compared = file.targets.iter().filter(|target| target.role != RoleFile::Control);
        if compared.count() < 2 {
            let fix = "give at least two: --direct URL and --target NAME=URL, or two `targets`";
            self.report(path, "has too few targets to compare", fix);
            return None;
        }
        let judged = file.targets.iter().filter(|target| target.role == RoleFile::Gateway);
        if file.versus.margin.is_some() && judged.count() < 2 {
            let fix = "give a second --target, or bound the overhead of this one instead: \
                       --set \"thresholds={added.ttft: ['p(50)<5ms']}\"";
            let path = top("versus").key("margin");
            self.report(path, "needs two targets besides the upstream to compare", fix);
        }
        if file.targets.len() > MAX_TARGETS {
            let fix = format!("compare at most {MAX_TARGETS} at once");
            self.report(path, "has too many targets", fix);
            return None;
        }
        let paths = (0..file.targets.len()).map(|index| path.index(index).key("url"));
        let urls: Vec<_> = paths
            .zip(&file.targets)
            .map(|(path, target)| self.check_url(path, &target.url))
            .collect();
        let urls: Vec<_> = urls.into_iter().collect::<Option<_>>()?;
        self.check_same(&urls);
        Some(urls)
    }

    /// Reports two identical targets.
    fn check_same(&mut self, urls: &[TargetUrl]) {
        let file = self.file;
        for (index, (url, target)) in urls.iter().zip(&file.targets).enumerate() {
            if is_control(target) {
                continue;
            }
            let earlier = urls.iter().zip(&file.targets).take(index).find(|(other, earlier)| {
                *other == url && ask_the_same(earlier, target) && !is_control(earlier)
            });
            if let Some((_, earlier)) = earlier {
                let cause = format!("is the same target as `{}`", earlier.name);
                let fix = "give each its own URL, model or headers; to load one twice as a \
                           control, write `versus: {control: true}`, or give --control on";
                self.report(top("targets").index(index).key("url"), cause, fix);
            }
        }
    }

    fn check_names_of_targets(&mut self) {
        let file = self.file;
        for (index, target) in file.targets.iter().enumerate() {
            let path = top("targets").index(index);
            if target.name.is_empty() || !target.name.chars().all(is_plain) {
                let fix = "write letters, digits, `-`, `_` and `.`";
                self.report(path.key("name"), "cannot be the name of a target", fix);
            }
            if file.targets[..index].iter().any(|other| other.name == target.name) {
                let cause = format!("is `{}`, like an earlier target's", target.name);
                self.report(path.key("name"), cause, "give each target a different name");
            }
            self.check_role(&path, index);
            if target.watch.as_deref().is_some_and(|watch| !is_watch(watch)) {
                let fix = "write `pid:4711`, or `:8080` for the process that listens on that port";
                self.report(path.key("watch"), "names no process", fix);
            }
            self.check_key_at(path.key("key"), target.key.as_deref());
        }
    }

    /// Allows at most one reference and one control.
    fn check_role(&mut self, path: &ConfigPath, index: usize) {
        let role = self.file.targets[index].role;
        let mut earlier = self.file.targets[..index].iter().map(|target| target.role);
        if role == RoleFile::Gateway || earlier.all(|other| other != role) {
            return;
        }
        let (cause, fix) = match role {
            RoleFile::Control => {
                ("is `control`, like an earlier target's", "one control is enough")
            }
            RoleFile::Direct | RoleFile::Gateway => {
                ("is `direct`, like an earlier target's", "only one target can be the reference")
            }
        };
        self.report(path.key("role"), cause, fix);
    }

    fn check_versus(&mut self) {
        let (file, path) = (self.file, top("versus"));
        let names: Vec<_> = file.targets.iter().map(|target| target.name.as_str()).collect();
        if let Some(reference) = &file.versus.reference
            && !names.contains(&reference.as_str())
        {
            let cause = format!("is `{reference}`, and no target has that name");
            self.report(path.key("reference"), cause, path::instead(reference, &names));
        }
        if file.versus.window == Nanos::ZERO {
            self.report(path.key("window"), "is zero", "write a length of time, like `5s`");
        }
        if file.targets.get(reference(file)).is_some_and(|t| t.role == RoleFile::Control) {
            let fix = "give another target the role `direct`, or name one in `versus.reference`";
            self.report(path.key("reference"), "is a control: it cannot be a reference", fix);
        }
        self.check_decide(&path);
        self.check_time_for_turns();
    }

    /// Rejects `decide` unless requests run side by side, because only such a run can end at any
    /// moment.
    fn check_decide(&mut self, path: &ConfigPath) {
        let (versus, path) = (&self.file.versus, path.key("decide"));
        if !versus.decide {
            return;
        }
        if versus.rounds > 1 {
            let cause = "cannot be combined with `rounds`";
            self.report(path.clone(), cause, "leave `rounds` out, or `decide`");
        }
        if versus.schedule == PairMode::Turns {
            let cause = "cannot be combined with `schedule: turns`: there are too few turns";
            let fix = "use `schedule: spread`, or leave `decide` out";
            self.report(path, cause, fix);
        }
    }

    /// Requires stages that are long enough for each target to have one window.
    fn check_time_for_turns(&mut self) {
        let (file, versus) = (self.file, &self.file.versus);
        let own = file.targets.iter().any(|target| target.role == RoleFile::Control);
        let targets = file.targets.len() as u64 + u64::from(versus.control && !own);
        let least = versus.window.as_u64().saturating_mul(targets);
        if versus.schedule != PairMode::Turns {
            return;
        }
        let stages = file.stages.iter().flat_map(|stages| &stages.0);
        let too_short = stages
            .filter(|stage| {
                !stage.warmup
                    && stage.duration.as_ref().is_some_and(|length| length.as_u64() < least)
            })
            .map(ToString::to_string)
            .next();
        if let Some(stage) = too_short {
            let cause = format!(
                "has the stage `{stage}`, in which {targets} targets take turns of {} at least",
                versus.window
            );
            let fix = format!("make it {} or longer", Nanos::new(least));
            self.report(top("stages"), cause, fix);
        }
    }

    /// Checks that the target of a threshold on overhead exists; returns false for other
    /// thresholds. The expression itself is parsed by its judge.
    pub(super) fn check_added(&mut self, key: &str) -> bool {
        let Some(rest) = key.strip_prefix(ADDED) else { return false };
        let inside = rest.split_once("{target:").and_then(|(_, rest)| rest.strip_suffix('}'));
        if let Some(name) = inside {
            self.check_target_of(&top("thresholds").key(key), name.trim());
        }
        true
    }

    fn check_target_of(&mut self, path: &ConfigPath, name: &str) {
        let names: Vec<_> = self.file.targets.iter().map(|t| t.name.as_str()).collect();
        if !names.contains(&name) {
            let cause = format!("no target is named `{name}`");
            self.report(path.clone(), cause, path::instead(name, &names));
        }
    }

    pub(super) fn check_key(&mut self) {
        self.check_key_at(top("key"), self.file.key.as_deref());
    }

    fn check_key_at(&mut self, path: ConfigPath, key: Option<&str>) {
        let Some(key) = key else { return };
        if key.is_empty() {
            self.report(
                path,
                "is empty",
                "write the key or `${NAME}` of a variable, or leave `key` out",
            );
        } else if !is_value(key) {
            self.report(path, NOT_A_VALUE, "check the source of the key");
        } else {
            self.check_placeholder(path, key);
        }
    }
}

/// Whether requests to both targets are equal except for the URL.
fn ask_the_same(a: &TargetFile, b: &TargetFile) -> bool {
    a.model == b.model && a.protocol == b.protocol && a.headers == b.headers && a.key == b.key
}

fn is_control(target: &TargetFile) -> bool {
    target.role == RoleFile::Control
}

/// Whether a text is like `pid:4711` or `:8080`.
fn is_watch(text: &str) -> bool {
    let number = text.strip_prefix("pid:").or_else(|| text.strip_prefix(':'));
    number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number > 0))
}

// Checks header names and values.

/// Headers that frame the message. A wrong value would make the target wait for bytes that never
/// come.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

impl ProfileCheck<'_> {
    pub(super) fn check_all_headers(&mut self) {
        let file = self.file;
        self.check_headers(&top("headers"), &file.headers);
        for (index, target) in file.targets.iter().enumerate() {
            self.check_headers(&top("targets").index(index).key("headers"), &target.headers);
        }
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let path = ConfigPath::root().key("scenarios").index(index).key("headers");
            self.check_headers(&path, &scenario.headers);
            if let Some(http) = &scenario.behaviour.http {
                self.check_headers(
                    &self.layers.behaviour_path(index, "http").key("headers"),
                    &http.headers,
                );
            }
        }
    }

    /// Checks names of response headers. A value under a misspelled name would never be found.
    pub(super) fn check_response_headers(&mut self) {
        let headers = &self.file.response_headers;
        for (key, names) in headers.lists() {
            let wrong = names.iter().enumerate().filter(|(_, name)| !is_name(name));
            for (index, _) in wrong {
                let path = top("response_headers").key(key).index(index);
                self.report(path, NOT_A_NAME, NAME_FIX);
            }
        }
    }

    fn check_headers(&mut self, path: &ConfigPath, headers: &BTreeMap<String, String>) {
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in headers {
            let lower = name.to_ascii_lowercase();
            let path = path.key(name);
            if !is_name(name) {
                self.report(path.clone(), NOT_A_NAME, NAME_FIX);
            } else if FRAMING.contains(&lower.as_str()) {
                self.report(path.clone(), "is set by Plimsoll itself", "leave it out");
            } else if seen.contains(&lower) {
                self.report(path.clone(), "is given twice, in different case", "leave one out");
            }
            if !is_value(value) {
                self.report(path.clone(), NOT_A_VALUE, "write one line of text");
            }
            if names_credential(name) {
                self.check_placeholder(path, value.trim_start_matches("Bearer "));
            }
            seen.push(lower);
        }
    }
}

/// Whether a text is a token (RFC 9110, section 5.6.2).
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a text can be a header's value: no control characters except tab (RFC 9110, section
/// 5.5).
pub(super) fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F))
}
