//! What differs from server to server, as data.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::call_id::CallIds;
use super::pattern;
use crate::suggest::did_you_mean;

static SOURCE: &str = include_str!("profiles.toml");

static PROFILES: LazyLock<Vec<Arc<Profile>>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        profile: Vec<Profile>,
    }
    // The file is part of the program, and every test of this module reads it.
    #[expect(clippy::expect_used, reason = "a constant that is covered by tests")]
    let file: File = toml::from_str(SOURCE).expect("profiles.toml is valid");
    file.profile.into_iter().map(Arc::new).collect()
});

/// What differs from server to server: what it accepts and what it wants. The profiles stand in `profiles.toml`.
///
/// ```
/// use hookwright::model::Profile;
/// assert_eq!(Profile::for_url("https://api.deepseek.com/v1").name, "deepseek");
/// assert_eq!(Profile::for_url("http://localhost:8080/v1").name, "compatible");
/// assert_eq!(Profile::named("mistral")?.token_limit.as_deref(), Some("max_tokens"));
/// # Ok::<(), hookwright::model::UnknownProfile>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Patterns of the hosts that it is for; with a colon they include the port.
    pub hosts: Vec<String>,
    /// Where the API begins if nothing else is said.
    pub base_url: Option<String>,
    /// The environment variables that usually hold the key.
    pub key_variables: Vec<String>,
    /// The header that carries the key; `None` is `Authorization: Bearer …`.
    pub key_header: Option<String>,
    /// Whether nothing works without a key.
    pub key_required: bool,
    /// The one name of the setting that limits the output; `None` sends what the user wrote.
    pub token_limit: Option<String>,
    /// The limit on the output that is sent where the user gives none: the first entry that fits the model.
    pub default_max_tokens: Vec<DefaultMaxTokens>,
    /// Settings that are left out because the server refuses them.
    pub refused: Vec<Refused>,
    /// Which ids of tool calls are accepted.
    pub call_ids: CallIds,
    /// The field in which reasoning is sent back; empty is none.
    pub reasoning_field: String,
    /// Of which messages reasoning is sent back.
    pub reasoning_scope: ReasoningScope,
    /// The opaque fields of messages that are sent back as they came.
    pub echo: Vec<String>,
    /// Whether unknown fields of tool calls are sent back as they came.
    pub echo_call_fields: bool,
    /// Whether the usage at the end of a stream has to be asked for.
    pub stream_usage: bool,
    /// Whether there may be one system message only, at the beginning.
    pub one_system_message: bool,
    /// Whether messages of user and assistant have to alternate.
    pub alternate_roles: bool,
    /// Whether a result has to be followed by the assistant.
    pub assistant_after_tool: bool,
    /// What stands for the content of a message that only calls tools.
    pub no_content: NoContent,
    /// Whether parts of messages may carry marks for the server's cache.
    pub cache_marks: bool,
    /// Whether results of tools may hold images; if not, they follow in a message of the user.
    pub images_in_results: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            name: String::new(),
            hosts: Vec::new(),
            base_url: None,
            key_variables: Vec::new(),
            key_header: None,
            key_required: false,
            token_limit: None,
            default_max_tokens: Vec::new(),
            refused: Vec::new(),
            call_ids: CallIds::default(),
            reasoning_field: String::new(),
            reasoning_scope: ReasoningScope::Turn,
            echo: Vec::new(),
            echo_call_fields: true,
            stream_usage: true,
            one_system_message: false,
            alternate_roles: false,
            assistant_after_tool: false,
            no_content: NoContent::Null,
            cache_marks: false,
            images_in_results: false,
        }
    }
}

/// A limit on the output for some models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultMaxTokens {
    /// Patterns of their names.
    pub models: Vec<String>,
    /// The limit.
    pub tokens: u64,
}

/// Settings that some models refuse.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Patterns of their names.
    pub models: Vec<String>,
    /// Patterns of names that fit but are not meant.
    #[serde(default)]
    pub except: Vec<String>,
    /// The settings.
    pub settings: Vec<String>,
    /// They are refused only if this setting is there too.
    #[serde(default)]
    pub beside: Option<String>,
}

/// Of which messages reasoning is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningScope {
    /// Of those behind the last word of the user.
    Turn,
    /// Of all.
    All,
}

/// What stands for the content of a message that only calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoContent {
    /// `null`.
    Null,
    /// The empty text.
    Empty,
    /// Nothing: the field is left out.
    Omit,
}

/// A profile that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {name:?}; {}", match .suggestion {
    Some(suggestion) => format!("did you mean {suggestion:?}?"),
    None => format!("there are {}", .known.join(", ")),
})]
pub struct UnknownProfile {
    /// What was asked for.
    pub name: String,
    /// The nearest that there is.
    pub suggestion: Option<String>,
    /// Those that there are.
    pub known: Vec<String>,
}

