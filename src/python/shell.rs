//! What a shell command would do, for Python.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::bridge::wait;
use super::error::os_error;
use crate::gate::shell::{Analysis, CommandTable, Reason, Redirect, SimpleCommand, Span, analyze};
use crate::gate::{Language, shell_words};
use crate::process::read_only;

/// Where a stretch of bytes stands in characters, as Python counts.
fn characters(text: &str, span: Span) -> (usize, usize) {
    let before = |byte: usize| {
        let end = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[..end].chars().count()
    };
    (before(span.start), before(span.end))
}

/// What hookwright knows of programs: which options are safe, which make them write, run code or reach the network.
#[pyclass(frozen, name = "CommandTable", module = "hookwright.shell")]
#[derive(Default)]
pub struct PyCommandTable(pub CommandTable);

#[pymethods]
impl PyCommandTable {
    /// The table that is built in.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// This table and the programs that `toml` describes; a program that is known already is replaced.
    #[pyo3(signature = (toml, *, origin = "the text"))]
    fn extend(&self, toml: &str, origin: &str) -> PyResult<Self> {
        let table = self.0.extend(toml, origin).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(table))
    }

    /// This table and the programs that a file describes.
    fn load(&self, path: PathBuf) -> PyResult<Self> {
        let toml = std::fs::read_to_string(&path).map_err(|error| os_error(error, &path))?;
        self.extend(&toml, &path.display().to_string())
    }

    /// The names of the programs, sorted.
    #[getter]
    fn programs(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.programs().into_iter().map(str::to_owned).collect();
        names.sort();
        names
    }

    fn __repr__(&self) -> String {
        format!("<CommandTable of {} programs>", self.0.programs().len())
    }
}

/// One reason why a command is not read-only.
#[pyclass(frozen, name = "Reason", module = "hookwright.shell")]
pub struct PyReason {
    reason: Reason,
    span: (usize, usize),
}

#[pymethods]
impl PyReason {
    /// The kind of reason, for example `redirect_writes`.
    #[getter]
    fn code(&self) -> &'static str {
        self.reason.code.as_str()
    }

    /// What it makes of the command.
    #[getter]
    fn effect(&self) -> &'static str {
        self.reason.effect.as_str()
    }

    /// Where in the command: the first character and the one after the last.
    #[getter]
    fn span(&self) -> (usize, usize) {
        self.span
    }

    /// What it is about: a program, an option, a file.
    #[getter]
    fn subject(&self) -> &str {
        &self.reason.subject
    }

    /// Why, in words.
    #[pyo3(signature = (language = "en"))]
    fn message(&self, language: &str) -> PyResult<String> {
        Ok(self.words(language)?.0)
    }

    /// What to do instead.
    #[pyo3(signature = (language = "en"))]
    fn hint(&self, language: &str) -> PyResult<String> {
        Ok(self.words(language)?.1)
    }

    fn __repr__(&self) -> String {
        let (start, end) = self.span;
        format!("<Reason {}: {} at {start}-{end}>", self.reason.code.as_str(), self.reason.subject)
    }
}

impl PyReason {
    fn words(&self, language: &str) -> PyResult<(String, String)> {
        let Some(language) = Language::parse(language) else {
            return Err(PyValueError::new_err(format!("{language:?} is no language of messages; there are en, zh")));
        };
        Ok(shell_words(&self.reason, language))
    }
}

/// A simple command: a program with its words.
#[pyclass(frozen, name = "SimpleCommand", module = "hookwright.shell")]
pub struct PySimpleCommand {
    command: SimpleCommand,
    span: (usize, usize),
}

#[pymethods]
impl PySimpleCommand {
    /// Its words, the program first; `None` for one that is known only when it runs.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.command.words.iter().map(|word| word.text()))
    }

    /// Its words without options that stand before a sub-command; what permission rules match.
    #[getter]
    fn subject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.command.subject)
    }

    /// Files that its redirections read or write, as pairs of `read` or `write` and the path.
    #[getter]
    fn redirects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let pair = |(redirect, path): &(Redirect, Option<String>)| {
            (if *redirect == Redirect::Write { "write" } else { "read" }, path.clone())
        };
        PyTuple::new(py, self.command.redirects.iter().map(pair))
    }

    /// Where in the command: the first character and the one after the last.
    #[getter]
    fn span(&self) -> (usize, usize) {
        self.span
    }

    /// What it does.
    #[getter]
    fn effect(&self) -> &'static str {
        self.command.effect.as_str()
    }

    fn __repr__(&self) -> String {
        let words: Vec<&str> = self.command.words.iter().map(|word| word.raw.as_str()).collect();
        format!("<SimpleCommand {}: {}>", self.command.effect, words.join(" "))
    }
}

