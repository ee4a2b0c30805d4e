//! Single requests of one client, one after the other.

use plimsoll_transport::{Endpoint, SingleClient, SingleRequest};

use crate::support::{Act, run, send, serve};

/// Each connection of the server serves one request, and then stays open for a while.
#[test]
fn each_request_has_a_connection_of_its_own_and_only_the_start_of_a_body_is_kept() {
    let script = |text: &str| vec![send(text), Act::Pause(200)];
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
    let gone = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno";
    let address = serve(vec![script(ok), script(ok), script(gone)]);
    let client = SingleClient::new(Endpoint::new("127.0.0.1".to_owned(), address.port()), false);
    let client = client.unwrap();
    let fetch = async |most| {
        let request = SingleRequest { method: "GET", path: "/x", headers: &[], body: Vec::new() };
        let response = client.fetch(request, most).await.unwrap();
        (response.status, String::from_utf8(response.body).unwrap())
    };
    run(async {
        assert_eq!(fetch(4).await, (200, "0123".to_owned()));
        assert_eq!(fetch(10).await, (200, "0123456789".to_owned()));
        assert_eq!(fetch(100).await, (404, "no".to_owned()));
    });
}
