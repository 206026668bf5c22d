//! Builtins of the shell that set variables, evaluate text, or change the shell; the others are in the table.

use super::analysis::{Effect, Reason, ReasonCode, Span};
use super::variables::Known;
use super::walk::{Origin, Walk};
use super::word::{Value, Word};

/// How many numbers that may not be there a test may hold: it is read with and without each.
const MAX_VANISHING: usize = 4;

/// Whether the builtin takes assignments as words.
pub(super) fn declares(name: &str) -> bool {
    matches!(name, "declare" | "typeset" | "local" | "readonly" | "export")
}

/// Whether a name is judged here.
pub(super) fn is_builtin(name: &str) -> bool {
    declares(name)
        || matches!(
            name,
            "." | "source"
                | "eval"
                | "exec"
                | "command"
                | "builtin"
                | "trap"
                | "read"
                | "mapfile"
                | "readarray"
                | "printf"
                | "test"
                | "["
                | "let"
                | "unset"
                | "set"
                | "shopt"
                | "alias"
                | "unalias"
                | "enable"
                | "hash"
                | "ulimit"
                | "umask"
                | "bind"
                | "complete"
                | "compopt"
                | "compgen"
                | "fc"
                | "history"
                | "suspend"
                | "disown"
                | "bg"
                | "fg"
                | "kill"
                | "wait"
                | "getopts"
                | "shift"
                | "cd"
                | "pushd"
                | "popd"
                | "dirs"
                | "exit"
                | "return"
                | "break"
                | "continue"
                | "logout"
                | "times"
                | "caller"
                | "jobs"
                | "help"
        )
}

fn as_they_are(words: &[Word]) -> Vec<Option<String>> {
    words.iter().map(|word| word.text().map(str::to_owned)).collect()
}

fn known(word: &Word) -> Known {
    match &word.value {
        Value::Static { text } => Known::Text(text.clone()),
        Value::Dynamic { prefix, .. } => Known::Anything(prefix.clone()),
    }
}

/// Whether a format of `printf` holds `%n`, which sets the variable that the operand names.
fn counts_what_it_printed(format: &str) -> bool {
    let after = |rest: &str| {
        rest.trim_start_matches(|flag: char| flag.is_ascii_digit() || "-+ #'.*hlLjzt".contains(flag)).starts_with('n')
    };
    format.split('%').skip(1).any(after)
}

/// Whether the words are options that only print, or operands that are none.
fn operands_only(words: &[Word]) -> bool {
    words.iter().all(|word| !word.can_be_option())
}

