//! Versions of pi.

use crate::descriptor::{Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PiVersion {
    V1_5,
}

impl Versions for PiVersion {
    const TABLE: &'static [(Version, Self)] = &[(Version::released("1.5"), PiVersion::V1_5)];
}
