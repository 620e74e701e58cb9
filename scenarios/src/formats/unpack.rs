//! Decompression of gzip and Zstandard, which are recognised by their first bytes.
//!
//! A small file may expand to terabytes. Unpacked bytes are streamed, and the ratio of output to
//! input is bounded.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

pub(super) const ENDINGS: [&str; 2] = [".gz", ".zst"];

/// Size to which every file may unpack, regardless of its compressed size, bytes.
const FREE: u64 = 64 << 20;

/// Maximum ratio of output to input beyond [`FREE`]. Transcripts shrink to a fifth or a twentieth,
/// seldom to a hundredth; zeros to a thousandth or less.
const MAX_RATIO: u64 = 250;

/// Size up to which [`MAX_RATIO`] applies, bytes. Larger output has at most [`USUAL_RATIO`], because
/// a session is held in memory.
const MAX_DENSE_BYTES: u64 = 512 << 20;

const USUAL_RATIO: u64 = 20;

/// Returns the maximum number of bytes to which `size` packed bytes may unpack.
pub(super) fn max_unpacked(size: u64) -> u64 {
    let usual = size.saturating_mul(USUAL_RATIO).max(MAX_DENSE_BYTES);
    size.saturating_mul(MAX_RATIO).max(FREE).min(usual)
}

/// Maximum size of a compressed document and of a file in an archive, bytes. Readers keep these in
/// memory.
pub(super) const MAX_HELD_BYTES: u64 = 256 << 20;

/// Number of times that a file of an archive, or a row of a database, may be read.
pub(super) const READINGS: u64 = 4;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
    /// Compression of members of zip archives.
    Deflate,
}

impl Packing {
    pub(super) fn detect(start: &[u8]) -> Option<Packing> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            // A skippable frame.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zstd),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "Zstandard",
            Packing::Deflate => "zip",
        }
    }

    /// Returns a stream of the unpacked bytes. `size` is the size of the packed ones.
    pub(super) fn unpacked<'a>(
        self,
        packed: impl BufRead + 'a,
        size: u64,
    ) -> Box<dyn BufRead + 'a> {
        let decoder: Box<dyn Read + 'a> = match self {
            Packing::Gzip => Box::new(Members(Some(GzDecoder::new(packed)))),
            Packing::Deflate => Box::new(DeflateDecoder::new(packed)),
            Packing::Zstd => Box::new(Frames { source: packed, frame: None }),
        };
        let most = max_unpacked(size);
        let guarded = Guarded { decoder, packing: self, size, most, given: 0 };
        Box::new(BufReader::with_capacity(64 << 10, guarded))
    }
}

/// Reader that fails if the output exceeds the limits.
struct Guarded<'a> {
    decoder: Box<dyn Read + 'a>,
    packing: Packing,
    size: u64,
    most: u64,
    given: u64,
}

impl Read for Guarded<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let title = self.packing.title();
        let n = self.decoder.read(buf).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::other(format!("the {title} data in it breaks off"))
            }
            _ => io::Error::other(format!("the {title} data in it is damaged: {e}")),
        })?;
        self.given += n as u64;
        if self.given > self.most {
            let (size, mib) = (self.size, self.most >> 20);
            let what =
                format!("its first {size} bytes give more than {mib} MiB, which no session does");
            return Err(io::Error::other(what));
        }
        Ok(n)
    }
}

/// Gzip reader for successive members, and zeros after them, with which some devices fill blocks.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            let source = member.get_mut();
            let is_over = loop {
                let rest = source.fill_buf()?;
                let zeros = rest.iter().take_while(|b| **b == 0).count();
                if zeros == 0 {
                    break rest.is_empty();
                }
                source.consume(zeros);
            };
            let ended = self.0.take().filter(|_| !is_over);
            self.0 = ended.map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// Zstandard reader for successive frames, skipping skippable ones.
struct Frames<R> {
    source: R,
    frame: Option<FrameDecoder>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                while frame.can_collect() == 0 && !frame.is_finished() {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    frame.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
                }
                let n = frame.read(buf)?;
                if n > 0 || buf.is_empty() {
                    return Ok(n);
                }
                let told = frame.get_checksum_from_data();
                if told.is_some() && told != frame.get_calculated_checksum() {
                    return Err(io::Error::other("its checksum is another"));
                }
                self.frame = None;
            }
            if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut self.source) {
                Ok(()) => self.frame = Some(decoder),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(e) => return Err(io::Error::other(e)),
            }
        }
    }
}
