//! Paths as gates compare them: where a path leads once `..`, `~` and symbolic links are resolved, and patterns over
//! that.
//!
//! A tool may read one path in more than one way (`~`, or `..` behind a symbolic link, which the kernel resolves and
//! many libraries cut out of the text). All ways are kept: what allows has to match every one, what denies any.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Where a path that a call names can lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// As it was written.
    pub(super) written: String,
    /// Every place that it may mean, symbolic links resolved. At least one.
    places: Vec<PathBuf>,
    /// The same without links resolved.
    unresolved: Vec<PathBuf>,
}

impl ResolvedPath {
    /// Resolves `written`, relative to `base`. `None` if it cannot be told where it leads.
    pub(super) fn new(written: &str, base: &Path) -> Option<Self> {
        if written.trim().is_empty() || written.contains('\0') {
            return None;
        }
        let mut readings = vec![base.join(written)];
        let plain = written.strip_prefix("file://").unwrap_or(written);
        if plain != written {
            readings.push(base.join(plain));
        }
        if plain.trim() != plain {
            readings.push(base.join(plain.trim()));
        }
        if let Some(rest) = plain.trim().strip_prefix('~') {
            // Whose home `~name` is cannot be told without asking the system.
            let rest = if rest.is_empty() { Some("") } else { rest.strip_prefix('/') };
            readings.push(Path::new(&env::var_os("HOME")?).join(rest?));
        }
        let mut resolved = ResolvedPath { written: written.to_owned(), places: Vec::new(), unresolved: Vec::new() };
        for reading in readings {
            let shortened = without_dots(&reading);
            for place in [physical(&reading)?, physical(&shortened)?] {
                push_new(&mut resolved.places, place);
            }
            push_new(&mut resolved.unresolved, shortened);
        }
        Some(resolved)
    }

    /// The place it leads to, if there is only one.
    pub(super) fn only_place(&self) -> Option<&Path> {
        match self.places.as_slice() {
            [place] => Some(place),
            _ => None,
        }
    }
}

fn push_new(list: &mut Vec<PathBuf>, path: PathBuf) {
    if !list.contains(&path) {
        list.push(path);
    }
}

/// The path without `.` and `..`, as text: links are not looked at.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Where the kernel gets to, which need not exist: links are followed, also those that lead to nothing. `None` for a
/// circle of links and for what cannot be looked at.
pub(super) fn physical(path: &Path) -> Option<PathBuf> {
    let mut pending: Vec<OsString> = components(path);
    let mut place = PathBuf::from("/");
    let mut links = 0;
    while let Some(component) = pending.pop() {
        if component == ".." {
            place.pop();
            continue;
        }
        place.push(&component);
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                let target = fs::read_link(&place).ok()?;
                place.pop();
                if target.is_absolute() {
                    place = PathBuf::from("/");
                }
                pending.extend(components(&target));
            }
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(_) => return None,
        }
    }
    Some(place)
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The components behind the root, the first one last.
fn components(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut named: Vec<OsString> = named.collect();
    named.reverse();
    named
}

/// A glob over paths: `src/**`, `/etc/*.conf`, `~/notes/*`.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    /// Where the glob begins: `None` for the working directory.
    root: Option<Root>,
    /// The fixed folders at the beginning of a relative glob, and the rest of it: for links that lead there.
    fixed: Option<(PathBuf, GlobMatcher)>,
    glob: GlobMatcher,
    anywhere: bool,
}

#[derive(Clone, Debug)]
struct Root {
    written: PathBuf,
    /// With the links that were there when the rule was made: a link that is put there later widens nothing.
    resolved: PathBuf,
}

