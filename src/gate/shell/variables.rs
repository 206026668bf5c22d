//! What is known of the values of variables while a text is walked.

use std::collections::{BTreeSet, HashMap};

/// What a variable can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Exactly this.
    Text(String),
    /// A number in digits.
    Number(Number),
    /// The hash of an object, in hexadecimal digits, or nothing.
    Hash,
    /// The name of a file that a pattern found; it begins with the prefix, and not with a slash if that is empty.
    File(String),
    /// Anything that begins with the prefix.
    Anything(String),
    /// Nothing at all, or anything that begins with the prefix.
    Perhaps(String),
}

/// What else than digits a number can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number {
    /// It can have a minus before it.
    pub(super) negative: bool,
    /// It can be nothing at all: what should have printed it failed.
    pub(super) empty: bool,
}

impl Known {
    /// One digit or more.
    pub(super) const DIGITS: Known = Known::Number(Number { negative: false, empty: false });
    /// What arithmetic comes to.
    pub(super) const INTEGER: Known = Known::Number(Number { negative: true, empty: false });
    /// What a program counted, if it did.
    pub(super) const COUNT: Known = Known::Number(Number { negative: false, empty: true });

    /// Whatever it is.
    pub(super) fn anything() -> Known {
        Self::Anything(String::new())
    }

    /// Whether arithmetic can evaluate it without running code that stands in it.
    pub(super) fn is_number(&self) -> bool {
        self.number().is_some()
    }

    /// As a number, if it surely is one.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) if is_numeric(text) => {
                Some(Number { negative: text.starts_with('-'), empty: text.is_empty() })
            }
            _ => None,
        }
    }

    /// The value of a word that stands in the text as it is: quotes and patterns in it become something else.
    pub(super) fn of_word(raw: &str) -> Known {
        let plain = !raw.contains(['\'', '"', '\\', '*', '?', '[', '~', '{']);
        if plain { Self::Text(raw.to_owned()) } else { Self::anything() }
    }

    /// What it surely begins with, if it is not empty.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Self::Text(text) | Self::File(text) | Self::Anything(text) | Self::Perhaps(text) => text,
            Self::Number(_) | Self::Hash => "",
        }
    }

    /// What holds of both.
    pub(super) fn join(&self, other: &Known) -> Known {
        if self == other {
            return self.clone();
        }
        if let (Some(one), Some(two)) = (self.number(), other.number()) {
            return Self::Number(Number { negative: one.negative || two.negative, empty: one.empty || two.empty });
        }
        let is_empty = |known: &Known| matches!(known, Self::Text(text) if text.is_empty());
        match (self, other) {
            (Self::Hash, _) if is_empty(other) => Self::Hash,
            (_, Self::Hash) if is_empty(self) => Self::Hash,
            (Self::File(one), Self::File(two)) => Self::File(common(one, two).to_owned()),
            _ if is_empty(self) => Self::Perhaps(other.prefix().to_owned()),
            _ if is_empty(other) => Self::Perhaps(self.prefix().to_owned()),
            (Self::Perhaps(one), _) => Self::Perhaps(common(one, other.prefix()).to_owned()),
            (_, Self::Perhaps(two)) => Self::Perhaps(common(self.prefix(), two).to_owned()),
            _ => Self::Anything(common(self.prefix(), other.prefix()).to_owned()),
        }
    }
}

/// What two texts both begin with.
pub(super) fn common<'t>(one: &'t str, two: &str) -> &'t str {
    let same = one.char_indices().zip(two.chars()).take_while(|((_, a), b)| a == b).last();
    same.map_or("", |((at, character), _)| &one[..at + character.len_utf8()])
}

/// Whether text is a number in digits, perhaps with a sign.
pub(super) fn is_numeric(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    text.is_empty() || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether what a variable holds is not what it was set to.
fn has_a_will_of_its_own(name: &str) -> bool {
    is_set_by_the_shell(name)
        || matches!(
            name,
            "LINENO"
                | "RANDOM"
                | "SRANDOM"
                | "SECONDS"
                | "EPOCHSECONDS"
                | "EPOCHREALTIME"
                | "HISTCMD"
                | "OPTIND"
                | "COLUMNS"
                | "LINES"
                | "SHLVL"
        )
}

/// Whether the shell itself sets a variable, to something that a text can choose.
fn is_set_by_the_shell(name: &str) -> bool {
    matches!(
        name,
        "_" | "OPTARG"
            | "REPLY"
            | "FUNCNAME"
            | "DIRSTACK"
            | "MAPFILE"
            | "COPROC"
            | "PIPESTATUS"
            | "READLINE_LINE"
            | "READLINE_ARGUMENT"
            | "PWD"
            | "OLDPWD"
            | "COMPREPLY"
            | "GROUPS"
            | "SHELLOPTS"
            | "PS4"
    ) || name.starts_with("BASH")
        || name.starts_with("COMP_")
}

/// The variables that the text has set so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    known: HashMap<String, Known>,
    /// The arrays whose keys are text, not arithmetic.
    associative: BTreeSet<String>,
    /// What functions set: whenever one is called.
    unsteady: BTreeSet<String>,
    /// Whether `IFS` was set, so that words split elsewhere than at blanks.
    pub(super) splits_elsewhere: bool,
    /// Whether the shell is none of which it is known how it keeps values.
    pub(super) knows_nothing: bool,
    /// Within a function anything may have been set by whoever calls it.
    pub(super) anything_is_set: bool,
}

