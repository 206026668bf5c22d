//! What became of a call, shown to hooks and put into the history.

use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{Batch, State, arguments_of, cancelled_error, denial, unchecked};
use super::flow::Run;
use super::{CallRecord, Ending, RunEvent};
use crate::context::SAVED_WHOLE;
use crate::hook::{Event, Field};
use crate::message::{Message, ToolCall};
use crate::model::with_context;
use crate::tool::workspace::capped;
use crate::tool::{ToolError, failure_of};

/// The folder beside a transcript that holds what was too long to be shown.
const RESULTS: &str = "results";

impl Run {
    /// Shows the result of a call to hooks and puts it into the history.
    pub(super) async fn tell(&mut self, batch: &mut Batch, index: usize) -> Result<(), Ending> {
        let state = std::mem::replace(&mut batch.states[index], State::Told);
        let call = batch.call(index).clone();
        match state {
            State::Value { value, elapsed, ran } => self.tell_value(call, value, elapsed, ran).await,
            // It was not judged and not run: there is nothing for hooks to see.
            State::Failure { error, cause: "held", elapsed, ran } => {
                self.record(&call, error.detail, Some("held"), elapsed, ran)
            }
            State::Failure { error, cause, elapsed, ran } => {
                self.tell_failure(call, error, cause, None, elapsed, ran).await
            }
            other => {
                batch.states[index] = other;
                Ok(())
            }
        }
    }

    async fn tell_value(&mut self, call: ToolCall, value: Value, elapsed: Duration, ran: bool) -> Result<(), Ending> {
        let outcome = self.notify(Event::PostToolExecution, |_| {
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::ToolArguments, arguments_of(&call).into()),
                (Field::ToolCallId, call.id.as_str().into()),
                (Field::ToolResult, value.clone().into()),
                (Field::DurationMs, json!(crate::hook::outcome::milliseconds(elapsed)).into()),
            ]
        });
        let mut left = None;
        let mut context = None;
        let mut stopped = Ok(());
        match outcome.await {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                if let Some(Ok(new)) = outcome.replaced(Field::ToolResult).map(|value| value.json()) {
                    left = Some(new.clone());
                }
                context = outcome.context_text();
                stopped = self.end_if_stopped(&outcome);
            }
            Err(ending) => {
                // Hooks could not look at the result (they were interrupted), so nobody else may either.
                self.record(&call, unchecked().render(), Some("cancelled"), elapsed, ran)?;
                return Err(ending);
            }
        }
        if let Err(Ending::Stopped { reason, .. }) = &stopped {
            // A refused result, or one whose redaction failed, must not be there for the next turn to read.
            self.record(&call, withheld(reason), Some("denied"), elapsed, ran)?;
            return stopped;
        }
        // What hooks left of the value decides: what they took out of an error is not told by way of the failure.
        let value = left.unwrap_or(value);
        let declares_json = self.config.tool(&call.name).is_some_and(|tool| self.config.tools[tool].declares_json);
        if let Some(error) = failure_of(&value, declares_json) {
            return self.tell_failure(call, error, "error_result", context, elapsed, ran).await;
        }
        let text = text_of(&value);
        let text = context.map_or_else(|| text.clone(), |context| with_context(&text, &context));
        self.record(&call, text, None, elapsed, ran)
    }

    /// `context`: what hooks that saw the value had to add.
    async fn tell_failure(
        &mut self,
        call: ToolCall,
        error: ToolError,
        cause: &'static str,
        context: Option<String>,
        elapsed: Duration,
        ran: bool,
    ) -> Result<(), Ending> {
        let shown = serde_json::to_value(&error).unwrap_or_else(|_| error.render().into());
        let outcome = self.notify(Event::PostToolExecutionFailure, |_| {
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::ToolArguments, arguments_of(&call).into()),
                (Field::ToolCallId, call.id.as_str().into()),
                (Field::ToolError, shown.clone().into()),
                (Field::Cause, cause.into()),
            ]
        });
        let told = |text: String| context.as_deref().map_or(text.clone(), |context| with_context(&text, context));
        let mut text = told(error.render());
        let mut ending = Ok(());
        match outcome.await {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                if let Some(Ok(new)) = outcome.replaced(Field::ToolError).map(|value| value.json()) {
                    let error = serde_json::from_value::<ToolError>(new.clone());
                    text = told(error.map_or_else(|_| text_of(new), |error| error.render()));
                }
                if let Some(context) = outcome.context_text() {
                    text = with_context(&text, &context);
                }
                ending = self.end_if_stopped(&outcome);
            }
            // The error's own text holds nothing that a tool produced unless it ran.
            Err(cancelled) => {
                if ran {
                    text = cancelled_error().render();
                }
                ending = Err(cancelled);
            }
        }
        if let Err(Ending::Stopped { reason, .. }) = &ending
            && ran
        {
            text = withheld(reason);
        }
        self.record(&call, text, Some(cause), elapsed, ran)?;
        ending
    }

    /// Puts a result into the history and the list of calls.
    pub(super) fn record(
        &mut self,
        call: &ToolCall,
        text: String,
        cause: Option<&'static str>,
        elapsed: Duration,
        ran: bool,
    ) -> Result<(), Ending> {
        let folder = self.config.session.path().map(|path| path.join(RESULTS));
        let shown = capped(&text, self.config.result_cap, folder.as_deref());
        let mut message = Message::tool_result(&call.id, shown.text);
        if let Some(path) = shown.saved {
            message.extra.insert(SAVED_WHOLE.into(), path.to_string_lossy().into());
        }
        message.is_error = cause.is_some();
        let record = CallRecord {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments_of(call),
            result: text,
            is_error: cause.is_some(),
            cause,
            elapsed,
            ran,
        };
        self.note_loaded(call, cause.is_some());
        self.calls.push(record.clone());
        self.append(message)?;
        self.port.emit(|| RunEvent::ToolFinished(record));
        Ok(())
    }
}

/// What stands in the place of a result that must not be there for the next turn to read.
fn withheld(reason: &str) -> String {
    denial(&format!("the result is withheld, because the turn was stopped: {reason}")).render()
}

/// A tool's value as the model reads it: text as it is, nothing as nothing, the rest as compact JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
