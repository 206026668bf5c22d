use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Letters and digits that no scanner for real keys takes for one, as they are in order.
fn filler(length: usize) -> String {
    "abcdefgh0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars().cycle().take(length).collect()
}

#[test]
fn keys_of_providers_are_taken_out_and_their_surroundings_kept() {
    for (prefix, length) in [
        ("sk-", 48),
        ("sk-proj-", 60),
        ("sk-ant-api03-", 90),
        ("sk_live_", 24),
        ("whsec_", 32),
        ("ghp_", 36),
        ("gho_", 36),
        ("ghs_", 36),
        ("github_pat_", 82),
        ("glpat-", 20),
        ("xoxb-", 40),
        ("xapp-", 40),
        ("AIza", 35),
        ("hf_", 34),
        ("npm_", 36),
        ("pypi-", 120),
    ] {
        let key = format!("{prefix}{}", filler(length));
        for (before, after) in [("", ""), ("use ", " now"), ("\"", "\","), ("(", ")"), ("字", "字"), ("\n", "\n")] {
            let text = format!("{before}{key}{after}");
            assert_eq!(redact(&text), format!("{before}[redacted]{after}"), "{text}");
        }
    }
    let aws = format!("AKIA{}", "ABCDEFGH23456789");
    assert_eq!(redact(&format!("id {aws}.")), "id [redacted].");
}

