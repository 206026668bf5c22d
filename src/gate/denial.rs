//! What a gate says when it refuses: what was refused, why, and what to do instead.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::shell::{ReasonCode, Span};

/// The most characters of a command, a path or another subject that are quoted.
const QUOTED: usize = 200;

/// The language in which a gate speaks to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese, in simplified characters.
    Zh,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 2] = [Self::En, Self::Zh];

    /// The language by its code, `en` or `zh`.
    pub fn parse(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }
}

macro_rules! gate_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// What a gate finds by itself, without a shell command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GateCode { $($(#[$doc])* $variant,)+ }

        impl GateCode {
            /// All codes.
            pub const ALL: &'static [GateCode] = &[$(Self::$variant,)+];

            /// The name, for example `unknown_tool`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

gate_codes! {
    /// The tool changes files.
    Write = "write",
    /// The tool reaches the network.
    Network = "network",
    /// The tool runs code that cannot be judged.
    Execute = "execute",
    /// The tool starts or steers agents.
    Dispatch = "dispatch",
    /// The tool asks the user.
    AskUser = "ask_user",
    /// Nothing is known of the tool.
    UnknownTool = "unknown_tool",
    /// A shell call without a command.
    NoCommand = "no_command",
    /// A parameter lets the command go on after the call.
    Detached = "detached",
    /// A parameter gives the command more rights.
    Escalates = "escalates",
    /// A parameter sets variables of the environment.
    Environment = "environment",
    /// The arguments cannot be read.
    Arguments = "arguments",
    /// In plan mode: another file than the plan file.
    NotThePlanFile = "not_the_plan_file",
    /// In plan mode: which files are written cannot be told.
    UnclearPath = "unclear_path",
    /// A rule denies it.
    DeniedByRule = "denied_by_rule",
    /// No rule allows it, and what no rule allows is denied.
    DeniedByDefault = "denied_by_default",
    /// A rule says to ask.
    AskedByRule = "asked_by_rule",
    /// No rule allows it, and what no rule allows is asked about.
    AskedByDefault = "asked_by_default",
    /// It may be what a rule denies.
    MayBeDenied = "may_be_denied",
}

/// Why a call is refused, as a name that stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialCode {
    /// Found by a gate.
    Gate(GateCode),
    /// Found in a shell command.
    Shell(ReasonCode),
}

impl DenialCode {
    /// The name, for example `redirect_writes`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate(code) => code.as_str(),
            Self::Shell(code) => code.as_str(),
        }
    }
}

impl From<GateCode> for DenialCode {
    fn from(code: GateCode) -> Self {
        Self::Gate(code)
    }
}

impl From<ReasonCode> for DenialCode {
    fn from(code: ReasonCode) -> Self {
        Self::Shell(code)
    }
}

/// Which limits a gate sets, said with each refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limits {
    Review,
    ReviewWithoutTests,
    Plan,
    PlanFile,
    Permissions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    frame: HashMap<Language, Frame>,
    limits: HashMap<Limits, HashMap<Language, String>>,
    gate: HashMap<String, HashMap<Language, Text>>,
    shell: HashMap<String, HashMap<Language, Text>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    refused: String,
    because: String,
    instead: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    message: String,
    hint: String,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("messages.toml")).expect("messages.toml is checked by the tests"));

/// A refusal in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The kind of reason.
    pub code: DenialCode,
    /// The tool that was called.
    pub tool: String,
    /// Why, in the language of the gate.
    pub reason: String,
    /// What to do instead, in the language of the gate.
    pub hint: String,
    /// Where in the command the reason stands, in bytes.
    pub span: Option<Span>,
    /// The command, or what else is called, as far as it is quoted.
    pub command: Option<String>,
    language: Language,
    limits: String,
}

/// What a denial is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Particulars<'a> {
    /// What the reason is about.
    pub(super) subject: &'a str,
    /// What would be allowed.
    pub(super) allowed: &'a str,
    /// The command in which it stands, and where.
    pub(super) command: Option<&'a str>,
    pub(super) span: Option<Span>,
}

/// A reason of a shell analysis in words: why, and what to do instead.
pub fn shell_words(reason: &super::shell::Reason, language: Language) -> (String, String) {
    let text = &TABLE.shell[reason.code.as_str()][&language];
    let fill = |text: &str| text.replace("{subject}", &format!("`{}`", cut(&reason.subject)));
    (fill(&text.message), fill(&text.hint))
}

impl Denial {
    pub(super) fn new(
        code: impl Into<DenialCode>,
        tool: &str,
        language: Language,
        limits: Limits,
        particulars: &Particulars<'_>,
    ) -> Self {
        let code = code.into();
        let texts = match code {
            DenialCode::Gate(code) => &TABLE.gate[code.as_str()],
            DenialCode::Shell(code) => &TABLE.shell[code.as_str()],
        };
        let fill = |text: &str| {
            let quoted = |text: &str| format!("`{}`", cut(text));
            text.replace("{allowed}", "\0")
                .replace("{subject}", &quoted(particulars.subject))
                .replace('\0', &quoted(particulars.allowed))
        };
        let text = &texts[&language];
        Denial {
            code,
            tool: cut(tool),
            reason: fill(&text.message),
            hint: fill(&text.hint),
            span: particulars.span,
            command: particulars.command.map(cut),
            language,
            limits: TABLE.limits[&limits][&language].clone(),
        }
    }

