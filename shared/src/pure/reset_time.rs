//! When a limit resets, read from a number or from a sentence.
//!
//! The sentences have changed with nearly every version, name a clock time
//! without a day, and mean it in a zone that is not always printed. Public tools
//! got each part of this wrong: a day too late east of UTC
//! (cheapestinference/claude-auto-retry#6), a reset that had just passed taken
//! for tomorrow's (#35, #44), a crash on `12:30` (#35), a dropped date
//! (link-assistant/hive-mind#1869), a missing zone read as UTC (bmad-loop#610).
//!
//! A sentence that cannot be read in full gives nothing, never a guess.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Span, Timestamp};

/// How long ago a clock time without a date may lie and still be meant as the
/// one that has just passed, not as tomorrow's.
///
/// An hour: sessions were seen to report a wall minutes after its reset, and the
/// windows that print a bare clock time are at most 24 hours away
/// (claude-auto-retry#44).
pub const JUST_PASSED_S: i64 = 3600;

/// A number above this is milliseconds: as seconds it would lie in the year 5138.
const SECONDS_MAX: i64 = 100_000_000_000;

/// An epoch time in seconds or milliseconds, as seconds.
pub fn from_number(number: i64) -> Option<i64> {
    let seconds = if number > SECONDS_MAX {
        number / 1000
    } else {
        number
    };
    (seconds > 0 && seconds <= SECONDS_MAX).then_some(seconds)
}

/// An RFC 3339 time as epoch milliseconds.
pub fn from_rfc3339(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Epoch seconds as RFC 3339 in UTC.
pub fn to_rfc3339(epoch_s: i64) -> Option<String> {
    Timestamp::from_second(epoch_s).ok().map(|time| time.to_string())
}

/// True for the name of a zone that is known here.
pub fn is_zone(name: &str) -> bool {
    named_zone(name).is_some()
}

/// The reset that `sentence` names, in epoch seconds.
///
/// `said_at_ms` is when the sentence was written. A clock time means its next
/// occurrence from then on in the printed zone, else in `zone` (an IANA name),
/// else in UTC; one that passed less than [`JUST_PASSED_S`] ago is meant itself.
pub fn from_sentence(sentence: &str, said_at_ms: i64, zone: Option<&str>) -> Option<i64> {
    // Bounded: an error text may quote a whole request.
    let sentence: String = sentence
        .chars()
        .take(2000)
        .collect::<String>()
        .to_ascii_lowercase();
    if let Some(epoch) = after_bar(&sentence) {
        return Some(epoch);
    }
    let clause = clause(&sentence)?;
    let (clause, printed) = split_zone(clause)?;
    let zone = match printed {
        Some(zone) => zone,
        None => zone.map_or(Some(TimeZone::UTC), named_zone)?,
    };
    let said_at = Timestamp::from_millisecond(said_at_ms).ok()?;
    When::parse(clause)?.instant(said_at, &zone)
}

/// `Claude AI usage limit reached|1753077600` (2025).
fn after_bar(sentence: &str) -> Option<i64> {
    let (_, rest) = sentence.split_once("limit reached|")?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .map_or(rest, |end| rest.split_at(end).0);
    from_number(digits.parse().ok()?)
}

/// What follows the word that announces the time.
fn clause(sentence: &str) -> Option<&str> {
    ["resets", "will reset", "regain access", "reset"]
        .iter()
        .find_map(|word| {
            let at = sentence.find(word)? + word.len();
            sentence.get(at..).map(str::trim_start)
        })
}

/// Splits a printed zone off. `None` when one is printed but not known.
fn split_zone(clause: &str) -> Option<(&str, Option<TimeZone>)> {
    if let Some((before, rest)) = clause.split_once('(') {
        let inside = rest.split_once(')')?.0.trim();
        // `(America/Los_Angeles)` is a zone, a bracket of several words is prose.
        let zone = if inside.contains(' ') {
            None
        } else {
            Some(named_zone(inside)?)
        };
        return Some((before, zone));
    }
    let utc = clause
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| matches!(word, "utc" | "gmt"));
    Some((clause, utc.then_some(TimeZone::UTC)))
}

