//! The settings of a request: streaming and token limits.

use serde::Deserialize;

use super::token_limits::TokenLimits;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::Object;

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

/// The members of a request that are not text, as JSON.
#[derive(Debug, Default)]
pub(super) struct Settings<'a> {
    pub(super) stream: Option<&'a str>,
    pub(super) stream_options: Option<&'a str>,
    pub(super) max_tokens: Option<&'a str>,
    pub(super) max_completion_tokens: Option<&'a str>,
    pub(super) max_output_tokens: Option<&'a str>,
    pub(super) n: Option<&'a str>,
    pub(super) tools: Option<&'a str>,
    pub(super) limits: TokenLimits,
}

impl Settings<'_> {
    pub(super) fn streaming(&self) -> Result<Streaming, DialectError> {
        match self.stream {
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
        let Some(options) = self.stream_options else { return Ok(false) };
        serde_json::from_str::<Object<Options>>(options)
            .map(|options| options.0.include_usage == Some(true))
            .map_err(|error| DialectError::invalid("stream_options", error))
    }

    pub(super) fn has_tools(&self) -> bool {
        self.tools.is_some_and(|tools| tools != "[]")
    }

    /// The number of answers that are asked for.
    pub(super) fn answers(&self) -> Result<u64, DialectError> {
        let others = self.limits.answers.unwrap_or(1).max(1);
        let Some(raw) = self.n else { return Ok(others) };
        let number = raw.parse::<u64>().ok().filter(|number| *number > 0);
        number
            .map(|number| number.max(others))
            .ok_or_else(|| DialectError::invalid("n", "must be a whole number, one or more"))
    }

    pub(super) fn max_tokens(&self, endpoint: Endpoint) -> Result<Option<u64>, DialectError> {
        let limits = [
            ("max_completion_tokens", self.max_completion_tokens),
            ("max_output_tokens", self.max_output_tokens),
            ("max_tokens", self.max_tokens),
        ];
        let mut largest = None;
        for (name, raw) in limits {
            let Some(raw) = raw else { continue };
            let number: u64 = raw
                .parse()
                .map_err(|_| DialectError::invalid(name, "must be a whole number, zero or more"))?;
            largest = largest.max(Some(number));
        }
        if endpoint == Endpoint::Messages && largest.is_none() {
            return Err(DialectError::missing("max_tokens"));
        }
        let TokenLimits { tokens, unlimited, .. } = self.limits;
        Ok(if unlimited { None } else { largest.max(tokens) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_view::RequestView;

    #[test]
    fn the_largest_of_the_limits_counts() {
        for (older, newer) in [("5", "9"), ("9", "5")] {
            let settings = Settings {
                max_tokens: Some(older),
                max_completion_tokens: Some(newer),
                ..Settings::default()
            };
            assert_eq!(settings.max_tokens(Endpoint::Chat), Ok(Some(9)));
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
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"a"}}],"max_tokens":7,{members}}}"#
            );
            let view = RequestView::read(Endpoint::Chat, body.as_bytes()).unwrap();
            assert_eq!((view.max_tokens(), view.answers()), (tokens, answers), "{members}");
        }
    }

    #[test]
    fn the_number_of_answers_is_whole_and_not_zero() {
        let answers = |n| Settings { n, ..Settings::default() }.answers();
        assert_eq!((answers(None), answers(Some("7"))), (Ok(1), Ok(7)));
        for wrong in ["0", "-1", "2.5", "\"3\"", "[]", "99999999999999999999"] {
            assert!(answers(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn usage_is_only_reported_in_a_stream_that_asks_for_it() {
        let streaming = |stream, stream_options| {
            Settings { stream, stream_options, ..Settings::default() }.streaming()
        };
        let asks = Some(r#"{"include_usage":true}"#);
        assert_eq!(streaming(Some("true"), asks), Ok(Streaming::WithUsage));
        assert_eq!(streaming(Some("true"), Some("{}")), Ok(Streaming::Yes));
        assert_eq!(streaming(Some("true"), None), Ok(Streaming::Yes));
        assert_eq!(streaming(None, asks), Ok(Streaming::No));
        assert!(streaming(Some("1"), None).is_err());
    }
}
