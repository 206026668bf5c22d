//! Configuration files for Python: what they say, whether they may run, and putting them into a chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyNotADirectoryError;
use pyo3::prelude::*;

use super::chain::{PyHookChain, level_name};
use super::error::{IntoPython, exception, os_error};
use super::function::{Mode, PythonHook};
use super::gate::PyGate;
use crate::hook::config::trust::{ChangeKind, Trust, TrustError, TrustStore};
use crate::hook::config::{
    ConfigEnv, Configuration, Fingerprint, HookAction, HookDefinition, Levels, Position, Problem, Registered, Source,
    discover, fingerprint, gather, load_file,
};
use crate::hook::{Exchange, Hook, HookKind, HookMeta, Isolation, Role, ShellHook};

/// A problem as `(file, line, column, message, suggestion)`.
type ProblemParts = (String, Option<usize>, Option<usize>, String, Option<String>);

fn problem_parts(problem: &Problem) -> ProblemParts {
    let counted = |number: usize| (number > 0).then_some(number);
    let Position { line, column } = problem.position;
    let file = problem.file.display().to_string();
    (file, counted(line), counted(column), problem.message.clone(), problem.suggestion.clone())
}

/// One hook of a configuration file.
#[pyclass(frozen, name = "HookDefinition", module = "hookwright._native")]
pub struct PyDefinition {
    definition: HookDefinition,
    root: Option<PathBuf>,
}

#[pymethods]
impl PyDefinition {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.definition.name
    }

    /// The level of its file.
    #[getter]
    fn level(&self) -> &'static str {
        level_name(self.definition.level)
    }

    /// The module and function of a Python hook; ``None`` for a command.
    #[getter]
    fn callable(&self) -> Option<(&str, &str)> {
        match &self.definition.action {
            HookAction::Python { module, function, .. } => Some((module, function)),
            HookAction::Shell { .. } | HookAction::Llm { .. } => None,
        }
    }

    /// The prompt, model, base URL and variable of the key of a hook that asks a model.
    #[getter]
    fn question(&self) -> Option<(&str, &str, Option<&str>, Option<&str>)> {
        match &self.definition.action {
            HookAction::Llm { prompt, model, base_url, api_key_env } => {
                Some((prompt, model, base_url.as_deref(), api_key_env.as_deref()))
            }
            _ => None,
        }
    }

    /// Its events.
    #[getter]
    fn events(&self) -> Vec<&'static str> {
        self.definition.events.iter().map(|event| event.as_str()).collect()
    }

    /// Its role.
    #[getter]
    fn role(&self) -> &'static str {
        self.definition.role.as_str()
    }

    /// Whether its function runs on a thread of its own.
    #[getter]
    fn isolated(&self) -> bool {
        matches!(self.definition.action, HookAction::Python { isolation: Isolation::Thread, .. })
    }

    /// A problem at the place of its command or callable.
    fn problem(&self, message: String, suggestion: Option<String>) -> ProblemParts {
        let file = self.definition.source.path.clone();
        problem_parts(&Problem { file, position: self.definition.action_position, message, suggestion })
    }

    fn __repr__(&self) -> String {
        let source = &self.definition.source;
        format!("<HookDefinition {} at {}:{}>", self.definition.name, source.path.display(), source.line)
    }
}

/// What is in effect somewhere.
#[pyclass(frozen, name = "Configuration", module = "hookwright._native")]
pub struct PyConfiguration(Configuration);

#[pymethods]
impl PyConfiguration {
    /// The hooks with which nothing is wrong.
    #[getter]
    fn definitions(&self) -> Vec<PyDefinition> {
        let root = self.0.project.as_ref().map(|source| source.root().to_owned());
        let of_project = |definition: &HookDefinition| definition.level == crate::hook::Level::Project;
        let wrap = |definition: &HookDefinition| PyDefinition {
            definition: definition.clone(),
            root: root.clone().filter(|_| of_project(definition)),
        };
        self.0.loaded.definitions.iter().map(wrap).collect()
    }

    /// The permission rules: list, level, rule, and a problem at the place of each, with nothing said yet.
    #[getter]
    fn rules(&self) -> Vec<(&'static str, &'static str, String, ProblemParts)> {
        let rules = self.0.loaded.rules.iter().map(|rule| {
            let problem =
                Problem { file: rule.file.clone(), position: rule.position, message: String::new(), suggestion: None };
            (rule.list, level_name(rule.level), rule.rule.clone(), problem_parts(&problem))
        });
        rules.collect()
    }

