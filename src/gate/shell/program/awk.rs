//! Programs of awk: does one write files, run commands or open connections?
//!
//! Not a parser of the language but of its words: what writes or runs cannot be said without `>` in a print statement,
//! `|`, `getline`, `system`, `@`, or `/inet`. The hard part is to know strings, comments and regular expressions from
//! code in every implementation; where they differ the program is unknown.

use super::super::analysis::{Effect, ReasonCode};
use super::ScriptFinding;

/// What is wrong with a program, if anything.
pub(crate) fn judge(program: &str) -> Option<ScriptFinding> {
    let mut scanner = Scanner {
        text: program,
        position: 0,
        last: Last::Start,
        depth: 0,
        control: Vec::new(),
        pending_control: false,
        print: None,
        getline: false,
    };
    scanner.run().err()
}

/// What the last word was: whether a `/` behind it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Start,
    /// A name, number, string, `)`, `]`: a `/` divides.
    Operand,
    /// The `)` of `if (…)`: implementations differ.
    ControlEnd,
    /// `getline`, or `$`, or a regular expression: implementations differ.
    Doubtful,
    /// An operator, `(`, `{`, `;`, a line break, a keyword: a `/` begins a regular expression.
    Operator,
}

struct Scanner<'s> {
    text: &'s str,
    position: usize,
    last: Last,
    /// Open parentheses and brackets.
    depth: usize,
    /// For each open one, whether it belongs to `if`, `while`, `for`, `switch`.
    control: Vec<bool>,
    pending_control: bool,
    /// The depth at which a print statement stands, within one.
    print: Option<usize>,
    /// Behind a `getline` in the same expression: a `<` names a file.
    getline: bool,
}

type Found = Result<(), ScriptFinding>;

const KEYWORDS: &[&str] = &[
    "BEGIN",
    "END",
    "BEGINFILE",
    "ENDFILE",
    "if",
    "else",
    "while",
    "for",
    "do",
    "in",
    "print",
    "printf",
    "return",
    "delete",
    "exit",
    "next",
    "nextfile",
    "break",
    "continue",
    "switch",
    "case",
    "default",
    "function",
    "func",
];

fn unknown(subject: &str) -> ScriptFinding {
    (ReasonCode::ScriptUnknown, Effect::Unknown, subject.chars().take(40).collect())
}

fn executes(subject: &str) -> ScriptFinding {
    (ReasonCode::ScriptExecutes, Effect::Executes, subject.to_owned())
}

