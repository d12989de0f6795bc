//! The words that files use for accesses, places, families and kinds. Fixed by the format, whatever the types are called.

use crate::device::Access;
use crate::exec::{Family, Place, WrongKind};

/// Values and their words.
pub struct Words<T: 'static> {
    what: &'static str,
    table: &'static [(T, &'static str)],
}

pub const ACCESS: Words<Access> = Words { what: "access", table: &[(Access::Read, "read"), (Access::Write, "write")] };

pub const PLACE: Words<Place> = Words {
    what: "place",
    table: &[
        (Place::BeforeStart, "before-start"),
        (Place::PastEnd, "past-end"),
        (Place::Gap, "gap"),
        (Place::Element, "element"),
        (Place::Far, "far"),
    ],
};

pub const FAMILY: Words<Family> =
    Words { what: "family", table: &[(Family::Memory, "memory"), (Family::Hang, "hang"), (Family::Crash, "crash")] };

pub const KIND: Words<WrongKind> = Words {
    what: "kind",
    table: &[(WrongKind::Value, "value"), (WrongKind::Unwritten, "unwritten"), (WrongKind::Stray, "stray")],
};

impl<T: Copy + PartialEq> Words<T> {
    /// The word of a value. Every table lists every value; a test holds it to that.
    pub fn word(&self, value: T) -> String {
        self.table.iter().find(|row| row.0 == value).map_or("", |row| row.1).to_owned()
    }

    /// The value of a word.
    ///
    /// # Errors
    /// A sentence with the words there are.
    pub fn value(&self, word: &str) -> Result<T, String> {
        self.table.iter().find(|row| row.1 == word).map(|row| row.0).ok_or_else(|| {
            let known: Vec<&str> = self.table.iter().map(|row| row.1).collect();
            format!("{} = '{word}' is not one of {}", self.what, known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_word_of_its_own() {
        for a in [Access::Read, Access::Write] {
            assert_eq!(ACCESS.value(&ACCESS.word(a)), Ok(a));
        }
        for p in [Place::BeforeStart, Place::PastEnd, Place::Gap, Place::Element, Place::Far] {
            assert_eq!(PLACE.value(&PLACE.word(p)), Ok(p));
        }
        for f in [Family::Memory, Family::Hang, Family::Crash] {
            assert_eq!(FAMILY.value(&FAMILY.word(f)), Ok(f));
        }
        for k in [WrongKind::Value, WrongKind::Unwritten, WrongKind::Stray] {
            assert_eq!(KIND.value(&KIND.word(k)), Ok(k));
        }
        assert_eq!(
            PLACE.value("near").unwrap_err(),
            "place = 'near' is not one of before-start, past-end, gap, element, far"
        );
    }
}
