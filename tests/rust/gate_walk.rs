//! Where commands hide in a text: each is found, and what only looks like one is not.

use hookwright::gate::shell::{Analysis, CommandTable, Effect, ReasonCode, analyze};

fn read(command: &str) -> Analysis {
    analyze(command, &CommandTable::default())
}

/// Places for a substitution `@`, each of which the shell runs.
const PLACES: &[&str] = &[
    "echo @",
    "echo \"@\"",
    "echo a@b",
    "echo 'x'@",
    "@",
    "\"@\" x",
    "x=@",
    "x=\"@\"; echo",
    "x=@ ls",
    "x=(a @ b)",
    "x+=@",
    "x[@]=1",
    "export LANG=@",
    "local x=@",
    "declare -a x=(@)",
    "readonly x=@",
    "echo ${x:-@}",
    "echo \"${x:-@}\"",
    "echo ${x:=@}",
    "echo ${x:+@}",
    "echo ${x:?@}",
    "echo ${x#@}",
    "echo ${x##@}",
    "echo ${x%@}",
    "echo \"${x%%@}\"",
    "echo ${x/@/b}",
    "echo ${x//a/@}",
    "echo ${x/#a/@}",
    "echo ${x:@}",
    "echo ${x:0:@}",
    "echo ${x[@]}",
    "echo ${x^@}",
    "echo ${x,,@}",
    "echo $((@))",
    "echo $((1 + @))",
    "echo $[@]",
    "((@))",
    "((x = @))",
    "for ((i=@;i<1;i++)); do :; done",
    "for ((i=0;i<@;i++)); do :; done",
    "for ((i=0;i<1;i+=@)); do :; done",
    "for x in @; do :; done",
    "for x in a b; do echo @; done",
    "select x in @; do :; done",
    "case @ in x) ;; esac",
    "case x in @) ;; esac",
    "case x in x) echo @ ;; esac",
    "if @; then :; fi",
    "if :; then @; fi",
    "if :; then :; else @; fi",
    "if :; then :; elif @; then :; fi",
    "while @; do :; done",
    "until @; do :; done",
    "while :; do @; break; done",
    "[[ @ ]]",
    "[[ -n @ ]]",
    "[[ @ == x ]]",
    "[[ x == @ ]]",
    "[[ x =~ @ ]]",
    "[[ x && @ ]]",
    "[[ ! @ ]]",
    "[[ ( @ ) ]]",
    "[ @ ]",
    "[ -n \"@\" ]",
    "test @ = x",
    "(@)",
    "( echo @ )",
    "{ @; }",
    "{ echo @; }",
    "! @",
    "time @",
    "a | @",
    "@ | a",
    "a |& @",
    "a && @",
    "a || @",
    "a; @",
    "a\n@",
    "echo x > @",
    "echo x < @",
    "echo < \"@\"",
    "cat <<< @",
    "cat <<< \"@\"",
    "cat <<EOF\n@\nEOF",
    "cat <<-EOF\n\t@\n\tEOF",
    "cat <<EOF\n${x:-@}\nEOF",
    "cat <<EOF\n$((@))\nEOF",
    "cat <(@)",
    "cat <(echo @)",
    "ls > >(@)",
    "tee >(@)",
    "f() { @; }; f",
    "f() { echo @; }",
    "function f { @; }",
    "f() ( @ )",
    "coproc @",
    "echo {a,@}",
    "echo \\\n@",
    "echo $(echo @)",
    "echo \"$(echo \"@\")\"",
    "eval '@'",
    "eval echo '@'",
    "trap '@' EXIT",
    "bash -c '@'",
    "bash -c 'echo @'",
    "sh -c \"@\"",
    "printf '%s' @",
    "printf -v x '%s' @",
    "echo a >&2 @",
    "2>/dev/null @",
    "x=1 y=@",
    "echo ~/@",
    "echo *@*",
    "echo $'a'@",
    "echo $\"@\"",
    "echo \"a\\\"@\"",
    "echo `echo @`",
    "read x <<< @",
    "mapfile -t a < <(@)",
    "echo \"${#x} @\"",
    "echo \"${x[1]} @\"",
];

