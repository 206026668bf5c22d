//! The agent: the session that it goes on from, the format in which that is stored, and the limits of a turn.

mod clock;
mod limits;
mod session;
pub mod transcript;

pub use clock::{Clock, FixedClock, SystemClock};
pub use limits::{LimitKind, LimitReached, Limits, TurnCounters};
pub use session::{LoadReport, Repair, Session, SessionError, SessionOptions};
