//! A teammate's desk: what its turns see of the team.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::envelope::Draft;
use super::error::TeamError;
use super::history::mark;
use super::office::Office;
use super::progress::fingerprint;
use super::render;
use super::status::Status;
use super::task::TaskState;
use super::tools::TEAM_TOOLS;
use crate::agent::LimitReached;
use crate::agent::turn::{Desk, DeskAnswer, Doing, Letter};
use crate::message::{Message, ToolCall, Usage};
use crate::model::Request;
use crate::tool::ToolError;

/// How many rounds in a row letters are held before they go through.
const HOLDS: u32 = 2;

/// What the turns of one teammate see of its team.
pub struct MemberDesk {
    office: Arc<Office>,
    name: String,
}

impl MemberDesk {
    /// The desk of a member.
    pub fn new(office: Arc<Office>, name: impl Into<String>) -> Self {
        MemberDesk { office, name: name.into() }
    }

    fn done(&self, result: Result<String, TeamError>) -> DeskAnswer {
        DeskAnswer::Done(result.map(Value::from).map_err(|error| error.to_tool_error()))
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts(arguments: &Map<String, Value>, name: &str) -> Vec<String> {
    match arguments.get(name) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect(),
        _ => Vec::new(),
    }
}

/// The letter that a call of `send_message` sends.
fn draft(call: &ToolCall) -> Draft {
    let empty = Map::new();
    let arguments = call.arguments().unwrap_or(&empty);
    let flag = |name: &str| arguments.get(name).and_then(Value::as_bool).unwrap_or_default();
    Draft {
        to: texts(arguments, "to"),
        text: text(arguments, "text").to_owned(),
        private: flag("private"),
        reply_to: Some(text(arguments, "reply_to").to_owned()).filter(|id| !id.is_empty()),
        expects_reply: flag("expects_reply"),
        id: None,
    }
}

impl Desk for MemberDesk {
    fn incoming(&self) -> Option<Message> {
        let taken = self.office.take(&self.name);
        if taken.is_empty() {
            return None;
        }
        let held = self.office.with(|state| {
            state.member_mut(&self.name).map(|member| std::mem::take(&mut member.held)).unwrap_or_default()
        });
        let mut message = Message::user(render::mail(&taken, &held)).from_sender(render::sender(&taken));
        mark(&mut message, taken.marks());
        Some(message)
    }

    fn stored(&self) {
        self.office.stored(&self.name);
    }

    fn limit(&self) -> Option<LimitReached> {
        self.office.limit_reached(&self.name)
    }

    fn round(&self, request: &Arc<Request>) {
        self.office.round(&self.name, request);
    }

    fn spent(&self, usage: Usage, cost: f64, calls: usize) {
        self.office.spent(&self.name, usage, cost, calls as u64);
    }

    fn doing(&self, doing: Doing) {
        let status = match doing {
            Doing::Thinking => Status::Thinking,
            Doing::Working(tools) => Status::Working { tools },
            Doing::Compacting => Status::Compacting,
            Doing::Retrying { attempt, of, delay, error } => Status::Retrying { attempt, of, delay, error },
        };
        self.office.set_status(&self.name, status);
    }

    fn held(&self, calls: &[ToolCall]) -> BTreeMap<usize, String> {
        let of = |name: &str| -> Vec<usize> {
            calls.iter().enumerate().filter(|(_, call)| call.name == name).map(|(index, _)| index).collect()
        };
        let (letters, done) = (of("send_message"), of("work_done"));
        if letters.is_empty() && done.is_empty() {
            return BTreeMap::new();
        }
        self.office.with(|state| {
            let mut held = BTreeMap::new();
            let Some(member) = state.member_mut(&self.name) else { return held };
            let news = member.mail.new_len() > 0;
            let holds_letters = news && !letters.is_empty() && member.holds < HOLDS;
            let holds_done = news && !done.is_empty() && (!member.done_held || holds_letters);
            if !letters.is_empty() {
                member.holds = if holds_letters { member.holds + 1 } else { 0 };
            }
            if !done.is_empty() {
                member.done_held = holds_done;
            }
            for index in letters.iter().filter(|_| holds_letters) {
                let Draft { to, text, .. } = draft(&calls[*index]);
                member.held.push(format!("to {}: {text}", to.join(", ")));
                held.insert(
                    *index,
                    "[held] Not sent: new messages came in while you were writing. They follow.".into(),
                );
            }
            for index in done.iter().filter(|_| holds_done) {
                let summary = calls[*index].arguments().ok().map(|arguments| text(arguments, "summary").to_owned());
                member.held.push(format!("work_done: {}", summary.unwrap_or_default()));
                held.insert(*index, "[held] Not done yet: new messages came in. They follow.".into());
            }
            if !held.is_empty() {
                let calls: Vec<_> = held.keys().map(|index| calls[*index].id.as_str()).collect();
                let (calls, name) = (json!(calls), self.name.clone());
                state.emit("held", &name, || json!({"why": "new messages", "calls": calls}));
            }
            held
        })
    }

