//! What git is told besides its options: settings for one command, and formats.

/// Whether `text`, the value of `git -c`, is a setting that runs nothing.
///
/// `harmless`: what may be set: `color.*` for all keys of a section, `core.abbrev` for a key with any value,
/// `core.pager=cat` for one value only.
pub(crate) fn setting_is_harmless(text: &str, harmless: &[Box<str>]) -> bool {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    // Only the part between the first and the last point, if there is one, tells upper and lower case apart.
    let key = key.to_ascii_lowercase();
    let allows = |rule: &str| match rule.split_once('=') {
        Some((name, only)) => key == name.to_ascii_lowercase() && value == only && text.contains('='),
        None => match rule.strip_suffix('*') {
            Some(section) => section.ends_with('.') && key.starts_with(section) && key.len() > section.len(),
            None => key == rule.to_ascii_lowercase(),
        },
    };
    harmless.iter().any(|rule| allows(rule)) && format_is_harmless(value)
}

/// Whether a format, or a key to sort by, has no signature checked, which runs gpg or what stands for it.
pub(crate) fn format_is_harmless(text: &str) -> bool {
    // `%+G?`, `%-G?` and `% G?` are `%G?` with a line, none, or a blank before it; `%(signature)` is for references.
    let checks = ["%G", "%+G", "%-G", "% G", "signature"];
    checks.iter().all(|check| !text.contains(check))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Vec<Box<str>> {
        ["color.*", "core.quotePath", "core.pager=cat", "core.fsmonitor=false", "format.pretty"].map(Into::into).into()
    }

    #[test]
    fn settings_of_the_list_are_harmless() {
        for text in [
            "color.ui=never",
            "COLOR.UI=always",
            "color.diff.meta=red",
            "core.quotepath=false",
            "core.quotePath",
            "core.pager=cat",
            "core.FSMonitor=false",
            "format.pretty=%h %s",
        ] {
            assert!(setting_is_harmless(text, &rules()), "{text}");
        }
    }

    #[test]
    fn no_other_setting_is_harmless() {
        for text in [
            "",
            "=",
            "color.",
            "color",
            "colour.ui=never",
            "core.pager=cat x",
            "core.pager",
            "core.pager=",
            "core.fsmonitor=./evil",
            "core.fsmonitor",
            "core.quotepathx=1",
            "alias.x=!touch pwned",
            "format.pretty=%G?",
            "diff.external=./evil",
            "include.path=x",
            " color.ui=never",
        ] {
            assert!(!setting_is_harmless(text, &rules()), "{text}");
        }
    }

    #[test]
    fn a_format_that_checks_a_signature_runs_a_program() {
        for text in ["", "%h %s", "format:%an%x09%ae", "oneline", "%(refname:short) %(subject)", "%d%gd", "%%h"] {
            assert!(format_is_harmless(text), "{text}");
        }
        for text in
            ["%G?", "%h%GK", "%+GG", "%-GS", "% GF", "%(signature)", "%(*signature:grade)", "-signature:key", "%%%G?"]
        {
            assert!(!format_is_harmless(text), "{text}");
        }
    }
}
