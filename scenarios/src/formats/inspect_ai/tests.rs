use super::super::testing::{import, recorded};
use super::*;
use crate::Loaded;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(recorded("inspect-ai").join(name)).unwrap()
}

fn all(bytes: &[u8], name: &str) -> Vec<Loaded> {
    import("inspect-ai", &Source::of_bytes(bytes, name))
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
