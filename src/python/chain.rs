//! The hook chain for Python. `hookwright.HookChain` is a subclass that adds decorators and loading.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};

use super::bridge;
use super::convert::{payload, to_python};
use super::drive::{Arun, into_pyerr};
use super::error::IntoPython;
use super::exit;
use super::function::{Arguments, Mode, PythonHook, interrupted};
use super::outcome::PyOutcome;
use super::watchdog::Watch;
use crate::hook::filter::FilterSpec;
use crate::hook::level::Level;
use crate::hook::{
    AgentIdentity, Dispatch, Event, EventContext, Field, FieldSource, Fields, HookChain, HookKind, HookMeta, Moment,
    OnError, Outcome, Payload, Role, Scope, ShellHook, Snapshot,
};
use crate::suggest::did_you_mean;

/// The name of a level.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Builtin => "builtin",
        Level::User => "user",
        Level::Project => "project",
        Level::Session => "session",
    }
}

fn parse<T: Copy>(what: &str, name: &str, known: &[(&'static str, T)]) -> PyResult<T> {
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        let hint = match did_you_mean(name, names.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known: {}", names.join(", ")),
        };
        PyValueError::new_err(format!("unknown {what} {name:?}; {hint}"))
    })
}

const ROLES: &[(&str, Role)] = &[("hook", Role::Hook), ("gate", Role::Gate), ("observer", Role::Observer)];
const ON_ERROR: &[(&str, OnError)] = &[("skip", OnError::Skip), ("deny", OnError::Deny), ("stop", OnError::Stop)];
const LEVELS: &[(&str, Level)] =
    &[("builtin", Level::Builtin), ("user", Level::User), ("project", Level::Project), ("session", Level::Session)];
const MODES: &[(&str, Mode)] = &[("inline", Mode::Inline), ("async", Mode::Async), ("thread", Mode::Thread)];

impl Mode {
    /// Looks a mode up.
    pub fn parse(name: &str) -> PyResult<Self> {
        parse("mode", name, MODES)
    }
}

/// A positive, finite number of seconds.
pub fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(PyValueError::new_err(format!("{name} must be a number of seconds above 0, not {value}"))),
    }
}

fn item<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    match options.get_item(name)? {
        Some(value) if !value.is_none() => match value.extract::<T>() {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let error: PyErr = error.into();
                let text = format!("{name} must be {}, not {}", expected(name), value.repr()?);
                // A number that is too large or too small is of the right type.
                if error.is_instance_of::<PyOverflowError>(options.py()) {
                    return Err(PyValueError::new_err(text));
                }
                Err(PyTypeError::new_err(text))
            }
        },
        _ => Ok(None),
    }
}

/// What an option of a hook has to be, in words.
fn expected(name: &str) -> &'static str {
    match name {
        "order" => "a whole number",
        "retry" => "a whole number from 0 on",
        "timeout" => "a number of seconds",
        "shadow" | "enabled" => "True or False",
        "arguments" => "a dict of globs by argument, such as {\"path\": \"src/*\"}",
        "tool_matcher" => "text with | between names, such as \"shell|write_*\"",
        "events" => "names of events",
        _ => "text",
    }
}

