//! Conversations with tool servers and agents.

use plimsoll_measure::Nanos;
use plimsoll_protocol::{Text, rpc};

use super::{Conversation, CurrentRequest};
use crate::prompt_builder::{Preamble, PromptPart};
use crate::session::{RpcEnd, Texts};
use crate::synthetic_text::WORD_BYTES;

impl Conversation {
    /// The answer that the current turn's message to a tool server or an agent expects; `None` for
    /// other turns, and when the message was [released](Self::release_text).
    pub fn expectation(&self) -> Option<rpc::Expectation> {
        let message = match (&self.request, &self.task) {
            (CurrentRequest::Rpc(message), _) => &**message,
            (_, Some(task)) => task.request()?.message()?,
            (_, None) => return None,
        };
        Some(message.expectation())
    }

    /// After what time the scenario gives up the current turn.
    pub fn cancel_after(&self) -> Option<Nanos> {
        self.session.as_ref()?.cancel_after()
    }

    /// Takes note of how the current turn's message to a tool server or an agent ended. Whether the
    /// conversation goes on: an error of JSON-RPC does not end a session, and one that cannot go on
    /// has its deletion left; after that it has ended early. The task of an agent goes on after a
    /// success. To be called before [`Conversation::advance_with`].
    pub fn note_answer(&mut self, end: RpcEnd) -> bool {
        if let Some(session) = &mut self.session {
            return session.note(end);
        }
        let Some(task) = &mut self.task else { return end.is_completed() };
        task.note(&end);
        end.is_completed() || task.is_closing()
    }

    /// The pause before the current turn of a conversation with a tool server or an agent.
    pub(super) fn has_pause(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_thinking())
    }

    /// Moves such a conversation on; `false` if it is another one.
    pub(super) fn advance_session(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        session.advance();
        self.turn = self.turn.saturating_add(1);
        self.request = self.rpc_request();
        true
    }

    /// The request of the current turn.
    pub(super) fn rpc_request(&self) -> CurrentRequest {
        let request = self.session.as_ref().and_then(|session| session.request(self));
        request.map_or(CurrentRequest::Released, |request| CurrentRequest::Rpc(Box::new(request)))
    }
}

impl Texts for Conversation {
    fn message(&self, step: u16) -> Text {
        let text = self.spec().user_text(self.seed, step);
        self.workload.prompts.build(&self.preamble(self.turn), &text)
    }

    fn sized(&self, bytes: u32) -> String {
        let bytes = bytes as usize;
        let tokens = u32::try_from(bytes.div_ceil(WORD_BYTES)).unwrap_or(u32::MAX);
        let preamble = Preamble { prefix: None, ..self.preamble(self.turn) };
        let words = PromptPart::Words(self.seed.rng("argument", self.turn.into()), tokens);
        let mut text = match bytes {
            0 => String::new(),
            _ => self.workload.prompts.build(&preamble, &words).to_string(),
        };
        text.truncate(text.floor_char_boundary(bytes));
        // With a tokenizer, words may have fewer bytes than by the estimate.
        text.extend(std::iter::repeat_n(' ', bytes - text.len()));
        text
    }

    fn message_id(&self) -> String {
        self.turn_id().to_string()
    }
}
