//! Zip archives: the list of their files, and each member as a [`Source`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::CrcReader;
use zip::{CompressionMethod, ZipArchive};

use super::source::Source;
use super::unpack::{Damaged, Packing};
use crate::error::{InputError, LineFault};

/// Raw bytes: a file or memory.
#[derive(Clone, Copy)]
pub(super) enum Raw<'a> {
    Path(&'a Path),
    Bytes(&'a [u8]),
}

trait Seekable: BufRead + Seek {}
impl<T: BufRead + Seek> Seekable for T {}

impl<'a> Raw<'a> {
    fn open(self) -> io::Result<Box<dyn Seekable + 'a>> {
        Ok(match self {
            Raw::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Raw::Path(path) => Box::new(BufReader::new(File::open(path)?)),
        })
    }

    pub(super) fn stream(self) -> io::Result<Box<dyn BufRead + 'a>> {
        Ok(Box::new(self.open()?))
    }
}

/// Returns whether bytes are the beginning of a zip file: a member, or the end record of an empty archive.
pub(super) fn begins(start: &[u8]) -> bool {
    matches!(start, [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..])
}

/// A zip archive that is open for reading.
pub struct Archive<'a> {
    name: String,
    raw: Raw<'a>,
    zip: RefCell<ZipArchive<Box<dyn Seekable + 'a>>>,
}

impl<'a> Archive<'a> {
    pub(super) fn open(name: &str, raw: Raw<'a>) -> Result<Archive<'a>, InputError> {
        let opened = raw.open().map_err(|e| damaged(name, &e));
        let zip = ZipArchive::new(opened?).map_err(|e| damaged(name, &e))?;
        Ok(Archive { name: name.into(), raw, zip: zip.into() })
    }

    /// Returns the names of its files with their folders, such as `samples/1.json`, sorted. Hidden
    /// files are included, since hidden folders contain sessions; files that macOS adds are not.
    pub fn names(&self) -> Vec<String> {
        let zip = self.zip.borrow();
        let name = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let mut names: Vec<String> = zip.file_names_raw().map(name).collect();
        names.retain(|n| !n.ends_with(['/', '\\']) && !is_of_macos(n));
        names.sort_unstable();
        names
    }

    /// Returns the names that occur several times, with an error for each member that cannot be
    /// read. Only the last member with a name can be read.
    pub fn shadowed(&self) -> Vec<(String, InputError)> {
        if !self.zip.borrow().has_duplicate_names() {
            return Vec::new();
        }
        let mut all: BTreeMap<String, usize> = BTreeMap::new();
        // Errors of the list were reported when the archive was opened.
        let _ = self.each_entry(|name| *all.entry(name).or_default() += 1);
        all.retain(|name, n| *n > 1 && !is_of_macos(name));
        let told = all.into_iter().map(|(name, n)| {
            let what = format!("the archive has {n} files of this name; only the last is read");
            let fix = "pack it again with a name for each";
            let called = format!("{}/{}", self.name, below(&name));
            (name, LineFault::new(1, what, "one file of each name", fix).at(&called))
        });
        told.collect()
    }

    /// Calls `take` with the name of every entry of the central directory. The zip reader only
    /// keeps one entry per name.
    fn each_entry(&self, mut take: impl FnMut(String)) -> io::Result<()> {
        const ENTRY: [u8; 4] = *b"PK\x01\x02";
        let mut list = self.raw.open()?;
        list.seek(SeekFrom::Start(self.zip.borrow().central_directory_start()))?;
        loop {
            let mut fixed = [0; 46];
            list.read_exact(&mut fixed)?;
            if fixed[..4] != ENTRY {
                return Ok(());
            }
            let [name, extra, comment] =
                [28, 30, 32].map(|at| u16::from_le_bytes([fixed[at], fixed[at + 1]]));
            let mut bytes = vec![0; name.into()];
            list.read_exact(&mut bytes)?;
            list.seek_relative(i64::from(extra) + i64::from(comment))?;
            take(String::from_utf8_lossy(&bytes).into_owned());
        }
    }

    /// Returns a file of the archive, named `ARCHIVE/NAME` in messages, without reading it.
    pub fn member(&self, name: &str) -> Result<Source<'a>, InputError> {
        let called = format!("{}/{}", self.name, below(name));
        let mut zip = self.zip.borrow_mut();
        let found = zip.by_name_raw(name.as_bytes()).map_err(|e| damaged(&called, &e))?;
        if found.encrypted() {
            let fix = "unpack it with its password";
            return Err(
                LineFault::new(1, "encrypted", "a member without a password", fix).at(&called)
            );
        }
        let packing = match found.compression() {
            CompressionMethod::Stored => None,
            m if m == CompressionMethod::DEFLATE => Some(Packing::Deflate),
            m if m == CompressionMethod::ZSTD => Some(Packing::Zstd),
            other => {
                let what = format!("compressed as {other}");
                let expected = "stored, deflate or Zstandard";
                return Err(LineFault::new(1, what, expected, "unpack it first").at(&called));
            }
        };
        let member = Member {
            archive: self.raw,
            packing,
            start: found.data_start().unwrap_or_default(),
            packed: found.compressed_size(),
            crc: found.crc32(),
        };
        Ok(Source::member(member, called))
    }
}

/// Returns a safe path of a member below its archive: `./a`, `/a` and `../a` all become `a`.
pub(crate) fn below(name: &str) -> String {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
}

/// Returns whether macOS added a file for the appearance of a folder or the attributes of a file.
fn is_of_macos(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file == ".DS_Store" || file.starts_with("._") || name.split('/').any(|p| p == "__MACOSX")
}

fn damaged(name: &str, e: &dyn std::fmt::Display) -> InputError {
    let what = format!("the zip archive cannot be read ({e})");
    LineFault::new(1, what, "a whole zip archive", "check that it was copied whole").at(name)
}

/// Position of a file in an archive.
#[derive(Clone)]
pub(super) struct Member<'a> {
    archive: Raw<'a>,
    packing: Option<Packing>,
    start: u64,
    packed: u64,
    crc: u32,
}

impl<'a> Member<'a> {
    /// Returns a reader of the decompressed bytes. It verifies the checksum at the end.
    pub(super) fn stream(&self) -> io::Result<Box<dyn BufRead + 'a>> {
        let mut file = self.archive.open()?;
        file.seek(SeekFrom::Start(self.start))?;
        let packed = file.take(self.packed);
        let bytes: Box<dyn BufRead + 'a> = match self.packing {
            None => Box::new(packed),
            Some(packing) => packing.unpacked(packed),
        };
        Ok(Box::new(BufReader::new(Checked { bytes: CrcReader::new(bytes), crc: self.crc })))
    }
}

struct Checked<R> {
    bytes: CrcReader<R>,
    crc: u32,
}

impl<R: BufRead> Read for Checked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(buf)?;
        if n == 0 && !buf.is_empty() && self.bytes.crc().sum() != self.crc {
            return Err(Damaged::new("its checksum is another", "zip").into());
        }
        Ok(n)
    }
}