impl<'s> Scanner<'s> {
    fn rest(&self) -> &'s str {
        &self.text[self.position..]
    }

    fn run(&mut self) -> Found {
        if self.text.contains("/inet") {
            return Err((ReasonCode::ScriptNetwork, Effect::Network, "/inet".to_owned()));
        }
        while let Some(character) = self.rest().chars().next() {
            self.word(character)?;
        }
        Ok(())
    }

    fn word(&mut self, character: char) -> Found {
        match character {
            ' ' | '\t' | '\r' => self.position += 1,
            '#' => self.comment()?,
            '"' => {
                self.string()?;
                self.last = Last::Operand;
            }
            '/' => self.slash()?,
            '\\' => {
                // Only a line break may follow.
                if !self.rest().starts_with("\\\n") {
                    return Err(unknown("\\"));
                }
                self.position += 2;
            }
            // The statement goes on in the next line: `print a,` and a line break.
            '\n' if self.last == Last::Operator && self.print.is_some() => self.position += 1,
            '\n' | ';' | '{' | '}' => {
                self.position += 1;
                self.getline = false;
                if self.print.is_none_or(|depth| depth >= self.depth) {
                    self.print = None;
                }
                // mawk forgets the line break behind `if (…)`.
                if !(character == '\n' && self.last == Last::ControlEnd) {
                    self.last = Last::Operator;
                }
            }
            '(' | '[' => {
                self.position += 1;
                self.depth += 1;
                self.control.push(std::mem::take(&mut self.pending_control));
                self.last = Last::Operator;
            }
            ')' | ']' => {
                self.position += 1;
                self.getline = false;
                self.depth = self.depth.checked_sub(1).ok_or_else(|| unknown(")"))?;
                if self.print.is_some_and(|depth| depth > self.depth) {
                    self.print = None;
                }
                self.last = if self.control.pop() == Some(true) { Last::ControlEnd } else { Last::Operand };
            }
            '|' if self.rest().starts_with("||") => self.operator(2),
            '|' => return Err(executes("|")),
            '@' => return Err(executes("@")),
            '>' => self.greater()?,
            '+' if self.rest().starts_with("++") => self.position += 2,
            '-' if self.rest().starts_with("--") => self.position += 2,
            '$' => {
                self.position += 1;
                self.last = Last::Doubtful;
            }
            '0'..='9' | '.' => {
                self.take(|character| character.is_ascii_alphanumeric() || character == '.');
                self.last = Last::Operand;
            }
            'a'..='z' | 'A'..='Z' | '_' => self.name()?,
            '<' if self.getline => return Err(unknown("getline <")),
            '+' | '-' | '*' | '%' | '^' | '!' | '<' | '=' | '~' | '?' | ':' | ',' | '&' => self.operator(1),
            other => return Err(unknown(&other.to_string())),
        }
        Ok(())
    }

    fn operator(&mut self, length: usize) {
        self.position += length;
        self.last = Last::Operator;
    }

    fn take(&mut self, accept: impl Fn(char) -> bool) -> &'s str {
        let rest = self.rest();
        let length = rest.find(|character| !accept(character)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    fn name(&mut self) -> Found {
        let name = self.take(|character| character.is_ascii_alphanumeric() || character == '_');
        match name {
            "system" | "extension" => return Err(executes(name)),
            // A value put there is opened as a file.
            "ARGV" => return Err(unknown(name)),
            "print" | "printf" => self.print = Some(self.depth),
            "getline" => return self.getline(),
            "if" | "while" | "for" | "switch" => self.pending_control = true,
            _ => {}
        }
        self.last = if KEYWORDS.contains(&name) { Last::Operator } else { Last::Operand };
        Ok(())
    }

    /// `getline`, `getline line`, and from a file only where its name is a string.
    fn getline(&mut self) -> Found {
        self.last = Last::Doubtful;
        self.getline = true;
        self.take(|character| character == ' ' || character == '\t');
        if self.rest().starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            self.name()?;
            self.last = Last::Operand;
            self.getline = true;
            self.take(|character| character == ' ' || character == '\t');
        }
        if self.rest().starts_with(['$', '[']) {
            return Err(unknown("getline"));
        }
        if self.rest().starts_with('<') {
            self.position += 1;
            self.take(|character| character == ' ' || character == '\t');
            // An escaped letter may make it a connection.
            let name =
                if self.rest().starts_with('"') { self.stands_alone(&[')', ';', '\n', '}', '>'])? } else { None };
            if name.is_none_or(|name| name.contains('\\')) {
                return Err(unknown("getline <"));
            }
            self.last = Last::Operand;
        }
        Ok(())
    }

    /// A `>`: a comparison, or the redirection of a print statement.
    fn greater(&mut self) -> Found {
        let writes = |subject: &str| (ReasonCode::ScriptWrites, Effect::Writes, subject.to_owned());
        if self.rest().starts_with(">>") {
            return Err(writes(">>"));
        }
        self.position += 1;
        if self.print != Some(self.depth) {
            self.last = Last::Operator;
            return Ok(());
        }
        self.take(|character| character == ' ' || character == '\t');
        match self.stands_alone(&[';', '\n', '}'])? {
            Some("\"/dev/stderr\"" | "\"/dev/stdout\"" | "\"/dev/null\"") => {
                self.last = Last::Operand;
                Ok(())
            }
            _ => Err(writes(">")),
        }
    }

    /// The string that follows, if nothing but one of `ends` or the end of the program comes behind it.
    fn stands_alone(&mut self, ends: &[char]) -> Result<Option<&'s str>, ScriptFinding> {
        if !self.rest().starts_with('"') {
            return Ok(None);
        }
        let start = self.position;
        self.string()?;
        let string = &self.text[start..self.position];
        self.take(|character| character == ' ' || character == '\t');
        let alone = self.rest().is_empty() || self.rest().starts_with(ends);
        Ok(alone.then_some(string))
    }

    fn string(&mut self) -> Found {
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    self.position += index + 1;
                    return Ok(());
                }
                '\\' => {
                    characters.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        Err(unknown("\""))
    }

    fn comment(&mut self) -> Found {
        let comment = self.take(|character| character != '\n');
        // Some take the next line for the comment's too.
        if comment.ends_with('\\') { Err(unknown(comment)) } else { Ok(()) }
    }

    fn slash(&mut self) -> Found {
        match self.last {
            Last::Operand => {
                self.operator(1);
                Ok(())
            }
            Last::ControlEnd | Last::Doubtful => Err(unknown("/")),
            Last::Start | Last::Operator => self.regular_expression(),
        }
    }

    /// `/…/`. Whether a slash in brackets ends it differs between implementations.
    fn regular_expression(&mut self) -> Found {
        let mut in_brackets = false;
        let mut first_in_brackets = false;
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((index, character)) = characters.next() {
            let first = std::mem::take(&mut first_in_brackets);
            if character == '\\' {
                match characters.next() {
                    None | Some((_, '\n')) => break,
                    Some(_) => continue,
                }
            }
            match character {
                '\n' => break,
                '/' if in_brackets => break,
                '/' => {
                    self.position += index + 1;
                    self.last = Last::Doubtful;
                    return Ok(());
                }
                '[' if !in_brackets => {
                    in_brackets = true;
                    first_in_brackets = true;
                    if let Some((_, '^')) = characters.peek() {
                        characters.next();
                    }
                }
                // `[[:alpha:]]`: the inner brackets are one piece.
                '[' => {
                    if let Some((_, ':' | '.' | '=')) = characters.peek() {
                        let closes = |(_, character): &(usize, char)| {
                            *character == ']' || *character == '/' || *character == '\n'
                        };
                        while characters.peek().is_some_and(|next| !closes(next)) {
                            characters.next();
                        }
                        if !matches!(characters.next(), Some((_, ']'))) {
                            break;
                        }
                    }
                }
                ']' if in_brackets && !first => in_brackets = false,
                _ => {}
            }
        }
        Err(unknown("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(program: &str) -> Option<ReasonCode> {
        judge(program).map(|(code, _, _)| code)
    }

    #[test]
    fn what_only_prints_is_harmless() {
        for program in [
            "{print $1}",
            "NR>1 {print $9, $5}",
            "$3 >= 1000 && $7 !~ /nologin/ {print $1}",
            "{ if ($1 > max) max = $1 } END { print max }",
            "/error|warn/ {c++} END {print c+0}",
            "{gsub(/a|b/,\"x\"); print}",
            "BEGIN{FS=\",\"} {printf \"%s\\t%s\\n\", $1, $2}",
            "NR==FNR{a[$1];next} $1 in a",
            "NR>1 {sum+=$3} END {printf \"%.2f\\n\", sum/(NR-1)}",
            "{print ($1 > 2 ? \"a\" : \"b\")}",
            "BEGIN { for (i=0; i<3; i++) print i }",
            "{print a[$1 > 2]}",
            "{print \"a > b | c\"}",
            "/>/ {print}",
            "{print $1 / 2 / 3}",
            "{ if ($2 > 3) print; else if ($3 > 4) { print $1 } }",
            "{ x = $1 > 2; print x }",
            "# print > \"x\"\n{print}",
            "!seen[$0]++",
            "{print > \"/dev/stderr\"}",
            "{print \"x\" > \"/dev/stderr\"; print}",
            "/[[:space:]]x/ {print}",
            "/a\\/b/ {print}",
            "/[]x]/",
            "{ while ((getline line < \"other\") > 0) n++ } END { print n }",
            "function f(a, b) { return a > b }\n{ print f($1, $2) }",
            "length > 80",
            "length($0) > 80 {print FILENAME \":\" FNR}",
            "$1 ~ /x/ || $2 ~ /y/",
            "{a[NR]=$0} END{for(i=NR;i>0;i--) print a[i]}",
            "/x/{f=1} f{print; if (/y/) exit}",
            "{print length / 2}",
            "{ print systime() }",
            "/a/,/b/",
            "{ n = split($0, parts, /,/); print n }",
            "{ getline; print }",
            "{printf(\"%s %s\\n\", $1, $2)}",
            "{print $(NF-1)/2}",
            "a && /b/ && !/c/",
            "{s+=$1}END{print s/NR}",
        ] {
            assert_eq!(code(program), None, "{program}");
        }
    }

    #[test]
    fn writing_is_found() {
        for program in [
            "{print > \"out\"}",
            "{print $1 >> \"out\"}",
            "{ $1 > 5; print > \"out\" }",
            "{printf \"x\" > \"out\"}",
            "{print >$1}",
            "BEGIN { print \"x\" > \"/dev/tcp/h/1\" }",
            "{print (1)(2) > \"out\"}",
            "{print (1 > 2) > \"out\"}",
            "{print > \"/dev/null\" \"x\"}",
            "{print a[1 > 2] > \"out\"}",
            "{print /x/ ? 1 : 2 > \"out\"}",
            "{print \"a\" \\\n > \"out\"}",
            "{if (1) print > \"out\"}",
            "function f() { print > \"out\" }",
            "BEGIN{for(print \"x\" > \"out\";0;);}",
            "{print;print>\"out\"}",
            "# c\n{print>\"out\"}",
            "/a/{print > \"out\"}",
            "{print 1/2 > \"out\"}",
            "{x = a / b; print \"/\" > \"out\"}",
            "{ print > (\"out\") }",
            "{print 1,\n 2 > \"out\"}",
            "{print 1, # c\n 2 > \"out\"}",
            "{print 1 &&\n 2 > \"out\"}",
        ] {
            assert_eq!(code(program), Some(ReasonCode::ScriptWrites), "{program}");
        }
    }

    #[test]
    fn running_is_found() {
        for program in [
            "BEGIN{system(\"touch x\")}",
            "BEGIN{system (\"touch x\")}",
            "BEGIN{\"touch x\" | getline}",
            "{print | \"sh\"}",
            "BEGIN{s=\"x\"; print \"x\" |& s}",
            "@load \"filefuncs\"; BEGIN{}",
            "BEGIN{f=\"system\"; @f(\"touch x\")}",
            "{ cmd | getline line }",
            "/\"/ {system(\"touch x\")}",
            "{print \"a\\\"\"; system(\"b\")}",
            "{a=1/2; system(\"x\"); b=\"/\"}",
            "/#/{system(\"x\")}",
            "{x++ / 2; system(\"/\")}",
        ] {
            assert_eq!(code(program), Some(ReasonCode::ScriptExecutes), "{program}");
        }
    }

    #[test]
    fn connections_are_found() {
        assert_eq!(code("BEGIN{s=\"/inet/tcp/0/h/9\"; print \"x\" |& s}"), Some(ReasonCode::ScriptNetwork));
    }

    #[test]
    fn what_implementations_read_in_two_ways_is_refused() {
        for program in [
            "{if (1) /\"/; system(\"x\") #\"\n}",
            "{while (0)\n/\"/; system(\"x\") #\"\n}",
            "/[/\"]/ {print}",
            "{print \"a",
            "/abc",
            "# c \\\nsystem(\"x\")",
            "{ getline /\"/ }",
            "{ print $/\"/ }",
            "{getline x < \"/in\" \"et\"}",
            "{getline x < file}",
            "{getline x < \"/in\\145t/tcp/0/h/9\"}",
            "{getline x \\\n< file}",
            "{getline \\\n< file}",
            "BEGIN{ARGV[1]=\"x\"}",
            "{print `ls`}",
            ")",
            "/a/ /\"/; system(\"x\") #\"",
        ] {
            let found = code(program);
            assert!(
                matches!(found, Some(ReasonCode::ScriptUnknown | ReasonCode::ScriptExecutes)),
                "{program}: {found:?}"
            );
        }
    }
}
