use super::*;
use ctxbench_session::{AssistantEntry, Entry, Fact, FactKind, Header, UserEntry};
use proptest::prelude::*;

fn redacted(text: &str) -> String {
    Redactor::default().text(text).into_owned()
}

/// Returns the lines of a part of `cases.txt`.
fn cases(part: &str) -> impl Iterator<Item = &'static str> {
    let parts = include_str!("cases.txt").split("== ");
    let found = parts.filter_map(|one| one.split_once('\n')).find(|(name, _)| *name == part);
    found.unwrap().1.lines().filter(|line| !line.is_empty())
}

/// Replaces the marks for a line break and for Escape.
fn plain(line: &str) -> String {
    line.replace('⏎', "\n").replace('␛', "\u{1b}")
}

/// `n` characters of a key, none of them anybody's. Put together here, so that no scanner takes
/// this file for a leak.
fn body(alphabet: &str, n: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    (0..n).map(|i| letters[(i * 7 + i / letters.len() * 3 + 5) % letters.len()]).collect()
}

const MIXED: &str = "aB3dE5gH7jK9mN2pQ4sT6vW8yZ";
const LETTERS: &str = "aBcDeFgHiJkLmNoPqRsTuVwXyZ";
const HEX: &str = "0a1b2c3d4e5f6789";

