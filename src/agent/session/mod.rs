//! A session: the history of one conversation, in memory or in a directory.
//!
//! A directory holds `transcript.jsonl`, which only grows, and `session.json`; `docs/transcript-format.md` describes
//! both. What was appended survives the death of the process at any point; the file is not forced to the disk
//! (`fsync`) at each line, so the power of the machine is not part of the promise.

mod disk;
mod error;
mod id;
mod interrupted;
mod lock;
mod log;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use self::disk::{Disk, Metadata, Opened};
pub use self::error::SessionError;
use self::interrupted::{Cause, results_for_open_calls};
use self::state::State;
use super::clock::{Clock, SystemClock};
use super::transcript::{Awaited, Entry, VERSION};
use crate::message::{History, Message, Timestamp};

/// How a turn that the process did not live to end is recorded.
const INTERRUPTED: &str = "interrupted";

/// What a session is made or opened with. Everything may be left at its default.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// The id; a new session without one gets a random one that sorts by time. Opening checks it.
    pub id: Option<String>,
    /// The name of the agent that the session belongs to.
    pub agent: Option<String>,
    /// The directory in which hooks and tools run; by default the process's at the time of creation.
    pub cwd: Option<PathBuf>,
    /// Where timestamps come from; by default the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// When a transcript is damaged in the middle: save the file beside itself and go on from the line before the
    /// damage, instead of refusing to open.
    pub recover: bool,
}

/// What was put in order when a session was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// A line that the process died in, or damage that was recovered from.
    pub repair: Option<Repair>,
    /// The calls that had no result, and got an `interrupted` one.
    pub interrupted_calls: Vec<String>,
    /// The turn that was going on when the process died. It counts as interrupted once the next one begins.
    pub interrupted_turn: Option<String>,
}

/// How a transcript was repaired. Nothing is lost: what is not in it any more is in a file beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// How many bytes the transcript lost.
    pub bytes_removed: u64,
    /// Where they are: the torn line, or after damage in the middle the whole file as it was.
    pub kept_as: PathBuf,
    /// The first line that is gone, from 1.
    pub line: usize,
    /// What was wrong with it.
    pub reason: String,
}

/// The history of one conversation, in memory or in a directory.
///
/// All methods take `&self`; a session can be shared between threads, and one turn at a time runs on it. Appending
/// costs the same for a short history and for a long one.
///
/// ```
/// use hookwright::agent::{Session, SessionOptions};
/// use hookwright::message::Message;
///
/// let session = Session::in_memory(SessionOptions::default());
/// let turn = session.begin_turn()?;
/// session.append(Message::user("hello"))?;
/// session.append(Message::assistant("good morning"))?;
/// session.end_turn(&turn, "success")?;
/// assert_eq!((turn.as_str(), session.history()[1].id.as_deref()), ("t1", Some("m2")));
/// # Ok::<(), hookwright::agent::SessionError>(())
/// ```
///
/// A process that was forked shares the open file with its parent; there, a session in a directory refuses to
/// write ([`SessionError::OtherProcess`]).
#[derive(Debug)]
pub struct Session {
    metadata: Metadata,
    cwd: PathBuf,
    path: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    load_report: LoadReport,
    resumed: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    mode: Option<String>,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    Memory,
    Directory(Disk),
    Closed,
}

impl Session {
    /// A new session that lives as long as this value.
    pub fn in_memory(options: SessionOptions) -> Self {
        let (metadata, clock) = new_session(&options, None);
        Session::assemble(metadata, None, clock, Storage::Memory)
    }

    /// A new session in the directory `path`, which is made if need be.
    ///
    /// # Errors
    /// [`Exists`](SessionError::Exists) if there is one already, [`Locked`](SessionError::Locked), or what the file
    /// system reports.
    pub fn create(path: impl AsRef<Path>, options: SessionOptions) -> Result<Self, SessionError> {
        let (metadata, clock) = new_session(&options, None);
        Session::create_with(path.as_ref(), metadata, clock)
    }

    /// Opens the session in the directory `path`.
    ///
    /// A line that the process died in is cut off and saved beside the transcript, and tool calls without a result
    /// get one that says `interrupted`; [`load_report`](Session::load_report) tells. An `agent` or a `cwd` in
    /// `options` replaces the stored one.
    ///
    /// # Errors
    /// [`NotFound`](SessionError::NotFound), [`Locked`](SessionError::Locked),
    /// [`NewerVersion`](SessionError::NewerVersion), [`Damaged`](SessionError::Damaged) unless `recover` is set, and
    /// others; in all of these nothing is changed.
    pub fn open(path: impl AsRef<Path>, options: SessionOptions) -> Result<Self, SessionError> {
        let path = path.as_ref();
        let Opened { disk, mut metadata, entries, repair } = Disk::open(path, options.recover, options.id.as_deref())?;
        let given = (options.agent, options.cwd.as_deref().map(text_of));
        let stored = (metadata.agent.take(), metadata.cwd.take());
        metadata.agent = given.0.or_else(|| stored.0.clone());
        metadata.cwd = given.1.or_else(|| stored.1.clone());
        if (&metadata.agent, &metadata.cwd) != (&stored.0, &stored.1) {
            disk.save_metadata(&metadata)?;
        }
        let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let mut session = Session::assemble(metadata, Some(path), clock, Storage::Directory(disk));
        session.load(entries, repair)?;
        session.resumed = true;
        Ok(session)
    }

