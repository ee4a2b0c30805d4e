//! Tasks: their times, streams, cancellation, input and bounds.

use std::time::{Duration, Instant};

use plimsoll_mock::{Mock, RequestEnd, RpcOutcome};
use serde_json::{Value, json};

use super::{CONFIG, JSON, Names, VERSIONS, code, events, request, rows};
use crate::support::{Client, finish, spawn, wait};

#[test]
fn a_task_works_for_its_latency_and_is_kept_with_its_result() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    for names in VERSIONS {
        let params = names.message("work", &json!({}));
        let start = Instant::now();
        let task = names.inner(&names.result(&mut client, "steps", names.send, &params));
        assert!(start.elapsed() >= Duration::from_millis(30));
        assert_eq!(task["status"]["state"], names.state("completed"));
        assert_eq!(names.text(&task["artifacts"][0]["parts"]).len(), 10);
        let stamp = task["status"]["timestamp"].as_str().unwrap();
        assert!(stamp.starts_with("20") && stamp.ends_with('Z') && stamp.len() == 24, "{stamp}");
        let id = json!({"id": task["id"]});
        assert_eq!(names.result(&mut client, "steps", names.get, &id), task);
        assert_eq!(code(&names.ask(&mut client, "steps", names.cancel, &id)), (200, -32_002));
        // Another agent does not have it.
        assert_eq!(code(&names.ask(&mut client, "long", names.get, &id)), (200, -32_001));
        // Without waiting the task works at first.
        let mut params = names.message("work", &json!({}));
        let flag = if names.is_v1() { "returnImmediately" } else { "blocking" };
        params["configuration"] = json!({flag: names.is_v1()});
        let task = names.inner(&names.result(&mut client, "steps", names.send, &params));
        assert_eq!(task["status"]["state"], names.state("working"));
        assert_eq!(task.get("artifacts"), None);
        let id = json!({"id": task["id"]});
        let start = Instant::now();
        loop {
            let task = names.result(&mut client, "steps", names.get, &id);
            if task["status"]["state"] == names.state("completed") {
                break;
            }
            assert_eq!(task["status"]["state"], names.state("working"));
            assert!(start.elapsed() < Duration::from_secs(5));
        }
        let params = names.message("work", &json!({}));
        let failed = names.inner(&names.result(&mut client, "failing", names.send, &params));
        assert_eq!(failed["status"]["state"], names.state("failed"));
        assert_eq!(failed.get("artifacts"), None);
        let broken = names.ask(&mut client, "broken", names.send, &params);
        assert_eq!(code(&broken), (200, -32_050));
    }
    let log = finish(mock);
    let states: Vec<&str> = rows(&log).iter().map(|row| row.2).filter(|s| !s.is_empty()).collect();
    let count = |wanted: &str| states.iter().filter(|state| **state == wanted).count();
    assert_eq!((count("failed"), count("working") >= 2, count("completed") >= 6), (2, true, true));
    let task = log[0].rpc.as_deref().unwrap().task.clone();
    assert!(task.is_some() && log[1].rpc.as_deref().unwrap().task == task);
}

#[test]
fn a_stream_tells_of_the_task_its_pieces_and_its_end_at_their_times() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    for names in VERSIONS {
        let params = names.message("work", &json!({}));
        let response = names.ask(&mut client, "steps", names.stream, &params);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let found = events(&response);
        let kinds: Vec<String> = found
            .iter()
            .map(|event| {
                if names.is_v1() {
                    event.as_object().unwrap().keys().next().unwrap().clone()
                } else {
                    event["kind"].as_str().unwrap().to_owned()
                }
            })
            .collect();
        let (task, status, piece) = if names.is_v1() {
            ("task", "statusUpdate", "artifactUpdate")
        } else {
            ("task", "status-update", "artifact-update")
        };
        assert_eq!(kinds, [task, status, piece, piece, piece, status]);
        let inner: Vec<Value> = found.iter().map(|event| names.inner(event)).collect();
        let state = |index: usize| inner[index]["status"]["state"].clone();
        assert_eq!(
            [state(0), state(1), state(5)],
            [names.state("submitted"), names.state("working"), names.state("completed"),]
                .map(Value::from)
        );
        let ends: Vec<Value> = [1, 5].map(|index| inner[index]["final"].clone()).into();
        let expected =
            if names.is_v1() { [Value::Null, Value::Null] } else { [json!(false), json!(true)] };
        assert_eq!(ends, expected);
        let pieces = &inner[2..5];
        let flags: Vec<_> =
            pieces.iter().map(|piece| (&piece["append"], &piece["lastChunk"])).collect();
        let (yes, no) = (&json!(true), &json!(false));
        assert_eq!(flags, [(no, no), (yes, no), (yes, yes)]);
        let text = |piece: &Value| names.text(&piece["artifact"]["parts"]);
        let joined: String = pieces.iter().map(text).collect();
        let id = json!({"id": inner[0]["id"]});
        let task = names.result(&mut client, "steps", names.get, &id);
        assert_eq!(names.text(&task["artifacts"][0]["parts"]), joined);
        assert_eq!(joined.len(), 10);
    }
    let log = finish(mock);
    for streamed in log.iter().step_by(2) {
        let rpc = streamed.rpc.as_deref().unwrap();
        assert_eq!(
            (rpc.streamed, rpc.progress, rpc.state.as_deref()),
            (true, 3, Some("completed"))
        );
        // Events that are due together share a chunk.
        let due: Vec<u64> =
            streamed.chunks.iter().map(|chunk| chunk.due - streamed.body_complete).collect();
        assert_eq!(due, [0, 10_000_000, 20_000_000, 30_000_000]);
    }
}

