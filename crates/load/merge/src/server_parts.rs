//! The names of the parts that targets state in headers. Each shard numbers them as they come.

use plimsoll_measure::NAMED_PARTS;

/// Adds the names of a shard to those that are known, and returns the common number of each of its
/// own; `None` for those beyond the ones that have a number.
pub(crate) fn number(known: &mut Vec<String>, names: &[String]) -> Vec<Option<usize>> {
    names
        .iter()
        .map(|name: &String| {
            let found = known.iter().position(|other| other == name);
            found.or_else(|| {
                let free = known.len();
                (free < NAMED_PARTS).then(|| {
                    known.push(name.clone());
                    free
                })
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_has_the_same_number_in_all_shards() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut known = Vec::new();
        assert_eq!(number(&mut known, &names("db auth")), [Some(0), Some(1)]);
        assert_eq!(number(&mut known, &names("auth cache db")), [Some(1), Some(2), Some(0)]);
        let many = number(&mut known, &names("a b c d e f g"));
        assert_eq!(many, [Some(3), Some(4), Some(5), Some(6), Some(7), None, None]);
    }
}
