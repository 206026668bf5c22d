//! Makes up command lines over everything in the table.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use hookwright::gate::shell::{CommandShape, OptionShape};

use super::scratch::FILES;

/// A command line and the programs of the table that it is about.
#[derive(Clone, Debug)]
pub struct Generated {
    pub text: String,
    pub programs: Vec<String>,
}

/// Words that stand for options of programs whose options have no list.
const LONG: &[&str] = &[
    "--all",
    "--output=pwned",
    "--output-file=pwned",
    "--out=pwned",
    "--file=a.txt",
    "--in-place",
    "--write",
    "--save",
    "--log-file=pwned",
    "--cache",
    "--update",
    "--delete",
    "--force",
    "--verbose",
    "--recursive",
    "--help",
    "--version",
    "--format=%n",
    "--color=always",
    "--lines=3",
    "--bytes=2",
    "--zero-terminated",
    "--follow",
    "--check",
    "--create",
    "--compile",
    "--set=1",
    "--exec=./run.sh",
    "--debug",
    "--trace=pwned",
    "--config=e.yaml",
    "--from-file=a.txt",
    "--split=2",
    "--backup",
    "--temporary-directory=.",
    "--statistics",
    "--quiet",
    "--tee=pwned",
    "--record=pwned",
];
const NUMBERS: &[&str] = &["0", "1", "2", "3", "-1", "+2", "10", "1,2", "1-3"];
const TEXTS: &[&str] = &[
    "x",
    "TODO",
    "a.txt",
    "pwned",
    "'a b'",
    "''",
    "'%s\\n'",
    "-",
    "pwned.txt",
    "src",
    ",",
    "'.*'",
    "never",
    "name",
    "1",
    "empty",
    "$PWD",
    "\"$HOME\"",
    "*.txt",
    "tmp/pwned",
    "=pwned",
    "/dev/null",
    "C",
    "json",
    "main",
    "HEAD",
    "v1",
    "origin",
    "a:b",
    "key=value",
    "./run.sh",
    "@a.txt",
    "%H",
    "UTC",
];
const SED: &[&str] = &[
    "p",
    "'1,3p'",
    "s/a/b/g",
    "'/TODO/d'",
    "'w pwned'",
    "'s/a/b/w pwned'",
    "'1e touch pwned'",
    "'s/a/touch pwned/e'",
    "'1r b.txt'",
    "'$!N;P;D'",
    "'1!G;h;$!d'",
    "'y/abc/xyz/'",
    "'{p;n}'",
    "'W pwned'",
    "'/x/{s/a/b/;w pwned\n}'",
    "'=;l'",
    "'a\\\nhello'",
    "'1,/foo/{=;p}'",
    "'b end; w pwned\n:end'",
    "'s#a#b#;#w pwned'",
    "'s/a/b/;s/c/d/I2p'",
    "'0~2p'",
    "'c\\\nw pwned'",
    "'1q;w pwned'",
    "'/w pwned/p'",
    "'s,x\\,y,w pwned,'",
    "'R b.txt'",
    "'F;z;x'",
    "'T;t;v'",
];
const AWK: &[&str] = &[
    "'{print $1}'",
    "'NR==2'",
    "'BEGIN{print 1}'",
    "'{print > \"pwned\"}'",
    "'{print $1>2}'",
    "'{print ($1>2)}'",
    "'BEGIN{system(\"touch pwned\")}'",
    "'{print | \"cat > pwned\"}'",
    "'BEGIN{\"touch pwned\"|getline}'",
    "'{s+=$1}END{print s}'",
    "'/a/,/b/'",
    "'{print length($0) > 3 ? 1 : 2}'",
    "'{gsub(/>/,\"x\");print}'",
    "'BEGIN{while((getline l<\"a.txt\")>0)n++;print n}'",
    "'{a[$1]++}END{for(k in a)print k,a[k]}'",
    "'{printf \"%s\\n\",$2}'",
    "'{printf(\"%d\\n\",$1)>\"pwned\"}'",
    "'function f(x){return x>1}{print f($1)}'",
    "'{print >> \"pwned\"}'",
    "'BEGIN{printf \"x\" |& \"cat\"}'",
    "'{print /re|x/}'",
    "'@load \"filefuncs\";{print}'",
    "'BEGIN{close(\"x\");fflush()}'",
    "'{print $1,$2}  # > pwned'",
    "'{print \"a\" \"b\" >\"pwned\"}'",
];
const FIND: &[&str] = &[
    "-name '*.txt'",
    "-type f",
    "-maxdepth 1",
    "-print0",
    "-delete",
    "-exec touch pwned \\;",
    "-exec grep -l TODO {} +",
    "-fprint pwned",
    "-fls pwned",
    "-printf '%p\\n'",
    "-fprintf pwned '%p'",
    "-ok rm {} \\;",
    "-execdir cat {} \\;",
    "-newer a.txt",
    "-size +1",
    "-prune -o -print",
    "\\( -name a -o -name b \\)",
    "! -name x",
    "-mtime -1",
    "-ls",
    "-exec sh -c 'echo \"$1\"' _ {} \\;",
    "-exec wc -l {} \\;",
    "-exec sed -n 1p {} +",
    "-exec sed -i p {} +",
    "-quit",
    "-regex '.*'",
    "-empty",
    "-path './src/*'",
    "-exec sort {} \\;",
    "-exec sort -- {} \\;",
    "-exec head -n1 ./{} \\;",
    "-fprint0 pwned",
    "-files0-from a.txt",
    "-exec echo {} \\; -exec rm {} \\;",
    "-iname 'A*'",
    "-perm -u+x",
    "-exec cat {} {} +",
];

