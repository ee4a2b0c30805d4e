//! Bytes into frames, however they are split.
//!
//! Data is passed on as it arrives, so that its time stamps are those of its reads; every other frame in one piece.

use super::error::{Code, Violation};
use super::frame::{self, Head};

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A frame other than `DATA`; of a kind that nobody knows, without its payload.
    Frame(Head, &'a [u8]),
    /// A `DATA` frame has begun, of which so many bytes are padding.
    DataBegins(Head, usize),
    /// Bytes of it.
    Data(&'a [u8]),
    /// It is complete.
    DataEnds(Head),
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the head of a frame.
    Head,
    /// At the payload of a frame that is read in one piece.
    Payload(Head),
    /// At the first byte of padded data, which says how much padding there is.
    PadLength(Head),
    /// In data, with so much left, and padding behind it.
    Data(Head, usize, usize),
    /// Before so many bytes that nobody wants, and after data, its end.
    Skip(usize, Option<Head>),
}

/// What one look at the input came to.
enum Step<'a> {
    /// The next state has something to do.
    On,
    /// More bytes are needed.
    Wait,
    Found(Piece<'a>),
}

/// Cuts a connection's bytes into frames.
#[derive(Debug)]
pub(super) struct Reader {
    state: State,
    /// The beginning of a head or payload whose end has not come yet.
    partial: Vec<u8>,
    /// A payload that came in several pieces.
    whole: Vec<u8>,
}

impl Reader {
    pub(super) const fn new() -> Self {
        Self { state: State::Head, partial: Vec::new(), whole: Vec::new() }
    }

    /// The next piece of `input`, which is shortened by it; `None` when more bytes are needed.
    pub(super) fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Piece<'a>>, Violation> {
        loop {
            let step = match self.state {
                State::Payload(head) => {
                    let payload = self.gather(input, head.length);
                    return Ok(payload.map(|payload| Piece::Frame(head, payload)));
                }
                State::Head => match self.head(input) {
                    Some(head) => self.begin(head)?,
                    None => Step::Wait,
                },
                State::PadLength(head) => self.pad_length(head, input)?,
                State::Data(head, left, padding) => self.data(head, (left, padding), input),
                State::Skip(left, end) => self.skip(left, end, input),
            };
            match step {
                Step::On => {}
                Step::Wait => return Ok(None),
                Step::Found(piece) => return Ok(Some(piece)),
            }
        }
    }

    fn pad_length<'i>(&mut self, head: Head, input: &mut &'i [u8]) -> Result<Step<'i>, Violation> {
        let Some((&padding, rest)) = input.split_first() else { return Ok(Step::Wait) };
        *input = rest;
        let padding = usize::from(padding);
        let data = (head.length - 1)
            .checked_sub(padding)
            .ok_or(Violation::protocol("padding is longer than its frame"))?;
        self.state = State::Data(head, data, padding);
        Ok(Step::Found(Piece::DataBegins(head, padding + 1)))
    }

    fn data<'i>(
        &mut self,
        head: Head,
        (left, padding): (usize, usize),
        input: &mut &'i [u8],
    ) -> Step<'i> {
        if left == 0 {
            self.state = State::Skip(padding, Some(head));
            return Step::On;
        }
        if input.is_empty() {
            return Step::Wait;
        }
        let data = take(input, left);
        self.state = State::Data(head, left - data.len(), padding);
        Step::Found(Piece::Data(data))
    }

    fn skip<'i>(&mut self, left: usize, end: Option<Head>, input: &mut &'i [u8]) -> Step<'i> {
        let left = left - take(input, left).len();
        if left > 0 {
            self.state = State::Skip(left, end);
            return Step::Wait;
        }
        self.state = State::Head;
        end.map_or(Step::On, |head| Step::Found(Piece::DataEnds(head)))
    }

    fn head(&mut self, input: &mut &[u8]) -> Option<Head> {
        if self.partial.is_empty()
            && let Some((bytes, rest)) = input.split_first_chunk()
        {
            *input = rest;
            return Some(Head::parse(*bytes));
        }
        let missing = frame::HEAD - self.partial.len();
        self.partial.extend_from_slice(take(input, missing));
        let head = Head::parse(*self.partial.first_chunk()?);
        self.partial.clear();
        Some(head)
    }

    /// What comes after a head.
    fn begin(&mut self, head: Head) -> Result<Step<'static>, Violation> {
        if head.length > frame::MAX_PAYLOAD {
            return Err(Violation::new(Code::FRAME_SIZE_ERROR, "a frame is larger than allowed"));
        }
        match head.kind {
            frame::DATA if !head.has(frame::PADDED) => {
                self.state = State::Data(head, head.length, 0);
                Ok(Step::Found(Piece::DataBegins(head, 0)))
            }
            frame::DATA if head.length == 0 => {
                Err(Violation::new(Code::FRAME_SIZE_ERROR, "padded data has no length of padding"))
            }
            frame::DATA => {
                self.state = State::PadLength(head);
                Ok(Step::On)
            }
            frame::HEADERS..=frame::CONTINUATION => {
                self.state = State::Payload(head);
                Ok(Step::On)
            }
            _ => {
                self.state = State::Skip(head.length, None);
                Ok(Step::Found(Piece::Frame(head, &[])))
            }
        }
    }

    /// A whole payload: where it lies in the input, without a copy.
    fn gather<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8], length: usize) -> Option<&'a [u8]> {
        if self.partial.is_empty()
            && let Some((payload, rest)) = input.split_at_checked(length)
        {
            *input = rest;
            self.state = State::Head;
            return Some(payload);
        }
        let missing = length - self.partial.len();
        self.partial.extend_from_slice(take(input, missing));
        if self.partial.len() < length {
            return None;
        }
        self.state = State::Head;
        std::mem::swap(&mut self.partial, &mut self.whole);
        self.partial.clear();
        Some(&self.whole)
    }
}