/// Reads the description of a hook from the options that `_chain.py` passes on.
fn meta_from(py: Python<'_>, options: &Bound<'_, PyDict>, kind: HookKind) -> PyResult<HookMeta> {
    let name: String = item(options, "name")?.unwrap_or_default();
    let names: Vec<String> = item(options, "events")?.unwrap_or_default();
    let mut events = Vec::with_capacity(names.len());
    for name in &names {
        let event = name.parse::<Event>().map_err(|error| error.into_python(py))?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let role = parse("role", &item::<String>(options, "role")?.unwrap_or("hook".into()), ROLES)?;
    let mut meta = HookMeta::new(name, events, kind, role);
    if let Some(level) = item::<String>(options, "level")? {
        meta.level = parse("level", &level, LEVELS)?;
    }
    if let Some(order) = item(options, "order")? {
        meta.order = order;
    }
    if let Some(timeout) = item(options, "timeout")? {
        meta.timeout = seconds("timeout", timeout)?;
    }
    if let Some(retry) = item(options, "retry")? {
        meta.retry = retry;
    }
    if let Some(on_error) = item::<String>(options, "on_error")? {
        meta.on_error = parse("on_error", &on_error, ON_ERROR)?;
    }
    meta.shadow = item(options, "shadow")?.unwrap_or(false);
    meta.enabled = item(options, "enabled")?.unwrap_or(true);
    meta.source = item(options, "source")?.unwrap_or_default();
    meta.filter = FilterSpec {
        tool_name: item(options, "tool_name")?,
        tool_matcher: item(options, "tool_matcher")?,
        tool_regex: item(options, "tool_regex")?,
        model_prefix: item(options, "model_prefix")?,
        agent: item(options, "agent")?,
        arguments: item(options, "arguments")?.unwrap_or_default(),
    };
    Ok(meta)
}

/// A hook's name, whether it would run, why, and a warning.
type ExplainedHook = (String, bool, String, Option<String>);

/// The keywords of a dispatch as its fields. Nobody else has this dict: Python made it for the call.
struct Keywords(Py<PyDict>);

impl FieldSource for Keywords {
    fn read(&self) -> Vec<(Field, Payload)> {
        Python::attach(|py| {
            let own = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                // The names were checked when the dispatch began; what is no field is one of the common ones.
                let field = Field::parse(name.cast::<PyString>().ok()?.to_str().ok()?)?;
                Some((field, payload(value)))
            };
            self.0.bind(py).iter().filter_map(own).collect()
        })
    }
}

/// The interned names of all fields, in the order of the table.
fn field_names(py: Python<'_>) -> &'static [Py<PyString>] {
    static NAMES: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    NAMES.get_or_init(py, || Field::ALL.iter().map(|field| PyString::intern(py, field.as_str()).unbind()).collect())
}

/// The common fields among the keywords of a dispatch, all of which are checked.
fn scope_of(event: Event, keywords: &Bound<'_, PyDict>) -> PyResult<Option<Scope>> {
    let mut scope: Option<Scope> = None;
    let spec = event.spec();
    let known = field_names(keywords.py());
    for (name, value) in keywords.iter() {
        // Names that stand in source code are interned, so they are mostly the same objects.
        if spec.readable.iter().any(|field| known[*field as usize].is(&name)) {
            continue;
        }
        let name = name.cast::<PyString>()?;
        let name = name.to_str()?;
        match Field::parse(name) {
            Some(field) if spec.readable.contains(&field) => {}
            _ => common_field(event, scope.get_or_insert_default(), name, &value)?,
        }
    }
    Ok(scope)
}

/// The value of a common field; an error names the field.
fn common<'a, 'py, T: FromPyObject<'a, 'py>>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<T> {
    value.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        PyTypeError::new_err(format!("{name}: {}", error.value(value.py())))
    })
}

fn common_field(event: Event, scope: &mut Scope, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "session_id" => scope.session_id = common(name, value)?,
        "turn_id" => scope.turn_id = common(name, value)?,
        "agent" => scope.agent = AgentIdentity { name: common(name, value)?, ..AgentIdentity::default() },
        "cwd" => scope.cwd = common(name, value)?,
        "continuation" => scope.continuation = common(name, value)?,
        "mode" => scope.mode = common(name, value)?,
        other => {
            let own = event.spec().readable.iter().map(|field| field.as_str());
            let known: Vec<_> = own.chain(["session_id", "turn_id", "agent", "cwd", "continuation", "mode"]).collect();
            let hint = match did_you_mean(other, known.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it carries: {}", known.join(", ")),
            };
            return Err(PyTypeError::new_err(format!("{event} has no field {other:?}; {hint}")));
        }
    }
    Ok(())
}

fn default_scope() -> &'static Arc<Scope> {
    static DEFAULT: std::sync::OnceLock<Arc<Scope>> = std::sync::OnceLock::new();
    DEFAULT.get_or_init(Arc::default)
}

/// Runs a dispatch on this thread; Python hooks in place, everything else on the runtime with signals looked at.
pub fn run_blocking(py: Python<'_>, chain: &HookChain, dispatch: Dispatch) -> PyResult<Outcome> {
    run_boxed(py, chain, dispatch).map(|outcome| *outcome)
}

fn run_boxed(py: Python<'_>, chain: &HookChain, mut dispatch: Dispatch) -> PyResult<Box<Outcome>> {
    drive(py, &mut dispatch)?;
    Ok(chain.finish_boxed(dispatch))
}

