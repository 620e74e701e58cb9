//! Sizes of images, from the first bytes of their data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::block::Media;

/// Width and height of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
}

/// Number of base64 characters that are searched for the size.
const SEARCHED: usize = 1 << 16;

impl Media {
    /// Returns the size of a PNG, JPEG, GIF or WebP image in a data URL. `None` for links and documents.
    pub fn pixels(&self) -> Option<Pixels> {
        let data = self.url.split_once(";base64,")?.1;
        let whole = data.len().min(SEARCHED) / 4 * 4;
        let bytes = STANDARD.decode(data.get(..whole)?).ok()?;
        let (width, height) = match *bytes.first_chunk()? {
            [0x89, b'P', b'N', b'G'] => (big(&bytes, 16, 4)?, big(&bytes, 20, 4)?),
            [b'G', b'I', b'F', _] => (little(&bytes, 6, 2)?, little(&bytes, 8, 2)?),
            [b'R', b'I', b'F', b'F'] => webp(&bytes)?,
            [0xff, 0xd8, ..] => jpeg(&bytes)?,
            _ => return None,
        };
        (width > 0 && height > 0).then_some(Pixels { width, height })
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    // VP8 and VP8L store 14 bits of each, VP8X and VP8L one less than the size.
    Some(match bytes.get(12..16)? {
        b"VP8X" => (little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        b"VP8 " => (little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff),
        _ => return None,
    })
}

/// Reads the size in the first frame header of a JPEG.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    while let Some(&[0xff, kind]) = bytes.get(at..at + 2) {
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
        }
        at += 2 + big(bytes, at + 2, 2)? as usize;
    }
    None
}

fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().rfold(0, |n, byte| n << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(kind: &str, bytes: &[u8]) -> Option<(u32, u32)> {
        let url = format!("data:image/{kind};base64,{}", STANDARD.encode(bytes));
        let media = Media { media_type: format!("image/{kind}"), url, name: None };
        media.pixels().map(|p| (p.width, p.height))
    }

    #[test]
    fn the_size_is_in_the_first_bytes() {
        // 640 = 0x280 by 400 = 0x190.
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x90\x08\x06";
        assert_eq!(pixels("png", png), Some((640, 400)));
        assert_eq!(pixels("gif", b"GIF89a\x80\x02\x90\x01\xf7"), Some((640, 400)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc4\0\x02\xff\xc2\0\x11\x08\x01\x90\x02\x80\x03";
        assert_eq!(pixels("jpeg", jpeg), Some((640, 400)));
        let vp8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\x30\x01\0\x9d\x01\x2a\x80\x02\x90\x01";
        assert_eq!(pixels("webp", vp8), Some((640, 400)));
        let vp8x = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\x8f\x01\0";
        assert_eq!(pixels("webp", vp8x), Some((640, 400)));
        // 639 | 399 << 14 = 0x63c27f.
        let vp8l = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x63\0";
        assert_eq!(pixels("webp", vp8l), Some((640, 400)));
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