    /// Opens the session in the directory `path`, or creates it if there is none.
    ///
    /// # Errors
    /// Those of [`open`](Session::open) and [`create`](Session::create).
    pub fn open_or_create(path: impl AsRef<Path>, options: SessionOptions) -> Result<Self, SessionError> {
        match Session::open(&path, options.clone()) {
            Err(SessionError::NotFound { .. }) => match Session::create(&path, options.clone()) {
                // Another process was quicker.
                Err(SessionError::Exists { .. }) => Session::open(&path, options),
                created => created,
            },
            opened => opened,
        }
    }

    /// A new session that begins with this one's history; in the directory `path`, or in memory.
    ///
    /// Agent, cwd and clock are this session's unless `options` says otherwise. The messages keep their ids. Calls
    /// that have no result yet get one in the fork, so that its history is complete.
    ///
    /// # Errors
    /// Those of [`create`](Session::create).
    pub fn fork(&self, path: Option<&Path>, options: SessionOptions) -> Result<Self, SessionError> {
        let options = SessionOptions {
            agent: options.agent.or_else(|| self.metadata.agent.clone()),
            cwd: options.cwd.or_else(|| Some(self.cwd.clone())),
            clock: options.clock.or_else(|| Some(Arc::clone(&self.clock))),
            ..options
        };
        let history = self.history();
        let (mut metadata, clock) = new_session(&options, Some(self.id()));
        metadata.mode = self.mode();
        let fork = match path {
            Some(path) => Session::create_with(path, metadata, clock)?,
            None => Session::assemble(metadata, None, clock, Storage::Memory),
        };
        let mut inner = fork.lock();
        for message in history.iter() {
            inner.record(&fork, Entry::Message { message: Arc::clone(message) })?;
        }
        // Shares the block of messages with this session, instead of the copy made just now.
        inner.state.history = history;
        if let Some((covered, messages)) = self.compacted() {
            let messages = messages.iter().cloned().collect();
            inner.record(&fork, Entry::Compacted { covered, messages, at: fork.clock.now() })?;
        }
        for result in results_for_open_calls(&inner.state.history, Cause::Fork) {
            inner.append(&fork, result)?;
        }
        drop(inner);
        Ok(fork)
    }

    /// Adds `message` to the history, and to the file before that. It gets the next id (`m1`, `m2`, …) and the
    /// clock's time unless it has its own.
    ///
    /// # Errors
    /// What the file system reports, [`Closed`](SessionError::Closed) or
    /// [`OtherProcess`](SessionError::OtherProcess); the message is then in neither.
    pub fn append(&self, message: Message) -> Result<Arc<Message>, SessionError> {
        self.lock().append(self, message)
    }

    /// The messages so far. Costs nothing: the messages are shared, and later ones are not seen by it.
    pub fn history(&self) -> History {
        self.lock().state.history.clone()
    }

    /// Begins a turn and names it: `t1`, `t2`, … A turn that an earlier process did not end is recorded as
    /// `interrupted` first.
    ///
    /// # Errors
    /// [`InTurn`](SessionError::InTurn) if one is going on, and those of [`append`](Session::append).
    pub fn begin_turn(&self) -> Result<String, SessionError> {
        let mut inner = self.lock();
        inner.check_idle(self)?;
        inner.end_interrupted_turn(self)?;
        let turn_id = inner.state.next_turn_id();
        inner.record(self, Entry::TurnStart { turn_id: turn_id.clone(), at: self.clock.now() })?;
        Ok(turn_id)
    }

    /// Ends the turn `turn_id` with a status such as `success`, `stopped`, `cancelled`, `error` or `limit`.
    ///
    /// If the file cannot be written, the turn has ended in memory all the same, so that the session can go on.
    ///
    /// # Errors
    /// [`NotInTurn`](SessionError::NotInTurn) if it is not the one that is going on, and those of
    /// [`append`](Session::append).
    pub fn end_turn(&self, turn_id: &str, status: &str) -> Result<(), SessionError> {
        let mut inner = self.lock();
        if inner.state.open_turn.as_deref() != Some(turn_id) {
            return Err(SessionError::NotInTurn { turn_id: turn_id.to_owned(), open: inner.state.open_turn.clone() });
        }
        let recorded = inner.record(self, self.turn_end(turn_id.to_owned(), status));
        inner.state.open_turn = None;
        recorded
    }