    fn refuse(&self, call: &ToolCall) -> Option<ToolError> {
        // What changes a file in turn: the same edits of the same file over and over, by whomever.
        let arguments = call.arguments().ok()?;
        let path = ["path", "file_path", "file"].iter().find_map(|name| arguments.get(*name)?.as_str())?;
        if arguments.len() < 2 || self.handles(&call.name) {
            return None;
        }
        let what = fingerprint(&[&self.name, &call.name, &call.arguments_json()]);
        let goes_on = self.office.with(|state| state.progress.note(format!("file {path}"), what));
        let what = format!("the same calls change {path} to and fro");
        (!goes_on).then(|| TeamError::NoProgress { what }.to_tool_error())
    }

    fn handles(&self, tool: &str) -> bool {
        TEAM_TOOLS.contains(&tool)
    }

    fn call(&self, call: &ToolCall) -> DeskAnswer {
        let empty = Map::new();
        let arguments = call.arguments().unwrap_or(&empty);
        let office = &self.office;
        match call.name.as_str() {
            "send_message" => {
                let draft = draft(call);
                match office.recipients(&self.name, &draft) {
                    Ok(recipients) => DeskAnswer::Letter(Letter { recipients, text: draft.text, call: call.clone() }),
                    Err(error) => self.done(Err(error)),
                }
            }
            "ignore_message" => {
                office.ignore(&self.name, text(arguments, "reason"));
                self.done(Ok("You wait for the next message.".into()))
            }
            "work_done" => {
                office.say_done(&self.name, text(arguments, "summary"));
                self.done(Ok("Your work is done; the lead has your summary.".into()))
            }
            "list_team" => self.done(Ok(office.team_list(&self.name))),
            "task_add" => {
                let title = text(arguments, "title");
                let depends_on = texts(arguments, "depends_on");
                let added = office.add_task(&self.name, title, text(arguments, "detail"), &depends_on);
                self.done(added.map(|task| render::task(&task)))
            }
            "task_claim" => {
                self.done(office.claim_task(&self.name, text(arguments, "id")).map(|task| render::task(&task)))
            }
            "task_update" => {
                let state = arguments.get("state").cloned();
                let state = state.and_then(|state| serde_json::from_value::<TaskState>(state).ok());
                let note = arguments.get("note").and_then(Value::as_str);
                let updated = office.update_task(&self.name, text(arguments, "id"), state, note);
                self.done(updated.map(|task| render::task(&task)))
            }
            _ => self.done(Ok(render::tasks(&office.tasks()))),
        }
    }

    fn send(&self, letter: Letter) -> Result<Value, ToolError> {
        let draft = Draft { to: letter.recipients, text: letter.text, ..draft(&letter.call) };
        let receipt = self.office.send(&self.name, draft).map_err(|error| error.to_tool_error())?;
        let to = receipt.envelope.recipients.join(", ");
        let wakes = if receipt.addressed.is_empty() { ", who overhear it" } else { "" };
        Ok(Value::from(format!("sent to {to}{wakes} ({})", receipt.envelope.id)))
    }

    fn sender(&self) -> &str {
        &self.name
    }

    fn is_over(&self) -> bool {
        self.office
            .with(|state| state.member(&self.name).is_some_and(|member| member.is_done || member.ignores.is_some()))
    }
}
