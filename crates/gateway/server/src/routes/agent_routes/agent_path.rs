//! The path of a message through agents. It is sent in a header, which agents that call back
//! through the gateway forward, so that loops and endless chains are detected.

use hyper::HeaderMap;
use hyper::header::HeaderValue;

use crate::http::error_response::ErrorResponse;
use crate::layers::agent_layer::{MAX_DEPTH, PATH_HEADER, is_name};

const NO_AGENTS: &str = "the path names no agents";

/// The agents that received a message, including the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentPath(Vec<String>);

impl AgentPath {
    /// The path of a request, including the next agent. `named` is the path in the body; a header
    /// must equal it.
    ///
    /// # Errors
    /// `agent_loop`: the agent already received the message. `agent_depth`: too many agents. An
    /// unreadable path.
    pub(super) fn next(
        headers: &HeaderMap,
        named: Option<Vec<String>>,
        agent: &str,
    ) -> Result<Self, ErrorResponse> {
        let sent = headers.get(&PATH_HEADER).map(read).transpose()?;
        let mut path = match (sent, named) {
            (Some(sent), Some(named)) if sent != named => {
                let message = "`path` and the header `x-agent-path` differ";
                return Err(ErrorResponse::bad_request(message));
            }
            (Some(path), _) | (None, Some(path)) => path,
            (None, None) => Vec::new(),
        };
        if !path.iter().all(|name| is_name(name)) {
            return Err(ErrorResponse::bad_request(NO_AGENTS));
        }
        if path.iter().any(|name| name == agent) {
            let message = format!("the agent `{agent}` had this message before");
            return Err(ErrorResponse::agent_loop(message));
        }
        if path.len() >= MAX_DEPTH {
            let message = format!("a message goes through at most {MAX_DEPTH} agents");
            return Err(ErrorResponse::agent_depth(message));
        }
        path.push(agent.to_owned());
        Ok(Self(path))
    }

    /// The number of agents in it.
    pub(super) const fn depth(&self) -> usize {
        self.0.len()
    }

    /// The value of the header for the next agent.
    ///
    /// # Errors
    /// Never: names are valid header values.
    pub(super) fn header(&self) -> Result<HeaderValue, ErrorResponse> {
        HeaderValue::try_from(self.0.join(",")).map_err(|_| {
            ErrorResponse::internal_error("the agent's name is not a valid header value")
        })
    }
}

fn read(value: &HeaderValue) -> Result<Vec<String>, ErrorResponse> {
    let text = value.to_str();
    let text = text.map_err(|_| ErrorResponse::bad_request(NO_AGENTS))?;
    Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(header: Option<&str>, named: Option<&[&str]>) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(&PATH_HEADER, header.parse().unwrap());
        }
        let named = named.map(|named| named.iter().map(|name| (*name).to_owned()).collect());
        let path = AgentPath::next(&headers, named, "z");
        path.map(|path| path.header().unwrap().to_str().unwrap().to_owned())
            .map_err(|error| error.kind)
    }

    #[test]
    fn a_path_grows_by_one_and_ends_at_five() {
        assert_eq!(next(None, None), Ok("z".to_owned()));
        assert_eq!(next(Some("a"), None), Ok("a,z".to_owned()));
        assert_eq!(next(None, Some(&["a", "b"])), Ok("a,b,z".to_owned()));
        assert_eq!(next(None, Some(&[])), Ok("z".to_owned()));
        assert_eq!(next(Some("a, b"), Some(&["a", "b"])), Ok("a,b,z".to_owned()));
        assert_eq!(next(Some("a,b,c,d"), None), Ok("a,b,c,d,z".to_owned()));
        assert_eq!(next(Some("a,b,c,d,e"), None), Err("agent_depth"));
        assert_eq!(next(Some(&"a,".repeat(900).replace(",,", ",")), None), Err("invalid_request"));
    }

    #[test]
    fn a_loop_is_found_wherever_it_closes() {
        for path in ["z", "a,z", "z,a", "a,z,b", "a,b,c,d,z", "z,a,b,c,d,e,f"] {
            assert_eq!(next(Some(path), None), Err("agent_loop"), "{path}");
        }
        for path in ["", ",", "a,,b", "A", "a b", "zz z", "a;b", "\"z\""] {
            assert_eq!(next(Some(path), None), Err("invalid_request"), "{path}");
        }
        assert_eq!(next(Some("a"), Some(&["b"])), Err("invalid_request"), "they differ");
        assert_eq!(next(Some("z"), Some(&[])), Err("invalid_request"), "nobody forgets a header");
    }
}
