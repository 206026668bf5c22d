//! The agent: the session that it goes on from, the format in which that is stored, the limits of a turn,
//! and the turn itself.

mod clock;
mod limits;
mod session;
pub mod transcript;
pub mod turn;

pub use clock::{Clock, FixedClock, SystemClock};
pub use limits::{LimitKind, LimitReached, Limits, TurnCounters};
pub use session::{LoadReport, Repair, Session, SessionError, SessionOptions};
