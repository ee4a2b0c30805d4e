//! A streamed response as a sequence of steps with due times, without clock or socket.

use crate::dialect::Encoder;
use crate::fault::Fault;
use crate::model_output::{ModelOutput, Words};
use crate::response_plan::{Gaps, ResponsePlan};
use crate::timed_plan::{StreamEnd, TimedPlan};

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Preamble,
    Content,
    End(StreamEnd),
    Done,
}

/// A streamed response. Due times are nanoseconds from the complete request. Each is the sum of the
/// waits before it, so lateness does not add up.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub(crate) output: ModelOutput,
    encoder: Encoder,
    words: Words,
    text: Vec<u8>,
    gaps: Gaps,
    ttft: u64,
    fault: Option<Fault>,
    tokens_per_event: u32,
    step: Step,
    due: u64,
    /// Index of the current section, and its sent tokens.
    section: usize,
    sent_of_section: u32,
    /// Sent tokens of the whole output.
    sent: u32,
}

impl StreamPlan {
    pub(crate) fn new(plan: ResponsePlan, encoder: Encoder) -> Self {
        let tokens = plan.output.tokens();
        Self {
            words: Words::new(plan.output.rng),
            text: Vec::new(),
            output: plan.output,
            encoder,
            gaps: plan.gaps,
            ttft: plan.ttft,
            fault: plan.fault.map(|fault| fault.clamped_to(tokens)),
            tokens_per_event: plan.tokens_per_event,
            step: Step::Preamble,
            due: plan.preamble,
            section: 0,
            sent_of_section: 0,
            sent: 0,
        }
    }

    fn write_preamble(&mut self, out: &mut Vec<u8>) {
        self.encoder.start_stream(&self.output, out);
        self.due = self.ttft;
        self.choose_next();
    }

    fn write_content(&mut self, in_flight: u64, out: &mut Vec<u8>) {
        let Some(section) = self.output.sections.get(self.section).copied() else { return };
        let sent = self.sent_of_section;
        // Not before its first token, because a tool's name is content, too.
        if sent == 0 {
            self.encoder.start_section(&self.output, section, out);
        }
        let tokens = self.tokens_per_event.min(section.tokens - sent);
        self.text.clear();
        self.output.write_text(section, sent..sent + tokens, &mut self.words, &mut self.text);
        self.sent_of_section += tokens;
        self.sent += tokens;
        self.encoder.delta(&self.output, section, &self.text, out);
        if self.sent_of_section == section.tokens {
            self.encoder.end_section(&self.output, section, out);
            (self.section, self.sent_of_section) = (self.section + 1, 0);
        }
        if self.sent < self.output.tokens() {
            self.due = self.due.saturating_add(self.gaps.next(in_flight));
        }
        self.choose_next();
    }

    fn write_end(&mut self, end: StreamEnd, out: &mut Vec<u8>) {
        match end {
            StreamEnd::Complete => {
                // An output without tokens has one empty section, which no delta has closed.
                if let Some(empty) = self.output.sections.get(self.section) {
                    self.encoder.start_section(&self.output, *empty, out);
                    self.encoder.end_section(&self.output, *empty, out);
                }
                self.encoder.end_stream(&self.output, out);
            }
            StreamEnd::Error => self.encoder.error(&self.output, out),
            StreamEnd::Truncated | StreamEnd::Disconnected { .. } => {}
        }
    }

    /// Selects the next step. A fault replaces the event after its token.
    fn choose_next(&mut self) {
        let more = self.sent < self.output.tokens();
        let normal = if more { Step::Content } else { Step::End(StreamEnd::Complete) };
        let fault = self.fault.take_if(|fault| fault.at_token() <= self.sent);
        let (pause, end) = fault.map_or((0, None), Fault::effect);
        self.due = self.due.saturating_add(pause);
        self.step = end.map_or(normal, Step::End);
    }

    /// Takes all steps at once; returns the due time of the end, and its kind. For unstreamed
    /// responses, which take as long as their stream would.
    pub(crate) fn run_to_end(&mut self, in_flight: u64) -> (u64, StreamEnd) {
        let mut discarded = Vec::new();
        loop {
            let due = self.due;
            if let Some(end) = self.advance(in_flight, &mut discarded) {
                return (due, end);
            }
            discarded.clear();
        }
    }
}

/// `in_flight` is the number of API requests in flight.
impl TimedPlan for StreamPlan {
    fn due(&self) -> Option<u64> {
        (self.step != Step::Done).then_some(self.due)
    }

    fn tokens_sent(&self) -> u32 {
        self.sent
    }

    fn disconnects(&self) -> bool {
        matches!(self.step, Step::End(StreamEnd::Disconnected { .. }))
    }

    fn advance(&mut self, in_flight: u64, out: &mut Vec<u8>) -> Option<StreamEnd> {
        match self.step {
            Step::Preamble => self.write_preamble(out),
            Step::Content => self.write_content(in_flight, out),
            Step::End(end) => {
                self.write_end(end, out);
                self.step = Step::Done;
                return Some(end);
            }
            Step::Done => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
