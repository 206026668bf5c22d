//! The bindings: the only folder that names pyo3. One thin file per concept, mirroring the rooms of the core.

use pyo3::prelude::*;

mod agent;
mod async_call;
mod bridge;
mod chain;
mod config;
mod convert;
mod drive;
mod error;
mod event;
mod exit;
mod function;
mod gate;
mod goal;
mod llm;
mod message;
mod model;
mod outcome;
mod record;
mod result;
mod run;
mod server_model;
mod session;
mod shell;
mod team;
mod text;
mod tool;
mod watchdog;

/// How long exit waits for hooks that do not listen to their deadline: they are stuck in C code and stay there.
const STUCK: std::time::Duration = std::time::Duration::from_millis(500);

/// The native half of `hookwright`.
#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::agent::{NativeAnswer, NativeCall, PyTurn, PyTurnConfig, launch_native};
    #[pymodule_export]
    use super::chain::{PyHookChain, PySnapshot};
    #[pymodule_export]
    use super::config::{
        PyConfiguration, PyDefinition, find_project, forget_project, read_configuration, trust_project, trust_state,
        trusted_projects,
    };
    #[pymodule_export]
    use super::drive::{Arun, HookCall};
    #[pymodule_export]
    use super::event::event_table;
    #[pymodule_export]
    use super::function::{_call_interruptibly, _interrupt_thread};
    #[pymodule_export]
    use super::gate::{PyDecision, PyDenial, PyGate, check_rule};
    #[pymodule_export]
    use super::goal::{PyGoal, workspace_fingerprint};
    #[pymodule_export]
    use super::llm::PyLlmPrompt;
    #[pymodule_export]
    use super::message::{PyMessage, PyToolCall, PyUsage};
    #[pymodule_export]
    use super::model::{PyReply, PyRequest, PyScript};
    #[pymodule_export]
    use super::outcome::{PyChange, PyOutcome, PyRun};
    #[pymodule_export]
    use super::record::PyRecording;
    #[pymodule_export]
    use super::result::{PyHookResult, allow, ask, retry, skip, stop, warn};

    #[pymodule_export]
    use super::run::{PyRunEvent, PyRunResult, PyToolRun};
    #[pymodule_export]
    use super::server_model::{ModelCall, PyServerModel, launch_model};
    #[pymodule_export]
    use super::session::PySession;
    #[pymodule_export]
    use super::shell::{PyAnalysis, PyCommandTable, PyReason, PySimpleCommand, py_analyze, reading_environment};
    #[pymodule_export]
    use super::team::{PyLife, PyOffice, folder_of};
    #[pymodule_export]
    use super::tool::{PyWorkspaceTool, is_failure, py_workspace_tools, render_tool_error, tool_error_codes};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::event::register(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Takes the locks of the core, so that a fork finds nobody in the middle of anything.
    #[pyfunction]
    fn _before_fork() {
        super::watchdog::before_fork();
        crate::runtime::before_fork();
    }

    /// Gives them back in the parent.
    #[pyfunction]
    fn _after_fork_in_parent() {
        crate::runtime::after_fork_in_parent();
        super::watchdog::after_fork_in_parent();
    }

    /// Starts anew in the child, which has none of its parent's threads.
    #[pyfunction]
    fn _after_fork_in_child() {
        crate::runtime::after_fork_in_child();
        super::exit::after_fork_in_child();
        super::watchdog::after_fork_in_child();
    }

    /// The seconds left of the innermost deadline that stands on this thread; ``None`` outside a hook. For tests.
    #[pyfunction]
    fn _deadline_left() -> Option<f64> {
        super::watchdog::seconds_left()
    }

    /// Ends the runtime and the watchdog at interpreter exit, waiting `seconds` at most for what the runtime does.
    #[pyfunction]
    fn _shut_down(py: Python<'_>, seconds: f64) {
        let patience = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        super::exit::begin();
        py.detach(|| {
            crate::runtime::shut_down(patience);
            super::watchdog::fire_all();
            super::exit::wait_for_others(patience.min(STUCK));
            super::watchdog::shut_down();
        });
    }
}
