//! Which part a watched process has.

use plimsoll_metrics::{ProcessLoad, ProcessPlace, TargetInfo};

use crate::result::Suspect;

/// Its name, if that is a known word; else that it listens at the target's address; else the name
/// of a target that it belongs to.
pub(crate) fn of(process: &ProcessLoad, targets: &[TargetInfo]) -> Suspect {
    if process.place == ProcessPlace::Plimsoll {
        return Suspect::Generator;
    }
    let named = by_name(&process.name);
    let at_target = (process.place == ProcessPlace::Target).then_some(Suspect::Gateway);
    named
        .or(at_target)
        .or_else(|| {
            let own = targets.iter().find(|target| target.name == process.name)?;
            let suspect = if own.direct { Suspect::Provider } else { Suspect::Gateway };
            (targets.len() > 1).then_some(suspect)
        })
        .unwrap_or(Suspect::Other)
}

/// `gateway`, `provider` and `store`, also with a number or a name behind: `gateway-2`.
fn by_name(name: &str) -> Option<Suspect> {
    let name = name.to_ascii_lowercase();
    let known = [Suspect::Gateway, Suspect::Provider, Suspect::Store];
    known.into_iter().find(|suspect| {
        let rest = name.strip_prefix(suspect.name());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_name_its_place_or_its_target() {
        let target = |name: &str, direct| {
            let name = name.to_owned();
            TargetInfo { name, direct, ..TargetInfo::default() }
        };
        let one = [target("main", false)];
        let two = [target("upstream", true), target("kong", false)];
        for (name, at_target, targets, suspect) in [
            ("gateway", false, &one[..], Suspect::Gateway),
            ("Gateway-2", false, &one, Suspect::Gateway),
            ("provider", true, &one, Suspect::Provider),
            ("store", false, &one, Suspect::Store),
            ("nginx", true, &one, Suspect::Gateway),
            ("nginx", false, &one, Suspect::Other),
            ("storefront", false, &one, Suspect::Other),
            ("main", false, &one, Suspect::Other),
            ("kong", false, &two, Suspect::Gateway),
            ("upstream", false, &two, Suspect::Provider),
            ("direct", false, &two, Suspect::Other),
        ] {
            let place = if at_target { ProcessPlace::Target } else { ProcessPlace::Elsewhere };
            let process = ProcessLoad { name: name.to_owned(), place, ..ProcessLoad::default() };
            assert_eq!(of(&process, targets), suspect, "{name}");
        }
        let own = ProcessLoad { place: ProcessPlace::Plimsoll, ..ProcessLoad::default() };
        assert_eq!(of(&own, &one), Suspect::Generator);
    }
}