/// Takes up to `most` bytes off the front.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(piece: Piece<'_>, frames: &mut Vec<(u8, u32, Vec<u8>)>) {
        match piece {
            Piece::Frame(head, payload) => frames.push((head.kind, head.stream, payload.to_vec())),
            Piece::DataBegins(head, padding) => {
                frames.push((100, head.stream, vec![u8::try_from(padding % 256).unwrap()]));
                frames.push((0, head.stream, Vec::new()));
            }
            Piece::Data(data) => frames.last_mut().unwrap().2.extend_from_slice(data),
            Piece::DataEnds(head) => frames.push((101, head.stream, Vec::new())),
        }
    }

    /// Frames with their whole payloads; the padding of data in place of its beginning.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<(u8, u32, Vec<u8>)>, Violation> {
        let (mut reader, mut frames) = (Reader::new(), Vec::new());
        for mut input in pieces {
            while let Some(piece) = reader.next(&mut input)? {
                note(piece, &mut frames);
            }
        }
        Ok(frames)
    }

    fn wire(frames: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, flags, stream, payload) in frames {
            Head { length: payload.len(), kind: *kind, flags: *flags, stream: *stream }
                .write(&mut out);
            out.extend_from_slice(payload);
        }
        out
    }

    #[test]
    fn frames_are_cut_where_they_end() {
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
            (100, 1, vec![0]),
            (0, 1, b"abc".to_vec()),
            (101, 1, Vec::new()),
            (100, 1, vec![3]),
            (0, 1, b"d".to_vec()),
            (101, 1, Vec::new()),
            (100, 1, vec![0]),
            (0, 1, Vec::new()),
            (101, 1, Vec::new()),
        ];
        assert_eq!(read([&wire[..]]), Ok(expected.clone()));
        assert_eq!(read(wire.chunks(1)), Ok(expected));
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let large = [0, 0x40, 1, frame::HEADERS, 0, 0, 0, 0, 1];
        assert_eq!(read([&large[..]]).map_err(|found| found.code), Err(Code::FRAME_SIZE_ERROR));
        let unpadded = wire(&[(frame::DATA, frame::PADDED, 1, b"")]);
        assert_eq!(read([&unpadded[..]]).map_err(|found| found.code), Err(Code::FRAME_SIZE_ERROR));
        let all_padding = wire(&[(frame::DATA, frame::PADDED, 1, &[3, 0, 0])]);
        assert_eq!(read([&all_padding[..]]).map_err(|found| found.code), Err(Code::PROTOCOL_ERROR));
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
