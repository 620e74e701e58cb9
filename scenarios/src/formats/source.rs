//! Input of a reader: a file or a folder on disk, a member of an archive, or bytes in memory.
//! Compressed input is unpacked while it is read.

mod archive;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ctxbench_formats::lines::LineReader;
use ctxbench_util::files;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

pub use archive::Archive;

use super::json;
use super::unpack::{self, MAX_HELD_BYTES, Packing};
use crate::error::InputError;
use crate::escapes;

/// Size of the beginning that identifies a file, bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Size of the beginning that identifies most files with an object on each line, bytes. It is doubled
/// for longer lines.
const SHORT_HEAD_BYTES: u64 = 1 << 16;

const HEAD_LINES: usize = 20;

/// A file, a folder, a member of an archive or bytes.
pub struct Source<'a> {
    /// Name for messages and for session ids.
    name: String,
    raw: Raw<'a>,
    /// Whether to ignore companion files.
    alone: bool,
    searched: Option<&'a SearchedFolders>,
    /// The whole text, once it was read.
    text: OnceCell<String>,
    /// The text up to its last whole item, if it is a document that breaks off, and the line of the break.
    mended: OnceCell<(String, usize)>,
}

/// Companion files by the session that they belong to, for each folder that was searched. With it,
/// a folder with many sessions is searched once.
#[derive(Debug, Default)]
pub struct SearchedFolders(Mutex<HashMap<PathBuf, Arc<OwnedFiles>>>);

pub(super) type OwnedFiles = HashMap<String, Vec<PathBuf>>;

