//! A command line as the program reads it: which words are options, which are their values, which are operands.

use super::super::word::{Value, Word};
use super::program::{Arity, Meaning, OptionRule, Options, Program};
use super::source::Style;

/// The value of an option that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given<'w> {
    Nothing,
    /// Text in the word of the option.
    Here(&'w str),
    /// In the word of the option, known only when it runs.
    Dynamic,
    /// The whole next word.
    Next(&'w Word),
}

/// An option that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'p, 'w> {
    pub name: &'p str,
    pub rule: OptionRule,
    pub word: &'w Word,
    pub value: Given<'w>,
}

/// Why a word is refused before anything is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No such option is known.
    Unknown,
    /// It can become an option.
    Dynamic,
}

/// What a command line consists of.
#[derive(Debug, Default)]
pub(crate) struct Scan<'p, 'w> {
    pub options: Vec<Found<'p, 'w>>,
    /// Positions of the operands among the words.
    pub operands: Vec<usize>,
    /// The position of `--`.
    pub dashes: Option<usize>,
    pub troubles: Vec<(usize, Trouble)>,
    /// The position of a value that may be empty when it runs; then the next word is the value, and all later ones
    /// move up.
    pub may_shift: Option<usize>,
}

impl<'p, 'w> Scan<'p, 'w> {
    /// Reads the words from position `start` on.
    pub(crate) fn new(program: &'p Program, words: &'w [Word], start: usize) -> Self {
        Self::read(program, words, start, program.style == Style::Posix)
    }

    /// Reads the options before a sub-command; the first operand is its name.
    pub(crate) fn leading(program: &'p Program, words: &'w [Word], start: usize) -> Self {
        Self::read(program, words, start, true)
    }

    fn read(program: &'p Program, words: &'w [Word], start: usize, operand_ends: bool) -> Self {
        let mut scan = Self::default();
        let mut reader = Reader { program, words, position: start, operand_ends, scan: &mut scan };
        while reader.position < words.len() && reader.step() {}
        scan
    }

    /// Whether one of these options is given.
    pub(crate) fn has(&self, names: &[Box<str>]) -> bool {
        self.options.iter().any(|found| names.iter().any(|name| **name == *found.name))
    }
}

struct Reader<'s, 'p, 'w> {
    program: &'p Program,
    words: &'w [Word],
    position: usize,
    /// Whether there are no options behind the first operand.
    operand_ends: bool,
    scan: &'s mut Scan<'p, 'w>,
}

