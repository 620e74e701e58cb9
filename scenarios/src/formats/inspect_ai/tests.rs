use ctxbench_session::{Entry, RecordedUsage, Session};

use super::super::testing::{assert_contains, describe, import, recorded, times};
use super::*;
use crate::Loaded;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(recorded("inspect-ai").join(name)).unwrap()
}

fn all(bytes: &[u8], name: &str) -> Vec<Loaded> {
    import("inspect-ai", &Source::of_bytes(bytes, name))
}

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> RecordedUsage {
    RecordedUsage { input, output, cache_read, cache_write, ..RecordedUsage::default() }
}

#[test]
fn samples_of_a_log_are_sessions() {
    let found = all(&data("shop.json"), "shop.json");
    let [shop, files] = found.as_slice() else { panic!("{} sessions", found.len()) };
    let s = &shop.session;
    assert_eq!(s.header.id, "port-epoch-1");
    assert_eq!(s.header.model.as_deref(), Some("claude-sonnet-4-5-20250929"));
    let told = describe(s);
    assert!(told[0].contains("\"name\":\"bash\""), "{}", told[0]);
    let expected = [
        "system: You solve tasks on a Linux machine.",
        "user: On which port does the server of the shop listen? Look at the picture, too. + \
         <image/png 34>",
        "model: (The configuration should say it.c2ln) + I look at the configuration. + \
         bash[toolu_1]{\"cmd\":\"cat shop/config.toml\"}",
        "result[toolu_1]: name = 'shop'\nlisten = 8443\n",
        "model: And whether it answers. + bash[toolu_2]{\"cmd\":\"curl localhost:8443\"}",
        "result![toolu_2]: curl: (7) failed to connect",
        "compaction: Some(1100) Some(320) Some(\"Summary so far: shop/config.toml says listen = \
         8443; the server does not answer.\")",
        "model: It listens on port 8443, but it is not running.",
    ];
    assert_eq!(told[1..], expected);
    assert_eq!(times(s), [0, 3_000, 6_000, 12_000, 14_000]);
    let counted = |s: &Session| -> Vec<Option<RecordedUsage>> {
        let of = |e: &Entry| match e {
            Entry::Assistant(a) => Some(a.usage.clone()),
            Entry::RecordedCompaction(c) => Some(c.usage.clone()),
            _ => None,
        };
        s.entries.iter().filter_map(of).collect()
    };
    // The total is larger than input and output, so cache tokens are counted separately.
    let expected = [
        Some(usage(20, 30, 0, 900)),
        Some(usage(15, 25, 900, 60)),
        Some(usage(1100, 22, 0, 0)),
        Some(usage(330, 15, 0, 0)),
    ];
    assert_eq!(counted(s), expected);
    assert_contains(&shop.warnings[0], &["attempts that were given up), left out: 1"]);
    // Here cache tokens are included: 1350 = 70 + 1280 read. A reply that was cut at the end has no
    // following reply.
    let s = &files.session;
    let expected = ("7-epoch-2", Some("gpt-5.1-2025-11-13"));
    assert_eq!((&*s.header.id, s.header.model.as_deref()), expected);
    assert_eq!(counted(s), [Some(usage(1300, 20, 0, 0)), Some(usage(70, 12, 1280, 0)), None]);
    assert_eq!(describe(s).last().unwrap(), "compaction: Some(1400) None None");
    assert_eq!(times(s).last(), Some(&4_000));
    assert!(files.warnings.is_empty(), "{:?}", files.warnings);
}

#[test]
fn an_archive_holds_the_same_sessions() {
    let mut packed = all(&data("shop.eval"), "shop.eval");
    // Members are read in the order of their names.
    packed.reverse();
    let plain = all(&data("shop.json"), "shop.json");
    for (packed, plain) in packed.iter().zip(&plain) {
        let entries = |l: &Loaded| l.session.entries.clone();
        assert_eq!(entries(packed), entries(plain));
        assert_eq!(packed.session.header.id, plain.session.header.id);
    }
    assert_eq!(packed.len(), 2);
}

#[test]
fn a_sample_without_messages_or_events_is_what_was_asked() {
    let log = |sample: &str| {
        format!(
            r#"{{"version":2,"status":"error","eval":{{"task":"t","model":"openai/gpt-5.1"}},"samples":[{sample}]}}"#
        )
    };
    let found = all(log(r#"{"id":1,"epoch":1,"input":"Do it."}"#).as_bytes(), "x.json");
    assert_eq!(describe(&found[0].session), ["user: Do it."]);
    let bare = r#"{"id":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"reasoning","reasoning":"sealed","redacted":true,"summary":"short"},{"type":"text","text":"b"},{"type":"audio","audio":"x"}]}]}"#;
    let found = all(log(bare).as_bytes(), "x.json");
    assert_eq!(describe(&found[0].session), ["user: a", "model: (shortsealed) + b"]);
    assert_eq!(found[0].session.header.id, "1");
    assert_eq!(found[0].session.header.model.as_deref(), Some("gpt-5.1"));
}

#[test]
fn damaged_archives_are_refused_or_read_in_part() {
    let whole = data("shop.eval");
    let mut damaged: Vec<Vec<u8>> =
        (0..whole.len()).step_by(97).map(|n| whole[..n].to_vec()).collect();
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        damaged.push(bytes);
    }
    damaged.push([whole.clone(), whole.clone()].concat());
    damaged.push([b"noise".to_vec(), whole.clone()].concat());
    for bytes in damaged {
        let mut any = false;
        FORMAT.recordings(&Source::of_bytes(&bytes, "shop.eval"), &mut |one| {
            any = true;
            if let Err(e) = one {
                let e = e.to_string();
                assert!(e.starts_with("shop.eval") && e.contains("; expected "), "{e}");
            }
            std::ops::ControlFlow::Continue(())
        });
        assert!(any);
    }
}
