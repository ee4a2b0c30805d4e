//! Violations of the protocol by the target.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn broken_rules_end_the_connection_with_the_code_of_the_rfc() {
    let protocol = Some(ErrorCode::PROTOCOL_ERROR);
    let size = Some(ErrorCode::FRAME_SIZE_ERROR);
    let flow = Some(ErrorCode::FLOW_CONTROL_ERROR);
    let number = |number: u32| number.to_be_bytes();
    for (sentence, wire, code) in [
        ("6.5.3: an acknowledgement with a payload", frame(4, 1, 0, &[0; 6]), size),
        ("6.5: settings of a stream", frame(4, 0, 1, b""), protocol),
        ("6.5: settings of half a pair", frame(4, 0, 0, &[0; 5]), size),
        ("6.5.2: a server allows pushes", settings(&[(2, 1)]), protocol),
        ("6.5.2: a window that is too large", settings(&[(4, 1 << 31)]), flow),
        ("6.5.2: frames that are too small", settings(&[(5, 16_383)]), protocol),
        ("6.5.2: frames that are too large", settings(&[(5, 1 << 24)]), protocol),
        ("4.2: a frame beyond our limit", frame(0, 0, 1, &vec![0; 16_385]), size),
        ("5.1.1: an even stream", frame(1, 5, 2, OK), protocol),
        ("5.1.1: a stream that was never opened", frame(1, 5, 9, OK), protocol),
        ("6.1: data of no stream", frame(0, 0, 0, b"a"), protocol),
        ("6.1: data of a stream that was never opened", frame(0, 0, 9, b"a"), protocol),
        ("6.1: too much padding", frame(0, 8, 1, b"\x03aa"), protocol),
        ("6.1: padding without its length", frame(0, 8, 1, b""), size),
        ("6.2: a head of no stream", frame(1, 5, 0, OK), protocol),
        ("6.2: too much padding", frame(1, 0xd, 1, b"\x02\x88"), protocol),
        ("6.2: half a priority", frame(1, 0x25, 1, b"\0\0"), size),
        ("6.3: a priority of no stream", frame(2, 0, 0, &[0; 5]), protocol),
        ("6.3: half a priority", frame(2, 0, 1, &[0; 4]), size),
        ("6.4: a reset of no stream", frame(3, 0, 0, &[0; 4]), protocol),
        ("6.4: a reset of a stream that was never opened", frame(3, 0, 9, &[0; 4]), protocol),
        ("6.4: half a reset", frame(3, 0, 1, &[0; 3]), size),
        ("6.6: a push", frame(5, 4, 1, b"\0\0\0\x02\x88"), protocol),
        ("6.7: half a ping", frame(6, 0, 0, &[0; 7]), size),
        ("6.7: a ping of a stream", frame(6, 0, 1, &[0; 8]), protocol),
        ("6.8: a GOAWAY of a stream", frame(7, 0, 1, &[0; 8]), protocol),
        ("6.8: half a GOAWAY", frame(7, 0, 0, &[0; 7]), size),
        ("6.9: nothing for the connection", frame(8, 0, 0, &number(0)), protocol),
        ("6.9: half a window", frame(8, 0, 0, &[0; 3]), size),
        ("6.9: a window that was never opened", frame(8, 0, 9, &number(1)), protocol),
        ("6.9.1: a window that overflows", frame(8, 0, 0, &number((1 << 31) - 1)), flow),
        ("6.10: a continuation of nothing", frame(9, 4, 1, OK), protocol),
        (
            "6.10: a continuation of another stream",
            [frame(1, 0, 1, OK), frame(9, 4, 3, b"")].concat(),
            protocol,
        ),
        (
            "6.10: something in between",
            [frame(1, 0, 1, OK), frame(6, 0, 0, &[0; 8])].concat(),
            protocol,
        ),
        ("6.10: data in between", [frame(1, 0, 1, OK), frame(0, 0, 3, b"a")].concat(), protocol),
        (
            "6.10: even a frame of an unknown kind",
            [frame(1, 0, 1, OK), frame(0xee, 0, 0, b"")].concat(),
            protocol,
        ),
        ("4.3: no HPACK", frame(1, 5, 1, b"\x80"), Some(ErrorCode::COMPRESSION_ERROR)),
        (
            "5.1: a head after the end",
            [frame(1, 5, 1, OK), frame(1, 5, 1, OK)].concat(),
            Some(ErrorCode::STREAM_CLOSED),
        ),
        (
            "5.1: data after the end",
            [frame(1, 5, 1, OK), frame(0, 0, 1, b"a")].concat(),
            Some(ErrorCode::STREAM_CLOSED),
        ),
        (
            "5.1: data after a reset",
            [frame(3, 0, 1, &[0; 4]), frame(0, 0, 1, b"a")].concat(),
            Some(ErrorCode::STREAM_CLOSED),
        ),
    ] {
        assert_eq!(Client::with_requests(2).connection_error(&wire), code, "{sentence}");
        let mut client = Client::with_requests(2);
        let refused = wire.chunks(1).find_map(|byte| client.connection_error(byte));
        assert_eq!(refused, code, "{sentence}, byte by byte");
    }
}

