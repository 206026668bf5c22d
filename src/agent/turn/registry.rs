//! Tools that are not always there.

use std::collections::HashSet;

use serde_json::json;

use super::flow::Run;
use super::{LOAD_TOOL, TurnTool};
use crate::message::{History, ToolCall};
use crate::suggest::did_you_mean;
use crate::tool::{ToolError, ToolErrorCode};

impl Run {
    /// The position of a tool that may be called now.
    pub(super) fn callable(&self, name: &str) -> Result<usize, ToolError> {
        let Some(tool) = self.config.tool(name) else { return Err(self.unknown_tool(name)) };
        if self.missing.contains(name) {
            return Err(self.unknown_tool(name));
        }
        if !self.is_shown(&self.config.tools[tool]) {
            let error = ToolError::new(ToolErrorCode::NotFound, format!("the tool {name} is not loaded"));
            return Err(error.hint(format!("Load it first: {LOAD_TOOL} with the name {}.", json!(name))));
        }
        Ok(tool)
    }

    /// Whether the model is told of a tool.
    pub(super) fn is_shown(&self, tool: &TurnTool) -> bool {
        let name = tool.description.name.as_str();
        !self.missing.contains(name) && (!tool.deferred || self.loaded.contains(name))
    }

    /// A call is over: what it loaded can be called from now on.
    pub(super) fn note_loaded(&mut self, call: &ToolCall, failed: bool) {
        if !failed {
            self.loaded.extend(loaded_by(call));
        }
    }

    fn unknown_tool(&self, name: &str) -> ToolError {
        let shown = self.config.tools.iter().filter(|tool| self.is_shown(tool));
        let names: Vec<_> = shown.map(|tool| tool.description.name.as_str()).collect();
        let hint = match did_you_mean(name, names.iter().copied()) {
            Some(near) => format!("Did you mean {near}? "),
            None => String::new(),
        };
        let known =
            if names.is_empty() { "There are no tools.".into() } else { format!("Tools: {}.", names.join(", ")) };
        ToolError::new(ToolErrorCode::NotFound, format!("there is no tool named {}", json!(name))).hint(hint + &known)
    }
}

/// What was loaded in a conversation so far.
pub(super) fn loaded_in(history: &History) -> HashSet<String> {
    let worked =
        |id: &str| history.iter().any(|message| message.tool_call_id.as_deref() == Some(id) && !message.is_error);
    let calls = history.iter().flat_map(|message| &message.tool_calls);
    calls.filter(|call| call.name == LOAD_TOOL && worked(&call.id)).filter_map(loaded_by).collect()
}

fn loaded_by(call: &ToolCall) -> Option<String> {
    let name = call.arguments().ok()?.get("name").filter(|_| call.name == LOAD_TOOL)?;
    name.as_str().map(str::to_owned)
}
