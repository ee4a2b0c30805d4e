//! Splits the bytes of a connection into HTTP/2 frames, across the boundaries of reads.
//!
//! The payload of `DATA` frames is passed on as it arrives, so that every byte keeps the timestamp
//! of its read. Every other frame is passed on in one piece.

use super::frame::{self, FrameHeader};
use super::{ConnectionError, ErrorCode};

/// A frame or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePart<'a> {
    /// A frame other than `DATA`. Unknown kinds have no payload.
    Frame(FrameHeader, &'a [u8]),
    /// A `DATA` frame has begun; with the number of its padding bytes.
    DataStart(FrameHeader, usize),
    /// Bytes of a `DATA` frame.
    Data(&'a [u8]),
    /// A `DATA` frame is complete.
    DataEnd(FrameHeader),
}

/// The position in the input.
#[derive(Clone, Copy, Debug)]
enum ReaderState {
    /// At a frame header.
    Header,
    /// In the payload of a frame that is read in one piece.
    Payload(FrameHeader),
    /// At the first byte of padded data, which is the length of the padding.
    PadLength(FrameHeader),
    /// In data: bytes left, and padding after them.
    Data(FrameHeader, usize, usize),
    /// In padding or an unknown frame: the number of bytes left to skip, and the header of the
    /// `DATA` frame that they end, if any.
    Skip(usize, Option<FrameHeader>),
}

/// The result of one step.
enum Step<'a> {
    /// Continue with the next state.
    Continue,
    /// More bytes are needed.
    NeedMore,
    /// A part of a frame was read.
    Part(FramePart<'a>),
}

/// Splits a connection's bytes into frames.
#[derive(Debug)]
pub(super) struct FrameReader {
    state: ReaderState,
    /// The start of an unfinished header or payload.
    partial: Vec<u8>,
    /// A payload that arrived in several pieces and is complete.
    assembled: Vec<u8>,
}

impl FrameReader {
    pub(super) const fn new() -> Self {
        Self { state: ReaderState::Header, partial: Vec::new(), assembled: Vec::new() }
    }

    /// Removes the next part from `input`; `None` when more bytes are needed.
    pub(super) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<FramePart<'a>>, ConnectionError> {
        loop {
            let step = match self.state {
                ReaderState::Payload(header) => {
                    let payload = self.gather(input, header.length);
                    return Ok(payload.map(|payload| FramePart::Frame(header, payload)));
                }
                ReaderState::Header => match self.header(input) {
                    Some(header) => self.begin(header)?,
                    None => Step::NeedMore,
                },
                ReaderState::PadLength(header) => self.pad_length(header, input)?,
                ReaderState::Data(header, left, padding) => self.data(header, left, padding, input),
                ReaderState::Skip(left, end) => self.skip(left, end, input),
            };
            match step {
                Step::Continue => {}
                Step::NeedMore => return Ok(None),
                Step::Part(part) => return Ok(Some(part)),
            }
        }
    }

    fn pad_length<'i>(
        &mut self,
        header: FrameHeader,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, ConnectionError> {
        let Some((&padding, rest)) = input.split_first() else { return Ok(Step::NeedMore) };
        *input = rest;
        let padding = usize::from(padding);
        let data = (header.length - 1)
            .checked_sub(padding)
            .ok_or(ConnectionError::protocol("padding is longer than its frame"))?;
        self.state = ReaderState::Data(header, data, padding);
        Ok(Step::Part(FramePart::DataStart(header, padding + 1)))
    }

    fn data<'i>(
        &mut self,
        header: FrameHeader,
        left: usize,
        padding: usize,
        input: &mut &'i [u8],
    ) -> Step<'i> {
        if left == 0 {
            self.state = ReaderState::Skip(padding, Some(header));
            return Step::Continue;
        }
        if input.is_empty() {
            return Step::NeedMore;
        }
        let data = take(input, left);
        self.state = ReaderState::Data(header, left - data.len(), padding);
        Step::Part(FramePart::Data(data))
    }

    fn skip<'i>(
        &mut self,
        left: usize,
        end: Option<FrameHeader>,
        input: &mut &'i [u8],
    ) -> Step<'i> {
        let left = left - take(input, left).len();
        if left > 0 {
            self.state = ReaderState::Skip(left, end);
            return Step::NeedMore;
        }
        self.state = ReaderState::Header;
        end.map_or(Step::Continue, |header| Step::Part(FramePart::DataEnd(header)))
    }

    fn header(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        if self.partial.is_empty()
            && let Some((bytes, rest)) = input.split_first_chunk()
        {
            *input = rest;
            return Some(FrameHeader::parse(*bytes));
        }
        let missing = frame::HEADER_LEN - self.partial.len();
        self.partial.extend_from_slice(take(input, missing));
        let header = FrameHeader::parse(*self.partial.first_chunk()?);
        self.partial.clear();
        Some(header)
    }

    /// Sets the state after a header.
    fn begin(&mut self, header: FrameHeader) -> Result<Step<'static>, ConnectionError> {
        if header.length > frame::MAX_PAYLOAD {
            return Err(ConnectionError::new(
                ErrorCode::FRAME_SIZE_ERROR,
                "a frame is larger than allowed",
            ));
        }
        match header.kind {
            frame::DATA if !header.has(frame::PADDED) => {
                self.state = ReaderState::Data(header, header.length, 0);
                Ok(Step::Part(FramePart::DataStart(header, 0)))
            }
            frame::DATA if header.length == 0 => Err(ConnectionError::new(
                ErrorCode::FRAME_SIZE_ERROR,
                "a padded `DATA` frame has no padding length",
            )),
            frame::DATA => {
                self.state = ReaderState::PadLength(header);
                Ok(Step::Continue)
            }
            frame::HEADERS..=frame::CONTINUATION => {
                self.state = ReaderState::Payload(header);
                Ok(Step::Continue)
            }
            _ => {
                self.state = ReaderState::Skip(header.length, None);
                Ok(Step::Part(FramePart::Frame(header, &[])))
            }
        }
    }

    /// A whole payload, borrowed from the input where possible.
    fn gather<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8], length: usize) -> Option<&'a [u8]> {
        if self.partial.is_empty()
            && let Some((payload, rest)) = input.split_at_checked(length)
        {
            *input = rest;
            self.state = ReaderState::Header;
            return Some(payload);
        }
        let missing = length - self.partial.len();
        self.partial.extend_from_slice(take(input, missing));
        if self.partial.len() < length {
            return None;
        }
        self.state = ReaderState::Header;
        std::mem::swap(&mut self.partial, &mut self.assembled);
        self.partial.clear();
        Some(&self.assembled)
    }
}

