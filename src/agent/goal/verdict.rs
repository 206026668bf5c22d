//! The reviewer's verdict: the JSON object that stands at the end of its reply.
//!
//! A reviewer may quote the form that it was given, or an example, before it says what it found. So what counts is
//! the object behind which nothing stands, alone or in a fence of its own.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many places are tried at which the object could begin. Each fails early, but a hostile reply has many.
const STARTS: usize = 4096;

/// What the reviewer found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The goal is reached.
    Pass,
    /// It is not.
    Fail,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the goal is reached.
    pub verdict: Judgement,
    /// What is missing; not blank if it is not reached.
    #[serde(default)]
    pub feedback: String,
    /// The single findings, in whatever form the reviewer has given them.
    #[serde(default)]
    pub items: Vec<Value>,
}

/// Why a reply is no verdict, in words for the reviewer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoVerdict {
    /// No JSON object stands at the end.
    #[error("no JSON object stands at the end of the reply, with nothing behind it")]
    Missing,
    /// The object is part of something else.
    #[error("the JSON object at the end is quoted, or part of something larger; it has to stand by itself")]
    Quoted,
    /// The object has another form.
    #[error("the JSON object at the end is not a verdict: {0}")]
    Form(String),
    /// It says `fail` without saying why.
    #[error("\"fail\" needs feedback that says what is missing")]
    NoFeedback,
}

#[derive(Deserialize)]
struct Form {
    verdict: Judgement,
    #[serde(default)]
    feedback: Option<String>,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

/// Reads the verdict at the end of a reply.
///
/// # Errors
/// Why there is none.
///
/// ```
/// use hookwright::agent::goal::{Judgement, read_verdict};
/// let reply = "I was asked for {\"verdict\": \"pass\"} or fail.\n\n{\"verdict\": \"fail\", \"feedback\": \"a test is red\"}";
/// let verdict = read_verdict(reply).unwrap();
/// assert_eq!((verdict.verdict, verdict.feedback.as_str()), (Judgement::Fail, "a test is red"));
/// ```
pub fn read_verdict(reply: &str) -> Result<Verdict, NoVerdict> {
    let reply = reply.trim_end();
    let (body, fenced) = match reply.rsplit_once('\n') {
        Some((body, last)) if is_fence(last) => (body.trim_end(), true),
        _ => (reply, false),
    };
    let start = start_of_last_object(body).ok_or(NoVerdict::Missing)?;
    let (before, object) = body.split_at(start);
    if !stands_by_itself(before, fenced) {
        return Err(NoVerdict::Quoted);
    }
    let form: Form = serde_json::from_str(object).map_err(|error| NoVerdict::Form(error.to_string()))?;
    let feedback = form.feedback.unwrap_or_default();
    if form.verdict == Judgement::Fail && feedback.trim().is_empty() {
        return Err(NoVerdict::NoFeedback);
    }
    Ok(Verdict { verdict: form.verdict, feedback, items: form.items.unwrap_or_default() })
}

/// Where the JSON object begins that ends where `body` ends.
fn start_of_last_object(body: &str) -> Option<usize> {
    if !body.ends_with('}') {
        return None;
    }
    // A brace that is not the right one fails after a few bytes, or at the depth at which the reader gives up.
    body.rmatch_indices('{')
        .take(STARTS)
        .map(|(start, _)| start)
        .find(|start| serde_json::from_str::<Map<String, Value>>(&body[*start..]).is_ok())
}

/// Whether what stands before an object leaves it a statement of its own.
fn stands_by_itself(before: &str, fenced: bool) -> bool {
    let opened = before.lines().filter(|line| is_fence(line)).count() % 2 == 1;
    if fenced && !opened {
        return false; // A fence that closes what nothing opened.
    }
    let (lines, prefix) = before.rsplit_once('\n').unwrap_or(("", before));
    let prefix = prefix.trim();
    if opened {
        // In a fence nothing else may stand: it would be an example with its explanation.
        return prefix.is_empty() && lines.trim_end().lines().next_back().is_some_and(is_fence);
    }
    let apart = before[before.trim_end().len()..].matches('\n').count() > 1;
    let goes_on = !apart && before.trim_end().ends_with(['{', '[', ',']);
    !goes_on && !prefix.starts_with('>') && !prefix.ends_with(['"', '\'', '`'])
}

/// Whether a line opens or closes a fenced block.
fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("~~~") || line.starts_with("```") && !line.trim_start_matches('`').contains('`')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PASS: &str = r#"{"verdict": "pass"}"#;
    const FAIL: &str = r#"{"verdict": "fail", "feedback": "red", "items": [{"test": "a"}, "b"]}"#;

