//! Places in the network as gates compare them: the host of a URL, and patterns over hosts.
//!
//! Programs read odd URLs in different ways (`http://good.org\@evil.org/`), so a URL that is not plain allows nothing;
//! what denies looks at every host that it could mean.

use url::{Host, Url};

/// What a URL in a call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// As it was written.
    pub(super) written: String,
    /// The host, in lower case, in ASCII, without a trailing dot, if every program reads it so.
    pub(super) host: Option<String>,
    port: Option<u16>,
    possible: Vec<String>,
}

impl Place {
    /// Reads what a parameter holds.
    pub(super) fn new(written: &str) -> Self {
        let mut place = Place { written: written.to_owned(), host: None, port: None, possible: Vec::new() };
        let lower = written.to_ascii_lowercase();
        let has_scheme = lower.starts_with("http://") || lower.starts_with("https://");
        match Url::parse(written) {
            Ok(url) if has_scheme && is_plain(written) => {
                place.port = url.port_or_known_default();
                place.host = url.host().map(|host| host_text(&host));
            }
            _ => {}
        }
        // With a scheme, without one, with user and password, with a backslash for a slash, with blanks around.
        let trimmed = written.trim();
        for text in [trimmed.to_owned(), format!("https://{trimmed}"), trimmed.replace('\\', "/")] {
            if let Some(host) = Url::parse(&text).ok().and_then(|url| url.host().map(|host| host_text(&host))) {
                place.possible.push(host);
            }
        }
        let behind = trimmed.split_once("//").map_or(trimmed, |(_, rest)| rest);
        let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
        for part in authority.split(['@', '\\']) {
            if let Some(host) = host_of(part) {
                place.possible.push(host);
            }
        }
        place
    }
}

/// Whether every program finds the same host in it.
fn is_plain(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Letters of which older and newer rules make different names.
    let deviates = |c: char| matches!(c, 'ß' | 'ẞ' | 'ς' | '\u{200c}' | '\u{200d}');
    !url.contains('\\')
        && !url.chars().any(|c| c.is_control() || c.is_whitespace())
        && !rest.starts_with('/')
        && !authority.contains(['@', '%'])
        && !authority.chars().any(deviates)
}

fn host_text(host: &Host<&str>) -> String {
    let text = match host {
        Host::Domain(domain) => domain.to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => address.to_string(),
        },
    };
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}

fn host_of(text: &str) -> Option<String> {
    Url::parse(&format!("https://{text}")).ok()?.host().map(|host| host_text(&host))
}

/// A pattern over hosts: `example.org` is that host, `*.example.org` is every host below it, `example.org:8443` is
/// that host at that port alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacePattern {
    host: String,
    below: bool,
    port: Option<u16>,
}

impl PlacePattern {
    /// Reads a pattern; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let wrong = |why: &str| Err(format!("{text:?} is no domain: {why}; write example.org or *.example.org"));
        if name.is_empty() {
            return wrong("it is empty");
        }
        if name.contains("://") || name.contains(['/', '?', '#']) {
            return wrong("a domain is no URL");
        }
        if name.contains(['@', '\\', '%', '*']) || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return wrong("a character that no domain has");
        }
        let Ok(url) = Url::parse(&format!("https://{name}/")) else { return wrong("it cannot be read") };
        let Some(host) = url.host() else { return wrong("it has no host") };
        if below && !matches!(host, Host::Domain(_)) {
            return wrong("an address has nothing below it");
        }
        // The default port of the scheme is not told from no port at all.
        let port = if url.port().is_none() && name.ends_with(":443") { Some(443) } else { url.port() };
        Ok(PlacePattern { host: host_text(&host), below, port })
    }

    fn matches(&self, host: &str) -> bool {
        if self.below {
            host.strip_suffix(&self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.host
        }
    }

    /// Whether the place is what the pattern names and cannot be read otherwise.
    pub(super) fn covers(&self, place: &Place) -> bool {
        place.host.as_deref().is_some_and(|host| self.matches(host)) && (self.port.is_none() || self.port == place.port)
    }

    /// Whether the place may be what the pattern names.
    pub(super) fn touches(&self, place: &Place) -> bool {
        let port = self.port.is_none() || place.port.is_none() || self.port == place.port;
        port && place.host.iter().chain(&place.possible).any(|host| self.matches(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_itself_is_covered() {
        let pattern = PlacePattern::parse("Example.org").unwrap();
        for (url, covered, touched) in [
            ("https://example.org/a?b#c", true, true),
            ("http://EXAMPLE.org", true, true),
            ("https://example.org.", true, true),
            ("https://example.org:8443/", true, true),
            ("https://example.org.evil.net/", false, false),
            ("https://notexample.org/", false, false),
            ("https://www.example.org/", false, false),
            ("https://evil.net/example.org", false, false),
            ("https://evil.net/?u=https://example.org", false, false),
            ("https://example.org@evil.net/", false, true),
            ("https://example.org:80@evil.net/", false, true),
            ("https://evil.net@example.org/", false, true),
            ("https://example.org\\@evil.net/", false, true),
            ("https://evil.net\\@example.org/", false, true),
            ("https://evil.net#@example.org/", false, false),
            ("https:\\\\example.org/", false, true),
            ("https:///example.org/", false, true),
            (" https://example.org/", false, true),
            ("https://exam\tple.org/", false, true),
            ("https://ex%61mple.org/", false, true),
            ("example.org/path", false, true),
            ("//example.org/path", false, true),
            ("ftp://example.org/", false, true),
            ("file:///etc/passwd", false, false),
            ("", false, false),
        ] {
            let place = Place::new(url);
            assert_eq!(pattern.covers(&place), covered, "{url}");
            assert_eq!(pattern.touches(&place), touched, "{url}");
        }
    }

    #[test]
    fn subdomains_ports_names_in_other_scripts_and_addresses() {
        for (pattern, url, covered) in [
            ("*.example.org", "https://www.example.org/", true),
            ("*.example.org", "https://a.b.example.org/", true),
            ("*.example.org", "https://example.org/", false),
            ("*.example.org", "https://evilexample.org/", false),
            ("example.org:8443", "https://example.org:8443/", true),
            ("example.org:8443", "https://example.org/", false),
            ("example.org:443", "https://example.org/", true),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("xn--bcher-kva.example", "https://BÜCHER.example/", true),
            ("faß.de", "https://faß.de/", false),
            ("127.0.0.1", "http://2130706433/", true),
            ("127.0.0.1", "http://0x7f.1/", true),
            ("127.0.0.1", "http://[::ffff:127.0.0.1]/", true),
            ("[::1]", "http://[0:0:0:0:0:0:0:1]:8080/", true),
            ("ехample.org", "https://example.org/", false),
        ] {
            assert_eq!(PlacePattern::parse(pattern).unwrap().covers(&Place::new(url)), covered, "{pattern} {url}");
        }
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for pattern in
            ["", "*.", "https://example.org", "example.org/x", "a b", "u@h", "*", "a.*.b", "*.127.0.0.1", "a\\b"]
        {
            let message = PlacePattern::parse(pattern).unwrap_err();
            assert!(message.contains("is no domain") && message.ends_with("*.example.org"), "{pattern}: {message}");
        }
    }
}
