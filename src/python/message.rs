//! stub until the message room is merged
use crate::hook::{Foreign, PayloadError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::Value;
use std::any::Any;
#[pyclass(frozen, name = "Message", module = "hookwright")]
pub struct PyMessage(Value);
impl PyMessage {
    pub fn to_json(&self) -> Value {
        self.0.clone()
    }
}
pub struct HistoryPayload(pub Vec<Value>);
impl Foreign for HistoryPayload {
    fn to_json(&self) -> Result<Value, PayloadError> {
        Ok(Value::Array(self.0.clone()))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
pub fn to_list<'py>(py: Python<'py>, _: &[Value]) -> PyResult<Bound<'py, PyList>> {
    Ok(PyList::empty(py))
}
