//! Permitted members of a case: names and types, as tables. Checked before anything runs.

/// Type of a member.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string or a recipe.
    Text,
    Word,
    /// A string from this list.
    OneOf(&'static [&'static str]),
    Words,
    /// A whole number, 0 or more.
    Count,
    /// A number of tools.
    Tools,
    /// Size in bytes; a list of several is allowed.
    Bytes,
    /// Size in bytes of a text that is made for it, or sizes of its parts.
    Filler,
    Flag,
    /// True: the member is there or not.
    True,
    Object,
    Any,
    /// An object of this shape.
    One(Shape),
    /// An object with exactly one of these members.
    Either(Shape),
    /// Objects of this shape.
    Many(Shape),
}

/// Name, type, and whether it must be there and may be null.
#[derive(Debug)]
pub struct Member {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub nullable: bool,
}

pub type Shape = &'static [Member];

/// A member that must be there.
pub const fn must(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: true, nullable: false }
}

/// A member that may be left out.
pub const fn may(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: false, nullable: false }
}

/// A member that may be left out or null.
pub const fn null(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: false, nullable: true }
}

/// A member that must be there and may be null.
pub const fn must_or_null(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, required: true, nullable: true }
}