/// Makes up command lines.
pub struct Generator<'s> {
    shapes: &'s [CommandShape],
    /// Options that installed programs say they have.
    offered: &'s BTreeMap<String, Vec<String>>,
    pub rng: Rng,
    seen: BTreeSet<String>,
    pub made: Vec<Generated>,
}

impl<'s> Generator<'s> {
    pub fn new(shapes: &'s [CommandShape], offered: &'s BTreeMap<String, Vec<String>>, seed: u64) -> Self {
        Self { shapes, offered, rng: Rng::with_seed(seed), seen: BTreeSet::new(), made: Vec::new() }
    }

    pub fn keep(&mut self, text: String, programs: Vec<String>) {
        if self.seen.insert(text.clone()) {
            self.made.push(Generated { text, programs });
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.rng.usize(..from.len())]
    }

    fn file(&mut self) -> String {
        let name = self.pick(FILES);
        match self.rng.u8(..10) {
            0 => "pwned".to_owned(),
            1 => format!("./{}", quoted(name)),
            2 => self
                .pick(&[
                    "*",
                    "*.txt",
                    "src/*",
                    "./*",
                    "\"$PWD\"/a.txt",
                    "{a,b}.txt",
                    "src",
                    ".",
                    "docs",
                    "/dev/null",
                    "[ab].txt",
                ])
                .to_owned(),
            3 => format!("\"$PWD/{name}\""),
            4 => self.pick(&["a.txt", "b.txt", "c.csv", "d.json"]).to_owned(),
            _ => quoted(name),
        }
    }

    fn text(&mut self) -> String {
        match self.rng.u8(..4) {
            0 => self.pick(NUMBERS).to_owned(),
            1 => self.file(),
            _ => self.pick(TEXTS).to_owned(),
        }
    }