    /// The files of programs for gates: path, and a problem at the place where each is named, with nothing said yet.
    #[getter]
    fn commands(&self) -> Vec<(PathBuf, ProblemParts)> {
        let commands = self.0.loaded.commands.iter().map(|commands| {
            let (file, position) = (commands.file.clone(), commands.position);
            let problem = Problem { file, position, message: String::new(), suggestion: None };
            (commands.path.clone(), problem_parts(&problem))
        });
        commands.collect()
    }

    /// What is wrong.
    #[getter]
    fn problems(&self) -> Vec<ProblemParts> {
        self.0.loaded.problems.iter().map(problem_parts).collect()
    }

    /// What may not be as it is meant.
    #[getter]
    fn notes(&self) -> Vec<ProblemParts> {
        self.0.notes.iter().map(problem_parts).collect()
    }

    /// The files that were read.
    #[getter]
    fn files(&self) -> Vec<String> {
        self.0.loaded.files.iter().map(|file| file.display().to_string()).collect()
    }

    /// The names of hooks to pass over.
    #[getter]
    fn disabled(&self) -> Vec<String> {
        self.0.loaded.disabled.iter().map(|disabled| disabled.name.clone()).collect()
    }

    /// Seconds that a whole dispatch may take, if a file says so.
    #[getter]
    fn budget(&self) -> Option<f64> {
        self.0.loaded.budget.map(|budget| budget.as_secs_f64())
    }

    /// The folder of the project, if there is one.
    #[getter]
    fn project(&self) -> Option<PathBuf> {
        self.0.project.as_ref().map(|source| source.root().to_owned())
    }
}

/// Reads the configuration that is in effect at `folder`. `registered`: the hooks that the program has, with their
/// sources. `file`: one more configuration file, wherever it is.
#[pyfunction]
#[pyo3(signature = (folder, user, project, registered, file=None))]
pub fn read_configuration(
    folder: PathBuf,
    user: bool,
    project: bool,
    registered: Vec<(String, String)>,
    file: Option<PathBuf>,
) -> PyResult<PyConfiguration> {
    check_folder(&folder)?;
    let registered: Vec<_> = registered.into_iter().map(|(name, source)| Registered { name, source }).collect();
    let levels = Levels { user, project };
    let mut configuration = gather(&folder, levels, &ConfigEnv::from_process(), &registered);
    if let Some(file) = file {
        std::fs::metadata(&file).map_err(|error| os_error(error, &file))?;
        configuration.loaded = configuration.loaded.combine(load_file(&file, crate::hook::Level::Session));
    }
    Ok(PyConfiguration(configuration))
}

fn check_folder(folder: &Path) -> PyResult<()> {
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(PyNotADirectoryError::new_err(format!("{} is not a folder", folder.display()))),
        Err(error) => Err(os_error(error, folder)),
    }
}

impl IntoPython for TrustError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        exception(py, "TrustError", &self.to_string(), &[])
    }
}

fn store(py: Python<'_>) -> PyResult<TrustStore> {
    TrustStore::open(&ConfigEnv::from_process()).map_err(|error| error.into_python(py))
}

/// The root of the project around `folder`, if there is one.
#[pyfunction]
pub fn find_project(folder: PathBuf) -> PyResult<Option<PathBuf>> {
    check_folder(&folder)?;
    Ok(project_at(&folder).map(|source| source.root().to_owned()))
}

fn project_at(folder: &Path) -> Option<Source> {
    discover(folder, &ConfigEnv::default()).project
}

fn look_at(py: Python<'_>, project: &Path) -> PyResult<Fingerprint> {
    py.detach(|| fingerprint(project)).map_err(|error| {
        let message = format!("the hooks of {} cannot be looked at as a whole: {error}", project.display());
        exception(py, "TrustError", &message, &[])
    })
}

