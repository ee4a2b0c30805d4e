//! Gateways with one planted fault each. They share no code with the product.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plimsoll_runner::time::sleep;

/// The fault of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Removes the second tool call, whole and streamed.
    LosesToolCall,
    /// Asks twice if the first answer is an error or missing.
    RetriesErrors,
    /// Asks again on a new connection if a reused one was closed.
    ResendsOnReuse,
    /// Passes two events at a time.
    MergesEvents,
    /// Passes each event 40 ms late.
    DelaysEvents,
    DropsRetryAfter,
    /// 529 becomes 503.
    ChangesStatus,
    /// Ends each stream after its second event, as if it were complete.
    CutsStreams,
    /// Reads the upstream's answer to its end although the client left.
    IgnoresLeaving,
    /// Waits with requests for which the upstream's answer is 422.
    HangsOn422,
    /// Has no path for messages.
    OnlyOpenAi,
    /// Answers 503 without asking the upstream, for ever after an error 500.
    OpensCircuit,
    /// Removes members that it does not know.
    DropsUnknown,
}

pub(super) struct Gateway {
    fault: Fault,
    upstream: u16,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
    failed: Mutex<bool>,
}

/// The connection that is closed if the client leaves.
type Asked = Arc<Mutex<Option<TcpStream>>>;

/// A message: its first line and headers, each with its line end.
struct Head {
    first: String,
    headers: Vec<String>,
}

impl Head {
    fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                let first = lines.remove(0);
                return Some(Self { first, headers: lines });
            }
            lines.push(line);
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let lines = self.headers.iter().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
    }

    fn remove(&mut self, name: &str) {
        self.headers.retain(|line| !line.to_ascii_lowercase().starts_with(name));
    }

    fn length(&self) -> usize {
        self.value("content-length").map_or(0, |value| value.parse().unwrap())
    }

    fn status(&self) -> u16 {
        self.first.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{}{}\r\n", self.first, self.headers.concat()).into_bytes()
    }
}

