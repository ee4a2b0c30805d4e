//! Who is counted, and the short form in which the memory store remembers it.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

/// Who is counted: a kind and a name, `tenant` and `acme`, `global` and nothing.
///
/// Redis stores the names as they are; the memory store remembers digests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitKey<'a> {
    /// The kind of the name: what is a tenant and what is an address never meet.
    pub scope: &'a str,
    /// The name, of any length and from anywhere.
    pub name: &'a str,
}

impl<'a> LimitKey<'a> {
    /// A key of a scope.
    pub const fn new(scope: &'a str, name: &'a str) -> Self {
        Self { scope, name }
    }
}

/// 128 bits that stand for a key, so that a name of kilobytes costs no more than a short one.
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

/// Makes digests with two keys drawn at the start: nobody outside can choose names that collide.
#[derive(Debug, Default)]
pub(crate) struct KeyDigester {
    low: RandomState,
    high: RandomState,
}

impl KeyDigester {
    /// The digest of a key; `salt` keeps apart what one key is counted for.
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

/// The hash of what is a hash already.
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
