//! `find` and `fd`: expressions that can run, write and delete.

use super::super::analysis::{Effect, ReasonCode};
use super::super::table::{Given, Judge, Program, Scan};
use super::super::word::{Value, Word};
use super::xargs::{replace_mark, unknown_words};

/// Options that stand before the paths.
const GLOBAL: &[&str] = &["-H", "-L", "-P", "-E", "-X", "-s", "-d", "-x"];
/// Tests and actions without a value.
const FLAGS: &[&str] = &[
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "-daystart",
    "-depth",
    "-follow",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-mount",
    "-nowarn",
    "-warn",
    "-xdev",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-false",
    "-true",
    "-nogroup",
    "-nouser",
    "-noleaf",
    "-ls",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-acl",
    "-xattr",
    "-sparse",
    "-depth",
    "-help",
    "--help",
    "-version",
    "--version",
];
/// Tests and actions with a value.
const VALUES: &[&str] = &[
    "-maxdepth",
    "-mindepth",
    "-files0-from",
    "-regextype",
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-path",
    "-perm",
    "-regex",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
    "-printf",
    "-flags",
    "-Bmin",
    "-Btime",
    "-Bnewer",
    "-xattrname",
];
const RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
const WRITES: &[(&str, usize)] = &[("-delete", 0), ("-fprint", 1), ("-fprint0", 1), ("-fls", 1), ("-fprintf", 2)];

/// Judges `find`.
pub(super) fn judge_find(judge: &mut Judge<'_>, words: &[Word], start: usize) {
    let mut position = start;
    while words.get(position).is_some_and(|word| is_global(word.text())) {
        position += if words[position].text() == Some("-D") { 2 } else { 1 };
    }
    let dashes = words.get(position).is_some_and(|word| word.text() == Some("--"));
    position += usize::from(dashes);
    // The start paths: what is found begins with one of them.
    let first_path = position;
    while let Some(word) = words.get(position)
        && !begins_expression(word)
    {
        if word.can_be_option() {
            dynamic(judge, word);
        }
        position += 1;
    }
    let listed = words[position..].iter().any(|word| word.text() == Some("-files0-from"));
    let prefix = if listed { String::new() } else { common_prefix(&words[first_path..position]) };
    while let Some(word) = words.get(position) {
        position += 1;
        let Some(text) = word.text() else {
            dynamic(judge, word);
            continue;
        };
        if matches!(text, "(" | ")" | "!" | ",") || FLAGS.contains(&text) {
            continue;
        }
        if VALUES.contains(&text) || is_newer(text) {
            // A value that is no word, or several, turns what comes next into something else.
            if let Some(value) = words.get(position)
                && !super::super::table::is_one_word(value)
            {
                dynamic(judge, value);
            }
            position += 1;
        } else if RUNS.contains(&text) {
            position = run(judge, words, position, text, &prefix);
        } else if let Some((_, values)) = WRITES.iter().find(|(name, _)| *name == text) {
            let target = words.get(position).filter(|_| *values > 0).and_then(Word::text);
            if !matches!(target, Some("/dev/stdout" | "/dev/stderr" | "/dev/null")) {
                judge.report(ReasonCode::OptionWrites, Effect::Writes, word, text);
            }
            position += values;
        } else {
            judge.report(ReasonCode::UnknownOption, Effect::Unknown, word, text);
        }
    }
}

fn dynamic(judge: &mut Judge<'_>, word: &Word) {
    judge.report(ReasonCode::DynamicOption, Effect::Unknown, word, &*word.raw);
}

fn is_global(text: Option<&str>) -> bool {
    text.is_some_and(|text| {
        let level = text.strip_prefix("-O").is_some_and(|level| level.bytes().all(|byte| byte.is_ascii_digit()));
        GLOBAL.contains(&text) || text == "-D" || level && text.len() > 2
    })
}

fn begins_expression(word: &Word) -> bool {
    word.text().is_some_and(|text| text.starts_with('-') && text.len() > 1 || matches!(text, "(" | ")" | "!" | ","))
}

/// `-newerXY`: one of its kinds compares with a time, the others with a file.
fn is_newer(text: &str) -> bool {
    text.strip_prefix("-newer")
        .is_some_and(|kinds| kinds.len() == 2 && kinds.bytes().all(|kind| b"aBcmt".contains(&kind)))
}

