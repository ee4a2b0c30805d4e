//! The rules of RFC 9113, one by one: bytes from the target, and the resulting events and output.

use proptest::prelude::*;

use super::*;
use crate::message::RequestHead;

mod flow_control;
mod rules;

/// A frame, encoded without the code under test.
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

/// The events of a session as text.
#[derive(Debug, Default)]
struct EventLog(Vec<String>);

fn lines(head: &DecodedHead) -> String {
    let mut text = String::new();
    head.with_response_head(|head| {
        for line in head.headers {
            text.extend([" ", line.name, "=", &String::from_utf8_lossy(line.value)]);
        }
    });
    text
}

impl EventLog {
    fn push(&mut self, key: StreamKey, event: Event<'_>) {
        let text = match event {
            Event::Head(head) => format!("{} head {}{}", key.0, head.status(), lines(head)),
            Event::Data { bytes, .. } => {
                let begins = format!("{} data ", key.0);
                let text = String::from_utf8_lossy(bytes);
                // The same data can arrive in several pieces.
                if let Some(last) = self.0.last_mut().filter(|last| last.starts_with(&begins)) {
                    last.push_str(&text);
                    return;
                }
                begins + &text
            }
            Event::End => format!("{} end", key.0),
            Event::Error(cut) => format!("{} {cut:?}", key.0),
            Event::WindowOpen => format!("{} window", key.0),
        };
        self.0.push(text);
    }
}

/// A session, its events, and a head for requests.
struct Client {
    session: Session,
    head: RequestHead,
    log: EventLog,
}

impl Client {
    /// Creates a client that has sent its preface and received nothing.
    fn new() -> Self {
        let mut client = Self {
            session: Session::new(),
            head: RequestHead::new("GET", "/", "http://a", []).unwrap(),
            log: EventLog::default(),
        };
        client.take_output();
        client
    }

    /// A client that has received these settings.
    fn with_settings(pairs: &[(u16, u32)]) -> Self {
        let mut client = Self::new();
        client.receive(&settings(pairs)).unwrap();
        assert_eq!(client.take_output(), frame(4, 1, 0, b""), "settings are acknowledged");
        client
    }

    /// A client that has sent this many requests without a body.
    fn with_requests(requests: usize) -> Self {
        let mut client = Self::with_settings(&[]);
        for _ in 0..requests {
            client.open(true).unwrap();
        }
        client.take_output();
        client
    }

    fn open(&mut self, ends: bool) -> Option<StreamKey> {
        let body_len = usize::from(!ends);
        self.session.open(NewRequest { head: &self.head, id: None, body_len })
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let Self { session, log, .. } = self;
        session.feed(bytes, &mut |key, event| log.push(key, event))
    }

    /// Code of the connection error that these bytes cause.
    fn connection_error(&mut self, bytes: &[u8]) -> Option<ErrorCode> {
        let code = self.receive(bytes).err()?.code;
        let mut goaway = [0; 8];
        goaway[4..].copy_from_slice(&code.0.to_be_bytes());
        assert!(self.take_output().ends_with(&frame(7, 0, 0, &goaway)), "a GOAWAY is sent");
        Some(code)
    }

    /// Takes the events.
    fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log.0)
    }

    /// Takes the output.
    fn take_output(&mut self) -> Vec<u8> {
        let output = self.session.output().to_vec();
        self.session.wrote(output.len());
        output
    }
}

#[test]
fn the_first_output_is_preface_settings_and_a_large_window() {
    let session = Session::new();
    let expected = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        settings(&[(2, 0), (4, 4 << 20), (6, 64 * 1024 + 3200)]),
        frame(8, 0, 0, &((64_u32 << 20) - 65_535).to_be_bytes()),
    ];
    assert_eq!(session.output(), expected.concat());
}

