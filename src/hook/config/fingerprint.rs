//! What a project's hooks consist of, as one hash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::definition::{HookAction, HookDefinition};
use super::discover::{PROJECT_FOLDER, Source};
use super::load::{FILE_NAMES, HOOKS_FOLDER, load_source};

/// Separates these hashes from all others; changed together with what is hashed.
const FILE_CONTEXT: &str = "hookwright 2026 trust: one file v1";
const PROJECT_CONTEXT: &str = "hookwright 2026 trust: one project v1";
/// How many files the hooks of a project may consist of.
const MAX_FILES: usize = 10_000;
/// How many bytes they may have together.
const MAX_BYTES: u64 = 512 << 20;
/// Folders in which a dotted module name is looked for, besides the project's own.
const MODULE_ROOTS: &[&str] = &["", "src", "python"];

/// The content of a project's hooks as a hash, and the files that it is made of.
///
/// Covered are the configuration file, the files of commands that it names, every file in the hook folders, and the files
/// of the project that a command names or a `callable` is defined in: content, the executable bit, and where a link points. What such a script
/// reads or imports is not covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of everything, in hexadecimal.
    pub hash: String,
    /// Each file, relative to the project, with its own hash, sorted.
    pub files: Vec<(PathBuf, String)>,
}

/// Takes the fingerprint of the project at `project`, the folder that holds `.hookwright/`.
///
/// # Errors
/// A covered file that cannot be read, more than 10,000 files, or more than 512 MiB: a project that cannot be
/// looked at as a whole cannot be trusted.
pub fn fingerprint(project: &Path) -> io::Result<Fingerprint> {
    let project = project.canonicalize()?;
    let mut covered = Covered { project: project.clone(), files: BTreeMap::new(), folders: BTreeSet::new(), bytes: 0 };
    let source = Source::project(&project);
    for name in FILE_NAMES {
        covered.add_if_there(&source.folder.join(name))?;
    }
    covered.add_folder(&source.folder.join(HOOKS_FOLDER))?;
    let loaded = load_source(&source);
    for commands in &loaded.commands {
        covered.add_if_there(&commands.path)?;
    }
    for definition in loaded.definitions {
        for path in named_files(&project, &definition) {
            covered.add(&path)?;
        }
    }
    let mut hasher = blake3::Hasher::new_derive_key(PROJECT_CONTEXT);
    for (path, hash) in &covered.files {
        update_with_length(&mut hasher, path.as_os_str().as_bytes());
        hasher.update(hash.as_bytes());
    }
    let files = covered.files.into_iter().map(|(path, hash)| (path, hash.to_hex().to_string())).collect();
    Ok(Fingerprint { hash: hasher.finalize().to_hex().to_string(), files })
}

/// Lengths go in as well, so that the end of one value cannot be read as the beginning of the next.
fn update_with_length(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
}

struct Covered {
    project: PathBuf,
    /// By path relative to the project.
    files: BTreeMap<PathBuf, blake3::Hash>,
    /// The real paths of folders that were walked, since links can lead in a circle.
    folders: BTreeSet<PathBuf>,
    bytes: u64,
}

impl Covered {
    fn add_if_there(&mut self, path: &Path) -> io::Result<()> {
        match fs::symlink_metadata(path) {
            Ok(_) => self.add(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(naming(path, error)),
        }
    }

    fn add(&mut self, path: &Path) -> io::Result<()> {
        let relative = path.strip_prefix(&self.project).unwrap_or(path).to_owned();
        if self.files.contains_key(&relative) {
            return Ok(());
        }
        if self.files.len() == MAX_FILES {
            return Err(io::Error::other(format!("the hooks of this project have more than {MAX_FILES} files")));
        }
        let hash = self.hash(path).map_err(|error| naming(path, error))?;
        self.files.insert(relative, hash);
        Ok(())
    }

    fn hash(&mut self, path: &Path) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_derive_key(FILE_CONTEXT);
        let link = match fs::symlink_metadata(path)?.is_symlink() {
            true => Some(fs::read_link(path)?),
            false => None,
        };
        hasher.update(&[u8::from(link.is_some())]);
        update_with_length(&mut hasher, link.map(PathBuf::into_os_string).unwrap_or_default().as_bytes());
        // From here on what the link leads to, which is what would run.
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                hasher.update(&[b'f', u8::from(metadata.permissions().mode() & 0o111 != 0)]);
                self.bytes += metadata.len();
                if self.bytes > MAX_BYTES {
                    return Err(io::Error::other(format!("the files of the hooks are larger than {MAX_BYTES} bytes")));
                }
                hasher.update_reader(fs::File::open(path)?)?;
            }
            Ok(metadata) if metadata.is_dir() => {
                hasher.update(b"d");
            }
            Ok(_) => {
                hasher.update(b"s");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                hasher.update(b"n");
            }
            Err(error) => return Err(error),
        }
        Ok(hasher.finalize())
    }

    /// Adds everything below `folder`, also hidden files and what links lead to.
    fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(naming(&folder, error)),
            };
            if !self.folders.insert(folder.canonicalize()?) {
                continue;
            }
            for entry in entries {
                let entry = entry?;
                let path = entry.path();
                let is_folder = fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir());
                if !is_folder || entry.file_type()?.is_symlink() {
                    self.add(&path)?;
                }
                if is_folder {
                    open.push(path);
                }
            }
        }
        Ok(())
    }
}

