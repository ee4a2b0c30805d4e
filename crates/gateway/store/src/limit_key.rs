//! Keys of limits, and their digests in the memory store.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

/// The counted subject: a scope and a name, such as `tenant` and `acme`, or `global` and an empty
/// name.
///
/// Redis stores the names; the memory store keeps digests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitKey<'a> {
    /// The scope keeps tenants and addresses of equal names apart.
    pub scope: &'a str,
    /// The name, of any length and from any source.
    pub name: &'a str,
}

impl<'a> LimitKey<'a> {
    /// A key of a scope.
    pub const fn new(scope: &'a str, name: &'a str) -> Self {
        Self { scope, name }
    }
}

/// A 128-bit digest of a key, so that long names cost no more than short ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    low: u64,
    high: u64,
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low);
    }
}

/// Makes digests with two random keys, so that clients cannot choose colliding names.
#[derive(Debug, Default)]
pub(crate) struct KeyDigester {
    low: RandomState,
    high: RandomState,
}

impl KeyDigester {
    /// The digest of a key; `salt` separates several counts of one key.
    pub(crate) fn digest(&self, key: LimitKey<'_>, salt: u64) -> Digest {
        Digest { low: half(&self.low, key, salt), high: half(&self.high, key, salt) }
    }
}

fn half(keys: &RandomState, key: LimitKey<'_>, salt: u64) -> u64 {
    let mut hasher = keys.build_hasher();
    // The lengths come first: ("a", "bc") and ("ab", "c") are different subjects.
    hasher.write_u64(salt ^ (key.scope.len() as u64).rotate_left(48));
    hasher.write(key.scope.as_bytes());
    hasher.write(key.name.as_bytes());
    hasher.finish()
}

/// Passes an existing hash through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_name_and_salt_are_kept_apart() {
        let digester = KeyDigester::default();
        let digest = |scope, name, salt| digester.digest(LimitKey::new(scope, name), salt);
        let all = [
            digest("a", "bc", 0),
            digest("ab", "c", 0),
            digest("abc", "", 0),
            digest("a", "bc", 1),
            digest("a", "b", 0),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(digest("a", "bc", 0), all[0]);
    }
}