#[test]
fn a_command_is_found_wherever_it_hides() {
    let mut looked_at = 0;
    for place in PLACES {
        for hidden in
            ["$(touch pwned)", "`touch pwned`", "$( touch pwned )", "$(ls; touch pwned)", "$({ touch pwned; })"]
        {
            if hidden.starts_with('`') && place.contains('`') {
                continue;
            }
            // Without a reading of what it replaces, the place itself would be refused and the test would show nothing.
            let command = place.replace('@', hidden);
            let analysis = read(&command);
            assert!(analysis.effect > Effect::RunsTests, "{command:?} is {}", analysis.effect);
            looked_at += 1;
        }
    }
    assert!(looked_at > 500, "{looked_at}");
}

/// The parser reads these otherwise than bash does: brackets in brackets as arithmetic, and what is substituted in a line
/// that announces a here-document as words of their own.
#[test]
fn what_the_parser_misreads_is_not_read_only() {
    for command in [
        "( (touch x) )",
        "(  (touch x))",
        "((touch x) )",
        "if ( (touch x) ); then ls; fi",
        "( (touch x) ) > /dev/null",
        "ls && (\t(rm -rf x) )",
        "cat <<E; $(echo touch) x\nE\n",
        "cat <<E $(touch x)\nE\n",
        "cat <<-'E' && $(echo touch) x\n\tE\n",
        "((cat <<E; $(echo touch) x\nE\n) )",
    ] {
        let analysis = read(command);
        assert!(analysis.effect > Effect::RunsTests, "{command:?} is {}", analysis.effect);
    }
    for command in [
        "((1 + 2))",
        "(( (1 + 2) * 3 ))",
        "((x = (1)+(2)))",
        "( ls; (ls) )",
        "while ((i < 3)); do ((i++)); done",
        "cat <<E | wc -l\n$(ls)\nE\n",
        "echo é; ((x = 1))",
    ] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
}