impl Variables {
    /// Of code that others run later, or elsewhere: anything may be set by then.
    pub(super) fn of_others(splits_elsewhere: bool) -> Self {
        Self { splits_elsewhere, anything_is_set: true, ..Self::default() }
    }

    /// Of code of the same text that runs later: anything may be set by then.
    pub(super) fn of_later(&self) -> Self {
        Self { knows_nothing: self.knows_nothing, ..Self::of_others(true) }
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: Known) {
        if name == "IFS" {
            self.splits_elsewhere = true;
        }
        self.known.insert(name.to_owned(), value);
    }

    /// Says that nothing is known of a variable from now on, whatever it is set to.
    pub(super) fn set_unsteady(&mut self, name: &str) {
        self.unsteady.insert(name.to_owned());
    }

    /// Says that the keys of an array are text, unless it may be an array of another kind already.
    pub(super) fn set_associative(&mut self, name: &str) {
        if !self.known.contains_key(name) && !self.unsteady.contains(name) {
            self.associative.insert(name.to_owned());
        }
    }

    /// Whether the keys of an array are surely text.
    pub(super) fn is_associative(&self, name: &str) -> bool {
        self.associative.contains(name) && !self.unsteady.contains(name)
    }

    /// A variable is gone, and what kind of array it was.
    pub(super) fn unset(&mut self, name: &str, value: Known) {
        self.associative.remove(name);
        self.set(name, value);
    }

    /// What is known of a variable; `None` if the text has not set it.
    pub(super) fn get(&self, name: &str) -> Option<Known> {
        match self.known.get(name) {
            _ if self.knows_nothing || self.unsteady.contains(name) => Some(Known::anything()),
            Some(_) if has_a_will_of_its_own(name) => Some(Known::anything()),
            Some(known) => Some(known.clone()),
            None if self.anything_is_set || is_set_by_the_shell(name) => Some(Known::anything()),
            None => None,
        }
    }

    /// What holds whether or not the code ran that led from `self` to `other`.
    pub(super) fn join(&mut self, other: &Variables) {
        self.splits_elsewhere |= other.splits_elsewhere;
        self.anything_is_set |= other.anything_is_set;
        self.knows_nothing |= other.knows_nothing;
        self.unsteady.extend(other.unsteady.iter().cloned());
        self.associative.retain(|name| other.associative.contains(name));
        // Not set on the other way: then it may be what the environment says, which is not the text's, or nothing.
        let or_unset = |known: &Known| match known.number() {
            Some(number) => Known::Number(Number { empty: true, ..number }),
            None => Known::anything(),
        };
        for (name, theirs) in &other.known {
            let joined = match self.known.get(name) {
                Some(ours) => ours.join(theirs),
                None => or_unset(theirs),
            };
            self.known.insert(name.clone(), joined);
        }
        for (name, ours) in &mut self.known {
            if !other.known.contains_key(name) {
                *ours = or_unset(ours);
            }
        }
    }

    /// A function was defined whose body sets what `inside` holds: from now on nothing is known of these.
    pub(super) fn may_be_set_by(&mut self, inside: &Variables) {
        self.splits_elsewhere |= inside.known.contains_key("IFS") || inside.unsteady.contains("IFS");
        self.unsteady.extend(inside.known.keys().chain(&inside.unsteady).cloned());
    }

    /// Whether any variable was set.
    pub(super) fn sets_anything(&self) -> bool {
        !self.known.is_empty() || !self.unsteady.is_empty()
    }

    /// Forgets all that is known of values, as if other code had run.
    pub(super) fn forget(&mut self) {
        for value in self.known.values_mut() {
            *value = Known::anything();
        }
    }
}

