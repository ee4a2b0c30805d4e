//! A turn over the WebSocket of its conversation.

use std::ops::ControlFlow;
use std::rc::Rc;

use plimsoll_measure::{Clock as _, Moment};
use plimsoll_transport::websocket::{
    Message, MessageHandler, UpgradeRequest, WebSocket, client_frame_len,
};
use plimsoll_transport::{Failure, Opened, RequestHead, ResponseHandler as _, ResponseHead};
use plimsoll_workload::Conversation;

use super::{EncodedTurn, OpenTurn, TurnEnd};
use crate::in_flight_limit::InFlightPermit;
use crate::request_timeout::LazyTimeout;
use crate::websocket_channel::WebSocketChannel;

/// The status of a turn over an open WebSocket.
const SWITCHING_PROTOCOLS: u16 = 101;

impl OpenTurn {
    /// Whether the turn goes over a WebSocket.
    pub(crate) fn is_over_websocket(&self) -> bool {
        let sample = self.sample();
        self.worker.run.route(sample.scenario, sample.target).is_websocket()
    }

    /// The same as [`OpenTurn::execute`] over the conversation's WebSocket, which the first turn
    /// opens.
    pub(crate) async fn converse(
        &mut self,
        conversation: &mut Conversation,
        channel: &mut WebSocketChannel,
        timeout: &mut LazyTimeout,
        slot: Option<&InFlightPermit>,
    ) -> TurnEnd {
        let worker = Rc::clone(&self.worker);
        let result = match self.dispatch(&worker, conversation, slot) {
            Err(failure) => Some(Err(failure)),
            Ok((encoded, dispatched)) => {
                self.measurement.sample.bytes_out = client_frame_len(encoded.wire.len()) as u64;
                let limit = self.limit;
                // Boxed, so that conversations over HTTP do not have the room for it.
                let mut exchange = Box::pin(self.exchange_messages(channel, encoded, dispatched));
                timeout.run(&worker.clock, limit, exchange.as_mut()).await
            }
        };
        let end = self.finish(result);
        channel.turn_ended(end.completed);
        end
    }

    async fn exchange_messages(
        &mut self,
        channel: &mut WebSocketChannel,
        encoded: EncodedTurn<'_>,
        dispatched: Moment,
    ) -> Result<(), Failure> {
        let worker = Rc::clone(&self.worker);
        let EncodedTurn { head, id, wire, .. } = encoded;
        if channel.socket().is_some() {
            let sample = &mut self.measurement.sample;
            sample.reused = true;
            sample.status = SWITCHING_PROTOCOLS;
            sample.timeline.connected = Some(dispatched);
        } else if let Some(socket) = self.open(&head, id.as_bytes(), dispatched).await? {
            channel.opened(socket);
        }
        // Without one, the target refused it: the answer to the handshake is that to the turn.
        let Some(socket) = channel.socket() else { return Ok(()) };
        socket.exchange(&worker.rx_clock, &worker.read_buffers, wire, self).await
    }

    /// Opens a connection and makes the handshake. `None`: the target gave an ordinary answer.
    async fn open(
        &mut self,
        head: &RequestHead,
        id: &[u8],
        dispatched: Moment,
    ) -> Result<Option<WebSocket>, Failure> {
        let worker = Rc::clone(&self.worker);
        let (scenario, target) = (self.sample().scenario, self.sample().target);
        let Opened { phases, connection } = worker.connector(target).connect(&worker.clock).await;
        self.measurement.sample.connect = phases;
        let connection = connection?;
        self.connected(dispatched);
        let route = worker.run.route(scenario, target);
        let seed = worker.run.plan.seed.derive("websocket");
        let request = UpgradeRequest {
            head,
            id: Some(id),
            subprotocol: route.subprotocol(),
            keys: seed.rng("keys", self.sample().conversation.0),
            max_message: route.max_message(),
        };
        let socket =
            WebSocket::open(connection, request, &worker.rx_clock, &worker.read_buffers, self)
                .await?;
        if socket.is_some() {
            let ready = self.sample().timeline.connected.unwrap_or(dispatched);
            self.measurement.sample.connect.upgrade = Some(worker.clock.now().since(ready));
            self.connected(dispatched);
        }
        Ok(socket)
    }

    /// The connection, or the WebSocket on it, is ready. It may have been since the worker last
    /// looked at its sockets.
    fn connected(&mut self, dispatched: Moment) {
        let now = self.worker.clock.now();
        let late = self.worker.watch.looks.lateness(now).unwrap_or_default();
        let sample = &mut self.measurement.sample;
        sample.timeline.connected = Some(now);
        sample.generator.send = late.min(now.since(dispatched));
    }
}

impl MessageHandler for OpenTurn {
    fn upgrade_sent(&mut self, at: Moment) {
        self.measurement.sample.timeline.sent = Some(at);
    }

    fn message(&mut self, message: Message<'_>, at: Moment) -> ControlFlow<()> {
        if self.decoder.is_none() {
            self.head(&ResponseHead { status: SWITCHING_PROTOCOLS, headers: &[] });
        }
        let Self { decoder: Some(decoder), measurement, scan, worker, .. } = self else {
            return ControlFlow::Break(());
        };
        let text = match message {
            Message::Text(text) => Some(text),
            Message::Binary(_) => None,
        };
        if let (Some(scan), Some(text)) = (scan, text) {
            let route = worker.run.route(measurement.sample.scenario, measurement.sample.target);
            route.decisions.scan_body(scan, text.as_bytes());
        }
        decoder.message(text, &mut |delta| measurement.content(delta.kind, at));
        if decoder.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn read_ended(&mut self, within_message: bool) {
        if let Some(decoder) = &self.decoder {
            self.measurement.read_messages(decoder, within_message);
        }
    }
}