/// Removes up to `max` bytes from the front.
fn take<'a>(input: &mut &'a [u8], max: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(max.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Kinds of entries that no frame has: the padding and the end of a `DATA` frame.
    const PADDING: u8 = 100;
    const END: u8 = 101;

    fn push(piece: FramePart<'_>, frames: &mut Vec<(u8, u32, Vec<u8>)>) {
        match piece {
            FramePart::Frame(header, payload) => {
                frames.push((header.kind, header.stream, payload.to_vec()));
            }
            FramePart::DataStart(header, padding) => {
                frames.push((PADDING, header.stream, vec![u8::try_from(padding % 256).unwrap()]));
                frames.push((0, header.stream, Vec::new()));
            }
            FramePart::Data(data) => frames.last_mut().unwrap().2.extend_from_slice(data),
            FramePart::DataEnd(header) => frames.push((END, header.stream, Vec::new())),
        }
    }

    /// The frames with their whole payloads. A `DATA` frame is three entries: padding, data, end.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<(u8, u32, Vec<u8>)>, ConnectionError> {
        let (mut reader, mut frames) = (FrameReader::new(), Vec::new());
        for mut input in pieces {
            while let Some(piece) = reader.next(&mut input)? {
                push(piece, &mut frames);
            }
        }
        Ok(frames)
    }

    fn wire(frames: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, flags, stream, payload) in frames {
            FrameHeader { length: payload.len(), kind: *kind, flags: *flags, stream: *stream }
                .write(&mut out);
            out.extend_from_slice(payload);
        }
        out
    }

    #[test]
    fn frames_are_split_where_they_end() {
        let wire = wire(&[
            (frame::PING, 0, 0, b"12345678"),
            (0xee, 0, 3, b"unknown"),
            (frame::DATA, 0, 1, b"abc"),
            (frame::DATA, frame::PADDED, 1, &[2, b'd', 0, 0]),
            (frame::DATA, 0, 1, b""),
        ]);
        let expected = vec![
            (frame::PING, 0, b"12345678".to_vec()),
            (0xee, 3, Vec::new()),
            (PADDING, 1, vec![0]),
            (0, 1, b"abc".to_vec()),
            (END, 1, Vec::new()),
            (PADDING, 1, vec![3]),
            (0, 1, b"d".to_vec()),
            (END, 1, Vec::new()),
            (PADDING, 1, vec![0]),
            (0, 1, Vec::new()),
            (END, 1, Vec::new()),
        ];
        assert_eq!(read([&wire[..]]), Ok(expected.clone()));
        assert_eq!(read(wire.chunks(1)), Ok(expected));
    }

    #[test]
    fn impossible_lengths_are_rejected() {
        let large = [0, 0x40, 1, frame::HEADERS, 0, 0, 0, 0, 1];
        assert_eq!(
            read([&large[..]]).map_err(|found| found.code),
            Err(ErrorCode::FRAME_SIZE_ERROR)
        );
        let unpadded = wire(&[(frame::DATA, frame::PADDED, 1, b"")]);
        assert_eq!(
            read([&unpadded[..]]).map_err(|found| found.code),
            Err(ErrorCode::FRAME_SIZE_ERROR)
        );
        let all_padding = wire(&[(frame::DATA, frame::PADDED, 1, &[3, 0, 0])]);
        assert_eq!(
            read([&all_padding[..]]).map_err(|found| found.code),
            Err(ErrorCode::PROTOCOL_ERROR)
        );
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            bytes in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 4, 8, 9, 40]), 0..200),
            cuts in prop::collection::vec(0_usize..200, 0..10),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
            prop_assert_eq!(read(parts), read([&bytes[..]]));
        }
    }
}
