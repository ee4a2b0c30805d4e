//! A seeded random number generator for each request. Its numbers depend on the seed and the
//! request, and not on the order of arrival.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): the same on every machine.

use crate::hash::fnv1a;

/// The odd number nearest to 2^64 divided by the golden ratio: the step of `SplitMix64`.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes the bits of a number: the output function of `SplitMix64`.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The purposes of random numbers. Each has its own sequence, so overriding one value does not
/// change the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Fault = 1,
    Preamble,
    Ttft,
    Gap,
    OutputLength,
    ToolCall,
    Words,
    Vector,
    Outcome,
    Steps,
    Input,
}

/// The generators of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRng {
    key: u64,
    pub(crate) id: u64,
}

impl RequestRng {
    /// Keyed by the request's id, or else by its number. The same id always gets the same response.
    pub(crate) fn new(seed: u64, request_id: Option<&[u8]>, sequence: u64) -> Self {
        let key = request_id.map_or_else(|| mix(sequence ^ GOLDEN), fnv1a);
        let key = mixed(seed, key);
        Self { key, id: key }
    }

    /// The same request, with random numbers derived from its prompt.
    pub(crate) const fn drawn_by(self, seed: u64, content: u64) -> Self {
        Self { key: mixed(seed, content), ..self }
    }

    /// The generator for one purpose.
    pub(crate) const fn fork(self, purpose: Purpose) -> Rng {
        Rng(mix(self.key ^ (purpose as u64).wrapping_mul(GOLDEN)))
    }
}

pub(crate) const fn mixed(seed: u64, key: u64) -> u64 {
    mix(mix(seed.wrapping_add(GOLDEN)) ^ key)
}

/// A random number generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// 64 random bits.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in the open interval (0, 1). Quantile functions may be infinite at both ends.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_id_is_the_key_and_the_number_only_without_one() {
        let first = |seed, id: Option<&str>, sequence| {
            RequestRng::new(seed, id.map(str::as_bytes), sequence).fork(Purpose::Ttft).next_u64()
        };
        assert_eq!(first(1, Some("a"), 7), first(1, Some("a"), 8));
        assert_eq!(first(1, None, 7), first(1, None, 7));
        assert_ne!(first(1, None, 7), first(1, None, 8));
        assert_ne!(first(1, Some("a"), 7), first(1, Some("b"), 7));
        assert_ne!(first(1, Some("a"), 7), first(2, Some("a"), 7));
    }

    #[test]
    fn by_content_the_numbers_are_the_same_and_the_ids_are_not() {
        let request = |id: &str, content| {
            let request = RequestRng::new(1, Some(id.as_bytes()), 0).drawn_by(1, content);
            (request.fork(Purpose::Ttft).next_u64(), request.id)
        };
        let (one, other, third) = (request("a", 5), request("b", 5), request("b", 6));
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
        assert_ne!(other.0, third.0);
    }

    #[test]
    fn purposes_have_different_numbers() {
        let request = RequestRng::new(1, None, 1);
        assert_ne!(request.fork(Purpose::Ttft).next_u64(), request.fork(Purpose::Gap).next_u64());
    }

    #[test]
    fn numbers_of_consecutive_requests_are_uniform() {
        let uniform = |n| RequestRng::new(9, None, n).fork(Purpose::Gap).uniform();
        let mean = (0..100_000).map(uniform).sum::<f64>() / 1e5;
        let square = (0..100_000).map(|n| uniform(n).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.004, "{square}");
    }
}
