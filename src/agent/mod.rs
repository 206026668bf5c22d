//! The agent: the session that it goes on from, the format in which that is stored, the limits of a turn,
//! the turn itself, and the goal that two agents reach in rounds.

mod clock;
pub mod goal;
mod limits;
mod session;
pub mod transcript;
pub mod turn;

pub use clock::{Clock, FixedClock, SystemClock};
pub use limits::{LimitKind, LimitReached, Limits, TurnCounters};
pub use session::{LoadReport, Repair, Session, SessionError, SessionOptions};
