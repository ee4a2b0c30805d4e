//! The rules of RFC 9113, one by one: what the target says in bytes, and what becomes of it.

use proptest::prelude::*;

use super::*;
use crate::http1::RequestHead;

mod rules;

/// A frame, written down here without the help of the code under test.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let pairs = pairs.iter().flat_map(|(identifier, value)| {
        [&identifier.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()
    });
    frame(4, 0, 0, &pairs.collect::<Vec<_>>())
}

/// `:status: 200` is entry 8 of the static table.
const OK: &[u8] = &[0x88];

/// What a session tells, in words.
#[derive(Debug, Default)]
struct Told(Vec<String>);

fn lines(head: &Head) -> String {
    let mut text = String::new();
    head.show(|head| {
        for line in head.headers {
            text.extend([" ", line.name, "=", &String::from_utf8_lossy(line.value)]);
        }
    });
    text
}

impl Told {
    fn note(&mut self, key: Key, event: Event<'_>) {
        let text = match event {
            Event::Head(head) => format!("{} head {}{}", key.0, head.status(), lines(head)),
            Event::Data { bytes, .. } => {
                let begins = format!("{} data ", key.0);
                let text = String::from_utf8_lossy(bytes);
                // Pieces of the same data, as the split of the bytes has it.
                if let Some(last) = self.0.last_mut().filter(|last| last.starts_with(&begins)) {
                    last.push_str(&text);
                    return;
                }
                begins + &text
            }
            Event::End => format!("{} end", key.0),
            Event::Cut(cut) => format!("{} {cut:?}", key.0),
            Event::Room => format!("{} room", key.0),
        };
        self.0.push(text);
    }
}

/// A session whose output the target has read.
struct Client {
    session: Session,
    head: RequestHead,
    told: Told,
}

impl Client {
    /// One that has said its preface, and heard nothing.
    fn new() -> Self {
        let mut client = Self {
            session: Session::new(),
            head: RequestHead::new("POST", "/", "http://a", []).unwrap(),
            told: Told::default(),
        };
        client.said();
        client
    }

    /// One that has heard these settings.
    fn greeted(pairs: &[(u16, u32)]) -> Self {
        let mut client = Self::new();
        client.hear(&settings(pairs)).unwrap();
        assert_eq!(client.said(), frame(4, 1, 0, b""), "settings are acknowledged");
        client
    }

    /// One with so many requests without a body under way.
    fn asking(requests: usize) -> Self {
        let mut client = Self::greeted(&[]);
        for _ in 0..requests {
            client.open(true).unwrap();
        }
        client.said();
        client
    }

    fn open(&mut self, ends: bool) -> Option<Key> {
        let (fields, own) = (self.head.fields(), Own::default());
        self.session.open(Ask { fields, own, to_head: false, ends })
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let Self { session, told, .. } = self;
        session.feed(bytes, &mut |key, event| told.note(key, event))
    }

    /// The code of the violation that these bytes are.
    fn refuses(&mut self, bytes: &[u8]) -> Option<Code> {
        let code = self.hear(bytes).err()?.code;
        let mut farewell = [0; 8];
        farewell[4..].copy_from_slice(&code.0.to_be_bytes());
        assert!(self.said().ends_with(&frame(7, 0, 0, &farewell)), "the target is told");
        Some(code)
    }

    /// Takes what was told out.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told.0)
    }

    /// Takes the output out.
    fn said(&mut self) -> Vec<u8> {
        let output = self.session.output().to_vec();
        self.session.wrote(output.len());
        output
    }
}

#[test]
fn we_begin_with_the_preface_our_settings_and_a_wide_window() {
    let session = Session::new();
    let expected = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        settings(&[(2, 0), (4, 4 << 20), (6, 64 * 1024 + 3200)]),
        frame(8, 0, 0, &((64_u32 << 20) - 65_535).to_be_bytes()),
    ];
    assert_eq!(session.output(), expected.concat());
}

