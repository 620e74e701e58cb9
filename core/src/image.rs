//! Sizes of images, from the first bytes of their data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::block::Media;

/// Number of base64 characters that are searched for the size.
const SEARCHED: usize = 1 << 18;

impl Media {
    /// Returns width and height of a PNG or JPEG image in a data URL, in pixels. `None` for anything else.
    pub fn pixels(&self) -> Option<(u32, u32)> {
        let data = self.url.split_once(";base64,")?.1;
        let whole = data.len().min(SEARCHED) / 4 * 4;
        let bytes = STANDARD.decode(data.get(..whole)?).ok()?;
        let (width, height) = match *bytes.first_chunk()? {
            [0x89, b'P', b'N', b'G'] => (big(&bytes, 16, 4)?, big(&bytes, 20, 4)?),
            [0xff, 0xd8, ..] => jpeg(&bytes)?,
            _ => return None,
        };
        (width > 0 && height > 0).then_some((width, height))
    }
}

/// Reads the size in the first frame header of a JPEG.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    while let Some(&[0xff, kind]) = bytes.get(at..at + 2) {
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
        }
        // Fill bytes may come before a segment.
        at += if kind == 0xff { 1 } else { 2 + big(bytes, at + 2, 2)? as usize };
    }
    None
}

fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(kind: &str, bytes: &[u8]) -> Option<(u32, u32)> {
        let url = format!("data:image/{kind};base64,{}", STANDARD.encode(bytes));
        let media = Media { media_type: format!("image/{kind}"), url, name: None };
        media.pixels()
    }

    #[test]
    fn the_size_is_in_the_first_bytes() {
        // 640 = 0x280 by 400 = 0x190.
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x90\x08\x06";
        assert_eq!(pixels("png", png), Some((640, 400)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc4\0\x02\xff\xc2\0\x11\x08\x01\x90\x02\x80\x03";
        assert_eq!(pixels("jpeg", jpeg), Some((640, 400)));
    }

    #[test]
    fn other_data_has_no_size() {
        for bytes in [&b""[..], b"ABC", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9", b"%PDF-1.7 ...."]
        {
            assert_eq!(pixels("png", bytes), None);
        }
        let link =
            Media { media_type: "image/png".into(), url: "https://a.b/c".into(), name: None };
        assert_eq!(link.pixels(), None);
    }
}