/// Runs all hooks of a dispatch on this thread.
pub fn drive(py: Python<'_>, dispatch: &mut Dispatch) -> PyResult<()> {
    // A hook may itself run a chain: what waits in there ends with the outer hook's time.
    let _inside = exit::enter(py);
    let mut watch = Watch::open(py)?;
    watch.perhaps_inside_loop(py);
    let outer = watch.outer_deadline();
    let mut arguments = Arguments::default();
    // A filter may read what only Python can render; no deadline may stand while it does.
    let filters = dispatch.has_filters();
    while dispatch.advance().is_some() {
        let mut call = dispatch.call();
        call.deadline = outer.map_or(call.deadline, |outer| outer.min(call.deadline));
        let answer = match dispatch.entry().hook.as_any().downcast_ref::<PythonHook>() {
            Some(hook) if hook.mode == Mode::Inline => match hook.call_in_row(py, &mut watch, &mut arguments, &call) {
                None => {
                    if filters {
                        watch.disarm(py)?;
                    }
                    dispatch.complete_unchanged().map_err(into_pyerr)?;
                    continue;
                }
                Some(Ok(value)) => hook.read_blocking(py, &value, call.deadline),
                Some(Err(failure)) => Err(failure),
            },
            Some(hook) => {
                watch.disarm(py)?;
                hook.call_blocking(py, &mut watch, &mut arguments, &call)
            }
            None if dispatch.entry().hook.is_immediate() => {
                watch.disarm(py)?;
                dispatch.entry().hook.call(call)
            }
            None => {
                watch.disarm(py)?;
                let work = dispatch.entry().hook.call_async(call.context.clone(), call.deadline.instant());
                bridge::wait(py, work).unwrap_or_else(|error| Err(interrupted(py, error)))
            }
        };
        dispatch.complete(answer).map_err(into_pyerr)?;
    }
    watch.disarm(py)?;
    Ok(())
}

/// The native part of a chain.
#[pyclass(frozen, subclass, weakref, name = "HookChain", module = "hookwright._native")]
pub struct PyHookChain {
    pub chain: Arc<HookChain>,
}

impl PyHookChain {
    fn begin(&self, py: Python<'_>, event: &str, keywords: &Bound<'_, PyDict>) -> PyResult<(Event, Option<Dispatch>)> {
        let event = match Event::parse(event) {
            Some(event) => event,
            None => event.parse::<Event>().map_err(|error| error.into_python(py))?,
        };
        let dispatch = self.chain.try_begin(event, None, || {
            let scope = scope_of(event, keywords)?;
            let fields = Fields::from_source(Keywords(keywords.clone().unbind()));
            PyResult::Ok((scope.map_or_else(|| default_scope().clone(), Arc::new), fields))
        })?;
        if dispatch.is_none() {
            scope_of(event, keywords)?;
        }
        Ok((event, dispatch))
    }
}

#[pymethods]
impl PyHookChain {
    #[new]
    #[pyo3(signature = (*, budget=30.0, shadow=false))]
    fn new(budget: f64, shadow: bool) -> PyResult<Self> {
        Ok(PyHookChain { chain: Arc::new(HookChain::new(seconds("budget", budget)?, shadow)) })
    }

    /// Runs the hooks of an event on the calling thread. The fields come as the dict that Python made for the keywords
    /// of `run`: a native function that collects keywords is handed a dict, which is then copied into another.
    fn _run(&self, py: Python<'_>, event: &str, fields: Bound<'_, PyDict>) -> PyResult<PyOutcome> {
        match self.begin(py, event, &fields)? {
            (event, None) => Ok(PyOutcome::untouched(event, Some(fields.unbind()))),
            (_, Some(dispatch)) => run_boxed(py, &self.chain, dispatch).map(PyOutcome::from_boxed),
        }
    }

    /// The same, awaited on the running event loop.
    fn _arun(slf: Bound<'_, Self>, event: &str, fields: Bound<'_, PyDict>) -> PyResult<Arun> {
        Ok(match slf.get().begin(slf.py(), event, &fields)? {
            (event, None) => Arun::untouched(slf.unbind(), event, Some(fields.unbind())),
            (_, Some(dispatch)) => Arun::new(slf.unbind(), dispatch),
        })
    }