/// What a command would do.
#[pyclass(frozen, name = "Analysis", module = "hookwright.shell")]
pub struct PyAnalysis {
    text: Arc<str>,
    analysis: Analysis,
}

#[pymethods]
impl PyAnalysis {
    /// The command.
    #[getter]
    fn command(&self) -> &str {
        &self.text
    }

    /// What it does at worst: `read_only`, `runs_tests`, `writes`, `network`, `executes` or `unknown`.
    #[getter]
    fn effect(&self) -> &'static str {
        self.analysis.effect.as_str()
    }

    /// Each effect that some part of it has, from harmless to unknown.
    #[getter]
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.analysis.effects.iter().map(|effect| effect.as_str()))
    }

    /// Why it is not read-only, in the order of the text.
    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let reason = |reason: &Reason| PyReason { span: characters(&self.text, reason.span), reason: reason.clone() };
        PyTuple::new(py, self.analysis.reasons.iter().map(reason))
    }

    /// The simple commands in it, those inside substitutions, `xargs`, `env`, `bash -c` and the like included.
    #[getter]
    fn commands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let command = |command: &SimpleCommand| PySimpleCommand {
            span: characters(&self.text, command.span),
            command: command.clone(),
        };
        PyTuple::new(py, self.analysis.commands.iter().map(command))
    }

    /// What must hold for the effect to be as said: `hardened_git` if git is to be run in the environment for reading.
    #[getter]
    fn requires<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.analysis.requires.iter().map(|requirement| requirement.as_str()))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let dict = PyDict::new(py);
        dict.set_item("command", slf.get().command())?;
        dict.set_item("effect", slf.get().effect())?;
        let reasons = PyList::empty(py);
        for reason in &slf.get().analysis.reasons {
            let (message, hint) = shell_words(reason, Language::default());
            let row = PyDict::new(py);
            row.set_item("code", reason.code.as_str())?;
            row.set_item("span", characters(&slf.get().text, reason.span))?;
            row.set_item("message", message)?;
            row.set_item("hint", hint)?;
            reasons.append(row)?;
        }
        dict.set_item("reasons", reasons)?;
        py.import("hookwright._display")?.call_method1("analysis_html", (dict,))
    }

    fn __repr__(&self) -> String {
        let mut codes: Vec<&str> = self.analysis.reasons.iter().map(|reason| reason.code.as_str()).collect();
        codes.dedup();
        let why = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
        format!("<Analysis {}{why}>", self.analysis.effect)
    }
}

/// What would this command do? Nothing is run, read or looked up outside the text.
#[pyfunction(name = "analyze_command")]
#[pyo3(signature = (command, table = None))]
pub fn py_analyze(py: Python<'_>, command: &str, table: Option<&Bound<'_, PyCommandTable>>) -> PyAnalysis {
    let table = table.map_or_else(|| CommandTable::builtin().clone(), |table| table.get().0.clone());
    let text: Arc<str> = command.into();
    let analysis = py.detach(|| analyze(&text, &table));
    PyAnalysis { text, analysis }
}

/// The environment in which commands that only read are run in `folder`; why git must not be used there, if so.
/// `command`: what will be run, to look at the repositories that it reaches from there.
#[pyfunction]
pub fn reading_environment(
    py: Python<'_>,
    folder: PathBuf,
    work_tree: PathBuf,
    command: &str,
) -> PyResult<(Vec<(PathBuf, PathBuf)>, Option<String>)> {
    let looked = wait(py, read_only::look_for(command, &folder, &work_tree))?;
    let (repository, risk) = match looked {
        Ok(repository) => (repository, None),
        Err(risk) => (None, Some(risk.to_string())),
    };
    let environment = read_only::environment(std::env::vars_os(), Path::new(&work_tree), repository.as_ref());
    Ok((environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(), risk))
}