impl<'p, 'w> Reader<'_, 'p, 'w> {
    /// Reads one word and what belongs to it; whether there may be more options.
    fn step(&mut self) -> bool {
        let position = self.position;
        let word = &self.words[position];
        self.position += 1;
        if self.program.style == Style::Plain {
            self.scan.operands.push(position);
            return true;
        }
        match &word.value {
            Value::Static { text } if self.ends_options(text) => {
                self.scan.dashes = Some(position);
                let later = &self.words[self.position..];
                if self.scan.may_shift.is_some() && later.iter().any(Word::can_be_option) {
                    // It may be the value of the option before.
                    self.scan.troubles.push((position, Trouble::Dynamic));
                }
                self.rest_are_operands();
                return false;
            }
            Value::Static { text } if self.operand_ends && self.program.subcommands.contains_key(text.as_str()) => {
                self.scan.operands.push(position);
                self.rest_are_operands();
                return false;
            }
            Value::Static { text }
                if self.program.options.rules.contains_key(text.as_str()) || word.can_be_option() =>
            {
                self.fixed(word, text);
            }
            Value::Dynamic { prefix, splits, .. } if word.can_be_option() => {
                if *splits || !prefix.starts_with('-') || !self.dynamic(word, prefix) {
                    self.trouble_or_operand(position);
                }
            }
            _ => {
                self.scan.operands.push(position);
                if self.operand_ends {
                    self.rest_are_operands();
                    return false;
                }
            }
        }
        true
    }

    /// Git also has `--end-of-options`, behind which `--` still divides revisions from files.
    fn ends_options(&self, text: &str) -> bool {
        text == "--" || text == "--end-of-options" && self.program.options.rules.contains_key(text)
    }

    fn rest_are_operands(&mut self) {
        self.scan.operands.extend(self.position..self.words.len());
        self.position = self.words.len();
    }

    /// A word that can become anything: no harm where no option does any.
    fn trouble_or_operand(&mut self, position: usize) {
        if self.program.takes_any_option() {
            self.scan.operands.push(position);
        } else {
            self.scan.troubles.push((position, Trouble::Dynamic));
        }
    }

    fn unknown(&mut self) {
        if !self.program.takes_any_option() {
            self.scan.troubles.push((self.position - 1, Trouble::Unknown));
        }
    }

    fn fixed(&mut self, word: &'w Word, text: &'w str) {
        let options = &self.program.options;
        if let Some((name, rule)) = lookup(options, text) {
            let value = match rule.arity {
                Arity::Flag | Arity::Optional => Given::Nothing,
                Arity::Required | Arity::Next => self.next_value(),
                Arity::Number => self.next_number(),
            };
            return self.scan.options.push(Found { name, rule, word, value });
        }
        if options.number && text.len() > 1 && text[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        if self.program.style == Style::SingleDash {
            return self.single_dash(word, text);
        }
        if let Some(long) = text.strip_prefix("--") {
            return self.long(word, text, long);
        }
        self.cluster(word, &text[1..], false);
    }

    /// Go, find and others: `-name`, `-name=value`, and `--name` for the same.
    fn single_dash(&mut self, word: &'w Word, text: &'w str) {
        let (spelled, value) = split_value(text);
        let single = spelled.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(spelled);
        let Some((name, rule)) =
            lookup(&self.program.options, spelled).or_else(|| lookup(&self.program.options, single))
        else {
            // A number may be glued: `xxd -l64`.
            let glued = text.split_at_checked(2).filter(|(_, digits)| is_number(digits));
            let found = glued.and_then(|(letter, digits)| Some((lookup(&self.program.options, letter)?, digits)));
            return match found.filter(|((_, rule), _)| rule.arity == Arity::Required) {
                Some(((name, rule), digits)) => {
                    self.scan.options.push(Found { name, rule, word, value: Given::Here(digits) });
                }
                None => self.unknown(),
            };
        };
        let value = match (value, rule.arity) {
            (Some(value), _) => Given::Here(value),
            (None, Arity::Required | Arity::Next) => self.next_value(),
            (None, Arity::Number) => self.next_number(),
            (None, _) => Given::Nothing,
        };
        self.scan.options.push(Found { name, rule, word, value });
    }

    fn long(&mut self, word: &'w Word, text: &'w str, long: &str) {
        let (spelled, value) = split_value(text);
        let found = lookup(&self.program.options, spelled).or_else(|| {
            (self.program.abbreviations && !long.is_empty())
                .then(|| abbreviated(&self.program.options, spelled))
                .flatten()
        });
        let Some((name, rule)) = found else { return self.unknown() };
        let value = match (value, rule.arity) {
            // Programs differ in whether a flag takes `=true`; none of them makes anything else of it.
            (Some("true" | "false"), Arity::Flag) => Given::Nothing,
            (Some(_), Arity::Flag) if rule.meaning == Meaning::Safe => return self.unknown(),
            (Some(value), _) => Given::Here(value),
            (None, Arity::Required | Arity::Next) => self.next_value(),
            (None, Arity::Number) => self.next_number(),
            (None, _) => Given::Nothing,
        };
        self.scan.options.push(Found { name, rule, word, value });
    }

    /// Short options behind one dash. `open`: the word goes on with something that is known only when it runs.
    /// Whether all of it was understood.
    fn cluster(&mut self, word: &'w Word, letters: &'w str, open: bool) -> bool {
        let first = self.scan.options.len();
        for (index, letter) in letters.char_indices() {
            let Some((name, rule)) = letter_rule(&self.program.options, letter) else {
                self.scan.options.truncate(first);
                self.unknown();
                return true;
            };
            let after = &letters[index + letter.len_utf8()..];
            let value = match rule.arity {
                Arity::Flag => {
                    self.scan.options.push(Found { name, rule, word, value: Given::Nothing });
                    continue;
                }
                // The value is another word, and the letters behind are options of their own.
                Arity::Next if open || !after.is_empty() && !is_number(after) => {
                    self.scan.options.truncate(first);
                    self.unknown();
                    return true;
                }
                _ if open => {
                    if after.is_empty() && rule.arity != Arity::Optional {
                        self.scan.may_shift = Some(self.position - 1);
                    }
                    Given::Dynamic
                }
                // To most programs the sign belongs to the value, to some it does not.
                _ if after.starts_with('=') && self.program.style != Style::Loose => Given::Dynamic,
                _ if !after.is_empty() => Given::Here(after.strip_prefix('=').unwrap_or(after)),
                Arity::Required | Arity::Next => self.next_value(),
                Arity::Number => self.next_number(),
                Arity::Optional => Given::Nothing,
            };
            self.scan.options.push(Found { name, rule, word, value });
            return true;
        }
        if open {
            self.scan.options.truncate(first);
        }
        !open
    }

    /// A word that begins with a dash and goes on with something unknown: `--format=$x`, `-n$x`. Whether it is the
    /// value of an option for sure.
    fn dynamic(&mut self, word: &'w Word, prefix: &'w str) -> bool {
        let long = prefix.starts_with("--") || self.program.style == Style::SingleDash;
        if !long {
            return self.cluster(word, &prefix[1..], true);
        }
        let (spelled, Some(_)) = split_value(prefix) else { return false };
        let Some((name, rule)) = lookup(&self.program.options, spelled) else { return false };
        if rule.arity == Arity::Flag && rule.meaning == Meaning::Safe {
            return false;
        }
        self.scan.options.push(Found { name, rule, word, value: Given::Dynamic });
        true
    }

    /// The next word, which is the value of the option before it; `Nothing` if that is not sure, and then the word is
    /// read again as an option of its own.
    fn next_value(&mut self) -> Given<'w> {
        let Some(word) = self.words.get(self.position) else { return Given::Nothing };
        let may_be_read_as_option = self.program.style == Style::Loose || self.scan.may_shift.is_some();
        if word.can_be_option() && may_be_read_as_option && !word.text().is_some_and(|text| is_number(&text[1..])) {
            let trouble = if word.text().is_some() { Trouble::Unknown } else { Trouble::Dynamic };
            self.scan.troubles.push((self.position, trouble));
            return Given::Nothing;
        }
        let words_follow = !is_one_word(word);
        // What follows the value may be the name of a sub-command.
        let all_are_harmless = self.program.subcommands.is_empty() && self.program.operands.are_harmless_from(0);
        if words_follow && (word.can_be_option() || !all_are_harmless) {
            return Given::Nothing;
        }
        self.position += 1;
        Given::Next(word)
    }

    fn next_number(&mut self) -> Given<'w> {
        match self.words.get(self.position) {
            Some(word) if word.text().is_some_and(is_number) => {
                self.position += 1;
                Given::Next(word)
            }
            _ => Given::Nothing,
        }
    }
}

