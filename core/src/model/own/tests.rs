use super::*;
use crate::model::{Counting, name_of, table};
use crate::tokens::Size;

fn with(text: &str) -> Result<Table, TomlError> {
    table::published().with(&OwnFile { path: "some/mine.toml".into(), text: text.into() })
}

fn error_of(text: &str) -> String {
    with(text).err().expect("the file is wrong").to_string()
}

fn model<'a>(table: &'a Table, name: &str) -> &'a Model {
    table.models.iter().find(|m| *m.name == *name).unwrap()
}

#[test]
fn a_listed_model_keeps_what_the_file_does_not_say() {
    let before = table::published();
    let after = with(
        "[[model]]\nname = \"gpt-5.4\"\nwindow = 400_000\n\
         prices = { input = 1, read = 0.5, output = 2 }\n",
    )
    .unwrap();
    let (old, new) = (model(&before, "gpt-5.4"), model(&after, "gpt-5.4"));
    assert_eq!((new.window, new.max_output, new.input_limit), (400_000, old.max_output, None));
    let p = &new.prices;
    assert_eq!((p.input, p.write_5m, p.read, p.output), (1.0, 1.0, 0.5, 2.0));
    assert!(p.long.is_empty());
    assert_eq!((&new.wire, new.cache, new.latency), (&old.wire, old.cache, old.latency));
    assert_eq!(after.models.len(), before.models.len());
    assert!(new.source.starts_with("mine.toml, ") && new.source.ends_with(&old.source));
}

#[test]
fn a_new_one_is_like_a_listed_one_or_told_whole() {
    let table = with(
        "[cache.mine]\nentries = \"everywhere\"\nminimum = 64\nshort_ms = 1000\n\
         [[model]]\nname = \"lab\"\nlike = \"claude-sonnet-4-6\"\n\
         keeps_thinking = false\nweak = \"lab-mini\"\ncounting = { per_token = 1.3 }\ncache = { minimum = 2048 }\n\
         [[model]]\nname = \"lab-mini\"\nlike = \"claude-haiku-4-5\"\n\
         [[model]]\nname = \"local\"\nprovider = \"openai\"\nwire = \"openai-chat\"\n\
         window = 32_768\nmax_output = 8_192\ncache = { rule = \"mine\", step = 16 }\n\
         prices = { input = 0, read = 0, output = 0 }\nspeed = \"small\"\n",
    )
    .unwrap();
    let lab = model(&table, "lab");
    assert_eq!((&*lab.weak, lab.cache.minimum, lab.cache.breakpoints), ("lab-mini", 2_048, 4));
    assert_eq!(lab.counting.name(), "1.3 · o200k + 34 per block");
    assert!(lab.counting.payload_repeats && lab.counting.error_pct.is_none());
    let keeps = ["lab", "lab-mini", "local"].map(|name| model(&table, name).keeps_thinking);
    assert_eq!(keeps, [false, false, true], "explicit, that of haiku, the rule");
    let local = model(&table, "local");
    assert_eq!((&*local.weak, local.cache.step, local.cache.short_ms), ("local", 16, 1_000));
    assert_eq!((local.published_output, local.counting), (8_192, Counting::O200K));
    assert!(local.is_priced(), "nothing is a price, too");
    assert!(!local.capabilities.context_editing, "that is the other wire's");
}

#[test]
fn the_name_of_the_table_tells_which_files_changed_it() {
    let published = name_of(&table::published());
    let told = name_of(&with("[[model]]\nname = \"lab\"\nlike = \"gpt-5\"\n").unwrap());
    let hash = told.strip_prefix(&format!("{published} + mine.toml, ")).unwrap();
    assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{told}");
    assert_ne!(told, name_of(&with("[[model]]\nname = \"lab\"\nlike = \"o3\"\n").unwrap()));
}

#[test]
fn errors_have_line_key_and_similar_name() {
    assert_eq!(
        error_of("[model.lab]\nlike = \"gpt-5\"\n"),
        "some/mine.toml:1: model.lab: it is a table; expected a list; write its tables as [[…]]"
    );
    // Words of the parser have the line of the value, others that of the model.
    for (lines, expected) in [
        ("lik = 'gpt-5'", "3: unknown key `lik`; did you mean like?"),
        ("like = 'gpt-5.55'", "1: there is no model `gpt-5.55`; did you mean gpt-5.5"),
        ("window = 1", "1: `provider` is missing; add it, or a listed model that this one is"),
        (
            "like = 'claude-opus-5'\nprices = { input = 1, read = 1, output = 2 }",
            "1: `write_5m` is missing in `prices`",
        ),
        ("window = -1", "4: window: it is -1; expected a whole number"),
        ("window = 'big'", "4: window: it is"),
        ("window = 0", "1: `window` is 0; expected 1 to"),
        ("window = 1000", "1: a `max_output` of 128000 is more than the `window` of 1000"),
        ("wire = 'openai-chap'", "1: there is no wire `openai-chap`; did you mean openai-chat"),
        ("wire = 'anthropic-messages'", "1: provider `anthropic` and wire"),
        ("cache = { rule = 'opnai' }", "1: there is no cache rule `opnai`; did you mean openai"),
        ("cache = { stepp = 0 }", "1: unknown key `stepp`; did you mean step"),
        ("cache = { step = 0 }", "1: `step` is 0; expected"),
        ("speed = 'smal'", "1: there is no speed rule `smal`; did you mean small"),
        (
            "weak = 'claude-haiku-4-5'",
            "1: `weak`: claude-haiku-4-5 and lab have different providers",
        ),
        ("prices = { input = 1, output = 2 }", "4: `read` is missing"),
        ("prices = { input = -1, read = 1, output = 2 }", "1: `input` is -1"),
        ("prices = { input = nan, read = 1, output = 2 }", "1: `input` is NaN"),
        ("capabilities = { server_compaction = true }", "1: `server_compaction`"),
        ("counting = { family = 'clod' }", "4: unknown word `clod`; did you mean cl"),
        ("counting = { per_token = 0 }", "1: `per_token` is 0; expected 0.01"),
    ] {
        let like =
            if lines.contains("lik") || lines == "window = 1" { "" } else { "like = 'gpt-5'\n" };
        let told = error_of(&format!("[[model]]\nname = \"lab\"\n{like}{lines}\n"));
        assert!(told.starts_with(&format!("some/mine.toml:{expected}")), "{lines}: {told}");
    }
    let other = "[[model]]\nname = \"gpt-5\"\nlike = \"claude-opus-5\"\n";
    assert!(error_of(other).ends_with(":1: gpt-5 has another provider; give yours another `name`"));
    assert!(error_of("[[model]\n").starts_with("some/mine.toml:1: "));
    assert!(error_of("[[modl]]\n").contains(":1: unknown key `modl`; did you mean model?"));
    assert!(error_of("[[model]]\nname = \" \"\n").contains(":1: `name` names no model"));
}

#[test]
fn the_counting_of_openai_has_its_rule_of_images() {
    let table =
        with("[[model]]\nname = \"gpt-5.4\"\ncounting = { family = \"openai\" }\n").unwrap();
    let counting = model(&table, "gpt-5.4").counting;
    let image = Size { images: 1, pixels: Some((1_920, 1_080)), ..Size::default() };
    // 60 × 34 squares of 32 pixels at 1.2 tokens.
    assert_eq!(counting.block(image) - counting.per_block, 2_448);
}
