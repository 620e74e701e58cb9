use ctxbench_session::{Entry, Header, UserEntry};

use super::*;

fn session(id: &str, words: usize, started: Option<&str>) -> Session {
    let user = UserEntry { text: Some("word ".repeat(words).into()), ..UserEntry::default() };
    let header =
        Header { id: id.into(), started: started.map(str::to_string), ..Header::default() };
    Session { header, entries: vec![Entry::User(user)], facts: vec![] }
}

fn offer<T>(chooser: &mut Chooser<T>, session: &Session, place: &str, what: T) -> Option<T> {
    let candidate = Candidate::new(session, &chooser.choice);
    chooser.admit(&candidate, place).and_then(|ticket| chooser.take(ticket, what))
}

/// Returns the selected places and the message about the others.
fn taken(choice: &Choice, places: &[&str]) -> (Vec<String>, Option<String>) {
    let mut chooser = Chooser::new(choice);
    let mut out = Vec::new();
    for place in places {
        out.extend(offer(&mut chooser, &session("s", 10, None), place, place.to_string()));
    }
    let (sample, told) = chooser.end();
    out.extend(sample);
    (out, told)
}

#[test]
fn without_a_wish_all_are_taken() {
    assert_eq!(taken(&Choice::default(), &["a", "b"]), (vec!["a".into(), "b".into()], None));
}

#[test]
fn a_limit_ends_it() {
    let choice = Choice { limit: Some(1), ..Choice::default() };
    let (out, told) = taken(&choice, &["a", "b", "c"]);
    assert_eq!(out, ["a"]);
    assert_eq!(told.unwrap(), "read no further after 1 session");
}

#[test]
fn a_sample_is_the_same_in_any_order_and_grows_with_its_size() {
    let names: Vec<String> = (0..60).map(|n| format!("dir/{n}.jsonl")).collect();
    let forward: Vec<&str> = names.iter().map(String::as_str).collect();
    let backward: Vec<&str> = forward.iter().rev().copied().collect();
    let set = |seed: u64, n: u64, places: &[&str]| {
        let choice = Choice { sample: Some(n), seed, ..Choice::default() };
        let (mut out, told) = taken(&choice, places);
        assert_eq!(told.unwrap(), format!("{} sessions left out: {} not drawn", 60 - n, 60 - n));
        out.sort();
        out
    };
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let ten = set(seed, 10, &forward);
        assert_eq!((ten.len(), &ten), (10, &set(seed, 10, &backward)));
        let more = set(seed, 11, &forward);
        assert!(ten.iter().all(|n| more.contains(n)), "a larger sample holds the smaller");
        met.extend(ten);
    }
    // 20 draws of 10 out of 60 leave a session out with a probability of (5/6)^20, which is about 2
    // of 60.
    assert!(met.len() > 50, "{}", met.len());
    let (out, _) = taken(&Choice { sample: Some(9), ..Choice::default() }, &forward);
    let places: Vec<usize> =
        out.iter().map(|n| names.iter().position(|m| m == n).unwrap()).collect();
    assert!(places.is_sorted(), "in the order in which they came: {places:?}");
}

#[test]
fn size_and_day_are_looked_at_before_the_sample() {
    let choice = Choice {
        sample: Some(5),
        min_tokens: Some(10),
        since: Some("2026-02-01".into()),
        ..Choice::default()
    };
    let mut chooser = Chooser::new(&choice);
    let days = ["2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"];
    for (n, day) in days.iter().enumerate() {
        assert!(offer(&mut chooser, &session("s", 10, Some(day)), &n.to_string(), n).is_none());
    }
    offer(&mut chooser, &session("s", 10, None), "undated", 3);
    offer(&mut chooser, &session("s", 1, Some(days[2])), "small", 4);
    let (sample, told) = chooser.end();
    assert_eq!(sample, [1, 2]);
    assert_eq!(
        told.unwrap(),
        "3 sessions left out: 1 with less than 10 tokens, 1 begun before 2026-02-01, 1 without a \
         date"
    );
}

#[test]
fn day_rejects_other_text_and_impossible_dates() {
    assert_eq!(day("2026-03-01").unwrap(), "2026-03-01");
    for bad in
        ["2026-3-1", "2026-13-01", "2026-02-30", "yesterday", "2026-03-01T00:00:00Z", "２０２６"]
    {
        assert!(day(bad).unwrap_err().contains("YYYY-MM-DD"), "{bad}");
    }
}

#[test]
fn days_count_in_utc_whatever_zone_a_session_names() {
    let choice = Choice { since: Some("2026-02-01".into()), ..Choice::default() };
    let mut chooser = Chooser::new(&choice);
    let mut take = |day: &str| offer(&mut chooser, &session("s", 1, Some(day)), "s", ()).is_some();
    assert!(take("2026-01-31T23:30:00-01:00") && !take("2026-02-01T00:30:00+01:00"));
    assert!(!take("soon"));
    let (_, told) = chooser.end();
    assert_eq!(told.unwrap(), "2 sessions left out: 1 begun before 2026-02-01, 1 without a date");
}

#[test]
fn what_a_limit_leaves_of_a_sample_was_drawn() {
    let choice = Choice { sample: Some(3), limit: Some(2), ..Choice::default() };
    let (out, told) = taken(&choice, &["a", "b", "c", "d"]);
    assert_eq!(out.len(), 2);
    assert_eq!(told.unwrap(), "2 sessions left out: 1 not drawn, 1 beyond the limit");
}

#[test]
fn the_newest_are_kept_in_their_order_and_what_has_no_date_is_oldest() {
    let began = [
        ("a", Some("2026-03-02T10:00:00Z")),
        ("b", None),
        ("c", Some("2026-03-04T10:00:00Z")),
        ("d", Some("2026-03-03T10:00:00Z")),
    ];
    let newest = |n| {
        let mut chooser = Chooser::new(&Choice { last: Some(n), ..Choice::default() });
        for (id, started) in began {
            assert_eq!(offer(&mut chooser, &session(id, 10, started), id, id), None);
        }
        assert!(!chooser.is_full());
        chooser.end()
    };
    assert_eq!(newest(2), (vec!["c", "d"], Some("2 sessions left out: 2 older".into())));
    assert_eq!(newest(3), (vec!["a", "c", "d"], Some("1 session left out: 1 older".into())));
    assert_eq!(newest(4), (vec!["a", "b", "c", "d"], None));
}
