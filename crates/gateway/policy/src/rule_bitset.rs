//! A set of rule indices, as a bit set.

use std::ops::{BitAnd, BitOr, BitOrAssign};

const WORDS: usize = 4;

/// A set of rule indices, small enough for registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleBitSet([u64; WORDS]);

impl RuleBitSet {
    /// The maximum number of rules of a policy.
    pub(crate) const CAPACITY: usize = WORDS * 64;

    pub(crate) const fn insert(&mut self, index: usize) {
        if index < Self::CAPACITY {
            self.0[index / 64] |= 1 << (index % 64);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The members that are not in `other`.
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

impl FromIterator<usize> for RuleBitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::default();
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

impl BitAnd for RuleBitSet {
    type Output = Self;

    fn bitand(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine &= theirs);
        self
    }
}

impl BitOr for RuleBitSet {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for RuleBitSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order_over_all_words() {
        let set: RuleBitSet = [255, 0, 64, 63, 130].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 255]);
        let other: RuleBitSet = [0, 130].into_iter().collect();
        assert_eq!(set.without(other).iter().collect::<Vec<_>>(), [63, 64, 255]);
        assert_eq!((set & other).iter().collect::<Vec<_>>(), [0, 130]);
        assert!(RuleBitSet::default().is_empty());
    }
}
