//! Scripts of sed, read as GNU sed reads them: does one write files or run commands?
//!
//! The script is parsed whole, because whether a `w` is a command or part of a text depends on all before it. What is
//! not understood is unknown.

use super::super::analysis::{Effect, ReasonCode};
use super::ScriptFinding;

/// What is wrong with a script, if anything.
pub(crate) fn judge(script: &str) -> Option<ScriptFinding> {
    let unknown = || (ReasonCode::ScriptUnknown, Effect::Unknown, script.chars().take(40).collect());
    let mut parser = Parser::new(script, Brackets::Plain);
    let finding = match parser.script() {
        Err(()) => return Some(unknown()),
        Ok(finding) => finding,
    };
    if finding.is_some() || !parser.delimiter_in_brackets {
        return finding;
    }
    // Some versions end `s/[/]…` at the slash inside the brackets, or let a backslash inside them escape. What they make
    // of the rest must do no harm either; if it is an error to them, they do nothing.
    [Brackets::Escaped, Brackets::Ignored]
        .into_iter()
        .find_map(|brackets| Parser::new(script, brackets).script().ok().flatten())
}

/// How `[…]` in an expression is read while its end is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brackets {
    /// Up to the `]`; neither delimiter nor backslash mean anything inside.
    Plain,
    /// A backslash escapes inside, too.
    Escaped,
    /// Not at all: a delimiter inside ends the expression.
    Ignored,
}

struct Parser<'s> {
    rest: std::str::Chars<'s>,
    brackets: Brackets,
    /// Whether versions can differ: there was a delimiter or backslash inside brackets.
    delimiter_in_brackets: bool,
    depth: usize,
}

type Parsed<T> = Result<T, ()>;

