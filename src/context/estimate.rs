//! An estimate of tokens without a tokenizer.

use std::sync::atomic::{AtomicU64, Ordering};

use super::TokenCounter;

/// How far the ratio may go either way: beyond that the numbers do not speak of the same text.
const BOUNDS: (f64, f64) = (0.4, 3.0);
/// How much of the way to a new observation the ratio goes.
const STEP: f64 = 0.3;
/// Requests below this many counted tokens say more about what servers add than about text.
const WORTH_LEARNING: usize = 50;

/// Estimates tokens by script, and learns from what servers report.
///
/// A character costs what it costs in the byte-pair vocabularies in use: Latin letters by word (a common word is one
/// token, a long one some), digits by three, Chinese, Japanese and Korean about one each, other alphabets about half,
/// punctuation by run, emoji two and more. [`learn`](TokenCounter::learn) then moves the
/// [`ratio`](TokenCounter::ratio): 30 % of the way to each observation, within 0.4 and 3.
///
/// ```
/// use hookwright::context::{EstimatedTokens, TokenCounter};
/// let counter = EstimatedTokens::default();
/// assert_eq!(counter.count_text("the quick brown fox"), 4);
/// assert_eq!(counter.count_text("敏捷的棕色狐狸"), 7);
/// counter.learn(1000, 1200);
/// assert!(counter.ratio() > 1.0 && counter.ratio() < 1.2);
/// ```
pub struct EstimatedTokens {
    /// The bits of an `f64`.
    ratio: AtomicU64,
}

impl Default for EstimatedTokens {
    fn default() -> Self {
        EstimatedTokens { ratio: AtomicU64::new(1f64.to_bits()) }
    }
}

impl TokenCounter for EstimatedTokens {
    fn count_text(&self, text: &str) -> usize {
        let mut hundredths = 0;
        let mut run = Run { kind: Kind::Space, length: 0, upper: false };
        for character in text.chars() {
            let kind = Kind::of(character);
            let upper = character.is_ascii_uppercase();
            // A word ends where the next one of a camelCase name begins.
            let new_word = kind == Kind::Latin && upper && !run.upper;
            if kind != run.kind || new_word {
                hundredths += run.cost();
                run = Run { kind, length: 0, upper };
            }
            run.upper = upper;
            run.length += 1;
        }
        hundredths += run.cost();
        hundredths.div_ceil(100)
    }

    fn ratio(&self) -> f64 {
        f64::from_bits(self.ratio.load(Ordering::Relaxed))
    }

    fn learn(&self, estimated: usize, actual: usize) {
        if estimated < WORTH_LEARNING || actual == 0 {
            return;
        }
        let seen = (actual as f64 / estimated as f64).clamp(BOUNDS.0, BOUNDS.1);
        let moved = |bits| Some((f64::from_bits(bits) * (1.0 - STEP) + seen * STEP).to_bits());
        // The closure always returns a value, so there is no failure to look at.
        let _ = self.ratio.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
    }
}

/// A stretch of characters of one kind.
struct Run {
    kind: Kind,
    length: usize,
    upper: bool,
}

impl Run {
    /// In hundredths of a token.
    fn cost(&self) -> usize {
        let length = self.length;
        match self.kind {
            Kind::Latin if length <= 7 => 100,
            Kind::Latin => length.div_ceil(5) * 100,
            Kind::Digit => length.div_ceil(3) * 100,
            Kind::Wide => length * 100,
            Kind::Alphabet => length * 50,
            Kind::Accented => length * 60,
            Kind::Punctuation => length.div_ceil(2) * 90,
            // One blank goes with the word behind it; indentation is a token by some columns.
            Kind::Space if length <= 1 => 0,
            Kind::Space => length.div_ceil(8) * 100,
            Kind::LineBreak => length.div_ceil(2) * 100,
            Kind::Rare => length * 220,
        }
    }
}

/// What a character is, as far as its cost goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Latin,
    Accented,
    Digit,
    Wide,
    Alphabet,
    Punctuation,
    Space,
    LineBreak,
    Rare,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Kind::Latin,
            '0'..='9' => Kind::Digit,
            '\n' | '\r' => Kind::LineBreak,
            ' ' | '\t' => Kind::Space,
            '!'..='~' => Kind::Punctuation,
            '\u{c0}'..='\u{24f}' => Kind::Accented,
            // Greek to Georgian and the scripts of South and South-East Asia.
            '\u{370}'..='\u{10ff}' | '\u{1200}'..='\u{1fff}' => Kind::Alphabet,
            // Kana, ideographs, Hangul, and their full-width signs.
            '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => Kind::Wide,
            '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' => Kind::Wide,
            _ => Kind::Rare,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_has_its_own_cost() {
        let counter = EstimatedTokens::default();
        for (text, least, most) in [
            ("", 0, 0),
            ("The test suite fails because the fixture is not closed.", 10, 16),
            ("def get_user_name(user_id: int) -> str:\n    return USERS[user_id].name\n", 20, 40),
            ("12345678901234567890", 6, 8),
            ("测试套件失败，因为夹具没有关闭。", 12, 20),
            ("Тесты падают, потому что", 8, 14),
            ("😀😀😀", 5, 9),
        ] {
            let count = counter.count_text(text);
            assert!((least..=most).contains(&count), "{text:?}: {count}");
        }
    }

    #[test]
    fn the_ratio_comes_near_to_what_servers_say_and_stays_bounded() {
        let counter = EstimatedTokens::default();
        (0..20).for_each(|_| counter.learn(1000, 1500));
        assert!((counter.ratio() - 1.5).abs() < 0.01, "{}", counter.ratio());
        (0..50).for_each(|_| counter.learn(1000, 1_000_000));
        assert!(counter.ratio() <= BOUNDS.1);
        (0..50).for_each(|_| counter.learn(1000, 1));
        assert!(counter.ratio() >= BOUNDS.0 - 0.001);
        let before = counter.ratio();
        counter.learn(0, 100);
        counter.learn(1000, 0);
        assert_eq!(counter.ratio(), before, "nothing was said");
    }
}