fn named_zone(name: &str) -> Option<TimeZone> {
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "utc" | "gmt" | "z") {
        return Some(TimeZone::UTC);
    }
    if let Some(offset) = lower.strip_prefix("utc").or_else(|| lower.strip_prefix("gmt")) {
        return fixed_zone(offset);
    }
    TimeZone::get(name).ok()
}

/// `+5:30`, `-3`.
fn fixed_zone(offset: &str) -> Option<TimeZone> {
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-" | "\u{2212}", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let minutes = hours
        .parse::<i32>()
        .ok()?
        .checked_mul(60)?
        .checked_add(minutes.parse().ok()?)?;
    let seconds = minutes.checked_mul(60)?;
    Some(TimeZone::fixed(Offset::from_seconds(sign * seconds).ok()?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// A clock time alone.
    Unsaid,
    Tomorrow,
    Weekday(Weekday),
    /// Month and day, the year where it is printed.
    Date(i8, i8, Option<i16>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct When {
    day: Day,
    time: Time,
}

impl When {
    /// Reads `[day] [at] time`, in the order in which each is printed. Stops at
    /// the first word that belongs to neither.
    fn parse(clause: &str) -> Option<Self> {
        let (mut day, mut time) = (Day::Unsaid, None);
        let mut words = clause
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')'))
            .map(|word| word.trim_end_matches(['.', '!']))
            .filter(|word| !word.is_empty())
            .peekable();
        while let Some(word) = words.next() {
            if matches!(word, "at" | "on" | "today" | "the" | "next") {
                continue;
            }
            if word == "tomorrow" {
                day = Day::Tomorrow;
            } else if let Some(date) = iso_date(word) {
                day = date;
            } else if let Some(month) = month(word) {
                let number = words.next()?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let year = words.next_if(|word| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit()));
                day = Day::Date(
                    month,
                    number.parse().ok()?,
                    year.and_then(|year| year.parse().ok()),
                );
            } else if let Some(weekday) = weekday(word) {
                day = Day::Weekday(weekday);
            } else if time.is_none() {
                let half = words.next_if(|word| half_of_day(word).is_some());
                match clock(word, half) {
                    Some(found) => time = Some(found),
                    None => break,
                }
            } else {
                break;
            }
        }
        match (day, time) {
            // A date alone is its first moment.
            (Day::Date(..), None) => Some(Self {
                day,
                time: Time::midnight(),
            }),
            (_, time) => Some(Self { day, time: time? }),
        }
    }

    fn instant(self, said_at: Timestamp, zone: &TimeZone) -> Option<i64> {
        let today = zone.to_datetime(said_at).date();
        let said_at = said_at.as_second();
        if let Day::Date(month, day, year) = self.day {
            // The nearest one: December's wall may reset in January, and a
            // reset of an hour ago is not next year's.
            let years = year.map_or(today.year() - 1..=today.year() + 1, |year| year..=year);
            let dates = years.filter_map(|year| Date::new(year, month, day).ok());
            return dates
                .flat_map(|date| instants(date, self.time, zone))
                .min_by_key(|at| at.abs_diff(said_at));
        }
        let days = match self.day {
            Day::Weekday(_) => -7..=8,
            Day::Tomorrow => 1..=1,
            _ => -1..=2,
        };
        days.filter_map(|days| today.checked_add(Span::new().days(days)).ok())
            .filter(|date| !matches!(self.day, Day::Weekday(weekday) if date.weekday() != weekday))
            .flat_map(|date| instants(date, self.time, zone))
            .find(|&at| at > said_at - JUST_PASSED_S)
    }
}

/// The moments at which a zone's clocks show this time on this day: two when
/// they are set back over it; the moment after the gap when they jump over it.
fn instants(date: Date, time: Time, zone: &TimeZone) -> Vec<i64> {
    let shown = zone.to_ambiguous_timestamp(DateTime::from_parts(date, time));
    let is_gap = matches!(shown.offset(), AmbiguousOffset::Gap { .. });
    let mut instants: Vec<i64> = [shown.earlier(), shown.later()]
        .into_iter()
        .flatten()
        .map(Timestamp::as_second)
        .collect();
    if is_gap {
        instants.retain(|at| Some(at) == shown.compatible().ok().map(Timestamp::as_second).as_ref());
    }
    instants.dedup();
    instants
}

/// `3am`, `12:00am`, `3:00` with `pm` as the next word, `15:20`.
fn clock(word: &str, half: Option<&str>) -> Option<Time> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '.');
    let suffix = word.get(digits.len()..)?;
    let half = if suffix.is_empty() { half } else { Some(suffix) };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, minute.get(..2)?),
        // A bare number is no clock time.
        None if half.is_none() => return None,
        None => (digits, "0"),
    };
    let (hour, minute) = (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?);
    let hour = match half {
        None => hour,
        Some(half) => {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour % 12 + half_of_day(half)?
        }
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// The hour at which this half of the day begins.
fn half_of_day(word: &str) -> Option<i8> {
    match word {
        "am" | "a.m" | "a.m." => Some(0),
        "pm" | "p.m" | "p.m." => Some(12),
        _ => None,
    }
}

fn iso_date(word: &str) -> Option<Day> {
    let date: Date = (word.len() == 10).then(|| word.parse().ok())??;
    Some(Day::Date(date.month(), date.day(), Some(date.year())))
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let at = MONTHS.iter().position(|name| shortens(word, name))?;
    i8::try_from(at + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let at = DAYS.iter().position(|name| shortens(word, name))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

fn shortens(word: &str, name: &str) -> bool {
    word.len() >= 3 && name.starts_with(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `said` and the result are RFC 3339.
    fn read(sentence: &str, said: &str, zone: Option<&str>) -> Option<String> {
        from_sentence(sentence, from_rfc3339(said).unwrap(), zone).and_then(to_rfc3339)
    }

    #[track_caller]
    fn check(sentence: &str, said: &str, zone: Option<&str>, reset: &str) {
        assert_eq!(read(sentence, said, zone).as_deref(), Some(reset), "{sentence}");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn every_published_form_is_read() {
        let cases = [
            // anthropics/claude-code#4048, haskell-agent#1305
            (
                "Claude AI usage limit reached|1753077600",
                "2025-07-21T03:00:00Z",
                None,
                "2025-07-21T06:00:00Z",
            ),
            (
                "Claude AI usage limit reached|1753077600000",
                "2025-07-21T03:00:00Z",
                None,
                "2025-07-21T06:00:00Z",
            ),
            // CCAutoRenew#3
            (
                "Claude usage limit reached. Your limit will reset at 12am",
                "2025-07-21T20:00:00Z",
                None,
                "2025-07-22T00:00:00Z",
            ),
            (
                "Claude usage limit reached. Your limit will reset at 12pm (America/New_York).",
                "2025-07-21T14:00:00Z",
                None,
                "2025-07-21T16:00:00Z",
            ),
            // #6392
            (
                "5-hour limit reached ∙ resets 3am",
                "2025-08-23T07:00:00Z",
                Some("Europe/Berlin"),
                "2025-08-24T01:00:00Z",
            ),
            // #19472
            (
                "You've hit your limit · resets 8pm (America/Los_Angeles)",
                "2026-01-20T23:00:00Z",
                None,
                "2026-01-21T04:00:00Z",
            ),
            // #40485, #52334
            (
                "You've hit your limit · resets Oct 7, 4am (Europe/Berlin)",
                "2026-10-04T09:00:00Z",
                None,
                "2026-10-07T02:00:00Z",
            ),
            // #76151
            (
                "You've hit your session limit · resets 4:20am (Europe/Warsaw)",
                "2026-08-12T22:00:00Z",
                None,
                "2026-08-13T02:20:00Z",
            ),
            // 2.1.1xx to 2.1.263
            (
                "You've hit your weekly limit · resets Mon 12:00am",
                "2026-09-01T19:00:00Z",
                Some("America/Los_Angeles"),
                "2026-09-07T07:00:00Z",
            ),
            // #92834
            (
                "You've hit your weekly limit · resets Sep 15 at 7pm",
                "2026-09-08T20:00:00Z",
                Some("America/New_York"),
                "2026-09-15T23:00:00Z",
            ),
            (
                "You've hit your weekly limit · resets Aug 17, 4am (Asia/Tokyo)",
                "2026-08-12T00:00:00Z",
                None,
                "2026-08-16T19:00:00Z",
            ),
            // Measured, 2.1.332
            (
                "You've hit your weekly limit · resets Dec 3, 8:16pm (UTC)",
                "2026-11-30T20:16:55Z",
                None,
                "2026-12-03T20:16:00Z",
            ),
            // #26775
            (
                "You're out of extra usage · resets 11:30am (Asia/Colombo)",
                "2026-02-19T03:00:00Z",
                None,
                "2026-02-19T06:00:00Z",
            ),
            // #44173, with the narrow space that newer runtimes print
            (
                "extra usage spend limit ∙ Your limit resets at 3:00\u{202f}PM",
                "2026-03-01T12:00:00Z",
                Some("Asia/Kolkata"),
                "2026-03-02T09:30:00Z",
            ),
            // #1047
            (
                "You will regain access on 2025-06-01 at 00:00 UTC.\"}}",
                "2025-05-11T01:10:00Z",
                Some("Asia/Tokyo"),
                "2025-06-01T00:00:00Z",
            ),
            // Gateway, 2.1.225
            (
                "spend limit reached (daily; resets 2026-08-09 00:00 UTC)",
                "2026-08-08T11:00:00Z",
                None,
                "2026-08-09T00:00:00Z",
            ),
            // An explicit year (steipete/CodexBar#2038)
            (
                "Resets Jan 2, 2027, 10:59pm (Europe/Helsinki)",
                "2026-12-28T11:00:00Z",
                None,
                "2027-01-02T20:59:00Z",
            ),
            (
                "resets tomorrow at 3am (UTC)",
                "2026-08-08T11:00:00Z",
                None,
                "2026-08-09T03:00:00Z",
            ),
            (
                "resets 9pm (GMT+5:30)",
                "2026-08-08T11:00:00Z",
                None,
                "2026-08-08T15:30:00Z",
            ),
            (
                "resets 9pm (UTC-3)",
                "2026-08-08T11:00:00Z",
                None,
                "2026-08-09T00:00:00Z",
            ),
        ];
        for (sentence, said, zone, reset) in cases {
            check(sentence, said, zone, reset);
        }
    }

    #[test]
    fn a_clock_time_means_its_next_occurrence_in_the_printed_zone() {
        // claude-auto-retry#6: a day too late in Tokyo.
        check(
            "You've hit your limit · resets 8pm (Asia/Tokyo)",
            "2026-04-15T00:43:47Z",
            None,
            "2026-04-15T11:00:00Z",
        );
        // Already the next day in Brussels, still today in UTC.
        check(
            "resets 3:20am (Europe/Brussels)",
            "2026-08-12T22:40:00Z",
            None,
            "2026-08-13T01:20:00Z",
        );
        check(
            "resets 1am (Pacific/Auckland)",
            "2026-06-01T11:00:00Z",
            None,
            "2026-06-01T13:00:00Z",
        );
        check(
            "resets 6pm (Asia/Kathmandu)",
            "2026-06-01T11:00:00Z",
            None,
            "2026-06-01T12:15:00Z",
        );
    }

    #[test]
    fn a_just_passed_reset_is_not_tomorrows() {
        // claude-auto-retry#44: seen at 10:03.
        let sentence = "You've hit your session limit · resets 10am (Europe/Zurich)";
        check(sentence, "2026-07-10T08:03:00Z", None, "2026-07-10T08:00:00Z");
        check(sentence, "2026-07-10T08:00:00Z", None, "2026-07-10T08:00:00Z");
        check(sentence, "2026-07-10T08:59:59Z", None, "2026-07-10T08:00:00Z");
        check(sentence, "2026-07-10T09:00:00Z", None, "2026-07-11T08:00:00Z");
        // Across midnight, and with a weekday or a date.
        check(
            "resets 11:55pm (UTC)",
            "2026-07-11T00:10:00Z",
            None,
            "2026-07-10T23:55:00Z",
        );
        check(
            "resets Mon 12:00am (UTC)",
            "2026-09-07T00:05:00Z",
            None,
            "2026-09-07T00:00:00Z",
        );
        check(
            "resets Sep 15 at 7pm (UTC)",
            "2026-09-15T20:30:00Z",
            None,
            "2026-09-15T19:00:00Z",
        );
    }

    #[test]
    fn a_date_without_a_year_is_the_nearest_one() {
        check(
            "resets Jan 2, 4am (UTC)",
            "2026-12-30T10:00:00Z",
            None,
            "2027-01-02T04:00:00Z",
        );
        check(
            "resets Dec 31, 11pm (UTC)",
            "2027-01-01T01:00:00Z",
            None,
            "2026-12-31T23:00:00Z",
        );
        check(
            "resets Feb 29, 3pm (UTC)",
            "2028-02-25T01:00:00Z",
            None,
            "2028-02-29T15:00:00Z",
        );
    }

    #[test]
    fn a_clock_time_without_am_or_pm_is_of_24_hours() {
        // claude-auto-retry#35 crashed on it.
        check(
            "resets 12:30",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-10T12:30:00Z",
        );
        check(
            "resets 00:00 UTC",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-11T00:00:00Z",
        );
        check(
            "resets at 15:20 (Europe/Paris)",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-10T13:20:00Z",
        );
        check(
            "resets at 7 p.m. (UTC)",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-10T19:00:00Z",
        );
        check(
            "resets 12am (UTC)",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-11T00:00:00Z",
        );
        check(
            "resets 12pm (UTC)",
            "2026-07-10T08:00:00Z",
            None,
            "2026-07-10T12:00:00Z",
        );
    }

    #[test]
    fn days_on_which_the_clocks_change() {
        // Europe, 29 March 2026: 01:00 UTC is 03:00.
        check(
            "resets 4am (Europe/Berlin)",
            "2026-03-29T00:30:00Z",
            None,
            "2026-03-29T02:00:00Z",
        );
        // 02:30 does not exist there: the moment that is shown as 03:30.
        check(
            "resets 2:30am (Europe/Berlin)",
            "2026-03-29T00:30:00Z",
            None,
            "2026-03-29T01:30:00Z",
        );
        // Los Angeles, 1 November 2026: 01:30 is shown twice.
        let twice = "resets 1:30am (America/Los_Angeles)";
        check(twice, "2026-11-01T07:00:00Z", None, "2026-11-01T08:30:00Z");
        check(twice, "2026-11-01T09:29:00Z", None, "2026-11-01T08:30:00Z");
        check(twice, "2026-11-01T09:31:00Z", None, "2026-11-01T09:30:00Z");
        // A date on the far side of a change.
        check(
            "resets Nov 3, 4am (America/Los_Angeles)",
            "2026-10-30T12:00:00Z",
            None,
            "2026-11-03T12:00:00Z",
        );
        // Lord Howe Island moves by half an hour.
        check(
            "resets 3am (Australia/Lord_Howe)",
            "2026-10-03T13:00:00Z",
            None,
            "2026-10-03T16:00:00Z",
        );
    }

    #[test]
    fn without_a_zone_the_machines_is_meant_then_utc() {
        // bmad-loop#610
        check(
            "resets 9pm",
            "2026-08-08T11:00:00Z",
            Some("Asia/Kolkata"),
            "2026-08-08T15:30:00Z",
        );
        check("resets 9pm", "2026-08-08T11:00:00Z", None, "2026-08-08T21:00:00Z");
    }

    #[test]
    fn what_cannot_be_read_gives_nothing() {
        for sentence in [
            "",
            "You're out of usage credits",
            "You've hit your session limit",
            "resets",
            "resets soon",
            "resets 30",
            "resets 25:00",
            "resets 13pm",
            "resets 0am",
            "resets 3pm (Mars/Olympus)",
            "resets 3pm (UTC",
            "resets 3pm (UTC+2147483647:59)",
            "resets Feb 30, 4am (UTC)",
            "resets Mon",
            "Claude AI usage limit reached|",
            "Claude AI usage limit reached|99999999999999999999",
            "resets \u{1f600}\u{1f600}pm",
        ] {
            assert_eq!(read(sentence, "2026-07-10T08:00:00Z", None), None, "{sentence}");
        }
        assert_eq!(
            read("resets 3pm", "2026-07-10T08:00:00Z", Some("Mars/Olympus")),
            None
        );
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds() {
        assert_eq!(from_number(1_788_297_600), Some(1_788_297_600));
        assert_eq!(from_number(1_788_297_600_000), Some(1_788_297_600));
        for bad in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(from_number(bad), None, "{bad}");
        }
    }
}
