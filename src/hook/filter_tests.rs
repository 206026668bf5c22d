use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(Default)]
struct Subject {
    tool: Option<&'static str>,
    model: Option<&'static str>,
    agent: Option<&'static str>,
    arguments: Value,
}

impl FilterSubject for Subject {
    fn tool_name(&self) -> Option<&str> {
        self.tool
    }
    fn model(&self) -> Option<&str> {
        self.model
    }
    fn agent(&self) -> Option<&str> {
        self.agent
    }
    fn argument(&self, name: &str) -> Option<Cow<'_, str>> {
        self.arguments.get(name).map(argument_text)
    }
}

struct Tool<'a>(&'a str);

impl FilterSubject for Tool<'_> {
    fn tool_name(&self) -> Option<&str> {
        Some(self.0)
    }
    fn model(&self) -> Option<&str> {
        None
    }
    fn agent(&self) -> Option<&str> {
        None
    }
    fn argument(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }
}

fn filter(spec: Value) -> Filter {
    Filter::compile(&serde_json::from_value(spec).unwrap()).unwrap()
}

fn why_not(spec: Value, subject: &Subject) -> String {
    let filter = filter(spec);
    assert!(!filter.matches(subject));
    filter.explain(subject).unwrap_err().to_string()
}

fn mistake(spec: Value) -> String {
    Filter::compile(&serde_json::from_value(spec).unwrap()).unwrap_err().to_string()
}

#[test]
fn no_condition_matches_everything() {
    let filter = filter(json!({}));
    assert!(filter.is_empty());
    assert!(filter.matches(&Subject::default()));
    assert_eq!(filter.explain(&Subject::default()), Ok(()));
}

