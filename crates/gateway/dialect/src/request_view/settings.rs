//! The settings of a request: streaming and token limits.

use serde::Deserialize;

use super::TokenLimits;
use super::members::Members;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::object;

/// Whether the response is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// One whole response.
    No,
    /// A stream of events.
    Yes,
    /// A stream that ends with usage because the request asks for it (chat completions with
    /// `stream_options.include_usage`).
    WithUsage,
}

impl Members<'_> {
    pub(super) fn streaming(&self) -> Result<Streaming, DialectError> {
        match self.get("stream") {
            None | Some("false") => Ok(Streaming::No),
            Some("true") if self.wants_usage()? => Ok(Streaming::WithUsage),
            Some("true") => Ok(Streaming::Yes),
            Some(_) => Err(DialectError::invalid("stream", "must be true or false")),
        }
    }

    fn wants_usage(&self) -> Result<bool, DialectError> {
        #[derive(Deserialize)]
        struct Options {
            include_usage: Option<bool>,
        }
        let Some(options) = self.get("stream_options") else { return Ok(false) };
        object::<Options>(options.as_bytes())
            .map(|options| options.include_usage == Some(true))
            .map_err(|error| DialectError::invalid("stream_options", error))
    }

    /// The number of requested answers.
    pub(super) fn answers(&self, limits: TokenLimits) -> Result<u64, DialectError> {
        let others = limits.answers.unwrap_or(1).max(1);
        let Some(n) = self.get("n") else { return Ok(others) };
        let number = n.parse::<u64>().ok().filter(|number| *number > 0);
        number
            .map(|number| number.max(others))
            .ok_or_else(|| DialectError::invalid("n", "must be a whole number, one or more"))
    }

    pub(super) fn max_tokens(
        &self,
        endpoint: Endpoint,
        limits: TokenLimits,
    ) -> Result<Option<u64>, DialectError> {
        let mut largest = None;
        for name in ["max_completion_tokens", "max_output_tokens", "max_tokens"] {
            let Some(json) = self.get(name) else { continue };
            let number: u64 = json
                .parse()
                .map_err(|_| DialectError::invalid(name, "must be a whole number, zero or more"))?;
            largest = largest.max(Some(number));
        }
        if endpoint == Endpoint::Messages && largest.is_none() {
            return Err(DialectError::missing("max_tokens"));
        }
        let TokenLimits { tokens, unlimited, .. } = limits;
        Ok(if unlimited { None } else { largest.max(tokens) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_view::RequestView;

    /// A chat with these members.
    fn read(members: &str) -> Result<RequestView, DialectError> {
        let messages = r#"[{"role":"user","content":"a"}]"#;
        let body = format!(r#"{{"model":"m","messages":{messages},{members}}}"#);
        RequestView::read(Endpoint::Chat, body.as_bytes())
    }

    #[test]
    fn the_largest_of_the_limits_counts() {
        for (older, newer) in [("5", "9"), ("9", "5")] {
            let members = format!(r#""max_tokens":{older},"max_completion_tokens":{newer}"#);
            assert_eq!(read(&members).unwrap().max_tokens, Some(9));
        }
    }

    #[test]
    fn other_spellings_and_names_of_limits_count() {
        for (members, tokens, answers) in [
            (r#""Max_Tokens":900"#, Some(900), 1),
            (r#""MAX_TOKENS":"900""#, Some(900), 1),
            (r#""max\u005fTokens":900"#, Some(900), 1),
            (r#""maxTokens":900,"N":3"#, Some(900), 3),
            ("\"max_to\u{212a}en\u{17f}\":900", Some(900), 1),
            (r#""max_new_tokens":900,"best_of":4"#, Some(900), 4),
            (r#""options":{"num_predict":900}"#, Some(900), 1),
            (r#""generationConfig":{"maxOutputTokens":900,"candidateCount":2}"#, Some(900), 2),
            (r#""n_predict":-1"#, None, 1),
            (
                r#""Max_Tokens":null,"max_tokens_of_all":9,"options":[{"num_predict":9}]"#,
                Some(7),
                1,
            ),
            (r#""Max_Tokens":3"#, Some(7), 1),
        ] {
            let view = read(&format!(r#""max_tokens":7,{members}"#)).unwrap();
            assert_eq!((view.max_tokens, view.answers), (tokens, answers), "{members}");
        }
    }

    #[test]
    fn the_number_of_answers_is_whole_and_not_zero() {
        let answers = |n: &str| read(&format!(r#""n":{n}"#)).map(|view| view.answers);
        assert_eq!((answers("null"), answers("7")), (Ok(1), Ok(7)));
        for wrong in ["0", "-1", "2.5", "\"3\"", "[]", "99999999999999999999"] {
            assert!(answers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn usage_is_only_reported_in_a_stream_that_asks_for_it() {
        let asks = r#""stream_options":{"include_usage":true}"#;
        let streaming = |members: &str| read(members).map(|view| view.streaming);
        assert_eq!(streaming(&format!(r#""stream":true,{asks}"#)), Ok(Streaming::WithUsage));
        assert_eq!(streaming(r#""stream":true,"stream_options":{}"#), Ok(Streaming::Yes));
        assert_eq!(streaming(r#""stream":true"#), Ok(Streaming::Yes));
        assert_eq!(streaming(asks), Ok(Streaming::No));
        assert!(streaming(r#""stream":1"#).is_err());
    }
}
