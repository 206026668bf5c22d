//! Every option that makes a program do harm, in every way the shell lets it be written: it is found each time.

use std::collections::BTreeMap;

use hookwright::gate::shell::{CommandTable, DangerousOption, Effect, analyze};

fn passes(text: &str) -> bool {
    matches!(analyze(text, CommandTable::builtin()).effect, Effect::ReadOnly | Effect::RunsTests)
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "./-_=:,+@%".contains(character);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// The words that hold the option and its value, as the program reads them.
fn words(option: &DangerousOption) -> Vec<Vec<String>> {
    let (name, value) = (option.option.as_str(), option.harmful_value.as_str());
    let is_long = name.starts_with("--");
    let mut found = Vec::new();
    let mut names = vec![name.to_owned()];
    if is_long {
        let is_unique = |short: &str| option.long_options.iter().filter(|known| known.starts_with(short)).count() == 1;
        names.extend((3..name.len()).map(|length| name[..length].to_owned()).filter(|short| is_unique(short)));
    }
    for name in names {
        if option.separate_value {
            found.push(vec![name.clone(), value.to_owned()]);
        } else if !option.inline_value || option.effect != Effect::Unknown {
            // Without its value, one whose value decides does no harm.
            found.push(vec![name.clone()]);
        }
        if option.inline_value && (is_long || !option.clusters) {
            found.push(vec![format!("{name}={value}")]);
        }
    }
    if name.chars().count() == 2 && option.clusters {
        let letter = &name[1..];
        if option.inline_value {
            found.push(vec![format!("{name}{value}")]);
        }
        for safe in option.safe_letters.iter().take(3) {
            if option.separate_value {
                found.push(vec![format!("-{safe}{letter}"), value.to_owned()]);
            }
            if option.inline_value {
                found.push(vec![format!("-{safe}{letter}{value}")]);
            } else {
                found.push(vec![format!("-{safe}{letter}")]);
                found.push(vec![format!("-{letter}{safe}")]);
            }
        }
    }
    found
}

/// Other ways to write one word so that the shell makes the same of it.
fn disguises(word: &str) -> Vec<(String, String)> {
    let plain = quoted(word);
    let first = word.chars().next().map_or(0, char::len_utf8);
    let (head, tail) = word.split_at(first);
    let hex: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    let octal: String = word.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    let escaped: String = word.chars().flat_map(|character| ['\\', character]).collect();
    let inside: String = word.chars().map(|character| format!("{character}''")).collect();
    let middle = word.char_indices().nth(word.chars().count() / 2).map_or(first, |(at, _)| at);
    let simple = plain == word && !word.contains([',', '=']);
    let mut found = vec![
        (String::new(), format!("'{word}'")),
        (String::new(), format!("\"{word}\"")),
        (String::new(), format!("{head}\"{tail}\"")),
        (String::new(), format!("'{head}'\"{tail}\"")),
        (String::new(), escaped),
        (String::new(), format!("$'{hex}'")),
        (String::new(), format!("$'\\x2d'{}", quoted(tail))),
        (String::new(), format!("$'{octal}'")),
        (String::new(), format!("$\"{word}\"")),
        (String::new(), format!("\\\n{plain}")),
        (String::new(), format!("''{plain}\"\"")),
        ("o=".to_owned() + &quoted(word) + "; ", "$o".to_owned()),
        ("o=".to_owned() + &quoted(word) + "; ", "\"$o\"".to_owned()),
        ("o=".to_owned() + &quoted(word) + "; ", "${o}".to_owned()),
        ("o=".to_owned() + &quoted(tail) + "; ", format!("{head}$o")),
        ("o=".to_owned() + &quoted(tail) + "; ", format!("{head}\"$o\"")),
        (String::new(), format!("$(echo {plain})")),
        (String::new(), format!("\"$(echo {plain})\"")),
        (String::new(), format!("`echo {plain}`")),
        (String::new(), format!("${{unset_name:-{plain}}}")),
        (String::new(), format!("\"${{unset_name-{plain}}}\"")),
        (format!("for o in {plain}; do "), "$o; done".to_owned()),
        (format!("set -- {plain}; "), "\"$@\"".to_owned()),
        (format!("set -- {plain}; "), "$1".to_owned()),
        (format!("o=({plain}); "), "\"${o[@]}\"".to_owned()),
        (format!("read -r o <<< {plain}; "), "\"$o\"".to_owned()),
        (format!("printf -v o %s {plain}; "), "\"$o\"".to_owned()),
        (format!("declare o={plain}; "), "$o".to_owned()),
        (format!("export LANG={plain}; "), "$LANG".to_owned()),
        (format!("o=x; o={plain}; "), "$o".to_owned()),
        (format!("o=; o+={plain}; "), "$o".to_owned()),
        (format!("f() {{ o={plain}; }}; f; "), "$o".to_owned()),
        (format!("o=x; if true; then o={plain}; fi; "), "$o".to_owned()),
        (format!("o=x{plain}; "), "${o#x}".to_owned()),
        (format!("o={plain}x; "), "${o%x}".to_owned()),
        (format!("o={plain}; p=o; "), "${!p}".to_owned()),
        (format!("o=X{tail}; "), format!("${{o/X/{head}}}")),
        (format!("case y in y) o={plain};; esac; "), "$o".to_owned()),
        (format!("o=a.txt; while read -r l; do o={plain}; done < a.txt; "), "$o".to_owned()),
        (format!("echo {plain} | while read -r o; do "), "$o; done".to_owned()),
        (format!("echo {plain} | {{ read -r o; "), "$o; }".to_owned()),
        (String::new(), format!("${{HOME:+{plain}}}")),
        (format!(": ${{o:={plain}}}; "), "$o".to_owned()),
    ];
    if simple {
        found.push((String::new(), inside));
        found.push((String::new(), format!("{}\\\n{}", &word[..middle], &word[middle..])));
    }
    found
}

/// Braces that become the option and other words, where no value has to stand behind it.
fn braces(word: &str, option: &DangerousOption) -> Vec<String> {
    if quoted(word) != word || word.contains([',', '=']) {
        return Vec::new();
    }
    let mut found = vec![format!("{{{word},a.txt}}"), format!("-{{{},n}}", &word[1..]), format!("{word}{{,}}")];
    if option.after_operands {
        found.push(format!("{{a.txt,{word}}}"));
    }
    found
}

/// A harmless line of each command, to put the option into.
fn bases(table: &CommandTable, command: &[String]) -> Vec<String> {
    let name = command.join(" ");
    let mut found = vec![name.clone()];
    let examples = table.examples().into_iter().filter(|program| program.names.contains(&command[0]));
    let one = |line: &String| {
        let rest = line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(' '));
        rest && !line.contains(" -- ") && !line.ends_with(" --") && passes(line)
    };
    found.extend(examples.flat_map(|program| program.examples).find(one));
    found
}