    /// Records that the tool of `call_id` is about to run. To be written before it does: a call that a later
    /// process finds started and without a result was in flight, and is not run again.
    ///
    /// # Errors
    /// Those of [`append`](Session::append).
    pub fn call_started(&self, call_id: &str) -> Result<(), SessionError> {
        self.lock().record(self, Entry::CallStarted { call_id: call_id.to_owned(), at: self.clock.now() })
    }

    /// Writes an entry of somebody else's kind, which means nothing to the session.
    ///
    /// # Errors
    /// Those of [`append`](Session::append).
    pub fn note(&self, note: Map<String, Value>) -> Result<(), SessionError> {
        let mut inner = self.lock();
        inner.record(self, Entry::Other(note))?;
        inner.state.notes.clear();
        Ok(())
    }

    /// The entries of other kinds that were there when the session was opened, once, before any is written.
    pub fn take_notes(&self) -> Vec<Map<String, Value>> {
        std::mem::take(&mut self.lock().state.notes)
    }

    /// The calls that wait for a person's decision, in the order in which they were asked about.
    pub fn awaiting(&self) -> Vec<Awaited> {
        self.lock().state.awaiting.clone()
    }

    /// Records that a call waits for a person's decision. It stops waiting when it has a result.
    ///
    /// # Errors
    /// Those of [`append`](Session::append).
    pub fn await_decision(
        &self,
        call_id: &str,
        reason: String,
        suggested_rule: Option<String>,
    ) -> Result<(), SessionError> {
        let at = self.clock.now();
        let awaited = Awaited { call_id: call_id.to_owned(), reason, suggested_rule, at };
        self.lock().record(self, Entry::Awaiting(awaited))
    }

    /// What is sent to the model in the place of the first messages of the history, where older ones were summarised, and
    /// of how many.
    pub fn compacted(&self) -> Option<(usize, History)> {
        self.lock().state.compacted.clone()
    }

    /// Records what is sent in the place of the first `covered` messages from now on. The history stays as it is.
    ///
    /// # Errors
    /// Those of [`append`](Session::append).
    pub fn compact(&self, covered: usize, messages: History) -> Result<(), SessionError> {
        let messages = messages.iter().cloned().collect();
        self.lock().record(self, Entry::Compacted { covered, messages, at: self.clock.now() })
    }

    /// Empties the history. The file keeps what was; ids go on counting.
    ///
    /// # Errors
    /// [`InTurn`](SessionError::InTurn) while a turn is going on, and those of [`append`](Session::append).
    pub fn reset(&self) -> Result<(), SessionError> {
        let mut inner = self.lock();
        inner.check_idle(self)?;
        inner.end_interrupted_turn(self)?;
        inner.record(self, Entry::Reset { at: self.clock.now() })
    }

    /// Gives the directory free for others. The history can still be read; nothing can be added. Closing twice is
    /// fine, and dropping the session closes it as well.
    pub fn close(&self) {
        self.lock().storage = Storage::Closed;
    }

    /// Whether it was there before and was opened again.
    pub fn was_resumed(&self) -> bool {
        self.resumed
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.metadata.id
    }

    /// The directory; `None` for a session in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// When it was created.
    pub fn created(&self) -> Timestamp {
        self.metadata.created
    }

    /// The name of the agent that it belongs to.
    pub fn agent(&self) -> Option<&str> {
        self.metadata.agent.as_deref()
    }

    /// The directory in which hooks and tools run.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The id of the session that this one was forked from.
    pub fn forked_from(&self) -> Option<&str> {
        self.metadata.forked_from.as_deref()
    }

    /// The mode that gates go by, such as `review`; `None` for a session in none.
    pub fn mode(&self) -> Option<String> {
        self.lock().mode.clone()
    }

    /// Sets the mode. It holds from the next tool call on, also in a turn that is going on, and is kept with the
    /// session. Nothing that a model does sets it.
    ///
    /// # Errors
    /// What the file system reports, [`Closed`](SessionError::Closed) or
    /// [`OtherProcess`](SessionError::OtherProcess); the mode is then as before.
    pub fn set_mode(&self, mode: Option<String>) -> Result<(), SessionError> {
        let mut inner = self.lock();
        match &inner.storage {
            Storage::Memory => {}
            Storage::Directory(disk) => {
                disk.save_metadata(&Metadata { mode: mode.clone(), ..self.metadata.clone() })?;
            }
            Storage::Closed => return Err(SessionError::Closed { id: self.id().to_owned() }),
        }
        inner.mode = mode;
        Ok(())
    }

