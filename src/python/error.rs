//! The one place where errors of the core become Python exceptions.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hook::{RegistrationError, UnknownEvent};
use crate::runtime::RuntimeError;

/// An exception of `hookwright.exceptions`, with attributes.
pub fn exception(py: Python<'_>, class: &str, message: &str, attributes: &[(&str, Py<PyAny>)]) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let class = py.import("hookwright.exceptions")?.getattr(class)?;
        let keywords = PyDict::new(py);
        for (name, value) in attributes {
            keywords.set_item(name, value)?;
        }
        let value = class.call((message,), None)?;
        for (name, attribute) in keywords.iter() {
            value.setattr(name.extract::<String>()?.as_str(), attribute)?;
        }
        Ok(PyErr::from_value(value))
    };
    build().unwrap_or_else(|error| error)
}

/// The `OSError` of Python for a file, of the subclass that its number stands for.
pub fn os_error(error: io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// Turns an error into its exception; needs the interpreter, since the classes are defined in Python.
pub trait IntoPython {
    /// The exception for this error.
    fn into_python(self, py: Python<'_>) -> PyErr;
}

impl IntoPython for UnknownEvent {
    fn into_python(self, py: Python<'_>) -> PyErr {
        exception(py, "UnknownEventError", &self.to_string(), &[])
    }
}

impl IntoPython for RegistrationError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        exception(py, "HookError", &self.to_string(), &[])
    }
}

impl From<RuntimeError> for PyErr {
    fn from(error: RuntimeError) -> PyErr {
        PyRuntimeError::new_err(error.to_string())
    }
}
