//! JSON to Python and back.

use std::any::Any;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

use super::message::{PyMessage, PyToolCall, history_list};
use crate::agent::turn::HistoryPayload;
use crate::hook::{Foreign, Payload, PayloadError};

/// How deep nested data may be before it is taken for a cycle.
const MAX_DEPTH: usize = 200;

/// Text from Python, whatever is in it.
pub struct Text(pub String);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: pyo3::Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Text(text_of(&object.cast::<PyString>()?.to_owned())?))
    }
}

/// A Python object as JSON. Lone surrogates become the replacement character.
pub fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    read(object, 0)
}

fn read(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("data nested deeper than {MAX_DEPTH} levels (or a cycle)")));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text_of(text)?));
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(number) = object.cast::<PyInt>() {
        return integer(number);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        let number = number.value();
        return Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| PyValueError::new_err(format!("{number} has no JSON form")));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut map = Map::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            map.insert(key_of(&key)?, read(&value, depth + 1)?);
        }
        return Ok(Value::Object(map));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|item| read(&item, depth + 1)).collect::<PyResult<_>>().map(Value::Array);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().map(|item| read(&item, depth + 1)).collect::<PyResult<_>>().map(Value::Array);
    }
    if let Ok(message) = object.cast::<PyMessage>() {
        return Ok(message.get().to_json());
    }
    if let Ok(call) = object.cast::<PyToolCall>() {
        return serde_json::to_value(&call.get().0).map_err(|error| PyValueError::new_err(error.to_string()));
    }
    // Pydantic models, dataclasses, enums, paths, dates: rendered by a helper in Python, then read like the rest.
    static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let plain = PLAIN.import(object.py(), "hookwright._frozen", "plain")?.call1((object,))?;
    read(&plain, depth + 1)
}

/// A Python string as UTF-8; lone surrogates, which have no UTF-8 form, become the replacement character.
pub fn text_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        // Lone surrogates: the only strings that have no UTF-8 form.
        Err(_) => {
            let bytes = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract::<Vec<u8>>()?;
            let units = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
            Ok(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        }
    }
}

fn key_of(key: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = key.cast::<PyString>() {
        return text_of(text);
    }
    if key.is_instance_of::<PyInt>() || key.is_instance_of::<PyFloat>() {
        return Ok(key.str()?.to_string());
    }
    Err(PyTypeError::new_err(format!("a JSON object has text keys, not {}", key.get_type().name()?)))
}

fn integer(number: &Bound<'_, PyInt>) -> PyResult<Value> {
    if let Ok(small) = number.extract::<i64>() {
        return Ok(small.into());
    }
    match number.extract::<u64>() {
        Ok(large) => Ok(large.into()),
        Err(_) => Err(PyOverflowError::new_err("an integer beyond 64 bits has no JSON form here; pass it as text")),
    }
}

/// JSON as ordinary Python data, which the receiver may change.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(number) => {
            if let Some(integer) = number.as_i64() {
                integer.into_bound_py_any(py)
            } else if let Some(integer) = number.as_u64() {
                integer.into_bound_py_any(py)
            } else {
                number.as_f64().into_bound_py_any(py)
            }
        }
        Value::String(text) => Ok(PyString::new(py, text).into_any()),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, item) in map {
                dict.set_item(key, to_python(py, item)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// A deeply read-only copy that still passes for a dict or a list.
pub fn freeze<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if object.is_none() || object.is_exact_instance_of::<PyString>() || object.is_exact_instance_of::<PyBool>() {
        return Ok(object.clone());
    }
    static FREEZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FREEZE.import(py, "hookwright._frozen", "freeze")?.call1((object,))
}

/// A Python value as a field of an event: read into JSON only when the core needs it.
pub struct PyValue(pub Py<PyAny>);

impl Foreign for PyValue {
    fn to_json(&self) -> Result<Value, PayloadError> {
        Python::attach(|py| to_json(self.0.bind(py)).map_err(|error| PayloadError(error.value(py).to_string())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A payload for a Python value.
pub fn payload(object: Bound<'_, PyAny>) -> Payload {
    Payload::foreign(PyValue(object.unbind()))
}

/// A field as Python sees it: read-only, made on the first read and shared by all readers.
pub fn view<'py>(py: Python<'py>, payload: &Payload) -> PyResult<Bound<'py, PyAny>> {
    if let Some(cached) = payload.rendition().get().and_then(|any| any.downcast_ref::<Py<PyAny>>()) {
        return Ok(cached.bind(py).clone());
    }
    let object = if let Some(PyValue(object)) = payload.downcast::<PyValue>() {
        freeze(object.bind(py))?
    } else if let Some(history) = payload.downcast::<HistoryPayload>() {
        freeze(&history_list(py, &history.0)?.into_any())?
    } else {
        let json = payload.json().map_err(|error| PyValueError::new_err(error.to_string()))?;
        freeze(&to_python(py, json)?)?
    };
    let made: Box<dyn Any + Send + Sync> = Box::new(object.unbind());
    let cached = payload.rendition().get_or_init(|| made);
    match cached.downcast_ref::<Py<PyAny>>() {
        Some(object) => Ok(object.bind(py).clone()),
        None => Err(PyTypeError::new_err("a field is held by another host")),
    }
}