enum Raw<'a> {
    Path(&'a Path),
    Bytes(&'a [u8]),
    /// A file of an archive, with its name there.
    Member {
        bytes: Vec<u8>,
        path: PathBuf,
        archive: &'a Archive,
    },
}

impl<'a> Source<'a> {
    /// Creates a source for a file or folder. Its name in messages excludes parent folders.
    pub fn at(path: &'a Path) -> Source<'a> {
        let name = path.file_name().map(|f| f.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| path.display().to_string());
        Source::of(name, Raw::Path(path))
    }

    /// Creates a source of bytes in memory, such as standard input.
    pub fn of_bytes(bytes: &'a [u8], name: &str) -> Source<'a> {
        Source::of(name.to_string(), Raw::Bytes(bytes)).alone()
    }

    fn of(name: String, raw: Raw<'a>) -> Source<'a> {
        let (text, mended) = Default::default();
        Source { name, raw, alone: false, searched: None, text, mended }
    }

    pub fn called(self, name: &str) -> Source<'a> {
        Source { name: name.to_string(), ..self }
    }

    /// Ignores companion files, for callers that read them separately.
    pub fn alone(self) -> Source<'a> {
        Source { alone: true, ..self }
    }

    /// Shares what searches for companion files found.
    pub fn within(self, searched: &'a SearchedFolders) -> Source<'a> {
        Source { searched: Some(searched), ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file name without folders and the extension of its compression.
    fn file_name(&self) -> &str {
        unpacked(self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name))
    }

    /// Returns the file name without the extension. It is the id of a session that has none.
    pub fn stem(&self) -> &str {
        let name = self.file_name();
        let name = name.strip_suffix(".json").filter(|n| n.ends_with(".traj")).unwrap_or(name);
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }

    /// Returns the path of an uncompressed file or folder, or `None` for sources in memory, in an
    /// archive or compressed.
    pub fn path(&self) -> Option<&'a Path> {
        let is_packed =
            || self.is_zip() || self.opened().is_ok_and(|(_, packing)| packing.is_some());
        self.disk_path().filter(|_| !is_packed())
    }

    fn disk_path(&self) -> Option<&'a Path> {
        match self.raw {
            Raw::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the path that companion files lie next to: on disk, or in the archive of a member. For a
    /// link, this is the path of its target.
    pub fn folder(&self) -> Option<Cow<'_, Path>> {
        let path = match &self.raw {
            _ if self.alone => return None,
            Raw::Bytes(_) => return None,
            Raw::Member { path, .. } => return Some(Cow::Borrowed(path)),
            Raw::Path(path) => *path,
        };
        let target = path.is_symlink().then(|| fs::canonicalize(path).ok()).flatten();
        Some(target.map_or(Cow::Borrowed(path), Cow::Owned))
    }

    /// Returns the path of a companion file, which may be compressed, if it exists.
    pub(super) fn companion(&self, path: &Path) -> Option<PathBuf> {
        let exists = |path: &PathBuf| match &self.raw {
            Raw::Member { archive, .. } => archive.has(path),
            _ => path.is_file(),
        };
        let named = |ending| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        std::iter::once("").chain(unpack::ENDINGS).map(named).find(exists)
    }

    pub(super) fn open_companion<'b>(&'b self, path: &'b Path) -> Result<Source<'b>, InputError> {
        match &self.raw {
            Raw::Member { archive, .. } => archive.member(&path.to_string_lossy()),
            _ => Ok(Source::at(path)),
        }
    }

    /// Returns the JSON in a companion file; null if it cannot be read.
    pub(super) fn json_in(&self, path: Option<&PathBuf>) -> Value {
        let file = path.and_then(|path| self.open_companion(path).ok());
        let text = file.as_ref().and_then(|file| file.text().ok());
        text.and_then(|text| escapes::from_str(text).ok()).unwrap_or_default()
    }

    /// Returns the files in a folder next to this source, and those below it if `deep`.
    pub(super) fn files_in(&self, folder: &Path, deep: bool) -> Vec<PathBuf> {
        if let Raw::Member { archive, .. } = &self.raw {
            return archive.files_in(folder, deep);
        }
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if deep {
            return files::walk_inside(folder);
        }
        listed(folder)
    }

    /// Returns the files in a folder next to this source by their sessions, which `owner` reads.
    pub(super) fn owned_in(
        &self,
        folder: &Path,
        owner: fn(&Source<'_>, &Path) -> Option<String>,
    ) -> Arc<OwnedFiles> {
        let search = || {
            let mut owned = OwnedFiles::new();
            for path in self.files_in(folder, false) {
                if let Some(owner) = owner(self, &path) {
                    owned.entry(owner).or_default().push(path);
                }
            }
            Arc::new(owned)
        };
        let Some(SearchedFolders(known)) = self.searched else { return search() };
        // A search that panicked added nothing.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(folder.to_path_buf()).or_insert_with(search).clone()
    }

    pub fn head(&self) -> Result<Head, InputError> {
        let name = self.file_name().to_string();
        let mut head = Head { name, whole: true, ..Head::default() };
        if let Some(folder) = self.disk_path().filter(|p| p.is_dir()) {
            let name = |e: fs::DirEntry| e.file_name().to_string_lossy().into_owned();
            let list = fs::read_dir(folder).and_then(|all| all.map(|e| e.map(name)).collect());
            let mut entries: Vec<String> = list.map_err(|e| self.unread(&e))?;
            entries.sort();
            return Ok(Head { entries: Some(entries), ..head });
        }
        let (mut reader, packing) = self.opened()?;
        let unread = |e: io::Error| self.unread(&e);
        if packing.is_none()
            && is_zip(reader.fill_buf().map_err(unread)?)
            && let Some(archive) = self.archive()?
        {
            return Ok(Head { members: Some(archive.names().to_vec()), ..head });
        }
        let mut bytes = Vec::new();
        let mut most = SHORT_HEAD_BYTES;
        while most <= HEAD_BYTES {
            let more = most - bytes.len() as u64;
            reader.by_ref().take(more).read_to_end(&mut bytes).map_err(unread)?;
            head.whole = (bytes.len() as u64) < most;
            most = if head.whole || is_of_objects(&bytes) { u64::MAX } else { 2 * most };
        }
        head.text = decoded(bytes);
        if head.text.starts_with(DATABASE)
            && let Some(path) = self.disk_path()
        {
            head.text += &log_head(path);
        }
        Ok(head)
    }

    /// Returns the zip archive, or `None` if the source is not one.
    pub fn archive(&self) -> Result<Option<Archive>, InputError> {
        match &self.raw {
            _ if !self.is_zip() => Ok(None),
            Raw::Member { .. } => {
                let (what, fix) = ("an archive in an archive is not read", "unpack it first");
                Err(InputError::new(1, what, "a file that is not an archive", fix).at(&self.name))
            }
            Raw::Bytes(bytes) => {
                Archive::open(&self.name, Box::new(io::Cursor::new(bytes.to_vec()))).map(Some)
            }
            Raw::Path(path) => Archive::open(&self.name, Box::new(self.file(path)?)).map(Some),
        }
    }

    /// Returns the whole text, decoded from UTF-8 or, with its mark, UTF-16. Invalid bytes are
    /// replaced.
    pub fn text(&self) -> Result<&str, InputError> {
        let known = self.mended.get().map(|(mended, _)| mended).or(self.text.get());
        if let Some(known) = known {
            return Ok(known);
        }
        let mut bytes = Vec::new();
        // The size of an uncompressed file is known.
        let (reader, packing) = self.opened()?;
        let most = if packing.is_some() { MAX_HELD_BYTES } else { u64::MAX };
        reader.take(most).read_to_end(&mut bytes).map_err(|e| self.unread(&e))?;
        if bytes.len() as u64 == most {
            let what = format!("more than {} MiB of one document in it", most >> 20);
            return Err(self.unread(&io::Error::other(what)));
        }
        Ok(self.text.get_or_init(|| decoded(bytes)))
    }

    /// Makes [`Source::text`] end with the last whole item of a JSON document that breaks off and was read.
    /// Returns the line of the break; `None` if the source is something else.
    pub(super) fn mend(&self) -> Option<usize> {
        if self.mended.get().is_none() {
            let text = self.text.get().filter(|text| text.trim_start().starts_with(['{', '[']))?;
            self.mended.set((json::closed_if_cut(text)?, text.lines().count())).ok()?;
        }
        self.mended.get().map(|(_, line)| *line)
    }

    /// Returns the lines with content one at a time, numbered from 1.
    pub fn lines(&self) -> Result<Box<dyn Iterator<Item = NumberedLine> + '_>, InputError> {
        let mut failed = false;
        let lines = (1..).zip(self.utf8()?.split(b'\n')).map_while(move |(number, line)| {
            // No lines follow an error.
            let ended = std::mem::replace(&mut failed, line.is_err());
            (!ended).then_some((number, line))
        });
        let content = |(number, line): (usize, io::Result<Vec<u8>>)| match line.map(text_of) {
            Ok(mut text) => {
                text.truncate(text.trim_end().len());
                let start = text.len() - text.trim_start_matches('\u{feff}').trim_start().len();
                text.drain(..start);
                (!text.is_empty()).then_some(Ok((number, text)))
            }
            Err(e) => Some(Err(unread(&self.name, number, &e))),
        };
        Ok(Box::new(lines.filter_map(content)))
    }

    /// Returns a stream of the text in UTF-8. UTF-16 is converted in memory, because long files do
    /// not use it.
    pub(crate) fn utf8(&self) -> Result<Box<dyn BufRead + '_>, InputError> {
        let mut reader = self.open()?;
        let start = reader.fill_buf().map_err(|e| self.unread(&e))?;
        let wide = matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        if wide {
            return Ok(Box::new(self.text()?.as_bytes()));
        }
        Ok(reader)
    }

    pub fn open(&self) -> Result<Box<dyn BufRead + '_>, InputError> {
        Ok(self.opened()?.0)
    }

    /// Returns a stream of the unpacked bytes, and how they were packed.
    fn opened(&self) -> Result<(Box<dyn BufRead + '_>, Option<Packing>), InputError> {
        let (mut raw, size) = self.raw()?;
        let packing = Packing::detect(raw.fill_buf().map_err(|e| self.unread(&e))?);
        Ok(match packing {
            Some(packing) => (packing.unpacked(raw, size), Some(packing)),
            None => (raw, None),
        })
    }

    /// Returns a stream of the bytes as they are, and their number.
    fn raw(&self) -> Result<(Box<dyn BufRead + '_>, u64), InputError> {
        let bytes = match &self.raw {
            Raw::Path(path) => {
                let file = self.file(path)?;
                let size = file.get_ref().metadata().map_or(0, |found| found.len());
                return Ok((Box::new(file), size));
            }
            Raw::Bytes(bytes) => *bytes,
            Raw::Member { bytes, .. } => bytes,
        };
        Ok((Box::new(bytes), bytes.len() as u64))
    }

    fn file(&self, path: &Path) -> Result<io::BufReader<fs::File>, InputError> {
        let file = fs::File::open(path).map_err(|e| self.unread(&e))?;
        Ok(io::BufReader::with_capacity(1 << 16, file))
    }

    fn is_zip(&self) -> bool {
        self.raw().is_ok_and(|(mut raw, _)| raw.fill_buf().is_ok_and(is_zip))
    }

    fn unread(&self, e: &io::Error) -> InputError {
        unread(&self.name, 1, e)
    }
}

/// Returns the entries of a folder, sorted by name.
pub(super) fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    paths.sort();
    paths
}