#[test]
fn a_response_is_told_from_head_to_end() {
    let mut client = Client::greeted(&[]);
    let key = client.open(true).unwrap();
    let said = client.said();
    // POST, http, the authority into the table, and the path.
    assert_eq!(said, frame(1, 5, 1, b"\x83\x86\x41\x01a\x84"));
    let heard = [
        frame(1, 4, 1, b"\x48\x03103\x40\x04link\x01x"),
        frame(1, 0, 1, b"\x88\x5f\x0a"),
        frame(9, 0, 1, b""),
        frame(9, 4, 1, b"text/plain"),
        frame(0, 8, 1, b"\x02abc\0\0"),
        frame(0xbe, 0xff, 1, b"an extension"),
        frame(2, 0, 1, b"\0\0\0\0\x10"),
        frame(0, 0, 1, b"de"),
        frame(1, 5, 1, b"\x40\x01t\x01u"),
    ];
    client.hear(&heard.concat()).unwrap();
    let expected = ["0 head 200 content-type=text/plain", "0 data abcde", "0 end"];
    assert_eq!(client.told(), expected);
    client.session.consume(key, 5);
    client.session.close(key);
    assert_eq!(client.said(), b"", "nothing is to be said about a stream that is over");
}

#[test]
fn a_head_with_priority_and_padding_is_read() {
    let mut client = Client::asking(1);
    client.hear(&frame(1, 0x2d, 1, b"\x03\0\0\0\0\x10\x88\0\0\0")).unwrap();
    assert_eq!(client.told(), ["0 head 200", "0 end"]);
}

#[test]
fn streams_are_odd_and_wait_for_their_turn() {
    let mut client = Client::greeted(&[(3, 2)]);
    let keys = [client.open(true), client.open(true), client.open(true)];
    assert_eq!(keys, [Some(Key(0)), Some(Key(1)), None]);
    let streams = client.said();
    assert_eq!((streams[8], streams[9 + usize::from(streams[2]) + 8]), (1, 3));
    client.hear(&frame(1, 5, 1, OK)).unwrap();
    assert!(client.session.has_place());
    client.hear(&settings(&[(3, 0)])).unwrap();
    assert!(!client.session.has_place() && client.session.accepts_more());
}

#[test]
fn a_body_goes_out_as_the_windows_let_it() {
    let mut client = Client::greeted(&[(4, 10)]);
    let key = client.open(false).unwrap();
    client.said();
    assert_eq!(client.session.send(key, b"0123456789abc"), 10);
    assert_eq!(client.said(), frame(0, 0, 1, b"0123456789"));
    assert_eq!(client.session.send(key, b"abc"), 0);
    // The target lowers its window to 2 after 10 bytes: minus 8.
    client.hear(&settings(&[(4, 2)])).unwrap();
    client.hear(&frame(8, 0, 1, &8_u32.to_be_bytes())).unwrap();
    assert_eq!((client.session.send(key, b"abc"), client.told()), (0, vec!["0 room".into(); 2]));
    client.hear(&frame(8, 0, 1, &1_u32.to_be_bytes())).unwrap();
    client.said();
    assert_eq!(client.session.send(key, b"abc"), 1);
    client.hear(&settings(&[(4, 100)])).unwrap();
    client.said();
    assert_eq!((client.session.send(key, b"bc"), client.session.is_sent(key)), (2, true));
    assert_eq!(client.said(), frame(0, 1, 1, b"bc"));
    assert_eq!(client.told(), ["0 room"; 2]);
}

#[test]
fn the_connections_window_holds_all_streams() {
    let mut client = Client::greeted(&[(4, 1 << 20), (5, 20_000)]);
    let (a, b) = (client.open(false).unwrap(), client.open(false).unwrap());
    client.said();
    let body = vec![b'x'; 60_000];
    assert_eq!((client.session.send(a, &body), client.session.send(b, &body)), (60_000, 5_535));
    let lengths: Vec<_> = client.said().split_at(9).0[..3].to_vec();
    assert_eq!(lengths, [0, 0x4e, 0x20], "frames are as large as the target allows");
    client.hear(&frame(8, 0, 0, &7_u32.to_be_bytes())).unwrap();
    assert_eq!(client.told(), ["1 room"], "the first has nothing left to send");
    assert_eq!(client.session.send(b, &body[5_535..]), 7);
}

#[test]
fn a_long_head_is_continued() {
    let mut client = Client::greeted(&[]);
    let value = "v".repeat(40_000);
    client.head = RequestHead::new("GET", "/", "http://a", [("long", &value[..])]).unwrap();
    client.open(true).unwrap();
    let said = client.said();
    let second = 9 + 16_384;
    let third = second + 9 + 16_384;
    assert_eq!(said[..9], frame(1, 1, 1, &vec![0; 16_384])[..9]);
    assert_eq!(said[second..second + 9], frame(9, 0, 1, &vec![0; 16_384])[..9]);
    assert_eq!((said[third + 3], said[third + 4]), (9, 4));
}