impl<'s> Parser<'s> {
    fn new(script: &'s str, brackets: Brackets) -> Self {
        Self { rest: script.chars(), brackets, delimiter_in_brackets: false, depth: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn next(&mut self) -> Option<char> {
        self.rest.next()
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'s str {
        let before = self.rest.as_str();
        while self.peek().is_some_and(&accept) {
            self.next();
        }
        &before[..before.len() - self.rest.as_str().len()]
    }

    fn blanks(&mut self) {
        self.take_while(|character| character == ' ' || character == '\t');
    }

    /// All commands; the first that does harm.
    fn script(&mut self) -> Parsed<Option<ScriptFinding>> {
        loop {
            self.take_while(|character| character.is_ascii_whitespace() || character == ';');
            if self.peek().is_none() {
                return if self.depth == 0 { Ok(None) } else { Err(()) };
            }
            self.addresses()?;
            if let Some(finding) = self.command()? {
                return Ok(Some(finding));
            }
        }
    }

    fn addresses(&mut self) -> Parsed<()> {
        if self.address(false)? {
            self.blanks();
            if self.peek() == Some(',') {
                self.next();
                self.blanks();
                if !self.address(true)? {
                    return Err(());
                }
            }
        }
        self.take_while(|character| character == ' ' || character == '\t' || character == '!');
        Ok(())
    }

    /// One address, if there is one: `3`, `0~4`, `$`, `/x/I`, `\%x%`; as the second also `+3`, `~4`.
    fn address(&mut self, second: bool) -> Parsed<bool> {
        match self.peek() {
            Some('0'..='9') => {
                self.digits();
                self.blanks();
                if self.peek() == Some('~') {
                    self.next();
                    self.digits();
                }
            }
            Some('$') => {
                self.next();
            }
            Some('+' | '~') if second => {
                self.next();
                if self.digits().is_empty() {
                    return Err(());
                }
            }
            Some('/') => {
                self.next();
                self.delimited('/', true)?;
                self.take_while(|character| character == 'I' || character == 'M');
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, true)?;
                self.take_while(|character| character == 'I' || character == 'M');
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn digits(&mut self) -> &'s str {
        self.take_while(|character| character.is_ascii_digit())
    }

    fn delimiter(&mut self) -> Parsed<char> {
        // A letter or digit is allowed, but versions differ in what its escape means.
        self.next().filter(|delimiter| delimiter.is_ascii_punctuation() && *delimiter != '\\').ok_or(())
    }

    /// Up to the next delimiter that is not escaped. `expression`: whether it is a regular expression, in which brackets
    /// count.
    fn delimited(&mut self, delimiter: char, expression: bool) -> Parsed<()> {
        loop {
            match self.next().ok_or(())? {
                character if character == delimiter => return Ok(()),
                '\\' => {
                    self.next().ok_or(())?;
                }
                '\n' => return Err(()),
                '[' if expression && self.brackets != Brackets::Ignored => self.bracket(delimiter)?,
                _ => {}
            }
        }
    }

    /// The rest of a bracket expression: `[^]abc[:alpha:]/]`.
    fn bracket(&mut self, delimiter: char) -> Parsed<()> {
        if self.peek() == Some('^') {
            self.next();
        }
        if self.peek() == Some(']') {
            self.next();
        }
        loop {
            match self.next().ok_or(())? {
                ']' => return Ok(()),
                '\n' => return Err(()),
                '[' if matches!(self.peek(), Some(':' | '.' | '=')) => {
                    let kind = self.next().ok_or(())?;
                    while !(self.next().ok_or(())? == kind && self.peek() == Some(']')) {
                        if self.peek() == Some('\n') {
                            return Err(());
                        }
                    }
                    self.next();
                }
                '\\' if self.brackets == Brackets::Escaped => {
                    self.next().ok_or(())?;
                }
                character => self.delimiter_in_brackets |= character == delimiter || character == '\\',
            }
        }
    }

    fn command(&mut self) -> Parsed<Option<ScriptFinding>> {
        let name = self.next().ok_or(())?;
        match name {
            '#' => {
                self.take_while(|character| character != '\n');
            }
            '{' => {
                self.depth += 1;
                if self.depth > 50 {
                    return Err(());
                }
            }
            '}' => {
                self.depth = self.depth.checked_sub(1).ok_or(())?;
                self.end()?;
            }
            '=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => self.end()?,
            'q' | 'Q' | 'l' | 'L' => {
                self.blanks();
                self.digits();
                self.end()?;
            }
            'a' | 'i' | 'c' => self.text()?,
            ':' => {
                self.blanks();
                if self.label().is_empty() {
                    return Err(());
                }
                self.label_end()?;
            }
            'b' | 't' | 'T' => {
                self.blanks();
                self.label();
                self.end()?;
            }
            'r' | 'R' => {
                self.take_while(|character| character != '\n');
            }
            'w' | 'W' => return Ok(self.written(name.to_string())),
            'e' => return Ok(Some((ReasonCode::ScriptExecutes, Effect::Executes, "e".to_owned()))),
            's' => return self.substitute(),
            'y' => {
                let delimiter = self.delimiter()?;
                self.delimited(delimiter, false)?;
                self.delimited(delimiter, false)?;
                self.end()?;
            }
            _ => return Err(()),
        }
        Ok(None)
    }

    /// What may stand behind a command.
    fn end(&mut self) -> Parsed<()> {
        self.take_while(|character| character.is_ascii_whitespace() && character != '\n');
        match self.peek() {
            None | Some('\n' | ';' | '#' | '}') => Ok(()),
            Some(_) => Err(()),
        }
    }

    fn label(&mut self) -> &'s str {
        self.take_while(|character| !character.is_ascii_whitespace() && character != ';' && character != '}')
    }

    /// Older versions take a label to the end of the line; `;` is common all the same, and only an error to them.
    fn label_end(&mut self) -> Parsed<()> {
        if self.peek() == Some('}') { Err(()) } else { self.end() }
    }

    /// The text of `a`, `i`, `c`: to the end of the line, a backslash before the line break continues it.
    fn text(&mut self) -> Parsed<()> {
        self.blanks();
        if self.peek() == Some('\\') {
            self.next();
            self.blanks();
            if self.peek() == Some('\n') {
                self.next();
            }
        } else if matches!(self.peek(), None | Some('\n' | '}')) {
            // The text that must follow may come from somewhere that is not seen here.
            return Err(());
        }
        while let Some(character) = self.next() {
            match character {
                '\\' => {
                    self.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn substitute(&mut self) -> Parsed<Option<ScriptFinding>> {
        let delimiter = self.delimiter()?;
        self.delimited(delimiter, true)?;
        self.delimited(delimiter, false)?;
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => {
                    self.next();
                }
                Some('e') => return Ok(Some((ReasonCode::ScriptExecutes, Effect::Executes, "s///e".to_owned()))),
                Some('w') => {
                    self.next();
                    return Ok(self.written("s///w".to_owned()));
                }
                _ => return self.end().map(|()| None),
            }
        }
    }

    /// The file of `w`: the rest of the line.
    fn written(&mut self, name: String) -> Option<ScriptFinding> {
        self.blanks();
        let file = self.take_while(|character| character != '\n');
        let is_stream = matches!(file, "/dev/stdout" | "/dev/stderr");
        (!is_stream).then(|| (ReasonCode::ScriptWrites, Effect::Writes, format!("{name} {file}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(script: &str) -> Option<ReasonCode> {
        judge(script).map(|(code, _, _)| code)
    }

    #[test]
    fn what_only_edits_the_stream_is_harmless() {
        for script in [
            "s/a/b/",
            "s/a/b/g;s/w/e/",
            "1,20p",
            "$p",
            "$=",
            "5q",
            "/start/,/end/{/foo/p}",
            "/a/{p;q}",
            "1!G;h;$!d",
            "s|/usr|/opt|g",
            r"s/\(.*\)e/\1w/2p",
            "1i header",
            "a\\\ntext w out\np",
            "s/[^/]*$//",
            "s/[/w]x/y/",
            "y/abc/xyz/",
            ":a;N;$!ba;s/\\n/ /g",
            "$!{N;ba};s/x/y/",
            "/x/I,+3d",
            "0~4d",
            "2,~4p",
            r"\%x%d",
            "s,w out,e,",
            "# w out",
            "r other",
            "s/x/[/",
            "w /dev/stdout",
            "s/a/b/w /dev/stderr",
            "s/a\\/w/b/",
            "n;d",
            "l 5",
            "",
            "  ;; p",
            "i\\  text",
            "s/a/x\\\ny/",
            "/[[:space:]]/d",
            "c changed; w out",
            "tend;:end",
            "s/[[:alpha:]/]/x/",
        ] {
            assert_eq!(code(script), None, "{script:?}");
        }
    }

    #[test]
    fn writing_is_found() {
        for script in [
            "w out",
            "W out",
            "1w out",
            "$!w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/Iw out",
            "p;w out",
            "{p;w out\n}",
            "/x/{s/a/b/;w out\n}",
            "a text\nw out",
            "a\\\ntext\nw out",
            "r in\nw out",
            "# c\nw out",
            ":a\nw out",
            "ba;w out",
            "y/a/b/;w out",
            r"\,x,w out",
            "s,a,b,w out",
            "1,/x/w out",
            "/a\\/b/w out",
            "w /dev/stdout2",
            "w /dev/stdout ",
            "0,/x/Iw out",
            "1!{w out\n}",
            "s/[/]/b/w out",
            "n;w out",
            "wout",
            "s/a/b/;;;w out",
            "i\\\nx\\\ny\nw out",
        ] {
            assert_eq!(code(script), Some(ReasonCode::ScriptWrites), "{script:?}");
        }
    }

    #[test]
    fn running_is_found() {
        for script in [
            "e",
            "e touch x",
            "1e touch x",
            "/x/!e touch x",
            "s/a/b/e",
            "s/a/b/ge",
            "s|.*|touch x|e",
            "1{e touch x\n}",
            "s/a/b/;# c\n1e touch x",
            "y/a/b/;1e touch x",
            "/[/]/e",
            "s/a/b/pe",
            "s/a/b/3e",
            "\n\ne",
            "a\\\nx\ne",
        ] {
            assert_eq!(code(script), Some(ReasonCode::ScriptExecutes), "{script:?}");
        }
    }

    #[test]
    fn what_versions_read_in_two_ways_is_harmless_in_both_or_refused() {
        // A version that ends the expression at the first slash sees `s/[/]/w out` and `/`.
        assert_eq!(code("s/[/]/w out\n/"), Some(ReasonCode::ScriptUnknown));
        assert!(judge("/[]e/w]/p").is_some());
        assert!(judge("s/[/x/w out;]/y/").is_some());
        assert!(judge("/[/w out\n]/p").is_some());
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        for script in [
            "k",
            "s/a/b",
            "s/a",
            "/x",
            "{p",
            "p}",
            "y/a/b",
            "s/a/b/q",
            "pp",
            "a",
            "1,",
            "a}",
            "sxaxbx",
            "p w out",
            "{p}w out",
            "v",
            ":a}",
            "s\\a\\b\\",
        ] {
            assert_eq!(code(script), Some(ReasonCode::ScriptUnknown), "{script:?}");
        }
    }
}
