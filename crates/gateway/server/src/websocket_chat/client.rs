//! The client's side of a chat: what it sends, and what it is sent.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// The largest message of a client.
const MOST_MESSAGE: usize = 1 << 20;
/// Messages that may wait for the answer to the one before.
const MOST_WAITING: usize = 16;
/// The time that a client has to take a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Why a chat ends. With a code, the gateway closes it.
pub(super) type Ended = Option<CloseCode>;

/// The client of a chat.
pub(super) struct Client {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    waiting: VecDeque<String>,
}

impl Client {
    pub(super) async fn new(upgraded: Upgraded) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MOST_MESSAGE))
            .max_frame_size(Some(MOST_MESSAGE));
        let io = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Self { socket, waiting: VecDeque::new() }
    }

    /// Its next message. Where nothing comes for longer than `limit`, the chat ends.
    pub(super) async fn next_message(&mut self, limit: Duration) -> Result<String, Ended> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            match timeout(limit, self.socket.next()).await {
                Ok(incoming) => self.take(incoming)?,
                Err(_) => return Err(Some(CloseCode::Normal)),
            }
        }
    }

    /// Listens to the client while something else is done: its pings are answered, its messages
    /// wait, and where it ends the chat, the work is dropped.
    pub(super) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Ended> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                incoming = self.socket.next() => self.take(incoming)?,
            }
        }
    }

    /// Takes what the client sent. Pings are answered by the library.
    fn take(&mut self, incoming: Option<Result<Message, Error>>) -> Result<(), Ended> {
        match incoming {
            Some(Ok(Message::Text(_))) if self.waiting.len() == MOST_WAITING => {
                Err(Some(CloseCode::Policy))
            }
            Some(Ok(Message::Text(text))) => {
                self.waiting.push_back(text.as_str().to_owned());
                Ok(())
            }
            Some(Ok(Message::Binary(_))) => Err(Some(CloseCode::Unsupported)),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
            Some(Err(Error::Capacity(_))) => Err(Some(CloseCode::Size)),
            Some(Err(Error::Utf8(_))) => Err(Some(CloseCode::Invalid)),
            Some(Err(Error::Protocol(_))) => Err(Some(CloseCode::Protocol)),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(None),
        }
    }

    /// Sends messages.
    pub(super) async fn send(&mut self, messages: Vec<Value>) -> Result<(), Ended> {
        for message in messages {
            self.socket.send(Message::text(message.to_string())).await.map_err(|_| None)?;
        }
        Ok(())
    }

    /// Ends the chat.
    pub(super) async fn close(mut self, ended: Ended) {
        if let Some(code) = ended {
            let frame = CloseFrame { code, reason: "".into() };
            let _ = timeout(CLOSE_TIME, self.socket.close(Some(frame))).await;
        }
        // The answer to the client's close frame may still be in the buffer.
        let _ = timeout(CLOSE_TIME, self.socket.flush()).await;
    }
}
