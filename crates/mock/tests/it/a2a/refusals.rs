//! Messages that the agents reject, with the status and the code.

use serde_json::{Value, json};

use super::{JSON, V1, V03, VERSIONS, code, events, request};
use crate::support::{Client, finish, spawn};

/// Headers and body, and the status and code that they get.
type Case = (Vec<(&'static str, &'static str)>, String, u16, i64);

fn good() -> Value {
    VERSIONS[0].message("hello", &json!({}))
}

/// Faults of a message, its envelope or its version.
fn wrong_messages() -> Vec<Case> {
    let (good, old) = (good(), VERSIONS[1].message("hello", &json!({})));
    let with = |path: &str, value: Value| {
        let mut params = good.clone();
        *params.pointer_mut(path).unwrap() = value;
        send_message(&params)
    };
    let batch = format!("[{}]", send_message(&good));
    vec![
        (vec![V1], "{".to_owned(), 200, -32_700),
        (vec![V1], String::new(), 200, -32_700),
        (vec![V1], "[]".to_owned(), 200, -32_600),
        (vec![V1], batch, 200, -32_600),
        (vec![V1], send_message(&good).replace("2.0", "1.0"), 200, -32_600),
        (vec![V1], request(Value::Null, "SendMessage", &good), 200, -32_600),
        (vec![V1], request(json!({}), "SendMessage", &good), 200, -32_600),
        (
            vec![V1],
            r#"{"jsonrpc":"2.0","method":"SendMessage","params":{}}"#.to_owned(),
            200,
            -32_600,
        ),
        (vec![V1], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), 200, -32_600),
        (
            vec![V1],
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":[]}"#.to_owned(),
            200,
            -32_602,
        ),
        (vec![V1], request(1, "NoSuchMethod", &good), 200, -32_601),
        (vec![V1], request(1, "tasks/list", &json!({})), 200, -32_601),
        (vec![], send_message(&good), 200, -32_009),
        (vec![V03], send_message(&good), 200, -32_009),
        (vec![("a2a-version", "9.0")], send_message(&good), 200, -32_009),
        (vec![("a2a-version", "é")], send_message(&good), 200, -32_009),
        (vec![V1], request(1, "message/send", &old), 200, -32_603),
        (vec![V1], send_message(&old), 200, -32_602),
        (vec![], request(1, "message/send", &good), 200, -32_602),
        (vec![V1], with("/message/parts", json!([])), 200, -32_602),
        (vec![V1], with("/message/role", json!("ROLE_AGENT")), 200, -32_602),
    ]
}

fn send_message(params: &Value) -> String {
    request(1, "SendMessage", params)
}

/// Unsupported operations of the agents.
fn wrong_wishes() -> Vec<Case> {
    let good = good();
    let configured = |configuration: Value| {
        let mut params = good.clone();
        params["configuration"] = configuration;
        send_message(&params)
    };
    vec![
        (vec![V1], configured(json!({"returnImmediately": 1})), 200, -32_602),
        (vec![V1], request(1, "CreateTaskPushNotificationConfig", &json!({})), 200, -32_003),
        (vec![V1], request(1, "ListTasks", &json!({})), 200, -32_601),
        (vec![V1], request(1, "SubscribeToTask", &json!({})), 200, -32_601),
        (vec![V1], request(1, "GetTask", &json!({})), 200, -32_602),
        (vec![V1], request(1, "GetTask", &json!({"id": "0".repeat(32)})), 200, -32_001),
        (vec![V1], request(1, "CancelTask", &json!({"id": "é"})), 200, -32_001),
        (vec![V1, ("x-mock-status", "503")], send_message(&good), 503, -32_603),
    ]
}

#[test]
fn bad_input_gets_its_status_and_code_and_the_connection_stays() {
    let mock = spawn("{log: memory}");
    let mut client = Client::connect(&mock);
    let rows = [wrong_messages(), wrong_wishes()].concat();
    let count = rows.len();
    for (headers, body, status, expected) in rows {
        let response = client.post("/a2a", &[&[JSON], headers.as_slice()].concat(), &body);
        assert_eq!(code(&response), (status, expected), "{headers:?} {body}");
        if !response.complete {
            client = Client::connect(&mock);
        }
    }
    let unknown = VERSIONS[0].message("x", &json!({"taskId": "0".repeat(32)}));
    assert_eq!(code(&client.post("/a2a", &[JSON, V1], &send_message(&unknown))), (200, -32_001));
    assert_eq!(client.post("/a2a", &[JSON, V1], &send_message(&good())).status, 200);
    let log = finish(mock);
    let refused = log.iter().filter(|record| record.rpc.as_deref().unwrap().code.is_some());
    assert_eq!((log.len(), refused.count()), (count + 2, count + 1));
}

#[test]
fn unknown_agents_methods_and_types_are_refused_by_their_status() {
    let mock = spawn("{log: memory}");
    let mut client = Client::connect(&mock);
    let body = request(1, "SendMessage", &VERSIONS[0].message("x", &json!({})));
    assert_eq!(code(&client.post("/a2a/none", &[JSON, V1], &body)), (404, -32_600));
    assert_eq!(code(&client.post("/a2a", &[V1], &body)), (415, -32_600));
    let get = client.get("/a2a");
    assert_eq!((code(&get), get.header("allow")), ((405, -32_600), Some("POST")));
    assert_eq!(client.get("/a2a/none").status, 405);
    let log = finish(mock);
    assert_eq!(log[0].rpc.as_deref().unwrap().agent.as_deref(), Some("none"));
    assert_eq!(log[1].rpc.as_deref().unwrap().agent.as_deref(), Some("echo"));
}

#[test]
fn errors_of_version_1_say_their_reason() {
    let mock = spawn("{}");
    let mut client = Client::connect(&mock);
    let id = json!({"id": "x"});
    let new = client.post("/a2a", &[JSON, V1], &request(1, "GetTask", &id));
    assert_eq!(new.header("content-type"), Some("application/json"));
    let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org", "metadata": {}});
    assert_eq!(new.json()["error"]["data"], json!([info]));
    let old = client.post("/a2a", &[JSON], &request(1, "tasks/get", &id));
    assert_eq!(old.json()["error"], json!({"code": -32_001, "message": "Task not found"}));
    // The default agents: one asks, one takes its time.
    let slow = VERSIONS[0].message("x", &json!({}));
    let headers = [JSON, V1, ("x-mock-ttft", "1ms")];
    let response = client.post("/a2a/slow", &headers, &request(7, "SendStreamingMessage", &slow));
    assert_eq!(events(&response).len(), 7);
    let asked = client.post("/a2a/asking", &headers, &request(7, "SendMessage", &slow)).json();
    assert_eq!(asked["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
}
