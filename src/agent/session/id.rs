//! Ids of sessions: random, and sorted by the time of creation.

use crate::message::Timestamp;

/// Crockford's digits: no letter that reads like another.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A new id: 10 characters of time in milliseconds, then 16 of randomness (80 bits), in the layout of a ULID.
///
/// The randomness comes from the operating system, so that two forks of one process do not make the same id.
pub(super) fn new_session_id(created: Timestamp) -> String {
    let mut random = [0_u8; 16];
    if getrandom::fill(&mut random[6..]).is_err() {
        // No system randomness (a bare sandbox): seeded from time and thread, and told apart by the process.
        fastrand::fill(&mut random[6..12]);
        random[12..].copy_from_slice(&std::process::id().to_be_bytes());
    }
    let millis = u128::from(created.as_millis().max(0).unsigned_abs());
    encode((millis << 80) | u128::from_be_bytes(random))
}

fn encode(number: u128) -> String {
    (0..26).rev().map(|digit| char::from(DIGITS[(number >> (5 * digit)) as usize & 31])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_sort_by_time() {
        let [early, late] = [1_700_000_000_000, 1_700_000_000_001].map(Timestamp::from_millis);
        let ids: Vec<String> = [early, early, late].into_iter().map(new_session_id).collect();
        assert!(ids.iter().all(|id| id.len() == 26), "{ids:?}");
        assert_ne!(ids[0], ids[1]);
        assert!(ids[0] < ids[2] && ids[1] < ids[2], "{ids:?}");
        assert_eq!(ids[0][..10], *"01hf7yat00");
    }

    #[test]
    fn a_number_is_written_in_26_digits() {
        assert_eq!(encode(0), "0".repeat(26));
        assert_eq!(encode(33), format!("{}11", "0".repeat(24)));
        assert_eq!(encode(u128::MAX), format!("7{}", "z".repeat(25)));
    }
}
