//! Counts, money and lengths of time as people read and write them.

use std::fmt;
use std::str::FromStr;

/// The longest timeout.
pub const TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// The longest wait of a task for its time.
const WAITING_MAX_MS: u64 = 100 * 365 * DAY_MS;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A length of time as people write it: `30s`, `5m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLength {
    #[error(
        "`{0}` is not a length of time: write a number of seconds such as `30`, or a number with a unit such as `500ms`, `30s`, `5m`, `1h`"
    )]
    Unreadable(String),
    #[error("{0} is longer than a day")]
    TooLong(Length),
    #[error("that is longer than a hundred years")]
    TooLongToWait,
    #[error("a length of time of 0 would end before it begins")]
    Zero,
}

impl Length {
    pub fn seconds(seconds: u64) -> Result<Length, BadLength> {
        Length { ms: seconds.saturating_mul(1_000) }.checked()
    }

    fn checked(self) -> Result<Length, BadLength> {
        match self.ms {
            0 => Err(BadLength::Zero),
            ms if ms > TIMEOUT_MAX_MS => Err(BadLength::TooLong(self)),
            _ => Ok(self),
        }
    }

    /// Reads a waiting time, which may be days: `3d`.
    pub fn of_waiting(text: &str) -> Result<Length, BadLength> {
        match Length::unchecked(text, Some(DAY_MS))? {
            Length { ms: 0 } => Err(BadLength::Zero),
            length if length.ms > WAITING_MAX_MS => Err(BadLength::TooLongToWait),
            length => Ok(length),
        }
    }

    /// Parses a number with a unit. A number without a unit is in seconds.
    ///
    /// `day_ms` is the length of the unit `d`, if that unit is allowed.
    fn unchecked(text: &str, day_ms: Option<u64>) -> Result<Length, BadLength> {
        let unreadable = || BadLength::Unreadable(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit_ms = match (unit.trim(), day_ms) {
            ("ms", _) => 1,
            ("s" | "", _) => 1_000,
            ("m", _) => 60_000,
            ("h", _) => 3_600_000,
            ("d", Some(day_ms)) => day_ms,
            _ => return Err(unreadable()),
        };
        let number: u64 = number.parse().map_err(|_| unreadable())?;
        Ok(Length { ms: number.saturating_mul(unit_ms) })
    }
}

impl FromStr for Length {
    type Err = BadLength;

    fn from_str(text: &str) -> Result<Length, BadLength> {
        Length::unchecked(text, None)?.checked()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ms {
            ms if ms % 3_600_000 == 0 => write!(f, "{}h", ms / 3_600_000),
            ms if ms % 60_000 == 0 => write!(f, "{}m", ms / 60_000),
            ms if ms % 1_000 == 0 => write!(f, "{}s", ms / 1_000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

/// Returns a count with its noun.
pub fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns the length of a list with its noun.
pub fn counted_items(count: usize, one: &str, many: &str) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), one, many)
}

/// A large number for people: `50M`, `1.5M`, `900k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactCount(pub u64);

impl fmt::Display for CompactCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..10_000 => return write!(f, "{}", self.0),
            10_000..1_000_000 => (1_000, "k"),
            _ => (1_000_000, "M"),
        };
        match self.0 % unit * 10 / unit {
            0 => write!(f, "{}{name}", self.0 / unit),
            tenths => write!(f, "{}.{tenths}{name}", self.0 / unit),
        }
    }
}

/// Money, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub u64);

/// A text that is no amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an amount of dollars: write a number that is 0 or more, such as `5` or `2.50`"
)]
pub struct BadAmount(String);

impl Dollars {
    /// Returns an amount that is neither negative, infinite nor NaN.
    pub fn new(amount: f64) -> Result<Dollars, BadAmount> {
        match amount.is_finite() && amount >= 0.0 {
            true => Ok(Dollars((amount * 1_000_000.0).round() as u64)),
            false => Err(BadAmount(amount.to_string())),
        }
    }
}

impl FromStr for Dollars {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Dollars, BadAmount> {
        let bad = || BadAmount(text.to_owned());
        Dollars::new(text.parse().map_err(|_| bad())?).map_err(|_| bad())
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Amounts below ten cents need more digits.
            1..100_000 => write!(f, "$0.{:04}", self.0 / 100),
            _ => write!(f, "${}.{:02}", self.0 / 1_000_000, self.0 % 1_000_000 / 10_000),
        }
    }
}

/// A cost of which a part may be unknown: agents do not report it, and no price applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostFigure {
    /// The known part, in millionths of a dollar.
    pub micros: u64,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u64,
}

impl CostFigure {
    /// Returns the known part, or `None` if nothing is known.
    pub fn known_micros(self) -> Option<u64> {
        (self.micros > 0 || self.unpriced_turns == 0).then_some(self.micros)
    }

    /// Returns the cost with its limit, or "cost unknown".
    pub fn of(self, limit_micros: u64) -> String {
        match self.known_micros() {
            Some(_) => format!("{self} of {}", Dollars(limit_micros)),
            None => "cost unknown".to_owned(),
        }
    }
}

impl fmt::Display for CostFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.known_micros(), self.unpriced_turns) {
            (None, _) => f.write_str("unknown"),
            (Some(micros), 0) => Dollars(micros).fmt(f),
            (Some(micros), _) => write!(f, "at least {}", Dollars(micros)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        let check = |text: &str, ms: u64, shown: &str| {
            let length: Length = text.parse().unwrap();
            assert_eq!((length.ms, length.to_string().as_str()), (ms, shown), "{text}");
        };
        check("500ms", 500, "500ms");
        check("30s", 30_000, "30s");
        check("90s", 90_000, "90s");
        check("5m", 300_000, "5m");
        check("1h", 3_600_000, "1h");
        check("2 m", 120_000, "2m");
        check("30", 30_000, "30s");
        check("5", 5_000, "5s");
        for bad in ["", "s", "5 minutes", "-1s", "1.5s", "1d", "99999999999999999999s"] {
            let error = bad.parse::<Length>().unwrap_err();
            assert!(matches!(error, BadLength::Unreadable(_)), "{bad}: {error}");
        }
        assert_eq!("0s".parse::<Length>(), Err(BadLength::Zero));
        assert_eq!(Length::of_waiting("3d"), Ok(Length { ms: 259_200_000 }));
        assert_eq!(Length::of_waiting("30h"), Ok(Length { ms: 108_000_000 }));
        assert_eq!(Length::of_waiting("90"), Ok(Length { ms: 90_000 }));
        assert_eq!(Length::of_waiting("3xd"), Err(BadLength::Unreadable("3xd".to_owned())));
        assert_eq!("0".parse::<Length>(), Err(BadLength::Zero));
        assert_eq!(Length::of_waiting("0d"), Err(BadLength::Zero));
        assert_eq!(Length::of_waiting("40000d"), Err(BadLength::TooLongToWait));
        assert!(matches!(Length::of_waiting("d"), Err(BadLength::Unreadable(_))));
        assert!(matches!("25h".parse::<Length>(), Err(BadLength::TooLong(_))));
        assert!(matches!(Length::seconds(60_000_000), Err(BadLength::TooLong(_))));
    }
}