#[test]
fn the_target_begins_with_its_settings() {
    for wire in
        [frame(6, 0, 0, &[0; 8]), frame(4, 1, 0, b""), frame(0, 0, 1, b""), frame(0xee, 0, 0, b"")]
    {
        assert_eq!(
            Client::new().connection_error(&wire),
            Some(ErrorCode::PROTOCOL_ERROR),
            "{wire:?}"
        );
    }
    let http1 = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    assert!(Client::new().connection_error(http1).is_some());
}

#[test]
fn data_after_the_end_is_rejected_while_the_request_is_still_sent() {
    let mut client = Client::with_settings(&[]);
    client.open(false).unwrap();
    client.receive(&frame(1, 5, 1, OK)).unwrap();
    assert_eq!(client.connection_error(&frame(0, 1, 1, b"a")), Some(ErrorCode::STREAM_CLOSED));
}

#[test]
fn malformed_responses_end_only_their_stream() {
    let bad = |block: &[u8]| vec![frame(1, 4, 1, block)];
    for (sentence, wire, expected) in [
        ("8.3.2: no status", bad(b"\x40\x01a\x01b"), "a head without `:status`"),
        ("8.2.1: upper case", bad(b"\x88\x40\x01A\x01b"), "a field has characters"),
        ("8.2.1: a line break", bad(b"\x88\x40\x01a\x03b\r\n"), "a field has characters"),
        (
            "8.2.2: a field of connections",
            bad(b"\x88\x40\x0aconnection\x05close"),
            "a field of HTTP/1.1",
        ),
        ("8.3: another pseudo-header", bad(b"\x88\x84"), "a pseudo-header"),
        ("8.3: a pseudo-header at the end", bad(b"\x40\x01a\x01b\x88"), "a pseudo-header"),
        ("8.6: 101", bad(b"\x48\x03101"), "101"),
        ("8.1: an interim head that ends", vec![frame(1, 5, 1, b"\x48\x03100")], "an interim head"),
        ("8.1: data before a head", vec![frame(0, 0, 1, b"a")], "data before a head"),
        ("8.1: a second head", vec![frame(1, 4, 1, OK), frame(1, 5, 1, OK)], "a second head"),
        (
            "8.1: trailers that do not end",
            vec![frame(1, 4, 1, OK), frame(1, 4, 1, b"\x40\x01a\x01b")],
            "trailers that do not end",
        ),
        ("6.9: a window update of zero", vec![frame(8, 0, 1, &[0; 4])], "a window update of zero"),
    ] {
        let mut client = Client::with_requests(2);
        client.receive(&wire.concat()).unwrap();
        let last = client.take_events().pop().unwrap();
        assert!(last.starts_with(&format!("0 Malformed(\"{expected}")), "{sentence}: {last}");
        assert_eq!(client.take_output(), frame(3, 0, 1, &[0, 0, 0, 1]), "{sentence}");
        client.receive(&frame(1, 5, 3, OK)).unwrap();
        assert_eq!(
            client.take_events(),
            ["1 head 200", "1 end"],
            "{sentence}: the other stream goes on"
        );
    }
    let mut client = Client::with_settings(&[]);
    client.open(false).unwrap();
    client.take_output();
    client.receive(&frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff])).unwrap();
    assert_eq!(
        client.take_output(),
        frame(3, 0, 1, &[0, 0, 0, 3]),
        "6.9.1: a window that overflows"
    );
}

#[test]
fn resets_are_reported_with_their_code() {
    let mut client = Client::with_requests(1);
    client.receive(&frame(3, 0, 1, &[0, 0, 0, 7])).unwrap();
    assert_eq!(
        (client.take_events(), client.take_output()),
        (vec!["0 Reset(ErrorCode(7))".to_owned()], Vec::new())
    );
    assert_eq!(
        (ErrorCode(7).to_string(), ErrorCode(99).to_string()),
        ("REFUSED_STREAM".into(), "error 0x63".into())
    );
}

