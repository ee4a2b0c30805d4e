//! Redirects that a turn follows.

use std::borrow::Cow;

use plimsoll_measure::{Clock as _, ErrorClass};
use plimsoll_transport::{Demand, Failure, ResponseHead};
use plimsoll_workload::Conversation;

use super::{EncodedTurn, OpenTurn};
use crate::connections::ConnectionSet;
use crate::redirect::Hop;
use crate::worker::Worker;

/// Likely problem if a redirect leads to another redirect.
const CIRCLE: &str = "; is it a redirect loop? Check with `curl -sIL URL`, and load the final URL";

impl OpenTurn {
    /// Notes where an answer redirects to, and whether that is to be followed.
    pub(super) fn redirected(&mut self, head: &ResponseHead<'_>) {
        let Some(to) = head.header("location") else { return };
        let followed = self.redirects_followed();
        let after = match followed {
            0 => {
                "; follow it with `redirects: 5` or http --redirects 5, or load that URL".to_owned()
            }
            1 => format!(", after one redirect that was followed{CIRCLE}"),
            hops => format!(", after {hops} redirects that were followed{CIRCLE}"),
        };
        self.detail = Some(format!("the target redirects to {to}{after}"));
        let run = &self.worker.run;
        let route = run.route(self.sample().scenario, self.sample().target);
        let wanted = route.expects(head.status) == Some(true);
        let is_followed = followed < run.plan.http.redirects && !wanted;
        self.resends.get_or_insert_default().location = is_followed.then(|| to.into());
    }

    /// Redirects that were followed.
    pub(super) fn redirects_followed(&self) -> u8 {
        self.resends.as_ref().map_or(0, |resends| resends.followed)
    }

    /// Sends the request to where the last answer redirects, as often as the profile allows.
    pub(super) async fn follow(
        &mut self,
        worker: &Worker,
        connections: &ConnectionSet,
        conversation: &mut Conversation,
        mut demand: Demand,
    ) -> Result<(), Failure> {
        let mut before = None;
        while let Some(location) = self.resends.as_mut().and_then(|resends| resends.location.take())
        {
            conversation.restore_text();
            let Some((hop, mut encoded)) =
                self.encode_hop(worker, conversation, before.as_ref(), &location)?
            else {
                break;
            };
            conversation.release_text();
            worker.stats().note_redirect(&self.measurement.sample, &hop.shown());
            self.begin_hop();
            self.measurement.sample.bytes_out += encoded.wire.len() as u64;
            demand = demand.again(worker.clock.now(), false);
            let target = self.sample().target;
            let route = worker.run.route(self.sample().scenario, target);
            let sent = if hop.origin == route.origin() {
                self.attempt(worker, connections.pool(target), demand, &mut encoded).await
            } else {
                let connector = worker.connector_to(&hop.origin)?;
                let pool = connections.elsewhere(&hop.origin, &connector, &worker.rx_clock);
                self.attempt(worker, &pool, demand, &mut encoded).await
            };
            sent.map_err(|failed| failed.failure)?;
            before = Some(hop);
        }
        Ok(())
    }

    /// The request to the place that an answer names; `None` if that location is not valid.
    fn encode_hop<'w>(
        &self,
        worker: &'w Worker,
        conversation: &Conversation,
        before: Option<&Hop>,
        location: &str,
    ) -> Result<Option<(Hop, EncodedTurn<'w>)>, Failure> {
        let sample = self.sample();
        let route = worker.run.route(sample.scenario, sample.target);
        let Some(turn) = conversation.turn() else { return Ok(None) };
        let Some(hop) = route.next_hop(&turn, before, sample.status, location) else {
            return Ok(None);
        };
        let mut wire = worker.buffers.requests.acquire();
        if hop.with_body {
            let written = route.encoder.encode_body(&turn, &mut wire.body);
            written.map_err(|error| Failure::new(ErrorClass::LocalIo, error.to_string()))?;
        }
        let head = route
            .head_to(&turn, &hop)
            .map_err(|error| Failure::new(ErrorClass::Redirect, format!("{location}: {error}")))?;
        let id = conversation.request_id();
        head.render(Some(id.as_bytes()), wire.body.len(), &mut wire.head);
        let asked_output = turn.max_tokens;
        Ok(Some((hop, EncodedTurn { head: Cow::Owned(head), id, wire, asked_output })))
    }

    /// Forgets the answer that redirects: the times of the next one count, from the first start.
    fn begin_hop(&mut self) {
        self.resends.get_or_insert_default().followed += 1;
        self.detail = None;
        self.retry_after = None;
        self.parts = None;
        self.headers.clear();
        let timeline = &mut self.measurement.sample.timeline;
        (timeline.first_byte, timeline.finished) = (None, None);
        let Self { worker, measurement, decoder, scan, .. } = self;
        if let Some(decoder) = decoder.take() {
            let sample = &measurement.sample;
            let route = worker.run.route_index(sample.scenario, sample.target);
            worker.buffers.decoders[route].release(decoder);
        }
        if let Some(scan) = scan.take() {
            worker.buffers.scans.release(scan);
        }
    }
}
