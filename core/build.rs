//! Writes the tables for exact token counts, in the form used at run time: the vocabularies of
//! tiktoken-rs as hash tables, and the Unicode classes of their patterns from regex-syntax.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "tokenizers")]
    tables::write();
}

#[cfg(feature = "tokenizers")]
mod tables {
    use std::path::Path;

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

    /// Read by `tokens/vocabulary.rs`. All numbers are u32, little endian: number of tokens, number of
    /// slots, start of each token and end of the last, slots, then the bytes of all tokens. A slot is 0,
    /// or the upper 14 bits of the token's hash and its rank + 1 in 18 bits.
    fn vocabulary(bpe: &CoreBPE) -> Vec<u8> {
        // Special tokens follow after a gap.
        let tokens: Vec<Vec<u8>> = (0..).map_while(|rank| bpe.decode_bytes(&[rank]).ok()).collect();
        assert!(tokens.len() < (1 << 18) - 1, "a rank fits into 18 bits");
        let mut slots = vec![0_u32; tokens.len().next_power_of_two()];
        let mask = slots.len() - 1;
        for (token, number) in tokens.iter().zip(1_u32..) {
            let hash = rapidhash::v3::rapidhash_v3(token);
            let mut at = hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = ((hash >> 50) as u32) << 18 | number;
        }
        let mut numbers = vec![tokens.len() as u32, slots.len() as u32, 0];
        let mut end = 0;
        numbers.extend(tokens.iter().map(|t| {
            end += t.len() as u32;
            end
        }));
        numbers.extend(slots);
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(tokens.concat());
        bytes
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