pub(super) const DATABASE: &str = "SQLite format 3\0";

/// Returns the path of a database's write-ahead log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Returns the beginning of a database's write-ahead log, which contains the tables of a new
/// database. Empty if the log does not exist.
fn log_head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read =
        fs::File::open(log_of(path)).and_then(|f| f.take(HEAD_BYTES).read_to_end(&mut bytes));
    read.map(|_| text_of(bytes)).unwrap_or_default()
}

/// Returns a file name without the extension of its compression.
pub(crate) fn unpacked(name: &str) -> &str {
    let without = |ending: &&str| {
        let cut = name.len().checked_sub(ending.len()).filter(|n| *n > 0)?;
        let (stem, found) = name.split_at_checked(cut)?;
        found.eq_ignore_ascii_case(ending).then_some(stem)
    };
    unpack::ENDINGS.iter().find_map(without).unwrap_or(name)
}

pub type NumberedLine = Result<(usize, String), InputError>;

pub(crate) fn unread(name: &str, line: usize, e: &io::Error) -> InputError {
    let what = format!("it cannot be read ({e})");
    let fix = "check that it exists and was copied whole";
    InputError::new(line, what, "a whole file that may be read", fix).at(name)
}

/// Converts bytes to text, replacing invalid UTF-8.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }
}

