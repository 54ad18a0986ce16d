//! Readers for fields of files that the client writes and may change.
//!
//! A transcript line with one field of a new type must not be lost as a whole:
//! `error`, for one, is a string on a failed turn and an object on a retry. A
//! field that is not of the expected type reads as absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A string, or nothing.
pub(crate) fn text<'de, D>(from: D) -> Result<Option<Cow<'de, str>>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match from.deserialize_any(Scalar)? {
        Found::Text(text) => Some(text),
        _ => None,
    })
}

/// `true`, or nothing.
pub(crate) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(matches!(from.deserialize_any(Scalar)?, Found::Flag(true)))
}

/// A whole number, also one written as a fraction or as a string.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(match from.deserialize_any(Scalar)? {
        Found::Number(number) => Some(number),
        Found::Text(text) => text.trim().parse().ok(),
        _ => None,
    })
}

enum Found<'de> {
    Text(Cow<'de, str>),
    Number(i64),
    Flag(bool),
    Other,
}

struct Scalar;

impl<'de> Visitor<'de> for Scalar {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Found<'de>, E> {
        Ok(Found::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Found<'de>, E> {
        Ok(Found::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Found<'de>, E> {
        Ok(Found::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Found<'de>, E> {
        Ok(Found::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Found<'de>, E> {
        Ok(i64::try_from(number).map_or(Found::Other, Found::Number))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range is checked; a fraction is cut off"
    )]
    fn visit_f64<E>(self, number: f64) -> Result<Found<'de>, E> {
        // 9e15 is below the largest whole number that a double holds exactly.
        Ok(if number.abs() < 9e15 {
            Found::Number(number as i64)
        } else {
            Found::Other
        })
    }

    fn visit_unit<E>(self) -> Result<Found<'de>, E> {
        Ok(Found::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Found<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Found::Other)
    }
}