fn naming(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The files of the project that the hook names in its command, or in which its function is defined.
fn named_files(project: &Path, definition: &HookDefinition) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    match &definition.action {
        HookAction::Shell { command } => {
            let mut roots = vec![project.to_owned(), project.join(PROJECT_FOLDER)];
            roots.extend(definition.source.folder.clone());
            // A folder that the command goes to first, as in `cd tools && ./check.sh`.
            let inside = words(command).into_iter().filter_map(|word| inside(project, &project.join(word)));
            roots.extend(inside.filter(|path| path.is_dir()).collect::<Vec<_>>());
            for word in words(command) {
                for root in &roots {
                    // A word such as $HOOKWRIGHT_CWD/check.sh is cut at the variable, and begins with a slash.
                    found.extend(file_in(project, &root.join(word.trim_start_matches('/'))));
                }
                found.extend(file_in(project, Path::new(word)).filter(|_| word.starts_with('/')));
                found.extend(module_files(project, word));
            }
        }
        HookAction::Llm { .. } => {}
        HookAction::Python { module, .. } => found.extend(module_files(project, module)),
    }
    found
}

/// `path`, if there is a regular file of the project, perhaps a link.
fn file_in(project: &Path, path: &Path) -> Option<PathBuf> {
    inside(project, path).filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file()))
}

/// `path` without dots and double slashes, if that is in the project.
fn inside(project: &Path, path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    if !plain.starts_with(project) {
        // The project under another name, through a link above it.
        plain = plain.parent()?.canonicalize().ok()?.join(plain.file_name()?);
    }
    plain.starts_with(project).then_some(plain)
}

/// The files of the project that importing `module`, or running it with `-m`, reads first.
fn module_files(project: &Path, module: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = module.split('.').collect();
    let is_name = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !parts.iter().all(is_name) {
        return Vec::new();
    }
    let mut files = Vec::new();
    for root in MODULE_ROOTS {
        let mut folder = project.join(root);
        for part in &parts {
            files.extend(file_in(project, &folder.join(format!("{part}.py"))));
            folder.push(part);
            files.extend(file_in(project, &folder.join("__init__.py")));
        }
        files.extend(file_in(project, &folder.join("__main__.py")));
    }
    files
}

/// The words of a shell command that could name a file, without quotes and what the shell splits at. A file that
/// output goes to is left out: it changes with each run.
fn words(command: &str) -> Vec<&str> {
    let is_break = |c: char| c.is_whitespace() || "\"'`;|&<>()=,:{}$".contains(c);
    let mut words = Vec::new();
    let mut after_redirect = false;
    for piece in command.split_inclusive(is_break) {
        let word = piece.trim_end_matches(is_break);
        if !word.is_empty() {
            if !after_redirect {
                words.push(word);
                words.extend(after_variable(word));
            }
            after_redirect = false;
        }
        after_redirect |= piece.ends_with('>');
    }
    words
}

/// What follows the name of a variable at the beginning of a word, as in `HOOKWRIGHT_CWD/check.sh`.
fn after_variable(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('/')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| &word[name.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_quotes_after_variables_and_between_operators() {
        assert_eq!(words("python3 './a b.py' && x=y.sh;z"), ["python3", "./a", "b.py", "x", "y.sh", "z"]);
        assert_eq!(words("\"$HOOKWRIGHT_CWD/check.sh\""), ["HOOKWRIGHT_CWD/check.sh", "/check.sh"]);
        assert_eq!(words("${DIR}/check.sh"), ["DIR", "/check.sh"]);
        assert_eq!(words("a.sh < in.txt >> log.txt 2> 'err.txt'; b.sh >out"), ["a.sh", "in.txt", "2", "b.sh"]);
        assert_eq!(words("  "), [] as [&str; 0]);
    }
}
