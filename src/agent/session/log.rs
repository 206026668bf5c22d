//! The transcript as a file that only grows.

use std::fs::File;
use std::io::{self, Write};

use crate::agent::transcript::{Entry, encode};

/// What the log needs of a file; a trait so that tests can let it fail in the middle of a line.
pub(super) trait LogFile {
    /// Writes `line` at the end: in one system call unless the system stops short.
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
    /// Cuts the file to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Appends whole lines. After an error the file ends where it ended before.
#[derive(Debug)]
pub(super) struct Log<F> {
    file: F,
    /// The length up to the end of the last whole line.
    length: u64,
    /// A part of a line may stand behind that, since cutting it off failed as well.
    torn: bool,
    line: Vec<u8>,
}

/// A line buffer larger than this is not kept for the next line.
const KEPT_BUFFER: usize = 64 * 1024;

impl<F: LogFile> Log<F> {
    /// A log that goes on behind the `length` bytes of `file`, which was opened for appending.
    pub(super) fn new(file: F, length: u64) -> Self {
        Log { file, length, torn: false, line: Vec::new() }
    }

    /// Appends the line of `entry`.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        if self.torn {
            self.file.cut(self.length)?;
            self.torn = false;
        }
        self.line.clear();
        encode(entry, &mut self.line)?;
        let appended = self.file.append(&self.line);
        match appended {
            Ok(()) => self.length += self.line.len() as u64,
            Err(_) => self.torn = self.file.cut(self.length).is_err(),
        }
        if self.line.capacity() > KEPT_BUFFER {
            self.line = Vec::new();
        }
        appended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::transcript::scan;
    use crate::message::Timestamp;

    /// A disk with room for `room` bytes, whose cut fails while `stuck`.
    struct SmallDisk {
        bytes: Vec<u8>,
        room: usize,
        stuck: bool,
    }

    impl LogFile for SmallDisk {
        fn append(&mut self, line: &[u8]) -> io::Result<()> {
            let fitting = line.len().min(self.room - self.bytes.len());
            self.bytes.extend_from_slice(&line[..fitting]);
            if fitting < line.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            if self.stuck {
                return Err(io::ErrorKind::Other.into());
            }
            self.bytes.truncate(length as usize);
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_loses_the_line_being_written_and_nothing_else() {
        let entry = |number| Entry::Reset { at: Timestamp::from_millis(number) };
        for stuck in [false, true] {
            let mut log = Log::new(SmallDisk { bytes: Vec::new(), room: 130, stuck }, 0);
            log.append(&entry(1)).unwrap();
            let error = log.append(&entry(2)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(scan(&log.file.bytes).entries, [entry(1)]);

            (log.file.room, log.file.stuck) = (1000, false);
            log.append(&entry(3)).unwrap();
            let scan = scan(&log.file.bytes);
            assert_eq!((scan.entries, scan.fault), (vec![entry(1), entry(3)], None), "stuck: {stuck}");
        }
    }
}