    fn value(&mut self, shape: &CommandShape, kind: Option<&str>) -> String {
        match kind {
            Some("sed_script") => self.pick(SED).to_owned(),
            Some("awk_program") => self.pick(AWK).to_owned(),
            Some("number") if self.rng.bool() => self.pick(NUMBERS).to_owned(),
            Some("format") => self.pick(&["+%s", "+%Y-%m-%d", "'+%H:%M'", "0101", "+"]).to_owned(),
            Some("output") => self.pick(&["/dev/null", "-", "pwned", "/dev/stdout", "a.txt", "/dev/fd/1"]).to_owned(),
            Some("choice" | "git_setting") if !shape.choices.is_empty() && self.rng.u8(..4) > 0 => {
                quoted(&shape.choices[self.rng.usize(..shape.choices.len())])
            }
            Some("git_format") => self
                .pick(&["%H", "'%an %s'", "%G?", "format:%h", "oneline", "'%(refname)'", "-committerdate"])
                .to_owned(),
            Some("file" | "plain_file" | "local_file" | "input_file") => self.file(),
            Some("test_file") => self.pick(&["tests/test_a.py", "tests", "tests/", "/tmp/x.py"]).to_owned(),
            Some("local_package") => self.pick(&["./...", ".", "./src", "src"]).to_owned(),
            Some("plugin_off") => self.pick(&["no:cacheprovider", "x"]).to_owned(),
            Some("command") => self
                .pick(&["ls", "cat a.txt", "touch pwned", "sort -o pwned a.txt", "head -1 a.txt", "wc -l"])
                .to_owned(),
            _ => self.text(),
        }
    }

    /// An option with its value, in one of the ways to write it.
    fn option(&mut self, shape: &CommandShape, option: &OptionShape) -> String {
        let name = &option.option;
        let long = name.starts_with("--");
        if !option.inline_value {
            return if long && self.rng.u8(..12) == 0 && name.len() > 5 {
                name[..name.len() - self.rng.usize(1..3)].to_owned()
            } else {
                name.clone()
            };
        }
        let value = self.value(shape, option.kind);
        match self.rng.u8(..6) {
            0 | 1 if long => format!("{name}={value}"),
            0 | 1 => format!("{name}{value}"),
            2 if !option.separate_value => name.clone(),
            _ if option.separate_value => format!("{name} {value}"),
            _ if long => format!("{name}={value}"),
            _ => format!("{name}{value}"),
        }
    }

    fn any_option(&mut self, program: &str) -> String {
        if let Some(offered) = self.offered.get(program).filter(|offered| !offered.is_empty() && self.rng.u8(..5) > 0) {
            let option = offered[self.rng.usize(..offered.len())].clone();
            return self.with_some_value(&option);
        }
        if self.rng.bool() {
            return self.pick(LONG).to_owned();
        }
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        let mut option = String::from("-");
        for _ in 0..self.rng.usize(1..4) {
            option.push(char::from(letters[self.rng.usize(..letters.len())]));
        }
        self.with_some_value(&option)
    }

    fn with_some_value(&mut self, option: &str) -> String {
        let value = self.text();
        match self.rng.u8(..5) {
            0 => format!("{option} {value}"),
            1 if option.starts_with("--") => format!("{option}={value}"),
            1 => format!("{option}{value}"),
            _ => option.to_owned(),
        }
    }

    /// A line of a program or sub-command: some options, some operands, in any order.
    pub fn simple(&mut self, shape: &CommandShape) -> String {
        let program = shape.command[0].clone();
        let mut words = Vec::new();
        for _ in 0..self.rng.usize(..4) {
            let word = if shape.options.is_empty() || (shape.any_options && self.rng.u8(..4) > 0) {
                if !shape.any_options && self.rng.u8(..3) > 0 {
                    continue;
                }
                self.any_option(&program)
            } else {
                // Mostly harmless ones: with a harmful one the line is refused, and not run.
                let safe: Vec<&OptionShape> =
                    shape.options.iter().filter(|option| option.is_safe || option.kind.is_some()).collect();
                if !safe.is_empty() && self.rng.u8(..8) > 0 {
                    let option = safe[self.rng.usize(..safe.len())];
                    self.option(shape, option)
                } else {
                    let option = &shape.options[self.rng.usize(..shape.options.len())];
                    self.option(shape, option)
                }
            };
            words.push(word);
        }
        if self.rng.u8(..10) == 0 {
            words.push("--".to_owned());
        }
        let operands = self.operands(shape);
        if self.rng.u8(..6) == 0 {
            words.splice(0..0, operands);
        } else {
            words.extend(operands);
        }
        let mut line = shape.command.join(" ");
        if shape.command.len() > 1 && self.rng.u8(..12) == 0 {
            // Options of the program itself, in front of the sub-command.
            let shapes = self.shapes;
            if let Some(outer) =
                shapes.iter().find(|other| other.command[..] == shape.command[..1] && !other.options.is_empty())
            {
                let option = &outer.options[self.rng.usize(..outer.options.len())];
                let option = self.option(outer, option);
                line = format!("{program} {option} {}", shape.command[1..].join(" "));
            }
        }
        for word in words {
            line.push(' ');
            line.push_str(&word);
        }
        line
    }