#[test]
fn more_data_than_our_windows_allow_is_rejected() {
    let mut client = Client::with_requests(1);
    client.receive(&frame(1, 4, 1, OK)).unwrap();
    for _ in 0..256 {
        client.receive(&frame(0, 0, 1, &vec![b'x'; 16_384])).unwrap();
    }
    // Padding counts too, and this frame has no other data.
    let one_more = frame(0, 8, 1, b"\0");
    assert_eq!(client.connection_error(&one_more), Some(ErrorCode::FLOW_CONTROL_ERROR));
    let mut client = Client::with_requests(17);
    for stream in 0..16 {
        client.receive(&frame(1, 4, stream * 2 + 1, OK)).unwrap();
        for _ in 0..256 {
            client.receive(&frame(0, 0, stream * 2 + 1, &vec![b'x'; 16_384])).unwrap();
        }
    }
    client.receive(&frame(1, 4, 33, OK)).unwrap();
    assert_eq!(
        client.connection_error(&frame(0, 0, 33, b"x")),
        Some(ErrorCode::FLOW_CONTROL_ERROR)
    );
}

#[test]
fn initial_windows_that_overflow_a_stream_are_rejected() {
    let mut client = Client::with_settings(&[]);
    client.open(false).unwrap();
    client.receive(&frame(8, 0, 1, &((1_u32 << 31) - 1 - 65_535).to_be_bytes())).unwrap();
    assert_eq!(
        client.connection_error(&settings(&[(4, 65_536)])),
        Some(ErrorCode::FLOW_CONTROL_ERROR)
    );
}

#[test]
fn endless_header_blocks_are_rejected_before_they_use_memory() {
    for part in [&[][..], &vec![0; 16_384]] {
        let mut client = Client::with_requests(1);
        client.receive(&frame(1, 0, 1, part)).unwrap();
        let continuation = frame(9, 0, 1, part);
        let refused = (0..200).find_map(|_| client.connection_error(&continuation));
        assert_eq!(refused, Some(ErrorCode::ENHANCE_YOUR_CALM), "{} bytes each", part.len());
        assert!(client.session.state.block.capacity() <= 512 * 1024);
    }
}

#[test]
fn a_small_block_for_a_huge_head_is_rejected_without_using_memory() {
    let mut client = Client::with_requests(2);
    // An entry of 4,000 bytes, and then its index 10,000 times: 40 MB.
    let mut block = b"\x88\x40\x01a\x7f\xa1\x1e".to_vec();
    block.extend_from_slice(&[b'x'; 4_000]);
    block.extend_from_slice(&[0xbe; 10_000]);
    client.receive(&frame(1, 5, 1, &block)).unwrap();
    assert_eq!(client.take_events(), ["0 HeadTooLarge"]);
    assert_eq!(client.take_output(), frame(3, 0, 1, &[0, 0, 0, 8]));
    assert!(client.session.state.head.size() <= 128 * 1024);
    client.receive(&frame(1, 5, 3, b"\x88\xbe")).unwrap();
    assert_eq!(client.take_events().len(), 2, "the tables are still in step");
}

#[test]
fn a_target_that_sends_without_reading_is_rejected() {
    for frames in [frame(6, 0, 0, &[0; 8]), settings(&[])] {
        let mut client = Client::with_settings(&[]);
        let refused = (0..20_000).find_map(|_| client.receive(&frames).err());
        assert_eq!(refused.map(|error| error.code), Some(ErrorCode::ENHANCE_YOUR_CALM));
        let mut client = Client::with_settings(&[]);
        for _ in 0..20_000 {
            client.receive(&frames).unwrap();
            client.take_output();
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_handled_and_any_split_gives_the_same_events(
        frames in prop::collection::vec(
            (0_u8..12, any::<u8>(), 0_u32..8, prop::collection::vec(any::<u8>(), 0..40)),
            0..12,
        ),
        cuts in prop::collection::vec(0_usize..600, 0..10),
    ) {
        let mut wire = settings(&[]);
        for (kind, flags, stream, payload) in frames {
            wire.extend(frame(kind, flags, stream, &payload));
        }
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let run = |cuts: &[usize]| {
            let mut client = Client::new();
            for ends in [true, false, true] {
                client.open(ends).unwrap();
            }
            let parts = cuts.windows(2).map(|cut| &wire[cut[0]..cut[1]]);
            let end = parts.map(|part| client.receive(part)).find(Result::is_err);
            (end, client.take_events(), client.take_output())
        };
        prop_assert_eq!(run(&cuts), run(&[0, wire.len()]));
    }
}
