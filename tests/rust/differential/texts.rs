//! Makes up shell texts with a call of `marker` in some place, where it may run or be no more than text.

use fastrand::Rng;

/// Makes up texts.
pub struct Texts {
    rng: Rng,
}

/// Characters that mean something to the shell, to damage a text with.
const NOISE: &[&str] = &[
    "'", "\"", "\\", "`", "$", "(", ")", "{", "}", "#", ";", "&", "|", "<", ">", "\n", " ", "!", "$(", "${", "<<", "[",
    "]", "*", "~", "=", "\\\n", "$'", "((", "))", "[[", "]]", "\t", "^", "%", "@", ",", "#\n", "<<-", "<<<", ";;",
    "<(",
];
/// `@` stands for a text, `%` for a word, `M` for what calls the marker or is quiet.
const TEXTS: &[&str] = &[
    "@; @",
    "@ && @",
    "@ || @",
    "@\n@",
    "@ | @",
    "@ & @",
    "@ |& @",
    "! @",
    "( @ )",
    "{ @; }",
    "if @; then @; else @; fi",
    "if @; then @; elif @; then @; fi",
    "for x in % %; do @; done",
    "for x in %; do echo $x; @; done",
    "for x; do @; done",
    "while @; do @; break; done",
    "until @; do @; break; done",
    "case % in %) @;; *) @;; esac",
    "case % in a|%) @;& b) @;; esac",
    "case x in (x) @ ;; esac",
    "case % in\n %) @\n ;;\nesac",
    "f() { @; }; f",
    "f() ( @ ); f %",
    "function g { @; }; g",
    "function g() { @; }",
    "[[ -n % ]] && @",
    "[[ % == % ]]",
    "[[ % =~ % ]] || @",
    "(( 1 + 1 )) && @",
    "for ((i=0;i<1;i++)); do @; done",
    "cat <<E\n%\nE\n@",
    "cat <<'E'\n@\nE\n@",
    "cat <<-E\n\t@\n\tE\n@",
    "cat <<\"E F\"\n@\nE F\n@",
    "cat <<\\E\n@\nE\n@",
    "cat <<E | cat\n$(@)\nE",
    "cat <<E\n`@`\nE",
    "cat <<E\n\\$(@)\nE",
    "cat <<E; @\nx\nE",
    "cat <<A <<B\n@\nA\n$(@)\nB\n@",
    "# @\n@",
    "echo x # @\n@",
    "echo x#y; @",
    "echo 'x'#y; @",
    "echo $# ; @",
    "echo ${#x}; @",
    "x=%; @",
    "x=% @",
    "x=(% %); @",
    "x[0]=%; @",
    "x+=%; @",
    "time @",
    "time -p @",
    "coproc @",
    "@ 2>&1",
    "@ > /dev/null",
    "@ <<< %",
    "@ < <(@)",
    "eval %",
    "eval '@'",
    "eval \"@\"",
    "trap '@' EXIT",
    "trap -- '@' 0",
    "echo % | xargs -n1 %",
    "bash -c '@'",
    "sh -c \"@\"",
    "command @",
    "exec @",
    "builtin @",
    "env @",
    "nice @",
    "timeout 1 @",
    "select x in a; do @; break; done",
    "echo \\\n@",
    "true\\\n; @",
    "x='@'; $x",
    "x='@'; eval \"$x\"",
    "x='@'; echo \"$x\"",
    "f() { @; }",
    "alias q='@'; q",
    "alias q='@'\nq",
    "shopt -s expand_aliases\nalias q='@'\nq",
    "echo a;# b\n@",
    "echo a &# b\n@",
    "$(echo @)",
    "`echo @`",
    "if false; then @; fi; @",
    "x=a; case $x in a) @;; esac",
    "let x=1; @",
    "set -- '@'; \"$1\"",
    "set -- '@'; $1",
    "set -- '@'; eval \"$@\"",
    "printf -v y %s '@'; $y",
    "read -r y <<< '@'; $y",
    "y=$(echo '@'); $y",
    "declare y='@'; $y",
    "unset x; @",
    "false || { @; }",
    "{ @; } > /dev/null 2>&1",
    "( @ ) | ( @ )",
    "echo $(( $(@) + 1 ))",
    "(( x = $(@) + 1 ))",
    "echo $[ $(@) ]",
    "echo ${x[$(@)]}",
    "let \"y=$(@)\"",
    "[[ x -eq $(@) ]]",
    "test -n \"$(@)\"",
    "find . -maxdepth 0 -exec % \\;",
    "find . -maxdepth 0 -exec sh -c '@' \\;",
    "a='x[$(@)]'; echo $((a))",
    "a='x[$(@)]'; [[ a -eq 0 ]]",
    "printf -v 'a[$(@)]' x",
    "test -v 'a[$(@)]'",
    "[[ -v a[$(@)] ]]",
    "read 'a[$(@)]' <<< x",
    "a='$(@)'; echo \"${a@P}\"",
    "unset 'a[$(@)]'",
    "declare -i a='x[$(@)]'",
    "export 'a=$(@)'",
    "declare \"a=$(@)\"",
    "declare -n r='a[$(@)]'; echo $r",
    "a='b[$(@)]'; echo ${!a}",
    "wait -p 'a[$(@)]'",
    "PS4='$(@)'; set -x; true",
    "mapfile -C '@ #' -c 1 < a.txt",
    "mapfile -C @ -c 1 x < a.txt",
    "echo {@,b}",
    "PROMPT_COMMAND='@'",
    "hash -p % z; z",
    "command -p @",
    "command -v @",
    "type @",
    "! ! @",
    "! time @",
    "if ! @; then @; fi",
    "{ @\n}",
    "(@)",
    "((@))",
    "( (@) )",
    "$( (@) )",
    "$((@))",
    "echo $( (@); @)",
    "f() { echo; } ; f <(@)",
    "f() { @; } 2>&1; f",
    "if [ % = % ]; then @; fi",
    ": ${x:=@}",
    ": ${x:=$(@)}",
    "case % in \"%\") @;; esac",
    "echo x >&2; @",
    "enable -n echo; @",
    "BASH_ENV=% bash -c :",
    "cd . && @",
    "pushd . ; @",
    ". <(echo '@')",
    "source /dev/stdin <<< '@'",
    "getopts x y; @",
    "ls() { @; }; ls",
    "cat() { @; }; cat a.txt",
    "function cat { @; }; echo | cat",
    "echo() { @; }; echo x",
    "unset -f cat; cat a.txt; @",
    "f() { unset -f f; @; }; f; f",
    "IFS=x; y=markerx; $y",
    "x=(@); ${x[0]}",
    "x=(@); \"${x[@]}\"",
];
/// `@`: a text; `%`: a word.
const WORDS: &[&str] = &[
    "x",
    "a.txt",
    "-n",
    "%%",
    "%%",
    "'%'",
    "\"%\"",
    "\"$(@)\"",
    "$(@)",
    "`@`",
    "\"`@`\"",
    "'$(@)'",
    "'@'",
    "\"@\"",
    "${x:-$(@)}",
    "${x:+$(@)}",
    "\"${x:-$(@)}\"",
    "${x#$(@)}",
    "\"${x%%\"$(@)\"}\"",
    "${x/$(@)/y}",
    "${x:-'$(@)'}",
    "\"${x:-'$(@)'}\"",
    "${x:-\"$(@)\"}",
    "\"${x:-\"$(@)\"}\"",
    "${x:-`@`}",
    "$((1 + $(@)))",
    "$((x[$(@)]))",
    "$[ $(@) ]",
    "\\$(@)",
    "\\`@\\`",
    "\"\\$(@)\"",
    "\"\\`@\\`\"",
    "\"\\\\$(@)\"",
    "\"\\\\\\$(@)\"",
    "$'a\\'$(@)'",
    "$'\\''$(@)",
    "$\"$(@)\"",
    "<(@)",
    ">(@)",
    "{a,%}",
    "{%,b}",
    "{1..3}",
    "*",
    "?",
    "[a]",
    "~",
    "$x",
    "\"$x\"",
    "${x}",
    "$1",
    "\"$@\"",
    "${#x}",
    "$#",
    "$$",
    "$?",
    "$!",
    "a#b",
    "\\#",
    "'#'",
    "#",
    "a=b",
    "\"a b\"",
    "'a b'",
    "''",
    "\"\"",
    "\\\\",
    "\\'",
    "\\\"",
    "\"'\"",
    "'\"'",
    "\"'$(@)'\"",
    "'\"$(@)\"'",
    "\"$(echo \"$(@)\")\"",
    "$(echo '$(@)')",
    "$(echo \")\"; @)",
    "$(echo ')'; @)",
    "$(case x in x) @;; esac)",
    "$(case x in (x) @;; esac)",
    "$(# )\n@)",
    "$(cat <<E\n@\nE\n)",
    "$(cat <<E\n$(@)\nE\n)",
    "`echo \\`@\\``",
    "`echo \"\\$(@)\"`",
    "\"`echo '@'`\"",
    "$(echo `@`)",
    "${x:-${y:-$(@)}}",
    "${x:-a}b}",
    "\"${x:-}}$(@)\"",
    "${x:=$(@)}",
    "${x:?$(@)}",
    "${x^^$(@)}",
    "${x:$(@)}",
    "${x@Q}",
    "${!x}",
    "${x[@]}",
    "${x[$(@)]}",
    "$(< a.txt)",
    "$(<a.txt @)",
    "$(\n@\n)",
    "$( @ )",
    "\\\n%",
    "a\\\nb",
    "$(echo \\)",
    "$(echo \\); @)",
    "\"$(echo \\\"; @)\"",
    "\"\\\"$(@)\"",
    "'\\'$(@)",
    "'\\''",
    "$'\\\\'$(@)",
    "$'x\\'y'",
    "%$(@)%",
    "!",
    "!x",
    "^",
    "$(@",
    "${x:-$'$(@)'}",
    "\"${x:-$'$(@)'}\"",
    "${x/'/'$(@)}",
    "${x//\\//$(@)}",
    "${x#'}'$(@)}",
    "${x#\\}$(@)}",
    "\"${x#'$(@)'}\"",
    "\"${x+'$(@)'}\"",
    "$(echo $((1)) ; @)",
    "$(((1)); @)",
    "$((1)); @",
    "$( (@) )",
    "$((@))",
    "$(($(@)))",
    "\"$((`@`))\"",
    "{$(@),b}",
    "a{b,$(@)}",
];
const MARKERS: &[&str] = &[
    "marker",
    "marker",
    "marker",
    "marker x",
    "marker '%'",
    "mar''ker",
    "\\marker",
    "\"marker\"",
    "'marker'",
    "$'\\x6darker'",
    "${z:-marker}",
    "$(echo marker)",
    "mark\\\ner",
    "m\\arker",
    "\"mar\"ker",
    "{marker,x}",
    "env marker",
    "command marker",
    "</dev/null marker",
    "LANG=C marker",
    "2>/dev/null marker",
    "y=1 marker",
    "`echo marker`",
    "exec marker",
    "eval marker",
    "time marker",
    "! marker",
    "xargs marker < a.txt",
    "$\"marker\"",
    "marke[r]",
    "${y:=marker}",
];
const QUIET: &[&str] = &[
    "echo marker",
    "echo x",
    "true",
    ":",
    "ls",
    "cat a.txt",
    "echo 'marker'",
    "echo \"x; marker\"",
    "grep marker a.txt",
    "head -1 a.txt",
    "echo x # marker",
    "printf '%s\\n' marker",
    "wc -l a.txt",
    "[ -n x ]",
    "echo $x",
    "echo \"$x\"",
    "false",
    "echo \\; marker",
    "echo \\| marker",
    "echo a\\\n marker",
    "echo ';' marker",
    "echo \\& marker",
    "echo '#' marker",
    "echo \\# marker",
    "echo \\\\; true",
    "type marker",
    "command -v marker",
    "test marker",
    "echo {marker,x}",
    "echo \\$(marker)",
    "echo '$(marker)'",
    "echo '`marker`'",
    "cat <<'E'\n$(marker)\nE\n",
    "cat <<E\nmarker\nE\n",
    "[[ marker == x ]]",
    "case marker in marker) true;; esac",
    "for marker in a; do true; done",
    "marker=1",
    "x=marker",
    "echo ${marker}",
    "echo $marker",
    "echo marker | cat",
    "wc -l < a.txt",
];

