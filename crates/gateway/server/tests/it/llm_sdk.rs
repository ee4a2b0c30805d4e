//! The official SDKs of OpenAI and Anthropic as clients of the gateway. Needs Python, Node.js and
//! package registries.

use plimsoll_gateway_server::Gateway;

use super::support::sdk::{SdkServer, run_client};
use super::support::{CHAT, MESSAGES, gateway};

/// A gateway whose routes have upstreams of these dialects, all of them this provider.
fn before(port: u16, chat: &str, messages: &str) -> Gateway {
    gateway(&format!(
        "upstreams:
  openai: {{addresses: ['127.0.0.1:{port}'], dialect: openai}}
  anthropic: {{addresses: ['127.0.0.1:{port}'], dialect: anthropic}}
routes:
  - {{name: chat, path: {CHAT}, upstream: {chat}, llm: true}}
  - {{name: messages, path: {MESSAGES}, upstream: {messages}, llm: true}}"
    ))
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn the_official_clients_get_what_the_provider_gives_them_itself() {
    let provider = SdkServer::start("llm", "llm_provider.py", &[]);
    let same = before(provider.port, "openai", "anthropic");
    let crossed = before(provider.port, "anthropic", "openai");
    let urls = [same.addr(), crossed.addr()].map(|addr| format!("http://{addr}"));
    let urls = format!("http://127.0.0.1:{},{}", provider.port, urls.join(","));
    for (sdk, client) in [("llm", "gateway_llm.py"), ("node", "gateway_llm.mjs")] {
        // 40 conversations by two SDKs, whole and streamed, through two gateways.
        assert_eq!(run_client(sdk, client, &urls).trim(), "40 320", "{client:?}");
    }
}