impl Profile {
    /// The profile of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Arc<Profile>, UnknownProfile> {
        PROFILES.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
            let known: Vec<String> = PROFILES.iter().map(|profile| profile.name.clone()).collect();
            let suggestion = did_you_mean(name, known.iter().map(String::as_str)).map(str::to_owned);
            UnknownProfile { name: name.to_owned(), suggestion, known }
        })
    }

    /// The profile for the server at `base_url`, by its host; `compatible` if it is not known.
    pub fn for_url(base_url: &str) -> Arc<Profile> {
        let url = Url::parse(base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_ascii_lowercase();
        let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
        let with_port = format!("{host}:{port}");
        let is_for = |pattern: &String| matches(pattern, if pattern.contains(':') { &with_port } else { &host });
        let known = PROFILES.iter().find(|profile| profile.hosts.iter().any(is_for));
        known.or(PROFILES.last()).cloned().unwrap_or_default()
    }

    /// The names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|profile| profile.name.as_str())
    }

    /// The limit on the output of `model` that is sent where the user gives none.
    pub fn max_tokens_of(&self, model: &str) -> Option<u64> {
        self.default_max_tokens.iter().find(|entry| fits(&entry.models, model)).map(|entry| entry.tokens)
    }

    /// Writes `settings` for `model` as the server accepts them: the limit on the output under its name, and without what
    /// is refused.
    pub fn adapt(&self, settings: &mut Map<String, Value>, model: &str) {
        if let Some(name) = &self.token_limit {
            for other in ["max_tokens", "max_completion_tokens"] {
                if other != name
                    && let Some(limit) = settings.remove(other)
                {
                    settings.entry(name.as_str()).or_insert(limit);
                }
            }
        }
        for refused in
            self.refused.iter().filter(|refused| fits(&refused.models, model) && !fits(&refused.except, model))
        {
            if refused.beside.as_ref().is_none_or(|beside| is_on(settings.get(beside))) {
                settings.retain(|name, _| !refused.settings.contains(name));
            }
        }
    }
}

/// Whether a setting is there and does not say that it is switched off.
fn is_on(setting: Option<&Value>) -> bool {
    setting.is_some_and(|value| !value.is_null() && value.get("type").and_then(Value::as_str) != Some("disabled"))
}

/// Whether one of `patterns` fits `model`, or what is behind the last slash of it.
fn fits(patterns: &[String], model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Whether `text` is what `pattern` describes, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    pattern::fits(&pattern.split('*').collect::<Vec<_>>(), text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_choose_their_profile() {
        for (url, name) in [
            ("https://api.openai.com/v1", "openai"),
            ("https://EU.api.openai.com/v1", "openai"),
            ("https://me.openai.azure.com/openai/deployments/x", "azure"),
            ("https://api.anthropic.com", "anthropic"),
            ("https://api.mistral.ai/v1", "mistral"),
            ("https://dashscope-us.aliyuncs.com/compatible-mode/v1", "qwen"),
            ("http://localhost:11434/v1", "ollama"),
            ("http://10.0.0.1:11434", "ollama"),
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.openai.com.evil.example/v1", "compatible"),
            ("http://localhost:8000/v1", "compatible"),
            ("nonsense", "compatible"),
        ] {
            assert_eq!(Profile::for_url(url).name, name, "{url}");
        }
        assert!(Profile::names().count() >= 14);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert_eq!(
            Profile::named("mistrall").unwrap_err().to_string(),
            "there is no profile \"mistrall\"; did you mean \"mistral\"?"
        );
        assert!(Profile::named("x").unwrap_err().to_string().contains("openai, azure, anthropic"));
    }

    #[test]
    fn settings_are_written_as_the_server_accepts_them() {
        let adapted = |profile: &str, model: &str, settings: Value| {
            let mut settings = settings.as_object().unwrap().clone();
            Profile::named(profile).unwrap().adapt(&mut settings, model);
            Value::Object(settings)
        };
        let all = json!({"max_tokens": 5, "temperature": 0.5, "stop": ["x"]});
        assert_eq!(adapted("openai", "o3-mini", all.clone()), json!({"stop": ["x"], "max_completion_tokens": 5}));
        assert_eq!(adapted("openai", "gpt-4o", all.clone())["temperature"], 0.5);
        assert_eq!(adapted("openai", "gpt-5-chat-latest", all.clone())["temperature"], 0.5);
        assert_eq!(adapted("mistral", "m", json!({"max_completion_tokens": 7})), json!({"max_tokens": 7}));
        assert_eq!(adapted("compatible", "m", all.clone()), all);
        let thinking = json!({"temperature": 0.1, "thinking": {"type": "enabled"}});
        assert_eq!(adapted("anthropic", "claude-sonnet-4-5", thinking), json!({"thinking": {"type": "enabled"}}));
        let off = json!({"temperature": 0.1, "thinking": {"type": "disabled"}});
        assert_eq!(adapted("anthropic", "claude-sonnet-4-5", off.clone()), off);
        let anthropic = Profile::named("anthropic").unwrap();
        assert_eq!(anthropic.max_tokens_of("claude-3-haiku-20240307"), Some(4096));
        assert_eq!(anthropic.max_tokens_of("us/claude-sonnet-5"), Some(16384));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, wanted) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
