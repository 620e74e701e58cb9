#![no_main]

#[path = "../../tests/doors.rs"]
mod doors;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static DOOR: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let door = DOOR.get_or_init(|| {
        let names: Vec<&str> = doors::DOORS.iter().map(|(n, _)| *n).collect();
        let wanted = std::env::var("CTXBENCH_DOOR").unwrap_or_default();
        let found = doors::DOORS.iter().find(|(n, _)| *n == wanted);
        found.unwrap_or_else(|| panic!("CTXBENCH_DOOR is {wanted:?}; name one of \
            {}", names.join(", "))).1
    });
    door(bytes);
});
