//! Arguments against their JSON Schema: every problem at once, in words that a model can act on.

use std::fmt;
use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::error::ToolErrorCode;
use crate::suggest::did_you_mean;

/// One way in which arguments do not fit their schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The argument at fault, as a path such as `edits[0].path`; empty if it is the arguments as a whole.
    pub field: String,
    /// What is wrong with it. Values are not repeated: they can be long or secret.
    pub message: String,
    /// Its kind: `required`, `type` or `invalid`.
    pub code: ToolErrorCode,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "`{}`: {}", self.field, self.message)
        }
    }
}

/// Checks the arguments of one tool. The schema is compiled once, at the first check.
///
/// ```
/// use hookwright::tool::ArgumentValidator;
/// use serde_json::json;
/// let validator = ArgumentValidator::new(&json!({
///     "type": "object",
///     "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
///     "required": ["path"],
///     "additionalProperties": false,
/// }));
/// let problems = validator.validate(&json!({"limit": "ten", "pth": "a"})).unwrap_err();
/// let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
/// assert_eq!(lines, [
///     "`limit`: must be an integer, not a string",
///     "`path`: is required",
///     "`pth`: is not a known argument; did you mean `path`?",
/// ]);
/// ```
#[derive(Debug, Clone)]
pub struct ArgumentValidator {
    schema: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl ArgumentValidator {
    /// A validator for a JSON Schema. A broken schema shows at the first check, or in [`check`](Self::check).
    pub fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), compiled: OnceLock::new() }
    }

    /// Compiles the schema.
    ///
    /// # Errors
    /// Says what is wrong with the schema.
    pub fn check(&self) -> Result<(), String> {
        self.validator().map(drop)
    }

    /// Checks `arguments`.
    ///
    /// # Errors
    /// All problems, sorted by field. A schema that cannot be compiled is one problem: nothing passes it.
    pub fn validate(&self, arguments: &Value) -> Result<(), Vec<Problem>> {
        let validator = match self.validator() {
            Ok(validator) => validator,
            Err(reason) => {
                let message = format!("the tool's own schema is broken ({reason}); the tool cannot be called");
                return Err(vec![Problem { field: String::new(), message, code: ToolErrorCode::Invalid }]);
            }
        };
        if validator.is_valid(arguments) {
            return Ok(());
        }
        let mut problems: Vec<Problem> =
            validator.iter_errors(arguments).flat_map(|error| self.problems_of(&error)).collect();
        problems.sort_by(|one, other| one.field.cmp(&other.field));
        problems.dedup();
        Err(problems)
    }

    fn validator(&self) -> Result<&Validator, String> {
        self.compiled
            .get_or_init(|| jsonschema::validator_for(&self.schema).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn problems_of(&self, error: &ValidationError<'_>) -> Vec<Problem> {
        let field = field_of(error);
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let field = joined(&field, property.as_str().unwrap_or_default());
                vec![Problem { field, message: "is required".into(), code: ToolErrorCode::Required }]
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.known_properties(error);
                let unknown = |name: &String| {
                    let known = known.iter().map(String::as_str);
                    let message = match did_you_mean(name, known.clone()) {
                        Some(near) => format!("is not a known argument; did you mean `{near}`?"),
                        None if known.len() == 0 => "is not a known argument".to_owned(),
                        None => format!("is not a known argument; known are {}", known.collect::<Vec<_>>().join(", ")),
                    };
                    Problem { field: joined(&field, name), message, code: ToolErrorCode::Invalid }
                };
                unexpected.iter().map(unknown).collect()
            }
            _ => vec![Problem { message: message_of(error), code: code_of(error), field }],
        }
    }

    /// The properties that the schema knows where an unknown one was found.
    fn known_properties(&self, error: &ValidationError<'_>) -> Vec<String> {
        let place = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.schema.pointer(place).and_then(|schema| schema.get("properties"));
        properties.and_then(Value::as_object).map(|known| known.keys().cloned().collect()).unwrap_or_default()
    }
}

fn field_of(error: &ValidationError<'_>) -> String {
    let mut field = String::new();
    for segment in error.instance_path() {
        match segment {
            jsonschema::paths::LocationSegment::Property(name) => field = joined(&field, &name),
            jsonschema::paths::LocationSegment::Index(index) => field.push_str(&format!("[{index}]")),
        }
    }
    field
}