    fn operands(&mut self, shape: &CommandShape) -> Vec<String> {
        let program = shape.command[0].as_str();
        match program {
            "find" | "gfind" => {
                let mut words = vec![self.pick(&[".", "src", "a.txt", "docs src"]).to_owned()];
                words.extend((0..self.rng.usize(1..4)).map(|_| FIND[self.rng.usize(..FIND.len())].to_owned()));
                return words;
            }
            "xargs" | "gxargs" | "env" | "genv" | "bash" | "sh" | "dash" => {
                return vec![
                    self.pick(&[
                        "ls",
                        "wc -l",
                        "echo",
                        "grep -l x",
                        "-c 'ls'",
                        "-c 'touch pwned'",
                        "touch",
                        "LANG=C sort --",
                        "A=b ls",
                        "cat a.txt",
                    ])
                    .to_owned(),
                ];
            }
            _ => {}
        }
        let kinds: Vec<&'static str> = shape.operands.clone();
        let count = self.rng.usize(..4);
        let script = kinds.first().copied().filter(|kind| matches!(*kind, "sed_script" | "awk_program"));
        let script = script.or(match program {
            "sed" | "gsed" => Some("sed_script"),
            "awk" | "gawk" | "mawk" | "nawk" => Some("awk_program"),
            _ => None,
        });
        let mut words = Vec::new();
        if let Some(kind) = script {
            words.push(self.value(shape, Some(kind)));
        }
        for index in words.len()..count {
            let kind = kinds.get(index).or(kinds.last()).copied();
            let word = if kind == Some("text") && self.rng.u8(..3) > 0 { self.file() } else { self.value(shape, kind) };
            words.push(word);
        }
        words
    }

    /// Every option at least once by itself, and `more` lines of each program and sub-command.
    pub fn cover(&mut self, more: impl Fn(&CommandShape) -> usize) {
        let shapes = self.shapes;
        for shape in shapes {
            let programs = vec![shape.command[0].clone()];
            let name = shape.command.join(" ");
            self.keep(name.clone(), programs.clone());
            for alone in &shape.alone {
                self.keep(format!("{name} {alone}"), programs.clone());
            }
            for example in &shape.examples {
                if example.starts_with(&format!("{} ", shape.command[0])) {
                    self.keep(example.clone(), programs.clone());
                }
            }
            for option in &shape.options {
                let option = self.option(shape, option);
                let operands = self.operands(shape).join(" ");
                self.keep(format!("{name} {option} {operands}").trim_end().to_owned(), programs.clone());
            }
            let offered = self.offered;
            if shape.any_options {
                for option in offered.get(&shape.command[0]).into_iter().flatten() {
                    let file = self.file();
                    self.keep(format!("{name} {option} pwned {file}"), programs.clone());
                    if option.starts_with("--") {
                        self.keep(format!("{name} {option}=pwned a.txt"), programs.clone());
                    } else {
                        self.keep(format!("{name} {option}pwned a.txt"), programs.clone());
                    }
                }
            }
            for _ in 0..more(shape) {
                let line = self.simple(shape);
                self.keep(line, programs.clone());
            }
        }
    }