#[test]
fn the_same_places_are_harmless_with_a_harmless_command() {
    let harmless = |place: &&&str| {
        // What changes the shell, sets off something, or is evaluated twice is refused whatever stands in it.
        !["coproc", "x[@]", "${x:@}", "${x:0:@}", "${x[@]}", "$((@))", "$((1 + @))", "$[@]", "((", "mapfile", "x=@ ls"]
            .iter()
            .any(|refused| place.contains(refused))
            && !place.starts_with('@')
            && !place.contains("; @")
            && !place.contains("if @")
            && !place.contains("while @")
            && !place.contains("until @")
            && ![
                "(@)",
                "{ @; }",
                "! @",
                "time @",
                "a | @",
                "a |& @",
                "a && @",
                "a || @",
                "a\n@",
                "f() {",
                "function",
                "f() (",
                "2>/dev/null @",
                "then @",
                "do @",
                "else @",
                "> @",
                "< @",
                "eval '@'",
                "trap",
                "bash -c '@'",
                "sh -c",
                "tee >",
                "\"@\" x",
                "echo < ",
                "select",
            ]
            .iter()
            .any(|refused| place.contains(refused))
    };
    let places: Vec<_> = PLACES.iter().filter(|place| harmless(place)).collect();
    assert!(places.len() > 45, "{}", places.len());
    let refused: Vec<String> = places
        .iter()
        .map(|place| place.replace('@', "$(wc -l < a.txt)").replace("ls ", "ls -d ").replace("a &&", "ls &&"))
        .filter(|command| !command.starts_with("local"))
        .filter(|command| read(command).effect != Effect::ReadOnly)
        .map(|command| format!("{command:?}: {:?}", read(&command).reasons))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn what_is_evaluated_later_is_code() {
    for command in [
        "x='a[$(touch pwned)]'; echo $((x))",
        "x='a[$(touch pwned)]'; ((x))",
        "x='a[$(touch pwned)]'; [[ $x -eq 1 ]]",
        "x='a[$(touch pwned)]'; [[ -v $x ]]",
        "x='a[$(touch pwned)]'; test -v \"$x\"",
        "test -v 'a[$(touch pwned)]'",
        "[ -v 'a[$(touch pwned)]' ]",
        "x='a[$(touch pwned)]'; echo ${!x}",
        "x='$(touch pwned)'; echo ${x@P}",
        "printf -v 'a[$(touch pwned)]' x",
        "read 'a[$(touch pwned)]' < f",
        "read -r x; echo $((x))",
        "unset 'a[$(touch pwned)]'",
        "let 'x=a[$(touch pwned)]'",
        "declare -i x='a[$(touch pwned)]'",
        "declare 'x[$(touch pwned)]=1'",
        "declare -n y=x",
        "x=$(head -1 f); echo $((x + 1))",
        "x=$(head -1 f); [[ $x -gt 1 ]]",
        "x=$(head -1 f); echo ${a[x]}",
        "eval \"$x\"",
        "eval $(cat f)",
        "trap \"$x\" EXIT",
        "bash -c \"$x\"",
        "source f",
        ". ./f",
        "bash f",
        "sh < f",
        "while read -r n; do echo $((n)); done < f",
        "x=$(cat f); [ $x ]",
        "for i in $(cat f); do echo $((i)); done",
        "mapfile -C 'touch pwned' -c 1 a < f",
        "getopts a 'x[$(touch pwned)]'",
        "wait -p 'a[$(touch pwned)]' -n",
        "read -r x; a[$x]=1",
        "x=$(head -1 f); a[x]=1",
        "typeset -a 'q=($(touch x))'",
        "select x in a; do echo $((REPLY)); done",
    ] {
        assert!(read(command).effect > Effect::RunsTests, "{command:?} is {}", read(command).effect);
    }
}

#[test]
fn what_is_known_of_variables_is_used() {
    for command in [
        "f=README.md; sort $f",
        "f=README.md; sort \"$f\"",
        "for f in a.txt b.txt; do sort \"$f\"; done",
        "for f in src/*.rs; do sort \"$f\"; done",
        "n=3; head -n $n a",
        "n=$(wc -l < a); echo $((n + 1))",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
        "for ((i=0; i<3; i++)); do echo $i; done",
        "x=1; if [ -f a ]; then x=2; fi; echo $((x))",
        "cmd=ls; $cmd -la",
        "f=a; (f=-o; echo $f); sort $f",
        "declare -A n=([rs]=1); for k in \"${!n[@]}\"; do echo \"${n[$k]}\"; done",
    ] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
    for command in [
        "f=-oout; sort $f",
        "f=$(cat x); sort $f",
        "for f in *; do sort \"$f\"; done",
        "for f in -oout a; do sort $f; done",
        "f=a; if [ -f b ]; then f=-oout; fi; sort $f",
        "f=a; while read -r f; do sort \"$f\"; done < x",
        "f=a; for x in 1 2; do sort $f; f=-oout; done",
        "f='a -o b'; sort $f",
        "IFS=,; f=a,-ob; sort $f",
        "g() { f=-oout; }; f=a; g; sort $f",
        "f=a; true && f=-oout; sort $f",
        "cmd=touch; $cmd x",
        "f=a; f+=b; f=-o$f; sort $f",
        "f=-oout\nfor i in 1; do f=a; done; sort $f",
    ] {
        assert!(read(command).effect > Effect::RunsTests, "{command:?}");
    }
}

#[test]
fn what_is_known_of_variables_holds_however_the_code_is_left() {
    for command in [
        "f=b; while true; do f=-oout; break; f=b; done; sort $f",
        "f=b; for i in 1 2; do if true; then f=-oout; continue; fi; f=b; done; sort $f",
        "f=b; for i in *; do f=-oout; break; f=b; done; sort $f",
        "f=b; for ((;;)); do f=-oout; break; f=b; done; sort $f",
        "f=b; while true; do while true; do f=-oout; break 2; done; f=b; done; sort $f",
        "f=b; until false; do f=-oout; eval break; f=b; done; sort $f",
        "trap 'f=-oout' DEBUG; f=a; sort $f",
        "f=a; trap 'f=-oout' DEBUG; sort $f",
        "declare -l c; c=TOUCH; $c x",
        "declare -u f; f=a; sort $f",
    ] {
        assert!(read(command).effect > Effect::RunsTests, "{command:?}");
    }
    for command in ["f=b; while true; do break; done; sort $f", "trap 'echo done' EXIT; f=a; sort $f"] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
}

#[test]
fn sensitive_variables_are_not_set() {
    for name in
        ["PATH", "LD_PRELOAD", "GIT_EXTERNAL_DIFF", "BASH_ENV", "PYTHONPATH", "PAGER", "HOME", "CDPATH", "GLOBIGNORE"]
    {
        for command in [
            format!("{name}=/tmp/x"),
            format!("{name}=/tmp/x ls"),
            format!("export {name}=/tmp/x; ls"),
            format!("for {name} in a; do ls; done"),
            format!("read {name} < f; ls"),
            format!("declare -x {name}=a; ls"),
            format!(": ${{{name}:=x}}; ls"),
            format!("printf -v {name} x; ls"),
            format!("mapfile {name} < f; ls"),
            format!("(( {name} = 1 )); ls"),
            format!("unset {name}; ls"),
        ] {
            assert!(read(&command).effect > Effect::RunsTests, "{command:?}");
        }
    }
    for command in [
        "LANG=C sort a",
        "NO_COLOR=1 ls",
        "FILE=a.txt; cat \"$FILE\"",
        "MANIFEST=Cargo.toml; grep -n name \"$MANIFEST\"",
        "GOAL=x; ENVIRONMENT=y; echo $GOAL $ENVIRONMENT",
        "while IFS= read -r l; do echo \"$l\"; done < a",
    ] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
}

#[test]
fn redirections() {
    for command in [
        "ls > out",
        "tee /dev/stderr 2< victim",
        "cat 3< victim 2>&3 > /dev/stderr",
        "jobs -x touch x",
        "ls >> out",
        "ls >| out",
        "ls &> out",
        "ls &>> out",
        "ls >& out",
        "ls 2> out",
        "ls <> out",
        "> out",
        "(ls) > out",
        "{ ls; } > out",
        "for i in 1; do ls; done > out",
        "[[ -f x ]] > out",
        "exec > out",
        "ls > \"$x\"",
        "ls > /dev/sda",
        "ls >&$x",
        "cat < /dev/tcp/host/80",
        "cat < \"$x\"",
        "if ls; then :; fi > out",
        "f() { ls; } > out; f",
    ] {
        let analysis = read(command);
        assert!(analysis.effect > Effect::RunsTests, "{command:?}");
    }
    for command in [
        "ls > /dev/null",
        "ls 2>&1",
        "ls >&2",
        "ls &> /dev/null",
        "ls 2>/dev/null >&2",
        "cat < a",
        "exec 2>&1",
        "ls 2>&-",
        "cat <<< 'a'",
        "cat <<'EOF'\n$(touch pwned)\nEOF",
        "for f in *.md; do wc -l < \"$f\"; done",
        "ls >/dev/stderr",
    ] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
}

#[test]
fn names_programs_and_functions() {
    for command in [
        "./ls",
        "/tmp/cat a",
        "~/bin/ls",
        "$(echo ls)",
        "\"$x\" a",
        "ls() { touch x; }; ls",
        "alias ls='touch x'\nls",
        "false && f() { :; }; f",
        "enable -f cat; cat a",
        "hash -p /tmp/x ls; ls",
        "ls & ",
        "coproc ls",
        "l\\s() { touch x; }",
        "unknown-program",
        "\u{ff4c}\u{ff53}",
        "command touch x",
        "builtin eval 'touch x'",
        "exec touch x",
        "command -p touch x",
    ] {
        assert!(read(command).effect > Effect::RunsTests, "{command:?}");
    }
    for command in [
        "/bin/ls",
        "/usr/bin/cat a",
        "f() { ls; }; f",
        "command ls",
        "command -v git",
        "l\\s -la",
        "'ls' -la",
        "type ls",
    ] {
        assert_eq!(read(command).effect, Effect::ReadOnly, "{command:?}: {:?}", read(command).reasons);
    }
}

#[test]
fn reasons_say_where() {
    let command = "ls && echo \"$(rm -rf 日本 x)\" > out.txt";
    let analysis = read(command);
    let marked: Vec<(&str, ReasonCode)> =
        analysis.reasons.iter().map(|reason| (&command[reason.span.start..reason.span.end], reason.code)).collect();
    assert_eq!(marked, [("rm", ReasonCode::ProgramWrites), ("out.txt", ReasonCode::RedirectWrites)]);
    let commands: Vec<&str> = analysis.commands.iter().map(|one| &command[one.span.start..one.span.end]).collect();
    assert!(commands.contains(&"rm -rf 日本 x"), "{commands:?}");
}

#[test]
fn hostile_nesting_ends_in_unknown_and_in_time() {
    let mut texts = Vec::new();
    for open in [
        "(",
        "$(",
        "{ ",
        "${x:-",
        "$((",
        "[[ ",
        "if ",
        "case x in x) ",
        "`",
        "\"$(",
        "$[",
        "((",
        "<(",
        "for x in a; do ",
    ] {
        for times in [11, 51, 501, 5001] {
            texts.push(open.repeat(times));
            texts.push(format!("echo {}", open.repeat(times)));
            // Without a dollar it is text.
            if open.contains(['$', '`']) {
                texts.push(format!("cat <<EOF\n{}\nEOF", open.repeat(times)));
            }
            texts.push(format!("# it's\n{}", open.repeat(times)));
        }
    }
    for open in ["$[ ) ", "$[ } ", "$( ] ", "${x:-) ", "(\")\" "] {
        if open.contains('$') {
            texts.push(format!("cat <<EOF\n{}\nEOF", open.repeat(40)));
        }
        texts.push(format!("echo {}", open.repeat(40)));
    }
    texts.push("a".repeat(64 * 1024));
    texts.push("(\")\" ".repeat(200));
    texts.push("'".repeat(4001));
    texts.push("{a,b}".repeat(200));
    for text in texts {
        let analysis = read(&text);
        assert!(analysis.effect > Effect::RunsTests, "{} bytes: {:?}", text.len(), &text[..text.len().min(60)]);
    }
}

#[test]
fn the_project_s_own_runner_runs_tests_and_nothing_else() {
    for command in [".venv/bin/pytest -q", "./venv/bin/python -m pytest tests", ".venv/bin/pytest -q 2>&1 | tail -5"] {
        assert_eq!(read(command).effect, Effect::RunsTests, "{command}: {:?}", read(command).reasons);
    }
    for command in [
        ".venv/bin/python a.py",
        ".venv/bin/python --version",
        ".venv/bin/ls",
        ".venv/bin/../../evil/pytest",
        "/tmp/.venv/bin/pytest -q",
        "venv/bin/pytest -q -p evil",
        "PYTHONPATH=src pytest -q",
    ] {
        assert!(read(command).effect > Effect::RunsTests, "{command}");
    }
}
