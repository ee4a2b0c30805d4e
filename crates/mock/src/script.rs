//! A streamed answer as a sequence of beats, each with its due time: the whole course of a stream,
//! without a clock and without a socket.

use crate::answer::{Answer, Words};
use crate::dialect::{Piece, Voice};
use crate::fault::Fault;
use crate::plan::{Gaps, Plan};

/// How a script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All was said.
    Closed,
    /// With an error event.
    Error,
    /// In silence: a proper end of the body, but not of the dialect.
    Truncated,
    /// With the end of the connection; by a reset if so planned.
    Broken { reset: bool },
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    Preamble,
    Content,
    End(Ending),
    Over,
}

/// A streamed answer. Due times are nanoseconds from the complete request: each is the sum of the
/// waits before it, so that lateness never adds up.
pub(crate) struct Script {
    answer: Answer,
    voice: Box<dyn Voice>,
    words: Words,
    text: Vec<u8>,
    gaps: Gaps,
    ttft: u64,
    fault: Option<Fault>,
    tokens_per_event: u32,
    beat: Beat,
    due: u64,
    /// The section that is being said, what was said of it, and of the whole answer.
    section: usize,
    said_of_section: u32,
    said: u32,
}

impl Script {
    pub(crate) fn new(plan: Plan, voice: Box<dyn Voice>) -> Self {
        let tokens = plan.answer.tokens();
        Self {
            words: Words::new(plan.answer.draws),
            text: Vec::new(),
            answer: plan.answer,
            voice,
            gaps: plan.gaps,
            ttft: plan.ttft,
            fault: plan.fault.map(|fault| fault.within(tokens)),
            tokens_per_event: plan.tokens_per_event,
            beat: Beat::Preamble,
            due: plan.preamble,
            section: 0,
            said_of_section: 0,
            said: 0,
        }
    }

    /// When the next beat is due; `None` when all is over.
    pub(crate) fn due(&self) -> Option<u64> {
        (self.beat != Beat::Over).then_some(self.due)
    }

    /// Output tokens said so far.
    pub(crate) const fn said(&self) -> u32 {
        self.said
    }

    /// The answer that is being said.
    pub(crate) const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Is the next beat the breaking of the connection?
    pub(crate) const fn breaks(&self) -> bool {
        matches!(self.beat, Beat::End(Ending::Broken { .. }))
    }

    /// Says the next beat; returns the ending with the last one. `in_flight` API requests are under
    /// way.
    pub(crate) fn play(&mut self, in_flight: u64, out: &mut Vec<u8>) -> Option<Ending> {
        match self.beat {
            Beat::Preamble => self.play_preamble(out),
            Beat::Content => self.play_content(in_flight, out),
            Beat::End(ending) => {
                self.play_ending(ending, out);
                self.beat = Beat::Over;
                return Some(ending);
            }
            Beat::Over => {}
        }
        None
    }

    fn play_preamble(&mut self, out: &mut Vec<u8>) {
        self.voice.open(&self.answer, out);
        if let Some(first) = self.answer.sections.first() {
            self.voice.start(&self.answer, first.kind, out);
        }
        self.due = self.ttft;
        self.choose_next();
    }

    fn play_content(&mut self, in_flight: u64, out: &mut Vec<u8>) {
        let Some(section) = self.answer.sections.get(self.section).copied() else { return };
        let first = self.said_of_section == 0;
        if first && self.section > 0 {
            self.voice.start(&self.answer, section.kind, out);
        }
        let tokens = self.tokens_per_event.min(section.tokens - self.said_of_section);
        self.text.clear();
        self.words.write(tokens, &mut self.text);
        self.said_of_section += tokens;
        self.said += tokens;
        let last = self.said_of_section == section.tokens;
        let piece = Piece { kind: section.kind, first, last, text: &self.text };
        self.voice.piece(&self.answer, piece, out);
        if last {
            self.voice.stop(&self.answer, section.kind, out);
            (self.section, self.said_of_section) = (self.section + 1, 0);
        }
        if self.said < self.answer.tokens() {
            self.due = self.due.saturating_add(self.gaps.draw(in_flight));
        }
        self.choose_next();
    }

    fn play_ending(&mut self, ending: Ending, out: &mut Vec<u8>) {
        match ending {
            Ending::Closed => {
                // An answer of no tokens has an empty section, which no piece has closed.
                if let Some(empty) = self.answer.sections.get(self.section) {
                    self.voice.stop(&self.answer, empty.kind, out);
                }
                self.voice.close(&self.answer, out);
            }
            Ending::Error => self.voice.error(out),
            Ending::Truncated | Ending::Broken { .. } => {}
        }
    }

    /// A fault takes the place of the event that would follow its token.
    fn choose_next(&mut self) {
        let more = self.said < self.answer.tokens();
        let ordinary = if more { Beat::Content } else { Beat::End(Ending::Closed) };
        self.beat = match self.fault.take_if(|fault| fault.place() <= self.said) {
            Some(Fault::Error { .. }) => Beat::End(Ending::Error),
            Some(Fault::Truncate { .. }) => Beat::End(Ending::Truncated),
            Some(Fault::Cut { .. }) => Beat::End(Ending::Broken { reset: false }),
            Some(Fault::Reset { .. }) => Beat::End(Ending::Broken { reset: true }),
            Some(Fault::Stall { pause, .. }) => {
                self.due = self.due.saturating_add(pause.as_nanos());
                ordinary
            }
            Some(Fault::Status { .. } | Fault::Hang) | None => ordinary,
        };
    }

    /// Plays it to its end at once: when it ends, and how. For answers that are not streamed, which
    /// take as long as if they were.
    pub(crate) fn rehearse(&mut self, in_flight: u64) -> (u64, Ending) {
        let mut unheard = Vec::new();
        loop {
            let due = self.due;
            if let Some(ending) = self.play(in_flight, &mut unheard) {
                return (due, ending);
            }
            unheard.clear();
        }
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script")
            .field("beat", &self.beat)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
