//! The vectors of OpenAI's embeddings.

use crate::model_output::ModelOutput;
use crate::rng::{Purpose, Rng};

/// Writes the objects of all vectors, with commas between them.
pub(super) fn put_vectors(output: &ModelOutput, out: &mut Vec<u8>) {
    let mut rng = output.rng.fork(Purpose::Vector);
    out.reserve(output.vectors as usize * (64 + 7 * output.dimensions as usize));
    for index in 0..output.vectors {
        let comma = if index > 0 { "," } else { "" };
        let head = format!(r#"{comma}{{"object":"embedding","index":{index},"embedding":["#);
        out.extend_from_slice(head.as_bytes());
        put_vector(&mut rng, output.dimensions, out);
        out.extend_from_slice(b"]}");
    }
}

/// Writes numbers of three decimals in (-1, 1).
fn put_vector(rng: &mut Rng, dimensions: u32, out: &mut Vec<u8>) {
    for index in 0..dimensions {
        let bits = rng.next_u64();
        out.extend_from_slice(if index > 0 { b"," } else { b"" });
        out.extend_from_slice(if bits & 1 == 0 { b"0." } else { b"-0." });
        // 1001 to 1999 without the first digit: always three decimals, and never "-0.000".
        out.extend_from_slice(
            &itoa::Buffer::new().format(1_001 + (bits >> 1) % 999).as_bytes()[1..],
        );
    }
}
