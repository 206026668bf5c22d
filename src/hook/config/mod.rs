//! Configuration files: where they are, what they say, and everything that is wrong with them at once.
//!
//! [`discover()`] finds the folders, [`load_source`] reads one of them into [`HookDefinition`]s and [`Problem`]s.
//! A project's hooks are other people's commands: [`fingerprint()`] and [`trust`] say whether they may run.
//! Nothing here runs anything.

mod definition;
mod discover;
mod fingerprint;
mod gather;
mod load;
mod parse;
mod problem;
mod reader;
pub mod trust;
mod value;

pub use definition::{CommandsDefinition, HookAction, HookDefinition, Origin, RuleDefinition};
pub use discover::{ConfigEnv, Discovered, PROJECT_FOLDER, Source, discover};
pub use fingerprint::{Fingerprint, fingerprint};
pub use gather::{Configuration, Levels, Registered, gather};
pub use load::{Disabled, Loaded, load_file, load_source};
pub use problem::{ConfigError, Position, Problem};
