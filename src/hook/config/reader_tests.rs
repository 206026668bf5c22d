use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What was read, in JSON (plain scalars in angle brackets), and the problems.
fn read(text: &str, is_json: bool) -> (Option<serde_json::Value>, Vec<String>) {
    let mut report = Report::new(Path::new("f"));
    let pairs = read_text(text, is_json, &mut report);
    let problems = report.problems.iter().map(ToString::to_string).collect();
    (pairs.map(|pairs| show(&Value::Mapping(pairs))), problems)
}

fn show(value: &Value) -> serde_json::Value {
    match value {
        Value::Scalar { text, quoted: true } => json!(text),
        Value::Scalar { text, quoted: false } => json!(format!("<{text}>")),
        Value::Sequence(items) => items.iter().map(|item| show(&item.value)).collect(),
        Value::Mapping(pairs) => pairs.iter().map(|pair| (pair.key.clone(), show(&pair.value.value))).collect(),
    }
}

fn yaml(text: &str) -> serde_json::Value {
    let (value, problems) = read(text, false);
    assert_eq!(problems, Vec::<String>::new());
    value.unwrap()
}

#[test]
fn nothing_at_all_is_an_empty_mapping() {
    for text in ["", "\n\n", "# only a remark\n", "---\n", "{}", "null\n"] {
        assert_eq!(yaml(text), json!({}), "{text:?}");
    }
}

#[test]
fn quotes_and_blocks_are_told_from_plain_values() {
    let text = "a: 1\nb: '1'\nc: \"1\"\nd: |\n  x\n  y\ne: >\n  x\n  y\nf:\ng: [true, ~]\n";
    let expected =
        json!({"a": "<1>", "b": "1", "c": "1", "d": "x\ny\n", "e": "x y\n", "f": "<>", "g": ["<true>", "<~>"]});
    assert_eq!(yaml(text), expected);
    assert_eq!(yaml(&text.replace('\n', "\r\n")), expected, "with the line ends of Windows");
}

#[test]
fn every_repeated_key_is_reported_and_the_first_one_kept() {
    let (value, problems) = read("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n", false);
    assert_eq!(value.unwrap(), json!({"a": "<1>", "b": {"c": "<1>"}}));
    assert_eq!(
        problems,
        [
            "f:2:1: key \"a\" is repeated (first on line 1); keep one of them",
            "f:5:3: key \"c\" is repeated (first on line 4); keep one of them",
        ]
    );
}

#[test]
fn what_hook_files_do_not_use_is_a_problem_with_a_place() {
    for (text, expected) in [
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document; put everything into one, without a line \"---\""),
        ("a: !!str 1\n", "f:1:10: a tag (\"!...\"), which hook files do not use; leave it out"),
        ("- a\n", "f:1:1: the file must hold keys and values; begin with \"version: 1\""),
        ("word", "f:1:1: the file must hold keys and values; begin with \"version: 1\""),
        ("? [a]\n: 1\n", "f:1:3: a key must be a single word or text"),
        ("a: 字\0b\n", "f:1:5: a NUL character, which YAML does not allow"),
        (
            "a: echo b: c\n",
            "f:1:10: not YAML: mapping values are not allowed in this context; put a value that contains \": \" in quotes",
        ),
        (
            "a:\n\tb: 1\n",
            "f:2:2: not YAML: tabs disallowed within this context (block indentation); indent with spaces",
        ),
        (
            "a: *x\n",
            "f:1:4: not YAML: while parsing node, found unknown anchor; put a value that begins with a special character in quotes",
        ),
    ] {
        assert_eq!(read(text, false).1, [expected], "{text:?}");
    }
    let (_, anchors) = read("a: &x 1\nb: *x\n", false);
    assert_eq!(anchors.len(), 2, "{anchors:?}");
    assert!(anchors[0].starts_with("f:1:7: an anchor or alias"));
}

#[test]
fn no_depth_of_nesting_exhausts_the_stack() {
    for text in ["[".repeat(100_000), format!("a:\n  {}x", "- ".repeat(20_000)), "{a: ".repeat(50)] {
        let (value, problems) = read(&text, false);
        assert_eq!((value, problems.len()), (None, 1));
    }
    assert_eq!(read(&format!("a:\n  {}x", "- ".repeat(40)), false).1, ["f:2:65: nested deeper than 32 levels"]);
}

