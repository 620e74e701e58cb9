//! Character classes for splitting text into words.

/// A character class, numbered as in `build.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Punctuation, symbols and controls.
    Other,
    /// `\p{Lu}` and `\p{Lt}`.
    Upper,
    /// `\p{Ll}`.
    Lower,
    /// `\p{Lm}` and `\p{Lo}`: letters without case.
    Caseless,
    /// `\p{M}`.
    Mark,
    /// `\p{N}`.
    Number,
    /// `\s` except [`Class::Newline`].
    Blank,
    /// `\r` and `\n`.
    Newline,
}

use Class::{Blank, Caseless, Lower, Mark, Newline, Number, Other, Upper};

const NUMBERED: [Class; 8] = [Other, Upper, Lower, Caseless, Mark, Number, Blank, Newline];

const WRITTEN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));
static TABLE: &[u8] = WRITTEN;

/// Number of blocks of 256 code points in Unicode.
const BLOCKS: usize = 0x1100;

static ASCII: [Class; 128] = {
    let mut all = [Other; 128];
    let mut i = 0;
    while i < 128 {
        all[i] = NUMBERED[WRITTEN[BLOCKS + i] as usize];
        i += 1;
    }
    all
};

impl Class {
    /// Returns class and length in bytes of the character at `at`; `None` at the end.
    #[inline]
    pub(super) fn at(text: &str, at: usize) -> Option<(Class, usize)> {
        let &byte = text.as_bytes().get(at)?;
        if byte < 128 {
            return Some((ASCII[byte as usize], 1));
        }
        let c = text[at..].chars().next()?;
        let code = c as usize;
        let block = TABLE[code >> 8] as usize;
        Some((NUMBERED[TABLE[BLOCKS + block * 256 + (code & 255)] as usize], c.len_utf8()))
    }

    pub(super) fn is_space(self) -> bool {
        matches!(self, Blank | Newline)
    }

    /// Returns whether the class is neither white space nor letter nor number.
    pub(super) fn is_sign(self) -> bool {
        matches!(self, Other | Mark)
    }

    /// Returns whether the class may precede the letters of a word: no letter, number or line break.
    pub(super) fn leads(self) -> bool {
        matches!(self, Other | Mark | Blank)
    }

    /// `\p{L}`.
    pub(super) fn is_letter(self) -> bool {
        matches!(self, Upper | Lower | Caseless)
    }

    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`.
    pub(super) fn is_upper(self) -> bool {
        matches!(self, Upper | Caseless | Mark)
    }

    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`.
    pub(super) fn is_lower(self) -> bool {
        matches!(self, Lower | Caseless | Mark)
    }
}
