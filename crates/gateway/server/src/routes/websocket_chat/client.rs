//! The client's side of a chat: what it sends, and what it is sent.

use std::collections::VecDeque;
use std::io::ErrorKind;
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

use super::chat_memory::{ChatMemory, CountedSocket, Part, READ_BUFFER};

/// The largest message of a client.
const MOST_MESSAGE: usize = 1 << 20;
/// What a waiting message takes beside its text.
const MESSAGE_BYTES: usize = 64;
/// Messages that may wait for the answer to the one before.
const MOST_WAITING: usize = 16;
/// The time that a client has to take a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Why a chat ends. With a code, the gateway closes it.
pub(super) type Ended = Option<CloseCode>;

/// The client of a chat.
pub(super) struct Client {
    socket: WebSocketStream<CountedSocket<TokioIo<Upgraded>>>,
    memory: ChatMemory,
    waiting: VecDeque<String>,
    /// Bytes of the message that is answered.
    answered: usize,
}

impl Client {
    pub(super) async fn new(upgraded: Upgraded, memory: ChatMemory) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(MOST_MESSAGE))
            .max_frame_size(Some(MOST_MESSAGE));
        let io = CountedSocket::new(TokioIo::new(upgraded), memory.clone());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Self { socket, memory, waiting: VecDeque::new(), answered: 0 }
    }

    /// Its next message. Where nothing comes for longer than `limit`, the chat ends.
    pub(super) async fn next_message(&mut self, limit: Duration) -> Result<String, Ended> {
        self.answered = 0;
        self.count_messages()?;
        loop {
            if let Some(message) = self.waiting.pop_front() {
                self.answered = message.len();
                self.count_messages()?;
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
                self.socket.get_mut().message_is_complete();
                self.count_messages()
            }
            Some(Ok(Message::Binary(_))) => Err(Some(CloseCode::Unsupported)),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
            Some(Err(Error::Io(error))) if error.kind() == ErrorKind::OutOfMemory => {
                Err(Some(CloseCode::Again))
            }
            Some(Err(Error::Capacity(_))) => Err(Some(CloseCode::Size)),
            Some(Err(Error::Utf8(_))) => Err(Some(CloseCode::Invalid)),
            Some(Err(Error::Protocol(_))) => Err(Some(CloseCode::Protocol)),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(None),
        }
    }

    /// Counts the messages that wait and the one that is answered.
    fn count_messages(&self) -> Result<(), Ended> {
        let waiting: usize = self.waiting.iter().map(|text| text.len() + MESSAGE_BYTES).sum();
        self.hold(Part::Messages, waiting + self.answered)
    }

    /// A part of the chat holds this many bytes now.
    ///
    /// # Errors
    /// That is more than allowed, so that the chat ends.
    pub(super) fn hold(&self, part: Part, bytes: usize) -> Result<(), Ended> {
        self.memory.set(part, bytes).map_err(|_| Some(CloseCode::Again))
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
