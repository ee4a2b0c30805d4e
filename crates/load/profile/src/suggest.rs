//! Suggests the nearest known name for an unknown one.

/// The known name most similar to `written`, if one is similar enough.
///
/// At most a third of its letters may be inserted, removed, changed or swapped (the optimal string
/// alignment distance).
fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = written.to_lowercase().replace('-', "_");
    let distances =
        known.iter().map(|name| (strsim::osa_distance(&lower, &name.replace('-', "_")), *name));
    let near = distances.min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .map(|(_, name)| name)
}

/// Maximum number of names to list.
const LISTED: usize = 24;

/// The fix for an unknown name: the nearest known one, or a list of all if there are few.
pub(crate) fn instead(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.len() > LISTED => {
            format!("`plimsoll profile schema` lists the {} known ones", known.len())
        }
        None => format!("known are {}", list(known, "and")),
    }
}

/// `a`, `b` or `c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    list(names, "or")
}

fn list(names: &[&str], last: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_similar() {
        let known = ["target", "timeout", "max_tokens"];
        for (written, suggestion) in [
            ("taget", Some("target")),
            ("Target", Some("target")),
            ("time_out", Some("timeout")),
            ("max-tokens", Some("max_tokens")),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, &known), suggestion, "{written}");
        }
    }

    #[test]
    fn lists_are_written_as_in_a_sentence() {
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(instead("x", &["abc", "def"]), "known are `abc` and `def`");
    }
}
