//! The agent: the session that it goes on from, and the format in which that is stored.

mod clock;
mod session;
pub mod transcript;

pub use clock::{Clock, FixedClock, SystemClock};
pub use session::{LoadReport, Repair, Session, SessionError, SessionOptions};
