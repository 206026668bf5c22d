//! "Did you mean": the nearest name in a list, for error messages.

/// The candidate nearest to `name`, if one is near enough to be a plausible slip.
///
/// Jaro-Winkler similarity of at least 0.8, compared without case; ties go to the first candidate.
///
/// ```
/// use hookwright::suggest::did_you_mean;
/// assert_eq!(did_you_mean("toolname", ["tool_name", "order"]), Some("tool_name"));
/// assert_eq!(did_you_mean("zebra", ["tool_name", "order"]), None);
/// ```
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let score = strsim::jaro_winkler(&wanted, &candidate.to_lowercase());
        if score >= 0.8 && best.is_none_or(|(top, _)| score > top) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
