//! One chat: its messages in order, each a chat of the upstream.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use plimsoll_gateway_mcp::read_object;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::answer::Answer;
use super::chat_memory::{ChatMemory, Part, READ_BUFFER};
use super::client::{Client, Ended};
use crate::http::connection_slot::ConnectionSlot;
use crate::http::content::is_event_stream;
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::respond::respond_error;
use crate::http::response_body::ResponseBody;
use crate::layers::identity::Identity;
use crate::layers::rate_limit::{self, Caller};
use crate::request_context::RequestContext;
use crate::routes::llm;
use crate::routes::router::{Route, WebSocketChat};
use crate::worker::Worker;
use crate::worker::owners::{NoRoom, owner_of};

/// The largest answer that is read as a whole, in bytes.
const MOST_WHOLE: usize = 4 << 20;
/// Bytes of the dialogue that are kept and sent along; older turns are forgotten.
const MOST_DIALOGUE: usize = 256 << 10;
/// What a turn takes beside its text: an object with two members.
const TURN_BYTES: usize = 512;

/// A message of the client.
#[derive(Debug, Deserialize)]
struct Question {
    message: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    max_tokens: Option<u32>,
}

/// A chat.
pub(super) struct Session {
    worker: Rc<Worker>,
    route: Arc<Route>,
    chat: WebSocketChat,
    client: SocketAddr,
    identity: Identity,
    /// Of the handshake, for the rows.
    request: (Option<Box<str>>, Option<HeaderValue>, Option<HeaderValue>),
    /// The handshake's authorization, for upstreams that get it.
    key: Option<HeaderValue>,
    /// Turns so far, as messages of the API.
    dialogue: VecDeque<Value>,
    memory: ChatMemory,
}

impl Session {
    /// # Errors
    /// There is no memory for it.
    pub(super) fn new(
        context: &RequestContext,
        chat: &WebSocketChat,
        key: Option<HeaderValue>,
    ) -> Result<Self, NoRoom> {
        let (path, agent) = (context.path.clone(), context.user_agent.clone());
        let owner = owner_of(&context.identity, context.client.ip());
        let memory = ChatMemory::new(context.worker.state.owners.begin(owner));
        memory.set(Part::Frames, READ_BUFFER)?;
        Ok(Self {
            worker: Rc::clone(&context.worker),
            route: Arc::clone(&context.route),
            chat: chat.clone(),
            client: context.client,
            identity: context.identity.clone(),
            request: (path, agent, context.request_id.clone()),
            key,
            dialogue: VecDeque::new(),
            memory,
        })
    }

    /// Answers messages until one side ends the chat, or the gateway stops.
    pub(super) async fn run(mut self, upgraded: Upgraded, slot: Option<&ConnectionSlot>) {
        let mut client = Client::new(upgraded, self.memory.clone()).await;
        let ended = tokio::select! {
            ended = self.talk(&mut client) => ended,
            () = stopped(slot) => Some(CloseCode::Away),
        };
        client.close(ended).await;
    }

    async fn talk(&mut self, client: &mut Client) -> Ended {
        loop {
            if let Err(ended) = self.turn(client).await {
                return ended;
            }
        }
    }

    /// Waits for a message, and answers it. A client that ends the chat meanwhile ends the request
    /// to the upstream.
    async fn turn(&mut self, client: &mut Client) -> Result<(), Ended> {
        let limit = self.worker.config().server.websocket_timeout.0;
        let text = client.next_message(limit).await?;
        let response = client.meanwhile(self.answer(&text)).await?;
        let answer = pass(client, response).await?;
        self.remember(&answer.text);
        client.hold(Part::Dialogue, dialogue_bytes(&self.dialogue))?;
        client.hold(Part::Answer, 0)
    }

    /// The response to a message.
    async fn answer(&mut self, text: &str) -> Response<ResponseBody> {
        match read_object::<Question>(text) {
            Ok(question) => self.ask(&question, text.len()).await,
            Err(error) => {
                let problem = format!("send an object with `message`: {error}");
                let error = ErrorResponse::bad_request(problem);
                respond_error(self.context(text.len()), error, ErrorFormat::Typed)
            }
        }
    }

    /// Asks the upstream, through the layers that a chat passes.
    async fn ask(&mut self, question: &Question, bytes: usize) -> Response<ResponseBody> {
        let context = self.context(bytes);
        if let Err(error) = self.check_rate_limits(&context).await {
            return respond_error(context, error, ErrorFormat::Typed);
        }
        self.dialogue.push_back(json!({"role": "user", "content": question.message}));
        self.forget_old_turns();
        let bytes = dialogue_bytes(&self.dialogue);
        let held = self.memory.set(Part::Dialogue, bytes).map_err(ErrorResponse::from);
        let body = match held.and_then(|()| context.made(self.body(question))) {
            Ok(body) => body,
            Err(error) => {
                self.dialogue.pop_back();
                return respond_error(context, error, ErrorFormat::Typed);
            }
        };
        self.send_chat(context, body).await
    }