impl PathPattern {
    /// Reads a pattern; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the path is empty".into());
        }
        if text.ends_with('/') {
            return Err(format!("a path that ends with / names no file; write {text}** for everything below it"));
        }
        let text = match text.strip_prefix('~') {
            None => text.to_owned(),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = env::var("HOME").map_err(|_| "~ stands for HOME, which is not set".to_owned())?;
                escape(home.trim_end_matches('/')) + rest
            }
            Some(_) => return Err("~name is not understood; write the whole path".into()),
        };
        let parts: Vec<&str> = text.split('/').collect();
        if parts.contains(&"..") {
            return Err("`..` in a path rule; write where it leads".into());
        }
        let fixed = parts.iter().take(parts.len() - 1).take_while(|part| !has_glob(part)).count();
        if !text.starts_with('/') {
            let text = parts.iter().filter(|part| **part != ".").copied().collect::<Vec<_>>().join("/");
            let folders: PathBuf = parts[..fixed].iter().filter(|part| **part != ".").collect();
            let rest = compile(&parts[fixed..].join("/"))?;
            let fixed = (fixed > 0).then_some((folders, rest));
            return Ok(PathPattern { root: None, fixed, glob: compile(&text)?, anywhere: text.starts_with("**/") });
        }
        let written: PathBuf = std::iter::once("/").chain(parts[..fixed].iter().map(|part| &**part)).collect();
        let resolved = physical(&written).ok_or_else(|| format!("{} cannot be looked at", written.display()))?;
        let glob = compile(&parts[fixed..].join("/"))?;
        Ok(PathPattern { root: Some(Root { written, resolved }), fixed: None, glob, anywhere: false })
    }

    /// Whether the path leads to nothing but what the pattern names, whichever way it is read.
    pub(super) fn covers(&self, path: &ResolvedPath, cwd: &Path) -> bool {
        let base = match &self.root {
            Some(root) => Some(root.resolved.clone()),
            None => physical(cwd),
        };
        base.is_some_and(|base| path.places.iter().all(|place| below(&base, place, &self.glob)))
    }

    /// Whether the path may lead to what the pattern names, in some way of reading it.
    pub(super) fn touches(&self, path: &ResolvedPath, cwd: &Path) -> bool {
        let mut roots: Vec<(PathBuf, &GlobMatcher)> = Vec::new();
        match &self.root {
            Some(root) => {
                roots.extend([(root.written.clone(), &self.glob), (root.resolved.clone(), &self.glob)]);
                roots.extend(physical(&root.written).map(|root| (root, &self.glob)));
            }
            None => {
                roots.push((cwd.to_owned(), &self.glob));
                roots.extend(physical(cwd).map(|cwd| (cwd, &self.glob)));
                if let Some((folders, rest)) = &self.fixed {
                    roots.extend(physical(&cwd.join(folders)).map(|root| (root, rest)));
                }
                if self.anywhere {
                    roots.push((PathBuf::from("/"), &self.glob));
                }
            }
        }
        let mut places = path.places.iter().chain(&path.unresolved);
        places.any(|place| roots.iter().any(|(root, glob)| below(root, place, glob)))
    }
}

fn below(base: &Path, place: &Path, glob: &GlobMatcher) -> bool {
    place.strip_prefix(base).is_ok_and(|rest| glob.is_match(rest))
}

