//! Teams: agent loops that live side by side and talk through mailboxes.
//!
//! The [`Office`] is the one owner of what a team shares: who is in it, their mail, the tasks, what was used. A
//! teammate's [`Life`] is a state machine without I/O, as its turns are; a driver carries out what it asks for. Between
//! a turn and the office stands the [`desk`]: it hands mail over between two rounds and carries out the calls of the
//! teammate's own tools.
//!
//! Mail and the journal are behind small traits ([`Bus`], [`Mail`], [`Journal`]): in one process a mailbox is a queue
//! and a waker, and the journal a session's file.

mod address;
mod budget;
mod bus;
mod desk;
mod envelope;
mod error;
mod history;
mod journal;
mod life;
mod mailbox;
mod member;
mod office;
mod progress;
mod questions;
mod render;
mod resume;
mod room;
mod routing;
mod shared;
mod status;
mod task;
mod tools;
mod view;

pub use self::address::{ALL, LEAD, check_name, folder_of};
pub use self::bus::{Bus, LocalBus, Mail};
pub use self::desk::MemberDesk;
pub use self::envelope::{Draft, Envelope, EnvelopeKind, Parcel};
pub use self::error::TeamError;
pub use self::history::delivered_in;
pub use self::journal::{Journal, JournalEntry, Memory, SessionJournal};
pub use self::life::{Life, LifeAnswer, LifeConfig, LifeEffect, LifeStep};
pub use self::mailbox::{Mailbox, Taken};
pub use self::member::{MemberLimits, NewMember, Totals};
pub use self::office::{Office, OfficeOptions, Receipt, TeamEvent, TeamLimits};
pub use self::status::{Ended, Outcome, Status};
pub use self::task::{Task, TaskList, TaskState};
pub use self::tools::{TEAM_TOOLS, team_tools};
pub use self::view::MemberView;
