//! Whether a request is the one that was recorded.

use serde_json::Value;

use crate::hook::redact::REDACTED;
use crate::model::pattern;
use crate::model::trouble::one_line;

/// What differs first between what was recorded and what is asked, with where it is; `None` if nothing does.
pub(super) fn difference(recorded: &Value, asked: &Value, path: &str) -> Option<String> {
    match (recorded, asked) {
        (Value::Object(recorded), Value::Object(asked)) => {
            let known = recorded.iter().find_map(|(key, value)| match asked.get(key) {
                Some(asked) => difference(value, asked, &format!("{path}.{key}")),
                None => Some(format!("{path}.{key} is missing; recorded is {}", shown(value))),
            });
            known.or_else(|| {
                let new = asked.iter().find(|(key, _)| !recorded.contains_key(*key))?;
                Some(format!("{path}.{} is not in the record: {}", new.0, shown(new.1)))
            })
        }
        (Value::Array(recorded), Value::Array(asked)) => {
            let pairs = recorded.iter().zip(asked).enumerate();
            let differing = pairs
                .into_iter()
                .find_map(|(place, (recorded, asked))| difference(recorded, asked, &format!("{path}[{place}]")));
            let lengths = (recorded.len() != asked.len())
                .then(|| format!("{path} has {} entries; recorded are {}", asked.len(), recorded.len()));
            differing.or(lengths)
        }
        (Value::String(recorded), Value::String(asked)) if fits(recorded, asked) => None,
        (recorded, asked) if recorded == asked => None,
        (recorded, asked) => Some(format!("{path} is {}; recorded is {}", shown(asked), shown(recorded))),
    }
}

/// Whether `asked` is `recorded`, where whatever was taken out fits anything.
fn fits(recorded: &str, asked: &str) -> bool {
    pattern::fits(&recorded.split(REDACTED).collect::<Vec<_>>(), asked)
}

fn shown(value: &Value) -> String {
    let line = one_line(&value.to_string());
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