fn has_glob(part: &str) -> bool {
    part.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// The pattern that matches exactly this path.
pub(super) fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        if has_glob(c.encode_utf8(&mut [0; 4])) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn compile(glob: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("not a glob: {}", error.kind()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn covers(pattern: &str, path: &str, cwd: &Path) -> bool {
        let pattern = PathPattern::parse(pattern).unwrap();
        ResolvedPath::new(path, cwd).is_some_and(|path| pattern.covers(&path, cwd))
    }

    fn touches(pattern: &str, path: &str, cwd: &Path) -> bool {
        let pattern = PathPattern::parse(pattern).unwrap();
        ResolvedPath::new(path, cwd).is_some_and(|path| pattern.touches(&path, cwd))
    }

    #[test]
    fn a_pattern_covers_what_is_below_the_working_directory() {
        let cwd = Path::new("/work/project");
        for (pattern, path, expected) in [
            ("src/**", "src/a.rs", true),
            ("src/**", "src/deep/a.rs", true),
            ("src/**", "./src//a.rs", true),
            ("src/**", "/work/project/src/a.rs", true),
            ("src/**", "src/../Cargo.toml", false),
            ("src/**", "src/../../project/src/a.rs", true),
            ("src/**", "../project2/src/a.rs", false),
            ("src/**", "srcs/a.rs", false),
            ("src/**", "SRC/a.rs", false),
            ("src/*.rs", "src/deep/a.rs", false),
            ("**", "a", true),
            ("**", "/etc/passwd", false),
            ("/etc/*", "/etc/passwd", true),
            ("/etc/*", "../../etc/passwd", true),
            ("a[[]1].txt", "a[1].txt", true),
            ("a\\[1\\].txt", "a[1].txt", true),
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/a.rs/b", false),
            ("src/**", "", false),
            ("src/**", "src/a\0", false),
            ("**", "~root/x", false),
            ("**", "~/x", false),
        ] {
            assert_eq!(covers(pattern, path, cwd), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn links_do_not_lead_out_of_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        fs::create_dir_all(cwd.join("src/deep")).unwrap();
        fs::create_dir(cwd.join("other")).unwrap();
        symlink("/etc", cwd.join("src/out")).unwrap();
        symlink("../other", cwd.join("src/in")).unwrap();
        symlink("../other/none", cwd.join("src/dangling")).unwrap();
        symlink("loop", cwd.join("src/loop")).unwrap();
        symlink("deep", cwd.join("src/near")).unwrap();
        symlink("src", cwd.join("link")).unwrap();
        for (path, expected) in [
            ("src/a", true),
            ("src/near/a", true),
            ("src/out/passwd", false),
            ("src/in/a", false),
            ("src/dangling", false),
            ("src/loop/a", false),
            // The kernel goes to `other/..`, a library that cuts the text stays in `src`.
            ("src/in/../a", false),
            ("link/a", true),
        ] {
            assert_eq!(covers("src/**", path, cwd), expected, "{path}");
        }
        // A rule does not follow a link that stands in its place.
        assert!(!covers("src/in/**", "src/in/a", cwd));
        assert!(touches("src/in/**", "src/in/a", cwd));
        assert!(touches("src/in/**", "other/a", cwd));
        assert!(touches("other/**", "src/in/a", cwd));
        assert!(touches("other/*", "src/dangling", cwd));
        assert!(touches("**/passwd", "src/out/passwd", cwd));
        assert!(touches("/etc/**", "src/out/passwd", cwd));
        assert!(!touches("other/**", "src/a", cwd));
    }

    #[test]
    fn a_link_that_comes_later_widens_no_rule() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap();
        let exact = PathPattern::parse(&escape(cwd.join("notes/a").to_str().unwrap())).unwrap();
        symlink("/etc", cwd.join("notes")).unwrap();
        let path = ResolvedPath::new("notes/a", &cwd).unwrap();
        assert!(!exact.covers(&path, &cwd));
    }

    #[test]
    fn bad_patterns_say_what_is_wrong() {
        for (pattern, message) in [
            ("", "the path is empty"),
            ("src/", "a path that ends with / names no file; write src/** for everything below it"),
            ("../x", "`..` in a path rule; write where it leads"),
            ("a/../x", "`..` in a path rule; write where it leads"),
            ("~root/x", "~name is not understood; write the whole path"),
        ] {
            assert_eq!(PathPattern::parse(pattern).unwrap_err(), message);
        }
        assert!(PathPattern::parse("a[").unwrap_err().starts_with("not a glob"));
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_path_covers_itself_and_no_other(name in "[^/\0]{1,12}", other in "[^/\0]{1,12}") {
            let cwd = Path::new("/nowhere/at all");
            proptest::prop_assume!(!matches!(name.as_str(), "." | "..") && name.trim() == name && !name.starts_with('~'));
            proptest::prop_assume!(!matches!(other.as_str(), "." | ".."));
            let pattern = escape(&format!("/nowhere/at all/{name}"));
            proptest::prop_assert!(covers(&pattern, &name, cwd));
            proptest::prop_assert!(other.trim() == name || !covers(&pattern, &other, cwd));
        }
    }
}