fn lookup<'p>(options: &'p Options, name: &str) -> Option<(&'p str, OptionRule)> {
    options.rules.get_key_value(name).map(|(name, rule)| (&**name, *rule))
}

fn letter_rule(options: &Options, letter: char) -> Option<(&str, OptionRule)> {
    if !options.letters.contains_key(&letter) {
        return None;
    }
    let mut buffer = [0; 5];
    buffer[0] = b'-';
    let length = letter.encode_utf8(&mut buffer[1..]).len();
    lookup(options, std::str::from_utf8(&buffer[..=length]).unwrap_or_default())
}

/// The option that `spelled` is the beginning of, if there is one, or several that mean the same.
fn abbreviated<'p>(options: &'p Options, spelled: &str) -> Option<(&'p str, OptionRule)> {
    let mut candidates = options.rules.iter().filter(|(name, _)| name.starts_with(spelled));
    let (name, rule) = candidates.next()?;
    candidates.all(|(_, other)| other == rule).then_some((&**name, *rule))
}

fn split_value(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is exactly one word when it runs: static, or dynamic only inside quotes.
pub(crate) fn is_one_word(word: &Word) -> bool {
    match &word.value {
        Value::Static { .. } => true,
        Value::Dynamic { splits: true, .. } => false,
        Value::Dynamic { splits: false, .. } => is_quoted(&word.raw),
    }
}

/// Whether everything outside of quotes is plain text, and nothing inside can be several words (`"$@"`, `"${a[@]}"`).
/// Substitutions, and quotes inside of `"${…}"`, count as doubtful.
fn is_quoted(raw: &str) -> bool {
    let mut quote = None;
    let mut in_braces = false;
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some('"'), '"' | '\'') if in_braces => return false,
            (Some(open), close) if open == close => quote = None,
            (Some('"'), '@' | '(' | '`') => return false,
            (Some('"'), '\\') => {
                characters.next();
            }
            (Some('"'), '{') => in_braces = true,
            (Some('"'), '}') => in_braces = false,
            (Some(_), _) => {}
            (None, other) if other.is_ascii_alphanumeric() || "-_./=:,+%".contains(other) => {}
            (None, _) => return false,
        }
    }
    quote.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_plain_text_around_quotes() {
        for raw in ["\"$x\"", "./\"$x\"", "\"${x}\"", "'a'\"$x\"", "\"a \\\" b $x\"", "--a=\"$x\""] {
            assert!(is_quoted(raw), "{raw}");
        }
        let several =
            ["$x", "\"$x\"$y", "\"$@\"", "\"${a[@]}\"", "*", "\"a\"*", "{a,b}", "\"$x", "$(ls)", "\"$x\"?", "a\\ *"];
        for raw in several {
            assert!(!is_quoted(raw), "{raw}");
        }
        // Quotes inside of quotes make it hard to say where the outer ones end.
        for raw in
            ["\"$(echo '\"')\"*\"$(echo '\"')\"", "\"${x:-\"a\"}\"", "\"${x#'\"'}\"*\"${x#'\"'}\"", "\"`echo '\"'`\"*"]
        {
            assert!(!is_quoted(raw), "{raw}");
        }
    }
}
