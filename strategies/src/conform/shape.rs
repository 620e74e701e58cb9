//! Tables of the permitted members of a case, with names and types. They are checked before a case
//! runs.

/// Type of a member.
#[derive(Clone, Copy, Debug)]
pub enum MemberKind {
    /// A string or a recipe.
    Text,
    Word,
    /// A string from this list.
    OneOf(&'static [&'static str]),
    Words,
    /// A whole number, 0 or more.
    Count,
    /// Number of tools.
    Tools,
    /// Size in bytes; a list of several is allowed.
    Bytes,
    /// Size in bytes of a generated text, or sizes of its parts.
    Filler,
    Flag,
    /// The value true; otherwise the member is left out.
    True,
    Object,
    Any,
    /// An object of this shape.
    One(Shape),
    /// An object with exactly one of these members.
    Either(Shape),
    /// A list of objects of this shape.
    Many(Shape),
}

/// Name and type of a member, and whether it is required and may be null.
#[derive(Debug)]
pub struct ShapeMember {
    pub name: &'static str,
    pub kind: MemberKind,
    pub required: bool,
    pub nullable: bool,
}

pub type Shape = &'static [ShapeMember];

/// Creates a required member.
pub const fn must(name: &'static str, kind: MemberKind) -> ShapeMember {
    ShapeMember { name, kind, required: true, nullable: false }
}

/// Creates an optional member.
pub const fn may(name: &'static str, kind: MemberKind) -> ShapeMember {
    ShapeMember { name, kind, required: false, nullable: false }
}

/// Creates an optional member that may be null.
pub const fn null(name: &'static str, kind: MemberKind) -> ShapeMember {
    ShapeMember { name, kind, required: false, nullable: true }
}

/// Creates a required member that may be null.
pub const fn must_or_null(name: &'static str, kind: MemberKind) -> ShapeMember {
    ShapeMember { name, kind, required: true, nullable: true }
}
