//! stub replaced at merge
use std::borrow::Cow;
/// x
pub fn redact(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}