/// Whether the project at `root` is trusted as it is: `"trusted"`, `"unknown"` with all its files, or `"changed"` with
/// those that are different. A file is given as `(path, "new" | "changed" | "gone")`.
#[pyfunction]
pub fn trust_state(py: Python<'_>, root: PathBuf) -> PyResult<(&'static str, Vec<(String, &'static str)>)> {
    let fingerprint = look_at(py, &root)?;
    let name = |path: &Path| path.display().to_string();
    Ok(match store(py)?.is_trusted(&root, &fingerprint).map_err(|error| error.into_python(py))? {
        Trust::Trusted => ("trusted", Vec::new()),
        Trust::Unknown => ("unknown", fingerprint.files.iter().map(|(path, _)| (name(path), "new")).collect()),
        Trust::Changed(changes) => {
            let kind = |kind| match kind {
                ChangeKind::Added => "new",
                ChangeKind::Changed => "changed",
                ChangeKind::Removed => "gone",
            };
            ("changed", changes.iter().map(|change| (name(&change.path), kind(change.kind))).collect())
        }
    })
}

/// Trusts the project at `root` as it is. Returns the files that this covers.
#[pyfunction]
pub fn trust_project(py: Python<'_>, root: PathBuf) -> PyResult<Vec<String>> {
    let fingerprint = look_at(py, &root)?;
    store(py)?.trust(&root, &fingerprint).map_err(|error| error.into_python(py))?;
    Ok(fingerprint.files.iter().map(|(path, _)| path.display().to_string()).collect())
}

/// Takes the trust back. Returns whether there was any.
#[pyfunction]
pub fn forget_project(py: Python<'_>, root: PathBuf) -> PyResult<bool> {
    store(py)?.forget(&root).map_err(|error| error.into_python(py))
}

/// The trusted projects: `(path, hash, when, number of files)`.
#[pyfunction]
pub fn trusted_projects(py: Python<'_>) -> PyResult<Vec<(PathBuf, String, String, usize)>> {
    let projects = store(py)?.list().map_err(|error| error.into_python(py))?;
    Ok(projects.into_iter().map(|known| (known.project, known.hash, known.trusted_at, known.files)).collect())
}

/// A hook to add: its definition, and for a Python one its function and how it is run.
pub type Addition<'py> = (PyRef<'py, PyDefinition>, Option<(Py<PyAny>, String)>);

/// Puts definitions, and a gate with its name, into a chain in one step; see `Exchange`. Returns what could not be added, as
/// `(position, message)`.
pub fn exchange(
    chain: &PyHookChain,
    remove: Vec<String>,
    add: Vec<Addition<'_>>,
    gate: Option<(PyRef<'_, PyGate>, String)>,
    switch: (Vec<String>, Vec<String>),
    budget: Option<f64>,
    whole: bool,
) -> PyResult<Vec<(usize, String)>> {
    let mut additions: Vec<(HookMeta, Arc<dyn Hook>)> = Vec::with_capacity(add.len() + 1);
    for (definition, callable) in add {
        let meta = definition.definition.meta();
        let hook: Arc<dyn Hook> = match (&definition.definition.action, callable) {
            (HookAction::Llm { .. }, Some((callable, _))) => Arc::new(PythonHook::asking(callable, meta.role)),
            (_, Some((callable, mode))) => Arc::new(PythonHook::new(callable, Mode::parse(&mode)?, meta.role)),
            (HookAction::Shell { command }, None) => {
                let folder = definition.definition.source.folder.clone();
                Arc::new(ShellHook::new(command.as_str(), folder).at_root(definition.root.clone()))
            }
            (HookAction::Llm { model, .. }, None) => {
                let message = format!("the hook {} needs its model {model}", meta.name);
                return Err(pyo3::exceptions::PyTypeError::new_err(message));
            }
            (HookAction::Python { module, function, .. }, None) => {
                let message = format!("the hook {} needs its function {module}:{function}", meta.name);
                return Err(pyo3::exceptions::PyTypeError::new_err(message));
            }
        };
        additions.push((meta, hook));
    }
    if let Some((gate, name)) = gate {
        let hook = gate.hook();
        let mut meta = HookMeta::new(name, hook.events(), HookKind::Builtin, Role::Gate);
        meta.level = crate::hook::Level::User;
        meta.source = "hookwright:PermissionRules".to_owned();
        additions.push((meta, hook));
    }
    let budget = budget.map(|budget| super::chain::seconds("budget", budget)).transpose()?;
    let (enable, disable) = switch;
    let refused = chain.chain.exchange(Exchange { remove, add: additions, enable, disable, budget }, whole);
    Ok(refused.into_iter().map(|(index, error)| (index, error.to_string())).collect())
}
