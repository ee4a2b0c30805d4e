//! The targets of a plan: one for a run, several for a comparison.

use std::collections::BTreeMap;

use crate::byte_size::ByteSize;
use crate::check::{CheckedTargets, reference};
use crate::spec::{ProfileFile, RoleFile, TargetFile};
use plimsoll_plan::{ADDED, HeaderValue, Secret, Target, TargetRole, TargetUrl, VersusPlan};

/// The targets of a checked file; in a comparison the reference first, then its control.
pub(super) fn all(file: &mut ProfileFile, urls: CheckedTargets) -> Vec<Target> {
    let key = file.key.take().map(Secret::new);
    let model = file.model.take().unwrap_or_default();
    let headers = header_values(std::mem::take(&mut file.headers));
    if urls.compared.is_empty() {
        return vec![Target {
            name: urls.main.authority(),
            url: urls.main,
            model,
            key,
            headers,
            protocol: None,
            direct: false,
            role: TargetRole::Candidate,
            watch: None,
            image_bytes: None,
            startup: None,
        }];
    }
    let reference = reference(file);
    let own = file.targets.iter().position(|target| target.role == RoleFile::Control);
    let twin = own.is_none() && file.versus.control;
    let shared = Shared { key, model, headers };
    let listed = std::mem::take(&mut file.targets).into_iter().zip(urls.compared);
    let mut all: Vec<_> = listed.map(|(own, url)| shared.target(own, url)).collect();
    all[reference].role = TargetRole::Reference;
    // A control has the same upstream as its reference.
    let direct = all[reference].direct;
    for control in all.iter_mut().filter(|target| target.role == TargetRole::Control) {
        control.direct = direct;
    }
    let twin = twin.then(|| Target {
        name: format!("{}'", all[reference].name),
        role: TargetRole::Control,
        watch: None,
        image_bytes: None,
        startup: None,
        ..all[reference].clone()
    });
    all.extend(twin);
    all.sort_by_key(|target| match target.role {
        TargetRole::Reference => 0,
        TargetRole::Control => 1,
        TargetRole::Candidate => 2,
    });
    all
}

/// Defaults shared by the targets.
struct Shared {
    key: Option<Secret>,
    model: String,
    headers: BTreeMap<String, HeaderValue>,
}

impl Shared {
    fn target(&self, own: TargetFile, url: TargetUrl) -> Target {
        let mut headers = self.headers.clone();
        for (name, value) in header_values(own.headers) {
            headers.retain(|shared, _| !shared.eq_ignore_ascii_case(&name));
            headers.insert(name, value);
        }
        Target {
            name: own.name,
            url,
            model: own.model.unwrap_or_else(|| self.model.clone()),
            key: own.key.map(Secret::new).or_else(|| self.key.clone()),
            headers,
            protocol: own.protocol,
            direct: own.role == RoleFile::Direct,
            role: match own.role {
                RoleFile::Control => TargetRole::Control,
                RoleFile::Gateway | RoleFile::Direct => TargetRole::Candidate,
            },
            watch: own.watch,
            image_bytes: own.image.map(ByteSize::bytes),
            startup: own.startup,
        }
    }
}

/// Takes the comparison's options out of a checked file, including its thresholds on overhead.
pub(super) fn versus(file: &mut ProfileFile) -> VersusPlan {
    let versus = file.versus.clone();
    let thresholds = file.thresholds.extract_if(.., |key, _| key.starts_with(ADDED)).collect();
    VersusPlan {
        schedule: versus.schedule,
        order: versus.order,
        gap: versus.gap,
        window: versus.window,
        alone: versus.alone,
        replies: versus.replies,
        margin: versus.margin,
        decide: versus.decide,
        rounds: versus.rounds.max(1),
        every: versus.every,
        thresholds,
    }
}

fn header_values(headers: BTreeMap<String, String>) -> BTreeMap<String, HeaderValue> {
    headers
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::new(&name, value);
            (name, value)
        })
        .collect()
}