/// Every shape: the text around a secret, the secret, and its kind.
fn known_secrets() -> Vec<(String, String, &'static str)> {
    let jwt = format!("eyJ{}.eyJ{}.{}", body(MIXED, 20), body(MIXED, 30), body(MIXED, 43));
    let pem = format!(
        "-----BEGIN {0} PRIVATE KEY-----\n{1}\n{1}\n-----END {0} PRIVATE KEY-----",
        "RSA",
        body(MIXED, 64)
    );
    let upper = body("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16);
    let alone = [
        (format!("AKIA{upper}"), "aws-key"),
        (format!("ghp_{}", body(MIXED, 36)), "github-token"),
        (format!("github_pat_{}", body(MIXED, 82)), "github-token"),
        (format!("glpat-{}", body(MIXED, 20)), "gitlab-token"),
        (format!("xoxb-{}-{}", body("123456", 12), body(MIXED, 24)), "slack-token"),
        (format!("sk-ant-api03-{}", body(MIXED, 93)), "anthropic-key"),
        (format!("sk-proj-{}", body(MIXED, 48)), "openai-key"),
        (format!("AIza{}", body(MIXED, 35)), "google-key"),
        (format!("sk_live_{}", body(MIXED, 24)), "stripe-key"),
        (format!("npm_{}", body(MIXED, 36)), "npm-access-token"),
        (format!("pypi-AgEIcHlwaS5vcmc{}", body(MIXED, 60)), "pypi-upload-token"),
        (format!("hf_{}", body(MIXED, 34)), "huggingface-token"),
        (format!("hf_{}", body(LETTERS, 34)), "huggingface-token"),
        (format!("api_org_{}", body(LETTERS, 34)), "huggingface-organization-api-token"),
        (format!("sk-proj-{}", body(LETTERS, 48)), "openai-key"),
        (format!("gsk_{}", body(MIXED, 52)), "model-key"),
        (format!("glsa_{}_{}", body(MIXED, 32), body(HEX, 8)), "grafana-service-account-token"),
        (format!("rubygems_{}", body(HEX, 48)), "rubygems-api-token"),
        (format!("SG.{}.{}", body(MIXED, 22), body(MIXED, 43)), "sendgrid-api-token"),
        (format!("AC{}", body(HEX, 32)), "twilio-key"),
        (format!("dop_v1_{}", body(HEX, 64)), "digitalocean-pat"),
        (format!("hvs.{}", body(MIXED, 24)), "token"),
        (format!("{}:AA{}", body("123456789", 9), body(MIXED, 33)), "token"),
        (
            format!("AGE-SECRET-KEY-1{}", body("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
            "age-secret-key",
        ),
        (jwt, "jwt"),
        (pem, "private-key"),
    ];
    let mut all: Vec<_> =
        alone.map(|(secret, kind)| (format!("the key {secret} is\nused"), secret, kind)).into();
    let random = body(MIXED, 40);
    for line in cases("secrets") {
        let (kind, marked) = line.split_once(": ").unwrap();
        let text = plain(&marked.replace('…', &random));
        let (_, secret) = text.split_once('‹').unwrap();
        let (secret, _) = secret.split_once('›').unwrap();
        all.push((text.replace(['‹', '›'], ""), secret.to_string(), kind));
    }
    all
}

#[test]
fn every_known_shape_goes_and_the_rest_stays() {
    for (text, secret, kind) in known_secrets() {
        let expected = text.replacen(&secret, &format!("[redacted-{kind}-1]"), 1);
        assert_eq!(redacted(&text), expected);
        assert!(!redacted(&text).contains(&secret));
    }
}

#[test]
fn what_stands_around_a_secret_does_not_hide_it() {
    for (text, secret, _) in known_secrets() {
        let json = serde_json::to_string(&format!("first\n{text}\nlast")).unwrap();
        let secret_in_json = serde_json::to_string(&secret).unwrap();
        let wraps = [
            (json, secret_in_json.trim_matches('"').to_string()),
            (format!("密钥{text}"), secret.clone()),
            (format!("+{text}"), secret.clone()),
            (format!("\u{1b}[32m{text}\u{1b}[0m"), secret.clone()),
            (format!("\\u001b[1;32m{text}"), secret.clone()),
            (format!("'{text}'"), secret.clone()),
        ];
        for (wrapped, secret) in wraps {
            let out = redacted(&wrapped);
            assert!(!out.contains(&secret), "{wrapped} → {out}");
        }
    }
}

#[test]
fn a_long_secret_behind_a_name_goes_whole() {
    let jwt = format!("eyJ{}.eyJ{}.{}", body(MIXED, 40), body(MIXED, 1_900), body(MIXED, 200));
    for (before, after) in
        [("\"access_token\": \"", "\""), ("ACCESS_TOKEN=", ""), ("X-Api-Key: ", "\n")]
    {
        let out = redacted(&format!("{before}{jwt}{after}"));
        assert_eq!(out, format!("{before}[redacted-jwt-1]{after}"));
    }
    let long = body(MIXED, 700);
    assert_eq!(redacted(&format!("password={long}")), "password=[redacted-password-1]");
}

#[test]
fn a_private_key_goes_however_its_lines_are_shown() {
    let key = |line: &str| {
        let rows: Vec<String> = (0..4).map(|_| format!("{line}{}", body(MIXED, 64))).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}", rows.join("\n"))
    };
    for line in ["     2→", "2 | ", "> ", "+", "    \"", "# "] {
        let whole = format!("{}\n{line}-----END PRIVATE KEY-----\nmore", key(line));
        assert_eq!(redacted(&whole), "[redacted-private-key-1]\nmore", "{line}");
        let cut = key(line);
        assert_eq!(redacted(&cut), "[redacted-private-key-1]", "{line}");
    }
    let words = "grep -r -- '-----BEGIN PRIVATE KEY-----' . | head";
    assert_eq!(redacted(words), words);
}

#[test]
fn a_long_row_of_assignments_takes_no_time() {
    let text = "token=a&".repeat(40_000);
    assert_eq!(redacted(&text), text);
}

#[test]
fn cookies_go_whole_and_people_by_number() {
    let value = body(MIXED, 32);
    let session = format!("Cookie: sid={value}; theme=dark\nHost: a");
    let option = format!("-H 'cookie: sid={value}'");
    let field = format!("\"Set-Cookie\": \"sid={value}; Path=/\"");
    let token = format!("the key secret_{} is", body(MIXED, 43));
    for (text, expected) in [
        (&*session, "Cookie: [redacted-cookie-1]\nHost: a"),
        (&option, "-H 'cookie: [redacted-cookie-1]'"),
        (&field, "\"Set-Cookie\": \"[redacted-cookie-1]\""),
        (&token, "the key [redacted-token-1] is"),
    ] {
        assert_eq!(redacted(text), expected);
    }
    let lines: Vec<String> = cases("replaced").map(plain).collect();
    for pair in lines.chunks(2) {
        assert_eq!(redacted(&pair[0]), pair[1].strip_prefix("→ ").unwrap());
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in cases("kept").chain([""]) {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn a_field_named_as_a_secret_is_one() {
    let random = body(MIXED, 32);
    let mut value = serde_json::json!({
        "api_key": random, "password": "swordfish", "max_tokens": "4096", "token": "string",
        "/home/ada/x": [{"env": {"GITHUB_TOKEN": random}}],
    });
    Redactor::default().value(&mut value);
    let expected = serde_json::json!({
        "api_key": "[redacted-secret-1]", "password": "[redacted-secret-2]",
        "max_tokens": "4096", "token": "string",
        "/home/user1/x": [{"env": {"GITHUB_TOKEN": "[redacted-secret-1]"}}],
    });
    // Numbers follow the order of the fields, which is that of the map.
    assert_eq!(value, expected);
    let mut value = serde_json::json!({"name": "DB_PASSWORD", "value": "swordfish"});
    Redactor::default().value(&mut value);
    assert_eq!(value["value"], "[redacted-secret-1]");
}

#[test]
fn a_session_is_redacted_everywhere() {
    let user =
        |text: &str| Entry::User(UserEntry { text: Some(text.into()), ..UserEntry::default() });
    let session = Session {
        header: Header { id: "s".into(), title: "for ada@engine.org".into(), ..Header::default() },
        entries: vec![user("I am ada@engine.org"), user("in /home/ada/x")],
        facts: vec![Fact::new("who", FactKind::Value, "ada@engine.org", "u")],
    };
    let out = Redactor::default().session(&session).unwrap();
    assert_eq!(out.header.title, "for person1@example.com");
    assert_eq!(out.entries, [user("I am person1@example.com"), user("in /home/user1/x")]);
    assert_eq!(out.facts, [Fact::new("who", FactKind::Value, "person1@example.com", "u")]);
}

/// A path with a secret is needed long after it was shown; the same is true for its replacement.
#[test]
fn facts_that_were_found_are_found_in_what_is_left() {
    let said = |id: &str, text: &str| {
        let (id, text) = (id.to_string(), Some(text.into()));
        Entry::Assistant(AssistantEntry { id, text, ..AssistantEntry::default() })
    };
    let path = |who: &str| format!("/home/{who}/work/ledger-4711-final.csv");
    let shown =
        UserEntry { id: "u".into(), text: Some(path("ada").into()), ..UserEntry::default() };
    let mut entries = vec![Entry::User(shown)];
    entries.extend((1..8).map(|n| said(&format!("a{n}"), "One moment, I look at the others.")));
    entries.push(said("b", &format!("Now I open {}.", path("ada"))));
    let header = Header { id: "s".into(), ..Header::default() };
    let mut session = Session { header, entries, facts: vec![] };
    autofacts::add(&mut session);
    let found = |session: &Session| -> Vec<(Vec<String>, String, Vec<String>)> {
        let of = |f: &Fact| (f.tokens.clone(), f.arises.clone(), f.needs.clone());
        session.facts.iter().map(of).collect()
    };
    let needed = |who: &str| vec![(vec![path(who)], "u".to_string(), vec!["b".to_string()])];
    assert_eq!(found(&session), needed("ada"));
    assert_eq!(found(&Redactor::default().session(&session).unwrap()), needed("user1"));
}

proptest! {
    #[test]
    fn it_is_done_once(
        pieces in prop::collection::vec(prop_oneof![
            "[ -~\\n]{0,20}", "\\PC{0,8}",
            (0..known_secrets().len()).prop_map(|i| known_secrets()[i].0.clone()),
            Just("mail ada@engine.org in /home/ada or C:\\Users\\ada\\x".to_string()),
            Just("password=\"".to_string()), Just("token: ".to_string()),
        ], 0..8)
    ) {
        let once = redacted(&pieces.concat());
        prop_assert_eq!(redacted(&once), once.clone());
    }

    #[test]
    fn no_known_secret_survives_among_words(
        before in "[a-z ]{0,30} ", after in " [a-z ]{0,30}", at in 0..known_secrets().len()
    ) {
        let (text, secret, _) = &known_secrets()[at];
        let text = format!("{before}{text}{after}");
        prop_assert!(!redacted(&text).contains(secret.as_str()));
    }
}
