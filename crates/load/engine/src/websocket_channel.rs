//! The WebSocket of a conversation.

use std::rc::Rc;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_transport::websocket::{GOING_AWAY, NORMAL, WebSocket};
use tokio::task::spawn_local;

use crate::worker::Worker;

/// How long the target may take to answer a close frame, in the background.
const CLOSE_LIMIT: Nanos = Nanos::from_secs(1);

/// The WebSocket of a conversation, from its first turn on. Empty where turns are HTTP requests.
#[derive(Debug, Default)]
pub(crate) struct WebSocketChannel {
    socket: Option<Box<WebSocket>>,
    /// Whether the last turn came to its end.
    completed: bool,
}

impl WebSocketChannel {
    /// The WebSocket, if it is open.
    pub(crate) fn socket(&mut self) -> Option<&mut WebSocket> {
        self.socket.as_deref_mut()
    }

    /// The first turn has opened it.
    pub(crate) fn opened(&mut self, socket: WebSocket) {
        self.socket = Some(Box::new(socket));
    }

    /// A turn has ended.
    pub(crate) const fn turn_ended(&mut self, completed: bool) {
        self.completed = completed;
    }

    /// Waits for the next turn. Pings of the target are answered meanwhile: one that gets no answer
    /// closes the connection.
    pub(crate) async fn sleep_until(&mut self, worker: &Worker, at: Moment) {
        let sleep = worker.timer.sleep_until(at);
        match &mut self.socket {
            None => sleep.await,
            // Boxed, so that conversations over HTTP do not have the room for it.
            Some(socket) => {
                Box::pin(socket.idle(&worker.rx_clock, &worker.read_buffers, sleep)).await;
            }
        }
    }

    /// Ends it with the conversation: with the code 1000 after a complete turn. The answer of the
    /// target is awaited in the background.
    pub(crate) fn close(&mut self, worker: &Rc<Worker>) {
        let Some(mut socket) = self.socket.take() else { return };
        if socket.begin_close(if self.completed { NORMAL } else { GOING_AWAY }) {
            let worker = Rc::clone(worker);
            spawn_local(async move {
                socket.finish_close(&worker.rx_clock, &worker.read_buffers, CLOSE_LIMIT).await;
            });
        }
    }
}