    /// The whole for the model: what was refused, why, what to do instead.
    pub fn render(&self) -> String {
        let frame = &TABLE.frame[&self.language];
        let call = match &self.command {
            Some(command) => format!("{} `{command}`", self.tool),
            None => self.tool.clone(),
        };
        let mut lines = vec![
            frame.refused.replace("{call}", &call),
            frame.because.replace("{reason}", &self.reason),
            frame.instead.replace("{hint}", &self.hint),
        ];
        if !self.limits.is_empty() {
            lines.insert(1, self.limits.clone());
        }
        lines.join("\n")
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render())
    }
}

/// The beginning of a text, on one line, with nothing in it that a terminal acts on.
pub(super) fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED).map(visible).collect();
    if text.chars().nth(QUOTED).is_some() {
        shown.push('…');
    }
    shown
}

fn visible(c: char) -> char {
    let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if c == '\n' || c == '\t' {
        ' '
    } else if c.is_control() || hidden {
        '\u{fffd}'
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(text: &str) -> Vec<&str> {
        let mut found: Vec<_> = text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn every_code_has_its_texts_in_every_language_with_the_same_placeholders() {
        let mut texts = 0;
        let codes = GateCode::ALL.iter().map(|code| (code.as_str(), &TABLE.gate));
        let codes = codes.chain(ReasonCode::ALL.iter().map(|code| (code.as_str(), &TABLE.shell)));
        for (code, table) in codes {
            let languages = table.get(code).unwrap_or_else(|| panic!("{code} has no text"));
            let english = &languages[&Language::En];
            for language in Language::ALL {
                let text = &languages[&language];
                assert_eq!(placeholders(&text.message), placeholders(&english.message), "{code} {language:?}");
                assert_eq!(placeholders(&text.hint), placeholders(&english.hint), "{code} {language:?}");
                let known = ["subject", "allowed"];
                assert!(placeholders(&text.message).iter().all(|name| known.contains(name)), "{code}");
                assert!(!text.message.is_empty() && !text.hint.is_empty(), "{code} {language:?}");
                assert!(text.hint.ends_with(['.', '。']) && !text.message.ends_with(['.', '。']), "{code}");
                texts += 1;
            }
        }
        assert_eq!(texts, 2 * (GateCode::ALL.len() + ReasonCode::ALL.len()));
        assert_eq!(TABLE.gate.len(), GateCode::ALL.len(), "a text without a code");
        assert_eq!(TABLE.shell.len(), ReasonCode::ALL.len(), "a text without a code");
        for language in Language::ALL {
            assert_eq!(placeholders(&TABLE.frame[&language].refused), ["call"]);
            assert_eq!(placeholders(&TABLE.frame[&language].because), ["reason"]);
            assert_eq!(placeholders(&TABLE.frame[&language].instead), ["hint"]);
        }
        for limits in TABLE.limits.values() {
            assert_eq!(limits.len(), Language::ALL.len());
        }
    }

    #[test]
    fn a_denial_says_what_why_and_what_instead() {
        let span = Span { start: 5, end: 13 };
        let command = Particulars { subject: "git push", command: Some("ls; git push"), span: Some(span), allowed: "" };
        let denial =
            |language| Denial::new(ReasonCode::ProgramNetwork, "shell", language, Limits::Review, &command).render();
        assert_eq!(
            denial(Language::En),
            "Refused: shell `ls; git push`.\n\
             In review mode only reading and running the project's tests are allowed.\n\
             Why: `git push` reaches the network.\n\
             Instead: Work with what is on this machine."
        );
        assert_eq!(
            denial(Language::Zh),
            "已拒绝：shell `ls; git push`。\n评审模式下只允许阅读和运行项目的测试。\n\
             原因：`git push` 会访问网络。\n建议：请使用本机已有的内容。"
        );
    }

    #[test]
    fn what_is_quoted_is_cut_between_characters_and_cannot_act_on_a_terminal() {
        assert_eq!(cut(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(cut(&"é".repeat(201)), "é".repeat(200) + "…");
        assert_eq!(cut("a\nb\u{1b}[2Jc\u{202e}d"), "a b\u{fffd}[2Jc\u{fffd}d");
        let subject = Particulars { subject: "{allowed}", allowed: "{subject}", ..Particulars::default() };
        let denial = Denial::new(GateCode::MayBeDenied, "shell", Language::En, Limits::Permissions, &subject);
        assert!(denial.reason.starts_with("`{allowed}` is known only"), "{}", denial.reason);
        assert!(denial.reason.ends_with("what the rule `{subject}` forbids"), "{}", denial.reason);
    }
}
