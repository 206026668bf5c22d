//! The bindings: the only folder that names pyo3. One thin file per concept, mirroring the rooms of the core.

use pyo3::prelude::*;

mod bridge;
mod chain;
mod convert;
mod drive;
mod error;
mod event;
mod function;
mod message;
mod outcome;
mod result;
mod text;
mod watchdog;

/// The native half of `hookwright`.
#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::chain::{PyHookChain, PySnapshot};
    #[pymodule_export]
    use super::drive::{Arun, HookCall};
    #[pymodule_export]
    use super::event::event_table;
    #[pymodule_export]
    use super::message::PyMessage;
    #[pymodule_export]
    use super::outcome::{PyChange, PyOutcome, PyRun};
    #[pymodule_export]
    use super::result::{PyHookResult, allow, ask, retry, skip, stop, warn};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::event::register(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Takes the locks of the core, so that a fork finds nobody in the middle of anything.
    #[pyfunction]
    fn _before_fork() {
        super::watchdog::before_fork();
    }

    /// Gives them back in the parent.
    #[pyfunction]
    fn _after_fork_in_parent() {
        super::watchdog::after_fork_in_parent();
    }

    /// Starts anew in the child, which has none of its parent's threads.
    #[pyfunction]
    fn _after_fork_in_child() {
        super::watchdog::after_fork_in_child();
    }

    /// The seconds left of the innermost deadline that stands on this thread; ``None`` outside a hook. For tests.
    #[pyfunction]
    fn _deadline_left() -> Option<f64> {
        super::watchdog::seconds_left()
    }

    /// Ends the runtime at interpreter exit, waiting `seconds` at most.
    #[pyfunction]
    fn _shut_down(py: Python<'_>, seconds: f64) {
        let patience = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| crate::runtime::shut_down(patience));
    }
}
