//! A set of rules by their index.

use std::ops::{BitAnd, BitOr, BitOrAssign};

const WORDS: usize = 4;

/// A set of rules, small enough to live in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleSet([u64; WORDS]);

impl RuleSet {
    /// So many rules a policy can have.
    pub(crate) const CAPACITY: usize = WORDS * 64;

    pub(crate) const fn insert(&mut self, index: usize) {
        if index < Self::CAPACITY {
            self.0[index / 64] |= 1 << (index % 64);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The members which are not in `other`.
    pub(crate) fn without(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine &= !theirs);
        self
    }

    /// The members, ascending.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, word)| {
            std::iter::successors(Some(word), |rest| Some(rest & (rest.wrapping_sub(1))))
                .take_while(|rest| *rest != 0)
                .map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::default();
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

impl BitAnd for RuleSet {
    type Output = Self;

    fn bitand(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine &= theirs);
        self
    }
}

impl BitOr for RuleSet {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for RuleSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order_over_all_words() {
        let set: RuleSet = [255, 0, 64, 63, 130].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 255]);
        let other: RuleSet = [0, 130].into_iter().collect();
        assert_eq!(set.without(other).iter().collect::<Vec<_>>(), [63, 64, 255]);
        assert_eq!((set & other).iter().collect::<Vec<_>>(), [0, 130]);
        assert!(RuleSet::default().is_empty());
    }
}
