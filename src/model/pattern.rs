//! Texts with gaps.

/// Whether `text` is `pieces` in order, with anything between them.
pub(super) fn fits(pieces: &[&str], text: &str) -> bool {
    let (Some((first, others)), last) = (pieces.split_first(), pieces.last().copied().unwrap_or_default()) else {
        return text.is_empty();
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some((_, between)) = others.split_last() else {
        return rest.is_empty();
    };
    for piece in between {
        let Some(found) = rest.find(piece) else {
            return false;
        };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(last)
}
