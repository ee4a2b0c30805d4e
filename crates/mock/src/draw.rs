//! Random numbers that are functions of the seed and of the request, never of the order of arrival.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): the same numbers on every machine.

use crate::hash::fnv1a;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What is drawn. Each has its own numbers, so that asking for one by header leaves the others as
/// they were.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Fault = 1,
    Preamble,
    Ttft,
    Gap,
    Output,
    ToolCall,
    Words,
    Vector,
}

/// The random numbers of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    /// Keyed by the request's id where it has one, else by its number: the same id gets the same
    /// answer whenever it comes.
    pub(crate) fn new(seed: u64, request_id: Option<&[u8]>, sequence: u64) -> Self {
        let key = request_id.map_or_else(|| mix(sequence ^ GOLDEN), fnv1a);
        Self(mix(mix(seed.wrapping_add(GOLDEN)) ^ key))
    }

    pub(crate) const fn numbers(self, purpose: Purpose) -> Numbers {
        Numbers(mix(self.0 ^ (purpose as u64).wrapping_mul(GOLDEN)))
    }

    /// A number that stands for the request in the ids of its answer.
    pub(crate) const fn id(self) -> u64 {
        self.0
    }
}

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    /// 64 random bits.
    pub(crate) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in the open interval (0, 1): both ends are points where quantile functions may be
    /// infinite.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_decides_and_the_number_only_where_there_is_none() {
        let first = |seed, id: Option<&str>, sequence| {
            Draws::new(seed, id.map(str::as_bytes), sequence).numbers(Purpose::Ttft).bits()
        };
        assert_eq!(first(1, Some("a"), 7), first(1, Some("a"), 8));
        assert_eq!(first(1, None, 7), first(1, None, 7));
        assert_ne!(first(1, None, 7), first(1, None, 8));
        assert_ne!(first(1, Some("a"), 7), first(1, Some("b"), 7));
        assert_ne!(first(1, Some("a"), 7), first(2, Some("a"), 7));
    }

    #[test]
    fn purposes_do_not_share_numbers() {
        let draws = Draws::new(1, None, 1);
        assert_ne!(draws.numbers(Purpose::Ttft).bits(), draws.numbers(Purpose::Gap).bits());
    }

    #[test]
    fn units_of_consecutive_requests_are_uniform() {
        let unit = |n| Draws::new(9, None, n).numbers(Purpose::Gap).unit();
        let mean = (0..100_000).map(unit).sum::<f64>() / 1e5;
        let square = (0..100_000).map(|n| unit(n).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.004, "{square}");
    }
}
