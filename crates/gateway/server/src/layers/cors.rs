//! Pages of other origins: which may ask, and which may open a chat (the Fetch standard, CORS).
//!
//! Without the section `cors` a browser lets no page of another origin read an answer, and
//! `WebSocket` chats take only pages of the gateway's own host.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use hyper::{Method, Request, Uri};

use crate::config::spec::CorsSpec;
use crate::layers::{Layer, Setup};

/// What preflights are told that a page may send.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// Which pages may ask.
#[derive(Debug)]
pub(crate) struct Cors {
    /// In lower case; `None` for every origin.
    origins: Option<Vec<String>>,
    credentials: bool,
    expose: Option<HeaderValue>,
    max_age: HeaderValue,
}

impl Layer for Cors {
    type Section = CorsSpec;

    fn new(spec: &CorsSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        if spec.origins.is_empty() {
            return Err("cors: `origins` is empty, so the section allows nothing".to_owned());
        }
        let every = spec.origins.iter().any(|origin| origin == "*");
        if every && spec.credentials {
            return Err("cors: `credentials` needs `origins` by name, not `*`".to_owned());
        }
        if let Some(wrong) = spec.origins.iter().find(|origin| !(is_origin(origin) || every)) {
            return Err(format!("cors: `{wrong}` is not an origin like `https://app.example`"));
        }
        let origins = spec.origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        let expose = HeaderValue::try_from(spec.expose_headers.join(", "));
        let expose = expose.map_err(|_| "cors: `expose_headers` is no list of names".to_owned())?;
        Ok(Self {
            origins: (!every).then_some(origins),
            credentials: spec.credentials,
            expose: Some(expose).filter(|names| !names.is_empty()),
            max_age: spec.max_age.0.as_secs().into(),
        })
    }
}

impl Cors {
    fn allows(&self, origin: &HeaderValue) -> bool {
        let Some(origins) = &self.origins else { return true };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        origins.contains(&origin)
    }

    /// The headers that answer a preflight, a browser's question whether a page may ask. `None` for
    /// all other requests.
    pub(crate) fn preflight<B>(&self, request: &Request<B>) -> Option<HeaderMap> {
        let headers = request.headers();
        let origin = headers.get(ORIGIN)?;
        let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() != Method::OPTIONS || !asks {
            return None;
        }
        let mut answer = HeaderMap::new();
        if self.allows(origin) {
            answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            if let Some(names) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
                answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
            }
            answer.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        }
        self.mark(&mut answer, Some(origin));
        Some(answer)
    }

    /// Tells a browser whether the page may read the response. What an upstream said of it is
    /// replaced.
    pub(crate) fn mark(&self, response: &mut HeaderMap, origin: Option<&HeaderValue>) {
        for name in [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_CREDENTIALS] {
            response.remove(name);
        }
        if self.origins.is_some() {
            response.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = origin.filter(|origin| self.allows(origin)) else { return };
        let allowed = match self.origins {
            Some(_) => origin.clone(),
            None => HeaderValue::from_static("*"),
        };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if self.credentials {
            let yes = HeaderValue::from_static("true");
            response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
        if let Some(names) = &self.expose {
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, names.clone());
        }
    }
}

/// Whether a page may open a chat: no page at all, one of this host, or one that the section names.
pub(crate) fn may_open_chat(cors: Option<&Cors>, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    if cors.is_some_and(|cors| cors.allows(origin)) {
        return true;
    }
    let page = Uri::try_from(origin.as_bytes()).ok();
    let page = page.as_ref().and_then(|page| page.authority());
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    page.zip(host).is_some_and(|(page, host)| page.as_str().eq_ignore_ascii_case(host))
}

fn is_origin(text: &str) -> bool {
    let Ok(uri) = Uri::try_from(text) else { return false };
    let whole = uri.scheme_str().zip(uri.authority());
    whole.is_some_and(|(scheme, host)| {
        format!("{scheme}://{host}").eq_ignore_ascii_case(text) && !host.as_str().contains('@')
    })
}
