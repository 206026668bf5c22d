use std::sync::Arc;

use serde_json::json;

use super::compare::difference;
use super::*;
use crate::hook::redact::Redactor;
use crate::message::Message;
use crate::model::{Model, Scripted};

fn asking(text: &str) -> Arc<Request> {
    Arc::new(Request { messages: [Message::user(text)].into_iter().collect(), ..Request::default() })
}

#[tokio::test]
async fn a_model_without_a_server_is_recorded_and_replayed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let scripted = Arc::new(Scripted::new(["one", "two"]));
    let recorder = Recorder::new(scripted, &path, Redactor::default()).unwrap();
    let key = "sk-abcdefghijklmnop1234567890";
    let asked = [asking(&format!("first {key}")), asking("second")];
    for request in &asked {
        recorder.complete(Arc::clone(request)).await.unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((text.lines().count(), text.contains(key)), (3, false));

    let replay = Replay::open(&path).unwrap();
    let wrong = replay.complete(asking("third")).await.unwrap_err();
    assert_eq!(wrong.kind, crate::model::FailureKind::Script);
    assert!(
        wrong.message.contains("request.messages[0].content is \"third\"; recorded is \"first [redacted]\""),
        "{wrong}"
    );
    for (request, wanted) in asked.iter().zip(["one", "two"]) {
        assert_eq!(replay.complete(Arc::clone(request)).await.unwrap().content.text(), wanted);
    }
    assert!(replay.complete(asking("x")).await.unwrap_err().message.contains("used up"));
}

#[test]
fn a_file_that_is_no_cassette_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (text, reason) in [
        ("", "does not say that it is a cassette"),
        ("{\"hookwright_cassette\": 2}", "version 2"),
        ("{\"hookwright_cassette\": 1}\n{\"api\": 1}", "line 2"),
        (
            "{\"hookwright_cassette\": 1}\n\n{\"api\": \"x\", \"attempt\": 1, \"request\": {}}",
            "line 3: there is no API",
        ),
    ] {
        let path = folder.path().join("c");
        std::fs::write(&path, text).unwrap();
        let error = Replay::open(&path).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_difference_says_where_it_is() {
    let recorded = json!({"a": [1, {"b": "x [redacted] y"}], "c": 1});
    let differs = |asked: Value| difference(&recorded, &asked, "request").unwrap_or_default();
    assert_eq!(differs(json!({"a": [1, {"b": "x k3y y"}], "c": 1})), "");
    assert_eq!(
        differs(json!({"a": [1, {"b": "x k3y"}], "c": 1})),
        "request.a[1].b is \"x k3y\"; recorded is \"x [redacted] y\""
    );
    assert_eq!(differs(json!({"a": [1], "c": 1})), "request.a has 1 entries; recorded are 2");
    assert_eq!(differs(json!({"c": 1})), "request.a is missing; recorded is [1,{\"b\":\"x [redacted] y\"}]");
    assert_eq!(differs(json!({"a": [1, {"b": "x  y"}], "c": 1, "d": 2})), "request.d is not in the record: 2");
}
