//! The chunked transfer coding (RFC 9112, section 7.1), decoded incrementally.

/// Most bytes of chunk extensions and trailers, which are skipped. More count as an error.
const MAX_OVERHEAD: usize = 16 * 1024;

/// The position in the coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the hexadecimal size, after `digits` digits.
    Size { digits: u8 },
    /// After the size: spaces or an extension, until CR.
    Extension,
    /// LF of the size line.
    SizeLf,
    /// In the data.
    Data,
    /// CR after the data.
    DataCr,
    /// LF after the data.
    DataLf,
    /// At the start of a trailer line.
    TrailerStart,
    /// In a trailer line, until LF.
    Trailer,
    /// LF of the final empty line.
    EndLf,
    /// The body is complete.
    Done,
}

/// An incremental decoder of chunked bodies.
#[derive(Clone, Debug)]
pub(super) struct ChunkedDecoder {
    state: ChunkState,
    remaining: u64,
    overhead: usize,
}

/// The chunked coding is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MalformedChunk;

impl ChunkedDecoder {
    pub(super) const fn new() -> Self {
        Self { state: ChunkState::Size { digits: 0 }, remaining: 0, overhead: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Decodes `input`. Returns how many of its bytes belong to this body.
    pub(super) fn feed(
        &mut self,
        input: &[u8],
        data: &mut impl FnMut(&[u8]),
    ) -> Result<usize, MalformedChunk> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::Done {
            if self.state == ChunkState::Data {
                at += self.take_data(&input[at..], data);
            } else {
                self.take_byte(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn take_data(&mut self, input: &[u8], data: &mut impl FnMut(&[u8])) -> usize {
        let take = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(input.len());
        data(&input[..take]);
        self.remaining -= take as u64;
        if self.remaining == 0 {
            self.state = ChunkState::DataCr;
        }
        take
    }

    fn take_byte(&mut self, byte: u8) -> Result<(), MalformedChunk> {
        self.state = match (self.state, byte) {
            (ChunkState::Size { digits }, _) => self.parse_size(digits, byte)?,
            (ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Extension, b'\n') => return Err(MalformedChunk),
            (ChunkState::Extension, _) => self.count_overhead(ChunkState::Extension)?,
            (ChunkState::SizeLf, b'\n') if self.remaining == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeLf, b'\n') => ChunkState::Data,
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::Size { digits: 0 },
            (ChunkState::TrailerStart, b'\r') => ChunkState::EndLf,
            (ChunkState::TrailerStart | ChunkState::Trailer, b'\n') => {
                if self.state == ChunkState::TrailerStart {
                    return Err(MalformedChunk);
                }
                self.count_overhead(ChunkState::TrailerStart)?
            }
            (ChunkState::TrailerStart | ChunkState::Trailer, _) => {
                self.count_overhead(ChunkState::Trailer)?
            }
            (ChunkState::EndLf, b'\n') => ChunkState::Done,
            _ => return Err(MalformedChunk),
        };
        Ok(())
    }

    fn parse_size(&mut self, digits: u8, byte: u8) -> Result<ChunkState, MalformedChunk> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            // 15 digits are an exabyte. More would overflow.
            if digits >= 15 {
                return Err(MalformedChunk);
            }
            self.remaining = (self.remaining << 4) | u64::from(digit);
            return Ok(ChunkState::Size { digits: digits + 1 });
        }
        match byte {
            _ if digits == 0 => Err(MalformedChunk),
            b'\r' => Ok(ChunkState::SizeLf),
            b';' | b' ' | b'\t' => self.count_overhead(ChunkState::Extension),
            _ => Err(MalformedChunk),
        }
    }

    fn count_overhead(&mut self, next: ChunkState) -> Result<ChunkState, MalformedChunk> {
        self.overhead += 1;
        if self.overhead > MAX_OVERHEAD { Err(MalformedChunk) } else { Ok(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(parts: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), MalformedChunk> {
        let (mut body, mut used) = (Vec::new(), 0);
        let mut decoder = ChunkedDecoder::new();
        for part in parts {
            used += decoder.feed(part, &mut |data| body.extend_from_slice(data))?;
        }
        Ok((body, used, decoder.is_done()))
    }

    #[test]
    fn bodies_are_decoded_exactly_to_their_end() {
        for (sentence, input, body, used, done) in [
            ("two chunks", &b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest"[..], &b"abcde"[..], 20, true),
            ("an extension", b"3;x=\"y\"\r\nabc\r\n0\r\n\r\n", b"abc", 19, true),
            ("a trailer", b"1\r\na\r\n0\r\nx: y\r\n\r\n", b"a", 17, true),
            (
                "upper case and leading zeros",
                b"00A\r\n0123456789\r\n0\r\n\r\n",
                b"0123456789",
                22,
                true,
            ),
            ("unfinished data", b"5\r\nab", b"ab", 5, false),
            ("no end yet", b"1\r\na\r\n0\r\n", b"a", 9, false),
        ] {
            assert_eq!(decode(&[input]), Ok((body.to_vec(), used, done)), "{sentence}");
        }
    }

    #[test]
    fn malformed_coding_is_rejected() {
        for input in [
            &b"\r\n"[..],
            b"x\r\n",
            b"3\nabc",
            b"3\r\nabcd",
            b"3\r\nabc\n",
            b"fffffffffffffffff\r\n",
            b"-1\r\n",
            b"0\r\n\n",
            b"3 \n",
        ] {
            assert_eq!(decode(&[input]), Err(MalformedChunk), "{input:?}");
        }
        let endless = [b"1;".as_slice(), &vec![b'x'; MAX_OVERHEAD + 1]].concat();
        assert_eq!(decode(&[&endless]), Err(MalformedChunk));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8),
            cuts in prop::collection::vec(0usize..400, 0..8),
        ) {
            let mut wire: Vec<u8> = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c % wire.len()).collect();
            cuts.extend([0, wire.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|w| &wire[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&parts), Ok((chunks.concat(), wire.len(), true)));
        }
    }
}
