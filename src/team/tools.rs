//! The tools of a teammate: how its model is told of them. The desk carries their calls out.

use serde_json::{Value, json};

use crate::agent::turn::TurnTool;
use crate::model::ToolDescription;
use crate::tool::{DeclaredEffect, Effect};

/// The names of the tools that every teammate has.
pub const TEAM_TOOLS: [&str; 8] =
    ["send_message", "ignore_message", "work_done", "list_team", "task_add", "task_claim", "task_update", "task_list"];

/// The tools that every teammate has. They change nothing outside of the team, so gates let them through.
pub fn team_tools() -> Vec<TurnTool> {
    TEAM_TOOLS
        .iter()
        .map(|name| {
            let (description, schema) = told(name);
            let description = ToolDescription {
                name: (*name).to_owned(),
                description: description.to_owned(),
                schema: schema.into(),
            };
            let mut tool = TurnTool::new(description, true);
            tool.effect = DeclaredEffect::Fixed(Effect::Read);
            tool
        })
        .collect()
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn told(name: &str) -> (&'static str, Value) {
    let text = |what: &str| json!({"type": "string", "description": what});
    let task = || text("the task's id, such as t1");
    match name {
        "send_message" => (
            "Sends a message to others in the team. This is the only way to speak to them: what you write beside tool \
             calls is seen by the user alone. Others overhear it unless it is private.",
            object(
                json!({
                    "to": {"description": "a name, several names in a list, \"all\", or \"lead\" for whoever leads the team",
                           "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
                    "text": text("what you say"),
                    "private": {"type": "boolean", "description": "nobody else overhears it"},
                    "reply_to": text("the id of the message that you answer"),
                    "expects_reply": {"type": "boolean", "description": "you wait for an answer"},
                }),
                &["to", "text"],
            ),
        ),
        "ignore_message" => (
            "Chooses not to answer what came in, and waits for the next message.",
            object(json!({"reason": text("why, in a few words")}), &["reason"]),
        ),
        "work_done" => (
            "Ends your work with a summary for whoever leads the team. A later message to you brings you back.",
            object(json!({"summary": text("what you did and what came of it")}), &["summary"]),
        ),
        "list_team" => ("Lists who is in the team, what they are there for and what they do.", object(json!({}), &[])),
        "task_add" => (
            "Adds a task to the list that the team shares.",
            object(
                json!({
                    "title": text("what is to be done"),
                    "detail": text("more about it"),
                    "depends_on": {"type": "array", "items": {"type": "string"}, "description": "ids of tasks to be done before"},
                }),
                &["title"],
            ),
        ),
        "task_claim" => ("Takes an open task. Only one can have it.", object(json!({"id": task()}), &["id"])),
        "task_update" => (
            "Changes a task of yours. Setting it to open gives it back.",
            object(
                json!({
                    "id": task(),
                    "state": {"enum": ["open", "in_progress", "done", "cancelled"]},
                    "note": text("what there is to say about it"),
                }),
                &["id"],
            ),
        ),
        _ => ("Lists the tasks of the team: state, owner, what they wait for.", object(json!({}), &[])),
    }
}