/// What everything that is found begins with; `./` if that cannot be said, because no path begins with a dash.
fn common_prefix(paths: &[Word]) -> String {
    let beginning = |word: &Word| match &word.value {
        Value::Static { text } => text.clone(),
        Value::Dynamic { prefix, .. } => prefix.clone(),
    };
    let mut paths = paths.iter().map(beginning);
    let Some(first) = paths.next() else { return ".".to_owned() };
    let common = paths.fold(first, |common, path| {
        let length = common
            .chars()
            .zip(path.chars())
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one.len_utf8())
            .sum();
        common[..length].to_owned()
    });
    if common.is_empty() { "./".to_owned() } else { common }
}

/// Judges the command of `-exec`, which ends in `;`, or in `{} +`. Returns the position behind it.
fn run(judge: &mut Judge<'_>, words: &[Word], start: usize, action: &str, prefix: &str) -> usize {
    let mut end = start;
    let mut several = false;
    while let Some(word) = words.get(end) {
        match word.text() {
            Some(";") => break,
            Some("+") if end > start && words[end - 1].text() == Some("{}") => {
                several = true;
                break;
            }
            // It may be the `;`, and then what follows is more of the expression.
            None if word.can_be_option() || prefix_of(word).is_empty() => {
                dynamic(judge, word);
                return words.len();
            }
            _ => end += 1,
        }
    }
    if end == words.len() || end == start {
        judge.report(ReasonCode::OptionExecutes, Effect::Executes, &words[start - 1], action);
        return words.len();
    }
    // Some versions give the bare name to what runs in the folder, and that may begin with a dash.
    let prefix = if action.ends_with("dir") { "" } else { prefix };
    let mut command = words[start..end].to_vec();
    for word in &mut command {
        replace_mark(word, "{}", prefix, several);
    }
    judge.site.command(&command);
    end + 1
}

fn prefix_of(word: &Word) -> &str {
    match &word.value {
        Value::Static { text } => text,
        Value::Dynamic { prefix, .. } => prefix,
    }
}

/// Judges `fd`: options by the table, and the command behind `-x` or `-X`, which ends at `;` or the end.
pub(super) fn judge_fd(judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
    let runs = |word: &Word| word.text().is_some_and(|text| matches!(text, "-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(action) = words[start..].iter().position(runs).map(|position| start + position) else {
        let scan = Scan::new(program, words, start);
        judge.troubles(&scan, words);
        return judge.options(program, &scan);
    };
    let scan = Scan::new(program, &words[..action], start);
    judge.troubles(&scan, words);
    judge.options(program, &scan);
    if scan.options.last().is_some_and(|option| matches!(option.value, Given::Nothing) && option.rule.takes_next_word())
        || scan.dashes.is_some()
    {
        // The action is a value or an operand; too odd to be told apart.
        return judge.report(ReasonCode::UnknownOption, Effect::Unknown, &words[action], words[action].raw.clone());
    }
    let end = words[action + 1..]
        .iter()
        .position(|word| word.text() == Some(";"))
        .map_or(words.len(), |length| action + 1 + length);
    let mut command = words[action + 1..end].to_vec();
    let marks = ["{}", "{/}", "{//}", "{.}", "{/.}"];
    let is_marked = |word: &Word| word.text().is_some_and(|text| marks.iter().any(|mark| text.contains(mark)));
    let marked = command.iter().any(is_marked);
    for mark in marks {
        // fd cuts a leading `./` off, so what it finds may begin with a dash.
        command.iter_mut().for_each(|word| replace_mark(word, mark, "", false));
    }
    if command.is_empty() {
        return judge.report(ReasonCode::OptionExecutes, Effect::Executes, &words[action], words[action].raw.clone());
    }
    if !marked {
        command.push(unknown_words(&words[action], "", false));
    }
    judge.site.command(&command);
    // Behind the `;` there may be more options, but no second action.
    if end + 1 < words.len() {
        let scan = Scan::new(program, words, end + 1);
        judge.troubles(&scan, words);
        judge.options(program, &scan);
    }
}
