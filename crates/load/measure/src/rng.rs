//! Random numbers keyed by (seed, stream, index), independent of worker, shard and order of calls.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014), initialized with a mix of the three keys. It is tiny, the same on
//! every machine, and passes the usual test batteries; it is not cryptographic.

/// The seed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The generator for item `index` of the stream named `stream`.
    pub fn rng(self, stream: &str, index: u64) -> Rng {
        Rng { state: mix(mix(self.0 ^ GOLDEN) ^ hash(stream)) ^ mix(index.wrapping_mul(GOLDEN)) }
    }

    /// A seed for the part of a run named `stream`, independent of the others.
    pub fn derive(self, stream: &str) -> Self {
        Self(mix(self.0 ^ hash(stream)))
    }
}

/// A generator of a short sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`; 0 if `n` is 0. Multiply-shift: the bias is below `n / 2^64`.
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Exponential with mean 1: the gap of a Poisson process of rate 1 (inverse transform).
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Standard normal (Box-Muller, the cosine half).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// FNV-1a, for the short names of streams.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_keys_give_the_same_numbers_and_other_keys_give_others() {
        let first = |seed, stream, index| Seed(seed).rng(stream, index).next_u64();
        assert_eq!(first(1, "a", 7), first(1, "a", 7));
        let all = [first(1, "a", 7), first(2, "a", 7), first(1, "b", 7), first(1, "a", 8)];
        for (i, x) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|y| x != y));
        }
    }

    #[test]
    fn first_numbers_of_consecutive_indices_have_the_moments_of_their_distribution() {
        let n = 200_000u64;
        let mean = |f: &dyn Fn(&mut Rng) -> f64| {
            (0..n).map(|i| f(&mut Seed(42).rng("moments", i))).sum::<f64>() / n as f64
        };
        assert!((mean(&|d| d.uniform()) - 0.5).abs() < 0.003);
        assert!((mean(&|d| d.exponential()) - 1.0).abs() < 0.01);
        assert!(mean(&|d| d.normal()).abs() < 0.01);
        assert!((mean(&|d| d.normal().powi(2)) - 1.0).abs() < 0.015);
        assert!((mean(&|d| d.below(10) as f64) - 4.5).abs() < 0.03);
    }
}
