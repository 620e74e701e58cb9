//! The layout of one block on a wire, and of a file reference.

use ctxbench_core::block::{Media, Role};
use ctxbench_core::usage::Ttl;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockForm {
    Text,
    Image,
    Reasoning,
    Call,
    Output,
    Compaction,
    Trigger,
}

/// The layout of one block.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Index of the block.
    pub(crate) block: usize,
    pub(crate) show: BlockForm,
    pub(crate) role: Role,
    /// 0 is outside the messages.
    pub(crate) message: usize,
    pub(crate) cache: Option<Ttl>,
}

impl Slot {
    pub(crate) fn is_assistant(&self) -> bool {
        self.role == Role::Assistant
    }
}

/// Media type of documents, which wires distinguish from images.
pub(crate) const PDF: &str = "application/pdf";

/// Splits a data URL into media type and base64 text.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns the reference of an image by its address, with the media type of a data URL.
pub(crate) fn image_at(url: &str) -> Media {
    let media_type = data_url(url).map_or("", |(media_type, _)| media_type).into();
    Media { media_type, url: url.into(), name: None }
}

/// Returns the reference of a document by its address.
pub(crate) fn pdf_at(url: &str) -> Media {
    Media { media_type: PDF.into(), url: url.into(), name: None }
}

/// Returns the part of a file reference that wires carry: PDF or not, media type of a data URL,
/// address.
pub(crate) fn carried_media(media: &Media) -> Media {
    if media.media_type == PDF { pdf_at(&media.url) } else { image_at(&media.url) }
}