#[test]
fn room_is_told_when_half_of_our_window_was_read() {
    let mut client = Client::asking(1);
    let key = Key(0);
    client.hear(&frame(1, 4, 1, OK)).unwrap();
    let data = frame(0, 0, 1, &vec![b'x'; 16_384]);
    for _ in 0..127 {
        client.hear(&data).unwrap();
        client.session.consume(key, 16_384);
    }
    assert_eq!(client.said(), b"");
    client.hear(&data).unwrap();
    client.session.consume(key, 16_384);
    assert_eq!(client.said(), frame(8, 0, 1, &(2_u32 << 20).to_be_bytes()));
}

#[test]
fn what_nobody_reads_fills_the_window_and_is_given_back_at_the_end() {
    let mut client = Client::asking(17);
    let mut tight = 0;
    for stream in 0..16_u32 {
        client.hear(&frame(1, 4, stream * 2 + 1, OK)).unwrap();
        // All of a stream's window; that of the connection has room for 16 of them.
        for _ in 0..256 {
            let Client { session, .. } = &mut client;
            let data = frame(0, 0, stream * 2 + 1, &vec![b'x'; 16_384]);
            let fed = session.feed(&data, &mut |_, event| {
                tight += u32::from(matches!(event, Event::Data { tight: true, .. }));
            });
            fed.unwrap();
        }
    }
    assert_eq!(tight, 16, "once for each stream, when its window is full");
    client.hear(&frame(1, 4, 33, OK)).unwrap();
    for key in 0..8 {
        client.session.close(Key(key));
    }
    let mut expected: Vec<_> = (0..8).map(|key| frame(3, 0, key * 2 + 1, &[0, 0, 0, 8])).collect();
    expected.insert(7, frame(8, 0, 0, &(32_u32 << 20).to_be_bytes()));
    assert_eq!(client.said(), expected.concat());
    client.hear(&frame(0, 0, 33, b"x")).unwrap();
}

#[test]
fn pings_are_answered() {
    let mut client = Client::greeted(&[]);
    client.hear(&frame(6, 0, 0, b"12345678")).unwrap();
    client.hear(&frame(6, 1, 0, b"12345678")).unwrap();
    assert_eq!(client.said(), frame(6, 1, 0, b"12345678"));
}

#[test]
fn a_stream_that_is_given_up_is_reset_and_what_still_comes_is_ignored() {
    let mut client = Client::asking(2);
    client.session.close(Key(0));
    assert_eq!(client.said(), frame(3, 0, 1, &[0, 0, 0, 8]));
    // The head is decoded all the same: the next one refers to it.
    let late =
        [frame(1, 4, 1, b"\x88\x40\x01a\x01b"), frame(0, 1, 1, b"data"), frame(3, 0, 1, &[0; 4])];
    client.hear(&late.concat()).unwrap();
    client.hear(&frame(1, 5, 3, b"\x88\xbe")).unwrap();
    assert_eq!(client.told(), ["1 head 200 a=b", "1 end"]);
}

#[test]
fn a_place_that_is_used_again_in_mid_frame_gets_nothing_of_the_old_stream() {
    let mut client = Client::asking(1);
    client.hear(&frame(1, 4, 1, OK)).unwrap();
    let data = frame(0, 1, 1, b"old data");
    client.hear(&data[..12]).unwrap();
    client.session.close(Key(0));
    assert_eq!(client.open(true), Some(Key(0)));
    client.hear(&data[12..]).unwrap();
    assert_eq!(client.told(), ["0 head 200", "0 data old"]);
}

