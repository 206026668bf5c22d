//! When going on would only be more of the same.

use super::state::{Ended, Round};

/// How many runs may run out of time.
const TIMEOUTS: usize = 2;

/// Why the goal is blocked after the last of these rounds, if it is.
pub(super) fn tripped(rounds: &[Round]) -> Option<String> {
    let [before @ .., last] = rounds else { return None };
    let timeouts = rounds.iter().filter(|round| round.ended == Ended::Timeout).count();
    if last.ended == Ended::Timeout && timeouts >= TIMEOUTS {
        return Some(format!("the executor ran out of time {timeouts} times"));
    }
    let previous = before.last()?;
    if let Some(error) = last.error.as_deref()
        && previous.error.as_deref().map(str::trim) == Some(error.trim())
        && last.ended != Ended::Timeout
    {
        return Some(format!("the same error came twice: {}", error.trim()));
    }
    (last.unchanged && previous.unchanged).then(|| "two rounds in a row left the workspace as it was".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ended: Ended, error: Option<&str>, unchanged: bool) -> Round {
        Round { ended, error: error.map(str::to_owned), unchanged, ..Round::default() }
    }

    #[test]
    fn the_same_error_blocks_when_it_comes_in_two_rounds_running() {
        let error = |text| round(Ended::Error, Some(text), false);
        let fine = round(Ended::Done, None, false);
        assert_eq!(tripped(&[error("a")]), None);
        assert_eq!(tripped(&[error("a"), error("b")]), None);
        assert_eq!(tripped(&[error("a"), fine.clone(), error("a")]), None);
        assert_eq!(tripped(&[fine, error("a"), error(" a\n")]).unwrap(), "the same error came twice: a");
    }

    #[test]
    fn a_workspace_left_alone_blocks_the_second_time_running() {
        let idle = round(Ended::Done, None, true);
        let busy = round(Ended::Done, None, false);
        assert_eq!(tripped(&[busy.clone(), idle.clone()]), None);
        assert_eq!(tripped(&[idle.clone(), busy.clone(), idle.clone()]), None);
        assert!(tripped(&[busy, idle.clone(), idle]).unwrap().contains("workspace"));
    }

    #[test]
    fn the_second_timeout_blocks_whatever_was_between() {
        let late = round(Ended::Timeout, Some("out of time"), false);
        let busy = round(Ended::Done, None, false);
        assert_eq!(tripped(&[late.clone(), busy.clone()]), None);
        assert!(tripped(&[late.clone(), busy, late]).unwrap().contains("2 times"));
    }
}
