//! Variables that may be set in front of a program.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    any_value: Vec<String>,
    prefixes: Vec<String>,
    values: HashMap<String, Vec<String>>,
}

/// Whether a program does no more harm with this variable set than without.
///
/// `value`: what it is set to, `None` if that is not known.
///
/// ```
/// use hookwright::gate::shell::environment_variable_is_safe;
/// assert!(environment_variable_is_safe("LC_ALL", Some("C")));
/// assert!(environment_variable_is_safe("GIT_PAGER", Some("cat")));
/// assert!(!environment_variable_is_safe("GIT_PAGER", Some("sh")));
/// assert!(!environment_variable_is_safe("PATH", Some(".")));
/// ```
pub fn environment_variable_is_safe(name: &str, value: Option<&str>) -> bool {
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    let source = SOURCE.get_or_init(|| toml::from_str(include_str!("../../commands/environment.toml")).ok());
    let Some(source) = source else { return false };
    source.any_value.iter().any(|known| known == name)
        || source.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
        || value.is_some_and(|value| source.values.get(name).is_some_and(|known| known.iter().any(|one| one == value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        assert!(environment_variable_is_safe("CI", None));
        assert!(environment_variable_is_safe("PAGER", Some("cat")));
        assert!(environment_variable_is_safe("GIT_PAGER", Some("")));
        for name in
            ["PATH", "LD_PRELOAD", "BASH_ENV", "HOME", "PS4", "IFS", "GIT_DIR", "LESSOPEN", "NODE_OPTIONS", "MAKEFLAGS"]
        {
            assert!(!environment_variable_is_safe(name, Some("cat")), "{name}");
        }
    }

    #[test]
    fn a_value_that_is_not_known_is_not_a_safe_one() {
        assert!(!environment_variable_is_safe("PAGER", None));
    }
}
