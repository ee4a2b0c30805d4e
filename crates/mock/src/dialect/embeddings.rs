//! OpenAI's embeddings.

use super::put::Put as _;
use crate::answer::Answer;
use crate::draw::{Numbers, Purpose};

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut numbers = answer.draws.numbers(Purpose::Vector);
    let room = answer.vectors as usize * (64 + 7 * answer.dimensions as usize);
    let mut out = Vec::with_capacity(256 + room);
    out.put(r#"{"object":"list","data":["#);
    for index in 0..answer.vectors {
        out.put(if index > 0 { "," } else { "" });
        out.put(r#"{"object":"embedding","index":"#).number(index).put(r#","embedding":["#);
        put_vector(&mut numbers, answer.dimensions, &mut out);
        out.put("]}");
    }
    out.put(r#"],"model":"#).put(&answer.model);
    if answer.usage {
        out.put(r#","usage":{"prompt_tokens":"#).number(answer.prompt_tokens);
        out.put(r#","total_tokens":"#).number(answer.prompt_tokens).put("}");
    }
    out.put("}");
    out
}

/// Numbers of one decimal fraction of a thousand, in (-1, 1).
fn put_vector(numbers: &mut Numbers, dimensions: u32, out: &mut Vec<u8>) {
    for index in 0..dimensions {
        let bits = numbers.bits();
        out.put(if index > 0 { "," } else { "" });
        out.put(if bits & 1 == 0 { "0." } else { "-0." });
        // 1001 to 1999 without its first digit: always three decimals, and never "-0.000".
        let digits = itoa::Buffer::new().format(1_001 + (bits >> 1) % 999).to_owned();
        out.put(&digits[1..]);
    }
}
