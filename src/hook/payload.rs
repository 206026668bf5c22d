//! Values that cross the boundary between the core and its hosts, rendered only when somebody reads them.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

/// Why a value could not be rendered as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PayloadError(pub String);

/// A value that lives in its host (a Python object, a shared message list) until its JSON is asked for.
pub trait Foreign: Send + Sync {
    /// The value as JSON. Called when it is first read, perhaps by several threads at a time.
    ///
    /// # Errors
    /// When the value has no JSON form; the message names the offending part.
    fn to_json(&self) -> Result<Value, PayloadError>;

    /// The host's own type, for the host to find its value again.
    fn as_any(&self) -> &dyn Any;
}

/// One allocation per payload: the source stands last, so that it may be of any type.
struct Inner<S: ?Sized> {
    json: OnceLock<Result<Value, PayloadError>>,
    rendition: OnceLock<Box<dyn Any + Send + Sync>>,
    source: S,
}

/// The source of a payload that was JSON from the beginning.
struct Json;

impl Foreign for Json {
    fn to_json(&self) -> Result<Value, PayloadError> {
        Err(PayloadError("the JSON of this value was there from the beginning".into()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One field of an event. Cloning shares it; nothing is copied or encoded until it is read.
///
/// ```
/// use hookwright::hook::Payload;
/// let payload = Payload::from(serde_json::json!({"command": "ls"}));
/// assert_eq!(payload.json().unwrap()["command"], "ls");
/// ```
#[derive(Clone)]
pub struct Payload(Arc<Inner<dyn Foreign>>);

impl Payload {
    /// A payload whose value lives elsewhere.
    pub fn foreign(value: impl Foreign + 'static) -> Self {
        Payload(Arc::new(Inner { json: OnceLock::new(), rendition: OnceLock::new(), source: value }))
    }

    /// The value as JSON, rendered on the first call and kept.
    ///
    /// # Errors
    /// When a foreign value has no JSON form.
    pub fn json(&self) -> Result<&Value, &PayloadError> {
        if let Some(json) = self.0.json.get() {
            return json.as_ref();
        }
        // Rendered before the cell is entered: a host may have to wait for a lock of its own (the interpreter's), whose
        // holder must not have to wait for the cell.
        let json = self.0.source.to_json();
        self.0.json.get_or_init(|| json).as_ref()
    }

    /// The value as text if it is a JSON string.
    pub fn text(&self) -> Option<&str> {
        self.json().ok().and_then(Value::as_str)
    }

    /// The host's own value, if this payload came from a host and is of type `T`.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        self.0.source.as_any().downcast_ref()
    }

    /// A host's rendition of this value (a Python object, say), made once and shared by every reader.
    pub fn rendition(&self) -> &OnceLock<Box<dyn Any + Send + Sync>> {
        &self.0.rendition
    }

    /// Whether both are the same value in memory: says nothing about equality of content.
    pub fn same(&self, other: &Payload) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Payload(Arc::new(Inner { json: OnceLock::from(Ok(value)), rendition: OnceLock::new(), source: Json }))
    }
}

impl From<Map<String, Value>> for Payload {
    fn from(object: Map<String, Value>) -> Self {
        Value::Object(object).into()
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.json() {
            Ok(value) => write!(f, "{value}"),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counted(Arc<AtomicUsize>);

    impl Foreign for Counted {
        fn to_json(&self) -> Result<Value, PayloadError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Value::from("rendered"))
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn a_foreign_value_is_rendered_once_and_only_when_read() {
        let count = Arc::new(AtomicUsize::new(0));
        let payload = Payload::foreign(Counted(count.clone()));
        let shared = payload.clone();
        assert_eq!(count.load(Ordering::Relaxed), 0);
        assert_eq!(payload.text(), Some("rendered"));
        assert_eq!(shared.text(), Some("rendered"));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert!(payload.same(&shared));
        assert!(payload.downcast::<Counted>().is_some());
    }
}