fn joined(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

fn code_of(error: &ValidationError<'_>) -> ToolErrorCode {
    match error.kind() {
        ValidationErrorKind::Type { .. } => ToolErrorCode::Type,
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
            if context.iter().flatten().all(|inner| matches!(inner.kind(), ValidationErrorKind::Type { .. })) =>
        {
            ToolErrorCode::Type
        }
        _ => ToolErrorCode::Invalid,
    }
}

fn message_of(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { .. } => {
            format!("must be {}, not {}", expected_type(error), actual_type(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
            let near = error
                .instance()
                .as_str()
                .and_then(|given| did_you_mean(given, options.iter().map(|option| option.trim_matches('"'))));
            let hint = near.map(|near| format!("; did you mean {}?", Value::from(near))).unwrap_or_default();
            format!("must be one of {}{hint}", options.join(", "))
        }
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(error, context)
        }
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        _ => error.masked_with("the value").to_string(),
    }
}

/// What an argument with several allowed forms has to be. If it is only the type that differs, one short line.
fn alternatives(error: &ValidationError<'_>, branches: &[Vec<ValidationError<'static>>]) -> String {
    let here = error.instance_path();
    if branches
        .iter()
        .flatten()
        .all(|inner| matches!(inner.kind(), ValidationErrorKind::Type { .. }) && inner.instance_path() == here)
    {
        let expected: Vec<String> = branches.iter().flatten().map(expected_type).collect();
        return format!("must be {}, not {}", expected.join(" or "), actual_type(error.instance()));
    }
    let branch = |errors: &Vec<ValidationError<'static>>| {
        let each = errors.iter().map(|inner| {
            if inner.instance_path() == here {
                message_of(inner)
            } else {
                format!("`{}` {}", field_of(inner), message_of(inner))
            }
        });
        each.collect::<Vec<_>>().join(" and ")
    };
    format!("fits none of the allowed forms: {}", branches.iter().map(branch).collect::<Vec<_>>().join("; or "))
}

fn expected_type(error: &ValidationError<'_>) -> String {
    let article = |name: String| match name.as_str() {
        "null" => name,
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(one) } => article(one.to_string()),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(several) } => {
            several.iter().map(|one| article(one.to_string())).collect::<Vec<_>>().join(" or ")
        }
        _ => "something else".to_owned(),
    }
}

fn actual_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(schema: Value, arguments: Value) -> Vec<String> {
        let found = ArgumentValidator::new(&schema).validate(&arguments).err().unwrap_or_default();
        found.iter().map(|problem| format!("{} {problem}", problem.code)).collect()
    }

    #[test]
    fn fitting_arguments_pass() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        assert_eq!(ArgumentValidator::new(&schema).validate(&json!({"a": 1, "b": 2})), Ok(()));
    }

    #[test]
    fn nested_fields_are_named_by_their_path() {
        let item = json!({"type": "object", "properties": {"path": {"type": "string", "minLength": 1}},
                          "required": ["path"], "additionalProperties": false});
        let schema = json!({"type": "object", "properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}}},
                            "$defs": {"Edit": item}});
        assert_eq!(
            problems(schema, json!({"edits": [{"path": ""}, {"paht": "x"}, 5]})),
            [
                "invalid `edits[0].path`: must not be empty",
                "invalid `edits[1].paht`: is not a known argument; did you mean `path`?",
                "required `edits[1].path`: is required",
                "type `edits[2]`: must be an object, not a number",
            ]
        );
    }

    #[test]
    fn an_unknown_argument_without_a_near_one_lists_the_known() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false});
        assert_eq!(problems(schema, json!({"zebra": 1})), ["invalid `zebra`: is not a known argument; known are a, b"]);
    }

    #[test]
    fn optional_types_and_choices_read_as_one_line() {
        let schema = json!({"type": "object", "properties": {
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "mode": {"enum": ["fast", "slow"]},
            "size": {"type": ["string", "null"]},
            "when": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["at"]}]},
        }});
        assert_eq!(
            problems(schema, json!({"limit": "x", "mode": "fats", "size": 4, "when": {}})),
            [
                "type `limit`: must be an integer or null, not a string",
                "invalid `mode`: must be one of \"fast\", \"slow\"; did you mean \"fast\"?",
                "type `size`: must be null or a string, not a number",
                "invalid `when`: fits none of the allowed forms: must be a string, not an object; or \
                 \"at\" is a required property",
            ]
        );
    }

    #[test]
    fn values_are_not_repeated() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 10}, "s": {"pattern": "^a"}}});
        let lines = problems(schema, json!({"n": 4711, "s": "secret"}));
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].contains("10") && !lines.concat().contains("4711") && !lines.concat().contains("secret"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_broken_schema_lets_nothing_pass() {
        let validator = ArgumentValidator::new(&json!({"type": "objekt"}));
        assert!(validator.check().is_err());
        let found = validator.validate(&json!({})).unwrap_err();
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with("the tool's own schema is broken ("), "{}", found[0].message);
    }
}