#[test]
fn a_response_is_reported_from_head_to_end() {
    let mut client = Client::with_settings(&[]);
    let key = client.open(true).unwrap();
    let sent = client.take_output();
    // GET, http, the authority into the table, and the path.
    assert_eq!(sent, frame(1, 5, 1, b"\x82\x86\x41\x01a\x84"));
    let received = [
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
    client.receive(&received.concat()).unwrap();
    let expected = ["0 head 200 content-type=text/plain", "0 data abcde", "0 end"];
    assert_eq!(client.take_events(), expected);
    client.session.consume(key, 5);
    client.session.close(key);
    assert_eq!(client.take_output(), b"", "nothing is sent for a completed stream");
}

#[test]
fn a_head_with_priority_and_padding_is_read() {
    let mut client = Client::with_requests(1);
    client.receive(&frame(1, 0x2d, 1, b"\x03\0\0\0\0\x10\x88\0\0\0")).unwrap();
    assert_eq!(client.take_events(), ["0 head 200", "0 end"]);
}

#[test]
fn streams_are_odd_and_limited() {
    let mut client = Client::with_settings(&[(3, 2)]);
    let keys = [client.open(true), client.open(true), client.open(true)];
    assert_eq!(keys, [Some(StreamKey(0)), Some(StreamKey(1)), None]);
    let streams = client.take_output();
    assert_eq!((streams[8], streams[9 + usize::from(streams[2]) + 8]), (1, 3));
    client.receive(&frame(1, 5, 1, OK)).unwrap();
    assert!(client.session.can_open());
    client.receive(&settings(&[(3, 0)])).unwrap();
    assert!(!client.session.can_open() && client.session.accepts_streams());
}

#[test]
fn a_long_head_is_continued() {
    let mut client = Client::with_settings(&[]);
    let value = "v".repeat(40_000);
    client.head = RequestHead::new("GET", "/", "http://a", [("long", &value[..])]).unwrap();
    client.open(true).unwrap();
    let sent = client.take_output();
    let second = 9 + 16_384;
    let third = second + 9 + 16_384;
    assert_eq!(sent[..9], frame(1, 1, 1, &vec![0; 16_384])[..9]);
    assert_eq!(sent[second..second + 9], frame(9, 0, 1, &vec![0; 16_384])[..9]);
    assert_eq!((sent[third + 3], sent[third + 4]), (9, 4));
}

#[test]
fn pings_are_acknowledged() {
    let mut client = Client::with_settings(&[]);
    client.receive(&frame(6, 0, 0, b"12345678")).unwrap();
    client.receive(&frame(6, 1, 0, b"12345678")).unwrap();
    assert_eq!(client.take_output(), frame(6, 1, 0, b"12345678"));
}

#[test]
fn a_cancelled_stream_is_reset_and_its_late_frames_are_ignored() {
    let mut client = Client::with_requests(2);
    client.session.close(StreamKey(0));
    assert_eq!(client.take_output(), frame(3, 0, 1, &[0, 0, 0, 8]));
    // The head is still decoded, because the next one refers to it.
    let late =
        [frame(1, 4, 1, b"\x88\x40\x01a\x01b"), frame(0, 1, 1, b"data"), frame(3, 0, 1, &[0; 4])];
    client.receive(&late.concat()).unwrap();
    client.receive(&frame(1, 5, 3, b"\x88\xbe")).unwrap();
    assert_eq!(client.take_events(), ["1 head 200 a=b", "1 end"]);
}

#[test]
fn a_slot_reused_in_mid_frame_gets_nothing_of_the_old_stream() {
    let mut client = Client::with_requests(1);
    client.receive(&frame(1, 4, 1, OK)).unwrap();
    let data = frame(0, 1, 1, b"old data");
    client.receive(&data[..12]).unwrap();
    client.session.close(StreamKey(0));
    assert_eq!(client.open(true), Some(StreamKey(0)));
    client.receive(&data[12..]).unwrap();
    assert_eq!(client.take_events(), ["0 head 200", "0 data old"]);
}

#[test]
fn a_goaway_fails_the_requests_that_were_not_processed() {
    let mut client = Client::with_requests(3);
    client.receive(&frame(7, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0soon")).unwrap();
    assert_eq!((client.take_events().len(), client.session.accepts_streams()), (0, false));
    client.receive(&frame(7, 0, 0, b"\0\0\0\x03\0\0\0\0")).unwrap();
    assert_eq!(client.take_events(), ["2 GoAway(ErrorCode(0))"]);
    assert_eq!((client.open(true), client.session.closed_by_target()), (None, None));
    client.receive(&[frame(1, 5, 1, OK), frame(1, 5, 3, OK)].concat()).unwrap();
    assert_eq!(client.take_events(), ["0 head 200", "0 end", "1 head 200", "1 end"]);
    assert_eq!(client.session.closed_by_target(), Some(ErrorCode::NO_ERROR));
}

#[test]
fn an_early_response_ends_the_request() {
    let mut client = Client::with_settings(&[(4, 1)]);
    let key = client.open(false).unwrap();
    client.session.send_body(key, b"body");
    client.take_output();
    client.receive(&frame(1, 5, 1, b"\x48\x03413")).unwrap();
    client.receive(&frame(3, 0, 1, &[0; 4])).unwrap();
    assert_eq!(client.take_events(), ["0 head 413", "0 end"], "a reset after the end is ignored");
    assert!(client.session.is_request_over(key));
    client.session.close(key);
    assert_eq!(client.take_output(), b"");
}

#[test]
fn the_rest_of_a_request_is_sent_or_reset_after_its_response() {
    for finish in [true, false] {
        let mut client = Client::with_settings(&[(4, 1)]);
        let key = client.open(false).unwrap();
        client.session.send_body(key, b"body");
        client.receive(&frame(1, 5, 1, OK)).unwrap();
        client.take_output();
        if finish {
            client.receive(&frame(8, 0, 1, &[0, 0, 0, 9])).unwrap();
            assert_eq!(client.session.send_body(key, b"ody"), 3);
            client.session.close(key);
            assert_eq!(client.take_output(), frame(0, 1, 1, b"ody"));
        } else {
            client.session.close(key);
            assert_eq!(client.take_output(), frame(3, 0, 1, &[0, 0, 0, 8]));
        }
    }
}

#[test]
fn bodies_have_the_announced_length() {
    for (sentence, is_head_request, wire, expected) in [
        ("all of it", false, vec![frame(0, 1, 1, b"abc")], vec!["0 data abc", "0 end"]),
        ("too short", false, vec![frame(0, 1, 1, b"ab")], vec!["0 data ab", "0 BodyTruncated(1)"]),
        (
            "too long",
            false,
            vec![frame(0, 0, 1, b"abcd"), frame(0, 1, 1, b"e")],
            vec!["0 data abc", "0 Malformed(\"the body is longer than announced\")"],
        ),
        ("a response to HEAD", true, vec![frame(0, 1, 1, b"")], vec!["0 data ", "0 end"]),
        (
            "a body to HEAD",
            true,
            vec![frame(0, 1, 1, b"a")],
            vec!["0 Malformed(\"the body is longer than announced\")"],
        ),
    ] {
        let mut client = Client::with_settings(&[]);
        let method = if is_head_request { "HEAD" } else { "GET" };
        client.head = RequestHead::new(method, "/", "http://a", []).unwrap();
        client.open(true).unwrap();
        client.receive(&frame(1, 4, 1, b"\x88\x5c\x013")).unwrap();
        client.receive(&wire.concat()).unwrap();
        let events: Vec<_> =
            client.take_events().into_iter().filter(|text| text != "0 data ").collect();
        let expected: Vec<_> = expected.into_iter().filter(|text| *text != "0 data ").collect();
        assert_eq!(events[1..], expected, "{sentence}");
    }
}

/// Bytes with every kind of frame.
fn all_frames() -> Vec<u8> {
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
        let wire = all_frames();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % wire.len()).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let run = |cuts: &[usize]| {
            let mut client = Client::new();
            for _ in 0..4 {
                client.open(true).unwrap();
            }
            client.take_output();
            for cut in cuts.windows(2) {
                client.receive(&wire[cut[0]..cut[1]]).unwrap();
            }
            (client.take_events(), client.take_output())
        };
        let whole = run(&[0, wire.len()]);
        prop_assert_eq!(whole.0.len(), 10, "{:?}", &whole.0);
        prop_assert_eq!(run(&cuts), whole);
    }
}
