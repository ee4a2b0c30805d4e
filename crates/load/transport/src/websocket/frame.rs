//! One frame: its opcode, its header and its mask (5.2, 5.3).

/// Maximum payload whose length fits in the second byte.
const SHORT: usize = 125;
/// The key of a mask.
const KEY_BYTES: usize = 4;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A text, or its first fragment.
    Text,
    /// Bytes, or their first fragment.
    Binary,
    /// The end of the connection.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    /// The opcode in the lower four bits of a frame's first byte; `None` for a reserved one.
    pub const fn from_first_byte(first: u8) -> Option<Self> {
        match first & 0x0f {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xa => Some(Self::Pong),
            _ => None,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }

    /// Whether frames of this kind control the connection instead of transporting a message.
    pub const fn is_control(self) -> bool {
        self.bits() >= 0x8
    }
}

/// Appends the header of a client's frame, whose payload of `length` bytes is masked with `key`.
pub fn push_header(out: &mut Vec<u8>, opcode: Opcode, fin: bool, length: usize, key: [u8; 4]) {
    const MASKED: u8 = 0x80;
    out.push(opcode.bits() | if fin { 0x80 } else { 0 });
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if length <= SHORT => out.push(MASKED | short),
        (_, Ok(medium)) => {
            out.push(MASKED | 0x7e);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(MASKED | 0x7f);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&key);
}

/// The bytes of a client's frame with a payload of `length` bytes.
pub const fn client_frame_len(length: usize) -> usize {
    let of_length = match length {
        0..=SHORT => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    2 + of_length + KEY_BYTES + length
}

/// Masks a payload, or removes its mask: byte `i` is combined with byte `i mod 4` of the key.
pub fn mask(key: [u8; 4], payload: &mut [u8]) {
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masked_text_of_the_rfc_is_written_as_there() {
        // Section 5.7: a single-frame masked text message, "Hello".
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let (mut out, mut payload) = (Vec::new(), b"Hello".to_vec());
        push_header(&mut out, Opcode::Text, true, payload.len(), key);
        mask(key, &mut payload);
        out.extend(payload);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }

    #[test]
    fn lengths_take_the_fewest_bytes() {
        for (length, expected) in [
            (0, vec![0x82, 0x80]),
            (125, vec![0x82, 0xfd]),
            (126, vec![0x82, 0xfe, 0x00, 0x7e]),
            (0xffff, vec![0x82, 0xfe, 0xff, 0xff]),
            (0x1_0000, vec![0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            push_header(&mut out, Opcode::Binary, true, length, [1, 2, 3, 4]);
            assert_eq!(out.split_off(out.len() - 4), [1, 2, 3, 4]);
            assert_eq!(out, expected, "{length}");
            assert_eq!(client_frame_len(length), expected.len() + 4 + length);
        }
    }

    #[test]
    fn a_mask_goes_on_from_byte_to_byte_and_is_its_own_inverse() {
        let key = [1, 2, 4, 8];
        for length in 0..40 {
            let plain: Vec<u8> = (0..length).collect();
            let mut masked = plain.clone();
            mask(key, &mut masked);
            let slow: Vec<u8> =
                plain.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            assert_eq!(masked, slow);
            mask(key, &mut masked);
            assert_eq!(masked, plain);
        }
    }
}
