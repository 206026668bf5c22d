//! Names of teammates: which there can be, what folder they have, and how a text addresses them.

use super::error::TeamError;

/// Whoever leads the team: the user's program, or an agent.
pub const LEAD: &str = "lead";
/// Everybody, as an address.
pub const ALL: &str = "all";
/// Names that mean somebody or something else.
const RESERVED: &[&str] = &[LEAD, ALL, "user", "team", "hook", "hookwright", "everyone"];
/// The most characters of a name.
const LONGEST: usize = 64;

/// Whether a teammate can have this name.
///
/// # Errors
/// [`BadName`](TeamError::BadName) says why not.
///
/// ```
/// use hookwright::team::check_name;
/// assert!(check_name("张三").is_ok() && check_name("ada lovelace").is_ok());
/// assert_eq!(check_name("a@b").unwrap_err().to_string(), "\"a@b\" cannot be a teammate's name: it holds an @");
/// ```
pub fn check_name(name: &str) -> Result<(), TeamError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.trim() != name {
        "it begins or ends with a space"
    } else if name.chars().count() > LONGEST {
        "it has more than 64 characters"
    } else if name.contains('@') {
        "it holds an @"
    } else if name.contains([',', ';', '/', '\\', '<', '>', '"']) {
        "it holds one of , ; / \\ < > \""
    } else if name.chars().any(|c| c.is_control()) {
        "it holds a control character"
    } else if name.starts_with('.') {
        "it begins with a dot"
    } else if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        "it means somebody else in every team"
    } else {
        return Ok(());
    };
    Err(TeamError::BadName { name: name.to_owned(), why })
}

/// The folder of a teammate: its name, with what other file systems do not take written as `%XX`. Names that differ by
/// case alone get different folders also where the file system does not tell them apart.
///
/// ```
/// use hookwright::team::folder_of;
/// assert_eq!((folder_of("ada").as_str(), folder_of("Ada: 1").as_str()), ("ada", "%41da%3A 1"));
/// ```
pub fn folder_of(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_uppercase() || "%:*?|\"<>/\\".contains(character) {
            folder.push_str(&format!("%{:02X}", character as u32));
        } else {
            folder.push(character);
        }
    }
    folder
}

/// What a text begins with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// The names that are addressed, each once.
    pub(super) names: Vec<String>,
    /// A mention at the very beginning of nobody who is known.
    pub(super) unknown: Option<String>,
}

/// The mentions at the beginning of a text: `@ada @bob, …`. The longest name wins, so that one name may begin like
/// another. An `@` further on is text.
pub(super) fn leading_mentions<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone) -> Mentions {
    let mut found = Mentions::default();
    let mut rest = text;
    loop {
        rest =
            rest.trim_start_matches(|c: char| c.is_whitespace() || (!found.names.is_empty() && ",;、，".contains(c)));
        let Some(after) = rest.strip_prefix(['@', '＠']) else { return found };
        let fits = |name: &&str| after.strip_prefix(*name).is_some_and(|behind| ends_here(name, behind));
        let Some(name) = names.clone().filter(fits).max_by_key(|name| name.len()) else {
            if found.names.is_empty() {
                let end = after.find(|c: char| c.is_whitespace() || ",;:、，：".contains(c)).unwrap_or(after.len());
                found.unknown = Some(after[..end].to_owned());
            }
            return found;
        };
        if !found.names.iter().any(|known| known == name) {
            found.names.push(name.to_owned());
        }
        rest = &after[name.len()..];
    }
}

/// Whether a name ends where `behind` begins. Scripts that write no spaces have no other sign of an end than the name.
fn ends_here(name: &str, behind: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let last = name.chars().next_back();
    let mut following = behind.chars();
    match (last, following.next()) {
        (Some(last), Some(next)) if is_word(last) && is_word(next) => false,
        // `@ada.fixture` is a word with a dot in it; `@ada.` ends a sentence.
        (Some(last), Some('.')) if is_word(last) => !following.next().is_some_and(is_word),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["ada", "ada lovelace", "bob", "张三", "张三丰", "all"];

    fn of(text: &str) -> Vec<String> {
        leading_mentions(text, NAMES.iter().copied()).names
    }

    #[test]
    fn the_longest_name_wins() {
        assert_eq!(of("@ada the grammar changed"), ["ada"]);
        assert_eq!(of("@ada lovelace, look"), ["ada lovelace"]);
        assert_eq!(of("  @ada @bob: both"), ["ada", "bob"]);
        assert_eq!(of("@ada, @bob and @张三"), ["ada", "bob"]);
        assert_eq!(of("@张三你好"), ["张三"]);
        assert_eq!(of("@张三丰 你好"), ["张三丰"]);
        assert_eq!(of("＠张三：你好"), ["张三"]);
        assert_eq!(of("@all stop"), ["all"]);
        assert_eq!(of("@ada @ada twice"), ["ada"]);
        assert_eq!(of("@ada."), ["ada"]);
    }

    #[test]
    fn what_is_not_a_mention_is_text() {
        assert_eq!(of("use @pytest.fixture, @ada"), [""; 0]);
        assert_eq!(of("mail ada@example.org"), [""; 0]);
        let unknown = |text| leading_mentions(text, NAMES.iter().copied()).unknown;
        assert_eq!(unknown("@adah hello"), Some("adah".to_owned()));
        assert_eq!(unknown("@ada.fixture does it"), Some("ada.fixture".to_owned()));
        assert_eq!(unknown("@bob @eve hello"), None);
        assert_eq!(unknown("hello"), None);
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for name in ["", " ada", "Lead", "all", "a/b", "a\nb", ".hidden", "<x>", &"n".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["ada", "张三", "ada lovelace", "o'neill", "bob-2", "é"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn folders_of_different_names_differ() {
        let names = ["ada", "Ada", "a%41da", "a:b", "a%3Ab"];
        let folders: std::collections::HashSet<_> = names.iter().map(|name| folder_of(name).to_lowercase()).collect();
        assert_eq!(folders.len(), names.len());
    }
}