    /// Puts lines together with what the shell has. `lines`: what may be put in.
    pub fn compose(&mut self, lines: &[Generated], count: usize) {
        for _ in 0..count {
            let one = lines[self.rng.usize(..lines.len())].clone();
            let two = lines[self.rng.usize(..lines.len())].clone();
            let (a, b) = (one.text.as_str(), two.text.as_str());
            let mut programs = one.programs.clone();
            programs.extend(two.programs.iter().cloned());
            let file = self.file();
            let redirect = self.pick(&[
                "> /dev/null",
                "2>&1",
                "2>/dev/null",
                "> pwned",
                ">> a.txt",
                ">| pwned",
                "<> pwned",
                "&> pwned",
                "< a.txt",
                ">&2",
                "2> pwned",
                "3>&1",
                "<<< x",
                ">&pwned",
                "> \"$o\"",
                "&>/dev/null",
                "<&-",
                "> /dev/stdout",
                "2>&-",
            ]);
            let text = match self.rng.u8(..40) {
                0..=3 => format!("{a} | {b}"),
                4 => format!("{a} && {b}"),
                5 => format!("{a} || {b}"),
                6 => format!("{a}; {b}"),
                7 => format!("{a}\n{b}"),
                8 => format!("{a} |& {b}"),
                9 => format!("! {a}"),
                10 => format!("({a})"),
                11 => format!("{{ {a}; }} {redirect}"),
                12 | 13 => format!("{a} {redirect}"),
                14 => format!("for f in *.txt src/*; do {a} \"$f\"; done"),
                15 => format!("for f in *; do {a} $f; done"),
                16 => format!("for f in ./*; do {a} \"$f\"; done"),
                17 => format!("ls | while read -r f; do {a} \"$f\"; done"),
                18 => format!("echo \"$({a})\""),
                19 => format!("echo `{a}`"),
                20 => format!("{a} \"$({b})\""),
                21 => format!("{a} $({b})"),
                22 => format!("if {a}; then {b}; fi"),
                23 => format!("case $x in *) {a};; esac"),
                24 => format!("diff <({a}) <({b})"),
                25 => format!("f() {{ {a} \"$@\"; }}; f {file}"),
                26 => format!("timeout 1 {a}"),
                27 => format!("env LANG=C {a}"),
                28 => format!("printf '%s\\n' {file} | xargs {a}"),
                29 => format!("ls | xargs -I{{}} {a} ./{{}}"),
                30 => format!("find . -maxdepth 1 -exec {a} {{}} \\;"),
                31 => format!("find src -type f -exec {a} {{}} +"),
                32 => format!("f={file}; {a} \"$f\""),
                33 => format!("bash -c {}", quoted(a)),
                34 => format!("cd src && {a}"),
                35 => format!("nice {a}; command {b}"),
                36 => format!("x=$({a}); echo \"$x\""),
                37 => format!("[[ -n $({a}) ]] && {b}"),
                38 => format!("cat <<EOF\n$({a})\nEOF"),
                _ => self.respelled(a),
            };
            self.keep(text, programs);
        }
    }

    /// The same words, quoted or put together in other ways.
    fn respelled(&mut self, line: &str) -> String {
        if line.contains(['\'', '"', '\\', '$', '`', '*', '{', '(', '#', '~', '[', '?', '|', ';', '&', '<', '>', '!']) {
            return format!("time {line}");
        }
        let mut words = Vec::new();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            words.push(match self.rng.u8(..8) {
                0 => format!("'{word}'"),
                1 => format!("\"{word}\""),
                2 if word.len() > 1 => format!("{}\"{}\"", &word[..1], &word[1..]),
                3 if word.len() > 1 => format!("\\{word}"),
                4 => format!("$'{word}'"),
                5 => format!("\\\n{word}"),
                _ => word.to_owned(),
            });
        }
        words.join(" ")
    }
}

/// A word in single quotes, if it needs them.
pub fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "./-_=:,+@%".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
