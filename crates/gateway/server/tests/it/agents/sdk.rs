//! The official SDKs of A2A on both sides of the gateway. Needs Python, Node.js and package
//! registries.

use serde_json::{Value, json};

use crate::support::client::post;
use crate::support::sdk::{SdkServer, run_client};
use crate::support::{gateway, until};

const AGENTS: [(&str, &str); 2] = [("a2a", "a2a_agent.py"), ("node", "a2a_agent.mjs")];
const CLIENTS: [(&str, &str); 2] = [("a2a", "gateway_a2a.py"), ("node", "gateway_a2a.mjs")];

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_clients_talk_to_the_official_agents_through_the_gateway() {
    for (sdk, agent) in AGENTS {
        let agent = SdkServer::start(sdk, agent, &[]);
        for client in CLIENTS {
            for layers in ["", "policy: {}\nscrub: {}\n"] {
                talk(&agent, client, layers);
            }
        }
    }
}

/// Lets a client talk to an agent through a gateway with these layers, and then the gateway itself.
fn talk(agent: &SdkServer, client: (&str, &str), layers: &str) {
    let gateway = gateway(&format!(
        "{layers}agents: {{agents: {{known: {{loud: {{url: 'http://127.0.0.1:{}/rpc'}}}}, \
         allow: {{'*': ['*']}}}}}}",
        agent.port
    ));
    let counted = run_client(client.0, client.1, &format!("http://{}", gateway.addr()));
    let counted: u64 = counted.trim().parse().unwrap();
    until("all are counted", || gateway.served() >= counted);
    assert_eq!(gateway.served(), counted, "the gateway saw each of its requests");
    let body = json!({"agent": "loud", "message": "hi\n"});
    let reply = post(gateway.addr(), "/v1/a2a/send", &[], &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let pieces = reply.json()["result"]["artifacts"][0]["parts"].as_array().cloned();
    let text: String = pieces
        .into_iter()
        .flatten()
        .filter_map(|part: Value| part["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "HI\n");
}