    /// How many turns were begun, also before a reset.
    pub fn turn_count(&self) -> u64 {
        self.lock().state.turns
    }

    /// The turn that is going on.
    pub fn open_turn(&self) -> Option<String> {
        self.lock().state.open_turn.clone()
    }

    /// What was put in order when the session was opened.
    pub fn load_report(&self) -> &LoadReport {
        &self.load_report
    }

    fn create_with(path: &Path, metadata: Metadata, clock: Arc<dyn Clock>) -> Result<Self, SessionError> {
        let disk = Disk::create(path, &metadata)?;
        Ok(Session::assemble(metadata, Some(path), clock, Storage::Directory(disk)))
    }

    fn assemble(metadata: Metadata, path: Option<&Path>, clock: Arc<dyn Clock>, storage: Storage) -> Self {
        Session {
            cwd: metadata.cwd.as_ref().map_or_else(current_directory, PathBuf::from),
            path: path.map(Path::to_owned),
            clock,
            load_report: LoadReport::default(),
            resumed: false,
            inner: Mutex::new(Inner { state: State::default(), mode: metadata.mode.clone(), storage }),
            metadata,
        }
    }

    /// Takes in what the file holds, and completes what its writer did not live to complete.
    fn load(&mut self, entries: Vec<Entry>, repair: Option<Repair>) -> Result<(), SessionError> {
        let mut inner = self.lock();
        for entry in entries {
            inner.state.apply(entry);
        }
        inner.state.interrupted_turn = inner.state.open_turn.take();
        let started = std::mem::take(&mut inner.state.started_calls);
        let mut interrupted_calls = Vec::new();
        for result in results_for_open_calls(&inner.state.history, Cause::ProcessEnded { started: &started }) {
            let id = result.tool_call_id.clone();
            if inner.state.awaiting.iter().any(|awaited| Some(&awaited.call_id) == id.as_ref()) {
                continue; // It was not running: it waits for a decision.
            }
            interrupted_calls.extend(id);
            inner.append(self, result)?;
        }
        let interrupted_turn = inner.state.interrupted_turn.clone();
        drop(inner);
        self.load_report = LoadReport { repair, interrupted_calls, interrupted_turn };
        Ok(())
    }

    /// A panic elsewhere while the lock was held cannot leave the state half changed: each entry is applied whole.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn_end(&self, turn_id: String, status: &str) -> Entry {
        Entry::TurnEnd { turn_id, status: status.to_owned(), at: self.clock.now() }
    }
}

impl Inner {
    fn append(&mut self, session: &Session, mut message: Message) -> Result<Arc<Message>, SessionError> {
        message.id.get_or_insert_with(|| self.state.next_message_id());
        message.timestamp.get_or_insert_with(|| session.clock.now());
        let message = Arc::new(message);
        self.record(session, Entry::Message { message: Arc::clone(&message) })?;
        Ok(message)
    }

    /// Writes `entry`, then takes it into the state.
    fn record(&mut self, session: &Session, entry: Entry) -> Result<(), SessionError> {
        match &mut self.storage {
            Storage::Memory => {}
            Storage::Directory(disk) => disk.append(&entry)?,
            Storage::Closed => return Err(SessionError::Closed { id: session.id().to_owned() }),
        }
        self.state.apply(entry);
        Ok(())
    }

    fn check_idle(&self, session: &Session) -> Result<(), SessionError> {
        match &self.state.open_turn {
            None => Ok(()),
            Some(turn_id) => Err(SessionError::InTurn { id: session.id().to_owned(), turn_id: turn_id.clone() }),
        }
    }

    fn end_interrupted_turn(&mut self, session: &Session) -> Result<(), SessionError> {
        let Some(turn_id) = self.state.interrupted_turn.clone() else { return Ok(()) };
        self.record(session, session.turn_end(turn_id, INTERRUPTED))?;
        self.state.interrupted_turn = None;
        Ok(())
    }
}

fn new_session(options: &SessionOptions, forked_from: Option<&str>) -> (Metadata, Arc<dyn Clock>) {
    let clock = options.clock.clone().unwrap_or_else(|| Arc::new(SystemClock));
    let created = clock.now();
    let metadata = Metadata {
        version: VERSION,
        id: options.id.clone().unwrap_or_else(|| id::new_session_id(created)),
        created,
        agent: options.agent.clone(),
        cwd: Some(text_of(&options.cwd.clone().unwrap_or_else(current_directory))),
        forked_from: forked_from.map(str::to_owned),
        mode: None,
        extra: Map::new(),
    };
    (metadata, clock)
}

/// `.` if the process's directory was removed under it.
fn current_directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// JSON cannot hold every path; a byte that is not UTF-8 becomes U+FFFD there.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