#[test]
fn a_condition_on_what_the_event_lacks_does_not_match() {
    let nothing = Subject::default();
    for (spec, message) in [
        (json!({"tool_name": "shell"}), r#"tool_name "shell" needs tool_name, which the event does not carry"#),
        (json!({"tool_matcher": "*"}), r#"tool_matcher "*" needs tool_name, which the event does not carry"#),
        (json!({"tool_regex": ".*"}), r#"tool_regex ".*" needs tool_name, which the event does not carry"#),
        (json!({"model_prefix": "gpt"}), r#"model_prefix "gpt" needs model, which the event does not carry"#),
        (json!({"agent": "*"}), r#"agent "*" needs agent, which the event does not carry"#),
        (
            json!({"arguments": {"path": "*"}}),
            r#"arguments.path "*" needs argument "path", which the event does not carry"#,
        ),
    ] {
        assert_eq!(why_not(spec, &nothing), message);
    }
}

#[test]
fn tool_name_is_exact_and_wins_over_tool_matcher() {
    let shell = Subject { tool: Some("shell"), ..Subject::default() };
    assert!(filter(json!({"tool_name": "shell", "tool_matcher": "grep"})).matches(&shell));
    assert_eq!(
        why_not(json!({"tool_name": "Shell", "tool_matcher": "shell"}), &shell),
        r#"tool_name "Shell" does not match tool_name "shell""#
    );
    assert!(!filter(json!({"tool_name": "shel*"})).matches(&shell), "no glob");
}

#[test]
fn tool_matcher_is_a_list_of_names_and_globs() {
    let matcher = filter(json!({"tool_matcher": "shell | write_*|mcp__github__*"}));
    for (name, expected) in [
        ("shell", true),
        ("shell2", false),
        ("write_file", true),
        ("write_", true),
        ("overwrite_file", false),
        ("mcp__github__a/b", true),
        ("SHELL", false),
    ] {
        assert_eq!(matcher.matches(&Tool(name)), expected, "{name}");
    }
    let grep = Subject { tool: Some("grep"), ..Subject::default() };
    assert_eq!(
        why_not(json!({"tool_matcher": "shell|write_*"}), &grep),
        r#"tool_matcher "shell|write_*" does not match tool_name "grep""#
    );
}

#[test]
fn tool_regex_is_anchored_at_both_ends() {
    let regex = filter(json!({"tool_regex": "sh|ba"}));
    for (name, expected) in [("sh", true), ("ba", true), ("sha", false), ("aba", false), ("sh\n", false)] {
        assert_eq!(regex.matches(&Tool(name)), expected, "{name:?}");
    }
}

#[test]
fn model_agent_and_arguments() {
    let subject = Subject {
        tool: Some("shell"),
        model: Some("gpt-5-mini"),
        agent: Some("main"),
        arguments: json!({"command": "rm -rf a/b", "count": 3, "flags": {"force": true}, "none": null}),
    };
    for (spec, expected) in [
        (json!({"model_prefix": "gpt-5", "agent": "m*", "arguments": {"command": "rm *"}}), true),
        (json!({"model_prefix": "pt-5"}), false),
        (json!({"agent": "mai"}), false),
        (json!({"arguments": {"count": "3", "flags": r#"\{"force":true\}"#, "none": "null"}}), true),
        (json!({"arguments": {"command": "rm *", "count": "4"}}), false),
        (json!({"arguments": {"missing": "*"}}), false),
        (json!({"tool_matcher": "shell", "model_prefix": "claude"}), false),
    ] {
        assert_eq!(filter(spec.clone()).matches(&subject), expected, "{spec}");
    }
    assert_eq!(
        why_not(json!({"arguments": {"command": "ls*"}}), &subject),
        r#"arguments.command "ls*" does not match argument "command" "rm -rf a/b""#
    );
}

#[test]
fn a_long_value_is_cut_in_the_reason() {
    let subject = Subject { arguments: json!({"text": "字".repeat(1000)}), ..Subject::default() };
    let reason = why_not(json!({"arguments": {"text": "x"}}), &subject);
    assert_eq!(reason.chars().filter(|c| *c == '字').count(), 80);
    assert!(reason.ends_with("...\""));
}

#[test]
fn a_bad_pattern_is_named_with_its_place() {
    for (spec, message) in [
        (json!({"tool_name": ""}), r#"bad pattern in tool_name: "": it is empty"#),
        (
            json!({"tool_matcher": "a||b"}),
            r#"bad pattern in tool_matcher: "a||b": an empty alternative at character 3"#,
        ),
        (json!({"tool_matcher": "a|"}), r#"bad pattern in tool_matcher: "a|": an empty alternative at character 3"#),
        (
            json!({"tool_matcher": "字| [b", "tool_name": "x"}),
            r#"bad pattern in tool_matcher: "字| [b": "[" is never closed at character 4"#,
        ),
        (json!({"tool_regex": "字(b"}), r#"bad pattern in tool_regex: "字(b": unclosed group at character 2"#),
        (json!({"tool_regex": "a)|(b"}), r#"bad pattern in tool_regex: "a)|(b": unopened group at character 2"#),
        (
            json!({"tool_regex": "(?x) a # b"}),
            r##"bad pattern in tool_regex: "(?x) a # b": a comment at the end of the pattern hides what follows it"##,
        ),
        (json!({"tool_regex": r"\w{9000}"}), r#"bad pattern in tool_regex: "\\w{9000}": the pattern is too large"#),
        (json!({"agent": "a{"}), r#"bad pattern in agent: "a{": "{" is never closed at character 2"#),
        (
            json!({"arguments": {"path": "[z-a]"}}),
            r#"bad pattern in arguments.path: "[z-a]": the range z-a is reversed at character 2"#,
        ),
    ] {
        assert_eq!(mistake(spec), message);
    }
}

#[test]
fn an_unknown_key_is_refused() {
    assert!(serde_json::from_value::<FilterSpec>(json!({"tool": "x"})).is_err());
}

#[test]
fn a_matcher_that_fits_no_tool_is_warned_of() {
    let tools = ["shell", "grep", "write_file"];
    let warning = |spec: Value| filter(spec).fits_any_tool(&tools);
    assert_eq!(warning(json!({"tool_matcher": "shell|nothing"})), None);
    assert_eq!(warning(json!({"agent": "x"})), None);
    assert_eq!(filter(json!({"tool_name": "x"})).fits_any_tool(&[]), None);
    assert_eq!(
        warning(json!({"tool_name": "shel"})).unwrap(),
        r#"tool_name "shel" fits none of the 3 registered tools; did you mean "shell"?"#
    );
    assert_eq!(
        warning(json!({"tool_matcher": "zzz|wrte_*"})).unwrap(),
        r#"tool_matcher "zzz|wrte_*" fits none of the 3 registered tools; did you mean "write_file"?"#
    );
    assert_eq!(
        warning(json!({"tool_matcher": "shell", "tool_regex": "g.*"})).unwrap(),
        r#"tool_matcher "shell" and tool_regex "g.*" together fit none of the 3 registered tools; did you mean "shell"?"#
    );
}

proptest! {
    #[test]
    fn explain_agrees_with_matches(
        matcher in "[ab*?]{1,4}(\\|[ab*?]{1,4}){0,2}",
        regex in proptest::option::of("[ab]{1,3}(\\|[ab.]{1,3})?"),
        name in "[ab/]{0,5}",
    ) {
        let spec = FilterSpec { tool_matcher: Some(matcher), tool_regex: regex, ..FilterSpec::default() };
        let filter = Filter::compile(&spec).unwrap();
        prop_assert_eq!(filter.matches(&Tool(&name)), filter.explain(&Tool(&name)).is_ok());
        prop_assert_eq!(filter.matches(&Tool(&name)), filter.fits_any_tool(&[&name]).is_none());
    }

    #[test]
    fn a_list_of_plain_names_matches_exactly_those(names in proptest::collection::vec("[a-z_]{1,6}", 1..5), other in "[a-z_]{1,6}") {
        let spec = FilterSpec { tool_matcher: Some(names.join("|")), ..FilterSpec::default() };
        let filter = Filter::compile(&spec).unwrap();
        for name in &names {
            prop_assert!(filter.matches(&Tool(name)));
        }
        prop_assert_eq!(filter.matches(&Tool(&other)), names.contains(&other));
    }

    #[test]
    fn conditions_are_joined_by_and(first in "[ab*]{1,3}", second in "[ab.]{1,3}", name in "[ab]{0,4}") {
        let both = FilterSpec { tool_matcher: Some(first.clone()), tool_regex: Some(second.clone()), ..FilterSpec::default() };
        let matcher = FilterSpec { tool_matcher: Some(first), ..FilterSpec::default() };
        let regex = FilterSpec { tool_regex: Some(second), ..FilterSpec::default() };
        let matches = |spec: &FilterSpec| Filter::compile(spec).unwrap().matches(&Tool(&name));
        prop_assert_eq!(matches(&both), matches(&matcher) && matches(&regex));
    }

    #[test]
    fn any_pattern_compiles_or_is_refused(pattern in any::<String>()) {
        for key in ["tool_name", "tool_matcher", "tool_regex", "model_prefix", "agent"] {
            let spec: FilterSpec = serde_json::from_value(json!({ key: pattern })).unwrap();
            if let Err(error) = Filter::compile(&spec) {
                prop_assert_eq!(error.key, key);
            }
        }
    }
}
