//! Instants as text, without a time zone library: the synchronous hooks need
//! UTC and nothing else.

/// An instant (ms since 1970) as `2026-11-30T21:57:00.123Z`.
pub fn rfc3339_ms(ms: i64) -> String {
    let (date, second_of_day) = split(ms.div_euclid(1000));
    let (year, month, day) = civil(date);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        ms.rem_euclid(1000)
    )
}

/// An instant (s since 1970) as `2026-11-30T21:57:00Z`.
pub fn rfc3339_s(s: i64) -> String {
    let (date, second_of_day) = split(s);
    let (year, month, day) = civil(date);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn split(s: i64) -> (i64, i64) {
    (s.div_euclid(86_400), s.rem_euclid(86_400))
}

/// Days since 1970 to a civil date, by the 400-year cycle of the calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        assert_eq!(rfc3339_s(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339_s(1_796_080_570), "2026-11-30T23:16:10Z");
        assert_eq!(rfc3339_s(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339_s(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339_ms(-1), "1969-12-31T23:59:59.999Z");
    }
}
