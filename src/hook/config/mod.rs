//! Configuration files: where they are, what they say, and everything that is wrong with them at once.
//!
//! [`discover()`] finds the folders, [`load_source`] reads one of them into [`HookDefinition`]s and [`Problem`]s.
//! Nothing here runs anything.

mod definition;
mod discover;
mod load;
mod parse;
mod problem;
mod reader;
mod value;

pub use definition::{HookAction, HookDefinition, Origin};
pub use discover::{ConfigEnv, Discovered, PROJECT_FOLDER, Source, discover};
pub use load::{Loaded, load_file, load_source};
pub use problem::{ConfigError, Position, Problem};