    /// Adds a Python callable. Returns whether it replaced a hook of the same name.
    fn _add_python(
        &self,
        py: Python<'_>,
        callable: Py<PyAny>,
        mode: &str,
        replace: bool,
        options: Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let meta = meta_from(py, &options, HookKind::Python)?;
        let hook = PythonHook::new(callable, Mode::parse(mode)?, meta.role);
        self.chain.add(meta, Arc::new(hook), replace).map_err(|error| error.into_python(py))
    }

    /// Adds an asynchronous function that asks a model. Returns whether it replaced a hook of the same name.
    fn _add_llm(
        &self,
        py: Python<'_>,
        callable: Py<PyAny>,
        replace: bool,
        options: Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let meta = meta_from(py, &options, HookKind::Llm)?;
        let hook = PythonHook::asking(callable, meta.role);
        self.chain.add(meta, Arc::new(hook), replace).map_err(|error| error.into_python(py))
    }

    /// Adds a command. Returns whether it replaced a hook of the same name.
    fn _add_shell(
        &self,
        py: Python<'_>,
        command: String,
        folder: Option<PathBuf>,
        replace: bool,
        options: Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let meta = meta_from(py, &options, HookKind::Shell)?;
        let hook = ShellHook::new(command, folder);
        self.chain.add(meta, Arc::new(hook), replace).map_err(|error| error.into_python(py))
    }

    /// Adds a gate of the core. Returns whether it replaced a hook of the same name.
    fn _add_gate(
        &self,
        py: Python<'_>,
        gate: &super::gate::PyGate,
        replace: bool,
        options: Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let mut meta = meta_from(py, &options, HookKind::Builtin)?;
        meta.role = Role::Gate;
        meta.on_error = OnError::Deny;
        let hook = gate.hook();
        meta.events = hook.events();
        self.chain.add(meta, hook, replace).map_err(|error| error.into_python(py))
    }