impl Walk<'_> {
    pub(super) fn builtin(&mut self, name: &str, words: &[Word]) -> Vec<Option<String>> {
        let whole = words[0].span;
        let operands = &words[1..];
        match name {
            "return" if !self.in_trap => {}
            "cd" | "pushd" | "popd" | "dirs" | "exit" | "shift" | "times" | "caller" | "help" | "logout" => {}
            // From a trap they lead out of whatever it interrupts.
            "break" | "continue" | "return" if self.in_trap => self.refuse(ReasonCode::EvaluatesText, whole, name),
            "break" | "continue" => self.jumps(),
            "jobs" => {
                let runs = |word: &Word| word.text().is_none_or(|text| text.starts_with('-') && text.contains('x'));
                if operands.iter().any(runs) {
                    self.refuse(ReasonCode::EvaluatesText, whole, "jobs -x");
                }
            }
            "wait" => {
                for pair in operands.windows(2).filter(|pair| pair[0].text() == Some("-p")) {
                    self.read_name(&known(&pair[1]), &pair[1].raw, pair[1].span);
                }
                // In a cluster of options the name stands elsewhere.
                let hidden = |text: &str| text.len() > 2 && text.starts_with('-') && text.contains('p');
                if operands.iter().any(|word| word.text().map_or(word.can_be_option(), hidden)) {
                    self.refuse(ReasonCode::EvaluatesText, whole, "wait");
                }
            }
            "eval" => self.eval(whole, operands),
            "." | "source" => self.executes(whole, name),
            "exec" | "command" | "builtin" => return self.passes_on(name, words),
            "trap" => self.trap(whole, operands),
            "read" => self.read_builtin(operands),
            "mapfile" | "readarray" => self.mapfile(operands),
            "printf" => return self.printf(words),
            "test" | "[" => self.test(operands),
            "let" => {
                for word in operands {
                    match word.text() {
                        Some(text) => self.arithmetic(text, word.span),
                        None => self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw),
                    }
                }
            }
            "unset" => self.unset(operands),
            "getopts" if !operands_only(operands.get(..2).unwrap_or_default()) => {
                self.refuse(ReasonCode::EvaluatesText, whole, name);
            }
            "getopts" => {
                if let Some(word) = operands.get(1) {
                    self.variable_name(&known(word), &word.raw, word.span);
                    self.set_unknown(word);
                }
            }
            "set" => self.set(whole, operands),
            "kill" => {
                let prints = matches!(operands.first().and_then(Word::text), Some("-l" | "-0"));
                if !prints || !operands_only(&operands[1..]) {
                    self.reasons.push(Reason::new(ReasonCode::ProgramWrites, Effect::Writes, whole, name));
                }
            }
            "shopt" => {
                let prints = |word: &Word| matches!(word.text(), Some(text) if !text.starts_with('-') || text == "-p" || text == "-q");
                // It changes which files a pattern finds, nothing else.
                let finds = |words: &[&str]| matches!(words, ["-s" | "-u", names @ ..] if names.iter().all(|name| *name == "globstar"));
                let texts: Vec<&str> = operands.iter().map(|word| word.text().unwrap_or("-")).collect();
                if !operands.iter().all(prints) && !finds(&texts) {
                    self.changes(whole, name);
                }
            }
            "alias" | "hash" | "ulimit" | "umask" | "complete" | "history" | "enable" => {
                let flags = |letters: &'static str| {
                    move |word: &Word| {
                        let given = word.text().and_then(|text| text.strip_prefix('-')).unwrap_or_default();
                        !given.is_empty() && given.chars().all(|letter| letters.contains(letter))
                    }
                };
                let only_prints = match name {
                    "ulimit" => operands.iter().all(flags("SHabcdefiklmnpqrstuvxPRT")),
                    "umask" => operands.iter().all(flags("pS")),
                    "hash" if operands.first().and_then(Word::text) == Some("-t") => {
                        operands.iter().all(|word| word.text().is_some())
                    }
                    "hash" => operands.iter().all(flags("lr")),
                    _ => operands.iter().all(flags("p")),
                };
                if !only_prints {
                    self.changes(whole, name);
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(name, operands),
            _ => self.changes(whole, name),
        }
        as_they_are(words)
    }

    fn changes(&mut self, span: Span, name: &str) {
        self.reasons.push(Reason::new(ReasonCode::ChangesShell, Effect::Unknown, span, name));
    }

    fn executes(&mut self, span: Span, name: &str) {
        self.reasons.push(Reason::new(ReasonCode::ProgramExecutes, Effect::Executes, span, name));
    }

    fn set_unknown(&mut self, word: &Word) {
        if let Some(name) = word.text() {
            self.sets(name, Known::anything(), word.span);
        }
    }

    /// `unset`: variables, and functions if it is not told that it is about variables.
    fn unset(&mut self, operands: &[Word]) {
        let (mut variables, mut functions) = (false, false);
        for (index, word) in operands.iter().enumerate() {
            match word.text() {
                Some("-v") if index == 0 => variables = true,
                Some("-f") if index == 0 => functions = true,
                Some(name) if !name.starts_with('-') => {
                    self.variable_name(&known(word), &word.raw, word.span);
                    if functions {
                        continue;
                    }
                    // In a function it may have been a local one, and that of the caller is seen again.
                    let gone = if self.in_function { Known::anything() } else { Known::Text(String::new()) };
                    self.sets(name, gone.clone(), word.span);
                    self.variables.unset(name, gone);
                }
                _ => self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw),
            }
        }
        self.whole.unsets_functions |= !variables;
    }

    fn eval(&mut self, whole: Span, operands: &[Word]) {
        let texts: Option<Vec<&str>> = operands.iter().map(Word::text).collect();
        match texts {
            // In this very shell: what it sets stays, so it is read as part of the text.
            Some(texts) => {
                let span = Span { start: whole.start, end: operands.last().map_or(whole.end, |word| word.span.end) };
                self.read(&texts.join(" "), Origin::Within(span));
            }
            None => self.refuse(ReasonCode::EvaluatesText, whole, "eval"),
        }
    }

    /// `exec`, `command`, `builtin`: the rest is a command.
    fn passes_on(&mut self, name: &str, words: &[Word]) -> Vec<Option<String>> {
        let mut rest = &words[1..];
        while let Some(option) = rest.first().and_then(Word::text).filter(|text| text.starts_with('-')) {
            match (name, option) {
                (_, "--") => {
                    rest = &rest[1..];
                    break;
                }
                // It only says what the names are.
                ("command", "-v" | "-V" | "-pv" | "-pV") => return as_they_are(words),
                ("command", "-p") => rest = &rest[1..],
                _ => {
                    self.reasons.push(Reason::new(ReasonCode::UnknownOption, Effect::Unknown, rest[0].span, option));
                    return as_they_are(words);
                }
            }
        }
        if rest.is_empty() {
            return as_they_are(words);
        }
        // Functions are passed over: the name means the builtin or the program.
        self.passed_on(rest);
        as_they_are(words)
    }

    fn trap(&mut self, whole: Span, operands: &[Word]) {
        match operands.first().map(Word::text) {
            None | Some(Some("-l" | "-p" | "-" | "")) => {}
            Some(Some("--")) => self.trap(whole, &operands[1..]),
            Some(Some(text)) => {
                let text = text.to_owned();
                let span = operands[0].span;
                // In this very shell, but at another time: anything may be set by then, and what it sets may be so at any
                // time from now on.
                let later = self.variables.of_later();
                let before = std::mem::replace(&mut self.variables, later);
                let outer = (self.stops.take(), std::mem::replace(&mut self.in_function, false));
                let in_trap = std::mem::replace(&mut self.in_trap, true);
                self.conditional += 1;
                self.read(&text, Origin::Within(span));
                self.conditional -= 1;
                self.in_trap = in_trap;
                if self.stops.is_some() {
                    // Then it would leave out the rest of whatever line it interrupts.
                    self.refuse(ReasonCode::EvaluatesText, span, "trap");
                }
                (self.stops, self.in_function) = outer;
                let inside = std::mem::replace(&mut self.variables, before);
                // Functions and other traps that were read before would have to know.
                if inside.sets_anything() {
                    self.refuse(ReasonCode::EvaluatesText, span, "trap");
                }
            }
            Some(None) => self.refuse(ReasonCode::EvaluatesText, whole, "trap"),
        }
    }

    fn read_builtin(&mut self, operands: &[Word]) {
        let mut index = 0;
        while let Some(word) = operands.get(index) {
            index += 1;
            let Some(text) = word.text() else {
                self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
                continue;
            };
            if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                let takes = letters.find(['a', 'd', 'i', 'n', 'N', 'p', 't', 'u']);
                let unknown =
                    letters[..takes.unwrap_or(letters.len())].bytes().any(|letter| !b"ersE".contains(&letter));
                if unknown || letters.starts_with('-') {
                    self.refuse(ReasonCode::UnknownOption, word.span, text);
                }
                if let Some(at) = takes {
                    let value = &letters[at + 1..];
                    let array = letters[at..].starts_with('a');
                    if !value.is_empty() {
                        if array {
                            self.read_name(&Known::Text(value.to_owned()), value, word.span);
                            self.whole.arrays.insert(value.to_owned());
                        }
                    } else if let Some(next) = operands.get(index) {
                        index += 1;
                        if array {
                            self.read_name(&known(next), &next.raw, next.span);
                            self.whole.arrays.extend(next.text().map(str::to_owned));
                        }
                    }
                }
                continue;
            }
            self.read_name(&Known::Text(text.to_owned()), text, word.span);
        }
    }

    fn read_name(&mut self, value: &Known, raw: &str, span: Span) {
        self.variable_name(value, raw, span);
        if let Known::Text(name) = value {
            self.sets(name, Known::anything(), span);
        }
    }

    fn mapfile(&mut self, operands: &[Word]) {
        let mut index = 0;
        while let Some(word) = operands.get(index) {
            index += 1;
            match word.text() {
                Some("-t") => {}
                Some("-d" | "-n" | "-O" | "-s" | "-u") => index += 1,
                Some(text) if !text.starts_with('-') => {
                    self.read_name(&Known::Text(text.to_owned()), text, word.span);
                    self.whole.arrays.insert(text.to_owned());
                }
                // A callback, or something that may be one.
                _ => self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw),
            }
        }
    }

    fn printf(&mut self, words: &[Word]) -> Vec<Option<String>> {
        if let Some(first) = words.get(1) {
            match first.text() {
                Some(text) if text.starts_with("-v") => {
                    let name =
                        if text == "-v" { words.get(2).map(known) } else { Some(Known::Text(text[2..].to_owned())) };
                    self.read_name(&name.unwrap_or(Known::Text(String::new())), text, first.span);
                }
                Some(_) => {}
                None if first.can_be_option() => self.refuse(ReasonCode::DynamicOption, first.span, &first.raw),
                None => {}
            }
            if words.len() > 2 && first.text().is_none_or(counts_what_it_printed) {
                self.refuse(ReasonCode::EvaluatesText, first.span, &first.raw);
            }
        }
        as_they_are(words)
    }

    /// `test`: an operator `-v` or `-R` evaluates the subscript of the name behind it.
    fn test(&mut self, operands: &[Word]) {
        let operands = match operands.split_last() {
            Some((last, rest)) if last.text() == Some("]") => rest,
            _ => operands,
        };
        self.test_words(operands, 0);
    }

    /// `vanished`: how many words were tried both with and without.
    fn test_words(&mut self, operands: &[Word], vanished: usize) {
        if let Some(at) = operands.iter().position(Word::may_only_vanish).filter(|_| vanished < MAX_VANISHING) {
            // It is there, as a word that is no operator, or it is not.
            let there = Word::fixed("0", operands[at].span);
            self.test_words(&[&operands[..at], &[there], &operands[at + 1..]].concat(), vanished + 1);
            return self.test_words(&[&operands[..at], &operands[at + 1..]].concat(), vanished + 1);
        }
        let several =
            operands.len() > 3 || operands.iter().any(|word| matches!(word.text(), Some("-a" | "-o" | "!" | "(")));
        for (index, word) in operands.iter().enumerate() {
            match word.text() {
                Some("-v" | "-R") => {
                    if let Some(next) = operands.get(index + 1) {
                        self.variable_name(&known(next), &next.raw, next.span);
                    }
                }
                Some(_) => {}
                None => {
                    let after_operator = index > 0 && operands[index - 1].text().is_some();
                    let before_operator =
                        operands.get(index + 1).is_some_and(|next| next.text().is_some_and(is_binary));
                    let splits = matches!(&word.value, Value::Dynamic { splits: true, .. });
                    let as_operator = word.can_be_option()
                        && ((operands.len() == 2 && index == 0) || (several && !after_operator && !before_operator));
                    if splits || as_operator {
                        self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
                    }
                }
            }
        }
    }

    fn set(&mut self, whole: Span, operands: &[Word]) {
        let mut rest = operands;
        while let Some(word) = rest.first() {
            match word.text() {
                Some("--") => return,
                Some(text) if text.len() > 1 && text.starts_with(['-', '+']) => {
                    let plain = text[1..].bytes().all(|letter| b"euxfvo".contains(&letter));
                    // Each `o` among the letters takes a word for itself.
                    let names = text.matches('o').count();
                    let known = |name: &Word| {
                        matches!(
                            name.text(),
                            Some("pipefail" | "errexit" | "nounset" | "xtrace" | "noglob" | "verbose")
                        )
                    };
                    rest = &rest[1..];
                    let (options, later) = rest.split_at(names.min(rest.len()));
                    // With none left it prints; several without a word each are no text that people write.
                    if !plain || names > 1 || !options.iter().all(known) {
                        return self.changes(whole, "set");
                    }
                    rest = later;
                }
                Some(_) => return,
                None if word.can_be_option() => return self.changes(whole, "set"),
                None => return,
            }
        }
    }

    fn declare(&mut self, builtin: &str, operands: &[Word]) {
        let letters: String = operands
            .iter()
            .filter_map(Word::text)
            .filter(|text| text.starts_with(['-', '+']))
            .flat_map(|text| text[1..].chars())
            .collect();
        let says = |letter: char| letters.contains(letter);
        if letters.contains(['f', 'F'])
            && !(builtin != "export" && letters.chars().all(|letter| "pfF".contains(letter)))
        {
            // What functions are seen by, and which traps they inherit.
            for word in operands.iter().take(1) {
                self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
            }
            return;
        }
        if letters.contains(['p', 'f', 'F'])
            && !operands.iter().any(|word| word.text().is_none_or(|text| text.contains('=')))
        {
            return; // It prints.
        }
        let exports = builtin == "export" || says('x');
        let fixes = builtin == "readonly" || says('r');
        for word in operands {
            let text = match &word.value {
                Value::Static { text } => text.as_str(),
                Value::Dynamic { prefix, .. } => prefix.as_str(),
            };
            if word.text().is_some() && text.starts_with('-') || text.starts_with('+') {
                // An integer evaluates what it is given; a reference names another variable.
                if text[1..].contains(|letter| !"xaArgpfFlut".contains(letter)) {
                    self.refuse(ReasonCode::EvaluatesText, word.span, text);
                }
                continue;
            }
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if word.text().is_some() => (text, None),
                None => {
                    self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
                    continue;
                }
            };
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !plain {
                self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
            }
            // Quoted or not, what stands in brackets is read again as the elements of an array.
            if value.is_some_and(|value| value.starts_with('(')) {
                self.refuse(ReasonCode::EvaluatesText, word.span, &word.raw);
            }
            if says('a') || says('A') {
                self.whole.arrays.insert(name.to_owned());
            }
            // An array that was written out is none of these: it was read where it stands.
            let written =
                word.raw.strip_prefix(name).is_some_and(|rest| rest.trim_start_matches('+').starts_with("=("));
            if word.text().is_none() && value == Some("") && !written {
                self.whole.declared_anything.push((name.to_owned(), word.span));
            }
            if exports {
                self.whole.exported.insert(name.to_owned());
            }
            let known = match value {
                Some(value) if word.text().is_some() && letters.chars().all(|letter| "rgx".contains(letter)) => {
                    Known::Text(value.to_owned())
                }
                // Letters may change their case; arrays hold more.
                _ => Known::anything(),
            };
            if builtin == "local" && !self.in_function {
                // There it fails, and sets nothing.
                let before = self.variables.get(name).unwrap_or(Known::anything());
                self.sets(name, before.join(&known), word.span);
            } else if value.is_some() || !matches!(builtin, "export" | "readonly") {
                self.sets(name, known, word.span);
            } else {
                self.check_name(name, word.span);
            }
            if says('l') || says('u') {
                // Whatever it is set to, its letters change.
                self.variables.set_unsteady(name);
            }
            if fixes {
                self.fixes(name, word.span);
            }
        }
    }
}

fn is_binary(text: &str) -> bool {
    matches!(
        text,
        "=" | "==" | "!=" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot" | "-ef"
    )
}
