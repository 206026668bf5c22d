//! Results that are longer than a model should read at once: shown capped, stored whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A result as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    /// The text, at most about `cap` bytes of it and a note.
    pub text: String,
    /// Where the whole is, if it was cut and saved.
    pub saved: Option<PathBuf>,
}

/// `text` with its middle left out if it has more than `cap` bytes, cut on character boundaries, with a line that says
/// how much is missing and, with a `folder`, the path of a file there that holds the whole.
///
/// The folder is made if it is missing; the file is readable by the user alone and named after its content, so that
/// the same result is stored once. If it cannot be written the note says so; the result is shown all the same.
///
/// ```
/// use hookwright::tool::workspace::capped;
/// let folder = tempfile::tempdir()?;
/// let text = "😀".repeat(100_000);
/// let shown = capped(&text, 1000, Some(folder.path()));
/// assert!(shown.text.starts_with("😀") && shown.text.ends_with("😀") && shown.text.len() < 1300);
/// assert_eq!(std::fs::read_to_string(shown.saved.unwrap())?, text);
/// assert_eq!(capped("short", 1000, Some(folder.path())).saved, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn capped(text: &str, cap: usize, folder: Option<&Path>) -> Capped {
    if text.len() <= cap {
        return Capped { text: text.to_owned(), saved: None };
    }
    let head = &text[..text.floor_char_boundary(cap - cap / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - cap / 2)..];
    let missing = text.len() - head.len() - tail.len();
    let (saved, place) = match folder.map(|folder| save(text.as_bytes(), folder)) {
        None => (None, String::new()),
        Some(Ok(path)) => {
            let place = format!("; the whole is in {}", path.display());
            (Some(path), place)
        }
        Some(Err(error)) => (None, format!("; the whole could not be saved: {error}")),
    };
    let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let text = format!("{head}{gap}[... {missing} of {} bytes left out{place} ...]\n{tail}", text.len());
    Capped { text, saved }
}

fn save(content: &[u8], folder: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{}.txt", &blake3::hash(content).to_hex().as_str()[..32]));
    if path.metadata().is_ok_and(|found| found.len() == content.len() as u64) {
        return Ok(path);
    }
    let mut file = tempfile::Builder::new().prefix(".saving-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(path)
}