/// Decodes bytes as text without a byte order mark.
fn decoded(mut bytes: Vec<u8>) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|b| unit([b[0], b[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match &*bytes {
        [0xff, 0xfe, text @ ..] => wide(text, u16::from_le_bytes),
        [0xfe, 0xff, text @ ..] => wide(text, u16::from_be_bytes),
        _ => {
            bytes.drain(..if bytes.starts_with(MARK) { MARK.len() } else { 0 });
            text_of(bytes)
        }
    }
}

/// Beginning of a source, for format detection.
#[derive(Default)]
pub struct Head {
    pub name: String,
    /// Names of a folder's entries; `None` = not a folder.
    pub entries: Option<Vec<String>>,
    /// Names of a zip archive's files with their folders, such as `samples/1.json`; `None` = not an
    /// archive.
    pub members: Option<Vec<String>>,
    pub text: String,
    /// Whether `text` is the whole file.
    pub whole: bool,
    value: OnceCell<Value>,
    objects: OnceCell<FirstObjects>,
}

/// Objects on the first lines, and whether the first line is a single whole one.
type FirstObjects = (bool, Vec<Value>);

impl Head {
    /// Returns the first JSON value, possibly truncated; null if there is none.
    pub fn value(&self) -> &Value {
        match self.first_objects() {
            (true, objects) => &objects[0],
            (false, _) => self.value.get_or_init(|| json::beginning(&self.text)),
        }
    }

    /// Returns the objects on the first lines. The last one may be truncated.
    pub fn objects(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.first_objects().1.iter().filter_map(Value::as_object)
    }

    fn first_objects(&self) -> &FirstObjects {
        self.objects.get_or_init(|| {
            let mut lines = numbered(&self.text).take(HEAD_LINES).peekable();
            let (mut is_whole, mut is_first, mut out) = (false, true, Vec::new());
            while let Some((_, line)) = lines.next() {
                let cut = !self.whole && lines.peek().is_none();
                match LineReader::default().objects(line) {
                    (objects, None) => {
                        is_whole |= is_first && objects.len() == 1;
                        out.extend(objects.into_iter().map(Value::Object));
                    }
                    (_, Some(_)) if cut => out.push(json::beginning(line)),
                    (_, Some(_)) => {}
                }
                is_first = false;
            }
            (is_whole, out)
        })
    }

    /// Returns whether the file is a single JSON value over several lines, and not a value per
    /// line.
    pub fn is_document(&self) -> bool {
        let mut lines = numbered(&self.text).map(|(_, line)| line);
        let Some(first) = lines.next() else { return false };
        let second = lines.next();
        let is_json = |text: &str| {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
            values.all(|value| value.is_ok())
        };
        let is_object = |line: &str| line.starts_with("{\"") && is_json(line);
        first.starts_with(['{', '['])
            && !self.first_objects().0
            && (self.whole || second.is_some())
            && !is_json(first)
            // The first of several lines may break off.
            && (!second.is_some_and(is_object) || is_json(&self.text))
    }
}

/// Returns whether a beginning has the first lines of a file with an object on each line.
fn is_of_objects(beginning: &[u8]) -> bool {
    let mut lines = beginning.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let mut content = lines.by_ref().filter(|line| !line.is_empty());
    let is_object = |line: &[u8]| {
        line.starts_with(b"{\"") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
    };
    content.next().is_some_and(is_object) && content.nth(HEAD_LINES).is_some()
}

pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the lines with content, numbered from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|(_, l)| !l.is_empty())
}