/// Opens a task whose answer takes long, sends that on its own connection, and waits until the task
/// works. It asks at once, since a client that waits for an answer learns the task's id by that.
fn start_long(mock: &Mock, names: &Names, method: &str) -> (Client, Value) {
    let mut client = Client::connect(mock);
    let opening = request(7, names.send, &names.message("work", &json!({})));
    let headers = [JSON, names.header, ("x-mock-ttft", "1ms")];
    let asked = client.post("/a2a/long", &headers, &opening).json();
    let id = names.inner(&asked["result"])["id"].clone();
    let body = request(7, method, &names.message("this one", &json!({"taskId": id})));
    client.send_post("/a2a/long", &[JSON, names.header], &body);
    let mut asking = Client::connect(mock);
    let id = json!({"id": id});
    wait(|| {
        let task = names.result(&mut asking, "long", names.get, &id);
        task["status"]["state"] == names.state("working")
    });
    (client, id)
}

#[test]
fn a_canceled_task_ends_the_answer_that_waits_for_it_on_another_thread() {
    for names in VERSIONS {
        for streamed in [true, false] {
            let mock = spawn(CONFIG);
            let method = if streamed { names.stream } else { names.send };
            let (mut waiting, id) = start_long(&mock, &names, method);
            let start = Instant::now();
            // The third connection is on the thread of the first, so it must not be the one.
            let mut clients = [Client::connect(&mock), Client::connect(&mock)];
            let client = &mut clients[1];
            let canceled = names.result(client, "long", names.cancel, &id);
            assert_eq!(canceled["status"]["state"], names.state("canceled"));
            let response = waiting.response();
            assert!(start.elapsed() < Duration::from_secs(9) && response.complete);
            let last = if streamed {
                names.inner(events(&response).last().unwrap())
            } else {
                names.inner(&response.json()["result"])
            };
            assert_eq!(last["status"]["state"], names.state("canceled"));
            assert_eq!(code(&names.ask(client, "long", names.cancel, &id)), (200, -32_002));
            let log = finish(mock);
            let rows = rows(&log);
            let is_cancelled =
                |outcome, state| outcome == RpcOutcome::Cancelled && state == "canceled";
            let cancelled = rows.iter().filter(|row| is_cancelled(row.3, row.2));
            assert_eq!(cancelled.count(), 1);
            assert!(log.iter().all(|record| record.end == Some(RequestEnd::Completed)));
        }
    }
}

impl Names {
    /// The task's id and the last that is told of it, from an answer in either form.
    fn last(&self, client: &mut Client, method: &str, params: &Value) -> (Value, Value) {
        let response = self.ask(client, "asking", method, params);
        let told = if method == self.stream {
            events(&response)
        } else {
            vec![response.json()["result"].clone()]
        };
        let last = told.last().unwrap();
        (self.inner(&told[0])["id"].clone(), self.inner(last))
    }
}

#[test]
fn a_task_that_asks_for_input_goes_on_with_the_answer_and_takes_no_other() {
    let mock = spawn(CONFIG);
    let mut client = Client::connect(&mock);
    for names in VERSIONS {
        for streamed in [false, true] {
            let method = if streamed { names.stream } else { names.send };
            let (id, asked) = names.last(&mut client, method, &names.message("which", &json!({})));
            assert_eq!(asked["status"]["state"], names.state("input-required"));
            let question = &asked["status"]["message"];
            assert!(!names.text(&question["parts"]).is_empty());
            assert_eq!(question["taskId"], id);
            let other = names.message("x", &json!({"taskId": id, "contextId": "other"}));
            assert_eq!(code(&names.ask(&mut client, "asking", method, &other)), (200, -32_602));
            let answer = names.message("this one", &json!({"taskId": id}));
            let (again, done) = names.last(&mut client, method, &answer);
            assert_eq!((&again, &done["status"]["state"]), (&id, &json!(names.state("completed"))));
            let task = names.result(&mut client, "asking", names.get, &json!({"id": id}));
            assert_eq!(names.text(&task["artifacts"][0]["parts"]), "this one");
            let refused = names.ask(&mut client, "asking", method, &answer);
            assert_eq!(code(&refused), (200, -32_004));
        }
    }
    let log = finish(mock);
    let asked = rows(&log).iter().filter(|row| row.2 == "input-required").count();
    assert_eq!(asked, 4);
}

#[test]
fn tasks_are_bounded() {
    let mock = spawn(
        "{a2a: {max_tasks: 4, agents: {quick: {answer: task, echo: true},
            long: {answer: task, latency: 20s}}}}",
    );
    let mut client = Client::connect(&mock);
    let names = &VERSIONS[0];
    let ids: Vec<Value> = (0..6)
        .map(|_| {
            let params = names.message("text", &json!({}));
            let task = names.inner(&names.result(&mut client, "quick", names.send, &params));
            json!({"id": task["id"]})
        })
        .collect();
    for (place, id) in ids.iter().enumerate() {
        let response = names.ask(&mut client, "quick", "GetTask", id);
        // The oldest have made room.
        let expected = if place < 2 { json!(-32_001) } else { Value::Null };
        assert_eq!(response.json()["error"]["code"], expected, "{place}");
    }
    // Tasks that work are not forgotten.
    let mut params = names.message("work", &json!({}));
    params["configuration"] = json!({"returnImmediately": true});
    for _ in 0..4 {
        assert_eq!(names.ask(&mut client, "long", names.send, &params).status, 200);
    }
    let refused = names.ask(&mut client, "long", names.send, &params);
    assert_eq!(code(&refused), (503, -32_603));
}