#[test]
fn json_is_read_strictly_and_with_places() {
    assert_eq!(read("{\n\t\"a\": [1, \"x\\/y\"],\n\t\"b\":{\"c\":null}}\n", true).0.unwrap(), {
        json!({"a": ["<1>", "x/y"], "b": {"c": "<null>"}})
    });
    for (text, expected) in [
        ("{\"a\": 1,}", "f:1:9: not JSON: key must be a string"),
        ("{\"a\": 1} x", "f:1:10: not JSON: trailing characters"),
        ("{\n  a: 1\n}", "f:2:3: not JSON: key must be a string"),
        ("", "f:1:1: not JSON: EOF while parsing a value"),
    ] {
        assert_eq!(read(text, true).1, [expected], "{text:?}");
    }
}

#[test]
fn a_character_beyond_the_basic_plane_may_be_escaped_in_json() {
    let value = read(r#"{"a": "\ud83e\udd80 \\ud83e \"\\\ud83e\udd80"}"#, true).0.unwrap();
    assert_eq!(value, json!({"a": "🦀 \\ud83e \"\\🦀"}));
}

#[test]
fn a_missing_a_special_and_a_huge_file_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.yaml");
    fs::write(&huge, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
    for (path, reason) in [
        (folder.path().join("missing.yaml"), "cannot be read: No such file or directory (os error 2)"),
        (folder.path().to_owned(), "cannot be read: it is not a regular file"),
        (huge, "cannot be read: it is larger than 1048576 bytes"),
    ] {
        let mut report = Report::new(&path);
        assert_eq!(read_file(&path, &mut report), None);
        assert_eq!(report.problems[0].message, reason);
    }
}

#[test]
fn a_byte_order_mark_is_passed_over_and_bad_bytes_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.yaml");
    fs::write(&path, "\u{feff}a: 1\n").unwrap();
    let mut report = Report::new(&path);
    assert_eq!(read_file(&path, &mut report).unwrap()[0].key, "a");
    fs::write(&path, b"a: 1\nb: \xe5\xad\x97\xff\n").unwrap();
    assert_eq!(read_file(&path, &mut report), None);
    assert_eq!(report.problems[0].message, "not UTF-8: byte 0xff");
    assert_eq!(report.problems[0].position, Position { line: 2, column: 5 });
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let scalar = prop_oneof![
        any::<String>().prop_filter("a NUL is refused", |text| !text.contains('\0')).prop_map(|text| json!(text)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|flag| json!(flag)),
    ];
    scalar.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            proptest::collection::btree_map("[a-z \"\\\\字🦀:#-]{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The same as `show` makes of it.
fn shown(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Array(items) => items.iter().map(shown).collect(),
        serde_json::Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shown(value))).collect(),
        serde_json::Value::String(_) => value.clone(),
        other => json!(format!("<{other}>")),
    }
}

/// As `json.dumps` of Python writes it: nothing but ASCII.
fn ascii(json: &str) -> String {
    let mut units = [0; 2];
    json.chars()
        .map(|character| match character {
            ' '..='~' | '\n' => character.to_string(),
            other => other.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        })
        .collect()
}

proptest! {
    #[test]
    fn any_json_is_read_as_json(value in json_value()) {
        let document = json!({ "top": value });
        let (compact, pretty) = (document.to_string(), serde_json::to_string_pretty(&document).unwrap());
        for text in [ascii(&compact), ascii(&pretty), compact, pretty] {
            let (read, problems) = read(&text, true);
            prop_assert_eq!(problems, Vec::<String>::new(), "{}", text);
            prop_assert_eq!(read.unwrap(), shown(&document), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "[a-c:\\-?&*!|>'\"%@`#{}\\[\\], \n\t~0-9.]{0,40}") {
        let mut report = Report::new(Path::new("f"));
        if read_text(&text, false, &mut report).is_none() {
            prop_assert!(report.problems.iter().all(|problem| problem.position.line > 0));
            prop_assert!(!report.problems.is_empty());
        }
    }
}