/// Variables that change what programs, the loader or the shell itself do.
pub(super) fn is_sensitive(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "LD_",
        "DYLD_",
        "GIT_",
        "BASH",
        "PYTHON",
        "PERL5",
        "PERL_",
        "RUBY",
        "NODE_",
        "NPM_",
        "npm_",
        "CARGO_",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTUP_",
        "RUST_",
        "JAVA_",
        "JDK_",
        "MAKE_",
        "LESS_",
        "LESSOPEN",
        "LESSCLOSE",
        "LESSKEY",
        "XDG_",
        "PROMPT_",
        "COMP_",
        "GREP_",
        "RIPGREP_",
        "TAR_",
        "SSH_",
        "LUA_",
        "PHP",
        "DOTNET_",
        "MAVEN_",
        "GRADLE_",
        "GNUPG",
        "OPENSSL_",
        "SSL_",
        "CURL_",
        "WGET",
        "GCC_",
        "PKG_",
        "TERMINFO",
        "PYTEST_",
        "TOX_",
        "UV_",
        "PIP_",
        "MALLOC_",
        "RES_",
        "GPG_",
        "AWK",
        "FZF_",
        "BAT_",
        "FD_",
        "JQ_",
        "GODEBUG",
        "GOFLAGS",
        "GOTOOL",
        "GOPROXY",
        "GOPATH",
        "GOROOT",
        "GOBIN",
        "GOENV",
        "GOWORK",
        "GOOS",
        "GOARCH",
        "GOEXPERIMENT",
        "GOCACHE",
        "GOMOD",
        "GOTMPDIR",
    ];
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "CDPATH",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "TMPDIR",
        "FIGNORE",
        "ENV",
        "GLOBIGNORE",
        "EXECIGNORE",
        "POSIXLY_CORRECT",
        "TMOUT",
        "OPTIND",
        "CC",
        "CXX",
        "CPP",
        "LINKER",
        "AR",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "FCEDIT",
        "INPUTRC",
        "TZDIR",
        "SUDO_ASKPASS",
        "MAIL",
        "MAILPATH",
        "MAILCHECK",
        "UID",
        "EUID",
        "PPID",
        "GROUPS",
        "auto_resume",
        "histchars",
        "FUNCNEST",
        "MORE",
        "SYSTEMD_PAGER",
        "SHELL",
        "SHELLOPTS",
        "PS0",
        "PS1",
        "PS2",
        "PS3",
        "PS4",
        "LESS",
        "MAN",
        "MANPATH",
        "MANPAGER",
        "MANOPT",
        "MANROFFOPT",
        "HISTFILE",
        "HISTCONTROL",
        "HISTIGNORE",
        "HISTSIZE",
        "HISTFILESIZE",
        "HISTTIMEFORMAT",
        "MAKE",
        "MAKEFLAGS",
        "MAKEFILES",
        "MAKEOVERRIDES",
        "MFLAGS",
        "CARGO",
        "TERM",
        "TERMCAP",
        "DISPLAY",
        "CLASSPATH",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "CPATH",
        "LIBRARY_PATH",
        "GZIP",
        "ZIPOPT",
        "UNZIP",
        "ZIPINFO",
        "LOCPATH",
        "NLSPATH",
        "GCONV_PATH",
        "HOSTALIASES",
        "TEXTDOMAINDIR",
        "VIMINIT",
        "EXINIT",
        "VIM",
        "EMACSLOADPATH",
        "DELTA_PAGER",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_of_both_ways() {
        let text = |text: &str| Known::Text(text.to_owned());
        assert_eq!(text("src/a").join(&text("src/b")), Known::Anything("src/".to_owned()));
        assert_eq!(text("0").join(&Known::DIGITS), Known::DIGITS);
        assert_eq!(text("-1").join(&Known::DIGITS), Known::INTEGER);
        assert_eq!(text("").join(&Known::DIGITS), Known::COUNT);
        assert_eq!(text("a").join(&Known::DIGITS), Known::anything());
        assert_eq!(text("").join(&text("/a")), Known::Perhaps("/a".to_owned()));
        assert_eq!(Known::Perhaps("/".into()).join(&text("/a")), Known::Perhaps("/".to_owned()));
        assert_eq!(Known::File("x/".into()).join(&Known::File("x/y".into())), Known::File("x/".into()));
        let mut before = Variables::default();
        before.set("x", text("src/a"));
        let mut after = before.clone();
        after.set("x", text("src/b"));
        after.set("y", text("new"));
        after.set("n", text("1"));
        before.join(&after);
        assert_eq!(before.get("x"), Some(Known::Anything("src/".to_owned())));
        assert_eq!(before.get("y"), Some(Known::anything()));
        assert_eq!(before.get("n"), Some(Known::COUNT));
    }
}
