//! Any split of the bytes gives the same result.

use plimsoll_protocol::Dialect;
use proptest::prelude::*;

use crate::streams::{ANTHROPIC, CHAT, RESPONSES};
use crate::support::{EVENTS, JSON, Read, decoder, read};

const STREAMS: [(Dialect, &str); 3] = [
    (Dialect::OpenaiChat, CHAT),
    (Dialect::OpenaiResponses, RESPONSES),
    (Dialect::AnthropicMessages, ANTHROPIC),
];

const WHOLES: [(Dialect, &str); 4] = [
    (Dialect::OpenaiChat, r#"{"choices":[{"message":{"content":"é"}}],"usage":{}}"#),
    (Dialect::OpenaiResponses, r#"{"output":[],"status":"completed"}"#),
    (Dialect::OpenaiEmbeddings, r#"{"data":[1]}"#),
    (Dialect::Http, "anything"),
];

#[test]
fn two_pieces_cut_anywhere_and_single_bytes_read_as_one() {
    for (dialect, body) in STREAMS {
        let body = body.as_bytes();
        let whole = read(&mut decoder(dialect, true), (200, EVENTS), [body]);
        let bytewise = read(&mut decoder(dialect, true), (200, EVENTS), body.chunks(1));
        assert_eq!(bytewise, whole);
        let mut reused = decoder(dialect, true);
        for cut in 0..body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(read(&mut reused, (200, EVENTS), [head, tail]), whole, "cut at {cut}");
        }
    }
}

/// A response of any kind, with a few changed bytes.
fn responses() -> impl Strategy<Value = (Dialect, bool, u16, Vec<u8>)> {
    let stream = prop::sample::select(&STREAMS[..]).prop_map(|(d, body)| (d, true, body));
    let whole = prop::sample::select(&WHOLES[..]).prop_map(|(d, body)| (d, false, body));
    let status = prop_oneof![9 => Just(200), 1 => Just(500)];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (prop_oneof![3 => stream, 1 => whole], status, changes).prop_map(
        |((dialect, stream, body), status, changes)| {
            let mut body = body.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            (dialect, stream, status, body)
        },
    )
}

proptest! {
    #[test]
    fn any_split_of_any_response_reads_as_one(
        response in responses(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (dialect, stream, status, body) = response;
        let head = (status, if stream { EVENTS } else { JSON });
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]);
        let whole: Read = read(&mut decoder(dialect, stream), head, [&body[..]]);
        prop_assert_eq!(read(&mut decoder(dialect, stream), head, pieces), whole);
    }
}