impl Gateway {
    /// Starts it; its address. It ends with the test.
    pub(super) fn start(fault: Fault, upstream: u16) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let gateway =
            Arc::new(Self { fault, upstream, idle: Mutex::default(), failed: Mutex::default() });
        thread::spawn(move || {
            for stream in listener.incoming() {
                let gateway = Arc::clone(&gateway);
                thread::spawn(move || gateway.serve(&stream.unwrap()));
            }
        });
        address
    }

    /// Serves one request of a client.
    fn serve(&self, client: &TcpStream) -> Option<()> {
        client.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let head = Head::read(&mut reader)?;
        let mut body = vec![0; head.length()];
        reader.read_exact(&mut body).ok()?;
        let asked = Asked::default();
        if self.fault != Fault::IgnoresLeaving {
            let asked = Arc::clone(&asked);
            thread::spawn(move || {
                let _ = reader.read(&mut [0]);
                let upstream = asked.lock().unwrap().take();
                upstream.map(|upstream| upstream.shutdown(Shutdown::Both))
            });
        }
        let _ = self.exchange(client, head, body, &asked);
        client.shutdown(Shutdown::Both).ok()
    }

    /// Passes on a request and its answer; `None` closes the client's connection.
    fn exchange(
        &self,
        client: &TcpStream,
        mut head: Head,
        mut body: Vec<u8>,
        asked: &Asked,
    ) -> Option<()> {
        if self.fault == Fault::OnlyOpenAi && head.first.contains("/messages") {
            return respond(client, "404 Not Found");
        }
        if self.fault == Fault::OpensCircuit && *self.failed.lock().unwrap() {
            return respond(client, "503 Open Circuit");
        }
        if self.fault == Fault::DropsUnknown {
            body = without(body, r#""x_unknown":{"kept":true,"list":[1,2]}"#);
            head.remove("content-length");
            head.headers.push(format!("content-length: {}\r\n", body.len()));
        }
        let request = [head.bytes(), body].concat();
        let twice = self.fault == Fault::RetriesErrors;
        let mut answered = self.ask(&request, asked);
        if twice && answered.as_ref().is_none_or(|(answer, _)| answer.status() >= 400) {
            answered = self.ask(&request, asked);
        }
        let Some((answer, upstream)) = answered else { return respond(client, "502 Bad Gateway") };
        *self.failed.lock().unwrap() |= answer.status() == 500;
        if self.fault == Fault::HangsOn422 && answer.status() == 422 {
            sleep(Duration::from_mins(1));
        }
        self.answer(client, answer, upstream, asked)
    }

    /// Sends a request on an idle connection that is still open, else on a new one.
    fn ask(&self, request: &[u8], asked: &Asked) -> Option<(Head, BufReader<TcpStream>)> {
        let idle = self.idle.lock().unwrap().drain(..).next_back().filter(|idle| {
            idle.get_ref().set_nonblocking(true).unwrap();
            let is_open = idle.get_ref().peek(&mut [0]).is_err();
            idle.get_ref().set_nonblocking(false).unwrap();
            is_open
        });
        let was_idle = idle.is_some();
        let mut upstream = idle.unwrap_or_else(|| {
            BufReader::new(TcpStream::connect(("127.0.0.1", self.upstream)).unwrap())
        });
        *asked.lock().unwrap() = Some(upstream.get_ref().try_clone().unwrap());
        upstream.get_mut().write_all(request).ok()?;
        match Head::read(&mut upstream) {
            Some(answer) => Some((answer, upstream)),
            None if was_idle && self.fault == Fault::ResendsOnReuse => self.ask(request, asked),
            None => None,
        }
    }

    fn answer(
        &self,
        client: &TcpStream,
        mut head: Head,
        mut upstream: BufReader<TcpStream>,
        asked: &Asked,
    ) -> Option<()> {
        match self.fault {
            Fault::DropsRetryAfter => head.remove("retry-after"),
            Fault::ChangesStatus => head.first = head.first.replace(" 529 ", " 503 "),
            _ => {}
        }
        let mut to_client = client;
        if head.value("transfer-encoding").is_some() {
            to_client.write_all(&head.bytes()).ok()?;
            self.stream(client, &mut upstream, asked)?;
        } else {
            let mut body = vec![0; head.length()];
            let mut read = 0;
            while read < body.len() {
                match upstream.read(&mut body[read..]) {
                    Ok(more) if more > 0 => read += more,
                    _ => break,
                }
            }
            let is_whole = read == body.len();
            body.truncate(read);
            if is_whole {
                body = self.changed(body);
                head.remove("content-length");
                head.headers.push(format!("content-length: {}\r\n", body.len()));
            }
            asked.lock().unwrap().take();
            to_client.write_all(&[head.bytes(), body].concat()).ok()?;
            is_whole.then_some(())?;
        }
        self.idle.lock().unwrap().push(upstream);
        Some(())
    }

    fn changed(&self, body: Vec<u8>) -> Vec<u8> {
        let text = match self.fault {
            Fault::LosesToolCall => {
                let openai = r#",{"function":{"arguments":"{\"city\":\"Bergen\"}","name":"weather"},"id":"call_2","type":"function"}"#;
                let anthropic = r#",{"id":"call_2","input":{"city":"Bergen"},"name":"weather","type":"tool_use"}"#;
                String::from_utf8(body).unwrap().replace(openai, "").replace(anthropic, "")
            }
            Fault::DropsUnknown => {
                let body = without(body, r#""x_unknown":{"kept":true,"list":[1,2]}"#);
                return without(body, r#""x_unknown":"kept""#);
            }
            _ => return body,
        };
        text.into_bytes()
    }

    /// Passes on chunks, each an event.
    fn stream(
        &self,
        client: &TcpStream,
        upstream: &mut BufReader<TcpStream>,
        asked: &Asked,
    ) -> Option<()> {
        let (mut client, mut held, mut passed) = (client, Vec::new(), 0);
        loop {
            let mut line = String::new();
            upstream.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim_end(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            upstream.read_exact(&mut chunk).ok()?;
            chunk.truncate(size);
            if size == 0 {
                asked.lock().unwrap().take();
                client.write_all(&held).ok()?;
                return client.write_all(b"0\r\n\r\n").ok();
            }
            if self.fault == Fault::LosesToolCall && is_second_tool_call(&chunk) {
                continue;
            }
            let chunk = self.changed(chunk);
            held.extend(
                [format!("{:x}\r\n", chunk.len()).into_bytes(), chunk, b"\r\n".to_vec()].concat(),
            );
            passed += 1;
            match self.fault {
                Fault::MergesEvents if passed % 2 == 1 => continue,
                Fault::DelaysEvents => sleep(Duration::from_millis(40)),
                _ => {}
            }
            let written = client.write_all(&held);
            if self.fault != Fault::IgnoresLeaving {
                written.ok()?;
            }
            held.clear();
            if self.fault == Fault::CutsStreams && passed == 2 {
                client.write_all(b"0\r\n\r\n").ok()?;
                return None;
            }
        }
    }
}

fn respond(mut client: &TcpStream, status: &str) -> Option<()> {
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    client.write_all(text.as_bytes()).ok()
}

fn is_second_tool_call(chunk: &[u8]) -> bool {
    let text = String::from_utf8_lossy(chunk);
    let is_tool = ["\"tool_calls\":[{", "\"tool_use\",", "\"tool_use\"}", "partial_json"];
    text.contains(r#""index":1"#) && is_tool.iter().any(|part| text.contains(part))
}

/// Removes a member and one of the commas beside it.
fn without(body: Vec<u8>, member: &str) -> Vec<u8> {
    let text = String::from_utf8(body).unwrap();
    text.replace(&format!("{member},"), "").replace(&format!(",{member}"), "").into_bytes()
}
