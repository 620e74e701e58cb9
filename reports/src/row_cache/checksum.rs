//! A line of JSON followed by a line with its CRC-32. JSON with a changed digit is still valid
//! JSON, so a parser cannot detect such damage.

use std::io::{self, BufWriter, Write};

use flate2::{Crc, CrcWriter};
use serde::Serialize;

/// Writes a value as JSON, followed by its checksum.
pub(super) fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut summed = BufWriter::new(CrcWriter::new(out));
    serde_json::to_writer(&mut summed, value)?;
    let mut summed = summed.into_inner().map_err(|e| e.into_error())?;
    let sum = checksum_line(summed.crc());
    summed.get_mut().write_all(sum.as_bytes())
}

/// Returns the JSON of a file if its checksum is valid.
pub(super) fn verify(file: &[u8]) -> Option<&[u8]> {
    // The JSON has no line breaks.
    let end = file.iter().position(|b| *b == b'\n')?;
    let (json, rest) = file.split_at(end);
    let mut sum = Crc::new();
    sum.update(json);
    (rest == checksum_line(&sum).as_bytes()).then_some(json)
}

fn checksum_line(sum: &Crc) -> String {
    format!("\n{:08x}\n", sum.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_changed_byte_fails() {
        let mut file = Vec::new();
        write(&mut file, &123_456_789).unwrap();
        // The check value of CRC-32/ISO-HDLC for the digits 1 to 9.
        assert_eq!(file, b"123456789\ncbf43926\n");
        assert_eq!(verify(&file), Some(&b"123456789"[..]));
        for (at, other) in [(0, b'2'), (10, b'd'), (18, b' ')] {
            let mut changed = file.clone();
            changed[at] = other;
            assert_eq!(verify(&changed), None, "{at}");
        }
        assert_eq!(verify(b"123"), None);
        assert_eq!(verify(b""), None);
    }
}
