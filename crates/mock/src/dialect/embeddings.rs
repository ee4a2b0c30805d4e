//! OpenAI's embeddings: full responses only.

use super::WriteExt as _;
use crate::model_output::ModelOutput;
use crate::rng::{Purpose, Rng};

pub(super) fn full_response(output: &ModelOutput) -> Vec<u8> {
    let mut rng = output.rng.fork(Purpose::Vector);
    let length = output.vectors as usize * (64 + 7 * output.dimensions as usize);
    let mut out = Vec::with_capacity(256 + length);
    out.put(r#"{"object":"list","data":["#);
    for index in 0..output.vectors {
        out.put(if index > 0 { "," } else { "" });
        out.put(r#"{"object":"embedding","index":"#).number(index).put(r#","embedding":["#);
        put_vector(&mut rng, output.dimensions, &mut out);
        out.put("]}");
    }
    out.put(r#"],"model":"#).put(&output.model);
    if output.usage {
        out.put(r#","usage":{"prompt_tokens":"#).number(output.prompt_tokens);
        out.put(r#","total_tokens":"#).number(output.prompt_tokens).put("}");
    }
    out.put("}");
    out
}

/// Writes numbers of three decimals in (-1, 1).
fn put_vector(rng: &mut Rng, dimensions: u32, out: &mut Vec<u8>) {
    for index in 0..dimensions {
        let bits = rng.next_u64();
        out.put(if index > 0 { "," } else { "" });
        out.put(if bits & 1 == 0 { "0." } else { "-0." });
        // 1001 to 1999 without the first digit: always three decimals, and never "-0.000".
        let digits = itoa::Buffer::new().format(1_001 + (bits >> 1) % 999).to_owned();
        out.put(&digits[1..]);
    }
}
