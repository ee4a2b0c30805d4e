//! The Huffman code of strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length increase with their symbols, and longer codes follow
//! shorter ones. So the code lengths define the whole code.

use super::HpackError;

/// The end-of-string symbol. It must not occur in a string.
const EOS: u16 = 256;
/// Bits that are looked up at once. Codes of common characters are not longer.
const FAST_BITS: u32 = 8;

/// Decoding tables. Codes are left-justified in 32 bits.
struct CodeTables {
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// By length: the exclusive end of its codes. 64 bits, because the last one is 2^32.
    ends: [u64; LONGEST + 1],
    /// By length: the offset from a code's number to its position in `symbols`.
    offsets: [i64; LONGEST + 1],
    /// By the next 8 bits: symbol and length of their first code, or length 0.
    fast: [(u16, u8); 1 << FAST_BITS],
}

static CODE: CodeTables = build();

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "at most 257 symbols of at most 30 bits, computed by the compiler"
)]
const fn build() -> CodeTables {
    let mut code = CodeTables {
        symbols: [0; 257],
        ends: [0; LONGEST + 1],
        offsets: [0; LONGEST + 1],
        fast: [(0, 0); 1 << FAST_BITS],
    };
    let (mut next, mut count, mut length) = (0, 0, 1);
    while length <= LONGEST {
        code.offsets[length] = count as i64 - next as i64;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[count] = symbol as u16;
                code = code.with_fast(symbol as u16, next, length as u32);
                (count, next) = (count + 1, next + 1);
            }
            symbol += 1;
        }
        code.ends[length] = next << (32 - length);
        next <<= 1;
        length += 1;
    }
    code
}

impl CodeTables {
    /// Adds a short code at every index that begins with it.
    #[expect(clippy::cast_possible_truncation, reason = "8 bits, and a length of at most 8")]
    const fn with_fast(mut self, symbol: u16, bits: u64, length: u32) -> Self {
        if length <= FAST_BITS {
            let mut index = bits << (FAST_BITS - length);
            let end = (bits + 1) << (FAST_BITS - length);
            while index < end {
                self.fast[index as usize] = (symbol, length as u8);
                index += 1;
            }
        }
        self
    }

    /// The first symbol of `window`, and its length.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a code that lies below the end of its length has a symbol"
    )]
    fn read(&self, window: u64) -> (u16, u32) {
        let (symbol, length) = self.fast[(window >> (64 - FAST_BITS)) as usize];
        if length > 0 {
            return (symbol, u32::from(length));
        }
        let bits = window >> 32;
        let mut length = FAST_BITS as usize + 1;
        while length < LONGEST && bits >= self.ends[length] {
            length += 1;
        }
        let number = (bits >> (32 - length)) as i64;
        (self.symbols[(number + self.offsets[length]) as usize], length as u32)
    }
}

/// Decodes `input` and appends the string.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut input = input.iter();
    // Bits not yet decoded, left-justified.
    let (mut window, mut bits) = (0_u64, 0);
    loop {
        while bits <= 56
            && let Some(&byte) = input.next()
        {
            window |= u64::from(byte) << (56 - bits);
            bits += 8;
        }
        if bits == 0 {
            return Ok(());
        }
        let (symbol, length) = CODE.read(window);
        if length > bits {
            // Fewer than 8 bits, all of them ones, are padding.
            let padded = bits < 8 && window == !(u64::MAX >> bits);
            return if padded { Ok(()) } else { Err(HpackError("a Huffman code is cut off")) };
        }
        if symbol == EOS {
            return Err(HpackError("a Huffman code holds the end of string"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "256 was refused above")]
        out.push(symbol as u8);
        window <<= length;
        bits -= length;
    }
}

/// The longest code.
const LONGEST: usize = 30;

/// Code lengths by symbol, from appendix B of RFC 7541; the last one is the end of string.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Codes copied from appendix B: symbol, bits, length.
    const SAMPLES: [(u8, u32, u32); 12] = [
        (b'0', 0x0, 5),
        (b'a', 0x3, 5),
        (b'=', 0x20, 6),
        (b':', 0x5c, 7),
        (b'z', 0x7b, 7),
        (b'&', 0xf8, 8),
        (b'!', 0x3f8, 10),
        (0, 0x1ff8, 13),
        (b'\\', 0x7fff0, 19),
        (1, 0x007f_ffd8, 23),
        (255, 0x03ff_ffee, 26),
        (10, 0x3fff_fffc, 30),
    ];

    /// Converts bits as text into bytes, padded with ones.
    fn pack(bits: &str) -> Vec<u8> {
        let padded = format!("{bits}{}", "1".repeat((8 - bits.len() % 8) % 8));
        let bytes = padded.as_bytes().chunks(8);
        bytes
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, code, length) in SAMPLES {
            let bits = format!("{code:0width$b}", width = length as usize);
            assert_eq!(decoded(&pack(&bits)), Ok(vec![symbol]), "{symbol}");
            assert_eq!(decoded(&pack(&bits.repeat(9))), Ok(vec![symbol; 9]), "{symbol} nine times");
        }
    }

    #[test]
    fn the_strings_of_appendix_c_4_are_decoded() {
        let example = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&example), Ok(b"www.example.com".to_vec()));
        assert_eq!(decoded(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]), Ok(b"no-cache".to_vec()));
    }

    #[test]
    fn wrong_padding_and_the_end_of_string_are_rejected() {
        for (sentence, input) in [
            ("eight bits of padding", &[0x07, 0xff][..]),
            ("padding that is not of ones", &[0x00]),
            ("the end of string", &[0xff, 0xff, 0xff, 0xff]),
            ("half a long code", &[0xff, 0xff]),
        ] {
            assert!(decoded(input).is_err(), "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn any_input_terminates(input in prop::collection::vec(any::<u8>(), 0..60)) {
            // No code is shorter than 5 bits.
            if let Ok(out) = decoded(&input) {
                prop_assert!(out.len() * 5 <= input.len() * 8);
            }
        }
    }
}