struct Count {
    cases: usize,
    telling: usize,
    wrong: Vec<String>,
}

impl Count {
    fn check(&mut self, text: String, telling: bool) {
        self.cases += 1;
        self.telling += usize::from(telling);
        if passes(&text) {
            self.wrong.push(text);
        }
    }
}

#[test]
fn a_harmful_option_is_found_however_the_shell_writes_it() {
    let table = CommandTable::builtin();
    let mut count = Count { cases: 0, telling: 0, wrong: Vec::new() };
    let mut known: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    let options = table.dangerous_options();
    let mut seen = std::collections::BTreeSet::new();
    for (number, option) in options.iter().enumerate() {
        let mut same = option.clone();
        same.command.clear();
        // Programs of one kind share an entry (sha1sum, sha256sum): the disguises of each option once.
        let first = seen.insert(format!("{same:?}"));
        let lines = known.entry(option.command.clone()).or_insert_with(|| bases(table, &option.command));
        let name = option.command.join(" ");
        for line in lines.iter() {
            let arguments = line[name.len()..].trim();
            let telling = passes(line);
            for (index, spelled) in words(option).iter().enumerate() {
                let plain: Vec<String> = spelled.iter().map(|word| quoted(word)).collect();
                let plain = plain.join(" ");
                count.check(format!("{name} {plain} {arguments}"), telling);
                if option.after_operands {
                    count.check(format!("{line} {plain}"), telling);
                }
                for wrapper in
                    ["env", "timeout 5", "command", "nice -n 5", "ls | xargs", "! time", "env LANG=C", "find . -exec"]
                {
                    let end = if wrapper == "find . -exec" { " \\;" } else { "" };
                    if index == 0 && first {
                        count.check(format!("{wrapper} {name} {plain} {arguments}{end}"), telling);
                    }
                }
                if !first || (index > 0 && (index + number) % 9 != 0) || !telling && lines.len() > 1 {
                    continue;
                }
                if let [word] = &spelled[..] {
                    for word in braces(word, option) {
                        count.check(format!("{name} {word} {arguments}"), telling);
                    }
                } else if let [word, value] = &spelled[..] {
                    count.check(format!("{name} {{{},{}}} {arguments}", quoted(word), quoted(value)), telling);
                }
                let value: Vec<String> = spelled[1..].iter().map(|word| quoted(word)).collect();
                let value = value.join(" ");
                for (before, word) in disguises(&spelled[0]) {
                    let text = match word.split_once("; ") {
                        // The loop ends behind the line.
                        Some((word, end)) => format!("{before}{name} {word} {value} {arguments}; {end}"),
                        None => format!("{before}{name} {word} {value} {arguments}"),
                    };
                    count.check(text, telling);
                }
            }
        }
    }
    let Count { cases, telling, mut wrong } = count;
    println!("{cases} spellings of {} options, {telling} in a line that is harmless without", options.len());
    wrong.sort();
    wrong.dedup();
    if let Some(path) = std::env::var_os("GATE_WRONG") {
        std::fs::write(path, wrong.join("\n\n")).unwrap();
    }
    assert!(wrong.is_empty(), "{} let through:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(cases > 20_000 && telling > 10_000, "{cases} cases, {telling} telling");
}

#[test]
fn the_program_itself_is_found_however_the_shell_writes_it() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in ["touch pwned", "rm a.txt", "marker", "sort -o pwned a.txt", "git push", "python3 -c 1"] {
        let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
        for (before, word) in disguises(program) {
            let text = match word.split_once("; ") {
                Some((word, end)) => format!("{before}{word} {rest}; {end}"),
                None => format!("{before}{word} {rest}"),
            };
            for text in [text.clone(), format!("ls; {text}"), format!("( {text} )"), format!("x=$({text})")] {
                cases += 1;
                if passes(&text) {
                    wrong.push(text);
                }
            }
        }
    }
    println!("{cases} spellings of programs");
    assert!(wrong.is_empty(), "{} of {cases} let through:\n{}", wrong.len(), wrong.join("\n"));
}