    /// The request to the upstream.
    fn body(&self, question: &Question) -> String {
        let model = question.model.as_deref().unwrap_or(&self.chat.model);
        let mut chat = json!({
            "model": model,
            "messages": self.dialogue,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if let Some(limit) = question.max_tokens {
            chat["max_tokens"] = limit.into();
        }
        chat.to_string()
    }

    async fn send_chat(&self, context: Box<RequestContext>, body: Bytes) -> Response<ResponseBody> {
        let (parts, format) = (self.parts(), ErrorFormat::Typed);
        Box::pin(llm::serve_chat(context, parts, body, &self.chat.proxy, format)).await
    }

    /// A message is a request of its own, with what is known from the handshake.
    fn context(&self, bytes: usize) -> Box<RequestContext> {
        let (worker, config) = (&self.worker, self.worker.config());
        let mut context =
            RequestContext::new(worker, &config, &self.route, &Method::POST, self.client);
        context.identity = self.identity.clone();
        (context.path, context.user_agent, context.request_id) = self.request.clone();
        context.bytes_received = bytes as u64;
        context
    }

    async fn check_rate_limits(&self, context: &RequestContext) -> Result<(), ErrorResponse> {
        let (config, worker) = (&context.config, &context.worker);
        if self.route.open || config.limits.is_empty() || config.spec.faults.limiter_open {
            return Ok(());
        }
        let caller = Caller { address: self.client.ip(), identity: Some(&self.identity) };
        let metrics = worker.metrics();
        rate_limit::check(&config.limits, &caller, &worker.store, metrics, &mut Vec::new()).await
    }

    fn parts(&self) -> Parts {
        let mut parts = Request::new(()).into_parts().0;
        (parts.method, parts.version) = (Method::POST, Version::HTTP_11);
        parts.uri = Uri::from_static("/v1/chat/completions");
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        parts.headers.extend(self.key.clone().map(|key| (AUTHORIZATION, key)));
        parts
    }

    /// Keeps a turn; one without an answer is forgotten.
    fn remember(&mut self, answer: &str) {
        if answer.is_empty() {
            if self.dialogue.back().is_some_and(|last| last["role"] == "user") {
                self.dialogue.pop_back();
            }
            return;
        }
        self.dialogue.push_back(json!({"role": "assistant", "content": answer}));
        self.forget_old_turns();
    }

    /// Forgets the oldest turns of a dialogue that is too long; the last one stays.
    fn forget_old_turns(&mut self) {
        let mut bytes = dialogue_bytes(&self.dialogue);
        while bytes > MOST_DIALOGUE && self.dialogue.len() > 1 {
            let Some(oldest) = self.dialogue.pop_front() else { break };
            bytes -= turn_bytes(&oldest);
        }
    }
}

fn dialogue_bytes(dialogue: &VecDeque<Value>) -> usize {
    dialogue.iter().map(turn_bytes).sum()
}

fn turn_bytes(turn: &Value) -> usize {
    TURN_BYTES + turn["content"].as_str().map_or(0, str::len)
}

/// Passes a response on to the client.
async fn pass(client: &mut Client, response: Response<ResponseBody>) -> Result<Answer, Ended> {
    let mut answer = Answer::default();
    let (parts, body) = response.into_parts();
    if parts.status == StatusCode::OK && is_event_stream(&parts.headers) {
        stream(client, body, &mut answer).await?;
        return Ok(answer);
    }
    let whole = client.meanwhile(Limited::new(body, MOST_WHOLE).collect()).await?;
    let whole = whole.map(Collected::to_bytes).unwrap_or_default();
    client.hold(Part::Answer, 2 * whole.len())?;
    let messages = match parts.status {
        StatusCode::OK => answer.whole(&whole),
        status => answer.refused(status.as_u16(), &whole),
    };
    client.send(messages).await?;
    Ok(answer)
}

/// Passes a stream on, event by event.
async fn stream(
    client: &mut Client,
    mut body: ResponseBody,
    answer: &mut Answer,
) -> Result<(), Ended> {
    loop {
        let messages = match client.meanwhile(body.frame()).await? {
            Some(Ok(frame)) => {
                let messages = answer.feed(frame.data_ref().map_or(&[][..], |data| data));
                client.hold(Part::Answer, answer.held())?;
                messages
            }
            // The end of the body is read too: with it the request is complete.
            None if answer.is_over => return Ok(()),
            None | Some(Err(_)) => {
                let messages = answer.error("upstream_error", "the answer broke off");
                return client.send(messages).await;
            }
        };
        client.send(messages).await?;
    }
}

/// Waits until the gateway stops.
async fn stopped(slot: Option<&ConnectionSlot>) {
    match slot.map(ConnectionSlot::stop) {
        Some(mut stop) => drop(stop.wait_for(|stopped| *stopped).await),
        None => pending().await,
    }
}
