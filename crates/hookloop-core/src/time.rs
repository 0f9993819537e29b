//! Instants as milliseconds since 1970, the stored form.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String", extend("format" = "date-time"))]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the milliseconds from `earlier` to this instant, negative if `earlier` is later.
    pub fn millis_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the text of [`fmt::Display`] without zero seconds and milliseconds:
    /// `2026-12-01T08:00Z`.
    pub fn brief(self) -> String {
        let text = self.to_string();
        let text = text.strip_suffix(".000Z").map_or(text.as_str(), |text| text);
        let text = text.strip_suffix(":00").unwrap_or(text);
        format!("{}Z", text.trim_end_matches('Z'))
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC, always with milliseconds, so that the text sorts like the instant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Timestamp(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A day of the calendar in UTC, counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Day(pub i64);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

impl From<Timestamp> for Day {
    fn from(at: Timestamp) -> Day {
        Day(at.0.div_euclid(DAY_MS))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Timestamp(self.0.saturating_mul(DAY_MS)).to_string();
        f.write_str(start.split('T').next().unwrap_or_default())
    }
}

impl FromStr for Day {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let date: jiff::civil::Date = text.parse()?;
        Ok(format!("{date}T00:00:00Z").parse::<Timestamp>()?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_back() {
        let at: Timestamp = "2026-01-17T10:00:00Z".parse().unwrap();
        assert_eq!(at.to_string(), "2026-01-17T10:00:00.000Z");
        assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        for text in ["2026-01-17T10:00Z", "2026-01-17T10:00:01Z", "2026-01-17T10:00:00.250Z"] {
            assert_eq!(text.parse::<Timestamp>().unwrap().brief(), text);
        }
    }

    #[test]
    fn a_day_ends_at_midnight_utc() {
        let day = |text: &str| Day::from(text.parse::<Timestamp>().unwrap()).to_string();
        assert_eq!(day("2026-01-17T00:00:00Z"), "2026-01-17");
        assert_eq!(day("2026-01-17T23:59:59.999Z"), "2026-01-17");
        assert_eq!(day("2026-01-18T00:30:00+01:00"), "2026-01-17");
        assert_eq!("2026-01-17".parse::<Day>().unwrap().to_string(), "2026-01-17");
        assert!("yesterday".parse::<Day>().is_err());
    }
}