#[test]
fn a_farewell_tells_which_requests_were_not_processed() {
    let mut client = Client::asking(3);
    client.hear(&frame(7, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0soon")).unwrap();
    assert_eq!((client.told().len(), client.session.accepts_more()), (0, false));
    client.hear(&frame(7, 0, 0, b"\0\0\0\x03\0\0\0\0")).unwrap();
    assert_eq!(client.told(), ["2 GoAway(Code(0))"]);
    assert_eq!((client.open(true), client.session.is_over()), (None, None));
    client.hear(&[frame(1, 5, 1, OK), frame(1, 5, 3, OK)].concat()).unwrap();
    assert_eq!(client.told(), ["0 head 200", "0 end", "1 head 200", "1 end"]);
    assert_eq!(client.session.is_over(), Some(Code::NO_ERROR));
}

#[test]
fn an_answer_before_the_request_is_out_ends_it() {
    let mut client = Client::greeted(&[(4, 1)]);
    let key = client.open(false).unwrap();
    client.session.send(key, b"body");
    client.said();
    client.hear(&frame(1, 5, 1, b"\x48\x03413")).unwrap();
    client.hear(&frame(3, 0, 1, &[0; 4])).unwrap();
    assert_eq!(client.told(), ["0 head 413", "0 end"], "a reset after the end is none");
    assert!(client.session.is_sent(key));
    client.session.close(key);
    assert_eq!(client.said(), b"");
}

#[test]
fn what_is_left_of_a_request_is_sent_or_withdrawn_after_its_answer() {
    for finish in [true, false] {
        let mut client = Client::greeted(&[(4, 1)]);
        let key = client.open(false).unwrap();
        client.session.send(key, b"body");
        client.hear(&frame(1, 5, 1, OK)).unwrap();
        client.said();
        if finish {
            client.hear(&frame(8, 0, 1, &[0, 0, 0, 9])).unwrap();
            assert_eq!(client.session.send(key, b"ody"), 3);
            client.session.close(key);
            assert_eq!(client.said(), frame(0, 1, 1, b"ody"));
        } else {
            client.session.close(key);
            assert_eq!(client.said(), frame(3, 0, 1, &[0, 0, 0, 8]));
        }
    }
}

#[test]
fn bodies_have_the_announced_length() {
    for (sentence, to_head, wire, told) in [
        ("all of it", false, vec![frame(0, 1, 1, b"abc")], vec!["0 data abc", "0 end"]),
        ("too short", false, vec![frame(0, 1, 1, b"ab")], vec!["0 data ab", "0 Short(1)"]),
        (
            "too long",
            false,
            vec![frame(0, 0, 1, b"abcd"), frame(0, 1, 1, b"e")],
            vec!["0 data abc", "0 Malformed(\"the body is longer than announced\")"],
        ),
        ("an answer to HEAD", true, vec![frame(0, 1, 1, b"")], vec!["0 data ", "0 end"]),
        (
            "a body to HEAD",
            true,
            vec![frame(0, 1, 1, b"a")],
            vec!["0 Malformed(\"the body is longer than announced\")"],
        ),
    ] {
        let mut client = Client::greeted(&[]);
        let (fields, own) = (client.head.fields(), Own::default());
        client.session.open(Ask { fields, own, to_head, ends: true }).unwrap();
        client.hear(&frame(1, 4, 1, b"\x88\x5c\x013")).unwrap();
        client.hear(&wire.concat()).unwrap();
        let heard: Vec<_> = client.told().into_iter().filter(|text| text != "0 data ").collect();
        let told: Vec<_> = told.into_iter().filter(|text| *text != "0 data ").collect();
        assert_eq!(heard[1..], told, "{sentence}");
    }
}

/// A conversation with everything in it.
fn conversation() -> Vec<u8> {
    [
        settings(&[(3, 50), (0x99, 1)]),
        frame(4, 1, 0, b""),
        frame(1, 4, 1, b"\x48\x03103"),
        frame(1, 0, 3, b"\x88\x5f\x0atext"),
        frame(9, 4, 3, b"/plain"),
        frame(1, 4, 1, b"\x88\x40\x01a\x01b"),
        frame(0, 8, 1, b"\x04hello\0\0\0\0"),
        frame(6, 0, 0, b"12345678"),
        frame(0, 0, 3, b"from three"),
        frame(0, 1, 1, b" again"),
        frame(0xaa, 0, 0, b"unknown"),
        frame(8, 0, 0, &[0, 0, 1, 0]),
        frame(1, 5, 3, b"\x40\x01t\x01u"),
        frame(1, 5, 5, b"\x8d\xbf"),
        frame(7, 0, 0, b"\0\0\0\x07\0\0\0\0bye"),
        frame(3, 0, 7, &[0, 0, 0, 7]),
    ]
    .concat()
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(cuts in prop::collection::vec(0_usize..400, 0..30)) {
        let wire = conversation();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % wire.len()).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let hear = |cuts: &[usize]| {
            let mut client = Client::new();
            for _ in 0..4 {
                client.open(true).unwrap();
            }
            client.said();
            for cut in cuts.windows(2) {
                client.hear(&wire[cut[0]..cut[1]]).unwrap();
            }
            (client.told(), client.said())
        };
        let whole = hear(&[0, wire.len()]);
        prop_assert_eq!(whole.0.len(), 10, "{:?}", &whole.0);
        prop_assert_eq!(hear(&cuts), whole);
    }
}