impl Texts {
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }

    fn pick(&mut self, from: &'static [&'static str]) -> &'static str {
        from[self.rng.usize(..from.len())]
    }

    /// A text; one in three is damaged.
    pub fn text(&mut self) -> String {
        let depth = self.rng.usize(1..5);
        let mut text = self.list(depth);
        if self.rng.u8(..3) == 0 {
            for _ in 0..self.rng.usize(1..4) {
                self.damage(&mut text);
            }
        }
        text
    }

    fn list(&mut self, depth: usize) -> String {
        if depth == 0 || self.rng.u8(..8) == 0 {
            if self.rng.u8(..4) < 3 {
                let marker = self.pick(MARKERS);
                return self.fill(marker, 0);
            }
            return self.pick(QUIET).to_owned();
        }
        if self.rng.u8(..3) == 0 {
            let program = self.pick(&["echo", "printf '%s\\n'", "cat", ":", "echo x", "grep -c x", "wc -l", "true"]);
            let count = self.rng.usize(1..4);
            let words: Vec<String> = (0..count).map(|_| self.word(depth - 1)).collect();
            return format!("{program} {}", words.join(" "));
        }
        let template = self.pick(TEXTS);
        self.fill(template, depth - 1)
    }

    fn word(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.pick(&["x", "marker", "'marker'", "a.txt", "\"$x\"", "$x", "b", "\\;", "#", "''"]).to_owned();
        }
        let template = self.pick(WORDS);
        self.fill(template, depth - 1)
    }

    fn fill(&mut self, template: &str, depth: usize) -> String {
        let mut text = String::new();
        let mut rest = template.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                // Neither `"$@"`, `${x@Q}`, `[@]` nor `%s`, `\`.
                '@' if !text.ends_with(['$', '[', 'x', 'a']) => text.push_str(&self.list(depth)),
                '%' if rest.peek() != Some(&'s') && !text.ends_with(['x', '%']) => text.push_str(&self.word(depth)),
                other => text.push(other),
            }
        }
        text
    }

    fn damage(&mut self, text: &mut String) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let at = places[self.rng.usize(..places.len())];
        match self.rng.u8(..4) {
            0 if at < text.len() => {
                text.remove(at);
            }
            1 => {
                let other = places[self.rng.usize(..places.len())];
                let piece = text[at.min(other)..at.max(other).min(at.min(other) + 12)].to_owned();
                text.insert_str(at, &piece);
            }
            _ => text.insert_str(at, self.pick(NOISE)),
        }
    }
}