    /// Takes a hook out.
    fn _remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.chain.remove(name).map(drop).map_err(|error| error.into_python(py))
    }

    /// Switches a hook on or off.
    fn _set_enabled(&self, py: Python<'_>, name: &str, enabled: bool) -> PyResult<()> {
        self.chain.set_enabled(name, enabled).map_err(|error| error.into_python(py))
    }

    /// The time that a whole dispatch may take, in seconds.
    #[getter]
    fn budget(&self) -> f64 {
        self.chain.snapshot().budget.as_secs_f64()
    }

    #[setter]
    fn set_budget(&self, budget: f64) -> PyResult<()> {
        self.chain.set_budget(seconds("budget", budget)?);
        Ok(())
    }

    /// Whether nothing that hooks decide is applied.
    #[getter]
    fn shadow(&self) -> bool {
        self.chain.snapshot().shadow
    }

    /// The hooks as they are now, to go back to with `_restore`.
    fn _snapshot(&self) -> PySnapshot {
        PySnapshot(self.chain.snapshot())
    }

    /// Goes back to an earlier snapshot of this chain.
    fn _restore(&self, snapshot: &PySnapshot) {
        self.chain.restore(snapshot.0.clone());
    }

    /// Adds copies of the hooks of another chain. `apart`: what is put behind a name that is there already.
    #[pyo3(signature = (other, apart=None))]
    fn _copy_from(&self, py: Python<'_>, other: &PyHookChain, apart: Option<&str>) -> PyResult<()> {
        for entry in other.chain.snapshot().entries() {
            let hook: Arc<dyn crate::hook::Hook> = match entry.hook.as_any().downcast_ref::<PythonHook>() {
                Some(hook) => Arc::new(hook.duplicate(py)),
                None => entry.hook.clone(),
            };
            let mut meta = HookMeta::clone(&entry.meta);
            if let Some(apart) = apart
                && self.chain.snapshot().entries().iter().any(|other| other.meta.name == meta.name)
            {
                meta.name = format!("{} ({apart})", meta.name).into();
            }
            self.chain.add(meta, hook, false).map_err(|error| error.into_python(py))?;
        }
        Ok(())
    }

    /// What each hook is, in the order in which they run.
    fn _describe<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let describe = |entry: &Arc<crate::hook::Entry>| {
            let meta = &entry.meta;
            let dict = PyDict::new(py);
            dict.set_item("name", meta.name.as_ref())?;
            dict.set_item("events", meta.events.iter().map(|event| event.as_str()).collect::<Vec<_>>())?;
            dict.set_item("kind", meta.kind.as_str())?;
            dict.set_item("role", meta.role.as_str())?;
            dict.set_item("level", level_name(meta.level))?;
            dict.set_item("order", meta.order)?;
            dict.set_item("timeout", meta.timeout.as_secs_f64())?;
            dict.set_item("retry", meta.retry)?;
            dict.set_item("on_error", meta.on_error.as_str())?;
            dict.set_item("shadow", meta.shadow)?;
            dict.set_item("enabled", meta.enabled)?;
            dict.set_item("source", &meta.source)?;
            let filter = PyDict::new(py);
            for (name, value) in [
                ("tool_name", &meta.filter.tool_name),
                ("tool_matcher", &meta.filter.tool_matcher),
                ("tool_regex", &meta.filter.tool_regex),
                ("model_prefix", &meta.filter.model_prefix),
                ("agent", &meta.filter.agent),
            ] {
                if let Some(value) = value {
                    filter.set_item(name, value)?;
                }
            }
            if !meta.filter.arguments.is_empty() {
                filter.set_item("arguments", meta.filter.arguments.clone())?;
            }
            dict.set_item("filter", filter)?;
            Ok(dict)
        };
        self.chain.snapshot().entries().iter().map(describe).collect()
    }

    /// Why each hook would or would not run: `(name, matches, why, warning)`.
    #[pyo3(signature = (event, tools, fields))]
    fn _explain(
        &self,
        py: Python<'_>,
        event: &str,
        tools: Option<Vec<String>>,
        fields: Bound<'_, PyDict>,
    ) -> PyResult<Vec<ExplainedHook>> {
        let event = event.parse::<Event>().map_err(|error| error.into_python(py))?;
        let scope = scope_of(event, &fields)?;
        let fields = Fields::from_source(Keywords(fields.unbind()));
        let scope = Arc::new(scope.unwrap_or_default());
        let context = EventContext::new(event, scope, fields, Moment::now(), self.chain.snapshot().budget);
        let tools: Option<Vec<&str>> = tools.as_ref().map(|tools| tools.iter().map(String::as_str).collect());
        let explained = self.chain.explain(&context, tools.as_deref());
        Ok(explained.into_iter().map(|hook| (hook.name, hook.matches, hook.why, hook.warning)).collect())
    }

    /// Puts the hooks of configuration files into the chain, in one step and in the place of those in `remove`. Returns
    /// what could not be added; with `whole` nothing is changed then.
    fn _exchange(
        &self,
        remove: Vec<String>,
        add: Vec<super::config::Addition<'_>>,
        gate: Option<(PyRef<'_, super::gate::PyGate>, String)>,
        switch: (Vec<String>, Vec<String>),
        budget: Option<f64>,
        whole: bool,
    ) -> PyResult<Vec<(usize, String)>> {
        super::config::exchange(self, remove, add, gate, switch, budget, whole)
    }

    /// Begins to append every event and outcome to a file.
    fn _record(slf: Bound<'_, Self>, path: PathBuf, redact: Vec<String>) -> PyResult<super::record::PyRecording> {
        super::record::PyRecording::start(slf, &path, redact)
    }

    /// Runs the chain over recorded events.
    fn _replay<'py>(&self, py: Python<'py>, path: PathBuf, shell: bool) -> PyResult<Bound<'py, PyDict>> {
        super::record::replay(py, self, &path, shell)
    }

    /// Counts and times of every hook, as dicts.
    fn _stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats =
            serde_json::to_value(self.chain.stats()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        to_python(py, &stats)
    }

    fn __len__(&self) -> usize {
        self.chain.snapshot().entries().len()
    }

    fn __bool__(&self) -> bool {
        true // An empty chain is still a chain: `if hooks:` asks whether there is one.
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.chain.hooks_of::<PythonHook>(|hook| {
            if result.is_ok() {
                result = visit.call(&hook.callable);
            }
        });
        result
    }

    fn __clear__(&self) {
        self.chain.clear();
    }
}

/// The hooks of a chain at one moment.
#[pyclass(frozen, name = "Snapshot", module = "hookwright._native")]
pub struct PySnapshot(Arc<Snapshot>);
