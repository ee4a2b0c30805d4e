//! Flow-control windows in both directions.
//!
//! Frames and settings are numbered as in RFC 9113, sections 6 and 6.5.2: kind 8 is
//! `WINDOW_UPDATE`, setting 4 is the initial window, setting 5 the largest frame.

use super::*;

#[test]
fn a_body_is_sent_as_the_windows_allow() {
    let mut client = Client::with_settings(&[(4, 10)]);
    let key = client.open(false).unwrap();
    client.take_output();
    assert_eq!(client.session.send_body(key, b"0123456789abc"), 10);
    assert_eq!(client.take_output(), frame(0, 0, 1, b"0123456789"));
    assert_eq!(client.session.send_body(key, b"abc"), 0);
    // The target lowers the initial window from 10 to 2 after 10 bytes were sent: 8 below zero.
    client.receive(&settings(&[(4, 2)])).unwrap();
    client.receive(&frame(8, 0, 1, &8_u32.to_be_bytes())).unwrap();
    assert_eq!(
        (client.session.send_body(key, b"abc"), client.take_events()),
        (0, vec!["0 window".into(); 2])
    );
    client.receive(&frame(8, 0, 1, &1_u32.to_be_bytes())).unwrap();
    client.take_output();
    assert_eq!(client.session.send_body(key, b"abc"), 1);
    client.receive(&settings(&[(4, 100)])).unwrap();
    client.take_output();
    assert_eq!(
        (client.session.send_body(key, b"bc"), client.session.is_request_over(key)),
        (2, true)
    );
    assert_eq!(client.take_output(), frame(0, 1, 1, b"bc"));
    assert_eq!(client.take_events(), ["0 window"; 2]);
}

#[test]
fn the_connection_window_limits_all_streams() {
    let mut client = Client::with_settings(&[(4, 1 << 20), (5, 20_000)]);
    let (a, b) = (client.open(false).unwrap(), client.open(false).unwrap());
    client.take_output();
    let body = vec![b'x'; 60_000];
    assert_eq!(
        (client.session.send_body(a, &body), client.session.send_body(b, &body)),
        (60_000, 5_535)
    );
    let lengths: Vec<_> = client.take_output().split_at(9).0[..3].to_vec();
    assert_eq!(lengths, [0, 0x4e, 0x20], "frames are as large as the target allows");
    client.receive(&frame(8, 0, 0, &7_u32.to_be_bytes())).unwrap();
    assert_eq!(client.take_events(), ["1 window"], "the first has nothing left to send");
    assert_eq!(client.session.send_body(b, &body[5_535..]), 7);
}

#[test]
fn a_window_update_is_sent_when_half_of_our_window_was_read() {
    let mut client = Client::with_requests(1);
    let key = StreamKey(0);
    client.receive(&frame(1, 4, 1, OK)).unwrap();
    let data = frame(0, 0, 1, &vec![b'x'; 16_384]);
    for _ in 0..127 {
        client.receive(&data).unwrap();
        client.session.consume(key, 16_384);
    }
    assert_eq!(client.take_output(), b"");
    client.receive(&data).unwrap();
    client.session.consume(key, 16_384);
    assert_eq!(client.take_output(), frame(8, 0, 1, &(2_u32 << 20).to_be_bytes()));
}

#[test]
fn unread_data_fills_the_window_and_is_released_on_close() {
    let mut client = Client::with_requests(17);
    let mut window_low = 0;
    for stream in 0..16_u32 {
        client.receive(&frame(1, 4, stream * 2 + 1, OK)).unwrap();
        // Fills the stream's window. The window of the connection has room for 16 full streams.
        for _ in 0..256 {
            let Client { session, .. } = &mut client;
            let data = frame(0, 0, stream * 2 + 1, &vec![b'x'; 16_384]);
            let fed = session.feed(&data, &mut |_, event| {
                window_low += u32::from(matches!(event, Event::Data { window_low: true, .. }));
            });
            fed.unwrap();
        }
    }
    assert_eq!(window_low, 16, "once for each stream, when its window is full");
    client.receive(&frame(1, 4, 33, OK)).unwrap();
    for key in 0..8 {
        client.session.close(StreamKey(key));
    }
    let mut expected: Vec<_> = (0..8).map(|key| frame(3, 0, key * 2 + 1, &[0, 0, 0, 8])).collect();
    expected.insert(7, frame(8, 0, 0, &(32_u32 << 20).to_be_bytes()));
    assert_eq!(client.take_output(), expected.concat());
    client.receive(&frame(0, 0, 33, b"x")).unwrap();
}
