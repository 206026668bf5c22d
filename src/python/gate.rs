//! Gates for Python. `_gates.py` has the classes that users make.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::convert::to_json;
use super::error::exception;
use super::shell::PyCommandTable;
use crate::gate::{
    Analyzer, Answer, Decision, Denial, Gate, GateHook, Language, Level, PermissionRules, PlanGate, ReviewGate,
    RuleError, RuleLists, ToolCall,
};

/// Rules of one level from Python: the level, and what to allow, to ask about and to deny.
type Lists = (String, Vec<String>, Vec<String>, Vec<String>);

/// A gate of the core.
#[pyclass(frozen, name = "Gate", module = "hookwright._native")]
pub struct PyGate {
    gate: Arc<dyn Gate>,
    rules: Option<Arc<PermissionRules>>,
}

impl PyGate {
    /// The gate as a hook.
    pub fn hook(&self) -> Arc<GateHook> {
        Arc::new(GateHook::new(self.gate.clone()))
    }

    fn rules(&self) -> PyResult<&PermissionRules> {
        self.rules.as_deref().ok_or_else(|| PyValueError::new_err("this gate has no rules"))
    }
}

/// What a gate knows of programs; `None` for what is built in.
type Table<'a, 'py> = Option<&'a Bound<'py, PyCommandTable>>;

fn analyzer(table: Table<'_, '_>) -> Analyzer {
    table.map(|table| Analyzer::new(table.get().0.clone())).unwrap_or_default()
}

fn language_of(name: &str) -> PyResult<Language> {
    Language::parse(name)
        .ok_or_else(|| PyValueError::new_err(format!("unknown language {name:?}; there are \"en\" and \"zh\"")))
}

fn level_of(name: &str) -> PyResult<Level> {
    serde_json::from_value(name.into()).map_err(|_| {
        PyValueError::new_err(format!("unknown level {name:?}; there are builtin, user, project and session"))
    })
}

/// Every rule that cannot be read, in one error.
fn rule_errors(py: Python<'_>, errors: &[RuleError]) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let problem = py.import("hookwright.exceptions")?.getattr("ConfigProblem")?;
        let problems = errors.iter().map(|error| {
            let list = format!("{}[{}]", error.list, error.index);
            let place = if error.level == Level::Session { list } else { format!("{}: {list}", error.level) };
            problem.call1((place, py.None(), py.None(), format!("{:?}: {}", error.rule, error.message)))
        });
        let problems = problems.collect::<PyResult<Vec<_>>>()?;
        let count = if problems.len() == 1 { "a rule".to_owned() } else { format!("{} rules", problems.len()) };
        let problems = problems.into_pyobject(py)?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let tuple = pyo3::types::PyTuple::new(py, problems)?.into_any().unbind();
        Ok(exception(py, "ConfigError", &format!("{count} cannot be read"), &[("problems", tuple)]))
    };
    build().unwrap_or_else(|error| error)
}

#[pymethods]
impl PyGate {
    /// A gate for reviews.
    #[staticmethod]
    fn review(when: Option<String>, tests: bool, language: &str, table: Table<'_, '_>) -> PyResult<Self> {
        let gate = ReviewGate { when, tests, language: language_of(language)?, analyzer: analyzer(table) };
        Ok(PyGate { gate: Arc::new(gate), rules: None })
    }

    /// A gate for plans.
    #[staticmethod]
    fn plan(plan_file: Option<PathBuf>, when: Option<String>, language: &str, table: Table<'_, '_>) -> PyResult<Self> {
        let gate = PlanGate { plan_file, when, language: language_of(language)?, analyzer: analyzer(table) };
        Ok(PyGate { gate: Arc::new(gate), rules: None })
    }

    /// A gate of rules.
    #[staticmethod]
    fn permissions(
        py: Python<'_>,
        levels: Vec<Lists>,
        default: &str,
        language: &str,
        table: Table<'_, '_>,
    ) -> PyResult<Self> {
        let lists = levels
            .into_iter()
            .map(|(level, allow, ask, deny)| Ok(RuleLists { level: level_of(&level)?, allow, ask, deny }));
        let lists = lists.collect::<PyResult<Vec<_>>>()?;
        let mut rules = PermissionRules::new(&lists).map_err(|errors| rule_errors(py, &errors))?;
        rules.language = language_of(language)?;
        rules.analyzer = analyzer(table);
        rules.default = match default {
            "allow" => Answer::Allow,
            "ask" => Answer::Ask,
            "deny" => Answer::Deny,
            other => {
                return Err(PyValueError::new_err(format!(
                    "default must be \"ask\", \"deny\" or \"allow\", not {other:?}"
                )));
            }
        };
        let rules = Arc::new(rules);
        Ok(PyGate { gate: rules.clone(), rules: Some(rules) })
    }

