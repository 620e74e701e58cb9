//! Writes the tables for exact token counts: the vocabularies of tiktoken-rs, packed, and
//! the Unicode classes of their patterns from regex-syntax.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "tokenizers")]
    tables::write();
}

#[cfg(feature = "tokenizers")]
mod tables {
    use std::io::Write as _;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use regex_syntax::hir::{Class, HirKind};
    use tiktoken_rs::CoreBPE;

    pub fn write() {
        let out = std::env::var_os("OUT_DIR").expect("cargo names a folder for the output");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(Path::new(&out).join(name), bytes).expect("the output can be written");
        };
        let inside = "the vocabulary is inside the crate";
        write("o200k.bin", &vocabulary(&tiktoken_rs::o200k_base().expect(inside)));
        write("cl100k.bin", &vocabulary(&tiktoken_rs::cl100k_base().expect(inside)));
        write("classes.bin", &classes());
    }

    /// Read by `tokens/vocabulary.rs`, and deflated: the number of tokens as a u32, little endian, the
    /// length of each token in a byte, and the bytes of all.
    fn vocabulary(bpe: &CoreBPE) -> Vec<u8> {
        // Special tokens follow after a gap.
        let tokens: Vec<Vec<u8>> = (0..).map_while(|rank| bpe.decode_bytes(&[rank]).ok()).collect();
        assert!(tokens.len() < (1 << 18) - 1, "a rank fits into 18 bits");
        let lengths = tokens.iter().map(|t| u8::try_from(t.len()).expect("128 bytes or fewer"));
        let mut bytes = (tokens.len() as u32).to_le_bytes().to_vec();
        bytes.extend(lengths);
        bytes.extend(tokens.concat());
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&bytes).expect("memory can be written");
        packed.finish().expect("memory can be written")
    }

    /// Read by `tokens/classes.rs`: the block number of each 256 code points, then the blocks with one
    /// class per byte.
    fn classes() -> Vec<u8> {
        // Numbered as `Class`.
        let named = [
            (1, r"[\p{Lu}\p{Lt}]"),
            (2, r"\p{Ll}"),
            (3, r"[\p{Lm}\p{Lo}]"),
            (4, r"\p{M}"),
            (5, r"\p{N}"),
            (6, r"\s"),
            (7, r"[\r\n]"),
        ];
        let mut all = vec![0_u8; 0x11_0000];
        for (class, pattern) in named {
            let hir = regex_syntax::parse(pattern).expect("a class of characters");
            let HirKind::Class(Class::Unicode(ranges)) = hir.kind() else {
                panic!("{pattern} is a class of characters");
            };
            for r in ranges.ranges() {
                all[r.start() as usize..=r.end() as usize].fill(class);
            }
        }
        let (mut index, mut blocks): (Vec<u8>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        for block in all.chunks(256) {
            let at = blocks.iter().position(|b| *b == block).unwrap_or_else(|| {
                blocks.push(block);
                blocks.len() - 1
            });
            index.push(u8::try_from(at).expect("fewer than 256 different blocks"));
        }
        index.extend(blocks.concat());
        index
    }
}
