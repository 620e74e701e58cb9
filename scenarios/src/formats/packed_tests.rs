//! Tests of compressed files, which must give the same result as uncompressed ones.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::testing::{assert_contains, recorded};
use super::*;
use crate::InputError;

fn plain(path: &str) -> Vec<u8> {
    std::fs::read(recorded(path)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn text(bytes: &[u8], name: &str) -> Result<String, InputError> {
    Source::of_bytes(bytes, name).text().map(str::to_string)
}

fn lines(bytes: &[u8], name: &str) -> Result<Vec<String>, InputError> {
    Source::of_bytes(bytes, name).lines()?.map(|l| l.map(|(_, text)| text)).collect()
}

const CHAT: &str = "messages/openai-chat.jsonl";

#[test]
fn gzip_and_zstandard_are_read_as_what_is_in_them() {
    let chat = plain(CHAT);
    let zst = plain("../packed/openai-chat.jsonl.zst");
    // `cat a.gz b.gz` gives a valid file. With Zstandard, a skippable frame lies in between.
    let twice = [chat.clone(), chat.clone()].concat();
    let skipped = vec![0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
    for (whole, packed, name) in [
        (&chat, gzip(&chat), "c.jsonl.gz"),
        (&chat, zst.clone(), "c.jsonl.zst"),
        (&twice, [gzip(&chat), gzip(&chat)].concat(), "c.jsonl.gz"),
        (&twice, [gzip(&chat), vec![0; 99], gzip(&chat), vec![0; 512]].concat(), "c.jsonl.gz"),
        (&twice, [zst.clone(), skipped.clone(), zst.clone()].concat(), "c.jsonl.zst"),
        (&chat, [skipped, zst].concat(), "c.jsonl.zst"),
        // The bytes determine the compression, not the name.
        (&chat, gzip(&chat), "c.jsonl"),
    ] {
        let source = Source::of_bytes(&packed, name);
        assert_eq!(source.text().unwrap().as_bytes(), &whole[..], "{name}");
        assert_eq!(lines(&packed, name).unwrap(), lines(whole, "x").unwrap());
        assert_eq!((source.stem(), source.head().unwrap().name.as_str()), ("c", "c.jsonl"));
        assert_eq!(detect(&source).unwrap().name, "openai-chat");
        let read = |bytes: &[u8]| {
            let all = CHAT_FORMAT.import_all(&Source::of_bytes(bytes, "c.jsonl")).unwrap();
            all.into_iter().map(|l| l.session).collect::<Vec<_>>()
        };
        assert_eq!(read(&packed), read(whole), "{name}");
    }
}

static CHAT_FORMAT: &Format = &messages::CHAT;

#[test]
fn a_zip_lists_its_files_and_opens_each() {
    let path = recorded("../packed/tree.zip");
    let bytes = std::fs::read(&path).unwrap();
    for source in [Source::at(&path), Source::of_bytes(&bytes, "tree.zip")] {
        let head = source.head().unwrap();
        let names = head.members.clone().unwrap();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(names.is_sorted() && names.iter().any(|n| n == CHAT));
        assert_eq!((head.text.as_str(), &head.entries), ("", &None));
        assert!(detect_head(&head).is_none());
        let archive = source.archive().unwrap().unwrap();
        for name in &names {
            let member = archive.member(name).unwrap();
            assert_eq!(member.name(), format!("tree.zip/{name}"));
            assert_eq!(member.text().unwrap().as_bytes(), plain(name), "{name}");
            assert!(detect(&member).is_some() && member.path().is_none());
        }
        let e = archive.member("nobody.json").err().unwrap().to_string();
        assert!(e.starts_with("tree.zip/nobody.json:1: "), "{e}");
    }
}

#[test]
fn damaged_data_is_an_error_that_names_the_file() {
    let chat = plain(CHAT);
    let zst = plain("../packed/openai-chat.jsonl.zst");
    for (packed, name) in [(gzip(&chat), "c.gz"), (zst, "c.zst")] {
        let cut = &packed[..packed.len() / 2];
        let mut other = packed.clone();
        let at = other.len() - 3;
        other[at] ^= 0x55;
        for bytes in [cut, &other] {
            let e = text(bytes, name).unwrap_err().to_string();
            assert!(e.starts_with(&format!("{name}:1: it cannot be read (the ")), "{e}");
            assert!(e.ends_with("check that it exists and was copied whole"), "{e}");
            assert!(lines(bytes, name).is_err());
        }
    }
    let whole = plain("../packed/tree.zip");
    let e = Source::of_bytes(&whole[..whole.len() / 2], "t.zip").archive().err().unwrap();
    assert!(e.to_string().starts_with("t.zip:1: the zip archive cannot be read"), "{e}");
    // One member is damaged, the others are not.
    let mut bytes = whole.clone();
    let at = bytes.len() / 3;
    bytes[at] ^= 0x55;
    let source = Source::of_bytes(&bytes, "t.zip");
    let archive = source.archive().unwrap().unwrap();
    let read = |name: &String| archive.member(name).and_then(|m| m.text().map(drop));
    let names = archive.names();
    let bad: Vec<InputError> = names.iter().filter_map(|n| read(n).err()).collect();
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(bad[0].to_string().starts_with("t.zip/"), "{}", bad[0]);
}

#[test]
fn what_grows_beyond_measure_is_refused() {
    let bomb = gzip(&vec![b' '; 1 << 20]).repeat(65);
    let e = text(&bomb, "bomb.json.gz").unwrap_err().to_string();
    assert_contains(&e, &["bomb.json.gz:1: it cannot be read (its first ", "no session does"]);
    assert!(lines(&bomb, "bomb.json.gz").is_err());
    assert!(Source::of_bytes(&bomb, "b").head().is_ok());
}

#[test]
fn dense_data_may_unpack_to_less() {
    let mib = 1 << 20;
    for (packed, unpacked) in [(1, 250), (12, 512), (100, 2000)] {
        assert_eq!(unpack::max_unpacked(packed * mib), unpacked * mib);
    }
    assert_eq!(unpack::max_unpacked(100), 64 * mib);
}
