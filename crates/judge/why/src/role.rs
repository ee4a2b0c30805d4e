//! Determines the role of a monitored process.

use plimsoll_metrics::{ProcessLoad, ProcessPlace, TargetInfo};

use crate::result::Suspect;

/// Role of the process at the target's address: a gateway, if a process has that name or an
/// upstream is known; otherwise it may be the provider itself.
pub(crate) fn front(processes: &[ProcessLoad], targets: &[TargetInfo], is_joined: bool) -> Suspect {
    let is_gateway = is_joined
        || targets.iter().any(|target| target.direct)
        || processes.iter().any(|process: &ProcessLoad| match by_name(&process.name) {
            Some(Suspect::Gateway) => true,
            Some(Suspect::Upstream | Suspect::Store) => process.place == ProcessPlace::Elsewhere,
            _ => false,
        });
    if is_gateway { Suspect::Gateway } else { Suspect::Target }
}

/// Role of a process: by its name if that is a known word; `front` if it listens at the target's
/// address; otherwise by the target it belongs to.
pub(crate) fn of(process: &ProcessLoad, targets: &[TargetInfo], front: Suspect) -> Suspect {
    if process.place == ProcessPlace::Plimsoll {
        return Suspect::Generator;
    }
    let named = by_name(&process.name);
    let named = named.map(|named| if named == Suspect::Target { front } else { named });
    let at_target = (process.place == ProcessPlace::Target).then_some(front);
    named
        .or(at_target)
        .or_else(|| {
            let own = targets.iter().find(|target| target.name == process.name)?;
            let suspect = if own.direct { Suspect::Upstream } else { Suspect::Gateway };
            (targets.len() > 1).then_some(suspect)
        })
        .unwrap_or(Suspect::Other)
}

/// Matches `target`, `gateway`, `upstream`, `provider` and `store`, optionally followed by a number
/// or a name: `gateway-2`.
fn by_name(name: &str) -> Option<Suspect> {
    let name = name.to_ascii_lowercase();
    let known = [
        ("target", Suspect::Target),
        ("gateway", Suspect::Gateway),
        ("upstream", Suspect::Upstream),
        ("provider", Suspect::Upstream),
        ("store", Suspect::Store),
    ];
    let begins = known.into_iter().find(|(word, _)| {
        let rest = name.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    begins.map(|(_, suspect)| suspect)
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
            ("provider", true, &one, Suspect::Upstream),
            ("store", false, &one, Suspect::Store),
            ("nginx", true, &one, Suspect::Gateway),
            ("nginx", false, &one, Suspect::Other),
            ("storefront", false, &one, Suspect::Other),
            ("main", false, &one, Suspect::Other),
            ("kong", false, &two, Suspect::Gateway),
            ("upstream", false, &two, Suspect::Upstream),
            ("direct", false, &two, Suspect::Other),
        ] {
            let place = if at_target { ProcessPlace::Target } else { ProcessPlace::Elsewhere };
            let process = ProcessLoad { name: name.to_owned(), place, ..ProcessLoad::default() };
            assert_eq!(of(&process, targets, Suspect::Gateway), suspect, "{name}");
        }
        let own = ProcessLoad { place: ProcessPlace::Plimsoll, ..ProcessLoad::default() };
        assert_eq!(of(&own, &one, Suspect::Gateway), Suspect::Generator);
    }

    #[test]
    fn what_answers_is_a_gateway_only_where_something_says_so() {
        let process = |name: &str, place| ProcessLoad {
            name: name.to_owned(),
            place,
            ..ProcessLoad::default()
        };
        let target = process("target", ProcessPlace::Target);
        let provider = |place| process("provider", place);
        let one = [TargetInfo::default()];
        let direct = [TargetInfo { direct: true, ..TargetInfo::default() }];
        let gateway = process("gateway-2", ProcessPlace::Target);
        for (processes, targets, is_joined, suspect) in [
            (vec![target.clone()], &one, false, Suspect::Target),
            (vec![], &one, false, Suspect::Target),
            (vec![provider(ProcessPlace::Target)], &one, false, Suspect::Target),
            (
                vec![target.clone(), provider(ProcessPlace::Elsewhere)],
                &one,
                false,
                Suspect::Gateway,
            ),
            (vec![gateway], &one, false, Suspect::Gateway),
            (vec![target.clone()], &one, true, Suspect::Gateway),
            (vec![target.clone()], &direct, false, Suspect::Gateway),
        ] {
            assert_eq!(front(&processes, targets, is_joined), suspect, "{processes:?}");
        }
        assert_eq!(of(&target, &one, Suspect::Target), Suspect::Target);
        assert_eq!(of(&target, &one, Suspect::Gateway), Suspect::Gateway);
    }
}