    /// What is decided about a call.
    #[pyo3(signature = (tool, arguments, *, effect=None, cwd=None, mode=None, session_id=""))]
    // Each is a keyword of the Python function.
    #[allow(clippy::too_many_arguments)]
    fn decide(
        &self,
        py: Python<'_>,
        tool: String,
        arguments: Bound<'_, PyDict>,
        effect: Option<String>,
        cwd: Option<PathBuf>,
        mode: Option<String>,
        session_id: &str,
    ) -> PyResult<PyDecision> {
        let Value::Object(arguments) = to_json(&arguments)? else { return Err(PyValueError::new_err("arguments")) };
        let mut call = ToolCall::new(tool, &arguments);
        if let Some(cwd) = cwd {
            call = call.cwd(std::path::absolute(&cwd).unwrap_or(cwd));
        }
        call = ToolCall { declared: effect, mode, session_id: session_id.to_owned(), ..call };
        Ok(PyDecision(py.detach(|| self.gate.decide(&call))))
    }

    /// Allows what a rule says in one session from now on.
    fn remember(&self, rule: &str, session_id: &str) -> PyResult<()> {
        let remembered = self.rules()?.remember(rule, session_id);
        remembered.map_err(|message| PyValueError::new_err(format!("{rule:?}: {message}")))
    }

    /// The rules that were remembered in a session.
    fn remembered(&self, session_id: &str) -> PyResult<Vec<String>> {
        Ok(self.rules()?.remembered(session_id))
    }

    /// Forgets what was remembered in a session.
    fn forget(&self, session_id: &str) -> PyResult<()> {
        self.rules()?.forget(session_id);
        Ok(())
    }
}

/// What is wrong with a permission rule; ``None`` if nothing is.
#[pyfunction]
pub fn check_rule(rule: String) -> Option<String> {
    let lists = RuleLists { allow: vec![rule], ..RuleLists::default() };
    PermissionRules::new(&[lists]).err()?.into_iter().next().map(|error| error.message)
}

/// What a gate decides about a call.
#[pyclass(frozen, name = "Decision", module = "hookwright")]
pub struct PyDecision(Decision);

#[pymethods]
impl PyDecision {
    /// ``"allow"``, ``"ask"`` or ``"deny"``.
    #[getter]
    fn action(&self) -> &'static str {
        self.0.answer.as_str()
    }

    /// Whether the call may run without further ado.
    #[getter]
    fn allowed(&self) -> bool {
        self.0.is_allowed()
    }

    /// Why, in words for the model; ``None`` where it is allowed.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.0.denial.as_ref().map(Denial::render)
    }

    /// The same in its parts.
    #[getter]
    fn denial(&self) -> Option<PyDenial> {
        self.0.denial.clone().map(PyDenial)
    }

    /// The rule that decided, if one did.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.0.rule.as_deref()
    }

    /// With ``"ask"``: the narrowest rule that lets this call through; ``None`` where each would let more through.
    #[getter]
    fn suggested_rule(&self) -> Option<&str> {
        self.0.suggested_rule.as_deref()
    }

    /// What whoever runs the call has to see to, such as ``"hardened_git"``: without it the call may do more than was
    /// judged.
    #[getter]
    fn requires(&self) -> Vec<&'static str> {
        self.0.requires.iter().map(|requirement| requirement.as_str()).collect()
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyValueError::new_err("a Decision is neither true nor false; ask decision.allowed"))
    }

    fn __repr__(&self) -> String {
        let rule = self.0.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
        let why = self.0.denial.as_ref().map(|denial| format!(": {}", denial.reason)).unwrap_or_default();
        format!("<Decision {}{rule}{why}>", self.0.answer.as_str())
    }
}

/// Why a call is refused: what, why, and what to do instead.
#[pyclass(frozen, eq, name = "Denial", module = "hookwright")]
#[derive(PartialEq)]
pub struct PyDenial(Denial);

#[pymethods]
impl PyDenial {
    /// The kind of reason, as a name that stays the same in every language, such as ``"redirect_writes"``.
    #[getter]
    fn code(&self) -> &'static str {
        self.0.code.as_str()
    }

    /// The tool that was called.
    #[getter]
    fn tool(&self) -> &str {
        &self.0.tool
    }

    /// Why.
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What to do instead.
    #[getter]
    fn hint(&self) -> &str {
        &self.0.hint
    }

    /// Where in the command the reason stands, as bytes of its UTF-8 text: ``(start, end)``.
    #[getter]
    fn span(&self) -> Option<(usize, usize)> {
        self.0.span.map(|span| (span.start, span.end))
    }

    /// The command, or what else is called, as far as it is quoted.
    #[getter]
    fn command(&self) -> Option<&str> {
        self.0.command.as_deref()
    }

    fn __str__(&self) -> String {
        self.0.render()
    }

    fn __repr__(&self) -> String {
        format!("<Denial {} of {}: {}>", self.0.code.as_str(), self.0.tool, self.0.reason)
    }
}