#[test]
fn tokens_headers_urls_and_assignments() {
    let jwt = format!("eyJ{}.eyJ{}.{}", filler(20), filler(60), filler(43));
    for (text, expected) in [
        (format!("the token {jwt}."), "the token [redacted]."),
        (format!("Authorization: Bearer {jwt}\nHost: x"), "Authorization: Bearer [redacted]\nHost: x"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==".into(), "Authorization: Basic [redacted]"),
        ("authorization: token 0a1b2c3d4e5f".into(), "authorization: token [redacted]"),
        (r#"{"Authorization": "Bearer abc123def456ghi789"}"#.into(), r#"{"Authorization": "Bearer [redacted]"}"#),
        ("curl -H 'bearer abc123def456ghi789'".into(), "curl -H 'bearer [redacted]'"),
        ("postgres://me:s3cr&t@db:5432/x".into(), "postgres://me:[redacted]@db:5432/x"),
        ("redis://:p@ss@host".into(), "redis://:[redacted]@host"),
        ("password=hunter2".into(), "password=[redacted]"),
        ("DB_PASSWORD=correcthorse\nX=1".into(), "DB_PASSWORD=[redacted]\nX=1"),
        ("password = \"correct horse\" # mine".into(), "password = \"[redacted]\" # mine"),
        ("passphrase: 'a\\'b c'".into(), "passphrase: '[redacted]'"),
        ("password: p@ssword".into(), "password: [redacted]"),
        ("token: 8f14e45fceea167a".into(), "token: [redacted]"),
        ("API_KEY='0123456789abcdef'".into(), "API_KEY='[redacted]'"),
        ("apiKey: \"0123456789abcdef\",".into(), "apiKey: \"[redacted]\","),
        ("client_secret=abc123def456&scope=x".into(), "client_secret=[redacted]&scope=x"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG".into(), "AWS_SECRET_ACCESS_KEY=[redacted]"),
        (r#"{"command": "{\"password\": \"hunter2\"}"}"#.into(), r#"{"command": "{\"password\": \"[redacted]\"}"}"#),
        ("deploy --token abc123def456 --force".into(), "deploy --token [redacted] --force"),
        ("password=[redacted] token=abc123def456".into(), "password=[redacted] token=[redacted]"),
    ] {
        assert_eq!(redact(&text), expected, "{text}");
    }
}

#[test]
fn private_keys_go_whole_also_cut_short_and_escaped() {
    let body = format!("{}\n{}\n", filler(64), filler(30));
    let block = |kind: &str| format!("-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----");
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        assert_eq!(redact(&format!("a\n{}\nb", block(kind))), "a\n[redacted]\nb");
    }
    assert_eq!(redact(&format!("\"{}\"", block("RSA ").replace('\n', "\\n"))), "\"[redacted]\"");
    assert_eq!(redact(&format!("-----BEGIN PRIVATE KEY-----\n{body}")), "[redacted]");
    let with_headers = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\nMIIE0123456789abcdef\n-----END RSA PRIVATE KEY-----\n";
    assert_eq!(redact(with_headers), "[redacted]\n");
    let public = format!("-----BEGIN PUBLIC KEY-----\n{body}-----END PUBLIC KEY-----");
    assert_eq!(redact(&public), public);
}

#[test]
fn ordinary_text_and_code_stay_as_they_are() {
    let image = format!("data:image/png;base64,iVBORw0KGgo{}", filler(5000).replace('-', "+"));
    for text in [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        &image,
        "max_tokens: 100",
        "max_tokens=4096, token_count=17, tokens: 123456",
        "token_count: 123456789",
        "def login(password: str, token: Optional[str] = None) -> bool:",
        "let token: String = tokenizer.next_token();",
        "token = get_token(request1)",
        "password = os.environ[\"DB_PASSWORD\"]",
        "api_key=os.environ.get('OPENAI_API_KEY')",
        "self.token = self.tokens2",
        "connect(token=self.token2, secret=config.secret1)",
        "password: ${DB_PASSWORD}",
        "token: <your-token-here-1234>",
        "{\"eos_token\": \"</s>\", \"pad_token\": \"[PAD]\", \"unk_token\": \"unknown\"}",
        "<input type=\"password\" name=\"password\">",
        "Authorization: Bearer <token>",
        "Authorization: Bearer YOUR_TOKEN_HERE",
        "a bearer of authentication-information",
        "if text.startswith(\"-----BEGIN PRIVATE KEY-----\"):",
        "import sk-learn-something-with-hyphens; risk-assessment-2024-final-version",
        "http://localhost:8080/a@b https://example.org/x?y=a:b@c",
        "git@github.com:owner/repository.git",
        "secret: true, token: uint256_t, pwd: /home/user1/project",
        "eyJust a word, eyJhbGciOiJI is short",
        "the password is not written here",
        "",
    ] {
        assert!(matches!(redact(text), Cow::Borrowed(same) if same == text), "{text} became {}", redact(text));
    }
}

#[test]
fn values_are_redacted_by_their_keys_and_by_their_looks() {
    let mut value = json!({
        "headers": {"Authorization": "x", "X-Api-Key": "y", "Set-Cookie": "a=b", "Accept": "text/html"},
        "user": {"password": "z", "userPassword": "", "apiKey": "k", "access_token": "t", "pwd": "/home"},
        "limits": {"max_tokens": 100, "token_count": "12", "token": 5, "password": null},
        "nested": [{"secret": {"value": "kept", "token": "gone"}}, "password=hunter2"],
        "password=hunter2": 1,
        "password=hunter3": 2,
    });
    Redactor::default().redact_value(&mut value);
    let expected = json!({
        "headers": {"Authorization": "[redacted]", "X-Api-Key": "[redacted]", "Set-Cookie": "[redacted]", "Accept": "text/html"},
        "user": {"password": "[redacted]", "userPassword": "", "apiKey": "[redacted]", "access_token": "[redacted]", "pwd": "/home"},
        "limits": {"max_tokens": 100, "token_count": "12", "token": 5, "password": null},
        "nested": [{"secret": {"value": "kept", "token": "[redacted]"}}, "password=[redacted]"],
        "password=[redacted]": 1,
        "password=[redacted] (2)": 2,
    });
    assert_eq!(value, expected);
    assert_eq!(value.to_string(), expected.to_string(), "in the same order");
}

#[test]
fn own_patterns_are_taken_out_and_bad_ones_refused() {
    let redactor = Redactor::new(["ACME-[0-9]+", "red"]).unwrap();
    assert_eq!(
        redactor.redact_text("ACME-1, a red one, password=hunter2"),
        "[redacted], a [redacted] one, password=[redacted]"
    );
    assert_eq!(redactor.redact_text("[redacted]"), "[redacted]");
    let bad = |pattern: &str| Redactor::new([pattern]).unwrap_err().to_string();
    assert_eq!(bad("a(b"), "bad redaction pattern \"a(b\": unclosed group");
    assert_eq!(bad("a*"), "bad redaction pattern \"a*\": it matches the empty text, which is everywhere");
}

/// Texts that make a careless expression run to the end again and again. The bound is generous: what is linear takes
/// well under a second here, what is quadratic takes hours.
#[test]
fn the_time_is_linear_in_the_length_of_the_text() {
    let key = format!("ghp_{} ", filler(36));
    for (name, piece) in [
        ("prose", "the quick brown fox jumps over the lazy dog. "),
        ("no spaces", "a1b2c3d4"),
        ("many secrets", key.as_str()),
        ("headers without end", "-----BEGIN PRIVATE KEY-----"),
        ("header and key", "-----BEGIN PRIVATE KEY----- AKIAABCDEFGH23456789 "),
        ("urls without end", "a://b:c"),
        ("words in one run", "eyJabcdefgh-sk-abcdefghijklmnopqrstuvwx-"),
        ("names in one run", "token=token="),
        ("quotes without end", "password=\"abcd "),
        ("quotes of two kinds", "token=\"abcd1token='abcd1"),
        ("backslashes", "password=\"abcd\\\\\\"),
        ("names with digits", "password=token1="),
        ("bearer", "bearer aaaaaaaaaaaaaaaaaaaaaaaa"),
    ] {
        let length = if matches!(name, "prose" | "no spaces" | "many secrets") { 5_000_000 } else { 1_000_000 };
        let text = piece.repeat(length / piece.len());
        let started = std::time::Instant::now();
        let redacted = redact(&text);
        let elapsed = started.elapsed();
        assert!(elapsed.as_secs() < 60, "{name}: {elapsed:?}");
        assert_eq!(redacted.contains(REDACTED), redacted != text, "{name}");
    }
}

/// Texts made of pieces of secrets, so that they stand next to each other in every way.
fn secretive() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "password",
            "token",
            "api_key",
            "=",
            ": ",
            "\"",
            "'",
            "\\\"",
            "\\",
            "sk-",
            "ghp_",
            "AKIA",
            "eyJ",
            ".",
            "://",
            "@",
            ":",
            "/",
            "Bearer ",
            "Authorization: ",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "hunter2",
            "abcdefgh01234567",
            "ABCDEFGH01234567",
            " ",
            "\n",
            "[redacted]",
            "[",
            "(",
            "字",
            "${",
            "--token ",
            "self.",
            "<",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z0-9_.=:@/-]{0,12}",
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn taking_out_twice_is_the_same_as_once(text in secretive()) {
        let redactor = Redactor::new(["hunter[0-9]", "ed"]).unwrap();
        for redactor in [&redactor, &Redactor::default()] {
            let once = redactor.redact_text(&text).into_owned();
            prop_assert_eq!(redactor.redact_text(&once), once.as_str());
            let mut value = json!({ &text: &text, "token": &text });
            redactor.redact_value(&mut value);
            let mut again = value.clone();
            redactor.redact_value(&mut again);
            prop_assert_eq!(again, value);
        }
    }

    #[test]
    fn what_is_left_is_the_text_around_the_secrets(text in secretive()) {
        let redacted = redact(&text).into_owned();
        // Each piece between the marks is found in the text, in order.
        let mut rest = text.as_str();
        for piece in redacted.split(REDACTED) {
            let at = rest.find(piece);
            prop_assert!(at.is_some(), "{:?} is not in {:?}", piece, rest);
            rest = &rest[at.unwrap_or_default() + piece.len()..];
        }
    }
}
