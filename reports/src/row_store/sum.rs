//! The checksum of a row, in a line of its own behind the JSON: JSON with another digit is JSON
//! still.

use std::io::{self, BufWriter, Write};

use flate2::{Crc, CrcWriter};
use serde::Serialize;

/// Writes a value as JSON, and its checksum behind it.
pub(super) fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut summed = BufWriter::new(CrcWriter::new(out));
    serde_json::to_writer(&mut summed, value)?;
    let mut summed = summed.into_inner().map_err(|e| e.into_error())?;
    let sum = line(summed.crc());
    summed.get_mut().write_all(sum.as_bytes())
}

/// The JSON of a file, and whether it is what was written.
pub(super) fn checked(file: &[u8]) -> (&[u8], bool) {
    // JSON as it is written here has no line breaks.
    let end = file.iter().position(|b| *b == b'\n').unwrap_or(file.len());
    let (json, rest) = file.split_at(end);
    let mut sum = Crc::new();
    sum.update(json);
    (json, rest == line(&sum).as_bytes())
}

fn line(sum: &Crc) -> String {
    format!("\n{:08x}\n", sum.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_zip_and_gzip() {
        let mut file = Vec::new();
        write(&mut file, &123_456_789).unwrap();
        // The check value of CRC-32/ISO-HDLC, of the digits 1 to 9.
        assert_eq!(file, b"123456789\ncbf43926\n");
        assert_eq!(checked(&file), (&b"123456789"[..], true));
        for (at, other) in [(0, b'2'), (10, b'd'), (18, b' ')] {
            let mut changed = file.clone();
            changed[at] = other;
            assert!(!checked(&changed).1, "{at}");
        }
        assert_eq!(checked(b"123"), (&b"123"[..], false));
        assert!(!checked(b"").1);
    }
}