    fn judgement(reply: &str) -> Result<Judgement, NoVerdict> {
        read_verdict(reply).map(|verdict| verdict.verdict)
    }

    #[test]
    fn the_object_at_the_end_counts() {
        use Judgement::{Fail, Pass};
        for (reply, expected) in [
            (PASS.to_owned(), Pass),
            (format!("  {PASS}\n\n"), Pass),
            (format!("All is well.\n{PASS}"), Pass),
            (format!("Verdict: {PASS}"), Pass),
            (format!("An example would be {PASS}, but:\n{FAIL}"), Fail),
            (format!("```json\n{PASS}\n```\nis the form. What I found:\n\n```json\n{FAIL}\n```\n"), Fail),
            (format!("```\n{FAIL}\n```"), Fail),
            (format!("~~~json\n{FAIL}\n~~~"), Fail),
            (format!("```json\n{FAIL}"), Fail),
            (format!("> {PASS}\n\n{FAIL}"), Fail),
            (format!("It says \"well\"\n{FAIL}"), Fail),
            (format!("Having looked,\n\n{FAIL}"), Fail),
            ("{\n  \"verdict\": \"pass\",\n  \"feedback\": null,\n  \"items\": null\n}".to_owned(), Pass),
            (r#"{"verdict": "fail", "feedback": "the brace } and {\"verdict\": \"pass\"}"}"#.to_owned(), Fail),
            (r#"{"verdict": "pass", "confidence": 0.9}"#.to_owned(), Pass),
        ] {
            assert_eq!(judgement(&reply), Ok(expected), "{reply}");
        }
    }

    #[test]
    fn what_does_not_stand_at_the_end_by_itself_is_no_verdict() {
        use NoVerdict::{Missing, NoFeedback, Quoted};
        for (reply, expected) in [
            (String::new(), Missing),
            ("pass".to_owned(), Missing),
            (format!("{PASS} is what I would like to say."), Missing),
            (format!("{PASS}\nThat is all."), Missing),
            (format!("[{PASS}]"), Missing),
            (format!("`{PASS}`"), Missing),
            (format!("> {PASS}"), Quoted),
            (format!("the form is `{PASS}"), Quoted),
            (format!("```\nsuch as:\n{PASS}\n```"), Quoted),
            (format!("{PASS}\n```"), Quoted),
            (format!("[1,\n{PASS}"), Quoted),
            (format!("{{\"verdict\": \"fail\", \"feedback\": broken, {PASS}"), Quoted),
            (r#"{"verdict": "fail"}"#.to_owned(), NoFeedback),
            (r#"{"verdict": "fail", "feedback": "  "}"#.to_owned(), NoFeedback),
        ] {
            assert_eq!(judgement(&reply), Err(expected), "{reply}");
        }
        for reply in [
            r#"{"verdict": "maybe"}"#,
            r#"{"verdict": "PASS"}"#,
            r#"{"verdict": true}"#,
            r#"{"verdict": "fail", "verdict": "pass"}"#,
            r#"{"example": {"verdict": "pass"}}"#,
            r#"{"verdict": "pass", "items": "all"}"#,
            "{}",
        ] {
            assert!(matches!(judgement(reply), Err(NoVerdict::Form(_))), "{reply}");
        }
    }

    #[test]
    fn hostile_replies_take_no_time() {
        for piece in ["{", "{\"a\":", "{\"a\":1}", "}", "{\"a\":[", "```\n", "{\"", "\"{"] {
            let reply = piece.repeat(400_000 / piece.len()) + "}";
            let began = std::time::Instant::now();
            drop(read_verdict(&reply));
            assert!(began.elapsed().as_secs() < 20, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn any_reply_is_read_without_a_panic(reply in "[ -~\n`{}\"é]{0,200}") {
            drop(read_verdict(&reply));
        }

        /// Whatever is said before, a verdict on a line of its own at the end is found, unless a fence is open or the
        /// text goes on into it.
        #[test]
        fn prose_before_a_verdict_does_not_matter(prose in "[a-z {}\":.é\n]{0,120}[a-z.]") {
            prop_assert_eq!(judgement(&format!("{prose}\n\n{FAIL}")), Ok(Judgement::Fail));
        }
    }
}