/// Returns whether bytes are the beginning of a zip file: a member, or the end record of an empty archive.
fn is_zip(start: &[u8]) -> bool {
    matches!(start, [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..])
}

/// Returns a safe path of a member below its archive: `./a`, `/a` and `../a` all become `a`.
pub(crate) fn below(name: &str) -> String {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers_and_other_bytes_are_marks() {
        let lines: Vec<(usize, String)> =
            Source::of_bytes(b"a\n\n\xff\n", "x").lines().unwrap().map(Result::unwrap).collect();
        assert_eq!(lines, [(1, "a".to_string()), (3, "\u{fffd}".to_string())]);
    }

    #[test]
    fn a_document_is_no_row_of_lines() {
        let is = |t: &str| Source::of_bytes(t.as_bytes(), "x").head().unwrap().is_document();
        assert!(is("{\n \"a\": 1\n}") && is("[\n{}\n]"));
        assert!(is("{\"a\":[\n{\"b\":1}\n]}") && !is("{\"a\":[\n{\"b\":1}\n{\"b\":2}"));
        assert!(
            !is("{\"a\":1}{\"a\":2}")
                && !is("{\"a\":1}\n{\"a\":2}")
                && !is("{\"a\":1}")
                && !is("")
                && !is("text")
        );
    }

    #[test]
    fn stems_are_names_without_endings() {
        let stem = |n: &str| Source::of_bytes(b"", n).stem().to_string();
        assert_eq!(stem("a/b.c.jsonl"), "b.c");
        assert_eq!(stem("issue.traj.json"), "issue");
        assert_eq!(stem(".hidden"), ".hidden");
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_name() {
        let e = Source::at(Path::new("/nowhere/x.json")).head().err().unwrap().to_string();
        assert!(e.contains("x.json:1: it cannot be read"), "{e}");
    }
}
